"""HPCC Figure 6: the queue of a 2-to-1 incast with U from the rate sent (txRate) or arriving (rxRate), section 3.4.

"Using rxRate has oscillation before it finally converges. On the other hand, using txRate gracefully converges without
oscillation." Rates and delays are not given; those of section 5.4 are used.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fluidcc import units
from fluidcc.engines.run import simulate
from fluidcc.plotting.colours import SCHEMES
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.hpcc.common import aligned, hpcc_incast, rebounds
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import WIDTH, save
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.results.trace import Trace

SENDERS, UNTIL, LATE = 2, 400e-6, 300e-6  # flows, s, s: by the last, all have converged
SAMPLED = 0.2e-6  # s
DRAWN_UNTIL = 100.0  # us
SHARE = 0.1  # of the first peak: what counts as a rise or a fall
RATES = {"tx": "txRate (HPCC)", "rx": "rxRate (HPCC-rxRate)"}
OF_RATE = {"tx": "hpcc", "rx": "hpcc-rx"}
ENGINES = {"packet": "packets", "fluid": "fluid model"}
FLUID_TOLERANCE = 0.1  # of the peak: two first windows of some 52 packets, which the fluid sends as a stream


@reproduces("hpcc-fig6", papers.HPCC, "Figure 6: txRate against rxRate")
def make_fig6(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    traces = {f"{engine} {rate}": _run(engine, rate) for engine in ENGINES for rate in RATES}
    values: dict[str, float | bool] = {}
    for name, trace in traces.items():
        time, queue = trace["time"].values, trace["queue"].values[:, 0]
        key = name.replace(" ", "_")
        values[f"{key}_queue_peak_bytes"] = float(queue.max())
        values[f"{key}_rebounds"] = rebounds(queue, SHARE)
        values[f"{key}_oscillates"] = values[f"{key}_rebounds"] > 0
        values[f"{key}_queue_late_bytes"] = float(queue[time >= LATE].max())
    notes = [
        "2 senders, 100 Gbps, 1 us per link (the paper gives none), W_AI 80 B, both from t = 0 at line rate",
        f"a rebound is a rise by {SHARE:.0%} of the peak after a fall by as much; late is after "
        f"{units.show(LATE, units.TIME)}",
    ]
    if quick:
        notes.append("quick: the whole takes seconds, so nothing is left out")
    data = aligned(traces, "run", ("queue", "rate"))
    files = (_draw(traces).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        _expected(values),
        files,
        tuple(notes),
        sample=f"{sample.packets(UNTIL, len(RATES))}; {sample.fluid(UNTIL, len(RATES))}",
    )


def _run(engine: str, rate: str) -> Trace:
    options: dict[str, Any] = {"seed": 1} if engine == "packet" else {"estimate_error": False, "dt": SAMPLED / 2}
    scenario = hpcc_incast(SENDERS, u_rate=rate)
    return simulate(scenario, UNTIL, engine=engine, sample_interval=SAMPLED, **options)


def _expected(values: dict[str, float | bool]) -> dict[str, Check]:
    wire = hpcc_incast(SENDERS)
    packet = wire.wire_packet_of(wire.flows[0])
    expected = {}
    for engine in ENGINES:
        for rate, oscillates in (("tx", False), ("rx", True)):
            expected[f"{engine}_{rate}_oscillates"] = Check(oscillates, 0, "section 3.4 and Fig. 6")
            why = "section 3.4: it finally converges; U* is below 1, so no more waits than a packet of each flow"
            expected[f"{engine}_{rate}_queue_late_bytes"] = Check(SENDERS * packet / 2, SENDERS * packet / 2, why)
    peak = float(values["packet_tx_queue_peak_bytes"])
    why = "the packets' peak; two first windows of 52 packets as a stream"
    expected["fluid_tx_queue_peak_bytes"] = Check(peak, FLUID_TOLERANCE * peak, why)
    return expected


def _draw(traces: dict[str, Trace]) -> Any:
    picture, axes = new_figure(1, len(ENGINES), size=(WIDTH, 4.4), sharex=True, sharey=True)
    for axis, (engine, title) in zip(axes[0], ENGINES.items(), strict=True):
        for rate, text in RATES.items():
            trace = traces[f"{engine} {rate}"]
            axis.plot(trace["time"] * 1e6, trace["queue"][:, 0] / 1e3, color=SCHEMES[OF_RATE[rate]], lw=1.3, label=text)
        axis.set(xlim=(0, DRAWN_UNTIL), xlabel=label("time", "us"), title=title)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel(label("queue", "KB"))
    axes[0, 0].legend()
    picture.suptitle("HPCC Fig. 6: 2-to-1 incast, 100 Gbps; utilisation from the rate sent or arriving")
    return picture
