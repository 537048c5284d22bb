"""Closed-loop traffic: who follows whom, that there is enough, and that smaller draws are part of larger ones."""

from __future__ import annotations

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.builders.workloads import SIZES

LINE = 5e9


def test_each_transfer_waits_for_the_last_of_its_pair() -> None:
    rows = fc.fabrics.pair_flows(20, pairs=30, until="20ms", rate="40Gbps", seed=4)
    assert [row[4] for row in rows].count(()) == 30
    for i, (source, target, start, size, after) in enumerate(rows):
        assert source != target
        assert size >= 1
        if after:
            assert after == (i - 1,)
            assert rows[i - 1][:2] == (source, target)
            assert start == 0
        else:
            assert 0 <= start < 2e-3


def test_no_pair_runs_dry() -> None:
    """At line rate all the time a pair would still send at the end: with one transfer less it would not."""
    rows = fc.fabrics.pair_flows(8, pairs=12, until="5ms", rate="40Gbps", sizes="alibaba-storage", seed=1)
    firsts = [i for i, row in enumerate(rows) if row[4] == ()]
    for a, b in zip(firsts, [*firsts[1:], len(rows)], strict=True):
        sizes = [row[3] for row in rows[a:b]]
        assert sum(sizes) >= 5e-3 * LINE > sum(sizes[:-1])


def test_senders_take_turns() -> None:
    rows = fc.fabrics.pair_flows(20, pairs=40, until="1ms", rate="40Gbps", seed=2)
    sources = [row[0] for row in rows if row[4] == ()]
    assert sorted(sources[:20]) == list(range(20))
    assert sources[20:] == sources[:20]


def test_sizes_are_the_workloads() -> None:
    at, share = np.array(SIZES["web-search"]).T
    rows = fc.fabrics.pair_flows(20, pairs=200, until="40ms", rate="40Gbps", seed=5)
    # The first of each pair alone: how many follow depends on their sizes.
    drawn = [row for seed in range(20) for row in fc.fabrics.pair_flows(20, pairs=100, until="1us", seed=seed)]
    sizes = np.array([row[3] for row in drawn if row[4] == ()])
    np.testing.assert_allclose([np.mean(sizes <= size) for size in at], share, atol=4 * 0.5 * len(sizes) ** -0.5)
    assert len(rows) > 200 * 50


def test_smaller_draws_are_part_of_larger_ones() -> None:
    few, many = (fc.fabrics.pair_flows(20, pairs=pairs, until="2ms", rate="40Gbps", seed=3) for pairs in (5, 80))
    assert many[: len(few)] == few
    assert fc.fabrics.pair_flows(20, pairs=5, until="2ms", rate="40Gbps", seed=9) != few
    two, ten = (
        fc.fabrics.rebuild_flows(20, senders=senders, until="2ms", rate="40Gbps", seed=3) for senders in (2, 10)
    )
    assert np.array_equal(ten[:2], two)
    assert len(set(ten[:, 1])) == 1
    assert len(set(ten[:, 0]) | set(ten[:, 1])) == 11
    assert (ten[:, 3] == 2e-3 * LINE).all()
    assert (ten[:, 2] == 0).all()


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: fc.fabrics.pair_flows(20, pairs=0, until="1ms"), "pairs"),
        (lambda: fc.fabrics.pair_flows(20, pairs=3, until="0s"), "until"),
        (lambda: fc.fabrics.pair_flows(20, pairs=3, until="1ms", sizes="none"), "sizes"),
        (lambda: fc.fabrics.rebuild_flows(8, senders=8, until="1ms"), "rebuild: 8 senders and a receiver"),
    ],
)
def test_bad_values_are_refused(make, word) -> None:
    with pytest.raises(fc.InputError, match=word):
        make()
