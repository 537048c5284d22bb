"""INT headers: what a sender reads from them is the difference of the counters, to their units, whatever wraps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.engines.packet import telemetry
from fluidcc.engines.packet.build import PreparedRun, prepare
from fluidcc.engines.packet.layout import PS
from fluidcc.engines.packet.run import execute, times_of
from fluidcc.engines.packet.telemetry import EXACT, IFA, QUANTISED
from fluidcc.scenario.model import resolve


def plain(function: Any) -> Any:
    """The Python function of a compiled one."""
    return getattr(function, "py_func", function)


bytes_between, seconds_between = plain(telemetry.bytes_between), plain(telemetry.seconds_between)
queue_read = plain(telemetry.queue_read)


class Stamp(NamedTuple):
    """What a port knows as a packet leaves: times [ps], bytes."""

    came: int
    left: int
    sent: int
    queue: int


def ifa_words(device: int, speed: int, egress: int, ingress: int, port: Stamp) -> list[int]:
    """Eight words of 32 bits, as the slides' table has them; the clock counts whole nanoseconds."""
    came, left = port.came // 1000, port.left // 1000
    return [
        1 << 28 | (device & 0xFFFFF) << 8,
        (speed & 0xF) << 28 | came // 10**9 & 0xFFFFF,
        (egress & 0xFFFF) << 16 | ingress & 0xFFFF,
        came % 10**9,
        left - came & 0xFFFFFFFF,
        port.sent & 0xFFFFFFFF,
        min(port.queue // 80, 0xFFFFFF),
        0,
    ]


def ifa_read(new: list[int], old: list[int]) -> tuple[int, float, int]:
    """Bytes and seconds between two stamps, and the smaller queue: a sender's arithmetic on the words."""
    left = [(words[1] & 0xFFFFF) * 10**9 + words[3] + words[4] for words in (new, old)]
    nanoseconds = (left[0] - left[1]) % (10**9 << 20)
    return (new[5] - old[5]) & 0xFFFFFFFF, nanoseconds * 1e-9, min(new[6] & 0xFFFFFF, old[6] & 0xFFFFFF) * 80


stamps = st.builds(
    lambda came, residence, sent, queue: Stamp(came, came + residence, sent, queue),
    st.integers(0, 2**62),
    st.integers(0, 4 * PS),  # residence times have 32 bits of ns
    st.integers(0, 2**50),
    st.integers(0, 1 << 30),
)


@given(stamps, st.integers(0, 2**32 - 1), st.integers(0, 2**55), st.integers(0, 2**20 - 1), st.integers(0, 2**16 - 1))
def test_ifa_words_tell_the_differences(old: Stamp, sent: int, later: int, device: int, port: int) -> None:
    """From any start, as long as less than 4 GiB lie between two stamps; times to 1 ns, queues to 80 B."""
    new = Stamp(old.came + later, old.left + later, old.sent + sent, old.queue // 2)
    words = [ifa_words(device, 9, port, 3, each) for each in (new, old)]
    assert all(0 <= word < 1 << 32 for each in words for word in each)
    assert (words[0][0] >> 8 & 0xFFFFF, words[0][2] >> 16) == (device, port)
    read = ifa_read(*words)
    assert read[0] == sent == bytes_between(IFA, 1, new.sent, old.sent)
    assert read[1] == seconds_between(IFA, new.left, old.left) == pytest.approx(later / PS, abs=1.001e-9, rel=1e-12)
    assert read[2] == queue_read(IFA, 1, min(new.queue, old.queue))
    assert 0 <= new.queue - read[2] < 80


@given(
    stamps, st.integers(0, 2**20 - 1), st.integers(0, (2**24 - 1) * 1000), st.integers(0, 127), st.sampled_from([1, 4])
)
def test_hpcc_words_tell_the_differences(old: Stamp, units: int, later: int, fixed_point: int, multi: int) -> None:
    """As long as less than 2^20 units and 2^24 ns lie between: bytes to a unit, times to 1 ns (HPCC, Fig. 7)."""
    unit = 128 * multi
    new = Stamp(old.came + later, old.left + later, old.sent + units * unit + fixed_point, old.queue)
    sent = bytes_between(QUANTISED, multi, new.sent, old.sent)
    carried = (new.sent // unit - old.sent // unit) >= 1 << 20  # the rest may make it one unit too many
    assert carried or abs(sent - (new.sent - old.sent)) < unit
    if later // 1000 < 2**24 - 1:
        assert seconds_between(QUANTISED, new.left, old.left) == pytest.approx(later / PS, abs=1.001e-9)
    read = queue_read(QUANTISED, multi, old.queue)
    assert read == min(old.queue // (80 * multi), 2**17 - 1) * 80 * multi


@given(stamps, st.integers(0, 2**50), st.integers(0, 2**50), st.sampled_from([1, 4]))
def test_hpcc_words_are_all_that_is_read(old: Stamp, sent: int, later: int, multi: int) -> None:
    """Of any two stamps, what lies between is that of their fields: 20 bits of 128 B, 24 bits of whole ns, each cut."""
    unit = 128 * multi
    words = [(at // unit % 2**20, time // 1000 % 2**24) for at, time in
             ((old.sent, old.left), (old.sent + sent, old.left + later))]  # fmt: skip
    units, nanoseconds = (words[1][0] - words[0][0]) % 2**20, (words[1][1] - words[0][1]) % 2**24
    assert bytes_between(QUANTISED, multi, old.sent + sent, old.sent) == units * unit
    assert seconds_between(QUANTISED, old.left + later, old.left) == nanoseconds * 1e-9


@given(stamps, st.integers(0, 2**40), st.integers(0, 2**60))
def test_exact_is_exact(old: Stamp, sent: int, later: int) -> None:
    assert bytes_between(EXACT, 1, old.sent + sent, old.sent) == sent
    assert seconds_between(EXACT, old.left + later, old.left) == later * 1e-12
    assert queue_read(EXACT, 1, old.queue) == old.queue


def planned(until: float = 1e-3, flows: int = 16, **options: Any) -> PreparedRun:
    scenario = resolve(fc.incast(flows, rate="100Gbps", scheme=fc.HPCC(**options)))
    return prepare(scenario, times_of(scenario, until, None, None), 0)


@pytest.mark.parametrize(("form", "wraps_at"), [("ifa", 2**32), ("quantised", 2**20 * 128)])
def test_counters_wrap_unnoticed(form: str, wraps_at: int) -> None:
    """The counter starts 1 MB before its field wraps (80 us at 100 Gb/s): the same run, bit for bit."""
    runs = []
    for start in (0, wraps_at - 2**20):
        plan = planned(int_format=form)
        plan.sim.ports["sent"] += start
        sim, _ = execute(plan, 0)
        assert start == 0 or sim.ports[0].sent > wraps_at
        runs.append(sim.flow_samples)
    np.testing.assert_array_equal(*runs)


def test_ifa_controls_as_exact_telemetry_does() -> None:
    """16-to-1 at 100 Gb/s. A packet's 83 ns are read to 1 ns and its queue to 80 B, neither with a bias over many.

    Utilisation within 0.5 %, the mean queue within a packet, the burst at the start within 1 %.
    """
    found = {}
    for form in ("exact", "ifa"):
        scheme = fc.HPCC(int_format=form, int_bytes="168B")
        found[form] = fc.simulate(fc.incast(16, rate="100Gbps", scheme=scheme), "10ms", engine="packet").summary
    exact, ifa = found["exact"], found["ifa"]
    assert ifa["utilisation"] == pytest.approx(exact["utilisation"], rel=0.005)
    assert ifa["queue_bytes"]["mean"] == pytest.approx(exact["queue_bytes"]["mean"], abs=1168)
    assert ifa["queue_bytes"]["max_whole_run"] == pytest.approx(exact["queue_bytes"]["max_whole_run"], rel=0.01)
    assert ifa["jain"] == pytest.approx(exact["jain"], abs=0.01)


def test_telemetry_takes_its_room_on_the_wire() -> None:
    """Eight words a switch and two headers of a word: five switches take 168 B where HPCC's header takes 42 B."""
    rates = [
        sum(
            fc.simulate(
                fc.incast(2, rate="100Gbps", scheme=fc.HPCC(int_format=form, int_bytes=room)), "2ms", engine="packet"
            ).summary["goodput_bytes_per_s"]
        )
        for form, room in (("quantised", "42B"), ("ifa", "168B"))
    ]
    assert rates[1] / rates[0] == pytest.approx(1042 / 1168, rel=0.01)
