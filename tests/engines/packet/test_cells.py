"""Marking by the cells of a switch's buffer: packets exactly, all other engines by the size of one packet."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.builders.toml_file import from_toml, to_toml
from fluidcc.engines.fluid.network import network_of
from fluidcc.engines.hybrid.packet_scale import marks, meetings
from fluidcc.engines.packet import layout
from fluidcc.engines.packet import marking as packets
from fluidcc.scenario.model import resolve, resolve_marking, thresholds_in_bytes
from fluidcc.scenario.switches import in_bytes
from tests.engines.packet.plain import plain

RATE = 1.25e9  # bytes/s


def some_flows(cell: Any, *, counts: bool = False, on: str = "arrival") -> fc.Scenario:
    """Six messages of DCTCP whose last packets are short; steps of marking at 8 KB, in which no draw decides."""
    sizes = [f"{40_000 + 1111 * n}B" for n in range(6)]
    marking = fc.RED(8000, 8000, 1.0, mark_on=on, counts_sending=counts, cell=cell)
    return fc.incast(
        6, rate="10Gbps", scheme=fc.DCTCP(), marking=marking, size=sizes, packet_size=1000.0, header_bytes=62.0
    )


def replayed(trace: Any, cell: int, counts: bool, on: str) -> tuple[list[bool], list[bool]]:
    """Marks of the bottleneck's packets as the run has them, and as cells of its log say, packet by packet."""
    told = trace["event_port"].values == "switch -> receiver"
    names = ("time", "what", "kind", "queue", "flow", "end")
    columns = [trace[f"event_{name}"].values[told] for name in names]
    sizes: list[int] = []  # of the packets that wait
    found, expected, marked = [], [], set()
    sending, over = 0, -1.0

    def in_cells(size: int) -> int:
        return math.ceil(size / cell) * cell

    def judge(now: float, packet: Any) -> None:
        seen = sum(map(in_cells, sizes)) + (in_cells(sending) if counts and over > now + 1e-13 else 0)
        expected.append(seen > 8000)
        found.append(packet in marked)

    for time, what, kind, length, flow, end in zip(*columns, strict=True):
        if kind != "data":
            continue
        if what == "mark":
            marked.add((flow, end, time))
        elif what == "enqueue":
            if on == "arrival":
                judge(time, (flow, end, time))
            sizes.append(int(length) - sum(sizes))
        elif what == "transmit":
            sending = sizes.pop(0)
            over = time + sending / RATE
            if on == "departure":
                judge(time, (flow, end, time))
    return found, expected


@pytest.mark.parametrize(
    ("cell", "counts", "on"), [(254, False, "arrival"), (208, True, "arrival"), (150, False, "departure")]
)
def test_a_queue_of_cells_replayed_by_hand_has_the_same_marks(cell: int, counts: bool, on: str) -> None:
    """1062 B are 5 cells of 254 B, 6 of 208 B, 8 of 150 B; short packets leave more of a cell."""
    trace = fc.simulate(some_flows(cell, counts=counts, on=on), "2ms", engine="packet", log=True).dataset
    found, expected = replayed(trace, cell, counts, on)
    assert found == expected
    assert 20 < sum(found) < len(found) - 20
    assert replayed(trace, 1, counts, on)[1] != found  # bytes would mark others


def test_cells_of_a_byte_are_bytes() -> None:
    plain_run, cells = (fc.simulate(some_flows(cell), "1ms", engine="packet", seed=1) for cell in (None, 1))
    assert plain_run.identical(cells) or plain_run.dataset["queue"].equals(cells.dataset["queue"])
    other = fc.simulate(some_flows(4000), "1ms", engine="packet", seed=1)
    assert not other.dataset["queue"].equals(cells.dataset["queue"])


def test_a_packet_fills_whole_cells() -> None:
    port = layout.records(layout.PORT, 1)[0]
    port.in_cells, port.cell = 1, 208
    assert [int(plain(packets.cells)(port, size)) for size in (1, 208, 209, 1086, 64)] == [208, 208, 416, 1248, 208]
    port.queues[1].bytes, port.queues[1].cells = 1086, 1248
    assert plain(packets.seen)(port, 1) == 1248
    port.in_cells = 0
    assert plain(packets.seen)(port, 1) == 1086


def test_thresholds_in_bytes_are_fewer_by_what_a_packet_leaves_of_its_cells() -> None:
    red = resolve_marking(fc.RED(12_480, 124_800, 0.1, cell=208))
    found = in_bytes(red, 1086.0)
    assert (found.kmin, found.kmax, found.pmax, found.cell) == pytest.approx((10_860, 108_600, 0.1, None))
    assert in_bytes(found, 1086.0) is found
    assert in_bytes(red, 208.0).kmin == 12_480


def eight(cell: Any, share: float = 1.0) -> fc.Scenario:
    """Eight flows of DCQCN with packets of 210 B, of which each fills two cells of 208 B."""
    marking = fc.RED(40e3 * share, 400e3 * share, 0.2, cell=cell)
    return fc.incast(8, rate="10Gbps", scheme=fc.DCQCN(), marking=marking, packet_size=148.0, header_bytes=62.0)


def test_hybrid_and_packets_count_the_same_cells() -> None:
    """Mean queues within 15 %; bytes alone leave twice as much."""

    def queue(cell: Any, engine: str) -> float:
        return fc.simulate(eight(cell), "60ms", engine=engine, window="30ms:60ms").summary["queue_bytes"]["mean"]

    found = queue(208, "packet")
    assert queue(208, "hybrid") == pytest.approx(found, rel=0.15)
    assert queue(None, "packet") > 1.6 * found


def test_the_equilibrium_is_that_of_thresholds_in_bytes() -> None:
    found, scaled, plain_one = (fc.equilibrium(each) for each in (eight(208), eight(None, 210 / 416), eight(None)))
    assert found.links[0]["queue_bytes"] == pytest.approx(scaled.links[0]["queue_bytes"], rel=1e-9)
    assert found.links[0]["queue_bytes"] == pytest.approx(210 / 416 * plain_one.links[0]["queue_bytes"], rel=1e-3)


def kmin_of(scenario: fc.Scenario) -> tuple[float, float | None]:
    """Kmin and cells of its first link."""
    marking = scenario.links[0].marking
    assert marking is not None
    return marking.kmin, marking.cell


def test_every_engine_is_given_thresholds_in_bytes() -> None:
    scenario = resolve(some_flows(208))
    share = 1062 / 1248
    assert np.ravel(network_of(scenario).kmin)[0] == pytest.approx(8000 * share)
    bytes_alone = thresholds_in_bytes(scenario)
    assert kmin_of(bytes_alone) == (pytest.approx(8000 * share), None)
    assert thresholds_in_bytes(bytes_alone) is bytes_alone
    red = resolve_marking(fc.RED(12_480, 124_800, 0.1, cell=208))
    one, other = (marks(each, meetings(4), 1086.0) for each in (red, in_bytes(red, 1086.0)))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_cells_are_read_and_written() -> None:
    scenario = some_flows("254B")
    assert kmin_of(resolve(scenario)) == (8000, 254.0)
    assert kmin_of(from_toml(to_toml(resolve(scenario)))) == (8000, 254.0)
    for wrong in ("0B", "1.5B", "100KB", "four"):
        with pytest.raises(fc.InputError, match="cell"):
            resolve(some_flows(wrong))
