"""Exact statistics of a queue of straight lines, against the same lines looked at ten thousand times."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidcc.engines.hybrid import queue
from fluidcc.engines.hybrid.layout import BINS, LOADS
from tests.engines.packet.plain import plain

# Lines (from, to, seconds): within a bin, over the finest bins, over the knee, up and down, flat, from and to nothing.
LINES = [
    (0.0, 0.0, 0.5), (0.0, 100.0, 0.25), (100.0, 30.0, 0.5), (30.0, 5000.0, 1.0), (5000.0, 5000.0, 0.5),
    (5000.0, 300e3, 2.0), (300e3, 60e3, 1.0), (60e3, 65537.0, 0.5), (65537.0, 300e3, 0.25), (300e3, 0.0, 1.5),
]  # fmt: skip
XOFF, ROOM = 100e3, 250e3


def accounted(lines: Any, arriving: float = 50.0) -> Any:
    link = SimpleNamespace(
        area=0.0, area2=0.0, least_in_window=np.inf, most_in_window=0.0, mass=np.zeros(BINS), lowest=0.0,
        bin=int(lines[0][0] // 128),
        density=np.zeros(BINS + 1), idle=np.zeros(LOADS + 2), arriving=arriving, rate=100.0, xoff=XOFF, room=ROOM,
        above_xoff=0.0, above_room=0.0,
    )  # fmt: skip
    for line in lines:
        plain(queue.account)(link, *line)
    return link


def test_edges_are_where_bins_begin() -> None:
    bin_of, edge = plain(queue.bin_of), plain(queue.edge)
    for i in (0, 1, 511, 512, 513, 639, 640, 641, 1000, BINS - 1):
        low, high = edge(i), edge(i + 1)
        assert bin_of(low) == bin_of(0.5 * (low + high)) == i
        if i > 0:
            assert bin_of(np.nextafter(low, 0.0)) == i - 1
        assert low == queue._EDGES[i]
        assert high - low == (128.0 if i < 512 else pytest.approx(low / 128, rel=1.0))
    assert [edge(512), edge(640), edge(768)] == [65536.0, 131072.0, 262144.0]  # each doubling has 128
    assert bin_of(1e300) == BINS - 1


@pytest.mark.parametrize(
    ("line", "share"),
    [((0.0, 10.0), 0.75), ((10.0, 0.0), 0.75), ((3.0, 5.0), 1.0), ((2.5, 2.5), 1.0), ((0.0, 2.5), 0.0)],
)
def test_a_line_is_above_a_level_for_a_share(line: Any, share: float) -> None:
    assert plain(queue.share_above)(*line, 2.5) == share


def test_moments_and_times_are_those_of_many_looks() -> None:
    link = accounted(LINES)
    looks = 10_000
    share = (np.arange(looks) + 0.5) / looks
    lengths = np.concatenate([a + (b - a) * share for a, b, _ in LINES])
    weights = np.concatenate([np.full(looks, span / looks) for *_, span in LINES])
    assert link.area == pytest.approx((weights * lengths).sum(), rel=1e-12)
    assert link.area2 == pytest.approx((weights * lengths**2).sum(), rel=1e-7)
    assert (link.least_in_window, link.most_in_window) == (0.0, 300e3)
    assert link.above_xoff == pytest.approx(weights[lengths > XOFF].sum(), abs=5e-4)
    assert link.above_room == pytest.approx(weights[lengths > ROOM].sum(), abs=5e-4)
    found, times = queue.lengths_of(link, weights.sum())
    assert times.sum() == pytest.approx(weights.sum() - 0.5, rel=1e-9)  # what is idle is apart
    assert (times * found).sum() == pytest.approx(link.area, rel=1e-4)  # to half a bin at most
    for level in (128.0, 1280.0, 65536.0, 131072.0, 262144.0):  # edges of bins
        assert times[found < level].sum() + 0.5 == pytest.approx(weights[lengths < level].sum(), abs=1e-3)
    lowest = weights[(lengths > 0) & (lengths < 128)]
    assert found[0] == pytest.approx((lowest * lengths[(lengths > 0) & (lengths < 128)]).sum() / lowest.sum(), rel=0.01)


@pytest.mark.parametrize(
    ("line", "area"), [((64.0, 640.0), 128**2 - 64**2), ((640.0, 0.0), 128**2), ((200.0, 640.0), 0)]
)
def test_the_first_bin_s_part_of_a_line_is_known_exactly(line: Any, area: float) -> None:
    """Integral of the queue over the time for which it is shorter than 128 bytes; the line takes 2 s."""
    assert accounted([(*line, 2.0)]).lowest == pytest.approx(2.0 * area / 2 / abs(line[1] - line[0]), rel=1e-12)


@pytest.mark.parametrize(("arriving", "load"), [(0.0, 0.0), (50.0, 0.5), (33.3, 0.333), (100.0, 1.0), (130.0, 1.0)])
def test_an_idle_link_is_kept_by_its_load(arriving: float, load: float) -> None:
    """Between two loads by the distance to each, so that the mean is exact."""
    idle = accounted([(0.0, 0.0, 2.0)], arriving).idle
    assert idle.sum() == pytest.approx(2.0)
    assert (idle * np.arange(LOADS + 2)).sum() / LOADS == pytest.approx(2.0 * load)
    assert np.count_nonzero(idle) <= 2


def test_whole_lengths_are_put_into_their_bins() -> None:
    spent, area = queue.in_bins(np.array([0.0, 1.0, 127.0, 128.0, 65536.0, 1e30]), np.arange(1.0, 7.0))
    assert spent[[0, 1, 2, 513, BINS]].tolist() == [1.0, 2.0 + 3.0, 4.0, 5.0, 6.0]
    assert area[[0, 1, 2]].tolist() == [0.0, 2.0 + 3.0 * 127.0, 4.0 * 128.0]
    assert spent.sum() == 21.0
