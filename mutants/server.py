"""Process that has imported what tests import from elsewhere, and forks a child for each run of pytest.

Forking is safe as long as no thread runs and JAX has not started its backend, which is looked at before each fork; if
either has happened, the child starts Python afresh. Jobs come as lines of JSON on standard input, answers go out
likewise; when the input ends, so does what runs.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

# Nothing of fluidcc, which is what changes.
MODULES = [
    "jax",
    "jax.numpy",
    "jax.scipy",
    "jax.experimental.serialize_executable",
    "numba",
    "scipy.optimize",
    "scipy.linalg",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.sparse.linalg",
    "scipy.special",
    "scipy.stats",
    "scipy.signal",
    "sympy",
    "xarray",
    "pandas",
    "matplotlib.pyplot",
    "matplotlib.figure",
    "hypothesis",
    "hypothesis.strategies",
    "_hypothesis_pytestplugin",
    "h5py",
    "typer",
    "typer.testing",
    "pymoo",
    "SALib",
    "z3",
    "xdist",
    "xdist.plugin",
]


class Watch:
    """Plugin of pytest: quick tests first, a limit of processor time for each, and a line in a file for each."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.file = open(job["report"], "w", buffering=1, encoding="utf-8")  # noqa: SIM115
        self.each: float = job["each"]
        self.skip: float = job.get("skip", 0.0)  # what takes longer is left out, not ended
        self.known: dict[str, float] = job.get("known", {})
        self.only: set[str] | None = set(job["only"]) if job.get("only") is not None else None
        self.without: set[str] = set(job.get("without", ()))
        self.go_on: bool = job.get("go_on", False)

    def say(self, what: str, test: str, seconds: float = 0.0) -> None:
        self.file.write(json.dumps([what, test, round(seconds, 3)]) + "\n")

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.say("failed", report.nodeid)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Files in the order given; of each first what is known to be quick, then, in a second round, the rest."""
        if self.only is not None:
            items[:] = [item for item in items if item.nodeid in self.only]
        items[:] = [item for item in items if item.nodeid not in self.without]
        if self.known:
            items.sort(key=lambda item: self.known.get(item.nodeid, 0.3) > 1.0)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.say("began", nodeid)
        self.began = time.process_time()
        if self.go_on:  # of a test that waits for threads nothing comes of a signal that asks Python
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (int(self.began + 3 * self.each) + 1, resource.RLIM_INFINITY))
        signal.setitimer(signal.ITIMER_PROF, self.each, self.each)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.say("failed", report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        self.say("ended", nodeid, time.process_time() - self.began)


class _TooLongError(BaseException):
    """Nothing that a test catches, and nothing that Hypothesis looks for a smaller case of."""


def _too_long(*_: Any) -> None:
    raise _TooLongError


def run(job: dict[str, Any]) -> int:
    """Run pytest here, in a child; its exit status."""
    os.environ.update(job["env"])
    os.chdir(job["place"])
    sys.path[:] = [job["place"], *(each for each in sys.path if each not in ("", job["home"], job["place"]))]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("mutants", "fluidcc", "tests")]:
        del sys.modules[name]
    if "numba" in sys.modules:
        sys.modules["numba"].core.config.reload_config()
    if "jax" in sys.modules and job.get("kept"):
        update = sys.modules["jax"].config.update
        update("jax_compilation_cache_dir", job["kept"])
        update("jax_persistent_cache_min_compile_time_secs", 0.1)
        update("jax_persistent_cache_enable_xla_caches", "none")
    # A test that takes too long ends the process; where the others are to run, it fails.
    signal.signal(signal.SIGPROF, _too_long if job.get("go_on") else signal.SIG_DFL)
    import pytest

    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "--tb=no", *([] if job.get("go_on") else ["-x"])]
    return int(pytest.main([*options, *job["arguments"]], plugins=[Watch(job)]))


def _alone() -> bool:
    """Say that this process may be forked."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return len(os.listdir("/proc/self/task")) == 1 and not getattr(bridge, "_backends", None)


def _start(job: dict[str, Any]) -> int:
    out = os.open(job["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    if not (Path("/proc/self/task").exists() and _alone()):
        command = [sys.executable, "-m", "mutants.server", json.dumps(job)]
        env = os.environ | {"PYTHONPATH": job["home"]}
        started = subprocess.Popen(command, env=env, stdout=out, stderr=out, start_new_session=True)
        os.close(out)
        return started.pid
    child = os.fork()
    if child:
        os.close(out)
        return child
    status = 99
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        for target, source in ((0, nothing), (1, out), (2, out)):
            os.dup2(source, target)
        status = run(job)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def serve(modules: list[str]) -> None:
    """Import, and answer jobs: exit status (None after the limit, negative for a signal), and processor time in s."""
    for name in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this ends it
    gc.collect()
    gc.freeze()  # so that children share the memory
    print(json.dumps({"forks": _alone()}), flush=True)
    source = sys.stdin.fileno()
    pending = b""
    while True:
        while b"\n" not in pending:
            got = os.read(source, 1 << 20)
            if not got:
                return
            pending += got
        line, _, pending = pending.partition(b"\n")
        job = json.loads(line)
        child = _start(job)
        end, status, ended, used = time.monotonic() + job["limit"], None, False, 0.0
        try:
            while time.monotonic() < end and not ended:
                done, code, usage = os.wait4(child, os.WNOHANG)
                if done:
                    ended, status = True, os.waitstatus_to_exitcode(code)
                    used = usage.ru_utime + usage.ru_stime
                elif select.select([source], [], [], 0.03)[0] and not os.read(source, 1):
                    return
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)  # and what it started
            if not ended:
                used = (lambda usage: usage.ru_utime + usage.ru_stime)(os.wait4(child, 0)[2])
        print(json.dumps({"status": status, "cpu": round(used, 2)}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].startswith("{"):
        sys.exit(run(json.loads(sys.argv[1])))
    serve(sys.argv[1:])
