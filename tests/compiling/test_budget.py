"""The count of compiled shapes: the same whatever is cached and whoever runs, and a budget that fails the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import compilations

pytest_plugins = ["pytester"]

CONFTEST = """
from pathlib import Path
from tests import compilations
compilations.BUDGET = Path(__file__).with_name("budget.toml")
pytest_addoption = compilations.add_options
def pytest_configure(config):
    config.pluginmanager.register(compilations.Plugin(config), "fluidcc-compilations")
"""
TESTS = """
import numpy as np
import pytest
from fluidcc.compiling.functions import per_shape

add = per_shape()(lambda x, *, n: x + n)

@pytest.mark.parametrize("n", [1, 2, 3, 1, 2])
def test_sum(n):
    assert float(add(np.float32(1), n=n)) == 1 + n
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_shapes=TESTS)
    return pytester


@pytest.mark.parametrize("workers", [[], pytest.param(["-n", "2"], marks=pytest.mark.slow)])
def test_distinct_shapes_are_counted_however_tests_are_shared(project: pytest.Pytester, workers: list[str]) -> None:
    (project.path / "budget.toml").write_text('"test_shapes.py" = 3\n')
    done = project.runpytest_subprocess("-m", "not slow", "--compilations", *workers)
    assert done.ret == 0
    done.stdout.re_match_lines([r" +3 +\d+  test_shapes.py"])


def test_more_than_the_budget_fails_the_run_and_says_where(project: pytest.Pytester) -> None:
    (project.path / "budget.toml").write_text('"test_shapes.py" = 2\n')
    assert project.runpytest_subprocess("-m", "slow or not slow").ret == 0  # budgets are of the tests that are not slow
    done = project.runpytest_subprocess("-m", "not slow")
    assert done.ret == 1
    done.stdout.fnmatch_lines(["*test_shapes.py asks for 3 compiled shapes, of a budget of 2*"])


def test_what_was_counted_can_be_written_and_others_stay(project: pytest.Pytester) -> None:
    (project.path / "budget.toml").write_text('"test_other.py" = 7\n')
    assert project.runpytest_subprocess("--compilations-write").ret == 0
    assert 'test_other.py" = 7\n"test_shapes.py" = 5' in (project.path / "budget.toml").read_text()


def test_every_budget_is_of_a_file_that_exists() -> None:
    for file in compilations.read():
        assert (Path(__file__).parents[2] / file).exists(), file
