"""Metrics of sweeps in cases that one can count: senders that keep their rates, on a link that is not full."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.cli.app import run
from fluidcc.engines.fluid.run import UNKNOWN
from fluidcc.studies.sweeps import run as sweeps_run

GIGABIT = 1e9 / 8
HEADER, PACKET = 48, 1000
SAME = 1e-9  # sums of some hundred steps


def make(n: Any) -> fc.Scenario:
    """``n`` flows at 1 Gb/s beside one at 2 Gb/s, over 10 Gb/s."""
    scenario = fc.incast(
        2,
        rate="10Gbps",
        scheme=fc.NoControl(),
        initial_rate=["1Gbps", "2Gbps"],
        header_bytes=HEADER,
        packet_size=PACKET,
    )
    flow, other = scenario.flows
    return dataclasses.replace(scenario, flows=(dataclasses.replace(flow, multiplicity=n), other))


def test_classes_count_as_their_flows_and_headers_are_no_goodput() -> None:
    found = fc.sweep(make, {"n": [1, 2, 5]}, until="200us", estimate_error=False).dataset
    n = np.array([1.0, 2.0, 5.0])
    assert found["goodput_bytes_per_s"].values == pytest.approx(
        (n + 2) * GIGABIT * PACKET / (PACKET + HEADER), rel=SAME
    )
    assert found["utilisation"].values == pytest.approx((n + 2) / 10, rel=SAME)
    assert found["jain"].values == pytest.approx((n + 2) ** 2 / ((n + 4) * (n + 1)), rel=SAME)
    assert found["rate_gap_bytes_per_s"].values == pytest.approx(GIGABIT, rel=SAME)


def test_a_swept_number_of_flows_is_shared_among_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four flows in all, half of which start later: 4 Gb/s of 10 in the second half of the run."""
    monkeypatch.setattr(sweeps_run, "sampled_error", lambda *_: UNKNOWN)  # is not asked for
    options = ["--rate", "10Gbps", "--initial-rate", "1Gbps", "--start", "0,50us", "--until", "200us"]
    metric = ["--metric", "utilisation", "--maximise", "--json"]
    assert run(["sweep", "none", "--over", "flows=2,4", *options, *metric]) == 0
    best = json.loads(capsys.readouterr().out)["best"]
    assert best["flows"] == 4
    assert best["value"] == pytest.approx(0.4, rel=SAME)


def test_a_bad_first_point_leaves_its_neighbour_alone() -> None:
    """A time below 0 would make the step of the whole batch one; its neighbour is as alone, but for vector lanes."""

    def timed(interval: Any) -> fc.Scenario:
        return fc.incast(2, scheme=fc.DCQCN(cnp_interval=interval))

    found = fc.sweep(timed, {"interval": [-50e-6, 50e-6]}, until="1ms", estimate_error=False).dataset
    alone = fc.simulate(timed(50e-6), "1ms", estimate_error=False).summary
    assert np.isnan(found["queue_bytes.mean"].values[0])
    assert found["queue_bytes.mean"].values[1] == pytest.approx(alone["queue_bytes"]["mean"], rel=1e-12)
