"""Settings for all tests."""

import atexit
import gc
import math
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import settings

import fluidcc  # sets XLA's flag before anything starts JAX
from fluidcc import progress
from tests import compilations

assert fluidcc

# No deadline: the first example of a test may compile. The same examples at each run, so that a failure
# concerns the change at hand; `make test ARGS=--hypothesis-profile=search` looks for new ones.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile("repeatable")

# Compiling makes many objects that stay; to look through them for garbage at every 700th takes a twentieth of the time.
gc.set_threshold(100_000, 50, 100)


# On a busy machine anything takes more than ten seconds: lines of progress only in tests that ask for them.
progress.BETWEEN_LINES = math.inf

# A shell that runs the tests in the background has Ctrl-C ignored, and what they start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    compilations.add_options(parser)


# Half of the time to compile, here and in what tests start. Runs take longer and differ in rounding.
_QUICK = " --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
_USERS = os.environ.get("XLA_FLAGS", "").replace(_QUICK, "")  # a worker is given those of the process that starts it


# Compiling asks for memory and gives it back all the time: it is kept, which saves a twentieth of the time.
_KEEP = {"MALLOC_TRIM_THRESHOLD_": "256000000", "MALLOC_MMAP_THRESHOLD_": "64000000"}  # bytes; larger arrays go back


def pytest_configure(config: pytest.Config) -> None:
    os.environ["XLA_FLAGS"] = _USERS + _QUICK
    os.environ.update(_KEEP)  # of workers, and of what tests start
    config.pluginmanager.register(compilations.Plugin(config), "fluidcc-compilations")
    if hasattr(config, "workerinput"):  # to take apart what has been compiled takes a worker nine seconds at its end
        atexit.register(os._exit, 0)  # not its verdict, which it has sent


@pytest.fixture
def users_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start programs as users do, with the machine code that they get."""
    monkeypatch.setenv("XLA_FLAGS", _USERS)


# Workers take file after file in this order. One compiles the packet engine at once, a minute's work that is kept for
# both, while the other does what needs no packets; likewise the hybrid and the flow level, each by one file with others
# beside it; the files that take longest, and what asks for most shapes, before the rest: a worker takes a whole file.
_FIRST = (
    "engines/packet/test_small_cases",
    "theory",
    "test_notebooks",
    "engines/hybrid/test_against_packets",
    "dde",
    "engines/flow_level/test_flow_times",
    "docs/test_printed_commands",
    "studies/sweeps/test_store",
    "test_own_scheme",
    "engines/fluid",
    "engines/hybrid",
    "engines/flow_level",
    "proofs",
    "cli",
)
_FROM_THE_END = {"1", "3", "5", "7"}  # workers


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Have every other worker collect from the end: pytest keeps what it makes of a file, and who comes later reads it.

    In a new checkout that saves each worker some seconds; the order of the tests is made below, and the same for all.
    """
    report = yield
    if isinstance(collector, pytest.Directory) and os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:] in _FROM_THE_END:
        report.result.reverse()
    return report


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    budget = compilations.read()

    def turn(item: pytest.Item) -> tuple[int, int, str]:
        file = item.nodeid.partition("::")[0]
        ranks = (rank for rank, start in enumerate(_FIRST) if file.startswith(f"tests/{start}"))
        return next(ranks, len(_FIRST)), -budget.get(file, 0), file

    items.sort(key=turn)


def pytest_keyboard_interrupt() -> None:
    """End within seconds: a worker that compiles hears of Ctrl-C only afterwards, and xdist gives it ten to do so."""
    from xdist.workermanage import NodeManager

    NodeManager.EXIT_TIMEOUT = 1
