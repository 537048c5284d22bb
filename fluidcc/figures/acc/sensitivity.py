"""ACC Figures 16, 18 and 19: Web Search with and without halts, against RI and against P_thresh (6.4, B.1).

The paper's tree of 320 hosts is too large for a run of minutes: a smaller one of the same kind shows the shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.stats import t as student_t

from fluidcc import papers
from fluidcc.figures.acc.sensitivity_checks import EXPECTED
from fluidcc.figures.common import GBPS, WIDTH, packet_runs, save, variable
from fluidcc.figures.registry import reproduces
from fluidcc.figures.result import Check, Figure, Result
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.scenario.builders import fat_tree
from fluidcc.scenario.builders.workloads import Rows, incasts, poisson_flows
from fluidcc.scenario.model import PFC, Scenario
from fluidcc.scenario.round_trips import base_rtt_with_serialisation
from fluidcc.schemes.acc import ACC

LINE = 100 * GBPS
TREE = {"pods": 2, "tors": 2, "leaves": 2, "spines": 4, "hosts": 8}
HOSTS = TREE["pods"] * TREE["tors"] * TREE["hosts"]
BINS = {"<10 KB": 10e3, "10-100 KB": 100e3, "0.1-1 MB": 1e6, "1-10 MB": 10e6, "≥10 MB": np.inf}  # bytes, upper edges
CLASSES = {"tiny": (0, 10e3), "small": (0, 100e3), "medium": (100e3, 10e6), "large": (10e6, np.inf)}  # section 6.4
LAYERS = ("hosts", "ToRs", "leaves", "spines")


class Times(NamedTuple):
    """Flows that start after ``warm`` are counted; none start after ``arrivals``, and all end before ``until`` [s]."""

    warm: float
    arrivals: float
    until: float
    seeds: int


PLAIN, QUICK = Times(2e-3, 14e-3, 100e-3, 3), Times(0.1e-3, 0.5e-3, 1.2e-3, 1)


class Case(NamedTuple):
    """ACC's parameters that are compared, the paper's being ``default``, and the traffic."""

    variants: dict[str, ACC]
    default: str
    axis: str
    load: float
    xoff: float = 512e3  # section 6.1 [bytes]
    senders: int = 0  # of an incast; 0 for none
    unit: str = ""
    seeds: int = 3  # runs of some 20 to 60 s for each variant


# An incast of 64 brings some 64 (1 - 16/320) 50 KB/4 = 0.76 MB to each uplink of the receiver's rack in the paper's
# tree, and one of 24 brings 24 (1 - 8/32) 50 KB/2 = 0.45 MB here: XOFF is lower in the same proportion.
BURST, BURST_LOAD = 50e3, 0.2
CASES = {
    "acc-fig16": Case({"ACC": ACC(), "ACC w/o halt": ACC(halt=False)}, "ACC", "", 0.8, seeds=6),
    "acc-fig18": Case(
        {f"{ri}": ACC(ri_high=ri * GBPS, ri_low=ri * GBPS / 10) for ri in (1, 2, 4, 8)},
        "4",
        "RI_High",
        0.8,
        unit=" Gbps",
    ),
    "acc-fig19": Case({f"{p}": ACC(p_thresh=float(p)) for p in range(4)}, "1", "P_thresh", 0.6, 303e3, 24),
}


@reproduces("acc-fig16", papers.ACC, "Figure 16: slowdowns and PAUSEs with halts and without")
@reproduces("acc-fig18", papers.ACC, "Figure 18: slowdowns against RI")
@reproduces("acc-fig19", papers.ACC, "Figure 19: slowdowns and PAUSEs against P_thresh")
def make_sensitivity(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make one of the figures."""
    case = CASES[figure.name]
    times = QUICK if quick else PLAIN._replace(seeds=case.seeds)
    data, drops = _data(case, times)
    values = _values(case, data) | {"drops": float(drops)}
    expected = {"drops": Check(0.0, 0.0, "PFC keeps the network lossless")}
    if not quick:
        expected |= {name: check for name, check in EXPECTED[figure.name]().items() if name not in undecided(values)}
    files = (_draw(case, data, f"ACC {figure.figure}").write(folder / f"{figure.name}.png"),)
    notes = (*_notes(case, times, quick), *_intervals(values))
    return Result(figure, values, expected, (*files, save(data, folder / f"{figure.name}.nc")), notes)


def traffic(case: Case, seed: int, times: Times) -> tuple[Rows, Rows]:
    """Rows of Web Search, and of the incasts."""
    rows = poisson_flows(HOSTS, load=case.load, until=times.arrivals, rate=LINE, seed=seed)
    if not case.senders:
        return rows, rows[:0]
    options = {"senders": case.senders, "size": BURST, "rate": LINE, "seed": seed}
    return rows, incasts(HOSTS, load=BURST_LOAD, until=times.arrivals, **options)


def slowdowns(built: Scenario, took: Sequence[float | None], until: float) -> np.ndarray:
    """Completion times over those of an idle network; of flows that did not finish, the time that they had."""
    times = [until - flow.start if fct is None else fct for flow, fct in zip(built.flows, took, strict=True)]
    ideal = [base_rtt_with_serialisation(built, flow) + flow.size / flow.line_rate for flow in built.flows]
    return np.array(times) / np.array(ideal)


def by_layer(received: dict[str, int]) -> list[int]:
    """PAUSEs received by each of `LAYERS`, from those of each node."""
    found = dict.fromkeys(LAYERS, 0)
    for node, count in received.items():
        found[node if node in found else LAYERS["TLS".index(node[0]) + 1]] += count
    return list(found.values())


def _data(case: Case, times: Times) -> tuple[xr.Dataset, int]:
    """Slowdowns of the counted flows of all seeds, PAUSEs by layer; and the packets lost."""
    slow, pauses, about, drops = [], [], [], 0
    for seed in range(times.seeds):
        rows, bursts = traffic(case, seed, times)
        network = {"rate": LINE, "buffer": "32MB", "pfc": PFC(case.xoff), "ecmp_seed": seed}
        all_rows = np.concatenate([rows, bursts])
        built = [fat_tree(all_rows, **TREE, scheme=scheme, **network) for scheme in case.variants.values()]
        traces = packet_runs(built, times.until, sample_interval=times.until / 2)
        runs = [trace.summary for trace in traces]
        counted = np.flatnonzero(rows[:, 2] >= times.warm)
        slow.append([slowdowns(b, run["fct_s"], times.until)[counted] for b, run in zip(built, runs, strict=True)])
        pauses.append([by_layer(run["pfc"]["pauses_received"]) for run in runs])
        unfinished = [any(run["fct_s"][i] is None for run in runs) for i in counted]
        about.append(np.column_stack([rows[counted, 2:], np.full(len(counted), seed), unfinished]))
        drops += sum(run["drops"] for run in runs)
    start, size, seeds, unfinished = np.concatenate(about).T
    data = xr.Dataset(
        {
            "slowdown": variable(("variant", "flow"), np.concatenate(slow, axis=1), "1", "completion time over ideal"),
            "pauses": variable(("variant", "layer"), np.sum(pauses, axis=0), "1", "PAUSEs received"),
            "unfinished": variable("flow", unfinished, "1", "whether it did not finish with some variant"),
        },
        {
            "variant": list(case.variants),
            "layer": list(LAYERS),
            "start": variable("flow", start, "s", "start"),
            "size": variable("flow", size, "bytes", "size"),
            "seed": variable("flow", seeds, "1", "seed"),
        },
    )
    return data, drops


def _values(case: Case, data: xr.Dataset) -> dict[str, float | bool]:
    values: dict[str, float | bool] = {"unfinished": float(data["unfinished"].sum())}
    default = list(case.variants).index(case.default)
    for group in CLASSES:
        found = data["slowdown"].values[:, _of(group, data)]
        means, tails = found.mean(axis=1), np.percentile(found, 99, axis=1)
        values[f"{group}_flows"] = float(found.shape[1])
        for k, name in enumerate(case.variants):
            values[f"{group}_mean_{_key(name)}"] = float(means[k])
            values[f"{group}_p99_{_key(name)}"] = float(tails[k])
        values[f"{group}_mean_range"] = float(np.ptp(means) / means[default])
        values[f"{group}_mean_last_over_first"] = float(means[-1] / means[0])
        values[f"{group}_p99_first_over_second"] = float(tails[0] / tails[1])
        values[f"{group}_better_with_last"] = bool(means[-1] < means[0])
        seeds = data["seed"].values[_of(group, data)]
        if len(np.unique(seeds)) > 1:
            ratio = ratio_over_seeds(found, seeds)
            values |= {f"{group}_mean_ratio{end}": one for end, one in zip(("", "_from", "_to"), ratio, strict=True)}
    for name, counts in zip(case.variants, data["pauses"].values, strict=True):
        values |= {f"pauses_{layer}_{_key(name)}": float(n) for layer, n in zip(LAYERS, counts, strict=True)}
    totals = data["pauses"].values.sum(axis=1)
    return values | {"more_pauses_with_last": bool(totals[-1] > totals[0])}


def ratio_over_seeds(found: np.ndarray, seeds: np.ndarray) -> tuple[float, float, float]:
    """Mean slowdown of the last variant over the first's: geometric mean over seeds, and where it lies with 95 %.

    Parameters
    ----------
    found : ndarray, shape (variants, flows)
    seeds : ndarray, shape (flows,)
        Of at least two kinds. Flows of one run hinder each other: runs are the sample, not flows.
    """
    means = np.array([found[:, seeds == seed].mean(axis=1) for seed in np.unique(seeds)])
    logs = np.log(means[:, -1] / means[:, 0])
    within = student_t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    low, middle, high = np.exp([logs.mean() - within, logs.mean(), logs.mean() + within])
    return float(middle), float(low), float(high)


def undecided(values: dict[str, float | bool]) -> list[str]:
    """Checks of what is better with the last variant, of classes whose ratio may be 1 as well."""
    ratios = {group: [values[f"{group}_mean_ratio_{end}"] for end in ("from", "to")] for group in CLASSES}
    return [f"{group}_better_with_last" for group, (low, high) in ratios.items() if low <= 1 <= high]


def _intervals(values: dict[str, float | bool]) -> list[str]:
    """What the runs can tell of each class."""
    if "tiny_mean_ratio" not in values:
        return []
    found = []
    for group in CLASSES:
        middle, low, high = (values[f"{group}_mean_ratio{end}"] for end in ("", "_from", "_to"))
        word = ": not testable here, either way is possible" if low <= 1 <= high else ""
        found.append(f"{group}: {middle:.3f} ({low:.3f} to {high:.3f}){word}")
    return ["mean slowdown of the last over the first, with 95 %: " + "; ".join(found)]


def _of(group: str, data: xr.Dataset) -> np.ndarray:
    """Which flows are of a class."""
    low, high = CLASSES[group]
    return (data["size"].values >= low) & (data["size"].values < high)


def _key(name: str) -> str:
    return name.replace("w/o ", "no_").replace(" ", "_").lower()


def _notes(case: Case, times: Times, quick: bool) -> list[str]:
    found = [
        f"in shape only: {HOSTS} hosts in {TREE['pods']} pods of {TREE['tors']} racks, {TREE['leaves']} leaves and "
        f"under {TREE['spines']} spines in place of the paper's 320 hosts; links and the ratio of a switch's links up "
        "and down are the paper's",
        f"flows that start from {times.warm * 1e3:g} to {times.arrivals * 1e3:g} ms, {times.seeds} seeds, and "
        "run until all end; slowdown is completion time over base RTT + size/line rate; "
        "small: less than 100 KB, large: 10 MB or more",
    ]
    if case.senders:
        found.append(
            f"incasts of {case.senders} senders in place of 64, with 50 KB each; so fewer bytes come by each uplink of "
            f"the receiver's rack, and XOFF is {case.xoff / 1e3:g} KB in place of 512 KB, in the same proportion"
        )
    if quick:
        found.append(
            "quick: too few flows for means, and of those that did not end the time that they had; no verdict but that "
            "nothing is lost"
        )
    return found


def _draw(case: Case, data: xr.Dataset, title: str) -> Any:
    picture, axes = new_figure(1, 3, size=(WIDTH, 4.4))
    edges = np.array(list(BINS.values()))
    places = np.searchsorted(edges, data["size"].values, side="right")
    filled = [k for k in range(len(BINS)) if (places == k).any()]
    for k, name in enumerate(case.variants):
        found = data["slowdown"].sel(variant=name).values
        shown = f"{case.axis} = {name}{case.unit}" if case.axis else name
        style: dict[str, Any] = {"marker": "osD^"[k], "ms": 5, "lw": 1.2, "color": f"C{k}", "label": shown}
        axes[0, 0].plot(filled, [found[places == b].mean() for b in filled], **style)
        axes[0, 1].plot(filled, [np.percentile(found[places == b], 99) for b in filled], **style)
    axes[0, 0].set(title="mean", ylabel="slowdown")
    axes[0, 1].set(title="99th percentile", ylabel="slowdown")
    for axis in axes[0, :2]:
        axis.set_xticks(filled, [list(BINS)[b] for b in filled], fontsize="x-small")
        axis.set(xlabel="size of the flow", ylim=(0, None))
    axes[0, 0].legend(fontsize="small")
    draw = _draw_classes if case.axis and not case.senders else _draw_pauses
    draw(case, data, axes[0, 2])
    for axis in axes[0]:
        axis.grid(alpha=0.3)
    picture.suptitle(title)
    return picture


def _draw_pauses(case: Case, data: xr.Dataset, axis: Any) -> None:
    width = 0.8 / len(case.variants)
    for k, name in enumerate(case.variants):
        at = np.arange(len(LAYERS)) + (k - (len(case.variants) - 1) / 2) * width
        axis.bar(at, data["pauses"].sel(variant=name), width, color=f"C{k}")
    axis.set_xticks(range(len(LAYERS)), LAYERS)
    axis.set(title="flow control", ylabel="PAUSE frames received", xlabel="by")


def _draw_classes(case: Case, data: xr.Dataset, axis: Any) -> None:
    for k, group in enumerate(("small", "medium", "large")):
        means = data["slowdown"].values[:, _of(group, data)].mean(axis=1)
        axis.plot(data["variant"], means, marker="osD"[k], color=f"C{k + 4}", label=group)
    axis.set(title="mean by class", xlabel=label(case.axis, case.unit.strip()), ylabel="slowdown", ylim=(0, None))
    axis.legend(fontsize="small")
