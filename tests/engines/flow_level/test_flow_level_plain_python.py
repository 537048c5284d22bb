"""The same source as plain Python, which checks every index, and compiled, number for number."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

RUN = """
import json, warnings
warnings.simplefilter("error", RuntimeWarning)  # also of integers that wrap
import fluidcc as fc
from fluidcc.engines.flow_level.run import flow_times
from fluidcc.workloads.fabrics import named_topology

topology = named_topology("leaf-spine:2x2x4")
rows = [(i, 7, 1e-6 * i, 5e4) for i in range(3)] + [(0, 6, 0.0, 2e4, (0,))]
found = []
for scheme in ("hpcc", "swift", "dctcp", "nscc", "dcqcn", "none"):
    scenario = topology.scenario(rows, ecmp_seed=1, **fc.preset(scheme, "hpcc-eval").options())
    found += [flow_times(scenario, model=model).answered.tolist() for model in ("ideal", "dynamics")]
print(json.dumps(found))
"""


@cache
def ran(**environment: str) -> list[list[float]]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_compiled_and_plain_are_one() -> None:
    assert ran(NUMBA_DISABLE_JIT="1") == ran()
