"""How sweeps run: a few parts at a time, in the memory there is, in chunks that do not take long; and how they stop."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from benchmarks.killed_sweeps import finished
from fluidcc.cli.app import run as run_command
from fluidcc.engines.fluid.engine import Outcome
from fluidcc.engines.fluid.network import REASONS
from fluidcc.engines.fluid.plan import history_bytes, plan_of
from fluidcc.engines.fluid.run import UNKNOWN
from fluidcc.engines.fluid.running_statistics import Summary
from fluidcc.engines.run_many import StoppedError
from fluidcc.results.memory_limit import VARIABLE, limit
from fluidcc.studies.sweeps import batch, run
from fluidcc.studies.sweeps.grid import grid_of

UNTIL = "3ms"


def make(kmin: Any, g: Any) -> fc.Scenario:
    return fc.incast(2, marking=fc.RED(kmin, "60KB", "5%"), scheme=fc.DCQCN(g=g), initial_rate=["40Gbps", "10Gbps"])


def test_a_chunk_that_is_stopped_ends_before_its_horizon() -> None:
    """A run of 200 ms is made in parts, between which it looks."""
    grid = grid_of({"kmin": [5e3], "g": [0.01]})
    made = batch.batch_of(make, grid)
    plan = plan_of(made.network, until="100s", samples=batch.SAMPLES)
    stopped = threading.Event()
    threading.Timer(0.2, stopped.set).start()
    began = time.monotonic()

    def look(_: float) -> None:
        if stopped.is_set():
            raise StoppedError

    with pytest.raises(StoppedError):
        batch.run_chunk(made.network, plan, np.array([1e3]), 1, report=look)
    assert time.monotonic() - began < 60  # a run to the end takes ten minutes


CODE = """
import fluidcc.studies.sweeps.run as run
run.chunk_size = lambda *_: 8
from fluidcc.cli import main
main()
"""


@pytest.mark.slow
def test_an_interrupted_sweep_stops_at_once_and_keeps_what_is_done(tmp_path: Path) -> None:
    store = tmp_path / "s.zarr"
    arguments = ["--over", "g=log:1/1024:1/16:2000", "--until", "100ms", "--store", str(store), "--json"]
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, "sweep", "dcqcn", *arguments], stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    while not finished(store):
        assert process.poll() is None
        time.sleep(0.01)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert time.monotonic() - began < 30  # to the end it takes minutes
    assert (process.returncode, out, err) == (130, b"", b"fluidcc: interrupted\n")
    assert finished(store) >= 1


# -- chunks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("until", ["1ms", "1s", "100s", "1000s"])
def test_chunks_take_less_than_a_minute_or_are_one_point(until: str) -> None:
    made = batch.batch_of(make, grid_of({"kmin": np.linspace(5e3, 50e3, 50), "g": np.geomspace(1e-3, 1e-1, 50)}))
    plan = plan_of(made.network, until=until, samples=batch.SAMPLES)
    size = batch.chunk_size(made, plan, 2500, 2)
    assert size == 1 or batch.expected_time(made.network, plan, size) < 30
    assert size == {"1ms": 1024, "1s": 444, "100s": 4, "1000s": 1}[until]


# -- memory ----------------------------------------------------------------------------------------------------


def delayed(lag: Any) -> fc.Scenario:
    return fc.incast(2, feedback_delay=lag)


def test_histories_fit_in_the_memory_that_may_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def measured(network: Any, plan: Any, *, points: int, **_: Any) -> Any:
        """Return what nothing depends on here: a queue and rates of 1."""
        taken.append(history_bytes(network, plan, points))
        link, flows = np.ones((1, points)), np.ones((2, points))
        summary = Summary(link, link, link, link, link, rate_mean=flows, utilisation=link)
        return Outcome(summary, np.ones((plan.samples, 1, points)), {}, None, None), 0.0, 0.0

    monkeypatch.setattr(batch, "execute", measured)
    # 20 ms in steps of 1 us: 2^15 records of 96 bytes are 3.1 MB, and twice that with half the step.
    fc.sweep(delayed, {"lag": [10e-3, 15e-3, 20e-3]}, until="200us", memory="13MB", workers=1)
    assert max(taken) <= 13e6
    # Three points one by one, and two at a time, which is four, with half and with twice the step.
    assert sum(taken) == pytest.approx(3 * 3.146e6 + 2 * 4 * 6.291e6, rel=0.01)


@pytest.mark.parametrize("how", ["argument", "environment", "command"])
def test_too_much_is_refused_with_the_amount_before_it_is_taken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    monkeypatch.setattr(batch, "execute", None)
    says = r"takes (\d+MB) of memory, where 100MB may be taken; .*, or allow more: FLUIDCC_MEMORY=\1"
    if how == "command":
        assert run_command(["sweep", "dcqcn", "--over", "feedback_delay=1s,2s", "--memory", "100MB"]) == 2
        assert "100MB may be taken" in capsys.readouterr().err
        return
    if how == "environment":
        monkeypatch.setenv(VARIABLE, "100MB")
    with pytest.raises(fc.InputError, match=says):
        fc.sweep(delayed, {"lag": [1.0, 2.0]}, memory="100MB" if how == "argument" else None)


def test_a_single_run_goes_by_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1MB")
    with pytest.raises(fc.InputError, match="to remember a lag of 50ms in steps of 500ns takes"):
        fc.simulate(delayed("50ms"), "1ms")


def test_a_trace_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "100MB")
    with pytest.raises(fc.InputError, match=r"sample interval: 1,000,001 samples take \d+MB of memory"):
        fc.simulate(delayed("50us"), "1s", sample_interval="1us")


def test_too_many_points_are_refused_before_they_are_made() -> None:
    with pytest.raises(fc.InputError, match=r"over: 1,000,000 points take [0-9]+MB of memory"):
        fc.sweep(make, {"kmin": np.linspace(1, 2, 1000), "g": np.linspace(0, 1, 1000)}, memory="200MB")


@pytest.mark.parametrize("bad", ["0B", "-1GB", "much", "4"])
def test_limits_that_are_none(monkeypatch: pytest.MonkeyPatch, bad: str) -> None:
    monkeypatch.setenv(VARIABLE, bad)
    if bad == "4":  # a plain number of bytes
        assert limit() == 4
        return
    with pytest.raises(fc.InputError, match=VARIABLE):
        limit()


def test_a_point_whose_queue_outgrows_the_memory_fails_with_that_reason() -> None:
    """Eight flows of patched TIMELY start at line rate: 15 ms in the queue, where the sweep holds 1 ms at first."""
    grid = grid_of({"n": [1.0, 8.0]})
    made = batch.batch_of(
        lambda n: fc.incast(1, rate="10Gbps", multiplicity=n, scheme=fc.TIMELY(patched=True, beta=0.008)), grid
    )
    plan = plan_of(made.network, until="30ms", samples=batch.SAMPLES, queueing_allowance=run.QUEUEING_ALLOWANCE)
    room = 2 * history_bytes(made.network, plan)
    found = batch.run_chunk(made.network, plan, np.array([1e3]), 2, room)
    assert [REASONS[reason] for reason in found["reason"]] == ["ok", "history takes too much memory"]
    assert np.isnan(found["queue_bytes.mean"]).tolist() == [False, True]


# -- whole numbers ---------------------------------------------------------------------------------------------


def test_a_fraction_of_a_whole_number_fails_with_that_reason() -> None:
    """Name the reason; a point that has one has no results (`test_sweep`)."""
    grid = grid_of({"f": [2.0, 5.0, 10.0]})
    made = batch.batch_of(lambda f: fc.incast(2, scheme=fc.DCQCN(fast_recovery_steps=f / 2)), grid)
    assert [REASONS[reason] for reason in made.reasons] == ["ok", "not a whole number", "ok"]


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda f, g: fc.incast(2, scheme=fc.DCQCN(fast_recovery_steps=f, g=g)), "over f: 2.5 .* fast_recovery_steps"),
        (lambda f, g: fc.incast(2, scheme=fc.DCQCN(g=g), ack_interval=f), "over f: 2.5 .* ack_interval"),
    ],
)
def test_an_axis_of_whole_numbers_is_refused_with_others(make: Any, where: str) -> None:
    with pytest.raises(fc.InputError, match=where):
        fc.sweep(make, {"f": [1.0, 2.5, 5.0], "g": [1 / 16, 1 / 256]}, until="200us")


@pytest.mark.parametrize("over", ["fast_recovery_steps=1:6:3", "flows=2:5:3", "ack_interval=1,1.5"])
def test_the_command_refuses_it(capsys: pytest.CaptureFixture[str], over: str) -> None:
    assert run_command(["sweep", "dcqcn", "--over", over]) == 2
    assert "is no whole number; write for example" in capsys.readouterr().err


def test_flows_that_do_not_divide_evenly_are_as_in_a_single_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three flows with two starts: two start at 0, and one later."""
    monkeypatch.setattr(run, "sampled_error", lambda *_: UNKNOWN)  # is not asked for
    options = ["--rate", "10Gbps", "--initial-rate", "1Gbps", "--start", "0,50us", "--until", "200us", "--window"]
    assert run_command(["simulate", "none", "--flows", "3", *options, "0s:50us", "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)["utilisation"]
    metric = ["--metric", "utilisation", "--maximise", "--json"]
    assert run_command(["sweep", "none", "--over", "flows=3,4", *options, "0s:50us", *metric]) == 0
    best = json.loads(capsys.readouterr().out)["best"]
    assert alone == pytest.approx(0.2, rel=0.03)  # of 50 steps one is at the edge
    assert best["value"] == pytest.approx(alone, rel=1e-9)
