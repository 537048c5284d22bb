"""HPCC Figure 14: fairness and queue of a 16-to-1 incast for several W_AI (section 5.4), and what theory says of them.

"All W_AI within 150 bytes achieve a queue length within 4 KB at 95-th percentile, while W_AI = 300 bytes has a queue
length of 13 KB at 95-th percentile. Within the 150 bytes range, a higher W_AI has better fairness." At equilibrium N
flows have U* = eta + N W_AI/(B T) (appendix A.3), which beyond 1 asks for a queue of N W_AI - (1 - eta) B T.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc import units
from fluidcc.engines.run import simulate
from fluidcc.plotting.style import Picture, label
from fluidcc.progress import Bar
from fluidcc.proofs import papers
from fluidcc.proofs.hpcc.common import PRESET_NAMES, aligned, hpcc_incast, slope
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, WIDTH, save
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.results.metrics import jain
from fluidcc.results.trace import Trace
from fluidcc.scenario.round_trips import largest_base_rtt

SENDERS, UNTIL, SAMPLED = 16, 10e-3, 1e-6  # flows, s, s: "the first 10ms", "sampled every 1 us"
W_AI = (25, 50, 80, 150, 300)  # bytes; 80 is that of section 5.1
WITHIN = 150  # bytes: section 5.4's limit for 16 flows
EVERY = 1000  # samples: throughput of a flow is over 1 ms
SETTLED = 1e-3  # s; from here on the first burst is over
LINE = 100 * GBPS


@reproduces("hpcc-fig14", papers.HPCC, "Figure 14: fairness and queue against W_AI")
def make_fig14(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    cases = [(preset, w_ai) for preset in PRESET_NAMES for w_ai in W_AI]
    traces: dict[str, Trace] = {}
    with Bar("simulating packets", len(cases), "runs") as bar:
        for preset, w_ai in cases:
            scenario = hpcc_incast(SENDERS, preset, w_ai=float(w_ai))
            options: dict[str, Any] = {"engine": "packet", "seed": 1, "window": (SETTLED, UNTIL)}
            traces[f"{preset} {w_ai}"] = simulate(scenario, UNTIL, sample_interval=SAMPLED, **options)
            bar(len(traces) / len(cases))
    values: dict[str, float | bool] = {}
    expected: dict[str, Check] = {}
    for preset in PRESET_NAMES:
        found = {w_ai: _numbers(traces[f"{preset} {w_ai}"]) for w_ai in W_AI}
        key = preset.replace("-", "_")
        for w_ai, numbers in found.items():
            values |= {f"{key}_w_ai_{w_ai}_{name}": value for name, value in numbers.items()}
        values[f"{key}_w_ai_300_amplitude_period_s"] = _period(traces[f"{preset} 300"])
        packet = _packet(preset)
        limited = [w_ai for w_ai in W_AI if w_ai <= WITHIN]
        values[f"{key}_largest_p95_to_{WITHIN}_bytes"] = max(found[w_ai]["queue_p95_bytes"] for w_ai in limited)
        fairness = [found[w_ai]["jain"] for w_ai in limited]
        values[f"{key}_fairer_with_w_ai_to_{WITHIN}"] = all(a < b for a, b in pairwise(fairness))
        why = "section 5.4; half its last digit, and a packet, because percentiles of a queue move by whole packets"
        expected[f"{key}_largest_p95_to_{WITHIN}_bytes"] = Check(4e3, 500 + packet, why)
        expected[f"{key}_w_ai_300_queue_p95_bytes"] = Check(13e3, 500 + packet, why)
        why = "section 5.4: within 150 bytes, a higher W_AI has better fairness"
        expected[f"{key}_fairer_with_w_ai_to_{WITHIN}"] = Check(True, 0, why)
    values |= _theory(values)
    why = "appendix A.3: N W_AI - (1 - eta) B T waits at equilibrium; the fluid model settles there, to its rounding"
    expected["fluid_w_ai_300_queue_mean_bytes"] = Check(float(values["predicted_w_ai_300_queue_mean_bytes"]), 1.0, why)
    notes = [
        "percentiles are of all samples of the first 10 ms; means, utilisation and oscillations are after "
        f"{units.show(SETTLED, units.TIME)}; Jain's index is that of each flow's throughput over 1 ms, averaged",
        "the prediction takes T as HPCC does, with the packet and its ACK stored at every hop; packets do not settle "
        "there: they oscillate between an empty queue and the p95, so their mean is above it and the link not full",
    ]
    if quick:
        notes.append("quick: the whole takes seconds, so nothing is left out")
    data = aligned(traces, "run", ("queue", "delivered"))
    files = (_draw(traces).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        expected,
        files,
        tuple(notes),
        sample=f"{sample.packets(UNTIL, len(traces))}; {sample.fluid(UNTIL / 5)}",
    )


def _packet(preset: str) -> float:
    scenario = hpcc_incast(SENDERS, preset)
    return scenario.wire_packet_of(scenario.flows[0])


def _throughput(trace: Trace) -> np.ndarray:
    """Payload of every flow per interval of 1 ms [bytes/s]."""
    return slope(trace["delivered"].values, SAMPLED, EVERY)


def _numbers(trace: Trace) -> dict[str, float]:
    queue, link = trace["queue"].values[:, 0], trace.summary["links"][0]
    return {
        "queue_p95_bytes": float(np.percentile(queue, 95)),
        "queue_mean_bytes": link["queue_bytes"]["mean"],
        "utilisation": link["utilisation"],
        "jain": float(np.mean([jain(rates) for rates in _throughput(trace)])),
    }


def _period(trace: Trace) -> float:
    """Period of the strongest component of the settled queue's spectrum [s]."""
    queue = trace["queue"].values[round(SETTLED / SAMPLED) :, 0]
    power = np.abs(np.fft.rfft(queue - queue.mean()))
    return len(queue) * SAMPLED / int(power[1:].argmax() + 1)


def _theory(values: dict[str, float | bool]) -> dict[str, float | bool]:
    """Mean queue at W_AI = 300 B as predicted and in the fluid model, and the largest W_AI without a queue."""
    scenario = hpcc_incast(SENDERS, w_ai=300.0)
    scheme, T = scenario.flows[0].scheme, largest_base_rtt(scenario)
    headroom = (1 - scheme.eta) * LINE * T
    fluid = simulate(scenario, UNTIL / 5, estimate_error=False)
    predicted = SENDERS * scheme.w_ai - headroom
    return {
        "largest_w_ai_without_queue_bytes": headroom / SENDERS,
        "predicted_w_ai_300_queue_mean_bytes": predicted,
        "fluid_w_ai_300_queue_mean_bytes": fluid.summary["queue_bytes"]["mean"],
        "packet_mean_over_predicted": float(values["hpcc_eval_w_ai_300_queue_mean_bytes"]) / predicted,
    }


def _draw(traces: dict[str, Trace]) -> Picture:
    picture = Picture(figsize=(1.2 * WIDTH, 6.6), layout="constrained")
    parts: Any = picture.subfigures(2, 1)
    above, below = parts
    drawn = "hpcc-eval"
    for axis, w_ai in zip(above.subplots(1, len(W_AI), sharey=True), W_AI, strict=True):
        rates = _throughput(traces[f"{drawn} {w_ai}"]) / GBPS
        middles = (np.arange(len(rates)) + 0.5) * SAMPLED * EVERY * 1e3
        axis.plot(middles, rates, lw=1.0, color="C0", alpha=0.7)
        axis.axhline(rates.mean(), color="0.3", lw=0.8, ls="--")
        axis.set(xlim=(0, UNTIL * 1e3), ylim=(0, 10), xlabel=label("time", "ms"), title=f"$W_{{AI}}$ = {w_ai} B")
        axis.grid(alpha=0.3)
    above.axes[0].set_ylabel(label("throughput of each flow", "Gbps"))
    for axis, (preset, title) in zip(below.subplots(1, 2, sharey=True), PRESET_NAMES.items(), strict=True):
        for k, w_ai in enumerate(W_AI):
            queue = np.sort(traces[f"{preset} {w_ai}"]["queue"].values[:, 0]) / 1e3
            shares = np.arange(1, len(queue) + 1) / len(queue)
            axis.step(queue, shares, where="post", color=f"C{k}", lw=1.2, label=f"$W_{{AI}}$ = {w_ai} B")
        axis.axhline(0.95, color="0.5", lw=0.8, ls=":", label="p95")
        axis.set(xlim=(0, 20), ylim=(0, 1), xlabel=label("queue", "KB"), title=title)
        axis.grid(alpha=0.3)
        axis.legend(loc="lower right", fontsize="small")
    below.axes[0].set_ylabel("share of samples")
    picture.suptitle(f"HPCC Fig. 14: 16-to-1 incast, 100 Gbps (above: {PRESET_NAMES[drawn]})")
    return picture
