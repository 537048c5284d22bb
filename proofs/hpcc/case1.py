"""HPCC Case-1: a switch that sends PAUSE without end, and what that leaves of a PoD's traffic (section 1).

"A cloud storage (test) cluster with RDMA once encountered a network-wide, large-amplitude traffic drop due to a
long-lasting PFC storm", from "a vendor bug which caused the switch to keep sending PFC pause frames indefinitely".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.engines.run import simulate
from fluidcc.plotting.colours import scheme_colours
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.hpcc.pod import HOSTS, LINE, NOTES, pod, web_search
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, WIDTH, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.scenario.model import Storm

COMPARED = ("DCQCN", "HPCC")
PORT, AT, LOAD = "L1->T1", 5e-3, 0.5  # what T1 pauses without end; s; of Web Search
UNTIL, QUICK_UNTIL, BIN, LAST = 40e-3, 11e-3, 0.5e-3, 5e-3  # s; what is left is measured in the last ones
LAYERS = {"hosts": "hosts", "ToRs": "T", "leaves": "L"}
HALF = 0.5


@reproduces("hpcc-case1", papers.HPCC, "Case-1: a storm of PFC pauses, and what is left of the traffic")
def make_case1(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    until = QUICK_UNTIL if quick else UNTIL
    data = _data(until)
    values = _values(data)
    expected = {
        "DCQCN_more_than_half_stops": Check(True, 0, "Case-1: a network-wide traffic drop of large amplitude"),
        "DCQCN_stops_more_than_crosses_the_port": Check(True, 0, "section 2.2: storms silence senders although there "
                                                        "is free capacity, so more than twice what crosses the port"),
        "DCQCN_reaches_hosts": Check(True, 0, "section 2.2: pauses spread to the whole PoD"),
        "HPCC_keeps_at_least_as_much": Check(True, 0, "section 3.1: a window's bytes are all that a sender adds to it"),
        "drops": Check(0.0, 0.0, "PFC keeps the network lossless"),
    }  # fmt: skip
    notes = [
        *NOTES,
        f"in shape only: the paper gives no numbers. T1 pauses leaf L1 for ever from {AT * 1e3:g} ms on, in Web Search "
        f"at {LOAD:.0%}; flows are not routed around it, and there is no watchdog that would end the storm",
        f"what is left is the goodput of the last {LAST * 1e3:g} ms over that of the same traffic without a storm; "
        "hosts go on to start flows as if nothing were; the storm's own PAUSEs are not counted",
    ]
    if quick:
        notes.append(f"quick: {until * 1e3:g} ms in place of {UNTIL * 1e3:g} ms, so the storm spreads for less long")
    files = (_draw(data).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        expected,
        files,
        tuple(notes),
        sample="one draw of Web Search, seed 1, with and without the storm, for each of "
        f"{sample.listed(COMPARED)}: {1e3 * until:g} ms of packets; no interval",
    )


def _data(until: float) -> xr.Dataset:
    """Goodput of all flows together over time, without and with the storm, and what flow control did."""
    rows = web_search(LOAD, until, 1)
    storms = ((), (Storm(PORT, AT),))
    built = [pod(name, rows, 1, storms=storm) for name in COMPARED for storm in storms]
    port = next(i for i, link in enumerate(built[0].links) if link.name == PORT)
    crossing = sum(flow.size for flow in built[0].flows if port in flow.path) / rows[:, 3].sum()
    traces = [simulate(each, until, engine="packet", seed=1, sample_interval=BIN) for each in built]
    time = traces[0]["time"].values
    delivered = np.array([trace["delivered"].values.sum(axis=1) for trace in traces])
    runs = [trace.summary for trace in traces]
    control = [run["pfc"] for run in runs]
    shape = (len(COMPARED), len(storms))
    received = [
        [sum(n for node, n in each["pauses_received"].items() if node.startswith(first)) for first in LAYERS.values()]
        for each in control
    ]
    depths = [max((hops for hops, n in enumerate(each["depths"], 1) if n), default=0) for each in control]
    dims = ("scheme", "storm")
    return xr.Dataset(
        {
            "goodput": variable(
                (*dims, "time"), (np.diff(delivered) / BIN).reshape(*shape, -1), "bytes/s", "goodput of all flows"
            ),
            "pauses": variable((*dims, "layer"), np.reshape(received, (*shape, -1)), "1", "PAUSEs received"),
            "depth": variable(dims, np.reshape(depths, shape), "1", "hops of the furthest PAUSE from the root"),
            "stopped": variable(
                dims,
                np.reshape([each["suppressed"]["max"] for each in control], shape),
                "1",
                "largest share of all capacity that was paused",
            ),
            "drops": variable(dims, np.reshape([run["drops"] for run in runs], shape), "1", "packets lost"),
            "crossing": variable((), np.array(crossing), "1", "share of all bytes whose path crosses the port"),
        },
        {
            "scheme": list(COMPARED),
            "storm": [False, True],
            "layer": list(LAYERS),
            "time": variable("time", time[1:] - BIN / 2, "s", "time"),
        },
    )


def _values(data: xr.Dataset) -> dict[str, float | bool]:
    crossing = float(data["crossing"])
    values: dict[str, float | bool] = {"share_that_crosses_the_port": crossing, "drops": float(data["drops"].sum())}
    late = data["goodput"].values[:, :, -round(LAST / BIN) :].mean(axis=2)
    left = dict(zip(COMPARED, late[:, 1] / late[:, 0], strict=True))
    for k, name in enumerate(COMPARED):
        stormy = data.sel(scheme=name, storm=True)
        values |= {
            f"{name}_goodput_without_bytes_per_s": float(late[k, 0]),
            f"{name}_goodput_with_bytes_per_s": float(late[k, 1]),
            f"{name}_left": float(left[name]),
            f"{name}_capacity_paused": float(stormy["stopped"]),
            f"{name}_depth": float(stormy["depth"]),
            f"{name}_hosts_pauses": float(stormy["pauses"].sel(layer="hosts")),
            f"{name}_more_than_half_stops": bool(left[name] < HALF),
            f"{name}_stops_more_than_crosses_the_port": bool(1 - left[name] > 2 * crossing),
            f"{name}_reaches_hosts": bool(stormy["pauses"].sel(layer="hosts") > 0),
        }
    return values | {"HPCC_keeps_at_least_as_much": bool(left["HPCC"] >= left["DCQCN"])}


def _draw(data: xr.Dataset) -> Any:
    picture, axes = new_figure(1, 3, size=(WIDTH, 4.3), gridspec_kw={"width_ratios": [1.2, 1.2, 1]})
    shades = scheme_colours(COMPARED)
    for axis, name in zip(axes[0, :2], COMPARED, strict=True):
        for storm, style, text in ((False, "--", "without a storm"), (True, "-", "with the storm")):
            goodput = data["goodput"].sel(scheme=name, storm=storm)
            axis.plot(data["time"] * 1e3, goodput / GBPS, color=shades[name], ls=style, lw=1.4, label=text)
        axis.axvline(AT * 1e3, color="0.3", lw=0.9, ls=":")
        axis.set(title=name, xlabel=label("time", "ms"), ylim=(0, HOSTS * LINE / GBPS * 0.7))
        axis.legend(fontsize="small", loc="upper left")
    axes[0, 0].set_ylabel(label("goodput of all flows", "Gbps"))
    spread = axes[0, 2]
    for k, name in enumerate(COMPARED):
        counts = data["pauses"].sel(scheme=name, storm=True).values
        bars = spread.bar(np.arange(len(LAYERS)) + 0.4 * (k - 0.5), counts, 0.4, color=shades[name], label=name)
        spread.bar_label(bars, [f"{n:g}" for n in counts], fontsize="small")
    spread.set_xticks(range(len(LAYERS)), list(LAYERS))
    spread.set(title="with the storm", xlabel="received by", ylabel="PAUSE frames")
    spread.margins(y=0.1)
    spread.legend(fontsize="small")
    for axis in axes[0]:
        axis.grid(alpha=0.3)
    picture.suptitle(f"HPCC Case-1: {PORT} is paused for ever from {AT * 1e3:g} ms on")
    return picture
