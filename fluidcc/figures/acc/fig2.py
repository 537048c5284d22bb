"""ACC Figure 2: packets of the congested flow F1 in switches and in flight, and when its ACKs arrive (section 3.2).

Nothing is lost, so what is in flight beyond the pipe waits in switches. Once P4's queue is the hosts' first 512 KB
each, F1 gets its share of what came to that queue: 1/(N + 1) only if its packets came as fast as each host's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fluidcc import papers
from fluidcc.figures.acc.common import (
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
from fluidcc.figures.common import WIDTH, packet_runs, save, variable
from fluidcc.figures.registry import reproduces
from fluidcc.figures.result import Check, Figure, Result
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.results.trace import Trace

N = 20
UNTIL, STEP = 4.5e-3, 2e-6  # s
BURST = 1e-3  # s: they start
SINCE = 1.3e-3  # s: all ports are paused in turn; until P4 has sent the hosts' first XOFF each
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
    seen: dict[tuple[int, str], Seen] = {}
    for count in bursts:
        for name, flows in SHARES.items():
            scenario = bursty_chain("dcqcn", count, scheme=section_3_dcqcn(), **flows)
            seen[count, name] = _seen(packet_runs([scenario], UNTIL, log=True)[0], times)
    values, expected = _measure(seen, times), _expected(bursts)
    notes = [
        *NOTES,
        SETTLED_NOTE,
        BURST_NOTE,
        "F1's rate and pipe are means from 1.3 ms, when all ports are paused in turn, until P4 has sent the 512 KB "
        "that each host had there first. In that queue F1 has its share of what came: of 50 Gbps beside 20 hosts' 100 "
        "each 2.44 Gbps, not the 4.7 printed. Alone on the chain, at 100 Gbps as each host, F1 has 4.7 Gbps and a pipe "
        "of 11.9 KB: the paper's numbers, C/(N + 1), are those of a flow that arrives as fast as each host",
        "later P4's order of service becomes irregular, as hosts and SW3 are let go in turn, and ACKs come in clusters",
        "DCQCN with TCD: only congested flows are throttled (section 3.3)",
    ]
    if quick:
        notes.append("quick: N = 20 only")
    files = (_draw(seen, times).write(folder / f"{figure.name}.png"), folder / f"{figure.name}.nc")
    save(_data(seen, times), files[1])
    return Result(figure, values, expected, files, tuple(notes))


def _seen(trace: Trace, times: np.ndarray) -> Seen:
    log = FlowLog(trace, 1)
    backlog = np.array([log.backlog(times, link) for link in PORTS.values()])
    return Seen(backlog, log.in_flight(times), log.count(times, "acknowledge"), log.ends("acknowledge")[0])


def _window(bursts: int) -> tuple[int, int]:
    """Samples between which F1's rate is that of P4's first queue."""
    return round(SINCE / STEP), round((BURST + bursts * XOFF / LINE) / STEP)


def _measure(seen: dict[tuple[int, str], Seen], times: np.ndarray) -> dict[str, float | bool]:
    values: dict[str, float | bool] = {}
    for (count, name), run in seen.items():
        opens, closes = _window(count)
        rate = (run.acked[closes] - run.acked[opens]) / (times[closes] - times[opens])
        pipe = (run.in_flight - run.backlog.sum(axis=0))[opens:closes].mean()
        # Of P4, P3, P2, P1.
        begins = [float(times[np.argmax((line > QUEUED) & (times > BURST))]) for line in run.backlog[::-1]]
        here = f"N{count}_{name}"
        values |= {
            f"{here}_ack_rate_bytes_per_s": float(rate),
            f"{here}_pipe_bytes": float(pipe),
            f"{here}_pipe_over_rate_times_rtt": float(pipe / (rate * RTT)),
            f"{here}_backlog_max_bytes": float(run.backlog.sum(axis=0).max()),
            f"{here}_P3_from_s": begins[1],
            f"{here}_P3_P2_P1_in_turn": bool(np.all(np.diff(begins) > 0)),
        }
    return values


def _expected(bursts: tuple[int, ...]) -> dict[str, Check]:
    checks: dict[str, Check] = {}
    for count in bursts:
        fair, share = LINE / (count + 1), LINE * 0.5 / (count + 0.5)
        why = "what came to P4's queue first: its share of the arrivals"
        law = "packet conservation: what is in flight beyond the backlog fills the pipe; 2 % of it is transmission"
        for name, rate, text in (
            ("shared", share, f"{why}, 50 Gbps beside the hosts' 100 each; 5 %, as the hosts do not stop at once"),
            ("alone", fair, f"section 3.2: C/(N + 1), 4.7 Gbps at N = 20; {why}; 5 %"),
        ):
            here = f"N{count}_{name}"
            checks |= {
                f"{here}_ack_rate_bytes_per_s": Check(rate, 0.05 * rate, text),
                f"{here}_pipe_over_rate_times_rtt": Check(1.0, 0.1, f"{law}, and windows end between packets; 10 %"),
                f"{here}_P3_P2_P1_in_turn": Check(True, 0, "section 3.2: backlogs at P3, P2, P1 rise one by one"),
            }
        if count == N:
            why = "section 3.2: about 0.012 MB, C RTT/(N + 1); 10 %, as above"
            checks[f"N{N}_alone_pipe_bytes"] = Check(fair * RTT, 0.1 * fair * RTT, why)
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
