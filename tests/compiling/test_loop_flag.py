"""What importing fluidcc sets, and what it leaves to the user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fluidcc.compiling.settings import LOOP_FLAG

ROOT = Path(__file__).parents[2]
RUN = """
import numpy as np
trace = fc.simulate(fc.incast(3, initial_rate=["24Gbps", "17Gbps", "5Gbps"]), "300us", estimate_error=False)
found["queue"] = trace["queue"].values.ravel().tolist()
found["rate"] = trace["rate"].values.ravel().tolist()
"""
# Two runs up to the place where code would be compiled.
BEGUN = """
from fluidcc.engines.fluid import engine
engine._begin = None
for _ in range(2):
    try:
        fc.simulate(fc.incast(2), "300us", estimate_error=False)
    except AttributeError:
        found["begun"] = found.get("begun", 0) + 1
"""
STARTED = "import jax; jax.numpy.zeros(3).sum()"


def python(code: str, **environment: str) -> tuple[Any, list[str]]:
    """What ``found`` holds in the end, and the lines on standard error."""
    values = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "FLUIDCC_JAX")}
    code = f"import os, sys, json\nfound = {{}}\n{code}\nprint(json.dumps(found))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=values | environment, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr.splitlines()


FLAGS = 'found["flags"] = os.environ.get("XLA_FLAGS"); found["jax"] = "jax" in sys.modules'


@pytest.mark.parametrize(
    ("environment", "flags"),
    [
        ({}, LOOP_FLAG),
        ({"XLA_FLAGS": "--xla_cpu_enable_fast_math=false"}, f"--xla_cpu_enable_fast_math=false {LOOP_FLAG}"),
        ({"XLA_FLAGS": "--xla_backend_extra_options=own=1"}, "--xla_backend_extra_options=own=1"),
        ({"FLUIDCC_JAX": "off"}, None),
    ],
)
def test_importing_sets_the_flag_unless_the_user_has(environment: dict[str, str], flags: str | None) -> None:
    found, said = python(f"import fluidcc as fc\n{FLAGS}", **environment)
    assert found == {"flags": flags, "jax": False}
    assert said == []


def test_tests_that_ask_for_users_flags_have_no_quick_ones(users_flags: None) -> None:
    """In a worker as well, whose environment is that of the tests that started it."""
    assert "optimization_level" not in os.environ["XLA_FLAGS"]


def test_jax_imported_but_not_started_still_takes_the_flag() -> None:
    found, said = python(f"import jax\nimport fluidcc as fc\n{FLAGS}")
    assert found == {"flags": LOOP_FLAG, "jax": True}
    assert said == []


def test_jax_started_before_is_said_once_and_before_a_run_only(tmp_path: Path) -> None:
    code = f"{STARTED}\nimport fluidcc as fc\n{FLAGS}\nprint('imported', file=sys.stderr)\n{BEGUN}"
    found, said = python(code, FLUIDCC_CACHE_DIR=str(tmp_path))
    assert (found["flags"], found["begun"]) == (None, 2)
    assert said[0] == "imported"
    assert len(said) == 2
    assert "import fluidcc before" in said[1]


@pytest.mark.slow
def test_left_alone_jax_has_no_flag_no_files_and_no_warning_and_the_numbers_agree(tmp_path: Path) -> None:
    """The loop compiled whole rounds otherwise, in the last bits."""
    alone, said = python(
        f"{STARTED}\nimport fluidcc as fc\n{RUN}", FLUIDCC_JAX="off", FLUIDCC_CACHE_DIR=str(tmp_path / "none")
    )
    assert said == []
    assert not (tmp_path / "none").exists()
    whole, said = python(f"import fluidcc as fc\n{RUN}", FLUIDCC_CACHE_DIR=str(tmp_path / "some"))
    assert said == []
    assert list((tmp_path / "some").glob("jax-*/*begin*"))
    for name in ("queue", "rate"):
        assert whole[name] == pytest.approx(alone[name], rel=1e-12, abs=1e-9)
