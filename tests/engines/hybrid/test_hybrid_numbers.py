"""Numbers of the hybrid a second way: chance, packets that meet, ends of the criterion, events beforehand."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.hybrid import build, calendar, packet_scale, random_marks, region
from fluidcc.engines.hybrid.layout import KNOTS, LOADS
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve
from fluidcc.units import Rate
from tests.engines.packet.plain import plain

# -- chance ------------------------------------------------------------------------------------------------------------

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def finalised(x: int) -> int:
    """SplitMix64's finaliser, as its paper has it."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize(("seed", "hop", "count"), [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (2**62 + 5, 77, 1000)])
def test_numbers_are_those_of_splitmix_in_whole_numbers(seed: int, hop: int, count: int) -> None:
    """The stream of a hop begins at the second output of its seed's; 53 bits, and never nothing."""
    stream = finalised(finalised(seed + GOLDEN & MASK) + (hop + 1) * GOLDEN & MASK)
    bits = finalised(stream + (count + 1) * GOLDEN & MASK) >> 11
    given = np.uint64(seed), np.int64(hop), np.int64(count)
    assert plain(random_marks.uniform)(*given) == (bits + 1) / 2**53
    assert plain(random_marks.exponential)(*given) == pytest.approx(-math.log((bits + 1) / 2**53), rel=1e-15)


def integral(p: float, q: float) -> float:
    """Mean hazard on a straight line from p to q, by Gauss and Legendre on pieces that come nearer to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    low, high = min(p, q), max(p, q)
    edges = [low, *(edge for edge in 1 - 0.5 ** np.arange(1, 50) if low < edge < high), high]
    total = 0.0
    for a, b in itertools.pairwise(edges):
        total += (b - a) / 2 * (weights * -np.log1p(-((a + b) / 2 + (b - a) / 2 * nodes))).sum()
    return total / (high - low)


@pytest.mark.parametrize(
    ("p", "q"), [(0.5, 0.5003), (0.5003, 0.5), (0.5, 0.5006), (0.0, 1e-5), (0.999, 0.999999), (0.2, 0.9), (0.9, 0.2)]
)
def test_the_clock_gains_what_gauss_and_legendre_say(p: float, q: float) -> None:
    """Also where the change is so small that the trapezoid with its ends' slopes does."""
    found = plain(random_marks.gained)(p, -math.log1p(-p), q, -math.log1p(-q), 3.0)
    assert found == pytest.approx(3.0 * integral(p, q), rel=1e-12 if abs(p - q) < 4e-4 else 1e-8, abs=0.0)


def test_a_certain_packet_has_no_finite_hazard_and_its_integral_is_one() -> None:
    assert plain(random_marks.hazard)(1.0) == math.inf
    assert plain(random_marks.antiderivative)(1.0, math.inf) == 1.0
    assert plain(random_marks.hazard)(0.75) == math.log(4)


@pytest.mark.parametrize("pace", [1e-9, -1e-9, 1e-3, -1e-3, 3.0, -3.0])
@pytest.mark.parametrize("p", [1e-6, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("wanted", [1e-9, 1e-3, 0.1])
def test_a_clock_that_rings_has_gone_as_far_as_wanted(p: float, pace: float, wanted: float) -> None:
    """On a piece up to 0.995; if it does not ring, the whole piece's integral is less."""
    now, top = -math.log1p(-p), 0.995
    whole = plain(random_marks.antiderivative)(top, -math.log1p(-top))
    wait = plain(random_marks.wait_for)(p, now, pace, wanted, top, whole)
    if math.isinf(wait):
        end = top if pace > 0 else 0.0
        assert integral(p, end) * (end - p) / pace < wanted
        return
    then = p + pace * wait
    assert 0.0 <= then <= top
    assert integral(p, then) * wait == pytest.approx(wanted, rel=1e-6, abs=0.0) if then != p else wait * now == wanted


def test_a_clock_on_a_flat_piece_waits_for_wanted_over_hazard() -> None:
    wait_for = plain(random_marks.wait_for)
    assert wait_for(0.25, 0.5, 0.0, 2.0, 0.25, 1.0) == pytest.approx(4.0, rel=1e-15)
    assert wait_for(0.25, 0.5, 0.0, 0.0, 0.25, 1.0) == 0.0
    assert wait_for(0.25, 0.5, 0.0, -1.0, 0.25, 1.0) == 0.0
    # A piece that ends at the probability that is reached, a little later, or a little before.
    then = 0.25 + 1e-9 * wait_for(0.25, 0.5, 1e-9, 2.0, 0.5, 1.0)
    assert wait_for(0.25, 0.5, 1e-9, 2.0, then, 1.0) == pytest.approx(4.0)
    assert wait_for(0.25, 0.5, 1e-9, 2.0, then - 1e-12, 1.0) == math.inf
    assert wait_for(1e-9, 0.5, -1e-9, 2.0, 1.0, 1.0) == math.inf  # it comes to nothing after a second


# -- packets that meet -------------------------------------------------------------------------------------------------


def more_than(n: int, sources: int, period: float) -> float:
    """P(V > n) of N*D/D/1, term by term as in the module's docstring; N of the period's length D."""
    return sum(
        math.comb(sources, k)
        * ((k - n) / period) ** k
        * (1 - (k - n) / period) ** (sources - k)
        * (period - sources + n)
        / (period - k + n)
        for k in range(n + 1, sources + 1)
    )


@pytest.mark.parametrize("flows", [1, 2, 3, 6])
def test_meetings_are_the_formula_term_by_term(flows: int) -> None:
    met = packet_scale.meetings(flows)
    for row in (0, 1, 20, LOADS):
        load = row / LOADS
        for sources, shares in ((flows, met.waiting), (flows - 1, met.found)):
            period = flows / load if load else math.inf
            above = [1.0, *((more_than(n, sources, period) if load else 0.0) for n in range(1, sources)), 0.0]
            assert shares[row] == pytest.approx(-np.diff(above) if sources else [1.0], abs=1e-12)
        idle = 1 - (flows - 1) / flows * load
        with_sending = met.found_with_sending[row]
        assert with_sending[0] == pytest.approx(idle, abs=1e-12)
        assert with_sending[1] == pytest.approx(met.found[row, 0] - idle, abs=1e-12)
        assert with_sending[2:] == pytest.approx(met.found[row, 1:], abs=0)


@pytest.mark.parametrize(("sources", "lengths"), [(0, 1), (1, 1), (13, 13), (400, 110), (900, 160)])
def test_lengths_that_never_come_are_left_out(sources: int, lengths: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """P(V > n) is at most exp(-2 n^2/N): with ten and five times the root of N, less than 1e-21."""
    monkeypatch.setattr(packet_scale, "LOADS", 1)
    assert packet_scale._waiting(sources, max(sources, 1)).shape == (2, lengths)


@pytest.mark.parametrize(
    ("flows", "burst", "jitter", "spacing"), [(3, 2, 0.0, 1.0), (2, 3, 0.5, 0.5), (4, 1, 0.25, 0.25), (1, 2, 0.0, 2.0)]
)
def test_a_replay_is_lindleys_recursion_packet_by_packet(
    flows: int, burst: int, jitter: float, spacing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same draws, of which the last whole period counts; with jitter the one before it, as bursts drift."""
    rounds, loads, looks = 32, 4, 5
    for name, value in (("LOADS", loads), ("_REPLAYED", 1), ("_LOOKS", looks), ("_PERIODS", 4)):
        monkeypatch.setattr(packet_scale, name, value)
    got = packet_scale._replayed(flows, burst, jitter, spacing)
    rng, periods = np.random.default_rng(0), 4 if jitter else 2
    phases = rng.uniform(size=(rounds, flows, 1))
    gaps = 1.0 + jitter * rng.uniform(-1.0, 1.0, (rounds, flows, periods - 1))
    opens = periods - 2 if jitter else periods - 1
    instants = np.sort(rng.uniform(opens, opens + 1, (rounds, looks)))
    for row in range(1, loads + 1):
        period, present, seen = flows * burst * loads / row, [], []
        for i in range(rounds):
            begins = [phases[i, f, 0] + gaps[i, f, :k].sum() for f in range(flows) for k in range(periods)]
            times = sorted(period * begin + spacing * k for begin in begins for k in range(burst))
            ends: list[float] = []
            for time in times:
                left = max((ends[-1] if ends else 0.0) - time, 0.0)
                if opens * period <= time < (opens + 1) * period:
                    present.append(max(math.ceil(left - 1e-9), 0))
                ends.append(time + left + 1.0)
            for instant in instants[i] * period:
                last = max((end for end, time in zip(ends, times, strict=True) if time < instant), default=instant)
                seen.append(max(math.ceil(last - instant - 1e-9), 0))
        for found, counts in (
            (got.found_with_sending, present),
            (got.found, [max(each - 1, 0) for each in present]),
            (got.waiting, [max(each - 1, 0) for each in seen]),
        ):
            assert found[row] == pytest.approx(np.bincount(counts, minlength=found.shape[1]) / len(counts), abs=1e-12)
    assert got.waiting[0, 0] == got.found[0, 0] == got.found_with_sending[0, 0] == 1.0


def test_a_replay_has_draws_for_many_packets_and_some_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some 8192 packets of each load, in 32 draws or more: shares are multiples of one by the looks."""
    monkeypatch.setattr(packet_scale, "LOADS", 1)
    for flows, burst, draws in ((64, 2, 64), (64, 16, 32), (32, 2, 128)):
        share = packet_scale._replayed(flows, burst, 0.0, 1.0).waiting * draws * 32
        assert share == pytest.approx(np.round(share), abs=1e-6)
        assert (np.abs(share / 2 - np.round(share / 2)) > 0.1).any()


def test_jitter_alone_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packet_scale, "_replayed", lambda *given: given)
    packet_scale.meetings.cache_clear()
    assert packet_scale.meetings(3, 1, 0.125, 0.5) == (3, 1, 0.125, 0.5)
    assert packet_scale.meetings(3, 2, 0.0, 0.5) == (3, 2, 0.0, 0.5)
    packet_scale.meetings.cache_clear()


@pytest.mark.parametrize(
    ("work", "packets"), [(0.0, 0), (-0.3, 0), (0.5, 1), (1.0, 1), (1.0 + 1e-10, 1), (1.0 + 1e-8, 2), (2.5, 3)]
)
def test_a_packet_that_is_partly_sent_counts_as_one(work: float, packets: int) -> None:
    assert packet_scale._packets(np.array([work])).tolist() == [packets]


@pytest.mark.parametrize(
    ("marking", "chances"),
    [
        (fc.RED("2KB", "4KB", 0.6), [0, 0, 0, 0.3, 0.6, 1]),
        (fc.RED("2.5KB", "4.5KB", 0.6), [0, 0, 0, 0.15, 0.45, 1]),
        (fc.RED("3KB", "3KB", 0.6), [0, 0, 0, 0, 1]),  # at the step itself nothing is marked
        (fc.RED("2KB", "4KB", 0.6, counts_sending=True), [0, 0, 0.3, 0.6, 1, 1]),
        (fc.RED(0, 0, 1.0), [0, 1]),
        (fc.RED(0, 0, 1.0, counts_sending=True), [1, 1]),
    ],
)
def test_marks_of_a_lone_flow_are_the_ramp_packet_by_packet(marking: fc.RED, chances: list[float]) -> None:
    found = packet_scale.marks(resolve_red(marking), packet_scale.meetings(1), 1000.0)
    queues = 1000.0 * np.arange(len(chances))
    assert found.queues[[0, -1]].tolist() == queues[[0, -1]].tolist()
    assert np.interp(queues, found.queues, found.chances) == pytest.approx(np.minimum(chances, 1 - 1e-9), abs=1e-12)
    alone = packet_scale.meetings(1)
    assert found.meeting == pytest.approx(
        np.full(LOADS + 1, chances[0] if not marking.counts_sending else 0.0), abs=1e-12
    )
    assert alone.found_with_sending[LOADS].tolist() == [1.0, 0.0]  # a lone flow's packet finds nothing


def resolve_red(marking: fc.RED) -> Any:
    return resolve(fc.incast(1, marking=marking)).links[0].marking


def test_a_long_ramp_is_looked_at_in_steps_and_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred and one packets at ten looks: every tenth, and the first above Kmax."""
    seen: list[Any] = []
    monkeypatch.setattr(packet_scale, "_MANY", 10)
    monkeypatch.setattr(packet_scale, "_straight", lambda x, y: seen.append(x) or np.arange(len(x)))
    found = packet_scale.marks(resolve_red(fc.RED("0KB", "100KB", 1.0)), packet_scale.meetings(1), 1000.0)
    assert seen[0].tolist() == [*range(0, 101, 10), 101.0]
    assert found.queues.tolist() == [1000.0 * each for each in (*range(0, 101, 10), 101)]


def kept_by_hand(x: Any, y: Any, near: float) -> set[int]:
    """Douglas and Peucker's points, by recursion."""

    def between(first: int, last: int) -> set[int]:
        off = [
            abs(y[i] - (y[first] + (y[last] - y[first]) * (x[i] - x[first]) / (x[last] - x[first])))
            / (1e-5 + near * y[i])
            for i in range(first, last + 1)
        ]
        worst = first + int(np.argmax(off))
        return {first, last} if max(off) <= 1.0 else between(first, worst) | between(worst, last)

    return between(0, len(x) - 1)


@pytest.mark.parametrize("shape", ["few", "many"])
def test_points_are_kept_where_the_curve_bends_and_as_many_as_there_is_room(shape: str) -> None:
    """A hundred points at uneven places; if over 32 would be kept, twice as much may be missed, and so on."""
    rng = np.random.default_rng(3)
    x = np.cumsum(rng.integers(1, 5, 100)).astype(float)
    y = (x / x[-1]) ** 2 if shape == "few" else rng.uniform(0.2, 0.9, 100)
    near = 0.01
    while len(kept_by_hand(x, y, near)) > KNOTS:
        near *= 2
    assert (near > 0.01) is (shape == "many")
    assert packet_scale._straight(x, y).tolist() == sorted(kept_by_hand(x, y, near))


@pytest.mark.parametrize(
    ("rates", "flows"), [([], 1), ([0.0, 0.0], 1), ([2.0, 2.0, 2.0], 3), ([3.0, 1.0], 2), ([5.0, 1.0], 1), ([0.1], 1)]
)
def test_flows_vary_like_so_many_equal_ones(rates: list[float], flows: int) -> None:
    assert packet_scale.as_many_equal(np.array(rates)) == flows


# -- where packets are asked instead -----------------------------------------------------------------------------------


def test_the_criterion_is_the_worst_link_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links with marking that two or more flows cross, at less than their line rate each; once for each scheme."""
    seen: list[Any] = []

    def met(flows: int, burst: int, jitter: float, spacing: float) -> Any:
        seen.append((flows, burst, jitter, spacing))
        return flows

    def marks(marking: Any, flows: int, packet: float) -> Any:
        ramp = np.linspace(0.0, flows / 10, LOADS + 1)
        return packet_scale.Marks(ramp, ramp, ramp * packet / 1062.0)

    needed = {1.25e9: 0.5, 0.625e9: 0.25, 0.5e9: 0.0}
    side = type("Side", (), {"marking_at": staticmethod(lambda scheme, share, line, packet: needed[share])})
    monkeypatch.setattr(region, "meetings", met)
    monkeypatch.setattr(region, "marks", marks)
    monkeypatch.setattr(region, "equilibrium_of", lambda scheme: None if scheme.name == "none" else side)
    red, ten, scheme = fc.RED("1KB", "20KB", 1.0), Rate(1.25e9), fc.DCQCN()
    links = (
        fc.Link(rate=4 * ten, delay=1e-6, marking=red),
        fc.Link(rate=2 * ten, delay=1e-6, marking=red),
        fc.Link(rate=ten, delay=1e-6),
        fc.Link(rate=ten, delay=1e-6, marking=red),
    )
    flows = [
        fc.Flow(path=(0, 1), line_rate=2 * ten, scheme=scheme, multiplicity=2),
        fc.Flow(path=(0, 1), line_rate=2 * ten, scheme=scheme, multiplicity=2),
        fc.Flow(path=(2,), line_rate=2 * ten, scheme=scheme, multiplicity=3),  # marks nothing
        fc.Flow(path=(3,), line_rate=2 * ten, scheme=scheme),  # alone
    ]
    options = {"packet_size": 1000.0, "header_bytes": 62.0, "burst": 3, "jitter": 0.25}
    scenario = resolve(fc.Scenario(links, tuple(flows), **options))
    assert region.meeting_share(scenario) == pytest.approx(0.99 * 0.4 / 0.25)
    assert seen == [(4, 3, 0.25, 2.0), (4, 3, 0.25, 1.0)]
    seen.clear()
    slow = [dataclasses.replace(flow, line_rate=ten) for flow in flows[:2]]  # 4 at 1 fill the first, not the second
    assert region.meeting_share(resolve(fc.Scenario(links, tuple(slow), **options))) == pytest.approx(0.99 * 0.4 / 0.25)
    assert seen == [(4, 3, 0.25, 2.0)]
    uncontrolled = [dataclasses.replace(flow, scheme=fc.NoControl()) for flow in flows[:2]]
    assert region.meeting_share(resolve(fc.Scenario(links, tuple(uncontrolled), **options))) == 0.0
    fifth = [*flows[:2], fc.Flow(path=(1,), line_rate=2 * ten, scheme=scheme)]  # at a share that needs no marks
    assert region.meeting_share(resolve(fc.Scenario(links, tuple(fifth), **options))) == math.inf


def test_half_of_the_marking_that_holds_a_flow_is_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for share, is_outside in ((0.5, True), (0.4999, False)):
        monkeypatch.setattr(region, "meeting_share", lambda scenario, share=share: share)
        assert region.outside(fc.incast(1)) is is_outside


# -- what is refused beforehand ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("timer", "refused"), [(0.99e-12, True), (1e-12, False)])
def test_a_time_of_a_picosecond_is_one(timer: float, refused: bool) -> None:
    base = resolve(fc.incast(2))
    late = dataclasses.replace(base.flows[0], scheme=dataclasses.replace(base.flows[0].scheme, timer=timer))
    scenario = dataclasses.replace(base, flows=(base.flows[0], late))
    if refused:
        with pytest.raises(InputError, match=r"flow 1 timer: 9\.9e-13s is less than a picosecond"):
            region.check_periods(scenario)
    else:
        region.check_periods(scenario)


def most_events(flows: list[fc.Flow], until: float, name: str) -> float:
    """The number at which a run is no longer refused for a parameter, by halving."""
    links = (fc.Link(rate=Rate(8e3), delay=1e-6), fc.Link(rate=Rate(3e3), delay=1e-6))
    scenario = resolve(fc.Scenario(links, tuple(flows), packet_size=1000.0))
    low, high = 0.0, 1e9
    for _ in range(60):
        middle = (low + high) / 2
        try:
            region.check_events(scenario, until, middle)
            high = middle
        except InputError as error:
            low = middle if f" {name}: " in str(error) else math.nan
    return high


@pytest.mark.parametrize(
    ("flow", "timer", "count"),
    [
        ({"path": (0,), "line_rate": Rate(5e3)}, 0.01, 2 * 2.0 / 0.01),
        ({"path": (0,), "line_rate": Rate(5e3), "start": 0.5}, 0.01, 2 * 1.5 / 0.01),
        ({"path": (0,), "line_rate": Rate(5e3), "start": 3.0}, 0.01, 0.0),
        ({"path": (0,), "line_rate": Rate(5e3), "size": 2000.0}, 0.01, 2 * 0.5 / 0.01),  # two share 8 kB/s
        ({"path": (0,), "line_rate": Rate(1e3), "size": 500.0}, 0.01, 2 * 0.5 / 0.01),  # at its own rate
        ({"path": (0, 1), "line_rate": Rate(5e3), "size": 750.0}, 0.01, 2 * 0.5 / 0.01),  # two share 3 kB/s
    ],
)
def test_periods_of_time_are_counted_while_a_flow_sends(flow: dict[str, Any], timer: float, count: float) -> None:
    """Two flows of a class, each a period's end every 10 ms until 2 s."""
    scheme = fc.DCQCN(timer=timer, byte_counter=1e30)
    found = most_events([fc.Flow(scheme=scheme, multiplicity=2, **flow)], 2.0, "timer")
    assert found == pytest.approx(count, abs=1e-3)


def test_periods_of_bytes_are_counted_as_they_are_sent_and_flows_add_up() -> None:
    """Three flows of 2 and 1 at 8/3 kB/s each, and 50 bytes between events; the timer's are counted apart."""
    scheme = fc.DCQCN(timer=1.0, byte_counter=50.0)
    flows = [fc.Flow(path=(0,), line_rate=Rate(5e3), scheme=scheme, multiplicity=n) for n in (2, 1)]
    assert most_events(flows, 2.0, "byte_counter") == pytest.approx(2.0 * 8e3 / 50, rel=1e-6)
    once = [fc.Flow(path=(0,), line_rate=Rate(5e3), scheme=fc.NoControl())]
    assert most_events(once, 2.0, "repeat") == pytest.approx(0.0, abs=1e-6)


# -- flows that wait, laid out -----------------------------------------------------------------------------------------


def test_all_of_a_class_wait_for_all_of_the_classes_that_it_names() -> None:
    """A class of two after one flow and after a class of two; flows 3 and 4 wait for three each."""
    ten, scheme = Rate(1.25e9), fc.NoControl()
    link = fc.Link(rate=ten, delay=1e-6)
    known = {"path": (0,), "line_rate": ten, "scheme": scheme, "size": 1e4}
    flows = (
        fc.Flow(**known),
        fc.Flow(**known, multiplicity=2),
        fc.Flow(**known, multiplicity=2, after=(0, 1), start=5e-6, after_what="answer"),
        fc.Flow(**known, after=(0,), start=7e-6, after_what="receipt"),
    )
    scenario = resolve(fc.Scenario((link,), flows))
    sim = build.prepare(scenario, build.Times(1.0, 0.0, 1.0, math.inf)).sim
    assert sim.flows["awaits"].tolist() == [0, 0, 0, 3, 3, 1]
    assert sim.flows["pause"].tolist() == [0, 0, 0, 5e-6, 5e-6, 7e-6]
    assert sim.flows["start"][3:].tolist() == [math.inf] * 3
    assert (sim.flows["start"][:3] == sim.flows["ahead"][:3]).all()
    assert sim.flows["followers"].tolist() == [0, 3, 5, 7, 7, 7]
    assert sim.flows["followers_end"].tolist() == [3, 5, 7, 7, 7, 7]
    assert sim.followers.tolist() == [3, 4, 5, 3, 4, 3, 4]
    assert sim.waits.tolist() == [calendar.ANSWER] * 2 + [calendar.RECEIPT] + [calendar.ANSWER] * 4
