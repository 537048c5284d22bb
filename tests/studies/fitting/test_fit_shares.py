"""Shares that counters show: by hand, in runs of packets, and fitted to a model whose answer is known."""

from __future__ import annotations

import dataclasses
import importlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.studies.fitting import shares
from fluidcc.studies.fitting.shares import OF_MARKED, OF_SENT, Shares

fitting = importlib.import_module("fluidcc.studies.fitting.fit")
BOTH: dict[str, Any] = {"sent": 1e7, "marked": 2e5, "marked_received": 2e5, "cnps": 5e4}
WEB: dict[str, Any] = {"load": 0.5, "workload": "web-search"}


def leaf(**values: Any) -> fc.Scenario:
    """Flows into a port of 100 Gb/s."""
    return fc.incast(
        4, rate="100Gbps", marking=fc.RED("50KB", "200KB", "20%"), packet_size=4096, scheme=fc.DCQCN(**values)
    )


# -- what was counted --------------------------------------------------------------------------------------------


def test_shares_are_parts_of_wholes_that_were_both_counted() -> None:
    assert Shares(**BOTH).values == {OF_SENT: 0.02, OF_MARKED: 0.25}
    assert Shares(sent=1e6, marked=5e3, cnps=40).values == {OF_SENT: 0.005}
    assert Shares(sent=1e6, marked_received=5e3, cnps=40).values == {OF_MARKED: 0.008}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"marked": None, "cnps": None}, "neither marks .show queue wredcounters. nor CNPs"),
        ({"marked": 29.0}, "marked per sent packet, 29 of 10,000,000 are too few"),
        ({"sent": 0.0, "marked": 0.0}, "0 of 0 are too few"),
        ({"cnps": 0.0}, "CNPs per marked packet, 0 of 200,000 are too few"),
        ({"workload": "mail"}, "workload: 'mail' is none; write one of web-search"),
        ({"workload": "hadoop"}, "do not tell its load; give --interval"),
        ({"workload": "hadoop", "load": 0.96}, "sent 96% of their rate, 10% to 95%"),
        ({"workload": "hadoop", "load": 0.09}, "sent 9% of their rate"),
        ({"load": 0.89}, "sent 89% of their rate, which flows without end fill; .* --workload"),
    ],
)
def test_what_counters_do_not_tell_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Shares(**{**BOTH, **change})


@pytest.mark.parametrize("given", [{"load": 0.9}, {"load": None}, {**WEB, "load": 0.1}, {**WEB, "load": 0.95}])
def test_loads_at_the_ends_are_taken(given: dict[str, Any]) -> None:
    assert Shares(**BOTH, **given).load == given["load"]


# -- runs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "star", "single"), [("100Gbps", 16e-3, 128e-3), ("400Gbps", 8e-3, 32e-3)])
def test_ports_send_as_much_together_in_each_run(rate: str, star: float, single: float) -> None:
    """1.6 GB, for 8 ms at least."""
    scenario = fc.incast(4, rate=rate)
    assert shares.duration(scenario, Shares(**BOTH, **WEB)) == pytest.approx(star)
    assert shares.duration(scenario, Shares(**BOTH)) == pytest.approx(single)


def test_logarithms_by_hand() -> None:
    """Two runs with 10 and 30 of 100: together 0.2, without one of them 0.3 and 0.1; each with a half of one in all."""
    found = shares.numbers(np.array([[10.0, 100.0, 0.4], [30.0, 100.0, 0.6]]))
    together, without = math.log(40.5 / 200.5), math.log(30.25 / 100.25) / 2 + math.log(10.25 / 100.25) / 2
    assert found == pytest.approx([2 * together - without, math.log(0.5)], rel=1e-12)


def test_logarithms_of_few_runs_are_right_on_average() -> None:
    """Four runs whose marks deviate by half: the logarithm of their mean is 0.03 too small, and here right."""
    random = np.random.default_rng(1)
    marked = random.gamma(4.0, 250.0, (20_000, 4))  # mean 1000
    rows = np.stack([marked, np.full_like(marked, 1e5), np.ones_like(marked)], axis=2)
    found = np.array([shares.numbers(each)[0] for each in rows])
    plain = np.log(marked.mean(axis=1) / 1e5)
    assert plain.mean() - math.log(0.01) < -0.025
    assert abs(found.mean() - math.log(0.01)) < 0.006  # deviation of the mean 0.002


def test_a_run_counts_what_its_log_shows() -> None:
    """Marks and packets of the ports to hosts, marked packets that arrive, and CNPs, from a quarter of the run on."""
    busy = {**WEB, "load": 0.9, "hosts": 4}
    like, until = Shares(**BOTH, **busy), 2e-3
    found = shares.run(leaf(), like, until, 3)
    made = shares._with_traffic(leaf(), like, until, 3)
    trace = fc.simulate(made, until, engine="packet", seed=3, log=True, sample_interval=until)
    time, what, port, kind, value = (trace[f"event_{n}"].values for n in ("time", "what", "port", "kind", "value"))
    late, data = time > 0.5e-3, kind == "data"
    out = np.isin(port, [f"T1 -> H{k}" for k in range(4)]) & data & late
    marked, sent = (out & (what == "mark")).sum(), (out & (what == "transmit")).sum()
    received = (late & data & (what == "receive") & (value > 0)).sum()
    assert found[:4].tolist() == [marked, sent, (late & (what == "cnp")).sum(), received]
    assert marked > 10
    assert found[4] == pytest.approx(sent * 4096 / (4 * 12.5e9 * 1.5e-3), rel=0.2)  # what leaves senders and the switch
    alone = shares.run(leaf(), Shares(marked_received=1e3, cnps=100, **busy), until, 3)
    assert alone.tolist() == found[2:].tolist()


def test_without_a_workload_the_scenarios_flows_send() -> None:
    assert shares._with_traffic(leaf(), Shares(**BOTH), 1e-3, 1) == leaf()
    made = shares._with_traffic(dataclasses.replace(leaf(), burst=4.0), Shares(**BOTH, **WEB, hosts=5), 1e-3, 1)
    assert {f"T1->H{k}" for k in range(5)} <= {link.name for link in made.links}
    assert made.burst == 4.0
    assert {(link.rate, link.delay, link.marking) for link in made.links} == {
        (link.rate, link.delay, link.marking) for link in leaf().links
    }


# -- fits --------------------------------------------------------------------------------------------------------


class Model:
    """Stand-in for packets: marks grow with the square of the load, and CNPs per mark fall with the interval."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, load: float = 0.45) -> None:
        self.load = load
        monkeypatch.setattr(shares, "run", self.run)

    def run(self, scenario: Any, like: Shares, until: float, seed: int) -> np.ndarray:
        random = np.random.default_rng(seed)
        load = self.load * random.gamma(25.0, 1 / 25.0)
        sent = 2e5 * load
        marked = 0.08 * load**2 * sent * random.gamma(25.0, 1 / 25.0)
        cnps = marked / (1 + scenario.flows[0].scheme.cnp_interval / 10e-6) * random.gamma(100.0, 1 / 100.0)
        row = {OF_SENT: (marked, sent), OF_MARKED: (cnps, marked)}
        return np.array([*(each for name in like.counts for each in row[name]), load])


def counted(interval: float = 20e-6, marked: float = 0.08 * 0.25, **change: Any) -> Shares:
    """Counters of the model at half of the rate; the mean of load cubed over that of load is 1.12 times as much."""
    share = 1.1232 * marked
    known = {"sent": 1e9, "marked": 1e9 * share, "marked_received": 1e8, "cnps": 1e8 / (1 + interval / 10e-6)}
    return Shares(**{**known, **WEB, **change})


OVER: dict[str, Any] = {"cnp_interval": ("2us", "200us")}


def test_a_setting_is_found_at_the_load_that_was_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs have a tenth less load than was counted, and so a fifth fewer marks, which is no misfit."""
    Model(monkeypatch)
    found = fc.fit(counted(), leaf(), OVER)
    each = found.estimate["cnp_interval"]
    assert each.low <= 20e-6 <= each.high
    assert each.width < 0.2
    assert found.identifiable == {"cnp_interval": True}
    assert found.residual < 1.6
    assert found.engine == "packet"
    assert found.runs == 160
    assert "true only if hosts send web-search at random, and nothing else" in found.words
    document = found.as_dict()
    assert document["shares"][OF_MARKED]["counted"] == pytest.approx(1 / 3)
    assert document["shares"][OF_MARKED]["fitted"] == pytest.approx(1 / 3, rel=0.05)
    assert document["window_s"] == pytest.approx([4e-3, 16e-3])


def test_a_draw_of_shares_has_an_axis_for_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Model(monkeypatch)
    found = fc.fit(counted(), leaf(), OVER, runs=100)
    picture = found.plot()
    assert [axis.get_ylabel() for axis in picture.axes] == [f"{OF_SENT} [%]", f"{OF_MARKED} [%]"]
    assert picture.write(tmp_path / "fit.png").stat().st_size > 5000


def test_traffic_that_was_not_told_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the marks that the workload makes."""
    Model(monkeypatch)
    found = fc.fit(counted(marked=2 * 0.08 * 0.25), leaf(), OVER)
    assert found.residual > 1.6
    assert "does not explain the counters" in " ".join(found.words)


def test_what_changes_no_share_is_not_called_known(monkeypatch: pytest.MonkeyPatch) -> None:
    Model(monkeypatch)
    found = fc.fit(counted(marked_received=None), leaf(), {"burst": (1, 16)})
    assert found.identifiable == {"burst": False}
    assert "what was counted does not determine burst to within half of its value" in found.words
    assert set(found.shares) == {OF_SENT}


@pytest.mark.parametrize(
    ("change", "over", "options", "says"),
    [
        ({}, {**OVER, "g": (0.01, 0.1), "timer": (1e-5, 1e-4)}, {}, "over: cnp_interval, g, timer are more unknowns"),
        ({"cnps": None}, {**OVER, "g": (0.01, 0.1)}, {}, r"than was counted \(marked per sent packet\); leave g out"),
        ({}, OVER, {"window": "1ms:2ms"}, "window: counters have no time"),
        ({}, OVER, {"link": "bottleneck"}, "link: counters have no time and no link"),
        ({}, OVER, {"engine": "hybrid"}, "engine: counters .* fitted by packets; leave it out"),
        ({}, OVER, {"runs": 99}, "runs"),
    ],
)
def test_what_counters_do_not_take_is_refused(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], over: Any, options: dict[str, Any], says: str
) -> None:
    Model(monkeypatch)
    with pytest.raises(InputError, match=says):
        fc.fit(counted(**change), leaf(), over, **options)


@pytest.mark.slow
def test_the_time_between_cnps_from_packets() -> None:
    """Counters of other seeds and longer runs; a factor of 200 is searched."""
    like = Shares(**BOTH, **WEB, hosts=4)
    truth = leaf(cnp_interval="20us")
    marked, sent, cnps, received, _ = np.sum([shares.run(truth, like, 16e-3, 9000 + k) for k in range(12)], axis=0)
    load = np.mean([shares.run(truth, like, 16e-3, 9000 + k)[-1] for k in range(12)])
    found = fc.fit(Shares(sent, marked, received, cnps, float(load), "web-search", 4), leaf(), OVER, runs=100)
    each = found.estimate["cnp_interval"]
    assert each.low <= 20e-6 <= each.high
    assert found.identifiable["cnp_interval"]
