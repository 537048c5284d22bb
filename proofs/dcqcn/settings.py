"""DCQCN, sections 5.1, 5.2 and 6.3: settings that converge, what they cost, and queues of 20:1 incast.

All of the fluid's cases run side by side, two flows from 40 and 0 Gb/s for 200 ms as in Fig. 11 unless said otherwise.
A gap is the difference of their rates; they converge if that of the last 20 ms is below 1 Gb/s, 2.5 % of the line.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from fluidcc.proofs.dcqcn.equations import setting
from fluidcc.proofs.dcqcn.fixed_point import PMAX, marking, queue
from fluidcc.proofs.papers import DCQCN
from fluidcc.proofs.shared import sample
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main
from fluidcc.units import Rate

GBPS = Rate(1e9 / 8)
STEP, SAMPLED, UNTIL, FROM, LAST = 1e-6, 10e-6, 200e-3, 10e-3, 180e-3  # s
PACKETS_SINCE, PACKETS_UNTIL, SEED = 50e-3, 250e-3, 1  # s, of runs of packets
ABOUT = 0.1
GAINS = (16, 64, 256, 1024)
HALVED = (  # cases that are run with half the step, too
    *("strawman", "byte_counter_10MB", "timer_55us", "pmax_1", "r_ai_20", "g_1/16", "g_1/256", "delay_85us"),
    "10_without_queue",
)


def _cells() -> dict[str, Any]:
    """Scheme, marking and classes of flows (number, rate at start), by name."""
    from fluidcc import equilibrium, incast
    from fluidcc.scenario.model import RED
    from fluidcc.schemes.dcqcn import PRESETS

    (paper, ramp), (straw, cut) = PRESETS["paper"][:2], PRESETS["strawman"][:2]
    change = dataclasses.replace
    pair = ((1.0, 40 * GBPS), (1.0, 0.0))

    def empty(flows: int) -> Any:
        """Return a start at the fixed point, but with an empty queue."""
        alpha = equilibrium(incast(1, multiplicity=flows)).as_dict()["alpha"]
        return change(paper, initial_alpha=alpha), ramp, ((float(flows), 40 * GBPS / flows),)

    found = {
        "strawman": (straw, cut, pair),
        "byte_counter_10MB": (change(straw, byte_counter=10e6), cut, pair),
        "timer_55us": (change(straw, timer=55e-6), cut, pair),
        "red": (straw, ramp, pair),
        "delay_100us": (change(paper, feedback_delay=100e-6), ramp, pair),
        "delay_85us": (change(paper, feedback_delay=85e-6), ramp, pair),
        "delay_87us": (change(paper, feedback_delay=87e-6), ramp, pair),
        "r_ai_20": (change(paper, rate_ai="20Mbps"), ramp, pair),
        "10_from_line_rate": (paper, ramp, ((10.0, 40 * GBPS),)),
        **{f"{n}_without_queue": empty(n) for n in (7, 8, 9, 10, 14)},
    }
    late = change(paper, feedback_delay=65e-6)
    found |= {f"{n}_at_65us": (late, ramp, ((float(n), 40 * GBPS),)) for n in (4, 9, 14)}
    found |= {f"g_1/{n}": (change(paper, g=1 / n), ramp, pair) for n in GAINS}
    found |= {f"pmax_{n}": (paper, RED("5KB", "200KB", n / 100), pair) for n in (1, 5, 10)}
    return found | {f"timer_{n}": (change(paper, timer=n * 1e-6), ramp, pair) for n in (25, 55)}


@functools.cache
def fluid(step: float = STEP) -> dict[str, dict[str, float]]:
    """Gaps [Gb/s], and queue [bytes], of each cell; growth is that of the queue's range, last 20 ms over 40 before."""
    from fluidcc.engines.run import simulate
    from fluidcc.proofs.shared.runs import side_by_side

    cells = {name: cell for name, cell in _cells().items() if step == STEP or name in HALVED}
    trace = simulate(side_by_side(list(cells.values())), UNTIL, dt=step, sample_interval=SAMPLED, estimate_error=False)
    time, queues, rates = (trace[name].values for name in ("time", "queue", "rate"))
    later, last, found, at = time >= FROM, time >= LAST, {}, 0
    for k, (name, (_, _, classes)) in enumerate(cells.items()):
        pair = rates[:, [at, at + len(classes) - 1]] / GBPS
        gap, at = np.abs(pair[:, 0] - pair[:, 1]), at + len(classes)
        found[name] = {
            "mean_gap": float(gap[later].mean()),
            "last_gap": float(abs(np.diff(pair[last].mean(axis=0))[0])),
            "fast": float(pair[last, 0].mean()),
            "slow": float(pair[last, 1].mean()),
            "converged_s": float(time[np.flatnonzero(gap >= 1)[-1]]) if (gap >= 1).any() else 0.0,
            "least_queue": float(queues[last, k].min()),
            "most_queue": float(queues[last, k].max()),
            "growth": float(np.ptp(queues[last, k]) / max(np.ptp(queues[(time >= LAST - 40e-3) & ~last, k]), 1e-9)),
            "empty": float((queues[time >= UNTIL / 4, k] < 1).mean()),
        }
    return found


def cells(runs: int, *, since: float = LAST) -> str:
    """Describe the sample that a number of `fluid`'s cases is."""
    return sample.fluid(UNTIL, runs, since=since)


def incasts(runs: int = 1, drawn: str = sample.MARKS) -> str:
    """Describe what `packets` draws in a number of runs."""
    return sample.packets(PACKETS_UNTIL, runs, since=PACKETS_SINCE, seeds=SEED, drawn=drawn)


def halved(name: str, key: str, tolerance: float) -> Way:
    """The number again with half the step."""
    return Way(f"{key} of {name}: step of 1 us, of 0.5 us", fluid()[name][key], fluid(STEP / 2)[name][key], tolerance)


@claim(
    "dcqcn-52-strawman",
    DCQCN,
    "5.2, Fig. 11a",
    "with the parameters of QCN and DCTCP the flows cannot converge",
    slow=True,
)
def strawman() -> Finding:
    at = fluid()["strawman"]
    return Finding(
        {"as printed": at["last_gap"] >= 1},
        {"last_20_ms_gbps": [at["fast"], at["slow"]], "mean_gap_gbps": at["mean_gap"]},
        [halved("strawman", "fast", 0.01)],
        sample=cells(1),
    )


@claim(
    "dcqcn-52-remedies",
    DCQCN,
    "5.2, Fig. 11",
    "slowing the byte counter helps, speeding up the timer is better, RED-like marking helps",
    slow=True,
)
def remedies() -> Finding:
    gaps = {name: fluid()[name]["last_gap"] for name in ("strawman", "byte_counter_10MB", "timer_55us", "red")}
    return Finding(
        {
            "as printed": gaps["timer_55us"] < gaps["byte_counter_10MB"] < gaps["strawman"]
            and gaps["red"] < gaps["strawman"]
        },
        {f"last_gap_gbps_{name}": gap for name, gap in gaps.items()}
        | {f"converges_{name}": gap < 1 for name, gap in gaps.items()},
        [halved("timer_55us", "last_gap", 0.05), halved("byte_counter_10MB", "last_gap", 0.05)],
        sample=cells(len(gaps)),
    )


@claim("dcqcn-52-pmax", DCQCN, "5.2, Fig. 11d", "Pmax = 1 % for fast convergence to fairness", slow=True)
def pmax() -> Finding:
    gaps = {n: fluid()[f"pmax_{n}"]["mean_gap"] for n in (1, 5, 10)}
    times = {n: fluid()[f"pmax_{n}"]["converged_s"] for n in (1, 5, 10)}
    empty = {n: fluid()[f"pmax_{n}"]["empty"] for n in (1, 5, 10)}
    faster = [n for n in (5, 10) if gaps[n] < gaps[1]]
    return Finding(
        {
            "converges": fluid()["pmax_1"]["last_gap"] < 1,
            "no slower than 5 and 10 %": gaps[1] <= min(gaps[5], gaps[10]),
        },
        {f"mean_gap_gbps_{n}_percent": gap for n, gap in gaps.items()}
        | {f"below_1_gbps_from_s_{n}_percent": value for n, value in times.items()}
        | {f"queue_empty_share_{n}_percent": share for n, share in empty.items()},
        [halved("pmax_1", "mean_gap", 0.01)],
        restricted=fluid()["pmax_1"]["last_gap"] < 1 and empty[1] == 0 and all(empty[n] > 0 for n in faster),
        conditions=f"it converges ({setting('Pmax')}), and its queue never runs empty; faster, but with an empty "
        "queue, are " + ", ".join(f"{n} % (mean gap {gaps[n]:.2f} in place of {gaps[1]:.2f} Gb/s)" for n in faster),
        sample=cells(len(gaps), since=FROM),
    )


@claim("dcqcn-52-r-ai", DCQCN, "5.2", "halving R_AI reduces the convergence speed", slow=True)
def half_increase() -> Finding:
    whole, half = fluid()["pmax_1"], fluid()["r_ai_20"]
    return Finding(
        {"as printed": half["mean_gap"] > whole["mean_gap"] and half["converged_s"] > whole["converged_s"]},
        {
            "mean_gap_gbps": [whole["mean_gap"], half["mean_gap"]],
            "below_1_gbps_from_s": [whole["converged_s"], half["converged_s"]],
        },
        [halved("r_ai_20", "mean_gap", 0.01)],
        sample=cells(2, since=FROM),
    )


@functools.cache
def packets(senders: int, **options: Any) -> dict[str, float]:
    """Queue and utilisation of K:1 incast in packets after the start has drained."""
    import fluidcc as fc
    from fluidcc.proofs.shared.runs import SWITCH

    scenario = fc.incast(senders, **SWITCH, **options)
    window = (PACKETS_SINCE, PACKETS_UNTIL)
    summary = fc.simulate(scenario, PACKETS_UNTIL, window=window, engine="packet", seed=SEED).summary
    return summary["queue_bytes"] | {"utilisation": summary["utilisation"]}


@claim("dcqcn-52-kmin", DCQCN, "5.2", "Kmin = 5 KB is sufficient to maintain 100 % throughput", slow=True)
def shallow() -> Finding:
    from fluidcc.scenario.model import RED

    used = {n: packets(n)["utilisation"] for n in (2, 4, 8)}
    deeper = packets(8, marking=RED("40KB", "200KB", 0.01))["utilisation"]
    modelled = fluid()["pmax_1"]["empty"] == 0
    return Finding(
        {"fluid, 2 flows": modelled, "packets, 2 to 8 flows, 99 %": min(used.values()) >= 0.99},
        {f"packets_utilisation_{n}": value for n, value in used.items()} | {"packets_utilisation_8_kmin_40KB": deeper},
        [Way("utilisation of 2: packets, fluid (1 where the queue is never empty)", used[2], float(modelled), 0.01)],
        restricted=modelled and min(used[2], used[4]) >= 0.99,
        conditions=f"up to 4 flows ({setting()}); in packets 8 use {used[8]:.1%}, and with Kmin = 40 KB {deeper:.1%}",
        sample=f"{incasts(len(used) + 1)}; {cells(1, since=UNTIL / 4)}",
    )


@claim("dcqcn-52-timer", DCQCN, "5.2", "the timer must exceed the CNP interval, or rates rise between CNPs", slow=True)
def timer() -> Finding:
    from fluidcc.schemes.dcqcn import DCQCN as SCHEME

    between = {n: 50 // n for n in (25, 40, 55)}  # expiries within 50 us of a CNP, which starts the timer again
    fixed_points = {n: fluid()[f"timer_{n}"]["most_queue"] for n in (25, 55)}
    seen = {n: packets(2, scheme=SCHEME(timer=n * 1e-6))["p95"] for n in (25, 55)}
    return Finding(
        {"as printed": between[55] == 0 and between[40] > 0 and between[25] > 0},
        {f"increases_between_cnps_{n}_us": count for n, count in between.items()}
        | {f"fluid_queue_bytes_{n}_us": value for n, value in fixed_points.items()}
        | {f"packets_p95_bytes_{n}_us": value for n, value in seen.items()}
        | {f"fluid_mean_gap_gbps_{n}_us": fluid()[f"timer_{n}"]["mean_gap"] for n in (25, 55)},
        [
            Way(
                "longer with 25 us: fluid at equilibrium, packets' p95",
                fixed_points[25] > fixed_points[55],
                seen[25] > seen[55],
            )
        ],
        sample=f"{cells(len(fixed_points))}; {incasts(len(seen))}",
    )


@claim("dcqcn-51-fig10", DCQCN, "5.1, Fig. 10", "the fluid model matches the implementation quite well", slow=True)
def second_flow(since: float = 20e-3, until: float = 100e-3) -> Finding:
    """A second flow joins after 10 ms, both from line rate; packets stand for the implementation."""
    import fluidcc as fc
    from fluidcc.proofs.shared.runs import SWITCH

    scenario = fc.incast(2, start=[0.0, 10e-3], **SWITCH)
    fluid_options = {"dt": STEP, "estimate_error": False}
    found = {}
    for engine, options in (("fluid", fluid_options), ("packet", {"engine": "packet", "seed": SEED})):
        trace = fc.simulate(scenario, until, sample_interval=SAMPLED, **options)
        time, queue_at = trace["time"].values, trace["queue"].values[:, 0]
        rates = trace["rate" if engine == "fluid" else "pacing_rate"].values / GBPS
        after = time > 10e-3 + SAMPLED / 2
        found[engine] = {
            "peak_bytes": float(queue_at.max()),
            "peak_s": float(time[queue_at.argmax()]),
            "least_rate_2_gbps": float(rates[after, 1].min()),
            "rates_at_20_ms_gbps": rates[np.searchsorted(time, 20e-3 - 1e-9)],
            "rates_at_50_ms_gbps": rates[np.searchsorted(time, 50e-3 - 1e-9)],
            "mean_rates_gbps": rates[time >= since].mean(axis=0),
        }
    model, seen = found["fluid"], found["packet"]
    rates_alike = bool((np.abs(seen["mean_rates_gbps"] / model["mean_rates_gbps"] - 1) < ABOUT).all())
    # Until the first marks are observed, tau* after they are made, the queue grows by the line rate.
    least = 40 * GBPS * 50e-6
    return Finding(
        {"mean rates": rates_alike, "peak of the queue": abs(seen["peak_bytes"] / model["peak_bytes"] - 1) < ABOUT},
        {f"{engine}_{key}": value for engine, each in found.items() for key, value in each.items()},
        [Way("peak at least what a second line rate brings in tau*", bool(model["peak_bytes"] > least), True)],
        restricted=rates_alike,
        conditions=f"mean rates ({setting()}); the first peak of the queue is {model['peak_bytes'] / 1e3:.0f} KB in "
        f"the fluid, {seen['peak_bytes'] / 1e3:.0f} KB in packets, whose CNPs need not wait for tau* = 50 us",
        sample=f"{sample.fluid(until, since=since)}; "
        + sample.packets(until, since=since, seeds=SEED, drawn=sample.MARKS),
    )


@claim("dcqcn-63-dcqcn", DCQCN, "6.3, Fig. 19", "20:1: the p95 queue is 76.6 KB, as the fluid model has it", slow=True)
def twenty() -> Finding:
    from fluidcc.engines.run import simulate
    from fluidcc.proofs.shared.runs import side_by_side
    from fluidcc.schemes.dcqcn import PRESETS

    cell = (*PRESETS["paper"][:2], ((20.0, 40 * GBPS),))
    window = (PACKETS_SINCE, PACKETS_UNTIL)
    model = simulate(side_by_side([cell]), PACKETS_UNTIL, window=window, estimate_error=False)
    modelled, seen = model.summary["queue_bytes"]["p95"], packets(20)["p95"]
    return Finding(
        {
            "packets and the fluid model's run": max(abs(p95 / 76.6e3 - 1) for p95 in (seen, modelled)) < ABOUT,
            "packets and its fixed point": marking(20) <= PMAX
            and max(abs(size / 76.6e3 - 1) for size in (seen, queue(marking(20)))) < ABOUT,
        },
        {
            "packets_p95_bytes": seen,
            "packets_mean_bytes": packets(20)["mean"],
            "fluid_p95_bytes": modelled,
            "marking_that_a_fixed_point_needs": marking(20),
        },
        # Random marks of single packets against their expectation, in a cycle of large amplitude.
        [Way("p95: packets, fluid", seen, modelled, 0.2)],
        correction=f"20 flows have no fixed point (p* > Pmax; {setting()}); the queue cycles, empty at times, with a "
        f"p95 of {modelled / 1e3:.0f} KB in the fluid and {seen / 1e3:.0f} KB in packets",
        corrected=marking(20) > PMAX and packets(20)["p5"] == 0,
        sample=f"{incasts()}; {sample.fluid(PACKETS_UNTIL, since=PACKETS_SINCE)}",
    )


@functools.cache
def dctcp() -> dict[str, float]:
    """20:1 with DCTCP, marked at 160 KB."""
    import fluidcc as fc
    from fluidcc.scenario.model import RED

    return packets(20, scheme=fc.DCTCP(), rate="40Gbps", marking=RED("160KB", "160KB", 1.0))


@claim("dcqcn-63-dctcp", DCQCN, "6.3, Fig. 19", "20:1 with DCTCP, marked at 160 KB: p95 of 162.9 KB", slow=True)
def twenty_dctcp() -> Finding:
    seen = dctcp()
    highest = 160 + 20  # DCTCP (SIGCOMM 2010): K + N packets, of 1000 B
    return Finding(
        {"within 10 %": abs(seen["p95"] / 162.9e3 - 1) < ABOUT},
        {"packets_p95_bytes": seen["p95"], "packets_max_bytes": seen["max"], "model_max_bytes": highest * 1e3},
        [Way("largest queue: packets, DCTCP's model K + N", seen["max"], highest * 1e3, 0.1)],
        sample=incasts(drawn=""),
    )


@claim(
    "dcqcn-63-shorter", DCQCN, "6.3", "20:1: the queue with DCQCN is significantly shorter than with DCTCP", slow=True
)
def shorter() -> Finding:
    ours, theirs = packets(20), dctcp()
    return Finding(
        {"mean": ours["mean"] < theirs["mean"] / 2, "95th percentile": ours["p95"] < theirs["p95"]},
        {f"dcqcn_{key}_bytes": ours[key] for key in ("mean", "p95")}
        | {f"dctcp_{key}_bytes": theirs[key] for key in ("mean", "p95")}
        | {"dcqcn_utilisation": ours["utilisation"], "dctcp_utilisation": theirs["utilisation"]},
        restricted=ours["mean"] < theirs["mean"] / 2,
        conditions=f"the mean ({setting()}); DCQCN's cycles reach higher, and use {ours['utilisation']:.0%} of the "
        "line",
        sample=f"DCQCN: {incasts()}; DCTCP: {incasts(drawn='')}",
    )


if __name__ == "__main__":
    main(__name__)
