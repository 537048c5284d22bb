"""ACC Figure 2: packets of the congested flow F1 in switches and in flight, and when its ACKs arrive (section 3.2).

Nothing is lost, so what is in flight beyond the pipe waits in switches. From 1.1 to 3 ms F1's ACKs come at C/(N + 1) on
average. Not at each time: while P4 sends the hosts' first 512 KB each, F1 gets its share of what came to that queue,
1/(N + 1) only if its packets came as fast as each host's, and after that more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.acc.common import (
    BURST_NOTE,
    GBPS,
    LINE,
    LINKS,
    NOTES,
    SETTLED_NOTE,
    XOFF,
    FlowLog,
    bursty_chain,
    section_3_dcqcn,
)
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import WIDTH, packet_runs, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.results.trace import Trace

N = 20
UNTIL, STEP = 4.5e-3, 2e-6  # s
BURST = 1e-3  # s: they start
FROM, TO = 1.1e-3, 3e-3  # s: from when F1 waits at more ports than P4 to the end of the bursts
SINCE = 1.3e-3  # s: all ports are paused in turn
SEEDS = 8  # of runs of F0 and F1, whose marks are random
RTT = 20e-6  # s: F1's, 2 us for each of ten links
PORTS = {"P1": LINKS[0], "P2": LINKS[1], "P3": LINKS[2], "P4": LINKS[4]}
QUEUED = 20e3  # bytes beyond which a flow counts as queued: at P1, where F0 and F1 meet, it has some 8 KB anyway
SHARES: dict[str, dict[str, Any]] = {
    "shared": {},  # F0 and F1 at 50 Gbps each
    "alone": {"start": ("1s", "0s"), "initial_rate": ("50Gbps", "100Gbps")},  # no F0
}
TITLES = {"shared": "F0 and F1 at 50 Gbps each (section 3.1)", "alone": "F1 alone, at line rate"}


class Seen(NamedTuple):
    """F1 over time [bytes]: in each of the ports, in flight, acknowledged; and when its ACKs came [s]."""

    backlog: np.ndarray
    in_flight: np.ndarray
    acked: np.ndarray
    acks: np.ndarray


@reproduces("acc-fig2", papers.ACC, "Figure 2: a congested flow's packets in switches, in flight, and its ACKs")
def make_fig2(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    bursts = (N,) if quick else (N, 10)
    times = np.arange(0.0, UNTIL, STEP)
    several: dict[tuple[int, str], list[Seen]] = {}
    seeds = 1 if quick else SEEDS
    for count in bursts:
        for name, flows in SHARES.items():
            scenarios = [bursty_chain("dcqcn", count, scheme=section_3_dcqcn(), **flows)] * seeds
            several[count, name] = [_seen(trace, times) for trace in packet_runs(scenarios, UNTIL, log=True)]
    seen = {key: runs[0] for key, runs in several.items()}
    values, expected = _measure(several, times), _expected(bursts)
    notes = [
        *NOTES,
        SETTLED_NOTE,
        BURST_NOTE,
        f"F1's rate is the mean from {FROM * 1e3:g} to {TO * 1e3:g} ms over {seeds} seeds, the least and the most; its "
        "pipe is the mean from 1.3 ms, when all ports are paused in turn",
        "first queue: from 1.3 ms until P4 has sent the 512 KB that each host had there first. In that queue F1 has "
        "its share of what came: of 50 Gbps beside 20 hosts' 100 each 2.44 Gbps; from there to 3 ms it gets more than "
        "C/(N + 1), and over both what is printed, about 4.7 Gbps. Alone on the chain, at 100 Gbps as each host, "
        "it has this rate in both parts",
        "later P4's order of service becomes irregular, as hosts and SW3 are let go in turn, and ACKs come in clusters",
        "DCQCN with TCD: only congested flows are throttled (section 3.3)",
    ]
    if quick:
        notes.append("quick: N = 20 only")
    files = (_draw(seen, times).write(folder / f"{figure.name}.png"), folder / f"{figure.name}.nc")
    save(_data(seen, times), files[1])
    return Result(
        figure,
        values,
        expected,
        files,
        tuple(notes),
        sample=f"{sample.packets(UNTIL, seeds, since=FROM, seeds=range(1, seeds + 1), drawn=sample.MARKS)} for "
        f"each of {len(several)} settings; the least and the most of F1's rate are given",
    )


def _seen(trace: Trace, times: np.ndarray) -> Seen:
    log = FlowLog(trace, 1)
    backlog = np.array([log.backlog(times, link) for link in PORTS.values()])
    return Seen(backlog, log.in_flight(times), log.count(times, "acknowledge"), log.ends("acknowledge")[0])


def _rate(run: Seen, since: float, until: float) -> float:
    """Mean rate of F1's ACKs between two times [bytes/s]."""
    opens, closes = round(since / STEP), round(until / STEP)
    return float((run.acked[closes] - run.acked[opens]) / ((closes - opens) * STEP))


def _measure(seen: dict[tuple[int, str], list[Seen]], times: np.ndarray) -> dict[str, float | bool]:
    values: dict[str, float | bool] = {}
    for (count, name), runs in seen.items():
        first, emptied = runs[0], BURST + count * XOFF / LINE  # s: when P4 has sent the hosts' first XOFF each
        rates = [_rate(run, FROM, TO) for run in runs]
        beyond = first.in_flight - first.backlog.sum(axis=0)
        pipe = float(beyond[round(SINCE / STEP) : round(TO / STEP)].mean())
        # Of P4, P3, P2, P1.
        begins = [float(times[np.argmax((line > QUEUED) & (times > BURST))]) for line in first.backlog[::-1]]
        here = f"N{count}_{name}"
        values |= {
            f"{here}_ack_rate_bytes_per_s": float(np.mean(rates)),
            f"{here}_ack_rate_least_bytes_per_s": min(rates),
            f"{here}_ack_rate_most_bytes_per_s": max(rates),
            f"{here}_first_queue_rate_bytes_per_s": float(np.mean([_rate(run, SINCE, emptied) for run in runs])),
            f"{here}_later_rate_bytes_per_s": float(np.mean([_rate(run, emptied, TO) for run in runs])),
            f"{here}_pipe_bytes": pipe,
            f"{here}_pipe_over_rate_times_rtt": pipe / (_rate(first, SINCE, TO) * RTT),
            f"{here}_backlog_max_bytes": float(first.backlog.sum(axis=0).max()),
            f"{here}_P3_from_s": begins[1],
            f"{here}_P3_P2_P1_in_turn": bool(np.all(np.diff(begins) > 0)),
        }
    return values


def _expected(bursts: tuple[int, ...]) -> dict[str, Check]:
    checks: dict[str, Check] = {}
    for count in bursts:
        fair, share = LINE / (count + 1), LINE * 0.5 / (count + 0.5)
        printed = "section 3.2: C/(N + 1), about 4.7 Gbps at N = 20, from 1.1 to 3 ms; 5 %, as it is not steady"
        came = "what came to P4's queue first: F1's share of the arrivals"
        law = "packet conservation: what is in flight beyond the backlog fills the pipe; 2 % of it is transmission"
        for name, rate, text in (
            ("shared", share, f"{came}, 50 Gbps beside the hosts' 100 each; 5 %, as the hosts do not stop at once"),
            ("alone", fair, f"{came}, as much as each host's; 5 %"),
        ):
            here = f"N{count}_{name}"
            checks |= {
                f"{here}_ack_rate_bytes_per_s": Check(fair, 0.05 * fair, printed),
                f"{here}_first_queue_rate_bytes_per_s": Check(rate, 0.05 * rate, text),
                f"{here}_pipe_over_rate_times_rtt": Check(1.0, 0.1, f"{law}, and windows end between packets; 10 %"),
                f"{here}_P3_P2_P1_in_turn": Check(True, 0, "section 3.2: backlogs at P3, P2, P1 rise one by one"),
            }
        if count == N:
            why = "section 3.2: about 0.012 MB, C RTT/(N + 1); 10 %, as above"
            for name in SHARES:
                checks[f"N{N}_{name}_pipe_bytes"] = Check(fair * RTT, 0.1 * fair * RTT, why)
            why = "section 3.2: only queued at P4 till 1.1 ms; the last digit"
            checks[f"N{N}_shared_P3_from_s"] = Check(1.1e-3, 0.05e-3, why)
    return checks


def _data(seen: dict[tuple[int, str], Seen], times: np.ndarray) -> xr.Dataset:
    runs = list(seen.values())
    sizes = "bytes"
    return xr.Dataset(
        {
            "backlog": variable(
                ("run", "port", "time"), np.array([run.backlog for run in runs]), sizes, "F1's bytes queued at a port"
            ),
            "in_flight": variable(
                ("run", "time"), np.array([run.in_flight for run in runs]), sizes, "F1's bytes in flight"
            ),
            "acked": variable(("run", "time"), np.array([run.acked for run in runs]), sizes, "F1's bytes acknowledged"),
        },
        {
            "time": variable("time", times, "s", "time"),
            "port": list(PORTS),
            "run": [f"N = {count}, {name}" for count, name in seen],
        },
    )


def _draw(seen: dict[tuple[int, str], Seen], times: np.ndarray) -> Any:
    picture, axes = new_figure(3, 2, size=(WIDTH, 7.4), sharex=True, sharey="row")
    time, every = times * 1e3, round(50e-6 / STEP)
    for column, name in enumerate(SHARES):
        run = seen[N, name]
        queued, flying, acks = axes[:, column]
        for k, port in enumerate(PORTS):
            queued.plot(time, run.backlog[k] / 1e3, color=f"C{k}", lw=1.2, label=port)
        total = run.backlog.sum(axis=0)
        flying.plot(time, run.in_flight / 1e3, color="C4", lw=1.2, label="in flight at S1")
        flying.plot(time, total / 1e3, color="black", lw=1.0, ls="--", label="P1 + P2 + P3 + P4")
        rates = np.diff(run.acked[::every]) / (every * STEP) / GBPS
        acks.stairs(rates, time[::every][: len(rates) + 1], color="C5", lw=1.2, label="rate over 50 us")
        acks.plot(run.acks * 1e3, np.full(len(run.acks), 68.0), "|", color="black", ms=7, mew=0.15, label="each ACK")
        printed = 100 / (N + 1)
        acks.axhline(printed, color="0.4", lw=0.9, ls=":", label=f"C/(N + 1) = {printed:.2f} Gbps")
        queued.set(title=TITLES[name])
        acks.set(xlabel=label("time", "ms"), xlim=(0.9, UNTIL * 1e3), ylim=(0, 73))
        for axis in (queued, flying, acks):
            axis.grid(alpha=0.3)
    texts = (("F1's backlog", "KB"), ("F1's bytes", "KB"), ("F1's ACKs at S1", "Gbps"))
    for axis, (text, unit) in zip(axes[:, 0], texts, strict=True):
        axis.set_ylabel(label(text, unit))
    axes[0, 0].legend(loc="lower center", fontsize="small", ncols=4)
    axes[1, 0].legend(loc="lower center", fontsize="small")
    axes[2, 0].legend(loc="upper center", bbox_to_anchor=(0.5, 0.87), fontsize="small", ncols=2)
    picture.suptitle(f"ACC Fig. 2: F1 in switches and in flight, and its ACKs; N = {N} hosts burst from 1 ms")
    return picture
