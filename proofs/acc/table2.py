"""ACC's Table 2: how often a Clos unit with two failed links deadlocks, under random traffic (6.3, Fig. 12).

A run can take half a minute, and the table has 200, so each is kept as soon as it is made: the same command in the same
folder runs only those that are missing. Runs of other sources or settings are made again.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc import builders
from fluidcc.builders import clos_unit
from fluidcc.builders.workloads import poisson_flows
from fluidcc.engines.common.topology import buffer_cycle
from fluidcc.engines.run import simulate
from fluidcc.engines.run_many import run_many
from fluidcc.files import write_atomically
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label, legend
from fluidcc.progress import Bar
from fluidcc.proofs import papers
from fluidcc.proofs.acc.common import COLOURS, COMPARED, CONTENDERS, NETWORK, NOTES
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import WIDTH, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.scenario.model import Scenario
from fluidcc.workloads.fabrics.run_cache import code

HOSTS, LOAD = 32, 0.6
SEEDS, UNTIL = 50, 100e-3  # section 6.3
QUICK_SEEDS, QUICK_UNTIL = 2, 20e-3
PRINTED = {"acc": 0, "hpcc": 0, "dcqcn": 3, "timely": 37}  # of 50
COUNTED = {
    "deadlock": ("s", "time of the deadlock, NaN for none"),
    "pauses": ("1", "PAUSE frames"),
    "suppressed": ("1", "share of all ports' rates that was paused"),
    "depth": ("1", "hops that pauses spread to, at most"),
    "unfinished": ("1", "flows that did not finish"),
    "drops": ("1", "packets lost"),
    "wall": ("s", "time that the run took"),
}


def unit(scheme: str, seed: int, until: float) -> Scenario:
    """Web Search at 60 % between the 32 hosts of Fig. 12, and an outcome of ECMP."""
    rows = poisson_flows(HOSTS, load=LOAD, until=until, seed=seed)
    contender = CONTENDERS[scheme]
    return clos_unit(rows, scheme=contender.scheme, marking=contender.marking, ecmp_seed=seed, **NETWORK)


@reproduces("acc-table2", papers.ACC, "Table 2: how often a Clos unit with two failed links deadlocks")
def make_table2(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the table."""
    seeds, until = (QUICK_SEEDS, QUICK_UNTIL) if quick else (SEEDS, UNTIL)
    kept = folder / f"{figure.name}{'-quick' * quick}.runs.json"
    runs = _runs(kept, seeds, until)
    data = _data(runs, seeds)
    values = _values(data, buffer_cycle(unit("acc", 0, until)) is not None)
    expected = {
        "buffers_can_wait_in_a_circle": Check(True, 0, "section 6.3: the two failed links form a CBD"),
        "drops": Check(0.0, 0.0, "lossless, with headroom for what comes after a PAUSE"),
        **{f"deadlocks_{name}": Check(0.0, 0.0, "Table 2: none") for name in ("acc", "hpcc")},
        "timely_at_least_as_often_as_dcqcn": Check(True, 0, "Table 2: 37 and 3 of 50"),
    }
    if not quick:
        expected["fewer_with_dcqcn_than_with_timely"] = Check(True, 0, "Table 2: 37 and 3 of 50")
    notes = [
        "not given by the paper, and taken from its other networks: links of 100 Gb/s to hosts and of 400 Gb/s between "
        "switches, 1 us each, 32 MB of buffer, XOFF 512 KB; load is of the hosts' links; hosts send to any other host",
        "a deadlock is a set of ports none of which would be resumed even if all other packets left; the paper counts "
        "runs in which some flow does not finish",
        *NOTES,
    ]
    if quick:
        notes.append(f"quick: {seeds} runs of {until * 1e3:g} ms in place of {SEEDS} of {UNTIL * 1e3:g} ms")
    files = (_draw(data, until).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    kept.unlink(missing_ok=True)
    return Result(
        figure,
        values,
        expected,
        files,
        tuple(notes),
        sample=f"{seeds} runs of {until * 1e3:g} ms with each scheme, of drawn traffic and paths, seeds 0 to "
        f"{seeds - 1}; deadlocks: "
        + ", ".join(
            f"{CONTENDERS[name].name} {sample.share(round(values[f'deadlocks_{name}']), seeds)}" for name in COMPARED
        ),
    )


def _runs(kept: Path, seeds: int, until: float) -> dict[str, dict[str, float | None]]:
    """Counts of every run, by scheme and seed; kept as they are made."""
    key = made_by(until)
    found: dict[str, Any] = {}
    if kept.exists():
        found = json.loads(kept.read_text()).get(key, {})
    wanted = [f"{name} {seed}" for seed in range(seeds) for name in COMPARED]
    missing = [name for name in wanted if name not in found]
    with Bar("simulating Table 2", len(wanted), "runs") as bar:
        for name, counts in run_many(lambda name, _: run(name, until), missing):
            found[name] = counts
            write_atomically(kept, json.dumps({key: found}).encode())
            bar(sum(each in found for each in wanted) / len(wanted))
    return {name: found[name] for name in wanted}


def made_by(until: float) -> str:
    """Hash what a run depends on besides scheme and seed: sources and settings."""
    text = repr((code(Path(builders.__file__).parent), CONTENDERS, NETWORK, HOSTS, LOAD, until))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def run(name: str, until: float) -> dict[str, float | None]:
    """Counts of a run, given as "scheme seed", as `COUNTED` names them."""
    scheme, seed = name.split()
    summary = simulate(unit(scheme, int(seed), until), until, engine="packet", seed=int(seed)).summary
    spread = [hops for hops, count in enumerate(summary["pfc"]["depths"], 1) if count]
    return {
        "deadlock": summary["pfc"]["deadlock_s"],
        "pauses": summary["pfc_pauses"],
        "suppressed": summary["pfc"]["suppressed"]["mean"],
        "depth": max(spread, default=0),
        "unfinished": sum(each is None for each in summary["fct_s"]),
        "drops": summary["drops"],
        "wall": summary["wall_s"],
    }


def _data(runs: dict[str, dict[str, float | None]], seeds: int) -> xr.Dataset:
    def column(what: str) -> np.ndarray:
        return np.array([[runs[f"{name} {seed}"][what] for seed in range(seeds)] for name in COMPARED], float)

    variables = {what: variable(("scheme", "seed"), column(what), unit, text) for what, (unit, text) in COUNTED.items()}
    return xr.Dataset(variables, {"scheme": list(COMPARED), "seed": np.arange(seeds)})


def _values(data: xr.Dataset, circle: bool) -> dict[str, float | bool]:
    deadlocks = data["deadlock"].notnull().sum("seed")
    values: dict[str, float | bool] = {
        "runs_of_each": float(data.sizes["seed"]),
        "buffers_can_wait_in_a_circle": circle,
    }
    for name in COMPARED:
        values[f"deadlocks_{name}"] = float(deadlocks.sel(scheme=name))
        for what in ("pauses", "suppressed", "wall"):
            unit = "_s" if what == "wall" else ""
            values[f"{what}_per_run_{name}{unit}"] = float(data[what].sel(scheme=name).mean())
    dcqcn, timely = values["deadlocks_dcqcn"], values["deadlocks_timely"]
    return values | {
        "timely_at_least_as_often_as_dcqcn": timely >= dcqcn,
        "fewer_with_dcqcn_than_with_timely": timely > dcqcn,
        "drops": float(data["drops"].sum()),
    }


def _draw(data: xr.Dataset, until: float) -> Any:
    picture, axes = new_figure(1, 3, size=(WIDTH, 4.2))
    fractions, times, pauses = axes[0]
    count, moments = data.sizes["seed"], np.linspace(0, until, 200)
    for k, name in enumerate(COMPARED):
        one = data.sel(scheme=name)
        share = float(one["deadlock"].notnull().mean()) * 100
        fractions.bar(k - 0.2, share, 0.4, color=COLOURS[name])
        fractions.bar(k + 0.2, PRINTED[name] * 2, 0.4, color="0.75")
        fractions.annotate(f"{share:.0f}", (k - 0.2, share), ha="center", va="bottom", fontsize="small")
        fractions.annotate(
            f"{PRINTED[name] * 2}", (k + 0.2, PRINTED[name] * 2), ha="center", va="bottom", fontsize="small"
        )
        standing = [float((~(one["deadlock"] <= time)).mean()) * 100 for time in moments]
        times.plot(
            moments * 1e3, standing, color=COLOURS[name], ls=("-", "--", "-.", "-")[k], label=CONTENDERS[name].name
        )
        pauses.plot(np.full(count, k) + np.linspace(-0.2, 0.2, count), one["pauses"] + 1, ".", color=COLOURS[name])
    fractions.set(ylabel=label("runs that deadlock", "%"), title="ours, and Table 2 (grey)", ylim=(0, 108))
    times.set(xlabel=label("time", "ms"), ylabel=label("runs not yet deadlocked", "%"), ylim=(-3, 108))
    legend(times, fontsize="small", loc="lower left")
    pauses.set(ylabel="PAUSE frames of a run, and one", yscale="log", title=f"each of {count} runs")
    for axis in (fractions, pauses):
        axis.set_xticks(range(len(COMPARED)), [CONTENDERS[name].name for name in COMPARED])
    for axis in (fractions, times, pauses):
        axis.grid(alpha=0.3)
    picture.suptitle(
        f"ACC Table 2: Web Search at {LOAD:.0%} for {until * 1e3:g} ms on a Clos unit with two failed links"
    )
    return picture
