"""The headroom t_flight of DCQCN's section 4: its parts by hand, and a count of frames that knows nothing of them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from fluidcc.proofs.dcqcn import headroom


def test_parts_by_hand():
    """300 m of fibre at 5.13 ns/m are 1539 ns, or 7695 B at 40 Gb/s, each way; 60 quanta are 60 x 64 B."""
    assert headroom.parts(300, 60) == {
        "begun_here": 1538,
        "pause": 84,
        "cable_there": 7695,
        "response": 3840,
        "begun_there": 1538,
        "cable_back": 7695,
    }
    assert headroom.t_flight(300, 60) == 22_390
    assert headroom.t_flight(300, 60, framing=0, pause=64) == 22_390 - 2 * 38 - 20
    # A cable only one way, or a quantum of 512 bytes, would be noticed.
    assert headroom.t_flight(400, 60) - headroom.t_flight(300, 60) == 2 * 2565
    assert headroom.t_flight(300, 118) - headroom.t_flight(300, 60) == 58 * 64


@pytest.mark.parametrize(("out", "phase"), [(0, 0), (1, 0), (700, 1400), (1537, 3)])
def test_count_of_frames_byte_by_byte(out, phase):
    """One frame of the other side after the other, each byte's arrival looked at by itself."""
    decided, one_way, frame = 0, 2565, 1538
    pause_heard = decided + frame - out + 84 + one_way
    arrived = 0
    for begin in range(phase - 20 * frame, pause_heard + 3840 + 1, frame):
        arrived += sum(byte + one_way >= decided for byte in range(begin, begin + frame))
    assert headroom.counted(100, 60)[out, phase] == arrived


def test_the_condition_is_the_sum_that_gives_the_printed_number():
    """Had the paper printed 26.1 KB, 40 Gb/s's own 118 quanta would be meant."""
    ours, other = headroom.flight(), headroom.flight(printed="26.1")
    assert ours.conditions.startswith("300 m of fibre, and a port that obeys within 60 quanta")
    assert other.conditions.startswith("300 m of fibre, and a port that obeys within 118 quanta")
    assert ours.verdict == other.verdict == "holds-with-conditions"
    assert ours.evidence["t_pfc_with_the_largest_bytes"] == Fraction(12_000_000, 256) - 26_102
