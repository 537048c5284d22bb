"""IFA's metadata: a port's stamps by hand, the words of a header over their ends, and what U loses without a field."""

from __future__ import annotations

from fractions import Fraction

import pytest

from fluidcc.proofs.hpccpp import ifa
from fluidcc.proofs.hpccpp.ifa import Stamp


def stamp(came: int, left: int, sent: int, queue: int) -> Stamp:
    """A stamp of whole nanoseconds."""
    return Stamp(Fraction(came), Fraction(left), sent, queue)


def test_a_port_by_hand():
    """Three packets of 80 ns that come every 40 ns: each leaves 80 ns after the one before, with those behind it."""
    stamps = ifa.port(((Fraction(2), 3),))
    assert stamps == [stamp(40, 120, 1000, 2000), stamp(80, 200, 2000, 1000), stamp(120, 280, 3000, 0)]
    # 1000 B in 80 ns are the line; over the times of arrival they are twice the line.
    assert ifa.load(stamps[1], stamps[0]) == Fraction(1000, 50_000) + 1
    assert ifa.load(stamps[1], stamps[0], arrivals=True) == Fraction(1000, 50_000) + 2


@pytest.mark.parametrize("before", [0, 10**9 - 100, 2**20 * 10**9 - 100])
def test_words_over_the_ends_of_fields(before):
    """A second, the clock's 2^20 s or txBytes end between two packets, of which the second waited less."""
    old, new = stamp(before, before + 500, 2**32 - 500, 8_000), stamp(before + 200, before + 580, 2**32 + 500, 4_039)
    assert ifa.load_of_words(ifa.words(new), ifa.words(old)) == Fraction(4_000, 50_000) + 1
    assert all(0 <= word < 2**32 for word in ifa.words(new).values())


def test_without_residence_a_queue_that_drains_is_missed():
    """The verdict's point: u' is below eta while packets wait, so a sender would speed up."""
    evidence = ifa.metadata().evidence
    assert evidence["queue_length_drains_bytes"] > 0
    assert evidence["u_drains"] > 1 > 0.95 > evidence["u_without_residence_drains"]
    assert evidence["u_without_residence_grows"] == evidence["u_grows"] + 1
    assert evidence["u_without_residence_stays"] == evidence["u_stays"]
