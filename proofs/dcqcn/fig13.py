"""DCQCN Figure 13: two flows under four settings, the fluid model against packets (section 6.1).

(a) the strawman, (b) its timer at 55 us, (c) its marking RED-like, (d) Table 14. Of (b) the paper says only that the
timer was sped up; section 5.2 wants a large byte counter with it. Both readings are run: the strawman's 150 KB and
10 MB. With 150 KB packets stay unfair because the first flow's alpha has decayed before its first CNP; if both flows
cut by the same alpha (``alpha_update="slotted"``) they come to equal rates, as in the paper.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fluidcc.builders import incast
from fluidcc.engines.run import simulate
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, LINE_RATE, SWITCH, SWITCH_NOTE, WIDTH, packet_runs, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import RED, Scenario
from fluidcc.schemes.dcqcn import DCQCN, PRESETS

_STRAWMAN, _CUTOFF = PRESETS["strawman"][:2]
_TABLE_14, _RED = PRESETS["paper"][:2]
_FASTER = dataclasses.replace(_STRAWMAN, timer="55us")
SAMPLED = 1e-3  # s; throughput over a millisecond
FAIR = 0.1 * LINE_RATE  # a larger gap between mean rates is unfair


class Case(NamedTuple):
    """A panel: name, title, and what the flows and the switch run."""

    name: str
    title: str
    scheme: DCQCN
    marking: RED | None

    def scenario(self, start: float) -> Scenario:
        """Two senders, the second later."""
        return incast(2, scheme=self.scheme, marking=self.marking, start=[0.0, start], **SWITCH)


CASES = (
    Case("a", "(a) strawman", _STRAWMAN, _CUTOFF),
    Case("b", "(b) timer 55 us, counter 150 KB", _FASTER, _CUTOFF),
    Case("b10", "(b) timer 55 us, counter 10 MB", dataclasses.replace(_FASTER, byte_counter="10MB"), _CUTOFF),
    Case("c", "(c) RED-like marking", _STRAWMAN, _RED),
    Case("d", "(d) both: Table 14", _TABLE_14, _RED),
)


class Span(NamedTuple):
    """Second start, end, and from when on rates count [s]; seeds where marks are random."""

    start: float
    until: float
    since: float
    seeds: int


FULL, QUICK = Span(0.5, 1.5, 1.0, 3), Span(0.1, 0.5, 0.3, 2)


@reproduces("dcqcn-fig13", papers.DCQCN, "Figure 13: two flows under four settings, model and packets")
def make_fig13(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    span = QUICK if quick else FULL
    fluids = _fluids(span)
    found = {case: (fluid, _packets(case, span)) for case, fluid in zip(CASES, fluids, strict=True)}
    values: dict[str, Any] = {}
    for case, (fluid, packets) in found.items():
        values |= _measure(case.name, fluid, packets, span)
    values["c_is_noisier_than_b_and_d"] = values["c_std_packet_bytes_per_s"] > max(
        values[f"{name}_std_packet_bytes_per_s"] for name in ("b", "b10", "d")
    )
    notes = [
        f"the second flow starts at {span.start * 1e3:g} ms; means over {span.since * 1e3:g} to {span.until * 1e3:g} "
        "ms; std is that of one flow within a run: packets' throughput over 1 ms, the fluid's rate every 1 ms",
        "(b) is run with the strawman's byte counter and with the 10 MB that section 5.2 wants beside a fast timer",
        f"{span.seeds} seeds with RED-like marking; a step marking draws nothing, so all its runs are the same",
        SWITCH_NOTE,
    ]
    random = {case: packets for case, (_, packets) in found.items() if len(packets) > 1}
    said = [
        sample.packets(span.until, span.seeds, since=span.since, seeds=range(1, span.seeds + 1), drawn=sample.MARKS),
        *(
            sample.mean(f"gap of mean rates in ({case.name})", [_gap(each, span) for each in packets], "Gb/s", GBPS)
            for case, packets in random.items()
        ),
        f"{len(CASES) - len(random)} of {len(CASES)} settings mark at a step and are one run, as all of the fluid",
    ]
    if quick:
        notes.append(f"quick: the second start at {QUICK.start * 1e3:g} ms in place of {FULL.start * 1e3:g} ms")
    files = (_draw(found, span).write(folder / f"{figure.name}.png"), folder / f"{figure.name}.nc")
    save(_data(found), files[1])
    return Result(figure, values, _expected(), files, tuple(notes), sample="; ".join(said))


def _fluids(span: Span) -> list[Trace]:
    """Simulate every case in the fluid model, as bottlenecks that share nothing in one run; return a trace of each."""
    alone = [case.scenario(span.start) for case in CASES]
    links = tuple(dataclasses.replace(each.links[0], name=case.name) for each, case in zip(alone, CASES, strict=True))
    flows = tuple(dataclasses.replace(flow, path=(k,)) for k, each in enumerate(alone) for flow in each.flows)
    together = dataclasses.replace(alone[0], links=links, flows=flows)
    trace = simulate(together, span.until, sample_interval=SAMPLED, estimate_error=False)
    return [Trace(trace.dataset.isel(link=[k], flow=[2 * k, 2 * k + 1])) for k in range(len(CASES))]


def _gap(trace: Trace, span: Span) -> float:
    """Return the absolute difference of the two flows' mean rates [bytes/s]."""
    one, other = trace.between(span.since, span.until)["rate"].values.mean(axis=0)
    return abs(float(one - other))


def _packets(case: Case, span: Span) -> list[Trace]:
    seeds = 1 if case.marking is _CUTOFF else span.seeds
    return packet_runs([case.scenario(span.start)] * seeds, span.until, sample_interval=SAMPLED)


def _measure(name: str, fluid: Trace, packets: list[Trace], span: Span) -> dict[str, Any]:
    """Mean rates of both flows, their gap, and how much one flow's throughput varies; fluid and packets."""
    values: dict[str, Any] = {}
    for engine, traces in (("fluid", [fluid]), ("packet", packets)):
        rates = [trace.between(span.since, span.until)["rate"].values for trace in traces]
        means = np.mean(rates, axis=(0, 1))
        values |= {f"{name}_rate_{k + 1}_{engine}_bytes_per_s": float(means[k]) for k in range(2)}
        values[f"{name}_gap_{engine}_bytes_per_s"] = float(abs(means[0] - means[1]))
        values[f"{name}_std_{engine}_bytes_per_s"] = float(np.std(rates, axis=1).mean())
        values[f"{name}_is_fair_{engine}"] = values[f"{name}_gap_{engine}_bytes_per_s"] <= FAIR
    return values


def _expected() -> dict[str, Check]:
    why = "a gap of at most 10 % of the line rate is fair"
    checks = {}
    for name, fair, claim in (
        ("a", False, "section 6.1: unfairness"),
        ("b10", True, "section 6.1: a fast timer alleviates it"),
        ("c", True, "section 6.1: on average similar throughput"),
        ("d", True, "section 6.1: the combined solution"),
    ):
        for engine in ("fluid", "packet"):
            checks[f"{name}_is_fair_{engine}"] = Check(fair, 0, f"{claim}; {why}")
    checks["b_is_fair_fluid"] = Check(True, 0, f"section 5.2: speeding up the timer is enough in the model; {why}")
    checks["c_is_noisier_than_b_and_d"] = Check(True, 0, "section 6.1: unstable, due to the randomness in marking")
    return checks


def _data(found: dict[Case, tuple[Trace, list[Trace]]]) -> xr.Dataset:
    """Rates over time of every case: the fluid, and the packets' first run."""
    fluid = np.stack([fluid["rate"].values for fluid, _ in found.values()])
    packet = np.stack([packets[0]["rate"].values for _, packets in found.values()])
    dims = ("case", "time", "flow")
    first = next(iter(found.values()))[0]
    return xr.Dataset(
        {
            "rate_fluid": variable(dims, fluid, "bytes/s", "rate, fluid model"),
            "rate_packet": variable(dims, packet, "bytes/s", "rate, packets, first seed"),
        },
        {"case": [case.name for case in found], "time": first["time"].drop_vars("time"), "flow": ["first", "second"]},
    )


def _draw(found: dict[Case, tuple[Trace, list[Trace]]], span: Span) -> Any:
    picture, axes = new_figure(2, len(found), size=(1.5 * WIDTH, 6.4), sharex=True, sharey=True)
    for column, (case, (fluid, packets)) in enumerate(found.items()):
        for axis, trace in zip(axes[:, column], (fluid, packets[0]), strict=True):
            time = trace["time"].values * 1e3
            for flow, name in enumerate(("first flow", "second flow")):
                axis.plot(time, trace["rate"].values[:, flow] / GBPS, lw=0.8, color=f"C{flow}", label=name)
            axis.axhline(20, color="0.4", lw=0.8, ls="--")
            axis.grid(alpha=0.3)
        axes[0, column].set_title(case.title, fontsize="medium")
        axes[1, column].set_xlabel(label("time", "ms"))
    for axis, name in zip(axes[:, 0], ("fluid model", "packets"), strict=True):
        axis.set_ylabel(f"{name}\n{label('rate', 'Gbps')}")
        axis.set(xlim=(0, span.until * 1e3), ylim=(0, 44), xticks=np.arange(0, span.until * 1e3, span.start * 1e3))
    axes[0, 0].legend(loc="center right", fontsize="small")
    picture.suptitle("DCQCN Fig. 13: two flows under four settings, the fluid model and packets")
    return picture
