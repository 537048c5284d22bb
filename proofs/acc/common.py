"""Parts that the ACC figures share: section 6.1's schemes, Fig. 1(a) with its burst, and a flow's log."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from fluidcc.builders import chain
from fluidcc.plotting.colours import scheme_colours
from fluidcc.proofs.shared.runs import GBPS
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import PFC, RED, Scenario
from fluidcc.schemes.acc import ACC
from fluidcc.schemes.dcqcn import DCQCN
from fluidcc.schemes.hpcc import HPCC
from fluidcc.schemes.timely import PRESETS as TIMELY_PRESETS

LINE = 100 * GBPS
FAIR = LINE / 2  # of F0 and F1, before the bursts
XOFF = 512e3  # bytes
NETWORK: dict[str, Any] = {"buffer": "32MB", "pfc": PFC(XOFF)}  # of each switch: section 6.1
LINKS = ("SW1->SW2", "SW2->SW3", "SW3->SW4", "SW4->R0", "SW4->R1")  # P1, P2, P3; R0's; P4


class Contender(NamedTuple):
    """A scheme as section 6.1 sets it, with its name in a picture and its marking."""

    name: str
    scheme: Any
    marking: RED | None = None


_RED = RED("5KB", "200KB", 0.01, mark_on="departure")
_DCQCN = DCQCN(feedback_delay=None)
_TIMELY = TIMELY_PRESETS["hpcc-sim"].scheme
CONTENDERS = {
    "acc": Contender("ACC", ACC(), ACC.default_marking),
    "hpcc": Contender("HPCC", HPCC()),
    "dcqcn": Contender("DCQCN", _DCQCN, _RED),
    "timely": Contender("TIMELY", _TIMELY),
    "dcqcn_tcd": Contender("DCQCN+TCD", dataclasses.replace(_DCQCN, tcd=True), _RED),
    "timely_tcd": Contender("TIMELY+TCD", dataclasses.replace(_TIMELY, tcd=True)),
    "acc_inflight": Contender("ACC, halts extended in each period", ACC(extension="inflight"), ACC.default_marking),
    "acc_no_halt": Contender("ACC without halts", ACC(halt=False), ACC.default_marking),
}
COMPARED: tuple[str, ...] = ("acc", "hpcc", "dcqcn", "timely")  # of Figs. 10, 11 and 20
_SHADES = scheme_colours(each.name for each in CONTENDERS.values())
COLOURS = {key: _SHADES[each.name] for key, each in CONTENDERS.items()}

NOTES = (
    "links of 100 Gbps, 32 MB of buffer, XOFF 512 KB, packets of 1000 B; ACC: T the base RTT, TCD at 2 packets with "
    "max(T_on) 24 us; HPCC: eta 0.95, maxStage 5; DCQCN: Kmin 5 KB, Kmax 200 KB, Pmax 1 % as packets leave, the path's "
    "own delays; TIMELY: alpha 0.875, beta 0.8, as the HPCC authors' simulator has it, which the paper used (its step "
    "100 Mbps, least rate 1 Gbps)",
)
SETTLED_NOTE = (
    "F0 and F1 start at 50 Gbps each, their fair allocation before the bursts; DCQCN's alpha starts at 0.05, about "
    "what it has settled to by then (from 1, as a flow starts, it would halve at the first CNP)"
)
BURST_NOTE = (
    "one flow of 64 KB per host would be gone in some 0.1 ms; the paper's bursts last about 2 ms, so each host sends "
    "such flows back to back, paced by the share of R1's link that flow control leaves it"
)


def settled(name: str, alpha: float = 0.05) -> Any:
    """A contender's scheme in the middle of a run: DCQCN's alpha is no longer 1."""
    scheme = CONTENDERS[name].scheme
    return dataclasses.replace(scheme, initial_alpha=alpha) if isinstance(scheme, DCQCN) else scheme


def bursty_chain(name: str, bursts: int, **options: Any) -> Scenario:
    """Fig. 1(a), with F0 and F1 at their fair shares when the bursts come; ``options`` as of `chain`."""
    options = {"scheme": settled(name), "marking": CONTENDERS[name].marking, "initial_rate": FAIR, **NETWORK, **options}
    return chain(bursts, **options)


def section_3_dcqcn() -> Any:
    """DCQCN of section 3.3: switches tell victims from congested flows, and only congested flows are throttled."""
    return dataclasses.replace(settled("dcqcn"), tcd=True, ue_gain=0.0)


class FlowLog:
    """History of one flow's data, from the log of a run: bytes over time [s]."""

    def __init__(self, trace: Trace, flow: int) -> None:
        log = trace.dataset
        rows = np.flatnonzero((log["event_flow"].values == flow) & (log["event_kind"].values != "cnp"))
        self.time, self.what, self.port, self.end, self.kind = (
            log[f"event_{name}"].values[rows] for name in ("time", "what", "port", "end", "kind")
        )

    def ends(self, what: str, port: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Times of an event [s], at a port if one is given, and how far the flow's data has come by it [bytes]."""
        rows = self.what == what
        if port is not None:
            rows &= (self.port == port) & (self.kind == "data")
        return self.time[rows], self.end[rows]

    def count(self, times: np.ndarray, what: str, port: str | None = None) -> np.ndarray:
        """Return how far the flow's data has come at each of some times [bytes]; packets stay in order."""
        when, ends = self.ends(what, port)
        return np.append(0, ends)[np.searchsorted(when, times, side="right")].astype(float)

    def backlog(self, times: np.ndarray, link: str) -> np.ndarray:
        """Bytes that wait in a link's queue."""
        port = link.replace("->", " -> ")
        return self.count(times, "enqueue", port) - self.count(times, "transmit", port)

    def in_flight(self, times: np.ndarray) -> np.ndarray:
        """Bytes that were sent and are not acknowledged."""
        return self.count(times, "send") - self.count(times, "acknowledge")
