"""ACC's Table 2: which schemes let a network with a circle of buffers deadlock."""

import json

import numpy as np
import pytest

from fluidcc.engines.run import simulate
from fluidcc.proofs.acc import table2 as acc_table2
from fluidcc.proofs.acc.common import COMPARED
from fluidcc.proofs.verdict.registry import reproduce
from tests.proofs.figures import made


@pytest.mark.slow
def test_a_deadlock_is_for_ever():
    """TIMELY, seed 1: none of the ports of the circle sends a byte after it, and few flows finish."""
    scenario = acc_table2.unit("timely", 1, 20e-3)
    trace = simulate(scenario, 9e-3, engine="packet", seed=1, sample_interval=20e-6)
    found = trace.summary["pfc"]
    assert found["deadlock_s"] is not None
    ring = found["deadlock"].split(", ")
    assert {"T3->L2", "L2->T2", "T2->L1", "L1->T3"} <= set(ring)
    after = trace["sent"].sel(link=ring, time=slice(found["deadlock_s"] + 1e-6, None)).values
    assert len(after) > 50
    assert (after == after[0]).all()
    assert trace["sent"].sel(link=ring).values[-1].min() > 0
    assert trace.summary["drops"] == 0


COUNTS = dict.fromkeys(acc_table2.COUNTED, 1.0) | {"deadlock": None, "drops": 0}
NAMES = [f"{name} {seed}" for seed in range(acc_table2.QUICK_SEEDS) for name in COMPARED]


def test_runs_are_kept_and_not_made_again(tmp_path, monkeypatch):
    """All but one are there already: only that is run, and the table is made of all."""
    runs = {name: COUNTS for name in NAMES}
    runs["timely 0"] = COUNTS | {"deadlock": 1e-3}
    del runs["acc 1"]
    kept = {acc_table2.made_by(acc_table2.QUICK_UNTIL): runs}
    (tmp_path / "acc-table2-quick.runs.json").write_text(json.dumps(kept))
    ran = []
    monkeypatch.setattr(acc_table2, "run", lambda name, until: ran.append(name) or COUNTS)
    result = reproduce("acc-table2", tmp_path, quick=True)
    assert ran == ["acc 1"]
    assert [result.values[f"deadlocks_{name}"] for name in COMPARED] == [0, 0, 0, 1]
    assert result.agrees
    assert not (tmp_path / "acc-table2-quick.runs.json").exists()


def test_an_interrupted_table_continues(tmp_path, monkeypatch):
    """Ctrl-C in the fourth run: what is kept is not run again; a quick table between the two leaves it alone."""
    monkeypatch.setattr(acc_table2, "SEEDS", 2)
    ran = []

    def stopped(name, until):
        if len(ran) == 3:
            raise KeyboardInterrupt
        ran.append(name)
        return COUNTS

    monkeypatch.setattr(acc_table2, "run_many", lambda work, jobs: ((job, work(job, None)) for job in jobs))
    monkeypatch.setattr(acc_table2, "run", stopped)
    with pytest.raises(KeyboardInterrupt):
        reproduce("acc-table2", tmp_path)
    assert ran == NAMES[:3]
    monkeypatch.setattr(acc_table2, "run", lambda name, until: ran.append(name) or COUNTS)
    reproduce("acc-table2", tmp_path, quick=True)
    assert ran[3:] == NAMES  # shorter runs, all of them
    reproduce("acc-table2", tmp_path)
    assert ran[3 + len(NAMES) :] == NAMES[3:]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["acc-table2.nc", "acc-table2.png"]


def test_runs_of_other_settings_are_made_again(monkeypatch):
    """Half the buffer, another load or length: none of what was kept may be in the table."""
    before = acc_table2.made_by(1e-3)
    assert acc_table2.made_by(2e-3) != before
    monkeypatch.setattr(acc_table2, "NETWORK", acc_table2.NETWORK | {"buffer": "16MB"})
    assert acc_table2.made_by(1e-3) != before


@pytest.mark.slow
def test_table_2(tmp_path, monkeypatch):
    """Half the time that ``--quick`` takes, in which TIMELY deadlocks too."""
    monkeypatch.setattr(acc_table2, "QUICK_UNTIL", 10e-3)
    result, data = made("acc-table2", tmp_path, (1650, 630))
    assert result.values["deadlocks_timely"] > 0
    assert data["deadlock"].dims == ("scheme", "seed")
    assert np.isnan(data["deadlock"].sel(scheme=["acc", "hpcc"])).all()
    assert (data["drops"] == 0).all()
    assert (data["unfinished"].sel(scheme=["acc", "hpcc"]) < 0.2 * 1400).all()  # those that started last
    pauses = data["pauses"].mean("seed")
    assert pauses.sel(scheme="timely") > 20 * pauses.sel(scheme="dcqcn") > 0
