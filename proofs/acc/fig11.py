"""ACC Figure 11: fifteen hosts burst to the receiver of F1: what waits at P4, and who is paused (section 6.3).

Whether ACC pauses the switches of the chain depends on when the bursts come: while a flow halts it decides nothing
before the first ACK of what it sent after the halt, and a burst that comes then is observed only once P4 has drained.
So each scheme is run at many phases of the bursts' start, and one of them is drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label, zeros
from fluidcc.proofs import papers
from fluidcc.proofs.acc.common import (
    BURST_NOTE,
    COLOURS,
    COMPARED,
    CONTENDERS,
    LINKS,
    NOTES,
    SETTLED_NOTE,
    FlowLog,
    bursty_chain,
)
from fluidcc.proofs.shared.runs import WIDTH, packet_runs, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.results.trace import Trace

HOSTS = 15
UNTIL, STEP = 4.0e-3, 5e-6  # s
BURST, PHASE = 1e-3, 6e-6  # s
PHASES, QUICK_PHASES = tuple(range(12)), (1, 5, 9)
DRAWN = 5  # of the phases
VARIANTS = (*COMPARED, "acc_inflight", "acc_no_halt")
PANELS = ("dcqcn", "timely", "hpcc", "acc")
RECEIVERS = ("SW1", "SW2", "SW3", "hosts")
P4 = LINKS.index("SW4->R1")
EMPTY = 100e3  # bytes: P4's queue counts as drained


@reproduces("acc-fig11", papers.ACC, "Figure 11: bursts at P4: what waits there, and who is paused")
def make_fig11(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    phases = [DRAWN, *(k for k in (QUICK_PHASES if quick else PHASES) if k != DRAWN)]
    starts = [BURST + k * PHASE for k in phases]
    options = {"sample_interval": STEP, "window": (BURST + 0.1e-3, 3e-3)}
    pauses: dict[str, np.ndarray] = {}  # (phase, receiver)
    drawn: dict[str, Trace] = {}
    for name in VARIANTS[:-1] if quick else VARIANTS:
        shown, *others = [bursty_chain(name, HOSTS, burst_start=start) for start in starts]
        traces = [
            *packet_runs([shown], UNTIL, log=name in COMPARED, **options),
            *packet_runs(others, UNTIL, **options),
        ]
        rows = [trace.summary["pfc"]["pauses_received"] for trace in traces]
        pauses[name] = np.array([[row[node] for node in RECEIVERS] for row in rows])
        drawn[name] = traces[0]
    f1 = {name: FlowLog(drawn[name], 1).backlog(drawn[name]["time"].values, LINKS[P4]) for name in COMPARED}
    values = _measure(pauses, drawn, f1)
    files = (_draw(pauses, drawn, f1).write(folder / f"{figure.name}.png"), folder / f"{figure.name}.nc")
    save(_data(pauses, drawn, f1, np.array(starts)), files[1])
    return Result(
        figure,
        values,
        _expected(values),
        files,
        tuple(_notes(pauses, quick)),
        sample=f"{len(phases)} runs of packets of {UNTIL * 1e3:g} ms for each scheme, whose bursts begin at "
        f"evenly spaced phases; only DCQCN's marks are drawn, seeds 1 to {len(phases)}; least and most "
        "over them are given",
    )


def _unpaused(counts: np.ndarray) -> float:
    """Share of the phases in which no switch was paused."""
    return float((counts[:, :3].sum(axis=1) == 0).mean())


def _measure(
    pauses: dict[str, np.ndarray], drawn: dict[str, Trace], f1: dict[str, np.ndarray]
) -> dict[str, float | bool]:
    values: dict[str, float | bool] = {}
    for name, counts in pauses.items():
        values[f"{name}_unpaused_share_of_phases"] = _unpaused(counts)
        for node, count in zip(RECEIVERS, np.median(counts, axis=0), strict=True):
            values[f"{name}_pauses_{node}_median"] = float(count)
    for name, backlog in f1.items():
        time, queue = drawn[name]["time"].values, drawn[name]["queue"].values[:, P4]
        link = drawn[name].summary["links"][P4]
        values |= {
            f"{name}_F1_at_P4_max_bytes": float(backlog.max()),
            f"{name}_F1_at_P4_mean_bytes": float(backlog[time > BURST].mean()),
            f"{name}_P4_drained_s": float(time[queue > EMPTY][-1]),
            f"{name}_P4_utilisation": float(link["utilisation"]),
        }
    values["acc_spares_most_phases"] = values["acc_unpaused_share_of_phases"] > 0.5
    values["timely_pauses_most_phases"] = values["timely_unpaused_share_of_phases"] < 0.5
    others = min(values[f"{name}_pauses_hosts_median"] for name in ("dcqcn", "timely"))
    values["acc_pauses_hosts_less"] = values["acc_pauses_hosts_median"] < others
    others = min(values[f"{name}_F1_at_P4_mean_bytes"] for name in ("dcqcn", "timely"))
    values["acc_keeps_less_of_F1"] = values["acc_F1_at_P4_mean_bytes"] < others
    return values


def _expected(values: dict[str, float | bool]) -> dict[str, Check]:
    paused, spared = (f"section 6.3: {who} PAUSEs at SW1 to SW3" for who in ("receive", "receive no"))
    maximum = "section 6.3: drains P4 at the maximum rate; 1 %, from 0.1 ms after the bursts' start to 3 ms"
    return {
        "hpcc_unpaused_share_of_phases": Check(1.0, 0.0, f"{spared}; in every phase"),
        "dcqcn_unpaused_share_of_phases": Check(0.0, 0.0, f"{paused}; in every phase"),
        "timely_pauses_most_phases": Check(True, 0, f"{paused}; here in most phases"),
        "acc_spares_most_phases": Check(True, 0, f"{spared}; here in most phases"),
        "acc_inflight_unpaused_share_of_phases": Check(1.0, 0.0, f"{spared}; with halts that heed what comes in them"),
        "acc_pauses_hosts_less": Check(True, 0, "section 6.3: many fewer PAUSEs at hosts than DCQCN and TIMELY"),
        "acc_keeps_less_of_F1": Check(True, 0, "section 6.3: F1 is not drained rapidly in DCQCN and TIMELY"),
        "acc_P4_utilisation": Check(1.0, 0.01, maximum),
    }


def _notes(pauses: dict[str, np.ndarray], quick: bool) -> list[str]:
    shares = ", ".join(f"{CONTENDERS[name].name} {_unpaused(counts):.0%}" for name, counts in pauses.items())
    notes = [
        *NOTES,
        SETTLED_NOTE,
        BURST_NOTE,
        f"bursts from 1 ms + k 6 us on, k = 0 to {PHASES[-1]}; drawn is k = {DRAWN}, where all is as in the paper",
        f"phases in which SW1 to SW3 receive no PAUSE: {shares}. The paper shows one run: none with ACC and HPCC",
        "ACC pauses where the burst comes while F1 halts for some packet of its own: nothing is decided before an ACK "
        "of what is sent after the halt, which then waits behind the burst. With a new estimate in each period of a "
        "halt, by packet conservation, no phase pauses; nor do rates matched to the ACKs' without any halt",
        "TIMELY as the HPCC authors' simulator has it; Algorithm 1, with 16 KB segments and its own step, cuts "
        "within 0.1 ms: no PAUSE at SW1 to SW3 in any of the phases",
        "of HPCC's standing queue from 2 to 2.7 ms, after it drained drastically, there is none: P4 holds the bursts",
    ]
    if quick:
        notes.append(f"quick: {len(QUICK_PHASES)} phases of {len(PHASES)}, no ACC without halts")
    return notes


def _data(
    pauses: dict[str, np.ndarray], drawn: dict[str, Trace], f1: dict[str, np.ndarray], starts: np.ndarray
) -> xr.Dataset:
    queue = np.array([drawn[name]["queue"].values[:, P4] for name in f1])
    return xr.Dataset(
        {
            "pauses": variable(
                ("variant", "start", "receiver"), np.array(list(pauses.values())), "1", "PAUSE frames received"
            ),
            "P4": variable(("scheme", "time"), queue, "bytes", "queue of P4, all flows"),
            "F1": variable(("scheme", "time"), np.array(list(f1.values())), "bytes", "F1's bytes queued at P4"),
        },
        {
            "variant": list(pauses),
            "scheme": list(f1),
            "receiver": list(RECEIVERS),
            "start": variable("start", starts, "s", "start of the bursts"),
            "time": variable("time", drawn["acc"]["time"].values, "s", "time"),
        },
    ).sortby("start")


def _draw(pauses: dict[str, np.ndarray], drawn: dict[str, Trace], f1: dict[str, np.ndarray]) -> Any:
    picture, axes = new_figure(2, 3, size=(WIDTH, 7.0))
    for axis, name in zip((*axes[0, :2], *axes[1, :2]), PANELS, strict=True):
        time, queue = drawn[name]["time"].values * 1e3, drawn[name]["queue"].values[:, P4]
        axis.plot(time, (queue - f1[name]) / 1e6, color="0.5", lw=1.3, label="bursts")
        axis.plot(time, f1[name] / 1e5, color=COLOURS[name], lw=1.3, label="F1, times 10")
        axis.set(title=CONTENDERS[name].name, xlim=(0.9, UNTIL * 1e3), ylim=(0, 10))
        axis.legend(loc="upper right", fontsize="small")
    received, phases = axes[:, 2]
    place = np.arange(len(RECEIVERS))
    for k, (name, counts) in enumerate(pauses.items()):
        look = {"color": COLOURS[name], "label": CONTENDERS[name].name}
        zeros(received, received.bar(place + 0.13 * (k - 2.5), counts[0], width=0.13, **look))
        phases.plot(np.sort(counts[:, 2]), marker="osD^vx"[k], ms=5, lw=0.9, **look)
    received.set(title="PAUSEs received", xticks=place, xticklabels=RECEIVERS, yscale="symlog", ylim=(0, 1e3))
    phases.set(title="at SW3, all phases", xlabel="phase, by PAUSEs", ylabel="PAUSEs received")
    none = [CONTENDERS[name].name.replace(", ", ",\n") for name, counts in pauses.items() if not counts[:, 2].any()]
    phases.text(0.03, 0.4, "none:\n" + "\n".join(none), fontsize="x-small", transform=phases.transAxes)
    phases.xaxis.get_major_locator().set_params(integer=True)
    for axis in axes.flat:
        axis.grid(alpha=0.3)
    for axis in axes[:, 0]:
        axis.set_ylabel(label("queued at P4", "MB"))
    for axis in axes[1, :2]:
        axis.set_xlabel(label("time", "ms"))
    start = (BURST + DRAWN * PHASE) * 1e3
    picture.suptitle(f"ACC Fig. 11: what waits at P4, and who is paused; {HOSTS} hosts burst from {start:.2f} ms")
    handles, names = phases.get_legend_handles_labels()
    picture.legend(handles, names, loc="outside lower center", ncols=6, fontsize="small")
    return picture
