"""The count of compiled shapes: the same whatever is cached and whoever runs, and a budget that fails the run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

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
    pytester.makeini("[pytest]\naddopts = -p no:zarr -p no:anyio\n")
    pytester.makepyfile(test_shapes=TESTS)
    return pytester


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_distinct_shapes_are_counted_however_tests_are_shared(project: pytest.Pytester, workers: list[str]) -> None:
    (project.path / "budget.toml").write_text('"test_shapes.py" = 3\n')
    done = project.runpytest_subprocess("-m", "not slow", "--compilations", *workers)
    assert done.ret == 0
    done.stdout.re_match_lines([r" +3 +\d+  test_shapes.py"])


@pytest.mark.slow
def test_more_than_the_budget_fails_the_run_and_says_where(project: pytest.Pytester) -> None:
    (project.path / "budget.toml").write_text('"test_shapes.py" = 2\n')
    done = project.runpytest_subprocess("-m", "not slow", "--compilations")
    assert done.ret == 1
    done.stdout.re_match_lines([r" +3 +\d+  test_shapes.py"])
    done.stdout.fnmatch_lines(["*test_shapes.py asks for 3 compiled shapes, of a budget of 2*"])


@pytest.mark.parametrize(
    ("which", "shapes", "ends"),
    [
        ("not slow", 2, pytest.ExitCode.OK),
        ("not slow", 3, pytest.ExitCode.TESTS_FAILED),
        ("not slow ", 3, pytest.ExitCode.TESTS_FAILED),
        ("slow or not slow", 3, pytest.ExitCode.OK),  # budgets are of the tests that are not slow
    ],
)
def test_a_run_fails_beyond_the_budget_of_the_tests_that_are_not_slow(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, which: str, shapes: int, ends: pytest.ExitCode
) -> None:
    monkeypatch.setattr(compilations, "BUDGET", tmp_path / "budget.toml")
    compilations.BUDGET.write_text('"test_shapes.py" = 2\n')
    options = {"markexpr": which, "--compilations-write": False}
    config: Any = SimpleNamespace(getoption=options.__getitem__)
    plugin = compilations.Plugin(config)
    plugin.count.add({"test_shapes.py": ["a", "b", "a"]}, {"test_shapes.py": 2})  # of two workers
    plugin.count.add({"test_shapes.py": ["a", *"bc"[: shapes - 1]]}, {"test_shapes.py": 1})
    session: Any = SimpleNamespace(exitstatus=pytest.ExitCode.OK)
    plugin.pytest_sessionfinish(session)
    assert session.exitstatus == ends
    assert len(plugin.count.over(plugin.budget)) == (ends != pytest.ExitCode.OK)
    assert plugin.count.table()[1].split() == [str(shapes), "3", "test_shapes.py"]


def test_budgets_of_files_that_exist_only_fall(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Counted are 9, 2 and 4 shapes; the last file has no budget."""
    (tmp_path / "tests").mkdir()
    monkeypatch.setattr(compilations, "BUDGET", tmp_path / "tests" / "budget.toml")
    for name in ("grown", "shrunk", "new", "other"):
        (tmp_path / f"{name}.py").touch()
    compilations.BUDGET.write_text('"grown.py" = 7\n"gone.py" = 7\n"other.py" = 3\n"shrunk.py" = 7\n')
    count = compilations.Count()
    for name, shapes in (("grown", 9), ("shrunk", 2), ("new", 4)):
        count.shapes[f"{name}.py"] = set(map(str, range(shapes)))
    compilations.BUDGET.write_text(count.budget())
    assert compilations.read() == {"grown.py": 7, "other.py": 3, "shrunk.py": 3}


def test_every_budget_is_of_a_file_that_exists() -> None:
    """And the first line says what they are together, so that a raised one is seen."""
    budgets = compilations.read()
    for file in budgets:
        assert (Path(__file__).parents[2] / file).exists(), file
    assert f"They only fall: {sum(budgets.values())} in all." in compilations.BUDGET.read_text()
    assert 0 < sum(budgets.values()) == compilations.MOST
