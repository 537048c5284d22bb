"""All equilibria of DCQCN: equal and unequal shares of a link, found, checked on the fluid, and told apart.

Shapes: one class of flows for equal shares, two for unequal ones.
"""

from __future__ import annotations

import dataclasses
import itertools
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc
from fluidcc.contract.bind import binder
from fluidcc.contract.registry import equilibrium_of
from fluidcc.engines.fluid.network import network_of
from fluidcc.scenario.model import RED, Flow, Link, Scenario, resolve
from fluidcc.schemes.dcqcn import equilibrium as side
from fluidcc.theory.control import equilibrium as fixed_points
from fluidcc.theory.control import shares as module
from fluidcc.theory.control.equilibrium import Equilibrium, equilibria
from fluidcc.theory.control.fixed_point import SAME, same, state_of
from fluidcc.theory.control.local import movement
from fluidcc.theory.control.shares import Sender, _brackets, _suspects, pairs, sizes, triples
from fluidcc.theory.control.states import NoEquilibriumError
from tests.oracles import dcqcn_reference as reference
from tests.shapes import full_columns

__all__ = ["full_columns"]
pytestmark = pytest.mark.usefixtures("full_columns")

GBPS, KB = 1e9 / 8, 1e3
FAST_COUNTER = fc.DCQCN(byte_counter="5KB", timer="10ms")
STILL = 1e-9  # of itself in the shortest delay: the bound on what is an equilibrium


def shared(flows: int = 2, pmax: float | str = "10%", scheme: fc.DCQCN = FAST_COUNTER) -> Scenario:
    return fc.incast(1, multiplicity=flows, marking=RED("5KB", "200KB", pmax), scheme=scheme)


@cache
def shared_by_two(pmax: str = "10%") -> Equilibrium:
    """Found once for all tests that look at it."""
    return fc.equilibrium(shared(pmax=pmax))


def moved(scenario: Scenario, found: Equilibrium) -> float:
    """On the fluid's own right-hand side."""
    classes, _, state = state_of(resolve(scenario), found)
    moves = movement(network_of(classes), state)
    assert moves is not None
    return moves


@pytest.mark.parametrize(("pmax", "queue"), [("10%", 39.14), ("5%", 73.29)])
def test_equal_shares_and_those_beside_them(pmax: str, queue: float) -> None:
    """Marking 0.0175102 at 20 Gb/s each; and 0.0263 at 3.6 and 36.4 Gb/s: digits of an independent computation."""
    found = shared_by_two(pmax)
    as_dict = found.as_dict()
    assert (found.exists, found.on_ramp, found.unique) == (True, True, False)
    assert as_dict["marking_probability"] == pytest.approx(0.0175102, abs=5e-8)
    assert as_dict["rate_bytes_per_s"] == pytest.approx(20 * GBPS, rel=1e-12)
    assert as_dict["queue_bytes"] / KB == pytest.approx(queue, abs=0.005)
    assert found.links[0]["utilisation"] == pytest.approx(1.0, rel=1e-12)
    (other,) = as_dict["others"]
    assert other["marking_probability"] == pytest.approx(0.0265, abs=0.0005)
    assert np.array(other["rate_bytes_per_s"]) / GBPS == pytest.approx([3.6, 36.4], abs=0.05)
    assert "40bps to 40Gbps" in as_dict["searched"]


def test_each_is_one_by_the_equations_as_printed() -> None:
    """(7)-(9) in plain floats, apart from fluid and solver: relative change per 50 us below 1e-9."""
    found = shared_by_two()
    settings = dataclasses.replace(reference.Settings(), byte_counter=5.0, timer=10e-3, pmax=0.1)
    for one in (found, *found.others):
        p = one.links[0]["marking_probability"]
        for flow in one.flows:
            rate, target = flow["rate_bytes_per_s"] / KB, flow["target_rate_bytes_per_s"] / KB
            moves = np.array(reference.derivatives(settings, p, rate, rate, target, flow["alpha"]))
            assert np.abs(moves * settings.tau / [rate, target, flow["alpha"]]).max() < STILL
        assert sum(flow["rate_bytes_per_s"] for flow in one.flows) * (2 if len(one.flows) == 1 else 1) == (
            pytest.approx(40 * GBPS, rel=1e-12)
        )


def test_the_fluid_says_the_same() -> None:
    """Each stands still on the right-hand side that is integrated; a thousandth aside it does not."""
    scenario = shared()
    found = shared_by_two()
    for one in (found, *found.others):
        assert moved(scenario, one) < STILL
        off = dataclasses.replace(one, flows=tuple({**row, "alpha": 1.001 * row["alpha"]} for row in one.flows))
        assert moved(scenario, off) > STILL


def test_newton_finds_the_unequal_one_too() -> None:
    """From a tilted start, on the fluid alone: two flows told apart end at 3.6 and 36.4 Gb/s."""
    kinds = {
        (round(min(rates)), round(max(rates)))
        for rates in (
            [row["rate_bytes_per_s"] / GBPS for row in one.flows]
            for one in equilibria(fc.incast(2, marking=RED("5KB", "200KB", "10%"), scheme=FAST_COUNTER))
        )
    }
    assert {(20, 20), (4, 36)} <= kinds


def test_stability_at_the_one_asked_for() -> None:
    """By default at equal shares; the roots at the other are others, and neither is of the link at 14 %."""
    scenario = shared()
    found = shared_by_two()
    (other,) = found.others
    equal, unequal = fc.stability(scenario), fc.stability(scenario, at=other)
    assert fc.stability(scenario, at=found).rightmost_root == pytest.approx(equal.rightmost_root)
    assert equal.fairness_root is not None  # of equal flows; where P rises with the rate their differences grow
    assert equal.fairness_root.real > 0
    assert unequal.fairness_root is None
    assert unequal.paper_phase_margin is None
    assert unequal.rightmost_root is not None
    assert equal.rightmost_root is not None
    assert abs(unequal.rightmost_root - equal.rightmost_root) > 100
    with pytest.raises(NoEquilibriumError, match="not an equilibrium of this scenario"):
        fc.linearize(
            shared(pmax="20%"), at=dataclasses.replace(other, links=({**other.links[0], "queue_bytes": 30e3},))
        )


def test_the_papers_settings_have_one() -> None:
    for flows in (2, 8, 14):
        found = fc.equilibrium(fc.incast(1, multiplicity=flows))
        assert found.unique
        assert found.others == ()
        assert found.searched is not None
        assert "each marking holds only one rate" in found.searched


def test_off_the_ramp_others_are_off_it_too() -> None:
    """Pmax 1 % is reached by neither; on the line beyond Kmax both are there. With 2 % the equal one alone is."""
    beyond = fc.equilibrium(shared(pmax="1%"))
    assert (beyond.exists, beyond.unique, len(beyond.others)) == (False, False, 1)
    between = fc.equilibrium(shared(pmax="2%"))
    assert (between.exists, between.unique, between.others) == (True, True, ())


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the marking's equilibria as the fluid's: for tests of what the markings alone decide."""
    monkeypatch.setattr(fixed_points, "movement", lambda *_: 0.0)


@pytest.mark.usefixtures("trusted")
def test_queues_that_nothing_decides() -> None:
    """One flow at line rate keeps any queue up to Kmin, two equal links in a row share one as they like."""
    assert fc.equilibrium(fc.incast(1)).unique is False
    assert fc.equilibrium(fc.incast(1, line_rate="10Gbps")).unique
    link = Link(rate="40Gbps", delay="1us", marking=RED("5KB", "200KB", "1%"))
    flow = Flow(path=(0, 1), line_rate="40Gbps", multiplicity=2.0, scheme=fc.DCQCN())
    assert fc.equilibrium(Scenario((link, link), (flow,))).unique is False
    narrow = dataclasses.replace(link, rate="30Gbps")
    assert fc.equilibrium(Scenario((link, narrow), (flow,))).unique


@pytest.mark.parametrize("change", [{"rate_ai": "20Gbps", "timer": "20us"}, {"rate_ai": "40Gbps"}])
def test_targets_stop_at_the_line_rate(change: dict[str, Any]) -> None:
    """At 1.05 flows R_T would be above the line; there the fluid holds it, and so does the equilibrium."""
    scenario = fc.incast(1, multiplicity=1.05, scheme=fc.DCQCN(**change))
    found = fc.equilibrium(scenario)
    assert found.flows[0]["target_rate_bytes_per_s"] == pytest.approx(40 * GBPS, rel=1e-12)
    assert moved(scenario, found) < STILL
    assert "each marking holds only one rate" in str(found.searched)  # solved so, not put right by Newton's method


@pytest.mark.parametrize(
    "scheme", [fc.DCQCN(), FAST_COUNTER, fc.DCQCN(hyper_increase=True, rate_hai="1Gbps", timer="3ms")]
)
@pytest.mark.parametrize("marking", [1e-4, 0.02, 0.3])
def test_the_two_directions_agree(scheme: fc.DCQCN, marking: float) -> None:
    """The marking at the rate that a marking settles at is that marking: two root searches, to 1e-9."""
    scheme = resolve(fc.incast(1, scheme=scheme)).flows[0].scheme
    at = side.solve_equilibrium(scheme, marking, 40 * GBPS, 1e3)
    assert float(side.marking_at(scheme, at.rate, 40 * GBPS, 1e3)) == pytest.approx(marking, rel=1e-9)
    assert side.fixed_point(scheme, at.rate, marking, 40 * GBPS, 1e3) == at


def test_slow_nics_are_not_outrun() -> None:
    """HPCC's closed form has no line rates; where they bind, it is not taken: it gave 47.6 Gb/s to NICs of 10."""
    found = fc.equilibrium(
        fc.incast(1, multiplicity=2, rate="100Gbps", line_rate="10Gbps", scheme=fc.HPCC(form="rate"))
    )
    assert max(row["rate_bytes_per_s"] for row in found.flows) <= 10 * GBPS * (1 + 1e-9)


def test_what_is_unique_says_where_was_searched() -> None:
    """HPCC by its one equation, patched TIMELY by Newton's starts."""
    hpcc = fc.equilibrium(fc.incast(2, rate="100Gbps", scheme=fc.HPCC()))
    patched = fc.TIMELY(thresholds="queueing", patched=True, beta=0.008)
    timely = fc.equilibrium(fc.incast(1, multiplicity=4, rate="10Gbps", scheme=patched))
    for found, said in ((hpcc, "only one load fits"), (timely, "starts")):
        assert found.unique
        assert found.searched is not None
        assert said in found.searched


# Two in the second group and a third that only the slower NIC can have: P turns at 4.1 and at 19.6 Gb/s.
THREE = dataclasses.replace(FAST_COUNTER, byte_counter="2KB")


def three_groups(flows: int, line_rate: str = "20Gbps", **changes: Any) -> Scenario:
    scheme = dataclasses.replace(THREE, **changes)
    marking = RED("5KB", "200KB", "20%")
    return fc.incast(1, multiplicity=flows, line_rate=line_rate, marking=marking, scheme=scheme)


def test_three_groups_of_rates() -> None:
    """1, 2 and 1 of four flows keep three rates: one marking, a full link, still on the fluid's right-hand side."""
    scenario = three_groups(4)
    found = fc.equilibrium(scenario)
    (three,) = (one for one in found.others if len(one.flows) == 3)
    members, rates = ([row[what] for row in three.flows] for what in ("multiplicity", "rate_bytes_per_s"))
    assert members == [1, 2, 1]
    assert np.dot(members, rates) == pytest.approx(40 * GBPS, rel=1e-12)
    assert moved(scenario, three) < STILL
    assert found.unique is False
    assert (
        "flows in two and three groups of equal rate with 1 to 3 in the slower one; a marking may hold up to 3 rates"
        in str(found.searched)
    )


def test_a_pair_close_to_the_equal_share() -> None:
    """15.741 and 24.259 Gb/s at 0.01732, by mpmath: P changes its slope where R_T meets the line."""
    scenario = fc.incast(2, line_rate="25Gbps", marking=RED("5KB", "200KB", "10%"), scheme=FAST_COUNTER)
    found = fc.equilibrium(scenario)
    assert found.unique is False
    (other,) = found.others
    assert sorted(row["rate_bytes_per_s"] / GBPS for row in other.flows) == pytest.approx([15.741, 24.259], abs=5e-4)
    assert other.links[0]["marking_probability"] == pytest.approx(0.01732, abs=5e-6)


def random_setting(seed: int) -> Scenario:
    """A few flows with fast byte counters and NICs not much faster than a share: P has three pieces, mostly."""
    draw = np.random.default_rng(seed)
    interval = draw.choice([20e-6, 50e-6, 100e-6])
    scheme = fc.DCQCN(
        byte_counter=10 ** draw.uniform(3.2, 4.2),
        timer=10 ** draw.uniform(-3, -1.3),
        rate_ai=f"{10 ** draw.uniform(0.5, 2.5)}Mbps",
        cnp_interval=interval,
        alpha_timer=interval * draw.choice([1.1, 2, 4]),
        fast_recovery_steps=draw.choice([1, 3, 5]),
    )
    flows, line_rate = int(draw.integers(2, 6)), f"{draw.choice([21, 22, 25, 30])}Gbps"
    marking = RED("5KB", "200KB", 10 ** draw.uniform(-2, 0))
    return fc.incast(1, multiplicity=flows, line_rate=line_rate, marking=marking, scheme=scheme)


def by_level_sets(scenario: Scenario) -> list[tuple[float, list[tuple[int, float]]]]:
    """From a table of P: every way to put flows on its pieces, and each marking at which they fill the link."""
    sender, link, (flow,) = sender_of(scenario), scenario.links[0], scenario.flows
    line = flow.line_rate
    R = np.unique(np.concatenate([np.geomspace(1e-9 * line, line, 4001), np.linspace(1e-4 * line, line, 12001)]))[:-1]
    P = sender.marking(R)
    R, P = R[P < 1 - 1e-9], P[P < 1 - 1e-9]  # below, rates fall short even if all is marked
    signs = np.sign(np.diff(P))
    assert (signs != 0).all()
    turns = np.flatnonzero(np.diff(signs)) + 1
    pieces = [slice(a, b + 1) for a, b in itertools.pairwise([0, *turns, len(R) - 1])]
    assert link.marking is not None
    found = []
    for members in itertools.product(range(round(flow.multiplicity) + 1), repeat=len(pieces)):
        if sum(members) != flow.multiplicity:
            continue
        used = [(n, R[piece], P[piece]) for n, piece in zip(members, pieces, strict=True) if n]
        low, high = max(p.min() for _, _, p in used), min(p.max() for _, _, p in used)
        if low >= min(high, link.marking.pmax):
            continue
        markings = np.unique(np.concatenate([np.linspace(low, high, 20_001), *(p for _, _, p in used)]))
        markings = markings[(markings >= low) & (markings <= min(high, link.marking.pmax))]
        rates = np.array([np.interp(markings, *((p, r) if p[-1] > p[0] else (p[::-1], r[::-1]))) for _, r, p in used])
        groups = [n for n, _, _ in used]
        for k in np.flatnonzero(np.diff(groups @ rates > link.rate)):
            found.append((markings[k], sorted(zip(groups, rates[:, k], strict=True), key=lambda one: one[1])))
    return found


def agrees_with_level_sets(seed: int) -> int:
    scenario = resolve(random_setting(seed))
    expected = by_level_sets(scenario)
    found = fc.equilibrium(scenario)
    mine = [one for one in (found, *found.others) if one.exists]
    assert len(mine) == len(expected), (seed, mine, expected)
    for p, shares in expected:

        def off(one: Equilibrium, p: float = p, shares: list[tuple[int, float]] = shares) -> float:
            rows = sorted(
                (row["rate_bytes_per_s"], row.get("multiplicity", scenario.flows[0].multiplicity)) for row in one.flows
            )
            if [n for _, n in rows] != [n for n, _ in shares]:
                return np.inf
            far = max(abs(a / b - 1) for (a, _), (_, b) in zip(rows, shares, strict=True))
            return max(far, abs(one.links[0]["marking_probability"] / p - 1))

        assert min(map(off, mine)) < 0.01, (seed, p, shares, mine)
    if len(expected) > 1:
        assert found.unique is False
    return len(expected)


@pytest.mark.parametrize("seed", [0, 1, 3, 4, 53])
def test_all_shares_that_level_sets_of_p_have(seed: int) -> None:
    agrees_with_level_sets(seed)


@pytest.mark.slow
def test_all_shares_that_level_sets_of_many_random_p_have() -> None:
    counts = [agrees_with_level_sets(seed) for seed in range(5, 20)]
    assert sum(count > 2 for count in counts) >= 1


def sender_of(scenario: Scenario) -> Sender:
    flow = scenario.flows[0]
    parameters = binder(scenario)(flow)
    side_of_it = equilibrium_of(flow.scheme)
    assert side_of_it is not None
    return Sender(side_of_it, parameters, flow.line_rate, scenario.wire_packet_of(flow))


@pytest.mark.usefixtures("trusted")
def test_more_than_three_rates_at_one_marking_are_not_called_unique(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hyper increases below R_AI give P five pieces: where no groups are found, nothing is claimed."""
    changes = {"rate_ai": "186Mbps", "rate_hai": "7.7Mbps", "hyper_increase": True, "byte_counter": "1134B"}
    scenario = three_groups(3, "40Gbps", timer="3.13ms", cnp_interval="62us", alpha_timer="106.7us", **changes)
    assert len(sender_of(resolve(scenario)).pieces) == 5
    for search in ("pairs", "triples"):
        monkeypatch.setattr(f"fluidcc.theory.control.marked_equilibria.{search}", lambda *_: [])
    found = fc.equilibrium(scenario)
    assert found.unique is None
    assert fc.equilibrium(three_groups(3)).unique  # three pieces: the searches are all there is
    assert "may hold up to 5 rates, but more groups were not tried" in str(found.searched)


def test_a_link_too_narrow_for_three_groups() -> None:
    """With the counter of 5 KB a rate beyond each turn of P is more than 40 Gb/s: two groups are all there are."""
    found = fc.equilibrium(shared(3))
    assert found.unique
    (_, first), (_, second), _ = sender_of(resolve(shared(3))).pieces
    assert first + second > 40 * GBPS


def test_sizes_of_groups() -> None:
    assert sizes(2) == [1]
    assert sizes(4.5) == [1, 2, 3, 4]
    many = sizes(1e6)
    assert len(many) <= 200
    assert many[0] == 1
    assert many[-1] == 999_999
    assert [1_000_000 - n for n in reversed(many)] == many  # the rest of a group is a group that is tried
    assert sizes(200.5) == list(range(1, 201))
    assert len(sizes(202)) < 201


def test_roots_are_suspected_at_changes_of_sign_and_near_0() -> None:
    """A dip counts if it is below its own bound; at the end only the first rate is one, and a bound is none itself."""

    def suspects(rough: list[float], close: list[float] | float) -> list[int]:
        return _suspects(np.array(rough), np.broadcast_to(close, len(rough))).tolist()

    assert suspects([3.0, 2.0, -1.0, -2.0], 0.0) == [1]
    assert suspects([-3.0, 2.0, 1.0, -2.0], 0.0) == [0, 2]
    assert suspects([3.0, 2.0, 0.5, 2.0, 3.0], 1.0) == [2]
    assert suspects([-3.0, -2.0, -0.5, -2.0, -3.0], 1.0) == [2]
    assert suspects([3.0, 2.0, 1.0, 2.0, 3.0], 1.0) == []
    assert suspects([3.0, 2.0, 0.5, 2.0, 3.0], [1.0, 9.0, 0.5, 0.0, 9.0]) == []
    assert suspects([3.0, 0.5, 0.5, 2.0], 1.0) == [1, 2]
    assert suspects([3.0, 2.0, 0.5, 0.4], 1.0) == []
    assert suspects([0.5, 2.0, 3.0], 1.0) == [0]
    assert suspects([1.0, 2.0, 3.0], 1.0) == []
    assert suspects([3.0, 0.9, 0.8, 0.7], 1.0) == []


def test_ends_of_a_range_have_two_signs() -> None:
    """A gap that dips below 0 between two rates, from above or upside down, at either end or not at all."""
    R = np.linspace(0.0, 4.0, 5)
    assert _brackets(R, lambda rate: rate - 1.5) == [(1.0, 2.0)]
    assert _brackets(R, lambda rate: (rate - 0.5) * (rate - 3.5)) == [(0.0, 1.0), (3.0, 4.0)]
    for sign in (1, -1):
        for lowest in (0.25, 2.25, 3.75):

            def gap(rate: Any, sign: int = sign, lowest: float = lowest) -> Any:
                return sign * 100 * ((rate - lowest) ** 2 - 0.01)

            (low, middle), (again, high) = _brackets(R, gap)
            nearest = round(lowest)
            assert (low, high) == (max(nearest - 1, 0), min(nearest + 1, 4))
            assert middle == again == pytest.approx(lowest, abs=1e-3)
        assert _brackets(R, lambda rate, sign=sign: sign * ((rate - 2.25) ** 2 + 0.01)) == []
    assert _brackets(R, lambda rate: (rate - 2.25) ** 2 + 0.0 * rate + 1e-9) == []


def test_an_unequal_one_may_exist_alone() -> None:
    """Equal shares would need more marks than Pmax; 15.5 and 24.5 Gb/s need fewer (level sets of P)."""
    scheme = fc.DCQCN(
        byte_counter="2945B", timer="7.681ms", rate_ai="19.3Mbps", alpha_timer="200us", fast_recovery_steps=3
    )
    scenario = fc.incast(2, line_rate="25Gbps", marking=RED("5KB", "200KB", 0.031), scheme=scheme)
    found = fc.equilibrium(scenario)
    assert found.exists
    rates = [row["rate_bytes_per_s"] / GBPS for row in found.flows]
    assert sorted(rates) == pytest.approx([15.5, 24.5], abs=0.1)
    assert sum(rates) == pytest.approx(40, rel=1e-9)
    assert not any(one.exists for one in found.others)


def test_equilibria_are_one_where_less_than_a_rounding_apart() -> None:
    """Queues of 0 and half of a rounding of a byte are one, and once and a half are not."""

    def made(queue: float) -> Any:
        return SimpleNamespace(flows=[{"rate_bytes_per_s": 1e9}], links=[{"queue_bytes": queue}])

    assert [same(made(0.0), made(factor * SAME)) for factor in (0.5, 1.5)] == [True, False]


# -- a marking in closed form ------------------------------------------------------------------------------------

# P = 0.5 - 0.3 T_3((R - 10) / 8) with Chebyshev's polynomial: down to R = 6, up to 14, down again.


def wave(rate: Any) -> Any:
    x = (np.asarray(rate, float) - 10) / 8
    return 0.5 - 0.3 * (4 * x**3 - 3 * x)


def waving(
    least: float = 2.0, line_rate: float = 18.0, single: bool = True, scale: float = 1.0, ripple: float = 0.0
) -> Sender:
    side: Any = SimpleNamespace(
        marking_at=lambda parameters, rate, line_rate, packet: scale * wave(rate) * (1 + ripple * np.sin(1e6 * rate)),
        least_rate=lambda parameters, line_rate: least,
        single_marking=lambda parameters: single,
    )
    return Sender(side, None, line_rate, 1.0)


def three_rates(angle: Any, least: float) -> np.ndarray:
    """Rates that are marked by 0.5 - 0.3 cos(angle), from the slowest on; the slowest no less than the least."""
    x = np.cos((np.asarray(angle)[..., None] + 2 * np.pi * np.array([1, 2, 0])) / 3)
    return np.maximum(10 + 8 * x, [least, 0.0, 0.0])


@pytest.mark.parametrize("least", [2.0, 3.0])
@pytest.mark.parametrize(("flows", "capacity"), [(3, 26.5), (4, 43.0), (6, 60.9), (7, 72.7), (7, 95.0)])
def test_three_groups_of_a_wave_are_those_of_its_angles(least: float, flows: int, capacity: float) -> None:
    """Each number of members, and each angle at which they fill the link: catches a group, a piece or an end missed."""
    angles = np.linspace(0, np.pi, 4001)
    expected = []
    for n, m in itertools.product(range(1, flows), repeat=2):
        if n + m < flows:
            groups = np.array([n, m, flows - n - m])
            over = three_rates(angles, least) @ groups > capacity
            for k in np.flatnonzero(np.diff(over)):
                angle = brentq(lambda at, groups=groups: three_rates(at, least) @ groups - capacity, *angles[k : k + 2])
                expected.append((groups.tolist(), three_rates(angle, least)))
    found = triples(waving(least), flows, capacity)
    assert [[n for n, _ in one] for one in found] == [groups for groups, _ in expected]
    for one, (_, rates) in zip(found, expected, strict=True):
        assert [rate for _, rate in one] == pytest.approx(rates, rel=1e-9)


def test_a_search_that_fails_starts_closer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two of 65 markings in the interval that holds the root: catches an interval or a side mixed up."""
    sender, flows, capacity = waving(), 7, 72.7
    plain, solved, starts = triples(sender, flows, capacity), module._solved, []

    def first_fails(*given: Any) -> Any:
        starts.append(given)
        return None if len(starts) % 2 else solved(*given)

    monkeypatch.setattr(module, "_solved", first_fails)
    found = triples(sender, flows, capacity)
    assert len(found) == len(plain) == 5
    np.testing.assert_allclose(found, plain, rtol=1e-9)
    markings = 0.5 - 0.3 * np.cos(np.linspace(0, np.pi, 150))
    for (_, groups, coarse, _), (_, again, close, _) in zip(starts[::2], starts[1::2], strict=True):
        assert again.tolist() == groups.tolist()
        at = markings
        for start in (coarse, close):
            rates = three_rates(np.arccos(np.clip((0.5 - at) / 0.3, -1, 1)), 2.0)
            k = int(np.flatnonzero(np.diff(rates @ groups > capacity))[0])
            assert start == pytest.approx(rates[k : k + 2].mean(axis=0), rel=1e-5)
            at = np.linspace(at[k], at[k + 1], 65)
    monkeypatch.setattr(module, "_solved", lambda *_: None)
    assert triples(sender, flows, capacity) == []


def test_only_the_first_triples_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """And none where P has two pieces, of two flows, or where rates beyond the turns are more than the link."""
    whole = triples(waving(), 7, 72.7)
    monkeypatch.setattr(module, "MOST_TRIPLES", 2)
    assert triples(waving(), 7, 72.7) == whole[:2]
    monkeypatch.undo()
    monkeypatch.setattr(module, "_solved", lambda *_: pytest.fail("searched"))
    assert triples(waving(7.0), 5, 61.0) == []
    assert triples(waving(), 2, 20.0) == []
    assert triples(waving(), 5, 25.9) == []  # 6 + 14 + 3 times the least


@pytest.mark.parametrize("least", [2.0, 3.0])
@pytest.mark.parametrize(("flows", "capacity"), [(2, 17.0), (2, 23.0), (3, 26.5), (3, 45.0), (5, 46.5), (5, 61.0)])
def test_two_groups_of_a_wave_have_one_marking(least: float, flows: int, capacity: float) -> None:
    """On a fine grid of the slower rate: its own marking is the faster one's, or more at the least rate."""
    expected = []
    for n in range(1, flows):
        low = max(least, (capacity - (flows - n) * 18.0) / n)

        def gap(R: Any, n: int = n) -> Any:
            other = (capacity - n * R) / (flows - n)
            return np.where(other < 18.0, wave(R) - wave(other), wave(R)) / (other - R)

        R = np.linspace(low, capacity / flows, 20_001)[:-10]
        if low == least and gap(low) < 0:
            expected.append((n, least))
        expected += [(n, brentq(gap, R[k], R[k + 1])) for k in np.flatnonzero(np.diff(gap(R) > 0))]
    found = sorted(pairs(waving(least), flows, capacity))
    assert [n for n, _, _ in found] == [n for n, _ in sorted(expected)]
    assert [slow for _, slow, _ in found] == pytest.approx([slow for _, slow in sorted(expected)], rel=1e-6)
    for n, slow, fast in found:
        assert n * slow + (flows - n) * fast == pytest.approx(capacity, rel=1e-12)


def test_pieces_of_a_wave_end_at_its_turns() -> None:
    """Rates at a marking by halving, and a table that is finer there; at the line rate nothing is marked."""
    sender = waving()
    assert np.array(sender.pieces) == pytest.approx(np.array([[2, 6], [6, 14], [14, 18]]), rel=1e-5)
    angles = np.linspace(0.1, 3.0, 7)
    assert sender.rates_at(0.5 - 0.3 * np.cos(angles)) == pytest.approx(three_rates(angles, 2.0), rel=1e-9)
    beyond = sender.rates_at(np.array([0.1, 0.9]))
    assert beyond == pytest.approx(np.array([[6, 6, 18], [2, 14, 14]]), rel=1e-5)
    R, P = sender.table
    assert (np.diff(R) >= 0).all()
    assert pytest.approx(wave(R[:-1]), rel=1e-6) == P[:-1]
    assert (R[0], R[-1], P[-1]) == (2.0, 18.0, 0.0)
    for turn in (6.0, 14.0):
        near = R[np.abs(R / turn - 1) < 1e-4]
        assert (near < turn * (1 - 1e-5 / 2)).sum() > 10
        assert (near > turn * (1 + 1e-5 / 2)).sum() > 10
    assert sender.marking([2.0, 18.0 * (1 - 1e-10), 18.0, 19.0]) == pytest.approx([0.8, 0.2, 0.0, 0.0], rel=1e-6)


def test_a_curve_is_fine_near_the_line_rate() -> None:
    """240 rates a decade and 480 close to the line; a flow that can but send at line rate has one."""
    R, P = waving(0.18).curve
    assert (R[0], R[-1], len(P)) == (pytest.approx(0.18), 18.0, len(R))
    assert (np.diff(R) > 0).all()
    assert len(R) == pytest.approx(2 * 240 + 480, abs=3)
    assert (R > 18.0 * 0.5).sum() == pytest.approx(480 + 240 * np.log10(2), abs=3)
    assert 18.0 - R[-2] == pytest.approx(18.0 * 1e-9, rel=1e-3)
    close = waving(17.0).curve[0]
    assert (close[0], (close < 18.0 - 1.0).sum()) == (17.0, 0)
    for least in (18.0, 20.0):
        assert [each.tolist() for each in waving(least).curve] == [[18.0], [0.0]]


def test_a_marking_that_falls_holds_one_rate() -> None:
    """Up to the first turn of the wave it falls, beyond it does not; a scheme may have several markings for a rate."""
    assert waving(line_rate=6.0).falls is True
    assert waving(line_rate=6.5).falls is False
    assert waving(line_rate=6.0, single=False).falls is False


@pytest.mark.parametrize("scale", [1e-6, 1.0])
def test_a_marking_rises_by_more_than_rounding(scale: float) -> None:
    """By more than a part in 10^9 of itself, however small it is."""
    assert len(waving(scale=scale).pieces) == 3
    for ripple, none in ((1e-12, True), (1e-4, False)):
        assert waving(line_rate=5.9, scale=scale, ripple=ripple).falls is none
        assert (len(waving(scale=scale, ripple=ripple).pieces) == 3) is none


def test_rates_of_three_groups_are_looked_for_in_their_pieces() -> None:
    """By Newton's method: not from a start that leads elsewhere, nor where a rate is no number or nothing changes."""
    sender, groups = waving(), np.array([1.0, 2.0, 1.0])
    angle = 1.0
    exact = three_rates(angle, 2.0)
    capacity = float(groups @ exact)
    for factor in (0.99, 1.0, 1.01):
        found = module._solved(sender, groups, factor * exact, capacity)
        assert found is not None
        assert found == pytest.approx(exact, rel=1e-9)
    assert module._solved(sender, groups, exact[::-1].copy(), float(groups @ exact[::-1])) is None
    assert module._solved(sender, groups, np.array([6.0, 14.0, 16.0]), capacity) is None
    assert module._solved(sender, groups, exact, 3 * capacity) is None


def test_places_at_turns_of_either_rate_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """And close below the equal share, and the least rate: gaps over the distance of the rates, by the table."""
    seen: list[np.ndarray] = []
    monkeypatch.setattr(module, "_suspects", lambda rough, close: seen.append(rough) or np.zeros(0, int))
    sender, flows, capacity = waving(), 5, 46.5
    pairs(sender, flows, capacity)
    R, P = sender.table
    (_, first), (_, second), _ = sender.pieces
    for n, rough in enumerate(seen, 1):
        rest = flows - n
        least, most = max(2.0, (capacity - rest * 18.0) / n), capacity / flows
        places = [first, second, *((capacity - rest * turn) / n for turn in (first, second)), 0.99999 * most, least]
        inside = [place for place in places if least <= place < most]
        assert len(inside) >= 3
        for slow in inside:
            fast = (capacity - n * slow) / rest
            gap = (np.interp(slow, R, P) - np.interp(fast, R, P)) / (fast - slow)
            assert np.abs(rough - gap).min() < 1e-12
