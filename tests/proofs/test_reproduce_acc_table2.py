"""ACC's Table 2: which schemes let a network with a circle of buffers deadlock."""

import json
from pathlib import Path

import numpy as np
import pytest

import fluidcc
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


def test_runs_are_kept_and_not_made_again(tmp_path, monkeypatch):
    """All but one are there already: only that is run, and the table is made of all."""
    counts = dict.fromkeys(acc_table2.COUNTED, 1.0) | {"deadlock": None, "drops": 0}
    runs = {f"{name} {seed}": counts for name in COMPARED for seed in range(acc_table2.QUICK_SEEDS)}
    runs["timely 0"] = counts | {"deadlock": 1e-3}
    del runs["acc 1"]
    kept = {f"fluidcc {fluidcc.__version__}, {acc_table2.QUICK_UNTIL:g} s": runs}
    folder = Path(tmp_path)
    (folder / "acc-table2.runs.json").write_text(json.dumps(kept))
    ran = []
    monkeypatch.setattr(acc_table2, "run", lambda name, until: ran.append(name) or counts)
    result = reproduce("acc-table2", folder, quick=True)
    assert ran == ["acc 1"]
    assert [result.values[f"deadlocks_{name}"] for name in COMPARED] == [0, 0, 0, 1]
    assert result.agrees
    assert not (folder / "acc-table2.runs.json").exists()


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
