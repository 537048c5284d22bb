"""Runs on a Dask scheduler's workers: the bits of threads, kept by the caller, and ended as on threads."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.cli.app import run as run_command
from fluidcc.engines.run_many import Place, SchedulerError, StoppedError, connected, run_all
from fluidcc.workloads.fabrics import study

dask = pytest.importorskip("dask", reason="Dask is an optional extra")
distributed = pytest.importorskip("distributed", reason="Dask is an optional extra")
get_mp_context = importlib.import_module("distributed.utils").get_mp_context

SHAPE = "leaf-spine:2x1x2"
ROWS = [(0, 2, 0.0, 1e5), (1, 3, 0.0, 2e5), (2, 0, 0.0, 5e4)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers, each a process with one thread, forked from one that has imported what they need."""
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context()  # names what Dask would import there
        imported = ["distributed", "xarray", "jax", "numba", "fluidcc.cli.app", "fluidcc.workloads.fabrics.study"]
        multiprocessing.set_forkserver_preload(imported)
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as made:
            yield made


@pytest.fixture
def address(cluster: Any) -> str:
    cluster.wait_for_workers(2)  # one may have been killed before
    return cluster.scheduler_address


def same(ours: Any, theirs: Any) -> bool:
    pairs = list(zip(ours.runs, theirs.runs, strict=True))
    return all(a.slowdown.identical(b.slowdown) and np.array_equal(a.queue, b.queue) for a, b in pairs)


# -- the bits of threads -------------------------------------------------------------------------------------------


def test_a_fabric_is_that_of_threads_and_is_kept_here(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches runs in another order, seeds or options lost on the way, and runs that workers keep, or nobody."""
    options: dict[str, Any] = {"flows": ROWS, "seeds": 2, "buffer": "1MB"}
    found = fc.fabric("hpcc,dcqcn", SHAPE, **options, dask=address, folder=tmp_path)
    assert same(found, fc.fabric("hpcc,dcqcn", SHAPE, **options))
    assert [(run.scheme, run.seed) for run in found.runs] == [("hpcc", 1), ("hpcc", 2), ("dcqcn", 1), ("dcqcn", 2)]
    assert len(list(tmp_path.glob("*.nc"))) == 4

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("is run again")

    monkeypatch.setattr(study, "run", never)
    assert same(fc.fabric("hpcc,dcqcn", SHAPE, **options, dask=address, folder=tmp_path), found)
    assert same(fc.fabric("hpcc,dcqcn", SHAPE, **options, folder=tmp_path), found)


def test_a_collective_is_that_of_threads(address: str, tmp_path: Path) -> None:
    """Catches a placement, an engine or a seed that does not reach the worker."""
    options: dict[str, Any] = {"bytes": "80KB", "jobs": 2, "separately": True, "placement": "random", "seeds": 2}
    found = fc.collective("all-reduce", SHAPE, "none,hpcc", **options, dask=address, folder=tmp_path)
    theirs = fc.collective("all-reduce", SHAPE, "none,hpcc", **options)
    for one, other in zip(found.runs, theirs.runs, strict=True):
        assert one.transfers.identical(other.transfers)
        assert one.load.identical(other.load)
        assert one.numbers["jobs"] == other.numbers["jobs"]
    assert len(list(tmp_path.glob("all-reduce-*.nc"))) == 4


@pytest.mark.parametrize("engine", ["hybrid", pytest.param("fluid", marks=pytest.mark.slow)])
def test_tuning_chooses_as_on_threads(address: str, engine: str) -> None:
    """Catches cases, seeds or horizons that workers do not have, and packets that are left out."""

    def make(kmin: Any, kmax: Any, flows: int = 2) -> fc.Scenario:
        return fc.incast(int(flows), rate="40Gbps", marking=fc.RED(kmin, kmax, "10%"))

    over = {"kmin": ("2KB", "100KB"), "kmax": ("20KB", "800KB")}
    # Of the worst of cases, which points run in all depends on which end first, also on threads.
    options: dict[str, Any] = {"until": "1ms", "evaluations": 8, "packet_seeds": 1, "worst": False}
    options["across"] = {"flows": [2, 3]}
    found, theirs = (fc.tune(make, over, **options, engine=engine, dask=dask) for dask in (address, None))
    assert found.as_dict() == theirs.as_dict()
    assert found.confirmed is not None


COMMANDS = {
    "fabric": ["fabric", "hpcc", "--topology", SHAPE, "--workload", "permutation", "--size", "100KB"],
    "collective": ["collective", "all-reduce", "--topology", SHAPE, "--bytes", "80KB"],
    "tune": [
        *("tune", "dcqcn", "--over", "kmin=2KB:100KB", "--flows", "2", "--evaluations", "4", "--packets", "0"),
        *("--until", "1ms", "--no-defaults"),
    ],
    "sweep": ["sweep", "dcqcn", "--over", "kmin=5KB,20KB", "--until", "1ms", "--engine", "hybrid", "--seeds", "2"],
}
TIMES = ("setup_s", "compile_s", "wall_s", "analysis_s", "points_per_s")


def timeless(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: timeless(each) for name, each in found.items() if name not in TIMES}
    return [timeless(each) for each in found] if isinstance(found, list) else found


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_prints_the_same(
    cluster: Any, address: str, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Catches an option that is read and not passed on: the scheduler then has no work."""
    done, steps = [], []
    for more in ([], ["--scheduler", address]):
        assert run_command([*COMMANDS[command], "--json", *more]) == 0
        done.append(timeless(json.loads(capsys.readouterr().out)))
        steps.append(cluster.scheduler.transition_counter)
    assert done[0] == done[1]
    assert steps[0] < steps[1]


# -- ends ----------------------------------------------------------------------------------------------------------


def patched(monkeypatch: pytest.MonkeyPatch, before: Callable[[], None]) -> None:
    """Something is done before each run of a fabric, on its worker."""
    run = study.run

    def other(*given: Any, **options: Any) -> Any:
        before()
        return run(*given, **options)

    monkeypatch.setattr(study, "run", other)


@pytest.mark.slow
def test_workers_that_die_are_refused_in_words(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches Dask's own exception, whose words are for its developers."""
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    patched(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(SchedulerError, match=r"dask: workers died at one job .*tcp://.* last; .*more memory"):
        fc.fabric("hpcc", SHAPE, flows=ROWS, dask=cluster.scheduler_address)


def test_one_that_fails_stops_those_on_workers(address: str, tmp_path: Path) -> None:
    """Catches a run that goes on though nobody waits for it, and keeps a worker from the next."""
    begun, ended = tmp_path / "begun", tmp_path / "ended"

    def fails(*, report: Any) -> None:
        while not begun.exists():
            time.sleep(0.01)
        raise ZeroDivisionError

    def goes_on(*, report: Any) -> None:
        begun.touch()
        until = time.monotonic() + 20
        try:
            while time.monotonic() < until:
                report(0.5)
                time.sleep(0.01)
        except StoppedError:
            ended.touch()

    def work(job: Callable[..., None], place: Place) -> None:
        place.compute(job)

    began = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        run_all(work, [fails, goes_on], dask=address)
    while not ended.exists():
        assert time.monotonic() - began < 15
        time.sleep(0.01)


def test_a_worker_that_comes_later_gets_work() -> None:
    """Catches a new worker that idles until a long run has ended: the first here ends after the second has begun."""
    workers, second = [{"one": 1}], threading.Event()

    def work(job: int, place: Place) -> bool:
        if job == 0:
            workers[0] = {"one": 1, "other": 1}
            return second.wait(20)
        second.set()
        return True

    assert run_all(work, range(2), dask=SimpleNamespace(nthreads=lambda: workers[0])) == [True, True]


def test_a_scheduler_that_is_lost_is_said(address: str) -> None:
    """Catches a cancelled future, which has no words at all, and Dask's own words for workers that died."""
    with pytest.raises(SchedulerError, match="dask: the scheduler was lost"), connected(address):
        raise CancelledError
    died = distributed.KilledWorker("a job", SimpleNamespace(address="tcp://one:1"), 0)
    words = r"dask: workers died at one job again and again, .*tcp://one:1.* last; .*more memory"
    with pytest.raises(SchedulerError, match=words), connected(address):
        raise died


@pytest.mark.parametrize("command", COMMANDS)
def test_a_scheduler_that_is_none(capsys: pytest.CaptureFixture[str], command: str) -> None:
    """Catches a traceback, and words that another command has."""
    assert run_command([*COMMANDS[command], "--scheduler", "nowhere://127.0.0.1:1"]) == 2
    said = capsys.readouterr().err
    assert "dask: no scheduler at 'nowhere://127.0.0.1:1'" in said
    assert "write for example tcp://host:8786" in said


# At the end: whoever comes after it waits until another worker has started.
def test_a_worker_that_is_killed_is_survived(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a run that is lost with its worker, or that is waited for without end."""
    mark, options = tmp_path / "killed", {"flows": ROWS, "seeds": 3}
    theirs = fc.fabric("hpcc", SHAPE, **options)

    def kill() -> None:
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    patched(monkeypatch, kill)
    found = fc.fabric("hpcc", SHAPE, **options, dask=cluster.scheduler_address)
    assert mark.exists()
    assert same(found, theirs)
