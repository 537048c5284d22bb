"""Stability of HPCC's rates (appendix A.3): with txRate and rxRate, with and without U's queue term, two delays.

A.3 shows that the rates settle without a standing queue if all delays equal T. This module covers other delays, and
increases beyond the headroom that eta leaves, which make a standing queue. Windows behave differently: they count
bytes in flight, and settle beyond the headroom too.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.builders import incast
from fluidcc.plotting.stability import draw_chart
from fluidcc.plotting.style import figure as new_figure
from fluidcc.proofs import papers
from fluidcc.proofs.shared.runs import GBPS, WIDTH, save
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.scenario.model import Flow, Link, Scenario, resolve
from fluidcc.scenario.round_trips import serialisation_rtt
from fluidcc.schemes.hpcc import HPCC
from fluidcc.studies.sweeps.chart import StabilityChart, stability_chart
from fluidcc.theory.control.limit_cycle import limit_cycle
from fluidcc.theory.recursion.additive import additive_increase

C, T, ETA, FLOWS = 100 * GBPS, 4e-6, 0.95, 16
HEADROOM = (1 - ETA) * C  # bytes/s that all increases may add without a queue
CASES = {
    (rate, queue): f"{rate}Rate, {'with' if queue else 'without'} qlen"
    for rate in ("tx", "rx")
    for queue in (True, False)
}
LIMIT: dict[str, Any] = {"until": "10ms", "window": "0.5ms", "estimate_error": False}
LABELS = {
    "share": "increase of all flows, N a, over the headroom (1 - eta) C",
    "delay": "feedback delay over T",
    "first": "feedback delay of 8 flows over T",
    "second": "feedback delay of the other 8 over T",
}
# Near the equilibrium at half the headroom, 0.975 of the capacity: an overshoot that fills the link starts a cycle
# beside the stable rest, as from 0.9 of it.
START = 0.97 * C / FLOWS
# Of the headroom and of T: where a run says what the roots say.
RUNS = ((0.5, 1.0), (0.5, 2.5), (1.2, 0.3), (1.2, 1.0))


def rates(
    share: Any, delay: Any, *, u_rate: str = "tx", u_queue: bool = True, form: str = "rate", start: float = START
) -> Scenario:
    """Sixteen equal flows."""
    a = share * HEADROOM / FLOWS
    scheme = HPCC(form=form, rate_ai=a, base_rtt=T, feedback_delay=delay * T, u_rate=u_rate, u_queue=u_queue)
    return incast(1, rate=C, multiplicity=FLOWS, scheme=scheme, initial_rate=start)


def two_delays(first: Any, second: Any) -> Scenario:
    """Two classes of eight, at half the headroom."""
    flows = tuple(
        Flow(
            path=(0,),
            line_rate=C,
            multiplicity=FLOWS / 2,
            scheme=HPCC(form="rate", rate_ai=0.5 * HEADROOM / FLOWS, base_rtt=T, feedback_delay=delay * T),
        )
        for delay in (first, second)
    )
    return Scenario((Link(rate=C),), flows)


def critical(share: float) -> float:
    """A.3's sum of rates, T s' = -(1 - l) s - l s(t - D): critical D over T, l = eta/U.

    D is the feedback delay and what a packet and its ACK are stored for on the way.
    """
    lam = ETA / (ETA + share * (1 - ETA))
    return math.acos(-(1 - lam) / lam) / math.sqrt(lam**2 - (1 - lam) ** 2)


def critical_beyond(share: float, rate: str) -> float:
    """Return the critical D beyond the headroom of y' = x, x' = -v x - k y(t - D), and - k x(t - D) with rxRate.

    y and x are the deviations of the queue and of the sum of rates; v = N a/C and k = (1 - v)^2/eta, times in T.
    """
    v = share * (1 - ETA)
    k = (1 - v) ** 2 / ETA
    hears = k**2 if rate == "rx" else 0.0
    w = math.sqrt(((hears - v**2) + math.sqrt((hears - v**2) ** 2 + 4 * k**2)) / 2)
    return (math.atan(v / w) + (math.atan(w) if rate == "rx" else 0.0)) / w


@reproduces("hpcc-stability", papers.HPCC, "no figure: where appendix A.3's rates are stable")
def make_stability(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    side = 12 if quick else 48
    grid = {"share": np.linspace(0.05, 1.5, side), "delay": np.linspace(0.05, 3.0, side)}
    charts = {(rate, queue): stability_chart(partial(rates, u_rate=rate, u_queue=queue), grid) for rate, queue in CASES}
    both = np.linspace(0.2, 3.4, side)
    apart = stability_chart(two_delays, {"first": both, "second": both})
    values: dict[str, float | bool] = {}
    expected: dict[str, Check] = {}

    def say(key: str, value: float | bool, check: Check) -> None:
        values[key], expected[key] = value, check

    edge = charts["tx", True].dataset["boundary"].values
    below = edge[edge[:, 0] < 0.999]
    off: float = max(abs((delay + _stored()) / critical(share) - 1) for share, delay in below)
    say("boundary_below_headroom_rel", off, Check(0.0, 1e-6, "closed form: arccos(-(1-l)/l)/sqrt(l^2-(1-l)^2)"))
    say("critical_delay_at_the_headroom", critical(1.0), Check(1.711269, 5e-7, "l = eta = 0.95"))
    data = charts["rx", True].dataset
    counts = np.bincount(data["curve"].values)
    followed = counts[data["curve"].values] > 1  # a jump, at the headroom, is a point
    over = data["boundary"].values[followed & (data["boundary"].values[:, 0] > 1.001)]
    off = max(abs((delay + _stored()) / critical_beyond(share, "rx") - 1) for share, delay in over)
    say("rx_boundary_beyond_rel", off, Check(0.0, 1e-6, "closed form of queue and sum, two equations"))
    for (rate, queue), text in CASES.items():
        beyond = charts[rate, queue].dataset.sel(share=slice(1.001, None))
        if queue:
            stable = bool((beyond.stable == 1).any())
            why = "behind a queue txRate is C whatever comes: it bears N a/C of T, less than storing takes"
            why = why if rate == "tx" else "rxRate damps"
            say(f"{rate}_stable_somewhere_beyond", stable, Check(rate == "rx", 0, why))
        else:
            fixed_points = bool((beyond.reason == "ok").any())
            say(
                f"{rate}_without_queue_settles_beyond",
                fixed_points,
                Check(False, 0, f"{text}: the queue grows for ever"),
            )
    for share, delay in RUNS:
        run = limit_cycle(rates(share, delay), **LIMIT)
        stable = float(charts["tx", True].dataset.root.sel(share=share, delay=delay, method="nearest")) < 0
        say(
            f"run_settles_at_{share:g}_headroom_{delay:g}T",
            run.kind == "equilibrium",
            Check(stable, 0, "the rightmost root"),
        )
    far = rates(0.5, 1.0, start=0.9 * C / FLOWS)
    run = limit_cycle(far, **LIMIT)
    say(
        "run_settles_from_0.9_of_capacity",
        run.kind == "equilibrium",
        Check(False, 0, "overshoots into the queue: two ends"),
    )
    windows = limit_cycle(rates(1.2, 1.0, form="window"), **LIMIT)
    say("windows_settle_at_1.2_headroom", windows.kind == "equilibrium", Check(True, 0, "bytes in flight are bounded"))
    why = "l^n = 0.01 at the headroom, l = eta: 89.78 round trips"
    say("steps_to_one_percent", _settling(), Check(math.log(0.01) / math.log(ETA), 1e-6, why))
    mean = apart.dataset["boundary"].values
    same = mean[np.abs(mean[:, 0] - mean[:, 1]).argmin()]
    say("equal_delays_of_two_classes", float(same.mean()), Check(critical(0.5) - _stored(), 0.02, "as one class"))
    notes = (
        "rates of appendix A.3, 100 Gbps, T = 4 us, 16 flows; grey: no equilibrium; runs start at 0.97 of the capacity",
        *(("quick: 12 by 12 points",) if quick else ()),
    )
    data = charts["tx", True].dataset
    files = (_draw(charts, apart).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        expected,
        files,
        notes,
        sample=f"the charts are computed; {len(RUNS) + 2} runs of the fluid of {LIMIT['until']}; nothing is drawn",
    )


def _stored() -> float:
    """Time in which a packet and its ACK are stored, over T."""
    scenario = resolve(rates(0.5, 1.0))
    return float(serialisation_rtt(scenario, scenario.flows[0])) / T


def _settling() -> float:
    """Steps of A.3's recursion in which differences between rates shrink to a hundredth, between steps."""
    start = C / FLOWS * np.where(np.arange(FLOWS) % 2, 1.02, 0.98)
    run = additive_increase(np.ones((1, FLOWS)), [C], start, increase=HEADROOM / FLOWS, target=ETA, steps=200)
    left = np.ptp(run.rates, axis=1) / np.ptp(start)
    after = int(np.argmax(left <= 0.01))
    return after - 1 + math.log(left[after - 1] / 0.01) / math.log(left[after - 1] / left[after])


def _draw(charts: dict[tuple[str, bool], StabilityChart], apart: StabilityChart) -> Any:
    picture, axes = new_figure(2, 3, size=(1.6 * WIDTH, 8.6))
    spots = [*axes[0][:2], *axes[1][:2]]
    places = [(axis, charts[case], text) for axis, (case, text) in zip(spots, CASES.items(), strict=True)]
    places.append((axes[0][2], apart, "txRate, two delays, half the headroom"))
    for axis, chart, title in places:
        draw_chart(picture, axis, chart, LABELS)
        axis.set(title=title)
    shares = np.linspace(0.01, 1.0, 100)
    axes[1][2].plot(shares, [critical(share) for share in shares], lw=1.2, label="closed form")
    edge = charts["tx", True].dataset["boundary"].values
    below = edge[edge[:, 0] < 0.999]
    axes[1][2].plot(below[:, 0], below[:, 1] + _stored(), ".", ms=4, label="boundary followed")
    axes[1][2].set(
        xlabel=LABELS["share"], ylabel="critical delay, with storing, over T", title="txRate, below the headroom"
    )
    axes[1][2].grid(alpha=0.3)
    axes[1][2].legend(fontsize=8)
    picture.suptitle("HPCC's rates: red is unstable, grey has no equilibrium")
    return picture
