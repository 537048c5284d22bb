"""HPCC Figure 1: how far PFC's pauses spread from an incast, and how much of the network they stop (section 2.2).

"About 10 % of PFC events propagate three hops", in production, and "more than 10 % PFC pauses suppress more than 3 % of
the total network capacity"; at worst 25 %.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.engines.run import simulate
from fluidcc.plotting.colours import scheme_colours
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label, legend, zeros
from fluidcc.progress import Bar
from fluidcc.proofs import papers
from fluidcc.proofs.hpcc.pod import HOSTS, NOTES, PRESETS, pod, web_search
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import WIDTH, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces

EVENTS, QUICK_EVENTS = 100, 6
LOAD, SIZE = 0.3, 500e3  # of Web Search (section 2.3); bytes of each sender of an incast (section 5.3)
LEAST, BEGIN, UNTIL = 4, 0.4e-3, 4e-3  # senders; s
FAR, WIDE = 3, 0.03  # hops: to the hosts of a PoD; share of all capacity
STYLES = {"DCQCN": ("-", 3.5), "HPCC": ("--", 2.0), "ACC": ("-", 1.5)}  # dashes, width


@reproduces("hpcc-fig1", papers.HPCC, "Figure 1: how far PFC pauses spread, and what they stop")
def make_fig1(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    events = QUICK_EVENTS if quick else EVENTS
    data = _data(events)
    values = _values(data)
    expected = {
        "HPCC_pauses": Check(0.0, 0.0, "section 5: HPCC causes almost no PAUSE; windows hold an incast to its BDPs"),
        "drops": Check(0.0, 0.0, "PFC keeps the network lossless"),
    }
    if not quick:
        expected |= {
            "DCQCN_reaches_hosts": Check(True, 0, "Fig. 1a: some events propagate three hops"),
            "DCQCN_fewer_with_each_hop": Check(True, 0, "Fig. 1a: three hops are the exception, some 10 %"),
        }
    notes = [
        *NOTES,
        "in shape only: the paper's numbers are of production, whose traffic is not known. Here an event is an incast "
        f"of 500 KB from each of {LEAST} to {HOSTS - 1} senders into Web Search at {LOAD:.0%}, one in a run",
        "a PAUSE is one hop from the root if the switch that sent it is not itself paused; an event's depth is that of "
        "its furthest PAUSE, and what it stops is the largest share of all ports' rates that was paused at a time",
        "a port counts as one hop further than the furthest port of the switch that pauses it, also where that is for "
        "another port's sake, so that more than three hops are possible",
        "that more than 3 % of the capacity stops says little here: one port between switches is 3.1 % of this PoD's",
        "ACC is no better than DCQCN here: its senders have no window either, and decide a period after their first "
        "ACK, while an incast's flows start at line rate",
    ]
    if quick:
        notes.append(f"quick: {QUICK_EVENTS} events in place of {EVENTS}, too few for one that spreads to the hosts")
    files = (_draw(data).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        expected,
        files,
        tuple(notes),
        sample=f"{events} incasts into Web Search, seeds 0 to {events - 1}, of {1e3 * UNTIL:g} ms each, the same "
        "for each scheme; to the hosts: " + ", ".join(_reaching(data)),
    )


def _reaching(data: xr.Dataset) -> list[str]:
    """Return, by scheme, the share of events whose PAUSEs reach the hosts, with Wilson's interval."""
    far = (data["pauses"].sel(hops=slice(FAR, None)) > 0).any("hops")
    return [f"{name} {sample.share(int(far.sel(scheme=name).sum()), far.sizes['event'])}" for name in PRESETS]


def incast(seed: int) -> np.ndarray:
    """Rows of one incast, of a random number of senders."""
    generator = np.random.default_rng([seed, 2])
    hosts = generator.permutation(HOSTS)[: generator.integers(LEAST, HOSTS) + 1]
    return np.array([(source, hosts[0], BEGIN, SIZE) for source in hosts[1:]])


def _data(events: int) -> xr.Dataset:
    """PAUSEs by depth and the largest share of the capacity that was paused, for each scheme and event."""
    depths, stopped, drops = [], [], []
    senders = [len(incast(seed)) for seed in range(events)]
    with Bar("simulating incasts", events, "runs") as bar:
        for seed in range(events):
            rows = np.concatenate([web_search(LOAD, UNTIL, seed), incast(seed)])
            runs = [
                simulate(pod(name, rows, seed), UNTIL, engine="packet", seed=seed, sample_interval=UNTIL / 2).summary
                for name in PRESETS
            ]
            depths.append([run["pfc"]["depths"] for run in runs])
            stopped.append([run["pfc"]["suppressed"]["max"] for run in runs])
            drops.append([run["drops"] for run in runs])
            bar((seed + 1) / events)
    found = np.array(depths)
    dimensions = ("event", "scheme")
    return xr.Dataset(
        {
            "pauses": variable((*dimensions, "hops"), found, "1", "PAUSEs by hops from the root"),
            "stopped": variable(dimensions, np.array(stopped), "1", "largest share of all capacity that was paused"),
            "drops": variable(dimensions, np.array(drops), "1", "packets lost"),
        },
        {
            "scheme": list(PRESETS),
            "senders": variable("event", np.array(senders), "1", "senders of the incast"),
            "hops": variable("hops", np.arange(1, found.shape[-1] + 1), "1", "hops from the root"),
        },
    )


def _depth(data: xr.Dataset) -> np.ndarray:
    """Hops (event, scheme) of the furthest PAUSE; 0 for none."""
    return np.where(data["pauses"] > 0, data["hops"], 0).max(axis=2)


def _values(data: xr.Dataset) -> dict[str, float | bool]:
    values: dict[str, float | bool] = {"events": float(data.sizes["event"]), "drops": float(data["drops"].sum())}
    for k, name in enumerate(PRESETS):
        depth, stopped = _depth(data)[:, k], data["stopped"].values[:, k]
        hops = data["pauses"].values[:, k].sum(axis=0)
        paused = max(int((depth > 0).sum()), 1)  # events that caused any
        values |= {
            f"{name}_pauses": float(hops.sum()),
            f"{name}_events_with_pauses": float((depth > 0).sum()),
            f"{name}_events_of_3_hops": float((depth >= FAR).sum() / paused),
            f"{name}_pauses_of_3_hops": float(hops[FAR - 1 :].sum() / max(hops.sum(), 1)),
            f"{name}_events_over_3_percent": float((stopped > WIDE).sum() / paused),
            f"{name}_stopped_at_worst": float(stopped.max()),
            f"{name}_reaches_hosts": bool((depth >= FAR).any()),
            f"{name}_fewer_with_each_hop": bool((np.diff(hops[:FAR]) < 0).all()),
        }
    return values


def _draw(data: xr.Dataset) -> Any:
    picture, axes = new_figure(1, 3, size=(WIDTH, 4.3))
    frames, depths, lost = axes[0]
    deepest = max(FAR, int(_depth(data).max()))
    shades = scheme_colours(PRESETS)
    for k, name in enumerate(PRESETS):
        colour, (dashes, width) = shades[name], STYLES[name]
        counts = data["pauses"].values[:, k].sum(axis=0)[:deepest]  # none beyond
        hops, text = np.arange(1, deepest + 1) + 0.27 * (k - 1), f"{name}: {counts.sum():,}"
        zeros(frames, frames.bar(hops, counts, 0.27, color=colour, label=text))
        shares = [(_depth(data)[:, k] == hops).mean() * 100 for hops in range(deepest + 1)]
        zeros(depths, depths.bar(np.arange(deepest + 1) + 0.27 * (k - 1), shares, 0.27, color=colour))
        stopped = np.sort(data["stopped"].values[:, k]) * 100
        share = np.arange(len(stopped), 0, -1) / len(stopped) * 100
        drawn = {"color": colour, "ls": dashes, "lw": width, "label": name}
        lost.step([0, *stopped, stopped[-1]], [100, *share, 0], where="pre", **drawn)
    frames.set(xlabel="hops from the root", ylabel="PAUSE frames, all events", yscale="symlog", ylim=(0, None))
    frames.set_xticks(range(1, deepest + 1))
    frames.legend(fontsize="small")
    depths.set(xlabel="hops of the furthest PAUSE, 0: none", ylabel=label("events", "%"))
    lost.axvline(WIDE * 100, color="0.5", lw=0.9, ls=":")
    lost.set(xlabel=label("capacity paused at a time, at least", "%"), ylabel=label("events", "%"), ylim=(0, 103))
    at = {"textcoords": "offset points", "ha": "right", "fontsize": "small", "color": "0.4"}
    lost.annotate(f"{WIDE:.0%}", (WIDE * 100, 101), (-3, -8), **at)
    legend(lost, fontsize="small", loc="upper center")
    for axis in axes[0]:
        axis.grid(alpha=0.3)
    picture.suptitle(f"HPCC Fig. 1: {data.sizes['event']} incasts of {LEAST} to {HOSTS - 1} senders in a PoD")
    return picture
