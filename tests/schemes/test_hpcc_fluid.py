"""HPCC's fluid model against its closed forms, the paper's figures, and the authors' packet simulator.

Tolerances were set before anything was measured; where one follows from the step, it says so.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.bind import bind
from fluidcc.contract.signals import Progress
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario
from fluidcc.scenario.round_trips import base_rtt_with_serialisation, largest_base_rtt, payload_base_rtt
from fluidcc.schemes.hpcc import PRESETS, fluid
from fluidcc.schemes.hpcc.parameters import HPCC
from tests.schemes.plain_laws import plain

model = plain(fluid)
NS3 = Path(__file__).parent.parent / "data" / "ns3"
CAPACITY = 12.5e9  # bytes/s, 100 Gbps
PACKET = 1042.0  # 1000 B and 42 B of telemetry
T = 4e-6 + 2 * (PACKET + 106.0) / CAPACITY  # two links of 1 us there and back, two packets and two ACKs stored
W_INIT = CAPACITY * T
W_AI, ETA = 80.0, 0.95
STEP = T / 40  # the default

REST = 1e-3  # windows circle around their fixed point by what changes in a step


def incast(flows: int, scheme: HPCC | None = None, **options: Any) -> Scenario:
    return fc.incast(flows, rate="100Gbps", delay="1us", scheme=scheme or HPCC(), **options)


@functools.cache
def run(flows: int, scheme: HPCC = HPCC()) -> Any:  # noqa: B008 (frozen)
    """Run equal flows as one class: one shape for all numbers."""
    scenario = incast(1, scheme, multiplicity=flows)
    return fc.simulate(scenario, until="1ms", estimate_error=False)


def drained(time: np.ndarray, queue: np.ndarray) -> float:
    """Time from the peak to the first sample at or below 5 % of it."""
    peak = int(np.argmax(queue))
    return float(time[peak + np.argmax(queue[peak:] <= 0.05 * queue[peak])] - time[peak])


# -- base round trips -----------------------------------------------------------------------------------------


def test_base_rtts() -> None:
    scenario = incast(2)
    assert (
        largest_base_rtt(scenario)
        == base_rtt_with_serialisation(scenario, scenario.flows[1])
        == pytest.approx(T, rel=1e-12)
    )
    uneven = fc.incast(2, rate="100Gbps", delay=["1us", "3us"], scheme=HPCC())
    assert largest_base_rtt(uneven) == pytest.approx(T + 4e-6, rel=1e-12)
    preset = PRESETS["hpcc-sim"]
    simulator = incast(2, preset.scheme, **preset.network)
    assert largest_base_rtt(simulator, payload_base_rtt) == pytest.approx(4160e-9, rel=1e-12)  # its computed_maxRtt
    bound = bind(simulator, simulator.flows[0])
    assert bound.initial_window == pytest.approx(52000.0, rel=1e-12)


def test_base_rtt_of_traced_values() -> None:
    def longest(delay: Any) -> Any:
        return largest_base_rtt(fc.incast(2, rate="100Gbps", delay=[1e-6, delay], scheme=HPCC()))

    with jax.enable_x64(True):
        value, slope = jax.value_and_grad(longest)(3e-6)
    assert float(value) == pytest.approx(T + 4e-6, rel=1e-12)
    assert float(slope) == pytest.approx(2.0, rel=1e-12)


# -- at equilibrium --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flows", [1, 16])
def test_rests_where_additive_increase_and_headroom_balance(flows: int) -> None:
    """W = W eta/U + W_AI at equilibrium, and N W/T = U B: U* = eta + N W_AI/(B T) (appendix A.3), with an empty
    queue.
    """
    late = run(flows).dataset.sel(time=slice(0.5e-3, None))
    fixed_point = ETA + flows * W_AI / W_INIT
    assert late.utilisation_estimate.mean() == pytest.approx(fixed_point, rel=REST)
    assert flows * late.rate.mean() == pytest.approx(fixed_point * CAPACITY, rel=REST)
    assert late.window.mean() == pytest.approx(fixed_point * W_INIT / flows, rel=REST)
    assert late.queue.max() == 0.0


def test_more_flows_than_packets_keep_a_queue() -> None:
    """64 windows of one packet exceed the base inflight; the rest waits: q = N packet - B T, U = 1 + q/(B T)."""
    late = run(64).dataset.sel(time=slice(0.5e-3, None))
    queue = 64 * PACKET - W_INIT
    assert (late.window == PACKET).all()
    assert late.queue.mean() == pytest.approx(queue, rel=REST)
    assert 64 * late.rate.mean() == pytest.approx(CAPACITY, rel=REST)


def test_second_flow_converges_to_fairness() -> None:
    trace = fc.simulate(
        incast(2, HPCC(w_ai="800B"), start=["0s", "200us"]), until="2ms", sample_interval="1us", estimate_error=False
    )
    alone = trace.dataset.sel(time=slice(50e-6, 199e-6))
    assert alone.rate[:, 0].mean() == pytest.approx((ETA + 800.0 / W_INIT) * CAPACITY, rel=REST)
    assert (alone.rate[:, 1] == 0).all()
    late = trace.dataset.sel(time=slice(1.5e-3, None)).rate.mean("time").values
    assert late[1] == pytest.approx(late[0], rel=REST)
    assert trace.summary["utilisation"] == pytest.approx(ETA + 1600.0 / W_INIT, rel=REST)


# -- incast ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flows", [16, 64])
def test_incast_peaks_at_the_first_windows_and_drains_at_line_rate(flows: int) -> None:
    data = run(flows).dataset
    time, queue = data.time.values, data.queue.values[:, 0]
    assert queue.max() == pytest.approx((flows - 1) * W_INIT, rel=0.01)  # N W_init sent while B T is drained
    i, j = (int(np.searchsorted(time, t)) for t in (10e-6, 40e-6))  # everyone is silent
    assert (queue[i] - queue[j]) / (time[j] - time[i]) == pytest.approx(CAPACITY, rel=1e-9)
    assert (data.rate.values[i:j] == 0).all()


def test_bytes_in_flight_stay_within_the_window() -> None:
    """sent - acknowledged <= W unless W was cut below what is in flight, when nothing is sent."""
    scenario = incast(1, multiplicity=4)
    data = fc.simulate(scenario, until="100us", sample_interval=STEP, estimate_error=False).dataset
    time, rate, queue = data.time.values, data.rate.values, data.queue.values[:, 0]
    step = time[1] - time[0]
    sent = np.concatenate([np.zeros((1, 1)), np.cumsum(rate[1:] * step, axis=0)])  # of the step that ended
    there = 1e-6 + PACKET / CAPACITY
    leaves = time + queue / CAPACITY  # when what arrives now leaves; packets wait in one queue
    back = T - there
    arrival = np.interp(time - back, leaves, time)
    acked = np.interp(arrival - there, time, sent[:, 0], left=0.0)[:, None]
    inflight = sent - acked
    window = data.window.values
    step_bytes = CAPACITY * step
    assert inflight.max() > 0.95 * W_INIT
    over = inflight[1:] > window[:-1] + 2 * step_bytes  # one of sending, one of this reconstruction
    assert (np.diff(sent, axis=0)[over] == 0).all()
    assert over.any()
    assert (inflight[-100:] <= window[-100:] + 2 * step_bytes).all()


# -- the paper's comparisons -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_reacting_to_every_ack_overreacts() -> None:
    """Fig. 13: per-ACK loses throughput after an incast, per-RTT keeps the queue longer, HPCC does neither."""
    output, half = {}, {}
    for reaction in ("combined", "per-ack", "per-rtt"):
        data = run(16, HPCC(reaction=reaction)).dataset.sel(time=slice(0, 300e-6))
        time, queue = data.time.values, data.queue.values[:, 0]
        sent = data.sent.sel(time=slice(60e-6, 160e-6)).values[:, 0]
        output[reaction] = (sent[-1] - sent[0]) / CAPACITY / 100e-6
        half[reaction] = time[np.flatnonzero(queue > 0.5 * queue.max())[-1]]
    assert output["combined"] > 0.93
    assert output["per-ack"] < 0.85 * output["combined"]
    assert half["per-rtt"] > 2 * half["combined"]


@pytest.mark.slow
def test_arrival_rate_as_feedback_oscillates() -> None:
    """Fig. 6: with rxRate the queue of 2 to 1 comes back before it converges, with txRate it does not."""
    peaks = {}
    for rate in ("tx", "rx"):
        queue = run(2, HPCC(u_rate=rate)).dataset.sel(time=slice(0, 100e-6)).queue.values[:, 0]
        empty = int(np.argmax(queue)) + int(np.argmax(queue[np.argmax(queue) :] < 0.05 * queue.max()))
        peaks[rate] = queue[empty:].max() / queue.max()
    assert peaks["tx"] < 0.05
    assert peaks["rx"] > 0.25


# -- numbers --------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_first_order_in_the_step() -> None:
    """Events fall between steps, so the peak's error halves with the step; means at equilibrium are better than 1 %."""
    peaks = []
    for dt in (4e-8, 2e-8, 1e-8):
        trace = fc.simulate(incast(4), until="40us", dt=dt, estimate_error=False)
        peaks.append(trace.summary["queue_bytes"]["max_whole_run"])
    errors = np.abs(np.diff(peaks))
    assert (errors < CAPACITY * np.array([4e-8, 2e-8])).all()  # a step's bytes at the rate of the bottleneck
    error = fc.simulate(incast(64), until="500us").summary["discretisation_error"]
    assert error["queue_rel"] < 0.01
    assert error["rate_rel"] < 0.01


@pytest.mark.slow
def test_batch_equals_single() -> None:
    values = [25.0, 80.0, 150.0]

    def make(w_ai: Any) -> Scenario:
        return incast(1, HPCC(w_ai=w_ai), multiplicity=16)

    grid = fc.sweep(make, over={"w_ai": values}, until="1ms", dt=STEP, estimate_error=False)
    for i, w_ai in enumerate(values):
        alone = fc.simulate(make(w_ai), until="1ms", dt=STEP, estimate_error=False).summary
        assert grid.dataset.utilisation.values[i] == pytest.approx(alone["utilisation"], rel=1e-9)
        peak = grid.dataset["queue_bytes.max_whole_run"].values[i]
        assert peak == pytest.approx(alone["queue_bytes"]["max_whole_run"], rel=1e-9)


@pytest.mark.slow
def test_gradients_are_finite_and_right() -> None:
    """At equilibrium utilisation is U* = eta + N W_AI/(B T); steps as taken are differentiated."""

    def used(values: Any) -> Any:
        scheme = HPCC(w_ai=values[0], eta=values[1])
        return fc.measure(incast(2, scheme), until="300us", window="250us:300us", dt=STEP)["utilisation"][0]

    with jax.enable_x64(True):
        by_w_ai, by_eta = jax.jit(jax.jacfwd(used))(jnp.array([W_AI, ETA]))
    assert float(by_eta) == pytest.approx(1.0, rel=0.05)  # not quite at equilibrium yet
    assert float(by_w_ai) == pytest.approx(2.0 / W_INIT, rel=0.05)


def numbers(state: fluid.State) -> fluid.State:
    return model.State(*(np.asarray(value).item() for value in state))


def step_of(scheme: HPCC, state: fluid.State, acked: float, sent: float) -> fluid.State:
    one = np.ones((1, 1))
    observed = Progress(
        sent * one, acked * one, 0 * one, PACKET * one, PACKET * one, CAPACITY * one, one[None], T * one
    )
    return numbers(model.jump(scheme, jax.tree.map(np.asarray, state), observed, one[None]))


def test_algorithm_1_step_by_step() -> None:
    scheme = HPCC(base_rtt=T, initial_window=W_INIT, w_ai=W_AI)
    one = np.ones((1, 1))
    state = model.start(scheme, CAPACITY * one, (1, 1), 1)
    silent = step_of(scheme, state, 0.0, 1e4)
    assert silent == numbers(state)
    first = step_of(scheme, silent, 100.0, 5e4)  # the first ACK only records
    assert (first.window, first.last_update) == (silent.window, 5e4)
    fast = step_of(scheme, first._replace(utilisation=2.0), 1e4, 6e4)  # line 26: W moves, W^c stays
    assert fast.window == pytest.approx(first.window * ETA / 2 + W_AI, rel=1e-6)
    assert fast.reference_window == first.reference_window
    update = step_of(scheme, fast, 5.1e4, 7e4)  # line 23
    assert update.reference_window == update.window == pytest.approx(fast.window, rel=1e-6)
    assert update.last_update == 7e4
    added = step_of(scheme, update._replace(utilisation=0.5), 7.1e4, 8e4)  # lines 17-19
    assert added.window == pytest.approx(update.window + W_AI, rel=1e-6)
    assert added.stage == 1.0
    last = step_of(scheme, added._replace(stage=5.0), 8.1e4, 9e4)  # line 12: incStage >= maxStage
    assert last.window == pytest.approx(added.window * ETA / 0.5 + W_AI, rel=1e-6)
    assert last.stage == 0.0


def test_bad_input() -> None:
    with pytest.raises(InputError, match="float64"):
        fc.simulate(incast(2), until="100us", dtype="float32")


@pytest.mark.slow
def test_mixes_with_a_scheme_without_windows() -> None:
    """DCQCN beside HPCC: each observes its own signals, and the link carries both."""
    from fluidcc.schemes.dcqcn import DCQCN

    slow = fc.incast(1, rate="100Gbps", delay="1us", scheme=DCQCN(feedback_delay=None), initial_rate="10Gbps")
    scenario = Scenario(slow.links, (*incast(1).flows, *slow.flows))
    found = fc.simulate(scenario, until="1ms", estimate_error=False)
    assert found.summary["utilisation"] > 0.9
    assert np.isfinite(found.dataset.rate.values).all()
    assert found.dataset.window.isnull().any("time").values.tolist() == [False, True]
