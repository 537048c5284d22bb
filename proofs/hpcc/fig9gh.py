"""HPCC Figure 9(g), (h): four flows join a link one by one, and leave one by one (section 5.2).

"4 flows join a link one by one every second and leave afterwards. HPCC provides good fairness even in a short time
scale." The spacing here is shorter than a second; HPCC settles within a few milliseconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fluidcc import units
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.hpcc import testbed as testbed
from fluidcc.proofs.hpcc.common import aligned, slope
from fluidcc.proofs.shared.runs import GBPS, WIDTH, save
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.results.metrics import jain
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario

FLOWS = 4
SPACING, SPACING_QUICK = 100e-3, 25e-3  # s
PERIODS = 2 * FLOWS + 1  # four joins, four leaves, and one more for what is late
SAMPLED, EVERY = 100e-6, 10  # s, samples: "a short time scale" is 1 ms
FAIR = 0.02  # 1 less Jain's index: of four flows, each within some 15 % of its share
IN_TIME = 0.05  # of a flow's time on the link


@reproduces("hpcc-fig9gh", papers.HPCC, "Figure 9(g), (h): four flows come and go")
def make_fig9gh(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    spacing = SPACING_QUICK if quick else SPACING
    runs = testbed.run_all(
        lambda name: _scenario(name, spacing), PERIODS * spacing, testbed.SEEDS_QUICK, sample_interval=SAMPLED
    )
    values: dict[str, float | bool] = dict(
        testbed.medians(
            found := {name: [_numbers(trace, spacing) for trace in traces] for name, traces in runs.items()}
        )
    )
    expected = {
        f"hpcc_jain_{count}_flows": Check(
            1.0, FAIR, "section 5.2: good fairness even in a short time scale; over 1 ms, from half the spacing on"
        )
        for count in range(2, FLOWS + 1)
    }
    why = "section 5.2: flows that share evenly leave one spacing after each other"
    expected["hpcc_worst_leave_share"] = Check(0.0, IN_TIME, why)
    notes = [
        *testbed.NOTES,
        f"joins are {units.show(spacing, units.TIME)} apart, in the paper 1 s; flows end when they have sent what fair "
        "shares would let them send in four spacings, so only fair flows leave in turn",
    ]
    if quick:
        notes.append(f"quick: a spacing of {units.show(SPACING_QUICK, units.TIME)} in place of 100ms")
    drawn = {name: traces[0] for name, traces in runs.items()}
    data = aligned(drawn, "contender", ("delivered", "queue"))
    files = (_draw(drawn).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        expected,
        files,
        tuple(notes),
        sample=testbed.sample_of(testbed.SEEDS_QUICK, PERIODS * spacing, found, f"jain_{FLOWS}_flows", "of 1"),
    )


def _scenario(contender: str, spacing: float) -> Scenario:
    """Flow k joins after k spacings and leaves, if all is fair, four spacings later."""
    scenario = testbed.rack(contender, FLOWS)
    flow = scenario.flows[0]
    used = getattr(flow.scheme, "eta", 1.0) * scenario.packet_size / scenario.wire_packet_of(flow)
    sharers = [min(period + 1, 2 * FLOWS - 1 - period) for period in range(2 * FLOWS - 1)]
    sizes = [sum(used * testbed.LINE * spacing / n for n in sharers[k : k + FLOWS]) for k in range(FLOWS)]
    return testbed.rack(contender, FLOWS, start=[k * spacing for k in range(FLOWS)], size=sizes)


def _goodput(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """Ends of intervals of 1 ms [s] and each flow's payload over them [bytes/s]."""
    return trace["time"].values[EVERY::EVERY], slope(trace["delivered"].values, SAMPLED, EVERY)


def _numbers(trace: Trace, spacing: float) -> dict[str, float]:
    ends, rates = _goodput(trace)
    found = {}
    for count in range(2, FLOWS + 1):
        settled = (ends > (count - 0.5) * spacing) & (ends <= count * spacing)
        found[f"jain_{count}_flows"] = float(np.mean([jain(rate) for rate in rates[settled, :count]]))
    stays = np.minimum(testbed.finished(trace), PERIODS * spacing)
    found["worst_leave_share"] = float(np.abs(stays / (FLOWS * spacing) - 1).max())
    return found


def _draw(traces: dict[str, Trace]) -> Any:
    picture, axes = new_figure(1, len(traces), size=(WIDTH, 3.8), sharex=True, sharey=True)
    for axis, (name, trace) in zip(axes[0], traces.items(), strict=True):
        ends, rates = _goodput(trace)
        for k in range(FLOWS):
            axis.plot(ends * 1e3, rates[:, k] / GBPS, color=f"C{k}", lw=1.0, label=f"flow {k + 1}")
        axis.set(title=testbed.NAMES[name], xlabel=label("time", "ms"), xlim=(0, ends[-1] * 1e3), ylim=(0, 30))
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel(label("goodput over 1 ms", "Gbps"))
    axes[0, 0].legend(loc="upper center", fontsize="small", ncols=2)
    picture.suptitle("HPCC Fig. 9(g), (h): four flows join and leave one by one, 25 Gbps (one seed)")
    return picture
