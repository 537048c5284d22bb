"""Swift: both sides by hand, the fluid against packets and closed forms. Tolerances were set before measuring."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.bind import bind
from fluidcc.contract.signals import Progress
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve
from fluidcc.scenario.round_trips import base_rtt_with_serialisation, least_bdp, switches
from fluidcc.schemes.swift import PRESETS, fluid
from tests.schemes.plain_laws import plain

model = plain(fluid)
CAPACITY, PACKET, US = 12.5e9, 1000.0, 1e-6
T = 4e-6 + 2 * (1000 + 64) / CAPACITY  # of an incast: two links there and back, each packet stored twice
TARGET = 7e-6  # of one switch
SCALED = {"flow_scaling": True, "fs_max": 50.0}
PLAIN = {"flow_scaling": False}


def of(flows: int, **options: Any) -> Any:
    return fc.incast(flows, rate="100Gbps", scheme=fc.Swift(**options))


def run(scenario: Any, until: str, **more: Any) -> fc.Trace:
    return fc.simulate(scenario, until, estimate_error=False, **more)


def merged(flows: int, until: str, **options: Any) -> fc.Trace:
    """Run the fluid with equal flows as one class: one shape for all numbers."""
    return run(fc.incast(1, multiplicity=flows, rate="100Gbps", scheme=fc.Swift(**options)), until)


@pytest.fixture(scope="module")
def closed() -> Any:
    """The formulas that the proofs derive with sympy, as a function of Swift's constants: target and window at
    equilibrium.
    """
    from fluidcc.proofs.equilibria import formulas as proof

    found = proof.swift()

    class Closed:
        def constants(self, p: Any, fixed: float) -> dict[str, float]:
            at = {"fs_range": p.fs_range, "fs_min": p.fs_min, "fs_max": p.fs_max, "D": fixed}
            at["alpha_fs"] = proof.value(found["swift.slope"].rhs, **at)
            at["b_fs"] = proof.value(found["swift.offset"].rhs, **at)
            return at

        def target(self, p: Any, fixed: float, packets: float) -> float:
            at = self.constants(p, fixed)
            return fixed + min(max(at["alpha_fs"] / packets**0.5 + at["b_fs"], 0.0), p.fs_range)

        def window(self, p: Any, fixed: float, flows: int) -> float:
            import sympy

            at = self.constants(p, fixed)
            cubic = sympy.Poly(found["swift.window"].lhs, sympy.Symbol("x", positive=True)).all_coeffs()
            roots = np.roots([proof.value(one, **at, N=flows, C=CAPACITY / PACKET) for one in cubic])
            (root,) = (r.real for r in roots if abs(r.imag) < 1e-9 * abs(r) and r.real > 0)
            return float(root) ** 2

    return Closed()


# -- Algorithm 1, by hand ------------------------------------------------------------------------------------


def step(state: fluid.State, rtt: float, acked: float, sent: float, newly: float, **options: Any) -> fluid.State:
    scheme = bound(**options)
    one = np.ones((1, 1))
    sizes = PACKET * one, PACKET * one, CAPACITY * one, one[None]
    observed = Progress(sent * one, acked * one, newly * one, *sizes, rtt * one)
    new = model.jump(scheme, jax.tree.map(np.asarray, state), observed, one)
    return jax.tree.map(lambda leaf: np.asarray(leaf).item(), new)


def bound(**options: Any) -> fc.Swift:
    scenario = resolve(of(2, **options))
    return bind(scenario, scenario.flows[0])


def test_tokens_begin_beyond_what_a_bdp_takes_on_the_slowest_link() -> None:
    """VAI on Swift: the target and the least BDP there. Catches the NIC's rate, which is 2.5 times as high here."""
    link = fc.Link("40Gbps", "1us")
    scenario = resolve(fc.Scenario((link,), (fc.Flow((0,), fc.Swift(vai=True, hop_target="0us"), "100Gbps"),)))
    found = bind(scenario, scenario.flows[0])
    bdp = float(least_bdp(scenario))
    assert float(found.token_thresh) == pytest.approx(5e-6 + bdp / 5e9, rel=1e-12)


def test_the_fluid_step_by_step() -> None:
    """Single steps of Algorithm 1, to a millionth."""
    one = np.ones((1, 1))
    first = model.start(bound(**PLAIN), CAPACITY * one, (1, 1), 1)
    assert np.asarray(first.window).item() == pytest.approx(CAPACITY * T)  # line-rate start
    silent = step(first, T, 0.0, 1e4, 0.0, **PLAIN)
    assert silent.window == pytest.approx(CAPACITY * T)
    free = step(silent, T, 2e3, 2e3 + 1e4, 2e3, **PLAIN)
    assert free.window == pytest.approx(silent.window)  # 12 of 52 packets in flight: holds nothing back
    ten = silent._replace(window=1e4)
    grown = step(ten, 6.9e-6, 2e3, 2e3 + 1e4, 2e3, **PLAIN)
    assert grown.window == pytest.approx(1e4 + PACKET * 2 / 10)  # ai/W for each of two
    more = step(ten, 6.9e-6, 2e3, 2e3 + 1e4, 2e3, ai=3.0, **PLAIN)
    assert more.window == pytest.approx(1e4 + 3 * PACKET * 2 / 10)
    by_rate = step(ten, 6.9e-6, 2e3, 2e3 + 1e4, 2e3, rate_ai="1Gbps", **PLAIN)
    assert by_rate.window == pytest.approx(1e4 + 125e6 * T * 2 / 10)
    small = step(silent._replace(window=500.0), 6.9e-6, 2e3, 3e3, 1e3, **PLAIN)
    assert small.window == pytest.approx(500.0 + PACKET)  # below one packet: ai for each
    cut = step(ten, 10e-6, 2e3, 12e3, 1e3, **PLAIN)
    assert cut.window == pytest.approx(1e4 * (1 - 0.8 * 3 / 10))
    assert cut.cut_end == pytest.approx(12e3)
    again = step(cut, 10e-6, 12e3, 2e4, 1e3, **PLAIN)
    assert again.window == pytest.approx(cut.window)  # once for what was in flight
    later = step(cut, 10e-6, 12.5e3, 2e4, 1e3, **PLAIN)
    assert later.window == pytest.approx(cut.window * 0.76)
    most = step(ten, 70e-6, 2e3, 12e3, 1e3, **PLAIN)
    assert most.window == pytest.approx(5e3)  # max_mdf, where 1 - 0.8 * 0.9 is 0.28
    least = step(silent._replace(window=1.5), 70e-6, 2e3, 12e3, 1e3, **PLAIN)
    assert least.window == pytest.approx(1.0)  # min_cwnd
    assert least.rate == pytest.approx(1.0 / 70e-6)  # one packet in rtt/W
    capped = step(silent._replace(window=CAPACITY * TARGET), T, 2e3, 2e5, 1e3, **PLAIN)
    assert capped.window == pytest.approx(CAPACITY * TARGET)


@dataclasses.dataclass
class Ack:
    """An ACK as its sender observes it."""

    time: float
    sent: float  # when its packet was
    rate: float  # pacing rate just before it, bytes/s
    flying: int  # payload in flight just before it


@dataclasses.dataclass
class Went:
    """A packet that leaves, and the window then."""

    time: float
    window: float


def replay(trace: fc.Trace, flow: int) -> list[Ack | Went]:
    """What one sender lived through, from the log of a run without headers."""
    log = trace.dataset
    rows = np.flatnonzero(log.event_flow.values == flow)
    columns = (log[f"event_{name}"].values[rows] for name in ("time", "what", "end", "value"))
    began: dict[int, float] = {}
    sent = acked = 0
    found: list[Ack | Went] = []
    for time, what, end, value in zip(*columns, strict=True):
        if what == "send":  # the value is what is in flight beyond the window
            sent, began[int(end)] = int(end), float(time)
            found.append(Went(float(time), sent - acked - float(value)))
        elif what == "acknowledge":
            found.append(Ack(float(time), began[int(end)], float(value), sent - acked))
            acked = int(end)
    return found


@pytest.mark.parametrize(
    ("flows", "options", "small"),
    [(4, SCALED, False), (16, {"rate_ai": "2Gbps", **PLAIN}, False), (150, PLAIN, True), (300, SCALED, True)],
    ids=["scaled", "plain", "below one packet", "scaled, below one packet"],
)
def test_packets_follow_algorithm_1(flows: int, options: dict[str, Any], small: bool, closed: Any) -> None:
    """In plain Python from the text: windows before every packet and rates before every ACK to 1e-9."""
    trace = fc.simulate(of(flows, **options), "4ms", engine="packet", log=True)
    p = resolve(of(flows, **options)).flows[0].scheme
    at = closed.constants(p, TARGET)
    slope, offset = (at["alpha_fs"], at["b_fs"]) if p.flow_scaling else (0.0, 0.0)
    ai = p.ai if p.rate_ai is None else p.rate_ai * T / PACKET
    line_window = CAPACITY * TARGET / PACKET
    most = CAPACITY * (TARGET + slope / line_window**0.5) / PACKET
    W, rate, last = CAPACITY * T / PACKET, CAPACITY, -1.0
    up = down = low = 0
    for event in replay(trace, 1):
        if isinstance(event, Went):
            assert event.window == pytest.approx(W * PACKET, rel=1e-9)
            continue
        assert event.rate == pytest.approx(rate, rel=1e-9)
        rtt, target = event.time - event.sent, TARGET + min(max(slope / W**0.5 + offset, 0.0), p.fs_range)
        if rtt < target:
            if event.flying >= W * PACKET or rate < CAPACITY:
                W, up = W + ai / max(W, 1.0), up + 1
        elif event.time - last >= rtt * (1 - 1e-12):
            W, last, down = W * max(1 - 0.8 * (rtt - target) / rtt, 0.5), event.time, down + 1
        W = min(max(W, 0.001), most)
        rate = CAPACITY if W >= 1 else W * PACKET / rtt
        low += W < 1
    assert up > 5
    assert down > 5
    assert (low > 5) == small


def test_less_than_a_packet_is_paced() -> None:
    """200 flows, more than C times the target holds: from packet to packet rtt/W of the last ACK, to a picosecond."""
    trace = fc.simulate(of(200, **PLAIN), "3ms", engine="packet", log=True)
    gaps = []
    for flow in range(10):
        last, rtt = 0.0, math.inf
        for event in replay(trace, flow):
            if isinstance(event, Ack):
                rtt = event.time - event.sent
                continue
            if event.window < PACKET:
                gaps.append((event.time - last, rtt * PACKET / event.window))
            last = event.time
    found, want = np.array(gaps).T
    assert len(found) > 50
    assert found == pytest.approx(want, rel=0, abs=1e-12)
    assert trace.summary["utilisation"] > 0.9


# -- delays and targets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "header"), [pytest.param("fluid", 48.0, marks=pytest.mark.slow), ("packet", 0.0), ("packet", 48.0)]
)
def test_an_empty_path_measures_its_base_rtt(engine: str, header: float) -> None:
    """The same number in both engines: to 1e-12 in the fluid, to half a picosecond for each store in packets."""
    paths = [
        fc.incast(1, rate="100Gbps", line_rate="25Gbps", scheme=fc.Swift(), header_bytes=header),
        fc.parking_lot(2, rate="40Gbps", scheme=fc.Swift(), initial_rate="1Gbps", header_bytes=header),
    ]
    for scenario, stores in zip(paths, (2, 3), strict=True):
        more = {"estimate_error": False} if engine == "fluid" else {"engine": "packet"}
        trace = fc.simulate(scenario, "9us", sample_interval="0.5us", **more)
        known = resolve(scenario)
        for i, flow in enumerate(known.flows[:1]):
            observed = trace["rtt"].values[:, i]
            measured = observed[observed > 0][0]
            base = base_rtt_with_serialisation(known, flow)
            assert measured == pytest.approx(base, rel=1e-12, abs=stores * 1e-12 if engine == "packet" else 0)
            assert switches(known, flow) == stores - 1


@pytest.mark.parametrize("engine", [pytest.param("fluid", marks=pytest.mark.slow), "packet"])
def test_the_target_counts_switches(engine: str) -> None:
    """5 us and 2 us for each switch; a tree has one, three or five between two hosts."""
    tree = fc.fat_tree([(0, 1), (0, 20), (0, 319)], scheme=fc.Swift(**PLAIN), initial_rate="1Gbps")
    paths = [of(1, **PLAIN), fc.parking_lot(3, rate="100Gbps", scheme=fc.Swift(**PLAIN))]
    for scenario in paths if engine == "fluid" else [*paths, tree]:  # the tree takes the fluid long to compile
        more = {"estimate_error": False} if engine == "fluid" else {"engine": "packet"}
        trace = fc.simulate(scenario, "20us", **more)
        shown = trace["target_delay"].values[-1]
        known = resolve(scenario)
        counts = [switches(known, flow) for flow in known.flows]
        assert counts in ([1], [3, 2, 2], [1, 3, 5])
        assert shown == pytest.approx([5e-6 + 2e-6 * count for count in counts], rel=1e-6)


def test_the_target_is_the_closed_form(closed: Any) -> None:
    """Both engines' targets, of windows from below fs_min to above fs_max, to 1e-6 (float32)."""
    for options in (SCALED, {"fs_range": "9us"}):
        p = bound(**options)
        for packets in (0.05, 0.1, 0.7, 5.0, 49.0, 80.0, 150.0):
            found = float(model.target_delay(p, np.asarray(packets)))
            assert found == pytest.approx(closed.target(p, TARGET, packets), rel=1e-6)
        trace = fc.simulate(of(8, **options), "300us", engine="packet", sample_interval="10us")
        window, target = trace["window"].values / PACKET, trace["target_delay"].values
        moved = np.abs(np.diff(window, axis=0)) < 1e-9  # the target shown is that of the window before the last ACK
        for i, j in np.argwhere(moved)[:20]:
            assert target[i + 1, j] == pytest.approx(closed.target(p, TARGET, window[i + 1, j]), rel=1e-6)


@pytest.mark.parametrize("flows", [2, 8, pytest.param(16, marks=pytest.mark.slow)])
def test_the_fluid_rests_at_the_root_of_the_cubic(flows: int, closed: Any) -> None:
    """Windows go up by ai in the round trip before the delay is observed: within 2 ai, and 0.1 %."""
    options = {"rate_ai": "50Mbps", **SCALED}
    p = resolve(of(flows, **options)).flows[0].scheme
    ai = p.rate_ai * T / PACKET
    trace = merged(flows, "6ms", **options)
    window = trace["window"].sel(time=slice(3e-3, None)).values.mean(axis=0) / PACKET
    root = closed.window(p, TARGET, flows)
    assert window == pytest.approx([root], rel=1e-3, abs=2 * ai)
    rtt = trace["rtt"].sel(time=slice(3e-3, None)).values
    assert rtt.mean() == pytest.approx(closed.target(p, TARGET, root), rel=1e-3, abs=2 * flows * ai * PACKET / CAPACITY)


@pytest.mark.parametrize(
    ("ai", "extra"),
    [(1.0, {}), (0.1, {}), pytest.param(0.1, {"feedback_delay": "4us"}, marks=pytest.mark.slow)],
    ids=["packets", "tenths", "feedback delay"],
)
def test_without_scaling_the_delay_is_the_target(ai: float, extra: dict[str, Any]) -> None:
    """Within N ai packets, by which windows overshoot in a round trip, also where a feedback delay is given."""
    trace = merged(8, "4ms", ai=ai, **PLAIN, **extra)
    rtt = trace["rtt"].sel(time=slice(2e-3, None)).values
    assert rtt.mean() == pytest.approx(TARGET, abs=8 * ai * PACKET / CAPACITY)
    # What waits makes up the difference to the empty path.
    waits = trace.summary["queue_bytes"]["mean"] / CAPACITY
    assert waits == pytest.approx(rtt.mean() - T, abs=8 * ai * PACKET / CAPACITY)


# -- the fluid against packets --------------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", [SCALED, PLAIN], ids=["scaled", "plain"])
@pytest.mark.parametrize("flows", [2, 8, pytest.param(16, marks=pytest.mark.slow)])
def test_incasts_are_as_in_packets(flows: int, scaling: dict[str, Any]) -> None:
    """Mean queue within N (ai + 1/2) packets: a round trip's increase, and windows of whole packets.

    The first windows' peak is within 10 %. Flows of the fluid are one class; those of packets are drawn together by
    scaled targets (Jain's index 0.98), and not by one target for all (0.9).
    """
    runs = [merged(flows, "4ms", **scaling), fc.simulate(of(flows, **scaling), "4ms", engine="packet")]
    ours, packets = (run.summary["queue_bytes"] for run in runs)
    assert ours["mean"] == pytest.approx(packets["mean"], abs=1.5 * flows * PACKET)
    assert ours["max_whole_run"] == pytest.approx(packets["max_whole_run"], rel=0.1)
    assert runs[1].summary["jain"] > (0.98 if scaling["flow_scaling"] else 0.9)
    for run in runs:
        assert run.summary["utilisation"] == pytest.approx(1.0, abs=1e-3)
    assert runs[0].summary["rate_bytes_per_s"] == pytest.approx([CAPACITY / flows], rel=1e-3)


@pytest.mark.slow
def test_crosscheck_is_within_its_tolerances() -> None:
    scenario = of(8)
    compared = fc.compare(run(scenario, "5ms"), fc.simulate(scenario, "5ms", engine="packet"))
    assert set(compared.tolerance) == {"queue_mean_rel", "queue_peak_rel", "window_rel"}
    assert compared.within


@pytest.mark.parametrize("engine", [pytest.param("fluid", marks=pytest.mark.slow), "packet"])
def test_who_starts_last_finishes_first(engine: str) -> None:
    """Snyder and Lebeck, Figs. 1 and 3: two flows of 1 MB every 20 us; an increase of 1 Gb/s ends the trend.

    Their figures give no numbers: the last pair is done before the first with 50 Mb/s, and with 1 Gb/s no earlier than
    nine tenths of it.
    """
    starts = [20e-6 * (i // 2) for i in range(16)]
    ends = []
    for increase in ("50Mbps", "1Gbps"):
        scheme = dataclasses.replace(PRESETS["fairness"].scheme, rate_ai=increase)
        scenario = fc.incast(16, rate="100Gbps", scheme=scheme, start=starts, size="1MB")
        more = {"estimate_error": False} if engine == "fluid" else {"engine": "packet"}
        trace = fc.simulate(scenario, "3ms", **more)
        end = np.array(trace.summary["fct_s"]) + starts
        ends.append(end[-2:].max() / end[:2].min())
    assert ends[0] < 1
    assert ends[1] > 0.9


# -- bad input, batches ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"beta": 1.5}, "beta"),
        ({"max_mdf": 0.0}, "max_mdf"),
        ({"base_target": "0us"}, "base_target"),
        ({"hop_target": "-1us"}, "hop_target"),
        ({"min_cwnd": 0.0}, "min_cwnd"),
        ({"ai": "5us"}, "ai"),
        ({"rate_ai": "fast"}, "rate_ai"),
        ({"flow_scaling": "maybe"}, "flow_scaling"),
    ],
)
def test_values_that_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        of(2, **options)


@pytest.mark.parametrize("engine", ["fluid", "packet"])
def test_scaling_must_have_a_range(engine: str) -> None:
    with pytest.raises(InputError, match="fs_min: 60 is not below fs_max 50; give less"):
        fc.simulate(of(2, fs_min=60.0, fs_max=50.0), "100us", engine=engine)


def test_a_bad_point_leaves_its_neighbours_alone() -> None:
    """The last of three points is as it is beside two good ones."""

    def make(fs_min: Any) -> Any:
        return fc.incast(1, multiplicity=2, rate="100Gbps", scheme=fc.Swift(fs_min=fs_min, fs_max=50.0))

    good, bad = (
        fc.sweep(make, {"fs_min": [0.1, second, 1.0]}, until="100us", estimate_error=False) for second in (0.2, 60.0)
    )
    assert good.dataset.reason.values.tolist() == [0, 0, 0]
    assert (bad.dataset.reason.values != 0).tolist() == [False, True, False]
    found = bad["queue_bytes.mean"].values
    assert found[[0, 2]] == pytest.approx(good["queue_bytes.mean"].values[[0, 2]], rel=1e-9)
    assert math.isnan(found[1])


@pytest.mark.parametrize("engine", [pytest.param("fluid", marks=pytest.mark.slow), "packet"])
def test_a_largest_window_holds_a_flow_alone(engine: str) -> None:
    """20 packets in each round trip of an empty path, after a first window of 52: to a percent in 400 us."""
    more = {"estimate_error": False} if engine == "fluid" else {"engine": "packet"}
    trace = fc.simulate(of(1, max_window="20KB"), "800us", **more)
    assert trace.summary["rate_bytes_per_s"][0] == pytest.approx(20e3 / T, rel=0.01)
