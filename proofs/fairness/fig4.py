"""Snyder and Lebeck, Figure 4: the difference (2) between a decrease per RTT and one per 30 ACKs, and what ratios say.

"Over time the fairness difference diminishes, but the goal is to converge to nearly fair rates quickly": it changes
sign at 523 us, by when the ratio of the rates that decrease per RTT is what it was at the start.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.colors import LogNorm

from fluidcc.plotting.style import Picture
from fluidcc.plotting.style import figure as new_figure
from fluidcc.proofs import papers
from fluidcc.proofs.shared.runs import GBPS, WIDTH, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, printed, reproduces
from fluidcc.theory.fairness.lead import sampling_lead
from fluidcc.theory.fairness.queue import shared_decrease
from fluidcc.theory.fairness.rates import DecreaseRates, decrease_rates

RATES = (100 * GBPS, 50 * GBPS)
SETTING = {"rtt": 30e-6, "acks": 30, "mtu": 1000.0, "beta": 0.5}
STEP, QUICK_STEP = 5e-9, 50e-9  # s, of the curve
END = 1.2e-3
MAP, QUICK_MAP = 161, 41  # values along each axis of the map
BASE, LINK = 10e-6, 100 * GBPS  # of the queue that both flows share


@reproduces("fairness-fig4", papers.VAI, "Figure 4: a decrease per RTT against one per 30 ACKs")
def make_fig4(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    step = QUICK_STEP if quick else STEP
    times = np.arange(round(END / step) + 1) * step
    exact = decrease_rates(RATES, times=times, **SETTING)
    found = decrease_rates(RATES, times=times, method="integration", **SETTING)
    lead = sampling_lead(*RATES, **SETTING)
    values: dict[str, float | bool] = {
        "peak_bytes_per_s": float(lead.peak),
        "peak_at_s": float(lead.peak_time),
        "sign_change_s": float(lead.sign_change),
        "ahead_at_first": bool(lead.ahead_at_first),
    }
    expected = {
        "peak_bytes_per_s": printed(4.323486e9, 1e3, 0.0, "an independent pass: 30 digits, to those given"),
        "peak_at_s": printed(11.893e-6, 1e-9, 0.0, "the same"),
        "sign_change_s": printed(522.957e-6, 1e-9, 0.0, "the same"),
        "ahead_at_first": Check(True, 0, "1/r < (C1 + C0)/(s MTU): 0.033 < 0.625 per us"),
    }
    for way, run in (("closed_form", exact), ("integration", found)):
        top, at, changes = _read(run)
        values |= {f"peak_bytes_per_s_{way}": top, f"peak_at_s_{way}": at}
        values |= {f"sign_change_s_{way}": float(changes[0]), f"changes_of_sign_{way}": float(len(changes))}
        why = f"root-finding; the curve is read every {step * 1e9:g} ns"
        # At a peak a step off in time is of second order in height, (2)'' being at most 4 of 12.5 B/ns per (1.2 us)^2.
        expected |= {
            f"peak_bytes_per_s_{way}": Check(values["peak_bytes_per_s"], 12.5e9 * 4 * (step / 1.2e-6) ** 2, why),
            f"peak_at_s_{way}": Check(values["peak_at_s"], step, why),
            f"sign_change_s_{way}": Check(values["sign_change_s"], step, why),
            f"changes_of_sign_{way}": Check(1, 0, "h of (2) is concave: fluidcc verify sf-once"),
        }
    values["rates_integration_against_closed_form"] = float(np.abs(found.rate / exact.rate - 1).max())
    expected["rates_integration_against_closed_form"] = Check(
        0.0, 1e-8, "the integrator's 1e-11, some hundreds of steps"
    )
    at_change = exact.dataset.interp(time=float(lead.sign_change))
    values["ratio_per_rtt_at_sign_change"] = float(at_change.ratio[0])
    values["ratio_sampling_at_sign_change"] = float(at_change.ratio[1])
    x = SETTING["beta"] * float(lead.sign_change) / SETTING["rtt"]
    expected["ratio_per_rtt_at_sign_change"] = Check(2.0, 1e-9, "a decrease per RTT keeps C1/C0; rounding")
    expected["ratio_sampling_at_sign_change"] = Check(
        1 + 1 / (1 + 12.5 * x), 1e-6, "1 + (C1 - C0)/(C0 + C1 C0 beta t/(s MTU)); read off the curve"
    )
    count = QUICK_MAP if quick else MAP
    rtts, acks = np.geomspace(1e-6, 1e-3, count), np.geomspace(1, 1000, count)
    sign = sampling_lead(*RATES, rtt=rtts[:, None], acks=acks[None, :], mtu=SETTING["mtu"], beta=SETTING["beta"])
    never = rtts[:, None] * sum(RATES) <= acks[None, :] * SETTING["mtu"]
    values["map_never_ahead_where_the_condition_fails"] = bool((np.isnan(sign.sign_change.values) == never).all())
    expected["map_never_ahead_where_the_condition_fails"] = Check(True, 0, "(C1 + C0) r/(s MTU) > 1, both ways")
    shared = shared_decrease(
        RATES, LINK, base_rtt=BASE, until=15 * BASE, acks=30, mtu=SETTING["mtu"], beta=SETTING["beta"]
    )
    values["shared_queue_ratio_of_first_to_second_sampling"] = float(shared.rate[1, -1, 0] / shared.rate[1, -1, 1])
    values["shared_queue_ratio_per_rtt"] = float(shared.ratio[0, -1])
    expected["shared_queue_ratio_per_rtt"] = Check(2.0, 1e-6, "without an increase nothing changes it, queue or not")
    notes = (
        "rates, r, s, MTU and beta as in the paper; beyond its figure: ratios, the map, one queue",
        f"one queue: both flows into {LINK / GBPS:g} Gb/s, base RTT {BASE * 1e6:g} us, decreases in proportion to the "
        "share of the RTT spent waiting, observed an RTT late; no increase",
        *((f"quick: every {step * 1e9:g} ns, a map of {count} x {count}",) if quick else ()),
    )
    thin = exact.dataset.isel(time=slice(None, None, max(1, round(0.2e-6 / step))))
    units = {"time": "s", "flow": "1", "rule": "1"}
    data = thin.assign_attrs(method="closed form").assign(
        {
            "map_sign_change": variable(("rtt", "acks"), sign.sign_change.values, "s", "until when sampling is ahead"),
            "rtt": variable("rtt", rtts, "s", "time between decreases per RTT"),
            "acks": variable("acks", acks, "1", "ACKs between decreases by sampling"),
            "queue_time": variable("queue_time", shared.time.values, "s", "time, in one queue"),
            "queue_rate": variable(("rule", "queue_time", "flow"), shared.rate.values, "bytes/s", "rate, in one queue"),
        }
    )
    for name, unit in units.items():
        data[name].attrs["units"] = unit
    files = (_draw(data, lead).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(figure, values, expected, files, notes)


def _read(run: DecreaseRates) -> tuple[float, float, np.ndarray]:
    """Peak, its time, and the times of changes of sign, read off a curve."""
    lead, time = run.lead.values[1:], run.time.values[1:]
    top = int(lead.argmax())
    where = np.flatnonzero(np.diff(np.sign(lead)))
    between = lead[where] / (lead[where] - lead[where + 1])
    return float(lead[top]), float(time[top]), time[where] + between * (time[where + 1] - time[where])


def _draw(data: xr.Dataset, lead: xr.Dataset) -> Picture:
    picture, axes = new_figure(2, 3, size=(1.4 * WIDTH, 7.6))
    (curve, tail, rates), (ratio, chart, queue) = axes
    us, styles = data.time * 1e6, (("per RTT", "--"), ("sampling, 30 ACKs", "-"))
    for axis in (curve, tail):
        axis.plot(us, data.lead / 1e9, "k", lw=1.2)
        axis.axhline(0, color="0.5", lw=0.8)
        axis.set(xlabel="time [us]", ylabel="(R1 − R0) − (S1 − S0) [B/ns]")
    curve.plot(
        lead.peak_time * 1e6, lead.peak / 1e9, "o", color="C3", label=f"peak, {float(lead.peak_time) * 1e6:.3f} us"
    )
    curve.set(title="Figure 4: (2)", xlim=(0, 600))
    tail.plot(
        lead.sign_change * 1e6, 0, "o", color="C3", label=f"change of sign, {float(lead.sign_change) * 1e6:.3f} us"
    )
    tail.set(title="its tail: sampling falls behind", xlim=(400, 1200), ylim=(-0.003, 0.01))
    for k, (rule, style) in enumerate(styles):
        for j in range(2):
            rates.plot(us, data.rate[k, :, j] / GBPS, color=f"C{j}", ls=style, lw=1.2, label=f"flow {j + 1}, {rule}")
            queue.plot(data.queue_time * 1e6, data.queue_rate[k, :, j] / GBPS, color=f"C{j}", ls=style, lw=1.2)
        ratio.plot(us, data.ratio[k], color="C2", ls=style, lw=1.2, label=f"largest over smallest, {rule}")
        ratio.plot(us, data.jain[k], color="C4", ls=style, lw=1.2, label=f"Jain's index, {rule}")
    rates.set(xlabel="time [us]", ylabel="rate [Gbps]", title="the rates", xlim=(0, 300), ylim=(0, 105))
    ratio.set(
        xlabel="time [us]", ylabel="ratio", title="ratios: per RTT nothing improves", xlim=(0, 600), ylim=(0.8, 2.5)
    )
    queue.set(xlabel="time [us]", ylabel="rate [Gbps]", title="one queue of 100 Gbps, with delay", ylim=(0, 105))
    image = chart.pcolormesh(data.acks, data.rtt * 1e6, data.map_sign_change * 1e6, norm=LogNorm(), cmap="viridis")
    picture.colorbar(image, ax=chart, label="time of the change of sign [us]")
    chart.plot(data.acks, data.acks * SETTING["mtu"] / sum(RATES) * 1e6, "k", lw=1, label="1/r = (C1 + C0)/(s MTU)")
    chart.plot(SETTING["acks"], SETTING["rtt"] * 1e6, "o", color="C3", label="Figure 4")
    chart.set(xscale="log", yscale="log", xlabel="s, ACKs between decreases", ylabel="r [us]", ylim=(1, 1000))
    chart.set_title("until when sampling is ahead (white: never)")
    for axis in (curve, tail, rates, ratio, chart):
        axis.legend(fontsize=7, loc="upper left" if axis is chart else "upper right")
    for axis in (curve, tail, rates, ratio, queue):
        axis.grid(alpha=0.3)
    picture.suptitle("A decrease per RTT against one per 30 ACKs")
    return picture
