"""The fluid with flow control: conservation, pauses in closed form, ternary detection, and ACC's chain against packets.

Tolerances were set before measuring: 1e-9 for counts, two steps for times, 1 % for means over many pauses, 2 % against
the network without flow control (what both may differ from closed forms by, `test_acc_fluid`), and 25 % against
packets, whose hosts do not pause in unison as those of one class do.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.engines.fluid import engine
from fluidcc.engines.fluid import marking as fluid_marking
from fluidcc.engines.fluid.classes import system_of
from fluidcc.engines.fluid.lossless import LosslessNetwork
from fluidcc.engines.fluid.network import network_of, with_points
from fluidcc.engines.fluid.plan import plan_of
from fluidcc.engines.packet import layout, marking
from fluidcc.engines.packet.layout import records
from fluidcc.errors import InputError
from fluidcc.scenario.model import Flow, Link, Scenario, resolve
from fluidcc.schemes.none import NoControl
from fluidcc.units import Rate
from tests.engines.fluid.in_numpy import Run, numpy_only
from tests.engines.packet.plain import plain
from tests.schemes import plain_laws

__all__ = ["numpy_only"]

C = Rate(12.5e9)
US = 1e-6
GAP = 3000.0
# A scheme asks for flow control; this flow of it sends nothing in any of these runs.
ASKS = Flow((0,), fc.ACC(period="50us"), "100Gbps", start="1s", access_delay="1us", name="asks")
CLOSE = 1e-9


def run(scenario: Scenario, until: Any, **more: Any) -> fc.Trace:
    return fc.simulate(scenario, until, estimate_error=False, **more)


def sender(path: tuple[int, ...], **more: Any) -> Flow:
    return Flow(path, NoControl(), **{"line_rate": "100Gbps", "access_delay": "1us", **more})


def row(links: int, flows: list[Flow], xoff: Any = "100KB", delay: Any = "1us", **more: Any) -> Scenario:
    """Links of 100 Gb/s one after the other, and flow control."""
    made = tuple(Link("100Gbps", delay, source=f"SW{i}", target=f"SW{i + 1}") for i in range(links))
    return resolve(Scenario(made, (*flows, ASKS), pfc=fc.PFC(xoff, **more)))


def chain(hosts: int, fluid: bool, scheme: Any, f1: Any = None, rate: str = "40Gbps", start: str = "1ms") -> Scenario:
    """Fig. 1(a) with hosts that send for 2 ms what flow control lets them: a class in the fluid, flows in packets."""
    base = fc.chain(0, scheme=scheme, initial_rate=rate)
    f0, own = base.flows
    burst = Flow((4,), NoControl("0:100Gbps,2ms:0"), "100Gbps", start, access_delay="2us", target="R1")
    names = ["H"] if fluid else [f"H{i}" for i in range(hosts)]
    of_each = float(hosts) if fluid else 1.0
    bursts = [dataclasses.replace(burst, name=name, source=name, multiplicity=of_each) for name in names]
    own = own if f1 is None else dataclasses.replace(own, scheme=f1)
    return resolve(dataclasses.replace(base, flows=(f0, own, *bursts)))


def counted(scenario: Scenario, until: Any, samples: int = 40) -> tuple[Any, list[Any], Any]:
    """The system of a run, its carry at equal times, and the plan."""
    network = network_of(resolve(scenario))
    plan = plan_of(network, until=until, samples=samples)
    with jax.enable_x64(True):
        network, numbers = with_points(network, np.dtype(plan.dtype)), engine.numbers_of(plan)
        static = {name: getattr(plan, name) for name in ("depth", "method", "aligned")} | {"points": 1}
        proceed = jax.jit(lambda *given: engine.proceed(*given, plan.stride, samples=1, full=False, **static)[0])
        progress = jax.jit(lambda *given: engine.begin(*given, **static))(network, numbers)
        carries = []
        for _ in range(plan.samples):
            carries.append(jax.tree.map(np.asarray, progress.carry))
            progress = proceed(network, numbers, progress)
        return system_of(network, 1, numbers.limit), carries, plan


# -- counts ------------------------------------------------------------------------------------------------------


def test_no_byte_is_lost_made_or_out_of_bounds(numpy_only: None) -> None:
    """Of Fig. 1's chain, with pauses up to the senders: counts at each hop, each queue, each ingress, each sender."""
    scenario = chain(15, True, fc.ACC(), NoControl(), start="20us")
    dt = 0.5 * US
    made = Run(scenario, dt)
    system: Any = made.system
    hops, gate, net = [flow for flow, _, _ in system._hops], system._gate, system.network
    own, last = np.array(gate.own), np.append(np.array(gate.own)[1:], True)
    members = np.array([flow.multiplicity for flow in scenario.flows])[hops]
    lags = np.asarray(gate.hop_lag)[:, 0]
    paused = 0.0
    for carry in made.steps(250):
        y, z = carry.y, carry.z
        count = len(hops)
        came, left = y.counts.came[:count, 0], y.counts.left[:count, 0]
        scale = max(float(came.max()), 1.0)
        sent = y.sent[hops, 0] * members
        before = np.where(own, sent, np.roll(left, 1))
        flying = before - came
        assert (flying >= -CLOSE * scale).all()
        assert (flying <= members * C * (lags + dt) * (1 + CLOSE)).all()
        assert (came - left >= -CLOSE * scale).all()  # contents
        whole = np.bincount(hops, flying + came - left) + left[last]
        assert whole == pytest.approx(sent[own], abs=CLOSE * scale)
        gone = np.array([left[np.asarray(system._at) == q].sum() for q in range(5)])
        served = np.asarray(net.capacity)[0] * carry.step * dt - z.idle[:, 0]
        assert gone == pytest.approx(served, abs=CLOSE * max(float(served.max()), 1.0))
        for part in (1, 2):  # marked bytes are some of those that went on
            marked = y.counts.left[part * count : (part + 1) * count, 0]
            assert (marked >= -CLOSE * scale).all()
            assert (marked <= left + CLOSE * scale).all()
        held = np.asarray(system._by_ingress) @ ((came - left) * np.asarray(gate.share)[:, 0])
        assert (held <= 512e3 + C * (2 * np.asarray(gate.delay)[:, 0] + dt)).all()
        paused = float(y.counts.paused.max())
    assert paused > 2e-5


@pytest.mark.slow
def test_what_finite_flows_send_is_delivered() -> None:
    """2:1 for 1 MB each: both are done 2 MB after the first came, plus the way; to 1 %, as packets are."""
    flows = [sender((0,), size="1MB", name=str(i)) for i in range(2)]
    scenario = row(1, flows)
    _, carries, plan = counted(scenario, "400us")
    counts, sent = carries[-1].y.counts, carries[-1].y.sent[:2, 0]
    assert counts.came[:2, 0] == pytest.approx(sent, rel=CLOSE)
    assert counts.left[:2, 0] == pytest.approx(sent, rel=CLOSE)
    assert sent == pytest.approx([1e6, 1e6], abs=C * plan.dt)  # a flow ends with a step
    times = run(scenario, "400us").summary["fct_s"][:2]
    packets = fc.simulate(scenario, "400us", engine="packet").summary["fct_s"][:2]
    assert times == pytest.approx([2e6 / C + 4 * US] * 2, rel=0.01)
    assert times == pytest.approx(packets, rel=0.01)


@pytest.mark.slow
def test_bytes_leave_in_the_order_in_which_they_came() -> None:
    """400 KB are ahead of a flow of 10 Gb/s that begins 64 us later: it observes 32 us late, and the backlog ages."""
    early = [Flow((0,), NoControl("0:75Gbps,64us:0"), "75Gbps", access_delay="1us", name=name) for name in "ab"]
    flows = [*early, sender((0,), start="64us", initial_rate="10Gbps", line_rate="10Gbps", name="late")]
    _, carries, plan = counted(row(1, flows, "10MB"), "150us", samples=150)
    times = np.array([carry.step * plan.dt for carry in carries])
    trips = np.array([carry.z.pauses.round_trip[2, 0] for carry in carries])
    acked = np.array([carry.z.acked[2, 0] for carry in carries])
    first = int(np.flatnonzero(acked > 0)[0])
    wait = 0.5 * 64e-6
    assert times[first] == pytest.approx(64e-6 + 4 * US + wait, abs=plan.dt + 1.1 * US)
    # Sent at s, it finds what is left of 400 KB and its own tenth: it waits 32 us - 0.9 (s - 64 us).
    for k in range(first + 2, len(times) - 1):
        s = times[k] - trips[k]
        if wait > 0.9 * (s - 64e-6):
            assert trips[k] == pytest.approx(4 * US + wait - 0.9 * (s - 64e-6), abs=2 * plan.dt)


# -- pauses in closed form ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("members", [1, 3])
def test_an_overload_is_shared_by_pauses(members: int) -> None:
    """Senders at C each get C over their number, flows or one class: that is their duty cycle, to 1 %."""
    flows = [sender((0,), name="a", multiplicity=members)] + ([sender((0,), name="b")] if members == 1 else [])
    trace = run(row(1, flows), "4ms", window="1ms:4ms")
    count = 2 if members == 1 else members
    assert trace.summary["rate_bytes_per_s"][: len(flows)] == pytest.approx([C / count] * len(flows), rel=0.01)
    assert trace.summary["links"][0]["utilisation"] == pytest.approx(1.0, abs=CLOSE)
    # Each holds xoff, and what comes at C and goes at C/N in two delays; at least the gap less, and what then goes.
    queue, step = trace["queue"].values[500:, 0] / count, C * float(trace.dataset.attrs["dt_s"])
    assert queue.max() <= 1e5 + C * (1 - 1 / count) * 2 * US + step
    assert queue.min() >= 1e5 - GAP - C / count * 2 * US - step


def test_pauses_go_from_hop_to_hop() -> None:
    """A flow over three switches, the last link overloaded by a second: each switch fills, one after the other.

    SW2's ingress fills at C/2; the port before is stopped a delay d later, then SW1's fills at C, and SW0's, whose
    sender falls silent. Without a RESUME until half of SW2's has left, none of that is undone before.
    """
    d, fill = 1 * US, 1e5 / C
    flows = [sender((0, 1, 2), name="far"), sender((2,), start=2 * d, name="near")]
    trace = run(row(3, flows, xon_gap="60KB"), "80us", sample_interval="20ns", dt="20ns")
    time, paused, sends = trace["time"].values, trace["paused"].values, trace["rate"].values[:, 0]
    begins = [time[int(np.flatnonzero(paused[:, link] > 0)[0])] for link in (1, 0)]
    began = 3 * d  # both at SW2
    first = began + 2 * fill + d
    assert begins[0] == pytest.approx(first, abs=40e-9)
    assert begins[1] == pytest.approx(first + fill + d, abs=40e-9)
    assert time[int(np.flatnonzero(sends < 0.5 * C)[0])] == pytest.approx(first + 2 * fill + 2 * d, abs=40e-9)
    # SW2 resumes when 60 KB and what came after its PAUSE are gone, at C/2.
    late = C / 2 * 2 * d
    growing = np.flatnonzero(np.diff(paused[:, 1]) > 0)
    stops = int(np.flatnonzero(np.diff(growing) > 1)[0])
    assert paused[growing[stops] + 1, 1] == pytest.approx(2 * d + (6e4 + late) / (C / 2), abs=40e-9)


@pytest.mark.slow
def test_without_pauses_it_is_the_network_without_flow_control() -> None:
    """An incast below the threshold: first halts, peak and utilisation."""
    found = []
    for pfc in (None, fc.PFC("10MB")):
        scenario = fc.incast(10, rate="100Gbps", scheme=fc.ACC(), pfc=pfc)
        trace = run(scenario, "300us", sample_interval="50ns")
        halt = trace["halt_time"].values[:, 0]
        first = int(np.flatnonzero(halt > 0)[0])
        found.append([trace["time"].values[first], halt[first], trace["queue"].values.max()])
        found[-1] += [trace.summary["utilisation"], *trace["pacing_rate"].values[first]]
    assert found[1] == pytest.approx(found[0], rel=0.02)


# -- ternary detection -------------------------------------------------------------------------------------------

MAX_ON = 24.5 * US
STEPS = st.lists(st.tuples(st.integers(0, 8), st.sampled_from(["", "", "", "", "", "RESUME", "idle"])), max_size=120)


@given(STEPS)
def test_marks_are_those_of_packets(steps: list[tuple[int, str]]) -> None:
    """Steps of 4 us, in which a packet leaves a queue of so many packets, or none does, or a pause ends: exactly."""
    core, port = records(layout.CORE, 1)[0], records(layout.PORT, 1)[0]
    port.kmin = port.kmax = 2000
    port.pmax, port.max_on = 1.0, round(MAX_ON * 1e12)
    packet, names = plain(marking.ternary), {0: (0, 0), 1: (0, 1), 2: (1, 0)}
    none, law = np.zeros((1, 1)), plain_laws.plain(fluid_marking)
    ours = law.TernaryState(none, none, none + np.inf, none, none, none, none)
    dt = np.asarray(4 * US)
    for k, (packets, event) in enumerate(steps):
        core.now, queue = 4_000_000 * (k + 1), 1000 * packets
        if event == "RESUME":
            port.resumed[1], port.at_resume[1] = core.now, queue
            ours = ours._replace(held=none + 1, paused=none + dt)
        at = none + queue
        leaves = event != "idle"
        ours = law.after_pause(ours, none, at, dt)
        over = np.where(at > 2000, 1.0, 0.0)
        ce, ue, ours = law.ternary(ours, over, at, none + leaves > 0, none + MAX_ON, none + 1000, dt)
        if leaves:
            port.queues[1].bytes = queue
            assert (float(ce[0, 0]), float(ue[0, 0])) == names[int(packet(core, None, port, 1, 1000))]


@pytest.mark.slow
@pytest.mark.parametrize(("quiet", "periods"), [("1.005ms", 2), ("1.01ms", 4)])
def test_a_victim_halves_beyond_p_thresh(quiet: str, periods: int) -> None:
    """F1 fills SW4 until then, and F0, which never goes there, observes UE in two or four periods in a row.

    All but P_thresh of them halve its rate; increases of 1 Mb/s are 0.02 % a period.
    """
    for p_thresh in (0, 1, 3):
        scheme = fc.ACC(p_thresh=p_thresh, ri_low="1Mbps", ri_high="1Mbps")
        scenario = chain(15, True, scheme, NoControl(f"0:40Gbps,{quiet}:0"), start="0.9ms")
        rate = run(scenario, "2ms", sample_interval="2us")["pacing_rate"].values[:, 0]
        falls = int((rate[1:] < 0.6 * rate[:-1]).sum())
        assert falls == max(periods - p_thresh, 0)
        assert rate.min() == pytest.approx(5e9 / 2**falls, rel=0.02)


# -- ACC's chain against packets ---------------------------------------------------------------------------------


def compared(hosts: int, **options: Any) -> tuple[list[float], list[float], list[fc.Trace]]:
    """Peak of P4, and mean rates of F0, F1 and the hosts in the burst."""
    found, traces = [], []
    for fluid in (True, False):
        more: dict[str, Any] = {"estimate_error": False} if fluid else {"engine": "packet"}
        scenario = chain(hosts, fluid, **options)
        trace = fc.simulate(scenario, "3ms", window="1ms:3ms", sample_interval="1us", **more)
        rates = trace.summary["rate_bytes_per_s"]
        found.append([float(trace["queue"].values[:, 4].max()), rates[0], rates[1], float(np.mean(rates[2:]))])
        traces.append(trace)
    return found[0], found[1], traces


@pytest.mark.slow
@pytest.mark.parametrize(("hosts", "p_thresh"), [(10, 1), (15, 0), (15, 3), (20, 1)])
def test_a_victim_is_that_of_packets(hosts: int, p_thresh: int) -> None:
    """F1 heeds nothing, so that SW1 to SW3 are paused; F0 observes UE, and its first two falls are those of packets."""
    scheme = fc.ACC(p_thresh=p_thresh, ri_low="1Mbps", ri_high="1Mbps")
    fluid, packets, traces = compared(hosts, scheme=scheme, f1=NoControl())
    assert fluid == pytest.approx(packets, rel=0.25)  # falls of whole periods, a PAUSE's moment apart
    assert (traces[0]["paused"].values[-1, :3] > 0).all()
    assert all(traces[1].summary["pfc"]["pauses_received"][name] > 0 for name in ("SW1", "SW2", "SW3"))


@pytest.mark.slow
@pytest.mark.parametrize("hosts", [10, 20])
def test_bursts_are_those_of_packets(hosts: int) -> None:
    """F1 halts, in each period of the halt anew: nothing in SW1 to SW3 is paused; means over moments of the burst."""
    sums = np.zeros((2, 4))
    for start in ("1ms", "1.005ms", "1.01ms", "1.015ms"):
        fluid, packets, traces = compared(hosts, scheme=fc.ACC(extension="inflight"), rate="50Gbps", start=start)
        sums += [fluid, packets]
        assert (traces[0]["paused"].values[-1, :3] == 0).all()
        assert all(traces[1].summary["pfc"]["pauses_received"][name] == 0 for name in ("SW1", "SW2", "SW3"))
    assert sums[0] == pytest.approx(sums[1], rel=0.25)  # of four moments; falls of whole periods


# -- where it is used, batches, bad input --------------------------------------------------------------------------


def test_only_who_asks_gets_it() -> None:
    def lossless(scenario: Scenario) -> bool:
        return isinstance(system_of(network_of(resolve(scenario)), 1, jnp.asarray(1.0)), LosslessNetwork)

    fixed = fc.PFC("512KB")
    assert lossless(fc.incast(2, scheme=fc.ACC(), pfc=fixed))
    others: list[tuple[Any, dict[str, Any]]] = [
        (fc.ACC(), {}),
        (fc.ACC(), {"pfc": fc.PFC()}),
        (fc.ACC(), {"pfc": fixed, "classes": (fc.TrafficClass(), fc.TrafficClass())}),
        (fc.ACC(feedback_delay="5us"), {"pfc": fixed}),
        (fc.DCQCN(), {"pfc": fixed}),
        (fc.HPCC(), {"pfc": fixed}),
        (NoControl(), {"pfc": fixed}),
    ]
    for scheme, options in others:
        assert not lossless(fc.incast(2, scheme=scheme, **options))


@pytest.mark.slow
def test_a_sweep_over_thresholds_is_its_points() -> None:
    """To 1e-6, as each alone with the same step."""

    def make(xoff: Any, hosts: Any) -> Scenario:
        return fc.incast(2, rate="100Gbps", scheme=fc.ACC(), pfc=fc.PFC(xoff), multiplicity=hosts)

    over = {"xoff": ["20KB", "100KB"], "hosts": [1.0, 4.0]}
    found = fc.sweep(make, over, until="100us", dt="50ns", estimate_error=False).dataset
    assert (found.reason == 0).all()
    for i, xoff in enumerate(over["xoff"]):
        alone = run(make(xoff, 4.0), "100us", dt="50ns").summary["queue_bytes"]["max_whole_run"]
        assert float(found["queue_bytes.max_whole_run"][i, 1]) == pytest.approx(alone, rel=1e-6)


def test_steps_fit_into_the_delays_of_pauses() -> None:
    with pytest.raises(InputError, match=r"dt: .* exceeds the shortest lag"):
        run(fc.incast(2, scheme=fc.ACC(), pfc=fc.PFC("100KB")), "50us", dt="2us")
