"""From a fresh process to the first plot, by stages; the next run of the same shape; with and without files.

Eight DCQCN flows, 100 ms of the fluid, the run with half the step included: what a first session does. Nothing is set
by the user. ``python -m benchmarks.first_plot`` prints the stages.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 3

_SESSION = """
import json, sys, time
began = last = time.perf_counter()
stages = {}
def done(name):
    global last
    now = time.perf_counter()
    stages[name] = now - last
    last = now
import fluidcc as fc
done("import fluidcc")
import jax
done("import jax")
fc.simulate, fc.incast
done("import simulate")
scenario = fc.incast(8)
done("scenario")
trace = fc.simulate(scenario, "100ms")
done("first run")
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot
done("import matplotlib")
trace.plot().savefig(sys.argv[1])
done("plot")
stages["first plot"] = time.perf_counter() - began
stages["... of processors"] = time.process_time()
last = time.perf_counter()
fc.simulate(fc.incast(8, initial_rate="20Gbps"), "100ms")
done("second run")
stages["... of processors, again"] = time.process_time() - stages["... of processors"]
print(json.dumps(stages))
"""


def session(folder: str, **environment: str) -> dict[str, float]:
    """Seconds of each stage of a fresh process, and of the process as a whole until it ends."""
    values = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    values |= {"FLUIDCC_CACHE_DIR": str(Path(folder) / "cache"), "MPLBACKEND": "Agg"} | environment
    began = time.perf_counter()
    command = [sys.executable, "-W", "ignore", "-c", _SESSION, str(Path(folder) / "plot.png")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=values)
    return json.loads(done.stdout) | {"process": time.perf_counter() - began}


def measure() -> dict[str, dict[str, float]]:
    """Stages [s]: with no files, with those of the process before (the median), and with JAX left alone."""
    with tempfile.TemporaryDirectory() as folder:
        cold = session(folder)
        warm = [session(folder) for _ in range(ROUNDS)]
        alone = session(folder, FLUIDCC_JAX="off")
    median = {name: statistics.median(each[name] for each in warm) for name in warm[0]}
    return {"cold": cold, "warm": median, "alone": alone}


if __name__ == "__main__":
    found = measure()
    for stage in found["warm"]:
        print(f"{stage:20}" + "".join(f" {name} {found[name][stage]:7.3f} s" for name in found))
