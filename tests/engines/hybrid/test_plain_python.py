"""The same run from plain Python and from machine code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
# Two links, of which one marks on departure, senders of both kinds, late and finite flows; rings that grow.
CODE = """
import dataclasses, json, warnings
warnings.simplefilter("error", RuntimeWarning)
import fluidcc as fc
scheme = fc.DCQCN(timer="10us", cnp_interval="5us", alpha_timer="7us", byte_counter="9KB", hyper_increase=True,
                  rate_ai="2Gbps", feedback_delay=None)
script = fc.NoControl(schedule="0:5Gbps,200us:15Gbps", repeat="400us")
links = (
    fc.Link("25Gbps", "1us", fc.RED("10KB", "60KB", 0.1), source="s", target="t", name="first"),
    fc.Link("15Gbps", "1us", fc.RED("20KB", "40KB", 1.0, mark_on="departure"), source="t", target="u", name="second"),
)
line = {"line_rate": "25Gbps", "initial_rate": "5Gbps"}
flows = [fc.Flow((0, 1) if i % 2 else (0,), script if i == 4 else scheme, **line, source=f"h{i}", target=f"r{i}",
                 start=i * 50e-6, size="30KB" if i == 2 else float("inf"), egress_delay="1us") for i in range(5)]
spaced = dataclasses.replace(scheme, nic_cnp_interval="4us")  # two flows to one NIC
flows += [fc.Flow((0,), scheme, **line, source=f"w{i}", target=f"x{i}", start="5us", size="6KB", after=(2 + 3 * i,))
          for i in range(2)]  # one waits for a flow that ends, and one for that
flows += [fc.Flow((0, 1), spaced, **line, source=f"k{i}", target="both", egress_delay="1us") for i in range(2)]
trace = fc.simulate(fc.Scenario(links, tuple(flows)), "450us", engine="hybrid", seed=3, sample_interval="5us")
summary = {k: v for k, v in trace.summary.items() if k not in ("compile_s", "wall_s")}
found = [summary, float(trace["queue"].sum()), float(trace["alpha"].sum()), float(trace["rate"].sum())]
"""


def run() -> Any:
    names: dict[str, Any] = {}
    exec(CODE, names)
    return json.loads(json.dumps(names["found"]))


def run_plain() -> Any:
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    # SplitMix64 wraps.
    code = f"import numpy as np\nnp.seterr(over='ignore')\n{CODE}\nprint(json.dumps(found))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_plain_python_gives_the_same_run() -> None:
    """The logarithms of both may differ in the last bit, and events move by as much."""
    compiled, plain = run(), run_plain()
    assert compiled[0]["marks"] > 50
    assert compiled[0]["events"] > 2000
    for name in ("events", "marks", "cnps"):
        assert plain[0][name] == compiled[0][name]
    assert plain[1:] == pytest.approx(compiled[1:], rel=1e-9)
    for ours, theirs in zip(plain[0]["links"], compiled[0]["links"], strict=True):
        assert ours["queue_bytes"] == pytest.approx(theirs["queue_bytes"], rel=1e-6, abs=1e-3)
    assert plain[0]["fct_s"] == pytest.approx(compiled[0]["fct_s"], rel=1e-9)
    assert plain[0]["began_s"] == pytest.approx(compiled[0]["began_s"], rel=1e-9)
    assert compiled[0]["began_s"][6] > compiled[0]["began_s"][5] > compiled[0]["began_s"][2]
