"""HPCC's testbed (section 5.1) for Figure 9: one rack of 25 Gbps, HPCC and two readings of DCQCN."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fluidcc.builders import incast
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, packet_runs
from fluidcc.results.metrics import completion_times
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario
from fluidcc.schemes import dcqcn, hpcc

LINE = 25 * GBPS
BASE_RTT = 5.4e-6  # s, within a rack (section 5.1): of a full packet with telemetry and its ACK
T = 9e-6  # s: HPCC's T of the testbed (section 5.1)
JOIN = 1e-3  # s: when flows join in (a) to (d)

_HPCC, _DCQCN = hpcc.PRESETS["hpcc-eval"], dcqcn.PRESETS["hpcc-eval"]
HPCC = dataclasses.replace(_HPCC.scheme, base_rtt=T)
DCQCN = _DCQCN.scheme
# The same numbers in the reaction point of the authors' public simulator: no byte counter, cuts on a timer (T_d = 4 us,
# section 2.2), and a cut right after a cut keeps its target.
DCQCN_SIMULATOR = dataclasses.replace(DCQCN, variant="hpcc-sim", rate_decrease_interval=DCQCN.cnp_interval)

NAMES = {"hpcc": "HPCC", "dcqcn": "DCQCN", "dcqcn_sim": "DCQCN, authors' simulator"}
_SCHEMES = {"hpcc": HPCC, "dcqcn": DCQCN, "dcqcn_sim": DCQCN_SIMULATOR}
_RANDOM = ("dcqcn", "dcqcn_sim")  # RED's marks are; HPCC's runs are all the same
SEEDS, SEEDS_QUICK = 8, 3

NOTES = (
    "25 Gbps, one switch, link delays such that the base RTT is 5.4 us; T = 9 us, W_AI 80 B; "
    "DCQCN: vendor's parameters, Kmin 100 KB, Kmax 400 KB, Pmax 20 % (preset hpcc-eval)",
    "marks are set as packets leave the queue, as in the authors' simulator; DCQCN's numbers are medians over seeds",
)


def _link_delay() -> float:
    """Return the one-way delay of a link [s] that makes the base RTT of HPCC's packets `BASE_RTT`."""
    scenario = incast(1, scheme=HPCC, **_HPCC.network)
    wire = scenario.wire_packet_of(scenario.flows[0]) + scenario.ack_bytes + scenario.flows[0].scheme.int_bytes
    return (BASE_RTT - 2 * wire / LINE) / 4


def rack(contender: str, senders: int, *, mark_on: str = "departure", **flows: Any) -> Scenario:
    """Senders and one receiver on a switch; ``flows`` as of `incast`."""
    preset = _DCQCN if contender in _RANDOM else _HPCC
    marking = preset.marking_at(LINE)
    if marking is not None:
        marking = dataclasses.replace(marking, mark_on=mark_on)
    scheme = _SCHEMES[contender]
    return incast(senders, rate=LINE, delay=_link_delay(), scheme=scheme, marking=marking, **preset.network, **flows)


def run_all(make: Callable[[str], Scenario], until: float, seeds: int, **options: Any) -> dict[str, list[Trace]]:
    """Traces of every contender, one per seed; options as of `simulate`."""
    counts = {contender: seeds if contender in _RANDOM else 1 for contender in NAMES}
    return {name: packet_runs([make(name)] * count, until, **options) for name, count in counts.items()}


def quick_note(seeds: int) -> str:
    """Describe what a quick run leaves out."""
    return f"quick: {seeds} seeds in place of {SEEDS}"


def sample_of(
    seeds: int,
    until: float,
    found: Mapping[str, list[dict[str, float]]],
    name: str,
    unit: str,
    scale: float = 1.0,
    more: str = "",
) -> str:
    """Describe what was drawn, with the interval of each drawing contender's median; ``found`` as of `medians`."""
    runs = sample.packets(until, seeds, seeds=range(1, seeds + 1), drawn=sample.MARKS)
    ranges = [
        sample.median(f"{name.removesuffix('_s').removesuffix('_bytes').replace('_', ' ')} with {NAMES[contender]}",
                      [run[name] for run in found[contender]], unit, scale)
        for contender in _RANDOM
    ]  # fmt: skip
    one = f"one with {NAMES['hpcc']}, in which nothing is random"
    return "; ".join([f"{runs}, with either DCQCN", *([more] if more else []), *ranges, one])


def medians(found: Mapping[str, list[dict[str, float]]]) -> dict[str, float]:
    """Median over the runs of each contender's numbers."""
    return {
        f"{contender}_{name}": float(np.median([run[name] for run in runs]))
        for contender, runs in found.items()
        for name in runs[0]
    }


def finished(trace: Trace) -> np.ndarray:
    """Completion times of finite flows [s]; infinite if unfinished."""
    return completion_times(trace.summary["fct_s"])
