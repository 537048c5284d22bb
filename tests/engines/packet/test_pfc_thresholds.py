"""At which byte a switch sends PAUSE and RESUME: by hand, and by its buffer's accounts written down once more.

Senders without control, 10 Gb/s into a link of 1 Gb/s: 1000 B come every 0.8 us and leave every 8 us, and a packet is
in the buffer until it begins to leave. Times are compared to the picosecond, and bytes are whole.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import fluidcc as fc

PACKET, NS = 1000, 1000  # bytes; ps
HEADROOM = 20_000


def ran(pfc: fc.PFC, flows: int = 1, buffer: Any = "1MB", until: str = "500us", **options: Any) -> list[Any]:
    """The log: time [ps], what, port, flow."""
    scenario = fc.incast(
        flows, rate="1Gbps", line_rate="10Gbps", scheme=fc.NoControl(), buffer=buffer, pfc=pfc, **options
    )
    trace = fc.simulate(scenario, until, engine="packet", log=True)
    assert trace.summary["drops"] == 0
    columns = (trace.dataset[f"event_{name}"].values for name in ("time", "what", "port", "flow", "kind"))
    return [
        (round(float(time) * 1e12), str(what), str(port), int(flow), str(kind))
        for time, what, port, flow, kind in zip(*columns, strict=True)
    ]


def told(log: list[Any]) -> list[tuple[int, str, int]]:
    """PAUSE and RESUME to senders: time [ps], which, and the sender's number."""
    return [(t, what, int(port.split()[1])) for t, what, port, *_ in log if what in ("pause", "resume")]


# -- by hand -------------------------------------------------------------------------------------------------


def test_a_fixed_threshold_by_hand() -> None:
    """xoff 5 KB: at the sixth arrival five are held. xon_gap 2 KB: at the departure that leaves three.

    The first leaves at once, at 1.8 us, and others at 9.8, 17.8, ... The sixth comes at 6*0.8 + 1 = 5.8 us: PAUSE, of
    64 B, is observed at 6.8512 us, when the ninth is under way. So eight are held, seven after 9.8 us, and three after
    41.8 us: RESUME, observed at 42.8512. The next two come 1.8 and 2.6 us later: five are held again at 45.4512 us. The
    fifth of that train leaves at 46.0512 us, before PAUSE is observed; again eight, and three after 81.8 us.
    """
    found = told(ran(fc.PFC(xoff="5KB", xon_gap="2KB"), until="100us"))
    assert found[:4] == [
        (5_800 * NS, "pause", 0),
        (41_800 * NS, "resume", 0),
        (45_451_200, "pause", 0),
        (81_800 * NS, "resume", 0),
    ]


@pytest.mark.parametrize(("xoff", "held"), [(4999, 5), (5000, 5), (5001, 6), (6000, 6)])
def test_a_pause_at_the_packet_that_reaches_the_threshold(xoff: int, held: int) -> None:
    """Of so many held it is the next arrival, for the first is already leaving."""
    assert told(ran(fc.PFC(xoff=xoff), until="20us"))[0] == ((held + 1) * 800 * NS + 1_000 * NS, "pause", 0)


@pytest.mark.parametrize(("gap", "left"), [(0, 5), (1, 4), (1999, 3), (2000, 3), (2001, 2), (5000, 0), (9000, 0)])
def test_a_resume_at_the_departure_that_leaves_the_gap(gap: int, left: int) -> None:
    """Eight are held at 8.2 us, and so many are left after (8 - left) departures from 9.8 us on."""
    found = told(ran(fc.PFC(xoff=5000, xon_gap=gap), until="100us"))[1]
    assert found == (9_800 * NS + (8 - left - 1) * 8_000 * NS, "resume", 0)


def test_a_dynamic_threshold_by_hand() -> None:
    """Half of what is free of 21 KB: PAUSE at 7 KB, which is half of 14. RESUME 3 KB below: 5 + 3 is half of 16.

    Seven are held at the eighth arrival, at 8*0.8 + 1 us. PAUSE is observed at 8.4512 us, when the eleventh is under
    way; nine of these are held after 9.8 us, and five after 41.8 us.
    """
    pfc, buffer = fc.PFC(alpha=0.5, xon_gap="3KB", headroom=HEADROOM), 21_000 + 2 * HEADROOM
    found = told(ran(pfc, buffer=buffer, until="100us"))
    assert found[:2] == [(7_400 * NS, "pause", 0), (41_800 * NS, "resume", 0)]
    # With one byte more of a gap it takes a departure more: 4 + 3.001 is below half of 17.
    later = told(ran(dataclasses.replace(pfc, xon_gap=3001), buffer=buffer, until="100us"))
    assert later[:2] == [(7_400 * NS, "pause", 0), (49_800 * NS, "resume", 0)]


# -- the accounts once more ----------------------------------------------------------------------------------


class Buffer:
    """Ports with a reserve each, then a shared pool up to a threshold, then headroom of their own, which empties first.

    ``pool`` is what all ports share: the buffer without reserves and headroom.
    """

    def __init__(self, ports: int, pool: int, xoff: int | None, alpha: float, gap: int, reserve: int) -> None:
        self.pool, self.xoff, self.alpha, self.gap, self.reserve = pool, xoff, alpha, gap, reserve
        self.kept, self.beyond, self.paused = [0] * ports, [0] * ports, [False] * ports

    def above(self, i: int) -> int:
        return max(self.kept[i] - self.reserve, 0)

    def threshold(self) -> int:
        if self.xoff is not None:
            return self.xoff
        return int(self.alpha * (self.pool - sum(self.above(i) for i in range(len(self.kept)))))

    def comes(self, i: int) -> str | None:
        with_it = self.kept[i] + PACKET
        if with_it > self.reserve and with_it - self.reserve > self.threshold():
            self.beyond[i] += PACKET
        else:
            self.kept[i] = with_it
        if self.paused[i] or (self.beyond[i] == 0 and self.above(i) < self.threshold()):
            return None
        self.paused[i] = True
        return "pause"

    def leaves(self, i: int) -> str | None:
        if self.beyond[i] > 0:
            self.beyond[i] -= PACKET
        else:
            self.kept[i] -= PACKET
        end_storm = self.beyond[i] == 0 and (self.above(i) == 0 or self.above(i) + self.gap <= self.threshold())
        if not self.paused[i] or not end_storm:
            return None
        self.paused[i] = False
        return "resume"


CASES = {
    # xoff or None, alpha, xon_gap, reserve
    "fixed": (20_000, 0.0, 3_000, 0),
    "between packets": (20_001, 0.0, 0, 0),  # all that is beyond leaves before the RESUME
    "a reserve": (6_000, 0.0, 2_000, 2_500),
    "a gap beyond the threshold": (6_000, 0.0, 25_000, 2_500),  # RESUME when the pool is free of it
    "dynamic": (None, 0.25, 3_000, 0),
    "dynamic with a reserve": (None, 0.25, 1_000, 2_500),
    "all that is free": (None, 1.0, 0, 500),
}


@pytest.mark.parametrize("flows", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_every_pause_and_resume_comes_at_its_byte(case: str, flows: int) -> None:
    """Three senders start 3.3 us apart, the first with a head start; each is paused and resumed by its own account."""
    xoff, alpha, gap, reserve = CASES[case]
    pool = 60_000
    # The receiver's port sends to the switch too: it has headroom and a reserve as well.
    buffer = pool + (flows + 1) * (HEADROOM + reserve)
    pfc = fc.PFC(xoff=xoff, alpha=alpha, xon_gap=gap, headroom=HEADROOM, reserve=reserve)
    log = ran(pfc, flows, buffer, start=[f"{3.3 * i}us" for i in range(flows)])
    ours = Buffer(flows, pool, xoff, alpha, gap, reserve)
    expected = []
    for time, what, port, flow, kind in log:
        if port != "switch -> receiver" or kind != "data" or what not in ("enqueue", "transmit"):
            continue
        says = ours.comes(flow) if what == "enqueue" else ours.leaves(flow)
        if says is not None:
            expected.append((time, says, flow))
    assert told(log) == expected
    assert len(expected) >= 2 * flows
