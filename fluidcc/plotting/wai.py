"""Picture of a comparison of additive increases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FuncFormatter

from fluidcc import units
from fluidcc.plotting.colours import ENGINES
from fluidcc.plotting.style import Picture, figure, label
from fluidcc.studies.sweeps.wai import CLOSED, PATIENCE

if TYPE_CHECKING:
    from fluidcc.studies.sweeps.wai import WaiSweep

_STYLES: dict[str, dict[str, Any]] = {
    "closed form": {"color": "black", "ls": "-", "lw": 1},
    "fluid": {"color": ENGINES["fluid"], "ls": "none", "marker": "o", "mfc": "none"},
    "packet": {"color": ENGINES["packet"], "ls": "none", "marker": "s"},
}
_NAMES = {"packet": "packets"}


def plot_wai(found: WaiSweep, *, title: str | None = None) -> Picture:
    """Queue with the boundary drawn, utilisation and time to fairness, each over W_AI."""
    data = found.dataset
    picture, axes = figure(1, 3, size=(14.0, 4.4))
    queue, used, fair = axes[0]
    closed = data.fairness_time.sel(engine=CLOSED)
    size, size_unit = units.scale_of(float(np.nanmax(data["queue_bytes.p95"])), units.SIZE)
    time, time_unit = units.scale_of(float(np.nanmax(data.fairness_time)), units.TIME)
    for engine in data.engine.values:
        name, style = _NAMES.get(engine, engine), _STYLES[engine]
        at = data.sel(engine=engine)
        queue.plot(
            data.w_ai, at["queue_bytes.mean"] / size, label=f"{name}, mean" if engine == "packet" else name, **style
        )
        if engine == "packet":
            queue.plot(
                data.w_ai, at["queue_bytes.p95"] / size, "^", color=style["color"], mfc="none", label="packets, p95"
            )
        used.plot(data.w_ai, at.utilisation, label=name, **style)
        fair.plot(data.w_ai, at.fairness_time / time, label=name, **style)
        never = np.isnan(at.fairness_time.values)
        if never.any():
            limit = PATIENCE[engine] * closed.values[never] / time
            text = f"{name}: not in {PATIENCE[engine]} times the closed form's"
            fair.plot(data.w_ai[never], limit, "x", color=style["color"], label=text)
    flows, uneven = (f"{data.attrs[key]:g}" for key in ("flows", "uneven_flows"))
    boundary = float(data.boundary)
    for axis in (queue, used):
        axis.axvline(
            boundary, color="0.3", ls="--", lw=0.8, label=f"(1 - η) C T / N = {units.show(boundary, units.SIZE)}"
        )
    queue.set(ylabel=label("queue", size_unit), title=f"{flows} flows: standing queue", ylim=(0, None))
    used.set(ylabel="utilisation", title=f"{flows} flows: utilisation")
    fair.set(yscale="log", ylabel=label("time", time_unit))
    fair.set(title=f"{uneven} flows from 4:1: until the gap is {data.attrs['left']:.3g} of that")
    for axis in (queue, used, fair):
        axis.set(xscale="log", xlabel=label("$W_{AI}$", "B"))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.legend(fontsize=8)
        axis.grid(alpha=0.3)
    picture.suptitle("What W_AI buys and costs" if title is None else title)
    return picture
