"""Short commands in processes of their own, with machine code kept from before: what is left is start-up.

``python -m benchmarks.short_commands`` prints time of the processors, time and peak memory, the median of seven.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

ROUNDS = 7
COMMANDS = {
    "packets": "simulate dcqcn --flows 8 --rate 100Gbps --delay 1us --until 1ms --engine packet",
    "hybrid": "simulate dcqcn --flows 8 --rate 100Gbps --delay 1us --until 1ms --engine hybrid",
    "fabric": "fabric hpcc --topology leaf-spine:2x2x8 --workload hadoop --load 50% --until 200us",
    "refusal": "simulate dcqcn --flows -1",
    "help": "--help",
}


def spent(command: str) -> tuple[float, float, float]:
    """Processors' seconds, seconds and peak memory [MB] of a command."""
    began = time.perf_counter()
    done = subprocess.Popen(
        [sys.executable, "-m", "fluidcc", *command.split()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(done.pid, 0)
    done.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime, time.perf_counter() - began, used.ru_maxrss / 1e3


def measure() -> dict[str, tuple[float, ...]]:
    """Medians of `spent` of each command, which take turns; the first round, which may compile, is left out."""
    rounds = [{name: spent(command) for name, command in COMMANDS.items()} for _ in range(ROUNDS + 1)][1:]
    return {
        name: tuple(statistics.median(values) for values in zip(*(each[name] for each in rounds), strict=True))
        for name in COMMANDS
    }


if __name__ == "__main__":
    for name, (processors, clock, memory) in measure().items():
        print(f"{name:10} {processors:6.2f} s of processors, {clock:6.2f} s, {memory:5.0f} MB")
