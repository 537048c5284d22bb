"""Receiver-based HPCC (HPCC++ slides): 2-to-1, 8-to-1, and flows that come and go, by ACKs and by notifications.

The slides give neither packets' size nor lengths of runs. Each flow is notified once per period at least, so 45 249
notifications of 8 flows took at most 25.5 ms; 128 724 packets in that time at 95 % of 25 Gb/s have at most 587 B on the
wire. Taken here: 512 B of payload, 33 B of headers and 42 B of telemetry, and lengths at which HPCC's ACKs are as many
as the slides'. How many flows come and go is not given either.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fluidcc.builders import clos
from fluidcc.engines.run import simulate
from fluidcc.plotting.colours import SCHEMES
from fluidcc.plotting.style import figure as new_figure
from fluidcc.proofs import papers
from fluidcc.proofs.hpcc.common import aligned, drain_time, slope
from fluidcc.proofs.shared.runs import GBPS, WIDTH, save
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.results.metrics import jain
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario
from fluidcc.schemes.hpcc import HPCC
from fluidcc.schemes.hpcc_rx import HPCCRx

LINE, ETA, PERIOD = 25 * GBPS, 0.95, 4.5e-6
PAYLOAD, HEADER, INT = 512, 33, 42
WIRE = PAYLOAD + HEADER + INT
HOSTS = 8  # of each ToR
MOST = 16  # flows that come and go
SAMPLED, BIN = 2e-6, 50  # s, samples of a rate
RECEIVER = "T1->H0"


class Case(NamedTuple):
    """A row of the picture: flows, HPCC's increase, and what the slides count."""

    title: str
    flows: int
    rate_ai: str
    top: float  # of the picture [Gb/s]
    acks: int
    notifications: int

    @property
    def length(self) -> float:
        """Time [s] in which HPCC's packets are as many as the slides' ACKs."""
        return self.acks * WIRE / (ETA * LINE)


CASES = {
    "2to1": Case("2-to-1", 2, "128Mbps", 14, 114_924, 21_913),
    "8to1": Case("8-to-1", 8, "12.8Mbps", 7, 128_724, 45_249),
    "come_and_go": Case("come and go", MOST, "12.8Mbps", 26, 193_116, 110_940),
}


@reproduces("hpcc-rx", papers.HPCCPP, "receiver-based HPCC: 2-to-1, 8-to-1, come and go")
def make_rx(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    part = 0.2 if quick else 1.0
    traces: dict[str, Trace] = {}
    values: dict[str, float | bool] = {}
    expected: dict[str, Check] = {}
    for key, case in CASES.items():
        until = part * case.length
        schemes = {"hpcc": HPCC(base_rtt="9us", rate_ai=case.rate_ai), "rx": HPCCRx(base_rtt="9us", np_period=PERIOD)}
        for name, scheme in schemes.items():
            scenario = scenario_of(case, scheme, until)
            run = simulate(scenario, until, engine="packet", window=(0, until), sample_interval=SAMPLED)
            traces[f"{key} {name}"] = run
            values |= {f"{key}_{name}_{what}": value for what, value in _read(run).items()}
        _expect(key, case, values, expected, quick)
    lengths = [1e3 * part * case.length for case in CASES.values()]
    ratios = [values[f"{key}_ratio"] for key in CASES]
    values["ratios_fall"] = all(a > b for a, b in itertools.pairwise(ratios))
    expected["ratios_fall"] = Check(True, 0, "slides: 5.2, 2.8, 1.7")
    notes = (
        "ours: 512 B of payload and 33 B of headers, chosen for the notifications of 8-to-1; lengths chosen for "
        "HPCC's ACKs; 16 flows that come one by one in the first two fifths and go in the last two; links of 0.99 us "
        "for an RTT of 8.5 us",
        "notifications of the slides' 2-to-1 are twice one per flow and period, and those of come and go as many as of "
        "13 flows: by their trigger or by more flows, which the slides do not say",
        *(("quick: a fifth of the time, no counts",) if quick else ()),
    )
    picture = _draw(traces).write(folder / f"{figure.name}.png")
    files = [picture]
    for key in CASES:
        data = aligned({name: traces[f"{key} {name}"] for name in ("hpcc", "rx")}, "run", ("queue", "rate"))
        files.append(save(data, folder / f"{figure.name}-{key.replace('_', '-')}.nc"))
    return Result(
        figure,
        values,
        expected,
        tuple(files),
        notes,
        sample=f"{len(traces)} runs of packets of {min(lengths):.3g} to {max(lengths):.3g} ms; nothing in them is "
        "random",
    )


def scenario_of(case: Case, scheme: Any, until: float) -> Scenario:
    """Four ToRs under four leaves: the slides' two stages. Senders are at three ToRs, the receiver at the fourth."""
    senders = [(1 + i % 3) * HOSTS + i // 3 for i in range(case.flows)]
    rows = [(sender, 0) for sender in senders]
    if case.flows == MOST:
        starts = np.arange(MOST) / MOST * 0.4 * until
        rows = [(s, 0, t, size) for s, t, size in zip(senders, starts, _sizes(starts, until), strict=True)]
    return clos(
        rows,
        pods=1,
        tors=4,
        leaves=4,
        spines=4,
        hosts=HOSTS,
        rate=LINE,
        fabric_rate="100Gbps",
        delay="0.992us",  # base RTT 8.5 us, stores included
        scheme=scheme,
        packet_size=PAYLOAD,
        header_bytes=HEADER,
    )


def _sizes(starts: np.ndarray, until: float) -> np.ndarray:
    """Payload [bytes] with which flows of equal rates go one by one in the last two fifths, first come first gone."""
    edges = np.concatenate([starts, starts + 0.6 * until])
    order = np.sort(edges)
    sizes = np.zeros(len(starts))
    for begin, end in itertools.pairwise(order):
        on = (starts <= begin) & (begin < starts + 0.6 * until)
        sizes[on] += ETA * LINE * PAYLOAD / WIRE * (end - begin) / on.sum()
    return sizes


def _read(trace: Trace) -> dict[str, float]:
    """Compute the metrics that are compared, over the whole run."""
    queue = trace["queue"].sel(link=RECEIVER).values
    port = next(link for link in trace.summary["links"] if link["name"] == RECEIVER)
    rates = _rates(trace)
    on = trace["pacing_rate"].values[: len(rates) * BIN].reshape(len(rates), BIN, -1).min(axis=1) > 0
    several = [jain(row[mask]) for row, mask in zip(rates, on, strict=True) if mask.sum() > 1]
    return {
        "answers": float(trace.summary["acks"]),
        "packets": float(trace.summary["packets"]),
        "jain": float(np.mean(several)),
        "utilisation": port["utilisation"],
        "queue_mean_bytes": port["queue_bytes"]["mean"],
        "queue_largest_bytes": port["queue_bytes"]["max"],
        "drain_s": drain_time(trace["time"].values, queue),
    }


def _rates(trace: Trace) -> np.ndarray:
    """Injection rate of each flow [bytes/s], in bins."""
    sums = np.cumsum(trace["rate"].values, axis=0) * SAMPLED
    return slope(sums, SAMPLED, BIN)


def _expect(key: str, case: Case, values: dict[str, Any], expected: dict[str, Check], quick: bool) -> None:
    """Stated before anything was measured."""
    acked, told = (
        {what: values[f"{key}_{name}_{what}"] for what in ("answers", "jain", "queue_largest_bytes", "drain_s")}
        for name in ("hpcc", "rx")
    )
    values[f"{key}_ratio"] = acked["answers"] / told["answers"]
    values[f"{key}_slides_ratio"] = case.acks / case.notifications
    checks = {
        "fewer_answers": (told["answers"] < acked["answers"], "slides: much less feedbacks"),
        "as_fair": (told["jain"] >= acked["jain"] - 0.002, "slides: improved fairness; Jain in bins of 100 us, -0.002"),
        "queue_slightly_larger": (
            1 <= told["queue_largest_bytes"] / acked["queue_largest_bytes"] <= 2,
            "slides: slightly bigger buffer usage; largest queue once to twice HPCC's",
        ),
        "similar_transient": (
            told["drain_s"] <= 2 * acked["drain_s"] + 9e-6,
            "slides: similar transient; peak to 5 % in at most twice HPCC's time and a round trip",
        ),
    }
    for name, (holds, why) in checks.items():
        values[f"{key}_{name}"] = bool(holds)
        expected[f"{key}_{name}"] = Check(True, 0, why)
    if quick:
        return
    why = "the slides' count; the run's length was chosen for it, within 3 % for the start and its queue"
    expected[f"{key}_hpcc_answers"] = Check(case.acks, 0.03 * case.acks, why)
    if key == "8to1":
        why = "the slides' count; the packets' size was chosen for one per flow and period, within 5 %"
        expected[f"{key}_rx_answers"] = Check(case.notifications, 0.05 * case.notifications, why)


def _draw(traces: dict[str, Trace]) -> Any:
    picture, axes = new_figure(3, 3, size=(WIDTH, 9.0))
    for row, (key, case) in enumerate(CASES.items()):
        for column, (name, title) in enumerate({"hpcc": "HPCC, ACKs", "rx": "receiver-based"}.items()):
            trace = traces[f"{key} {name}"]
            rates = _rates(trace) / GBPS
            time = trace["time"].values[BIN::BIN][: len(rates)] * 1e3
            axes[row, column].plot(time, rates, lw=0.7)
            count = trace.summary["acks"]
            axes[row, column].set(title=f"{case.title}, {title}: {count:,} answers", ylim=(0, case.top))
            axes[row, column].title.set_fontsize(10)
            queue = trace["queue"].sel(link=RECEIVER).values[1 : 1 + len(rates) * BIN].reshape(-1, BIN).max(axis=1)
            look = {"color": SCHEMES["hpcc-rx"], "lw": 0.8} if name == "rx" else {"color": SCHEMES[name], "lw": 1.8}
            axes[row, 2].plot(time, queue / 1e3, label=title, **look)
        axes[row, 0].set(ylabel="injection rate of a flow [Gbps]")
        axes[row, 2].set(title=f"{case.title}: largest queue in 100 us [KB]", yscale="log")
        axes[row, 2].title.set_fontsize(10)
    axes[1, 2].legend(fontsize=8)
    for axis in axes[-1]:
        axis.set(xlabel="time [ms]")
    picture.suptitle("Receiver-based HPCC: 25 Gbps NICs, two stages of 100 Gbps, T = 9 us")
    return picture
