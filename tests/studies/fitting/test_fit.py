"""Known parameters, recovered from packets, from an independent simulator, and from the fluid."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.cli.app import run
from fluidcc.studies.fitting.measured import Measured
from fluidcc.studies.fitting.model import random_run
from tests.engines.packet import ns3

DATA = ns3.DATA
SEVEN = ("g", "pmax", "decrease_gain", "max_decrease", "initial_alpha", "kmin", "kmax")


def hpcc(w_ai: Any) -> fc.Scenario:
    """Sixteen senders of the HPCC authors' simulator, with another W_AI."""
    scenario = ns3.scenario_of("S1_hpcc_incast16_wai80")
    flows = [
        dataclasses.replace(f, scheme=dataclasses.replace(f.scheme, w_ai=w_ai, rate_ai=None)) for f in scenario.flows
    ]
    return dataclasses.replace(scenario, flows=tuple(flows))


def leaf(**values: Any) -> fc.Scenario:
    """Six senders of DCQCN at 40 Gb/s."""
    return fc.incast(6, rate="40Gbps", scheme=fc.DCQCN(feedback_delay=None, **values))


def of_ns3(w_ai: int, runs: int) -> Any:
    """W_AI fitted to the pacing rates of a run of that simulator."""
    trace = DATA / f"S1_hpcc_incast16_wai{w_ai}.pacing.csv.gz"
    return fc.fit(trace, hpcc, {"w_ai": ("5B", "500B")}, engine="packet", window="0.4ms:1.6ms", runs=runs)


def test_hpccs_increase_from_an_independent_simulator() -> None:
    found = of_ns3(80, 100)
    assert found.engine == "packet"
    assert found.identifiable == {"w_ai": True}
    each = found.estimate["w_ai"]
    assert each.low <= 80 <= each.high
    assert each.width < 0.25
    assert found.residual < 1.6


@pytest.mark.slow
def test_hpccs_increase_from_another_of_its_runs() -> None:
    each = of_ns3(150, 150).estimate["w_ai"]
    assert each.low <= 150 <= each.high
    assert each.width < 0.25


def test_a_nics_timer_from_packets(tmp_path: Path) -> None:
    trace = fc.simulate(leaf(timer="90us"), "40ms", engine="packet", seed=7, sample_interval="10us")
    found = fc.fit(trace, leaf, {"timer": ("20us", "500us")}, runs=120)
    assert found.engine == "hybrid"
    each = found.estimate["timer"]
    assert each.low <= 90e-6 <= each.high
    assert each.width < 0.2
    assert found.identifiable["timer"]
    assert found.residual < 1.6
    assert found.runs == 120
    found.plot().write(tmp_path / "fit.png")
    assert (tmp_path / "fit.png").stat().st_size > 10_000


def bursting(burst: float = 1.0) -> fc.Scenario:
    marking = fc.RED("20KB", "100KB", "5%")
    return fc.incast(8, rate="10Gbps", scheme=fc.DCQCN(), marking=marking, burst=burst)


def test_a_nics_burst_from_packets() -> None:
    """Within one packet, by packets without being asked to; 3 of 16 values would be by chance."""
    trace = fc.simulate(bursting(4.0), "20ms", engine="packet", seed=99, sample_interval="5us")
    found = fc.fit(trace, bursting(), {"burst": (1, 16)}, runs=100, window="5ms:20ms")
    one = found.estimate["burst"]
    assert found.engine == "packet"
    assert abs(one.value - 4.0) <= 1.0
    assert one.low <= 4.0 <= one.high
    assert all(each == round(each) for each in (one.value, one.low, one.high))


@pytest.mark.parametrize(("engine", "name"), [("hybrid", "burst"), ("fluid", "jitter")])
def test_bursts_are_not_looked_for_where_no_packet_shows(engine: str, name: str) -> None:
    trace = fc.simulate(bursting(), "1ms", engine="hybrid", sample_interval="5us")
    with pytest.raises(fc.InputError, match=f"over {name}: a queue of the {engine} .* write engine='packet'"):
        fc.fit(trace, bursting(), {name: (0.1, 1) if name == "jitter" else (1, 16)}, engine=engine)


def test_the_sum_of_rates_counts_the_packets_of_each_sender() -> None:
    """Six counters of whole packets are less even than one of their sum, and a fit of fast changes sees it."""
    flows, time = fc.incast(6, rate="40Gbps"), np.arange(401) * 5e-6
    each = random_run(flows, "hybrid", 1, time, 0, Measured(time, None, np.zeros((401, 6))))
    added = random_run(flows, "hybrid", 1, time, 0, Measured(time, None, np.zeros((401, 1))))
    assert each.rates is not None
    assert added.rates is not None
    np.testing.assert_allclose(added.rates[:, 0], each.rates.sum(axis=1), rtol=1e-9)
    packets = each.rates * 5e-6 / (flows.packet_size + flows.header_bytes)
    np.testing.assert_allclose(packets, np.round(packets), atol=1e-6)
    assert set(np.unique(np.round(packets[1:, 0]))) > {0.0, 1.0}


def test_a_model_that_is_not_what_was_measured_is_said_to_be() -> None:
    trace = fc.simulate(leaf(timer="90us"), "20ms", engine="packet", seed=7, sample_interval="10us")

    def wrong(timer: Any) -> fc.Scenario:
        return fc.incast(6, rate="40Gbps", scheme=fc.DCQCN(feedback_delay=None, timer=timer, rate_ai="400Mbps"))

    found = fc.fit(trace, wrong, {"timer": ("20us", "500us")}, runs=100)
    assert found.residual > 1.6
    assert "does not explain" in " ".join(found.words)


STARTS = [0, "100us", "200us", "300us"]


def changed(scenario: fc.Scenario, values: dict[str, float]) -> fc.Scenario:
    """With other parameters of the scheme."""
    flows = [dataclasses.replace(f, scheme=dataclasses.replace(f.scheme, **values)) for f in scenario.flows]
    return dataclasses.replace(scenario, flows=tuple(flows))


@pytest.mark.slow
def test_a_scheme_without_chance_from_its_trajectory() -> None:
    scenario = fc.incast(4, start=STARTS, scheme=fc.HPCC())
    truth = {"w_ai": 120.0, "eta": 0.93}
    trace = fc.simulate(changed(scenario, truth), "0.6ms", sample_interval="2us", estimate_error=False)
    found = fc.fit(trace, scenario, {"w_ai": ("20B", "500B"), "eta": (0.8, 0.99)})
    assert found.engine == "fluid"
    for name, value in truth.items():
        assert found.estimate[name].value == pytest.approx(value, rel=0.01)
        assert found.identifiable[name]
    assert found.residual < 0.01
    assert len(found.fitted) == 1


@pytest.mark.slow
def test_where_trajectories_fall_out_of_step_moments_are_fitted() -> None:
    scenario = fc.incast(4, start=STARTS, scheme=fc.Swift())
    truth = {"ai": 0.65, "beta": 0.87}
    trace = fc.simulate(changed(scenario, truth), "1ms", sample_interval="1us")
    found = fc.fit(trace, scenario, {"ai": (0.05, 5.0), "beta": (0.2, 0.99)}, runs=200)
    assert any("no trajectory" in word for word in found.words)
    for name, value in truth.items():
        assert found.estimate[name].low <= value <= found.estimate[name].high
    assert found.identifiable["beta"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"over": {}}, "a range by name"),
        ({"over": {"timer": "90us"}}, "two bounds"),
        ({"over": {"timer": ("90us", "20us")}}, "lower bound first"),
        ({"over": {"timr": ("20us", "90us")}}, "did you mean timer"),
        ({"over": {name: (0.1, 0.2) for name in SEVEN}}, "more than 6"),
        ({"window": "1ms:9s"}, "not within the trace"),
        ({"window": "2ms:1ms"}, "window"),
        ({"engine": "ns3"}, "write hybrid, fluid, packet"),
        ({"engine": "hybrid", "runs": 5}, "runs"),
        ({"link": "elsewhere"}, "write one of"),
        ({"make_scenario": 3}, "neither a Scenario nor a function"),
        ({"speed": 3}, "there is no 'speed'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(change: dict[str, Any], words: str) -> None:
    trace = fc.simulate(leaf(), "2ms", engine="packet", sample_interval="10us")
    given: dict[str, Any] = {"make_scenario": leaf(), "over": {"timer": ("20us", "500us")}} | change
    with pytest.raises(fc.InputError) as caught:
        fc.fit(trace, **given)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rates_of_other_flows_are_refused() -> None:
    trace = fc.simulate(fc.incast(3, rate="40Gbps"), "2ms", engine="packet", sample_interval="10us")
    with pytest.raises(fc.InputError, match="3 rates of 6 flows"):
        fc.fit(trace, leaf, {"timer": ("20us", "500us")})


def test_the_command_prints_what_was_promised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = fc.simulate(leaf(timer="90us"), "20ms", engine="packet", seed=7, sample_interval="10us")
    rows = zip(trace["time"].values, trace["queue"].values[:, 0], strict=True)
    table = tmp_path / "queue.csv"
    table.write_text("time_s,queue_bytes\n" + "".join(f"{t:.9f},{q:.0f}\n" for t, q in rows))
    scenario = ["--flows", "6", "--set", "feedback_delay=path"]
    arguments = ["fit", "dcqcn", *scenario, "--trace", str(table), "--over", "timer=20us:500us", "--runs", "100"]
    assert run([*arguments, "--json", "--plot", str(tmp_path / "fit.png")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["estimate"]) == {"timer"}
    assert found["estimate"]["timer"]["low"] < found["estimate"]["timer"]["value"] < found["estimate"]["timer"]["high"]
    assert found["estimate"]["timer"]["low"] <= 90e-6 <= found["estimate"]["timer"]["high"]
    assert isinstance(found["identifiable"]["timer"], bool)
    assert np.isfinite(found["residual"])
    assert (tmp_path / "fit.png").exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--over", "timer=20us"], "NAME=LO:HI"),
        (["--over", "timr=20us:90us"], "did you mean timer"),
        (["--over", "timer=20us:90us", "--over", "timer=20us:80us"], "twice"),
        (["--over", "timer=20us:90us", "--set", "timer=30us"], "held by --set"),
        (["--over", "flows=2:8"], "changes the shape"),
        (["--over", "timer=20us:90us", "--plot", "fit.txt"], "--plot"),
        (["--over", "timer=20us:90us", "--trace", "gone.csv"], "gone.csv"),
    ],
)
def test_the_command_refuses_in_a_line(arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    trace = [] if "--trace" in arguments else ["--trace", "gone.nc"]
    assert run(["fit", "dcqcn", *trace, *arguments]) == 2
    said = capsys.readouterr()
    assert word in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
