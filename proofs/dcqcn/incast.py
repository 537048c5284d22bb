"""DCQCN section 6.1: K:1 incast, K = 1 to 19, with the settings of Table 14.

The paper reports a total "always more than 39Gbps" and that "the queue length never exceeds 100KB". The model itself
says otherwise: its queue at equilibrium is above 100 KB from 9 senders on, and from 15 on there is no equilibrium.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.builders import incast
from fluidcc.engines.run import simulate
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import (
    GBPS,
    LINE_RATE,
    SWITCH,
    SWITCH_NOTE,
    WIDTH,
    Cell,
    packet_runs,
    save,
    side_by_side,
    variable,
)
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.schemes.dcqcn import PRESETS
from fluidcc.theory.control.equilibrium import equilibrium

SENDERS, SENDERS_QUICK = tuple(range(1, 20)), (1, 2, 3, 4, 8, 9, 12, 15, 19)
SCHEME, MARKING = PRESETS["paper"][:2]
SINCE = 50e-3  # s; the burst of the line-rate starts has drained and rates have recovered
UNTIL, UNTIL_QUICK = 300e-3, 150e-3  # s
LEAST_TOTAL, MOST_QUEUE = 39 * GBPS, 100e3  # the paper's
STATISTICS = ("mean", "p95", "max", "max_whole_run")


@reproduces("dcqcn-incast-totals", papers.DCQCN, "section 6.1: total and queue of K:1 incast, K = 1 to 19")
def make_incast(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    senders, until = (SENDERS_QUICK, UNTIL_QUICK) if quick else (SENDERS, UNTIL)
    window, seeds = (SINCE, until), range(1, len(senders) + 1)
    traces = packet_runs([incast(count, **SWITCH) for count in senders], until, window=window)
    cells: list[Cell] = [(SCHEME, MARKING, ((float(count), LINE_RATE),)) for count in senders]
    model = simulate(side_by_side(cells), until, window=window, dt=1e-6, estimate_error=False)
    data = xr.Dataset(
        {
            "total": variable("senders", _totals(traces), "bytes/s", "total throughput"),
            "total_fluid": variable("senders", _utilisation(model) * LINE_RATE, "bytes/s", "total throughput, fluid"),
            **{
                f"queue_{name}": variable("senders", _queues(traces, name), "bytes", f"queue, {name.replace('_', ' ')}")
                for name in STATISTICS
            },
            "queue_mean_fluid": variable(
                "senders",
                np.array([link["queue_bytes"]["mean"] for link in model.summary["links"]]),
                "bytes",
                "mean queue, fluid",
            ),
            "queue_equilibrium": variable(
                "senders", np.array([_fixed_point(count) for count in senders]), "bytes", "queue at equilibrium"
            ),
        },
        {"senders": list(senders)},
    )
    values = _measure(data) | {"drops": float(sum(trace.summary["drops"] for trace in traces))}
    notes = [
        f"all start at line rate at 0; totals and queues over {SINCE * 1e3:g} to {until * 1e3:g} ms, and the largest "
        "queue of the whole run",
        SWITCH_NOTE,
    ]
    if quick:
        notes.append(f"quick: {len(senders)} values of K, {until * 1e3:g} ms in place of {UNTIL * 1e3:g} ms")
    files = (_draw(data).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        _expected(),
        files,
        tuple(notes),
        sample=f"{sample.packets(until, len(senders), since=SINCE, seeds=seeds, drawn=sample.MARKS)}: one each, so no "
        f"interval; {sample.fluid(until, len(cells), since=SINCE)}",
    )


def _totals(traces: list[Any]) -> np.ndarray:
    return np.array([sum(trace.summary["goodput_bytes_per_s"]) for trace in traces])


def _queues(traces: list[Any], name: str) -> np.ndarray:
    return np.array([trace.summary["queue_bytes"][name] for trace in traces])


def _utilisation(model: Any) -> np.ndarray:
    return np.array([link["utilisation"] for link in model.summary["links"]])


def _fixed_point(count: int) -> float:
    """Queue of the model's fixed point [bytes]; NaN where there is none."""
    found = equilibrium(incast(1, multiplicity=count)).as_dict()
    return found["queue_bytes"] if found["exists"] and count > 1 else np.nan


def _measure(data: xr.Dataset) -> dict[str, Any]:
    senders, total = data["senders"].values, data["total"].values
    values: dict[str, Any] = {}
    for count in (2, 8, 9, 19):
        at = data.sel(senders=count)
        values[f"total_{count}_bytes_per_s"] = float(at["total"])
        values |= {f"queue_{name}_{count}_bytes": float(at[f"queue_{name}"]) for name in STATISTICS}
    low, high = total < LEAST_TOTAL, {name: data[f"queue_{name}"].values > MOST_QUEUE for name in STATISTICS}

    def first(where: np.ndarray) -> float:
        return float(senders[where].min()) if where.any() else 0.0

    return values | {
        "total_least_bytes_per_s": float(total.min()),
        "total_least_at": float(senders[total.argmin()]),
        "total_above_39gbps_up_to_8": bool(not low[senders <= 8].any()),
        "total_above_39gbps_always": bool(not low.any()),
        "first_below_39gbps": first(low),
        "queue_within_100KB_always": bool(not high["max"].any()),
        **{f"first_queue_{name}_above_100KB": first(above) for name, above in high.items()},
        "total_farthest_from_fluid_rel": float(np.abs(total / data["total_fluid"].values - 1).max()),
    }


def _expected() -> dict[str, Check]:
    return {
        "total_above_39gbps_up_to_8": Check(
            True, 0, "section 6.1, where the model has a stable equilibrium on the ramp"
        ),
        "total_above_39gbps_always": Check(
            False, 0, "against section 6.1: no fixed point from 15 senders on, so the queue cycles and runs empty"
        ),
        "queue_within_100KB_always": Check(
            False, 0, "against section 6.1: the model's queue at equilibrium is above 100 KB from 9 senders on"
        ),
        "total_farthest_from_fluid_rel": Check(0.0, 0.1, "the model's own total; 10 %"),
        "drops": Check(0.0, 0.0, "PFC keeps the network lossless"),
    }


def _draw(data: xr.Dataset) -> Any:
    picture, axes = new_figure(1, 2, size=(WIDTH, 4.8))
    totals, queues = axes[0]
    senders = data["senders"].values
    several = senders[senders > 1]  # one sender has no queue to show on a logarithmic axis
    totals.plot(senders, data["total"] / GBPS, "o-", ms=4, lw=1.2, label="packets")
    totals.plot(senders, data["total_fluid"] / GBPS, "kx--", ms=5, lw=0.8, label="fluid model")
    totals.axhline(39, color="C3", lw=1.0, ls=":", label="paper: always above")
    totals.set(ylabel=label("total throughput", "Gbps"), ylim=(30, 41))
    for name, text, style in (
        ("max_whole_run", "packets, most in the run", "^-"),
        ("max", "packets, most after 50 ms", "s-"),
        ("p95", "packets, 95th percentile", "d-"),
        ("mean", "packets, mean", "o-"),
    ):
        queues.plot(several, data[f"queue_{name}"].sel(senders=several) / 1e3, style, ms=4, lw=1.1, label=text)
    queues.plot(senders, data["queue_equilibrium"] / 1e3, "k--", lw=1.4, label="model's fixed point")
    queues.axhline(100, color="C3", lw=1.2, ls=":", label="paper: never above")
    queues.set(ylabel=label("queue", "KB"), yscale="log", ylim=(5, 1e5))
    queues.yaxis.set_major_formatter("{x:g}")
    for axis in (totals, queues):
        axis.set(xlabel="senders K", xlim=(0.5, senders.max() + 0.5), xticks=range(1, senders.max() + 1, 2))
        axis.grid(alpha=0.3)
    totals.legend(loc="lower left", fontsize="small")
    queues.legend(loc="upper left", fontsize="small", ncols=2)
    picture.suptitle("DCQCN section 6.1: K:1 incast with the settings of Table 14")
    return picture
