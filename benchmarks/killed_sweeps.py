"""Sweeps that are killed: is the store the same afterwards, bit for bit, and how much is computed twice?

    python -m benchmarks.killed_sweeps [--points 10000] [--kills 10] [--seed 1]

First a sweep is killed at random moments and gone on with each time; then one on Dask loses a worker. Both are compared
with a sweep that nobody disturbs, file by file.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import fluidcc as fc
from fluidcc.studies.sweeps import run
from fluidcc.studies.sweeps.batch import run_chunk

CHUNK = 100  # points, so that there are many chunks
UNTIL = "50ms"


def make(kmin: Any, g: Any) -> fc.Scenario:
    return fc.incast(2, marking=fc.RED(kmin, "200KB", "5%"), scheme=fc.DCQCN(g=g))


def grid(points: int) -> dict[str, np.ndarray]:
    """About so many settings, on a grid whose sides are not multiples of a chunk."""
    side = round(points**0.5)
    return {"kmin": np.linspace(5e3, 150e3, points // side), "g": np.geomspace(1 / 1024, 1 / 16, side)}


def sweep(
    store: Path,
    log: Path,
    points: int,
    *,
    resume: bool = False,
    dask: Any = None,
    until: str = UNTIL,
    pause: float = 0.0,
) -> None:
    """Sweep, with a line in the log for every chunk that is begun; ``pause`` lengthens each [s]."""

    def logged(network: Any, *arguments: Any, **options: Any) -> dict[str, np.ndarray]:
        digest = hashlib.sha256(b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(network)))
        with log.open("a") as file:
            file.write(digest.hexdigest() + "\n")
        time.sleep(pause)
        return run_chunk(network, *arguments, **options)

    run.run_chunk, run.chunk_size = logged, lambda *_: CHUNK  # type: ignore[assignment]
    try:
        fc.sweep(
            make, grid(points), until=until, store=store, resume=resume, dask=dask, workers=2, estimate_error=False
        )
    finally:
        run.run_chunk, run.chunk_size = ORIGINAL


ORIGINAL = run.run_chunk, run.chunk_size


def files(store: Path) -> dict[str, bytes]:
    """All files of a store, with what is in them."""
    return {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*") if path.is_file()}


def begun(log: Path) -> collections.Counter[str]:
    """How often each chunk was begun."""
    return collections.Counter(log.read_text().split()) if log.exists() else collections.Counter()


def start(store: Path, log: Path, points: int, until: str = UNTIL, pause: float = 0.0) -> subprocess.Popen[bytes]:
    """Sweep in a process of its own, or go on."""
    code = f"from benchmarks.killed_sweeps import *; sweep(Path({str(store)!r}), Path({str(log)!r}), {points}, "
    return subprocess.Popen([sys.executable, "-c", f"{code}resume=True, until={until!r}, pause={pause})"])


def kill_sweep(
    store: Path, log: Path, points: int, kills: int, draw: random.Random, longest: float, until: str = UNTIL
) -> list[int]:
    """Kill a sweep at random moments, each within so many seconds, and let it end; chunks begun twice for each kill."""
    wasted = []
    for _ in range(kills):
        before = sum(begun(log).values())
        process = start(store, log, points, until)
        # From its first chunk on: a process that is still importing has nothing to lose.
        while sum(begun(log).values()) == before and process.poll() is None:
            time.sleep(0.01)
        time.sleep(draw.uniform(0.0, longest))
        process.send_signal(signal.SIGKILL)
        process.wait()
        wasted.append(sum(begun(log).values()) - finished(store))
    start(store, log, points, until).wait()
    return [after - before for before, after in zip([0, *wasted], wasted, strict=False)]


def finished(store: Path) -> int:
    """Chunks whose results are there."""
    return len([path for path in (store / "reason" / "c").rglob("*") if path.is_file() and path.suffix != ".partial"])


def lose_worker(store: Path, log: Path, points: int, draw: random.Random, until: str = UNTIL) -> None:
    """Sweep on two Dask workers, one of which is killed at a random moment."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        pids = sorted(client.run(os.getpid).values())

        def kill() -> None:
            while not begun(log):
                time.sleep(0.01)
            time.sleep(draw.uniform(0.0, 1.0))
            os.kill(draw.choice(pids), signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        sweep(store, log, points, dask=client, until=until)
        killer.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        began = time.perf_counter()
        sweep(place / "whole.zarr", place / "whole.log", options.points)
        took = time.perf_counter() - began
        whole = files(place / "whole.zarr")
        chunks = sum(begun(place / "whole.log").values())
        print(f"undisturbed: {chunks} chunks, {took:.1f} s")
        jobs: dict[str, Callable[[Path, Path], Any]] = {
            f"{options.kills} kills": lambda s, log: kill_sweep(
                s, log, options.points, options.kills, draw, took / options.kills
            ),
            "a Dask worker killed": lambda s, log: lose_worker(s, log, options.points, draw),
        }
        good = True
        for name, job in jobs.items():
            store, log = place / f"{name}.zarr", place / f"{name}.log"
            wasted = job(store, log)
            same = files(store) == whole
            twice = sum(begun(log).values()) - chunks
            per_kill = f", after each kill {wasted}" if wasted else ""
            print(
                f"{name}: store {'the same' if same else 'DIFFERS'}, {twice} chunks begun twice{per_kill}", flush=True
            )
            good &= same and twice <= 2 * (options.kills if wasted else 1)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
