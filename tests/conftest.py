"""Settings for all tests."""

import gc
import math
import signal

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


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(compilations.Plugin(config), "fluidcc-compilations")


def pytest_keyboard_interrupt() -> None:
    """End within seconds: a worker that compiles hears of Ctrl-C only afterwards, and xdist gives it ten to do so."""
    from xdist.workermanage import NodeManager

    NodeManager.EXIT_TIMEOUT = 1
