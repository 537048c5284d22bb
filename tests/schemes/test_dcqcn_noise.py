"""Noise of one DCQCN flow: gaps between CNPs, pieces of Fig. 7 by hand, and their spectrum against drawn ones."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import NoClosedFormError
from fluidcc.scenario.model import resolve
from fluidcc.schemes.dcqcn.noise import Gap, Pieces, noise

RATE, ALPHA, PACKET, MARKING = 2.5e9, 0.1, 1000.0, 7.8e-4  # 20 Gb/s; lambda tau is about 0.1


def pieces(scheme: fc.DCQCN, marking: float = MARKING) -> Pieces:
    """With quantities in text as numbers."""
    plain = resolve(fc.incast(1, scheme=scheme)).flows[0].scheme
    return noise(plain, {"rate": RATE, "alpha": ALPHA}, marking, PACKET)


def drawn_gaps(least: float, intensity: float, count: int) -> np.ndarray:
    """Fig. 6 step by step: a mark is answered at once, or at the end of the interval of the CNP before."""
    rng = np.random.default_rng(1)
    marks = np.cumsum(rng.exponential(1 / intensity, 8 * count))
    cnps, free = [], 0.0
    for mark in marks:
        if cnps and mark < cnps[-1]:  # its CNP is already due
            continue
        cnps.append(max(mark, free))
        free = cnps[-1] + least
    return np.diff(cnps)[:count]


@pytest.mark.parametrize("often", [0.1, 1.0, 3.0])
def test_gaps_are_those_of_the_notification_point(often: float) -> None:
    """Mean and variance within four standard errors of 20 000 drawn ones; the transform at three frequencies too."""
    gap, found = Gap(50e-6, often / 50e-6), drawn_gaps(50e-6, often / 50e-6, 20_000)
    assert len(found) == 20_000
    assert gap.mean == pytest.approx(found.mean(), abs=4 * found.std() / np.sqrt(len(found)))
    square = (found - found.mean()) ** 2
    assert gap.variance == pytest.approx(square.mean(), abs=4 * square.std() / np.sqrt(len(found)))
    w = np.array([1e3, 1e4, 1e5])
    assert 1 - gap.shortfall(w) == pytest.approx(np.exp(1j * w[:, None] * found).mean(axis=1), abs=4 / np.sqrt(20_000))
    assert gap.longer(np.zeros(1), w)[:, 0] == pytest.approx(1 - gap.shortfall(w), rel=1e-12)


@pytest.mark.parametrize("often", [1e-6, 0.1, 3.0])
def test_a_count_of_cnps(often: float) -> None:
    """The variance of a count grows by sigma^2/mean^3 per second, which is lambda where tau is nothing."""
    gap = Gap(50e-6, often / 50e-6)
    count = Pieces(gap, np.zeros(1), np.ones((1, 3)))
    slow = count(np.array([1e-4 / gap.mean]))[0, 0, 0]
    assert slow.real == pytest.approx(gap.variance / gap.mean**3, rel=1e-6)
    assert abs(slow.imag) < 1e-9 * slow.real
    if often < 1e-3:
        assert slow.real == pytest.approx(gap.intensity, rel=1e-5)


def test_a_piece_by_hand() -> None:
    """Fig. 7, timer alone: n increases after a cut R_C = R - R a/2 2^-n + R_AI (m - 1 + 2^-m), m = n - F or 0."""
    scheme = fc.DCQCN(byte_counter="1GB")
    found = pieces(scheme)
    sums, ai = np.cumsum(found.jump, axis=0), 5e6
    for n in (0, 1, 4, 5, 6, 9, 30):
        at = np.searchsorted(found.time, (n + 0.5) * 55e-6) - 1
        m = max(n - 5, 0)
        assert sums[at, 0] == pytest.approx(-RATE * ALPHA / 2 * 2.0**-n + ai * (m - 1 + 2.0**-m), rel=1e-9)
        assert sums[at, 1] == sums[at, 0]
        assert ALPHA + sums[at, 2] == pytest.approx((ALPHA + (1 - ALPHA) / 256) * (255 / 256) ** n, rel=1e-12)


def test_the_byte_counter_and_hyper_increase() -> None:
    """A counter that runs out with the rate: twice the events, stages of both kinds; by R_HAI once both are through."""
    one, both = pieces(fc.DCQCN(byte_counter="1GB")), pieces(fc.DCQCN(byte_counter=RATE * 50e-6))
    hyper = pieces(fc.DCQCN(byte_counter=RATE * 50e-6, hyper_increase=True))
    late = 8.2 * 55e-6
    sums = {name: each.jump[each.time < late, 0].sum() for name, each in (("one", one), ("both", both), ("h", hyper))}
    assert sums["one"] < sums["both"] < sums["h"]
    rates = both.jump[both.jump[:, 0] != 0.0]
    assert np.count_nonzero(both.time[both.jump[:, 0] != 0.0] < late) == 1 + 8 + 9
    assert rates[1, 0] == pytest.approx(RATE * ALPHA / 4)


@pytest.mark.parametrize("w", [20.0, 2e3, 1e4])
def test_the_spectrum_is_that_of_drawn_pieces(w: float) -> None:
    """Periodograms of 400 windows of 100 gaps each, within four standard errors: rate, alpha, and both together."""
    found = pieces(fc.DCQCN())
    gaps = drawn_gaps(found.gap.least, found.gap.intensity, 40_000)
    starts = np.cumsum(np.insert(gaps, 0, 0.0))[:-1]
    within = np.searchsorted(found.time, gaps)  # jumps before the next CNP
    turned = np.cumsum(found.jump[:, [0, 2]] * np.exp(-1j * w * found.time)[:, None], axis=0)[within - 1]
    # A drift must go, or a window's ends would show it.
    drift = found.jump[:, [0, 2]].cumsum(axis=0)[within - 1].mean(axis=0) / gaps.mean()
    steady = ((np.exp(-1j * w * gaps) - 1) / (-1j * w))[:, None] * drift
    parts = ((turned - steady) * np.exp(-1j * w * starts)[:, None]).reshape(400, 100, 2).sum(axis=1)
    spans = gaps.reshape(400, 100).sum(axis=1)
    periodogram = parts[:, :, None] * parts[:, None, :].conj() / spans[:, None, None]
    mean, error = periodogram.mean(axis=0), periodogram.std(axis=0) / np.sqrt(400)
    expected = found(np.array([w]))[0][np.ix_([0, 2], [0, 2])]
    assert (np.abs(mean - expected) < 4 * error + 0.02 * np.abs(expected)).all()  # a window's ends: one gap in 100


def test_the_equilibrium_of_the_equations_is_nearly_that_of_the_pieces() -> None:
    """At that of (7)-(9) a flow of the algorithm gains less than 1 % of a cut over a gap, and of a rise of alpha."""
    scenario = resolve(fc.incast(8, rate="160Gbps"))
    row = fc.equilibrium(scenario).flows[0]
    state = {"rate": row["rate_bytes_per_s"], "alpha": row["alpha"]}
    gain = noise(scenario.flows[0].scheme, state, row["marking_probability"], 1000.0).mean()
    assert abs(gain[0]) < 0.01 * state["rate"] * state["alpha"] / 2
    assert abs(gain[2]) < 0.01 / 256


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"clamp_tgt_rate": False}, "clamp_tgt_rate"),
        ({"alpha_update": "slotted"}, "slots"),
        ({"rate_decrease_interval": 60e-6}, "further apart"),
    ],
)
def test_what_is_not_known_is_refused(change: dict[str, object], why: str) -> None:
    with pytest.raises(NoClosedFormError, match=why):
        pieces(dataclasses.replace(fc.DCQCN(), **change))


@pytest.mark.parametrize(("marking", "why"), [(0.0, "chance"), (1.0, "chance"), (1e-9, "rare")])
def test_marks_that_leave_nothing_to_chance(marking: float, why: str) -> None:
    with pytest.raises(NoClosedFormError, match=why):
        pieces(fc.DCQCN(), marking)


def test_jumps_of_alpha_count_too() -> None:
    """A gap of up to 13 ms has 26 000 ends of a timer of 500 ns, though few increases come."""
    with pytest.raises(NoClosedFormError, match="rare"):
        pieces(dataclasses.replace(fc.DCQCN(), alpha_timer="500ns"))
