"""Results of the recursion read off written rates, and incidence of regular networks, link by link."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fluidcc.errors import InputError
from fluidcc.theory.fairness import rates as rates_module
from fluidcc.theory.fairness.rates import _times, decrease_rates, lead_of
from fluidcc.theory.recursion import networks
from fluidcc.theory.recursion.optimal import equilibrium, is_pareto, max_min
from fluidcc.theory.recursion.pareto import step
from fluidcc.theory.recursion.result import Pareto, Repaired, on_path
from fluidcc.theory.recursion.windows import window_limit

TWO = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])


def made(A: Any, C: Any, rates: Any) -> Pareto:
    return Pareto(np.array(A), np.array(C), np.array(rates), "")


def replayed(A: Any, C: Any, begin: Any, steps: int) -> Pareto:
    """Rates by the step alone."""
    rows = [np.array(begin)]
    for _ in range(steps):
        rows.append(step(np.array(A), np.array(C), rows[-1]))
    return made(A, C, rows)


def test_loads_of_written_rates() -> None:
    found = made(TWO, [2.0, 4.0], [[1.0, 1.0, 1.0], [0.5, 1.0, 2.0]])
    assert found.utilization == pytest.approx(np.array([[1.0, 0.5], [0.75, 0.625]]))
    assert found._worst == pytest.approx(np.array([[1.0, 1.0, 0.5], [0.75, 0.75, 0.625]]))
    assert found.final.tolist() == [0.5, 1.0, 2.0]
    assert on_path(TWO, np.array([3.0, 5.0])).tolist() == [[3, 3, 0], [5, 0, 5]]


def test_the_last_row_that_tells_something() -> None:
    """That with a gap above 10^-12 on some path: in floats; in fractions any gap, and the first row never counts."""
    A, C = np.eye(2), np.ones(2)
    for gap, row in ((2e-12, 2), (-2e-12, 2), (0.5e-12, 0), (0.0, 0)):
        found = made(A, C, [[5.0, 1.0], [1.0, 1.0], [1.0 + gap, 1.0], [1.0, 1.0]])
        assert found._row == row
    exact = [[Fraction(each) for each in row] for row in ((1, 1), (Fraction(10**15 - 1, 10**15), 1), (1, 1))]
    found = made(A.astype(int), [Fraction(1)] * 2, exact)
    assert (found.exact, found._row) == (True, 1)


def test_equals_are_told_apart_by_the_way() -> None:
    """Two links are as full as each other at the begin; the one more loaded in the first step limits the path."""
    way = [[1.0, 1.0, 1.0], [1.0, 1.0, 1 + 1e-12], [1.0, 1.0, 1 - 1.6e-12]]
    assert made(TWO, [2.0, 2.0], way).bottleneck.tolist() == [1, 0, 1]
    way[1][2] = 1 - 1e-12
    assert made(TWO, [2.0, 2.0], way).bottleneck.tolist() == [0, 0, 1]
    # After three steps that tell something, the sum of all three.
    way = [[9.0, 0, 0], [1.0, 1.0, 0.7], [1.0, 0.9, 1.0], [1.0, 1.0, 1.0 - 1e-11], [1.0, 1.0, 1.0]]
    assert made(TWO, [2.0, 2.0], way).bottleneck.tolist()[1:] == [0, 1]


def test_links_limit_paths_to_rounding() -> None:
    way = [[1.0, 1.0, 1.0 - 1e-15]] * 2
    assert made(TWO, [2.0, 2.0], way)._bound.tolist() == [[True, True, False], [True, False, True]]
    way = [[1.0, 1.0, 1.0 - 1e-13]] * 2
    assert made(TWO, [2.0, 2.0], way)._bound.tolist() == [[True, True, False], [False, False, True]]


def test_the_published_network_approaches_its_limit_by_a_quarter() -> None:
    """Path 0 is limited by link 0, whose rates are 1/2 each: a quarter of link 1, which path 2 fills."""
    found = replayed(TWO, [1.0, 2.0], [1.0, 1.0, 1.0], 12)
    assert found.bottleneck.tolist() == [0, 0, 1]
    assert found.asymptotic_rate == pytest.approx(0.25)
    assert found.settled_after is None
    assert found.limit == pytest.approx([0.5, 0.5, 1.5])
    gaps = 1.5 - found.rates[5:9, 2]
    assert gaps[1:] / gaps[:-1] == pytest.approx(0.25, abs=1e-3)


def test_one_link_settles_in_a_step() -> None:
    found = replayed(np.ones((1, 3)), [6.0], [1.0, 2.0, 9.0], 4)
    assert (found.settled_after, found.asymptotic_rate) == (1, 0.0)
    assert found.limit == pytest.approx([0.5, 1.0, 4.5])
    assert replayed(np.ones((1, 2)), [6.0], [2.0, 4.0], 4).settled_after == 0
    assert replayed(np.ones((1, 2)), [6.0], [2.0, 4.0], 1).settled_after == 0
    three = replayed(np.array([[1.0, 1, 0], [1, 0, 1], [0, 0, 1]]), [1.0, 2.0, 9.0], [1.0, 1.0, 1.0], 60)
    assert three.settled_after is None  # though rounding makes it stop
    assert three.asymptotic_rate == pytest.approx(0.25)


def test_a_last_gap_that_closes_at_once_has_settled() -> None:
    """With foreign load of a quarter: below an eighth of the gap before it has, above it has not."""
    for left, settled in ((0.1e-12, 2), (0.9e-12, None)):
        gap = 4e-12
        way = [[0.5, 0.5, 1.0], [0.5, 0.5, 1.5 - 2 * gap], [0.5, 0.5, 1.5 - 2 * left]]
        found = made(TWO, [1.0, 2.0], way)
        assert (found._row, found.settled_after) == (1, settled)
    way = [[0.5, 0.5, 1.0], [0.5, 0.5, 1.3]]
    assert made(TWO, [1.0, 2.0], way).settled_after is None  # it moves in the last row


def test_the_limit_fills_what_settled_paths_leave() -> None:
    """In proportion to the rates, the most loaded link first: 2 : 1 on link 0, the rest of link 1 as 1 : 3."""
    A = np.array([[1.0, 1, 0, 0], [0, 1, 1, 1]])
    found = made(A, [3.0, 5.0], [[2.0, 1.0, 1.0, 3.0 - 1e-3]] * 2)
    assert found.limit == pytest.approx(np.array([2.0, 1.0, 4 / (4 - 1e-3), 4 * (3 - 1e-3) / (4 - 1e-3)]))
    repaired = Repaired(A, np.array([3.0, 5.0]), np.zeros((4, 4)), "")
    assert repaired.settled_after == 3


def links_of(network: networks.Network) -> list[list[int]]:
    return [np.flatnonzero(column).tolist() for column in network.A.T]


def test_rows_of_links() -> None:
    assert links_of(networks.linear(3, 2.0)) == [[0, 1, 2], [0], [1], [2]]
    assert links_of(networks.parking_lot(3)) == [[0, 1, 2], [1, 2], [2]]
    assert networks.linear(3, 2.0).C.tolist() == [2.0] * 3
    assert networks.parking_lot(2, 5.0).C.tolist() == [5.0] * 2
    assert links_of(networks.star(3)) == [[0, 4], [0, 5], [1, 3], [1, 5], [2, 3], [2, 4]]
    assert links_of(networks.star(3, [(2, 0)], 4.0)) == [[2, 3]]
    assert networks.star(3, [(2, 0)], 4.0).C.tolist() == [4.0] * 6


@pytest.mark.parametrize(("leaves", "spines", "per_leaf"), [(3, 2, 4), (2, 5, 3)])
def test_paths_of_leaves_and_spines_join(leaves: int, spines: int, per_leaf: int) -> None:
    """Up from a host, its leaf's link to a spine, that spine's link to the other leaf, and down to a host there."""
    network = networks.leaf_spine(leaves, spines, per_leaf, paths=300, seed=3, host_capacity=2.0, fabric_capacity=5.0)
    hosts, fabric = leaves * per_leaf, leaves * spines
    assert network.C.tolist() == [2.0] * (2 * hosts) + [5.0] * (2 * fabric)
    used, pairs = set(), set()
    for path in links_of(network):
        up, down, *between = path
        assert up < hosts <= down < 2 * hosts
        s, d = up, down - hosts
        assert s != d
        pairs.add((s, d))
        if s // per_leaf == d // per_leaf:
            assert between == []
            continue
        out, back = (link - 2 * hosts for link in between)
        assert out < fabric <= back
        assert out // spines == s // per_leaf
        assert (back - fabric) // spines == d // per_leaf
        assert out % spines == back % spines
        used.update((out, back))
    assert len(used) == 2 * fabric
    assert len(pairs) > hosts


@pytest.mark.parametrize("k", [2, 4, 6])
def test_paths_of_a_fat_tree_join(k: int) -> None:
    """Two, four or six links, each up and back: over one aggregation switch of the edge's pod, and one core."""
    network = networks.fat_tree(k, paths=600, seed=5, capacity=3.0)
    half, hosts = k // 2, k**3 // 4
    assert network.C.tolist() == [3.0] * (6 * hosts)
    used: set[int] = set()
    for path in links_of(network):
        used.update(path)
        tiers = [link // hosts for link in path]
        at = [link % hosts for link in path]
        s, d = at[0], at[1]
        edges = s // half, d // half
        pods = edges[0] // half, edges[1] // half
        assert tiers == [0, 1, 2, 3, 4, 5][: 2 if edges[0] == edges[1] else 4 if pods[0] == pods[1] else 6]
        if len(path) < 4:
            continue
        assert (at[2] // half, at[3] // half) == edges
        u = at[2] % half
        assert at[3] % half == u
        if len(path) == 6:
            assert (at[4] // half, at[5] // half) == (pods[0] * half + u, pods[1] * half + u)
            assert at[4] % half == at[5] % half
    assert len(used) > 0.9 * 6 * hosts - (2 * hosts if k == 2 else 0)


def test_key_numbers_are_of_the_first_and_the_last_time() -> None:
    """Ratios by rule, and the lead of the fastest over the slowest, in the settings that the run had."""
    times = [0.0, 50e-6, 200e-6]
    run = decrease_rates(["4GB/s", "1GB/s", "8GB/s"], rtt="40us", acks=20, mtu="2KB", beta=0.25, times=times)
    found = run.summary()
    x = 0.25 * 200e-6 / 40e-6
    loads = np.array([8e9, 1e9]) * 40e-6 / (20 * 2000)
    ends = np.array([8e9, 1e9]) / (1 + loads * x)
    assert (found["ratio_at_start"], found["ratio_per_rtt"]) == (pytest.approx(8.0), pytest.approx(8.0))
    assert found["ratio_sampling"] == pytest.approx(ends[0] / ends[1])
    assert found["ahead_at_first"] is True
    lead = lead_of(np.array([4e9, 1e9, 8e9]), rates_module.Decrease(20, 2000, 40e-6, 0.25))
    assert found["peak_s"] == pytest.approx(float(lead.peak_time))
    assert found["sign_change_s"] == pytest.approx(float(lead.sign_change))
    data = run.dataset
    fallen = np.exp(-0.25 * 50e-6 / 40e-6)
    assert data.rate.values[0, 1] == pytest.approx(np.array([4e9, 1e9, 8e9]) * fallen)
    assert data.difference.values[0, 1] == pytest.approx(7e9 * fallen)
    assert data.lead.values == pytest.approx(data.difference.values[0] - data.difference.values[1])


def test_times_ascend_from_0_to_where_rates_are_no_floats() -> None:
    assert _times([0.0, 1.0, 3.0], 3.0).tolist() == [0.0, 1.0, 3.0]
    assert _times([0.5, 1.0], 3.0).tolist() == [0.5, 1.0]
    for given in ([0.0], [0.0, 0.0], [1.0, 0.5], [-0.1, 1.0], [0.0, 3.1], [[0.0, 1.0]]):
        with pytest.raises(InputError, match="times"):
            _times(given, 3.0)


def test_default_times_end_a_fifth_after_the_change_of_sign() -> None:
    """Ten r / beta where there is none, and 700 r / beta at the latest."""
    for fast, slow in (("100Gbps", "50Gbps"), ("3Gbps", "2Gbps")):
        run = decrease_rates([fast, slow], rtt="30us", acks=30, mtu="1KB", beta=0.5)
        change = run.summary()["sign_change_s"]
        end = 1.2 * change if np.isfinite(change) else 10 * 30e-6 / 0.5
        assert run.dataset.time.values[[0, -1]] == pytest.approx([0.0, end])
        assert run.dataset.sizes["time"] == 2001
    with pytest.raises(InputError, match="as fair as can be"):
        decrease_rates(["1Gbps", "1Gbps"])


# -- a burst behind a limit on the bytes in flight ----------------------------------------------------------------


def burst(sources: int, background: float, target: float, limited: bool, departure: bool, parts: int) -> Any:
    """A.4 by pieces of what one source sends: each knows the queue behind it, and when it is acknowledged.

    Returns the queue and the window at each step, what is sent in it, and the last piece of the first round trip.
    """
    h, level, window, total = 1 / parts, 0.0, 1.0, 0.0
    pieces: list[dict[str, float]] = []
    queues, windows, sent = [0.0], [1.0], [0.0]
    heard, seen = 0, 1.0
    while heard < parts:
        now = len(pieces) * h
        while heard < len(pieces) and pieces[heard]["left"] + 1 <= now + h / 2:
            piece = pieces[heard]
            if piece["bytes"] > 0:
                at = piece["left"] if departure else (heard + 1) * h
                seen = queues[round(at / h)] + 1
                window = min(1.0, target / seen)
            heard += 1
        acked = sum(piece["bytes"] for piece in pieces[:heard])
        room = window - (total - acked) if limited else window * h
        amount = min(h, max(room, 0.0))
        total += amount
        level = max(0.0, level + sources * amount + background * h - h)
        pieces.append({"bytes": amount, "left": now + h + level})
        queues.append(level)
        windows.append(window)
        sent.append(total)
    return queues, windows, sent, pieces[parts - 1]["left"], seen


@pytest.mark.parametrize(("sources", "background", "target"), [(2, 0.5, 1.0), (3, 0.0, 0.95), (1, 0.25, 1.0)])
@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("stamp", ["arrival", "departure"])
def test_a_burst_piece_by_piece(sources: int, background: float, target: float, limited: bool, stamp: str) -> None:
    """Queue that a packet reports, when it is heard, and the room in its window; in line rates and base RTTs."""
    options: dict[str, Any] = {"background": background, "target": target, "limited": limited, "stamp": stamp}
    found = window_limit(sources, **options, resolution=8)
    queues, windows, sent, left, seen = burst(sources, background, target, limited, stamp == "departure", 8)
    assert found.queue == pytest.approx(queues)
    assert found.window == pytest.approx(windows)
    assert found.sent == pytest.approx(sent)
    assert found.time == pytest.approx(np.arange(len(sent)) / 8)
    assert (found.peak_queue, found.last_rtt) == (pytest.approx(max(queues)), pytest.approx(left))
    assert (found.last_utilization, found.last_window) == (pytest.approx(seen), pytest.approx(windows[-1]))
    assert found.sent_after_burst == pytest.approx(sent[-1] - sent[8])
    assert found.queue[:9] == pytest.approx((sources + background - 1) * np.arange(9) / 8)


def test_a_burst_needs_a_queue() -> None:
    """More than the link carries; the least resolution is two steps."""
    with pytest.raises(InputError, match="no queue"):
        window_limit(1, background=0.0)
    assert window_limit(1, background=0.01, resolution=2).peak_queue == pytest.approx(0.01)
    for options in ({"resolution": 1}, {"sources": 0}, {"background": -0.1}, {"target": 0.0}, {"stamp": "late"}):
        with pytest.raises(InputError):
            window_limit(**{"sources": 2} | options)  # type: ignore[arg-type]


# -- networks by chance -------------------------------------------------------------------------------------------


def test_networks_by_chance_use_links_with_the_density() -> None:
    """Each path a link at least; capacities are whole numbers from 1 to 10, and one network has no leading axis."""
    many = networks.random(5, 40, seed=2, count=50, density=0.3)
    assert (many.A.shape, many.C.shape) == ((50, 5, 40), (50, 5))
    assert many.A.mean() == pytest.approx(0.3 + 0.7**5 / 5, abs=0.01)
    assert many.A.sum(axis=1).min() == 1
    assert sorted(set(many.C.ravel().tolist())) == list(range(1, 11))
    one = networks.random(5, 40, seed=2, density=0.3)
    assert (one.A.shape, one.C.shape) == ((5, 40), (5,))
    for density, links in ((0.0, 1), (1.0, 5)):
        A = networks.random(5, 40, seed=3, density=density).A
        assert set(A.sum(axis=0)) == {links}
        assert A.any(axis=1).all()


def test_pairs_by_chance_are_of_two_hosts() -> None:
    """All pairs equally often."""
    found = networks._random_pairs(np.random.default_rng(0), 3, 6000)
    counts = {pair: found.count(pair) for pair in set(found)}
    assert set(counts) == {(s, d) for s in range(3) for d in range(3) if s != d}
    assert all(abs(count - 1000) < 150 for count in counts.values())
    assert len(networks._random_pairs(np.random.default_rng(0), 2, 5)) == 5
    with pytest.raises(InputError, match="two ends"):
        networks._random_pairs(np.random.default_rng(0), 1, 5)
    for bad in ((0, 0), (0, 3), (-1, 0), (0, 1, 2)):
        with pytest.raises(InputError, match=r"pairs\[1\]"):
            networks.star(3, [(0, 1), bad])  # type: ignore[list-item]


def test_a_path_names_links_that_there_are() -> None:
    network = networks.from_paths([[2, 0], np.array([1])], [1.0, 2.0, 3.0])  # type: ignore[list-item]
    assert network.A.tolist() == [[1, 0], [0, 1], [1, 0]]
    for paths, what in (([[0], [-1]], "no link -1"), ([[0], [3]], "no link 3"), ([[0.0]], "no link"), ([[1], []], "1")):
        with pytest.raises(InputError, match=what):
            networks.from_paths(paths, [1.0, 2.0, 3.0])  # type: ignore[arg-type]


# -- optima -------------------------------------------------------------------------------------------------------


def test_rates_that_waste_or_exceed_are_not_pareto_optimal() -> None:
    """To a millionth of a share, of links of any size; nothing below 0."""
    A, C = TWO, np.array([1e9, 4e3])
    assert is_pareto(A, C, [1e3, 1e9 - 1e3, 3e3])
    assert is_pareto(A, C, [1e3, 1e9 - 1e3, 3e3 - 1e-3])
    assert not is_pareto(A, C, [1e3, 1e9 - 1e3, 3e3 - 1e-2])
    assert not is_pareto(A, C, [1e3, 1e9 - 1e3 - 1e4, 3e3])
    assert is_pareto(A, C, [1e3, 1e9 - 1e3, 3e3 + 1e-3])
    assert not is_pareto(A, C, [1e3, 1e9 - 1e3, 3e3 + 1e-2])
    assert not is_pareto(A, C, [-1.0, 1e9 + 1, 4e3 + 1])


def test_where_additive_increase_settles_by_hand() -> None:
    """Alone on a link R = Ut C + a; beside the settled rates of a narrow link R solves (F + R)(R - a) = Ut C R."""
    assert equilibrium([[1.0, 1, 1]], [60.0], increase=2.0, target=0.9) == pytest.approx([0.9 * 60 / 3 + 2] * 3)
    found = equilibrium(TWO, [10.0, 100.0], increase=2.0, target=0.9)
    F = 0.9 * 10 / 2 + 2
    assert found[:2] == pytest.approx([F, F])
    assert (F + found[2]) * (found[2] - 2) == pytest.approx(0.9 * 100 * found[2])
    assert found[2] > 2
    assert max_min(TWO, [10.0, 100.0]) == pytest.approx([5, 5, 95])
    assert equilibrium(TWO, [10.0, 100.0], increase=0.0, target=0.5) == pytest.approx([2.5, 2.5, 47.5])
