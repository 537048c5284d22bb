"""HPCC's fluid model against runs of an independent packet simulator (tests/data/ns3).

Tolerances are those set for the engines: incasts' peak within 15 %, drain within 10 %, steady window within 5 %; two
flows' goodputs and completions within 3 % (12 % for the variants), their sum within 1 %.
"""

from __future__ import annotations

import numpy as np
import pytest

import fluidcc as fc
from tests.engines.packet import ns3
from tests.engines.packet.test_ns3 import PAIRS, bottleneck, drain


def run(name: str) -> fc.Trace:
    reference = ns3.reference(name)
    opens, closes = (t * 1e-6 for t in reference["stat_window_us"])
    return fc.simulate(
        ns3.scenario_of(name),
        reference["duration_us"] * 1e-6,
        window=(opens, closes),
        estimate_error=False,
        sample_interval="1us",
    )


@pytest.mark.parametrize("w_ai", [25, 50, 80, 150])
def test_incast_of_16(w_ai: int) -> None:
    name = f"S1_hpcc_incast16_wai{w_ai}"
    theirs, trace = ns3.reference(name), run(name)
    peak = theirs["ports"][0]["queue_bytes_whole_run"]["max"]
    assert bottleneck(trace)["queue_bytes"]["max_whole_run"] == pytest.approx(peak, rel=0.15)
    queue = trace["queue"].sel(link="node 0 to node 1").values
    assert drain(queue) == pytest.approx(drain(ns3.queue(name)), rel=0.1)
    rate = np.mean([flow["mean_rate_mbps_in_window"] for flow in theirs["flows"]]) * 1e6 / 8
    late = trace["window"].sel(time=slice(theirs["stat_window_us"][0] * 1e-6, None))
    assert float(late.mean()) == pytest.approx(rate * theirs["derived"]["used_T_ns"] * 1e-9, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PAIRS if "intmulti" not in name])  # the fluid's INT is exact
def test_two_flows(name: str) -> None:
    theirs, summary = ns3.reference(name), run(name).summary
    goodput = np.array(summary["goodput_bytes_per_s"]) * 8e-9
    both = [f for f, flow in enumerate(theirs["flows"]) if "finish_us" not in flow]
    expected = [theirs["flows"][f]["goodput_gbps_in_window"] for f in both]
    assert goodput[both] == pytest.approx(expected, rel=PAIRS[name])
    assert goodput[both].sum() == pytest.approx(sum(expected), rel=0.01)
    finished = [t for t in summary["fct_s"] if t is not None]
    assert finished == pytest.approx([fct["fct_ns"] * 1e-9 for fct in theirs["fct"]], rel=PAIRS[name])
