"""DCQCN, sections 5.2 and 6.1: what (5)-(9) and the packets do over time.

All of the fluid's cases run side by side, on bottlenecks that share nothing; the packets run one after another.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np

from fluidcc.proofs.dcqcn.equations import setting
from fluidcc.proofs.papers import DCQCN
from fluidcc.proofs.shared import sample
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main
from fluidcc.units import Rate

GBPS = Rate(1e9 / 8)
LINE = 40 * GBPS
GAINS = (1 / 16, 1 / 64, 1 / 256, 1 / 1024)
UNTIL, SETTLED = 200e-3, 10e-3  # s; by the second the first burst has drained
STEP, SAMPLED = 1e-6, 10e-6  # s
EMPTY = 1.0  # bytes
SENDERS = (1, 2, 4, 8, 9, 14, 19)
PACKETS_SINCE, PACKETS_UNTIL = 50e-3, 250e-3  # s


def _cells() -> dict[str, Any]:
    """Scheme, marking and classes of flows (number, rate at start), by name."""
    from fluidcc.schemes.dcqcn import PRESETS

    scheme, marking = PRESETS["paper"][:2]
    at_line = {f"g_1/{1 / g:.0f}": (dataclasses.replace(scheme, g=g), ((2.0, LINE),)) for g in GAINS}
    pair = ((1.0, LINE), (1.0, 0.0))
    fixed_point = {
        "N_14": (scheme, ((14.0, LINE),)),
        "N_15": (scheme, ((15.0, LINE),)),
        "N_16": (scheme, ((16.0, LINE),)),
        "N_32_half_R_AI": (dataclasses.replace(scheme, rate_ai="20Mbps"), ((32.0, LINE),)),
        "tau'_55": (scheme, pair),
        "tau'_110": (dataclasses.replace(scheme, alpha_timer=110e-6), pair),
    }
    return {name: (scheme, marking, classes) for name, (scheme, classes) in (at_line | fixed_point).items()}


@functools.cache
def fluid(step: float = STEP) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Times, queue of each cell, and rates of each cell's classes."""
    from fluidcc.engines.run import simulate
    from fluidcc.proofs.shared.runs import side_by_side

    cells = _cells()
    trace = simulate(side_by_side(list(cells.values())), UNTIL, dt=step, sample_interval=SAMPLED, estimate_error=False)
    queues = {name: trace["queue"].values[:, k] for k, name in enumerate(cells)}
    rates, flow = {}, 0
    for name, (_, _, classes) in cells.items():
        rates[name] = trace["rate"].values[:, flow : flow + len(classes)]
        flow += len(classes)
    return trace["time"].values, queues, rates


def _amplitude(name: str, step: float = STEP) -> float:
    """Return how far in total the queue rises and falls again after the first burst [bytes]."""
    time, queues, _ = fluid(step)
    later = queues[name][time >= SETTLED]
    return float((np.abs(np.diff(later)).sum() - abs(later[-1] - later[0])) / 2)


def _empty(name: str, step: float = STEP) -> float:
    """Share of the second half for which the queue is empty."""
    time, queues, _ = fluid(step)
    return float((queues[name][time >= UNTIL / 2] < EMPTY).mean())


def _gap(name: str, step: float = STEP) -> float:
    """Mean difference of the two flows' rates after 10 ms, as in Fig. 11 [bytes/s]."""
    time, _, rates = fluid(step)
    return float(np.abs(rates[name][time >= SETTLED] @ [1, -1]).mean())


@claim("dcqcn-52-g-variation", DCQCN, "5.2, Fig. 12", "a smaller g leads to lower variation of the queue", slow=True)
def variation() -> Finding:
    oscillations = [_amplitude(f"g_1/{1 / g:.0f}") for g in GAINS]
    half = [_amplitude(f"g_1/{1 / g:.0f}", STEP / 2) for g in GAINS]
    falls = [after < before for before, after in itertools.pairwise(oscillations)]
    last = [*falls, False].index(False)  # down to which gain it does
    return Finding(
        {"down to g = 1/1024": all(falls)},
        {f"amplitude_bytes_g_1/{1 / g:.0f}": amplitude for g, amplitude in zip(GAINS, oscillations, strict=True)},
        # Heun's method with jumps of the marking: first order in the step.
        [Way("oscillations at g = 1/256: step of 1 us, of 0.5 us", oscillations[2], half[2], 0.05)],
        restricted=last > 0,
        conditions=f"down to g = 1/{1 / GAINS[last]:.0f}, with two flows from line rate ({setting()})",
        sample=sample.fluid(UNTIL, len(GAINS), since=SETTLED),
    )


@functools.cache
def packets_of_two(g: float) -> dict[str, float]:
    """Queue of 2:1 incast in packets, after the start has drained [bytes]."""
    from fluidcc import incast
    from fluidcc.engines.run import simulate
    from fluidcc.proofs.shared.runs import SWITCH
    from fluidcc.schemes.dcqcn import DCQCN as SCHEME

    run = simulate(
        incast(2, scheme=SCHEME(g=g), **SWITCH),
        PACKETS_UNTIL,
        window=(PACKETS_SINCE, PACKETS_UNTIL),
        engine="packet",
        seed=1,
    )
    return run.summary["queue_bytes"]


@claim("dcqcn-52-g-queue", DCQCN, "5.2, Fig. 12", "a smaller g leads to a lower queue length", slow=True)
def gain_and_queue() -> Finding:
    """Compare the gains in 2:1 incast, as in the paper: from line rate, fluid and packets; and at the fixed point."""
    time, queues, _ = fluid()
    names = {g: f"g_1/{1 / g:.0f}" for g in GAINS}

    def p95(step: float = STEP) -> list[float]:
        """95th percentile of the queue after the first burst [bytes]."""
        _, queues, _ = fluid(step)
        return [float(np.percentile(queues[name][time >= SETTLED], 95)) for name in names.values()]

    ends, half = p95(), p95(STEP / 2)
    means = [float(queues[name][time >= SETTLED].mean()) for name in names.values()]
    seen = {key: [packets_of_two(g)[key] for g in GAINS] for key in ("mean", "p95")}
    fixed_points = [_fixed_point(g) for g in GAINS]
    falls = ends == sorted(ends, reverse=True) and seen["p95"] == sorted(seen["p95"], reverse=True)

    def listed(values: list[float]) -> str:
        return ", ".join(f"{value / 1e3:.1f}" for value in values)

    return Finding(
        {
            "95th percentile in runs of 2:1": falls,
            "mean in runs of 2:1, Fig. 12's 1/16 and 1/256": means[2] < means[0] and seen["mean"][2] < seen["mean"][0],
            "at the fixed point": fixed_points == sorted(fixed_points, reverse=True)
            and fixed_points[0] > fixed_points[-1],
        },
        {f"fixed_point_bytes_{name}": value for name, value in zip(names.values(), fixed_points, strict=True)}
        | {f"fluid_mean_bytes_{name}": value for name, value in zip(names.values(), means, strict=True)}
        | {f"fluid_p95_bytes_{name}": value for name, value in zip(names.values(), ends, strict=True)}
        | {
            f"packets_{key}_bytes_{name}": value
            for key, each in seen.items()
            for name, value in zip(names.values(), each, strict=True)
        },
        [
            Way("p95 at g = 1/256: step of 1 us, of 0.5 us", ends[2], half[2], 0.01),
            Way("fixed point at g = 1/16 and 1/1024", fixed_points[0], fixed_points[-1]),
        ],
        restricted=falls and means[2] < means[0],
        conditions=f"runs of 2:1 from line rate ({setting()}): 95th percentiles of {listed(ends)} KB "
        f"in the fluid over {1e3 * SETTLED:g} to {1e3 * UNTIL:g} ms, {listed(seen['p95'])} KB in packets, at g = 1/16, "
        f"1/64, 1/256, 1/1024; not the fixed point, which is {fixed_points[0] / 1e3:.2f} KB at each",
        sample=f"{sample.fluid(UNTIL, len(GAINS), since=SETTLED)}; "
        + sample.packets(PACKETS_UNTIL, len(GAINS), since=PACKETS_SINCE, seeds=1, drawn=sample.MARKS),
    )


def _fixed_point(g: float) -> float:
    """Queue of 2 flows at the fixed point [bytes]."""
    from fluidcc import DCQCN as SCHEME
    from fluidcc import equilibrium, incast

    return equilibrium(incast(2, scheme=SCHEME(g=g))).as_dict()["queue_bytes"]


@claim(
    "dcqcn-52-starvation", DCQCN, "5.2, Fig. 12", "no buffer starvation with 16:1, nor 32:1 with R_AI halved", slow=True
)
def starvation() -> Finding:
    shares = {name: _empty(name) for name in ("N_14", "N_15", "N_16", "N_32_half_R_AI")}
    from fluidcc import equilibrium, incast

    fixed_points = {n: equilibrium(incast(n)).exists for n in (14, 15, 16)}
    most = max((n for n, there in fixed_points.items() if there), default=0)
    return Finding(
        {"as printed": shares["N_16"] == shares["N_32_half_R_AI"] == 0},
        {f"empty_share_of_time_{name}": share for name, share in shares.items()},
        [
            Way("share at N = 16: step of 1 us, of 0.5 us", shares["N_16"], _empty("N_16", STEP / 2), 0.05),
            *(
                Way(f"starves where there is no fixed point, N = {n}", shares[f"N_{n}"] > 0, not fixed_points[n])
                for n in (14, 15, 16)
            ),
        ],
        correction=f"up to {most} flows, which have a fixed point ({setting()}), the queue of a start "
        "at line rate does not run empty",
        corrected=shares.get(f"N_{most}") == 0,
        sample=sample.fluid(UNTIL, len(shares), since=UNTIL / 2),
    )


@claim(
    "dcqcn-52-alpha-timer", DCQCN, "5.2", "tau' = 110 us, twice the default, barely slows down convergence", slow=True
)
def alpha_timer() -> Finding:
    gaps = {name: _gap(name) / GBPS for name in ("tau'_55", "tau'_110")}
    change = gaps["tau'_110"] / gaps["tau'_55"] - 1
    return Finding(
        {"as printed": change < 0.1},  # "barely": less than 10 %
        {f"mean_gap_gbps_{name}_us": gap for name, gap in gaps.items()} | {"relative_change": change},
        [Way("gap at 110 us: step of 1 us, of 0.5 us", gaps["tau'_110"], _gap("tau'_110", STEP / 2) / GBPS, 0.01)],
        sample=sample.fluid(UNTIL, len(gaps), since=SETTLED),
    )


@functools.cache
def packets() -> dict[int, dict[str, float]]:
    """Total goodput and queue of K:1 incast in packets, after the start has drained."""
    from fluidcc import incast
    from fluidcc.engines.run import simulate
    from fluidcc.proofs.shared.runs import SWITCH

    found = {}
    for seed, count in enumerate(SENDERS, 1):
        summary = simulate(
            incast(count, **SWITCH), PACKETS_UNTIL, window=(PACKETS_SINCE, PACKETS_UNTIL), engine="packet", seed=seed
        ).summary
        queue = summary["queue_bytes"]
        found[count] = {
            "total_gbps": sum(summary["goodput_bytes_per_s"]) / GBPS,
            "queue_max_bytes": queue["max"],
            "queue_p95_bytes": queue["p95"],
            "queue_max_whole_run_bytes": queue["max_whole_run"],
        }
    return found


def incasts() -> str:
    """Describe what `packets` draws."""
    return (
        f"{len(SENDERS)} incasts of {min(SENDERS)} to {max(SENDERS)} senders in packets, seeds 1 to {len(SENDERS)}, "
        f"which draw {sample.MARKS}: one each, so no interval; over {1e3 * PACKETS_SINCE:g} to "
        f"{1e3 * PACKETS_UNTIL:g} ms"
    )


@claim("dcqcn-61-total", DCQCN, "6.1", "total throughput of K:1 incast is always above 39 Gb/s, K = 1 to 19", slow=True)
def total() -> Finding:
    totals = {count: at["total_gbps"] for count, at in packets().items()}
    time, _, rates = fluid()
    modelled = 2 * rates["g_1/256"][time >= PACKETS_SINCE].mean() / GBPS
    first = min((count for count, value in totals.items() if value <= 39), default=0)
    return Finding(
        {"packet engine": min(totals.values()) > 39},
        {f"total_gbps_{count}": value for count, value in totals.items()},
        [Way("total of 2 senders: packets, fluid", totals[2], float(modelled), 0.05)],
        restricted=all(value > 39 for count, value in totals.items() if count < first),
        conditions=f"K < {first}, of {', '.join(map(str, SENDERS))} ({setting()}): there the queue cycles and "
        "runs empty",
        sample=f"{incasts()}; {sample.fluid(UNTIL, since=PACKETS_SINCE)}",
    )


@claim("dcqcn-61-queue", DCQCN, "6.1", "the queue never exceeds 100 KB in K:1 incast, K = 1 to 19", slow=True)
def queue() -> Finding:
    from fluidcc import equilibrium, incast

    most = {count: at["queue_max_bytes"] for count, at in packets().items()}
    fixed_point = {n: equilibrium(incast(n)).as_dict()["queue_bytes"] for n in (8, 9)}
    return Finding(
        {
            "packet engine, after the first 50 ms": max(most.values()) <= 100e3,
            "at the model's fixed point": max(fixed_point.values()) <= 100e3,
        },
        {f"max_bytes_{count}": value for count, value in most.items()}
        | {f"p95_bytes_{count}": at["queue_p95_bytes"] for count, at in packets().items()}
        | {f"fixed_point_bytes_{n}": value for n, value in fixed_point.items()},
        [Way("exceeded with 9 senders: packets, fixed point", most[9] > 100e3, fixed_point[9] > 100e3)],
        sample=incasts(),
    )


if __name__ == "__main__":
    main(__name__)
