"""Section V-A of "Fast Convergence to Fairness": a flow joins others whose dampeners have grown by long congestion.

"A new flow, however, starts with a dampener value of 0. In this case, a new flow could have a higher AI than an
existing flow. [...] We ran experiments with this exact pattern and Variable AI still improved fairness."
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.builders import incast
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.fairness.common import NAMES, NOTES, PRESETS, VARIANTS, scheme_of
from fluidcc.proofs.shared.runs import WIDTH, packet_runs, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario
from fluidcc.theory.fairness.over_time import jain_over_time

COMPARED = ("default", "sf", "vai", "vai_sf")
STAGGER, SAMPLED = 20e-6, 2e-6  # s
CONGESTED = 1e-3  # s: from the last start of the others to the joiner's
DRAWN = 64  # flows that the joiner meets
MET, WAITED = (32, 64, 96), (0.5e-3, 1e-3, 1.5e-3)  # of all cases: one alone depends on how its queue oscillates
EARLY, AFTER = 100e-6, 1e-3  # s: since the joiner's start
HALVES = PRESETS["hpcc"]["vai-sf"].scheme.dampener_constant  # dampener that halves an increase; Swift's is the same
Case = tuple[int, float]  # flows, and how long they are congested
SHOWN: Case = (DRAWN, CONGESTED)


@reproduces("fairness-joiner", papers.VAI, "section V-A: a flow joins others of large dampeners")
def make_joiner(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    cases = [(met, waited) for met in MET for waited in ((CONGESTED,) if quick else WAITED)]
    found = {scheme: {case: _runs(scheme, case) for case in cases} for scheme in NAMES}
    values: dict[str, float | bool] = {}
    for scheme, of in found.items():
        for key in COMPARED:
            values |= {f"{scheme}_{key}_{name}": value for name, value in _numbers(of[SHOWN][key], SHOWN).items()}
        values |= {f"{scheme}_{name}": value for name, value in _verdicts(of).items()}
    unscaled = _scenario("swift", "default", _starts(SHOWN), flow_scaling=False)
    trace = packet_runs([unscaled], _joins(SHOWN) + 2 * AFTER + SAMPLED, sample_interval=SAMPLED)[0]
    values |= {f"swift_unscaled_{name}": value for name, value in _numbers(trace, SHOWN).items()}
    notes = [
        *NOTES,
        f"{DRAWN} flows start two every 20 us and do not end; a flow joins them 1 ms after the last. Cases: with "
        f"{', '.join(map(str, MET))} flows, after 0.5, 1 and 1.5 ms; a comparison is of most of them. Lead: what is "
        "delivered of the joiner over the others' mean, in its first 100 us, its first ms, and its second; Jain's "
        "index of the windows on average over the first ms",
        "what Variable AI does is seen against the same without it, SF alone; Swift's SF and VAI are without flow "
        f"scaling, without which the default's joiner would get {values['swift_unscaled_lead_1ms']:.1f} times as much",
    ]
    for scheme in NAMES:
        lead = {key: values[f"{scheme}_{key}_lead_1ms"] for key in COMPARED}
        notes.append(
            f"{NAMES[scheme]}: in its first ms the joiner gets "
            + ", ".join(f"{lead[key]:.1f} with {VARIANTS[key].name}" for key in COMPARED)
            + f" times as much as the others, whose dampener is {values[f'{scheme}_vai_sf_others_dampener']:.0f} then"
        )
    if quick:
        notes.append(f"quick: after 1 ms alone, {len(MET)} of {len(MET) * len(WAITED)} cases")
    drawn = {scheme: of[SHOWN] for scheme, of in found.items()}
    files = (_draw(drawn).write(folder / f"{figure.name}.png"), save(_data(drawn), folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        _expected(),
        files,
        tuple(notes),
        sample=f"{len(cases)} cases, of one run of packets for each of {len(COMPARED)} variants of {len(found)} "
        "schemes; nothing in them is random; a comparison is of most of the cases",
    )


def _joins(case: Case) -> float:
    """Return the start of the joiner [s]."""
    met, waited = case
    return (met // 2 - 1) * STAGGER + waited


def _starts(case: Case) -> list[float]:
    return [k // 2 * STAGGER for k in range(case[0])] + [_joins(case)]


def _runs(scheme: str, case: Case) -> dict[str, Trace]:
    starts = _starts(case)
    until = _joins(case) + 2 * AFTER + SAMPLED
    scenarios = [_scenario(scheme, key, starts) for key in COMPARED]
    return dict(zip(COMPARED, packet_runs(scenarios, until, sample_interval=SAMPLED), strict=True))


def _scenario(scheme: str, key: str, starts: list[float], **changes: Any) -> Scenario:
    network = PRESETS[scheme][VARIANTS[key].preset].network
    made = scheme_of(scheme, key, **changes)
    return incast(len(starts), rate="100Gbps", delay="1us", start=starts, scheme=made, **network)


def _lead(trace: Trace, since: float, until: float) -> float:
    """Return the joiner's delivered bytes in an interval [s], over the mean of the others."""
    at = trace["delivered"].sel(time=[since, until], method="nearest").values
    got = at[1] - at[0]
    return float(got[-1] / got[:-1].mean())


def _numbers(trace: Trace, case: Case) -> dict[str, float | bool]:
    joins = _joins(case)
    first = slice(joins, joins + AFTER)
    values: dict[str, float | bool] = {
        "lead_100us": _lead(trace, joins, joins + EARLY),
        "lead_1ms": _lead(trace, joins, joins + AFTER),
        "lead_second_ms": _lead(trace, joins + AFTER, joins + 2 * AFTER),
        "jain": float(jain_over_time(trace).sel(time=first).mean()),
        "queue_bytes": float(trace["queue"].sel(time=first).mean()),
    }
    if "dampener" in trace.dataset:
        before = trace["dampener"].sel(time=joins, method="nearest").values[:-1]
        factor = trace["increase_factor"].sel(time=first).mean("time").values
        values |= {
            "others_dampener": float(before.mean()),
            "others_increase_factor": float(factor[:-1].mean()),
            "joiner_increase_factor": float(factor[-1]),
        }
    return values


def _verdicts(of: dict[Case, dict[str, Trace]]) -> dict[str, float | bool]:
    """Count the cases in which each comparison holds, and decide whether it holds in most of them."""
    read = [{key: _numbers(trace, case) for key, trace in traces.items()} for case, traces in of.items()]
    counts = {
        f"vai_sf_{name}_than_{than}": sum(better(each["vai_sf"], each[than]) for each in read)
        for than in ("sf", "default")
        for name, better in (
            ("lead_less", lambda ours, other: ours["lead_1ms"] < other["lead_1ms"]),
            ("fairer", lambda ours, other: ours["jain"] > other["jain"]),
        )
    }
    ours = [each["vai_sf"] for each in read]
    counts["others_increase_less_than_half"] = sum(each["others_dampener"] > HALVES for each in ours)
    more = sum(each["joiner_increase_factor"] > each["others_increase_factor"] for each in ours)
    return {
        "cases": float(len(read)),
        **{f"cases_{name}": float(count) for name, count in counts.items()},
        **{name: bool(count > len(read) / 2) for name, count in counts.items()},
        "cases_joiner_increases_more": float(more),
        "joiner_can_increase_more": bool(more > 0),
    }


def _expected() -> dict[str, Check]:
    pattern = "V-A: an existing flow may have a high dampener value, above the constant that halves its increase"
    more = "V-A: a new flow could have a higher AI than an existing flow"
    better = "V-A: Variable AI still improved fairness; against the same without it, in most cases"
    default = "V-A: Variable AI still improved fairness; against the default, in most cases"
    return {
        f"{scheme}_{name}": Check(True, 0, why)
        for scheme in NAMES
        for name, why in (
            ("others_increase_less_than_half", pattern),
            ("joiner_can_increase_more", more),
            ("vai_sf_lead_less_than_sf", better),
            ("vai_sf_fairer_than_sf", better),
            ("vai_sf_lead_less_than_default", default),
            ("vai_sf_fairer_than_default", default),
        )
    }


def _read(trace: Trace) -> dict[str, np.ndarray]:
    """The joiner's window over the others' mean, and dampeners, against the time since it joined."""
    window = trace["window"].values
    dampener = trace["dampener"].values if "dampener" in trace.dataset else np.zeros_like(window)
    return {
        "lead": window[:, -1] / window[:, :-1].mean(axis=1),
        "others": dampener[:, :-1].mean(axis=1),
        "joiner": dampener[:, -1],
        "jain": jain_over_time(trace).values,
    }


def _data(drawn: dict[str, dict[str, Trace]]) -> xr.Dataset:
    dims = ("scheme", "variant", "time")
    read = [[_read(trace) for trace in of.values()] for of in drawn.values()]
    texts = {
        "lead": "joiner's window over the others' mean",
        "others": "mean dampener of the others",
        "joiner": "dampener of the joiner",
        "jain": "Jain's index of the windows",
    }
    data = {
        name: variable(dims, np.array([[each[name] for each in row] for row in read]), "1", text)
        for name, text in texts.items()
    }
    times = next(iter(next(iter(drawn.values())).values()))["time"].values - _joins(SHOWN)
    coordinates = {"time": variable("time", times, "s", "time since the joiner's start")}
    return xr.Dataset(data, {**coordinates, "scheme": list(drawn), "variant": list(COMPARED)})


def _draw(drawn: dict[str, dict[str, Trace]]) -> Any:
    picture, axes = new_figure(2, 2, size=(WIDTH, 7.0), sharex=True)
    for (scheme, of), (lead, dampener) in zip(drawn.items(), axes.T, strict=True):
        for key, trace in of.items():
            read, colour = _read(trace), VARIANTS[key].colour
            time = (trace["time"].values - _joins(SHOWN)) * 1e6
            here = time >= 0
            lead.plot(time[here], read["lead"][here], color=colour, lw=1.1, label=VARIANTS[key].name)
            if key.startswith("vai"):
                dampener.plot(time, read["others"], color=colour, lw=1.2)
                dampener.plot(time[here], read["joiner"][here], color=colour, lw=1.2, ls=":")
        lead.axhline(1.0, color="black", lw=0.8, ls="--")
        lead.set(title=f"{NAMES[scheme]}: the joiner's window over the others'", yscale="log", ylim=(0.3, 200))
        dampener.set(title=f"{NAMES[scheme]}: dampeners (dotted: the joiner's)", ylim=0, xlim=(-900, 2000))
        dampener.set_xlabel(label("time since it joined", "us"))
        for axis in (lead, dampener):
            axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("joiner over others")
    axes[1, 0].set_ylabel("dampener")
    picture.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize="small")
    picture.suptitle(f"Section V-A: a flow joins {DRAWN} others that have been congested for long")
    return picture
