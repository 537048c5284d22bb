"""DCQCN Figure 21: throughput of a flow whose packets are lost at random, section 7.

"The ConnectX-3 Pro implements a simple go-back-N loss recovery scheme. This is sufficient for environments where packet
loss rate low, as seen in Figure 21. Throughput degrades rapidly once the packet loss rate exceeds 0.1%." Selective
retransmission (IRN) and go-back-N's closed form are drawn beside.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.builders.rows import incast
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import LINE_RATE, WIDTH, packet_runs, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.scenario.model import Link, Scenario
from fluidcc.scenario.round_trips import serialisation_rtt
from fluidcc.schemes.dcqcn.parameters import DCQCN
from fluidcc.theory.loss_recovery import go_back_n_goodput

LOSSES = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
RECOVERY = {"gbn": "go-back-N", "irn": "IRN"}
DELAY = 6e-6  # s, each link: a round trip of 24 us, with which IRN's timeouts go
UNTIL, QUICK_UNTIL, OPENS = 2.0, 0.1, 1e-3  # s
_TOLERANCE = 0.02  # of the closed form
_QUICK_TOLERANCE = 0.06


@reproduces("dcqcn-fig21", papers.DCQCN, "Figure 21: impact of packet loss rate on throughput")
def make_fig21(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    until = QUICK_UNTIL if quick else UNTIL
    runs = [_lossy(loss, recovery) for recovery in RECOVERY for loss in LOSSES]
    traces = packet_runs(runs, until, window=(OPENS, until), sample_interval=until / 100)
    found = np.array([trace.summary["goodput_bytes_per_s"][0] for trace in traces]).reshape(len(RECOVERY), -1)
    closed = np.array([_closed_form(loss) for loss in LOSSES])
    shares = found / LINE_RATE
    values: dict[str, float | bool] = {}
    for recovery, row in zip(RECOVERY, shares, strict=True):
        values |= {f"{recovery}_goodput_share_at_{loss:g}": float(x) for loss, x in zip(LOSSES, row, strict=True)}
    at = {loss: k for k, loss in enumerate(LOSSES)}
    go_back_n, irn = shares
    values["closed_form_largest_difference"] = float(np.abs(go_back_n / closed - 1).max())
    values["sufficient_where_loss_is_rare"] = bool(go_back_n[at[1e-4]] > 0.95)
    values["degrades_rapidly_beyond_0.1_percent"] = bool(go_back_n[at[1e-2]] < 0.5 * go_back_n[at[1e-3]])
    values["irn_never_below_go_back_n"] = bool((irn >= go_back_n - _noise(closed, until)).all())
    tolerance = _QUICK_TOLERANCE if quick else _TOLERANCE
    expected = {
        "closed_form_largest_difference": Check(0.0, tolerance, "go-back-N's closed form; four standard errors"),
        "sufficient_where_loss_is_rare": Check(True, 0, "section 7"),
        "degrades_rapidly_beyond_0.1_percent": Check(True, 0, "section 7: to less than half, tenfold the loss"),
        "irn_never_below_go_back_n": Check(True, 0, "what arrived is not sent again"),
    }
    notes = [
        "one long-lived DCQCN flow of 1000 B packets at 40 Gb/s; the paper gives neither round trip nor timeout: 24 us "
        "and IRN's 320 and 100 us; the way back loses nothing",
    ]
    # `_noise` is three standard errors of a difference of two.
    known = 1.96 / (3 * np.sqrt(2)) * float((_noise(closed, until) / closed).max())
    if quick:
        notes.append(f"quick: {QUICK_UNTIL:g} s in place of {UNTIL:g}")
    data = xr.Dataset(
        {
            "goodput": variable(("recovery", "loss"), found, "bytes/s", "acknowledged payload"),
            "closed_form": variable("loss", closed * float(LINE_RATE), "bytes/s", "go-back-N's goodput"),
        },
        {"recovery": list(RECOVERY), "loss": variable("loss", np.array(LOSSES), "1", "loss rate")},
    )
    files = (_draw(shares, closed).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        expected,
        files,
        tuple(notes),
        sample=f"{sample.packets(until, len(runs), since=OPENS, seeds=range(1, len(runs) + 1), drawn='losses')}, "
        f"one each; by the number of losses go-back-N's goodputs are known to within {100 * known:.2g} % or "
        "better (95 %)",
    )


def _lossy(loss: float, recovery: str) -> Scenario:
    """A flow over a link that loses its packets, and none of its ACKs."""
    scenario = incast(1, rate=LINE_RATE, delay=DELAY, scheme=DCQCN(), loss_recovery=recovery)
    there = dataclasses.replace(scenario.links[0], source="switch", target="far", loss=loss)
    back = Link(LINE_RATE, DELAY, source="far", target="switch")
    flow = dataclasses.replace(scenario.flows[0], target="receiver")
    return dataclasses.replace(scenario, links=(there, back), flows=(flow,))


def _noise(share: np.ndarray, seconds: float) -> np.ndarray:
    """Three standard errors of the difference of two goodputs, as shares: how many losses there were is chance."""
    losses = np.array(LOSSES) * share * float(LINE_RATE) * seconds / 1000
    return 3 * (1 - share) * np.sqrt(2 / losses)


def _closed_form(loss: float) -> float:
    scenario = _lossy(loss, "gbn")
    flow = scenario.flows[0]
    slot = scenario.wire_packet_of(flow) / flow.line_rate
    round_trip = 2 * (flow.access_delay + scenario.links[0].delay + flow.egress_delay)
    round_trip += serialisation_rtt(scenario, flow)
    return go_back_n_goodput(loss, round_trip / slot, 320e-6 / slot)


def _draw(shares: np.ndarray, closed: np.ndarray) -> Any:
    picture, axes = new_figure(1, 1, size=(WIDTH / 1.6, 4.4))
    axis = axes[0, 0]
    for k, (text, row) in enumerate(zip(RECOVERY.values(), shares, strict=True)):
        axis.semilogx(LOSSES, row * 40, "o-", color=f"C{k}", lw=1.3, label=text)
    axis.semilogx(LOSSES, closed * 40, "k--", lw=1.0, label="go-back-N, closed form")
    axis.set(xlabel=label("loss rate", "1"), ylabel=label("goodput", "Gbps"))
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)
    axis.legend()
    picture.suptitle("DCQCN Fig. 21: one flow at 40 Gbps, packets lost at random")
    return picture
