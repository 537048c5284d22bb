"""HPCC appendix A.2: how many steps to a Pareto optimum, by the recursion (5)-(6) and by its repair.

The lemma's (iii): "after at most I steps R(n) is constant and is then Pareto optimal". Two links and three paths refute
it; what holds instead is a geometric bound, and I steps for a recursion on the capacity that is left.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from fluidcc.plotting.style import Picture
from fluidcc.plotting.style import figure as new_figure
from fluidcc.proofs import papers
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import WIDTH, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.theory.recursion import networks
from fluidcc.theory.recursion.pareto import pareto, pareto_batch, residual

# Flow A uses links 1 and 2, B link 1, C link 2.
CROSSED, CAPACITIES, START = [[1, 1, 0], [1, 0, 1]], [1, 2], [1, 1, 1]
SHOWN = 16  # steps of it
SIZES = ((2, 3), (3, 4), (6, 8))  # links, paths
COUNT, QUICK = 10_000, 1000  # random networks of each size
REPAIRED = 500  # of them that the repair and the linear programme see, one by one
STEPS, LONG = 60, 400
FULL = 1e-9  # a path whose most loaded link has less room than this stands still
ROUNDING = 1e-12


class Course(NamedTuple):
    """Results of many random networks of one size, step by step from n = 1 on."""

    gap: np.ndarray  # (steps, networks): room 1 - m_j of the most loaded link of a path, largest over the paths
    bound: np.ndarray  # (steps, networks): the bound on it
    excess: float  # largest room less its own bound, over all steps and paths
    overload: float  # largest utilisation, less 1
    falls: float  # largest relative fall of a rate
    repaired: np.ndarray  # (networks,): steps that the repair took
    optimal: float  # share of limits that the linear programme finds Pareto optimal


@reproduces("hpcc-a2", papers.HPCC, "appendix A.2: steps to a Pareto optimum, as printed and repaired")
def make_a2(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    count = QUICK if quick else COUNT
    run = pareto(CROSSED, CAPACITIES, START, steps=SHOWN, exact=True)
    repair = residual(CROSSED, CAPACITIES, START, exact=True)
    courses = {size: _course(*size, count, REPAIRED // (5 if quick else 1)) for size in SIZES}
    third = run.rates[:, 2]
    values: dict[str, float | bool] = {
        "counterexample_limit": float(run.limit[2]),
        "counterexample_gap_ratio": float((run.limit[2] - third[-1]) / (run.limit[2] - third[-2])),
        "counterexample_still_moves": bool(third[-1] != third[-2]),
        "counterexample_repaired_steps": float(repair.settled_after),
        "counterexample_same_limit": bool((repair.final == run.limit).all()),
        "overload_after_one_step": max(course.overload for course in courses.values()),
        "largest_fall_of_a_rate": max(course.falls for course in courses.values()),
        "largest_excess_over_bound": max(course.excess for course in courses.values()),
        "repaired_within_min_I_J": all(c.repaired.max() <= min(size) for size, c in courses.items()),
        "pareto_optimal_limits_share": min(course.optimal for course in courses.values()),
    }
    for (links, paths), course in courses.items():
        name = f"{links}x{paths}"
        values[f"moving_after_I_steps_{name}_share"] = float((course.gap[links - 1] > FULL).mean())
        values[f"moving_after_12_steps_{name}_share"] = float((course.gap[11] > FULL).mean())
        values[f"repaired_steps_{name}_mean"] = float(course.repaired.mean())
    expected = {
        "counterexample_limit": Check(1.5, 0.0, "exact: links of 1 and 2, 1/2 of the second taken by the first's path"),
        "counterexample_gap_ratio": Check(0.25, 1e-6, "F/C, the settled load on the link over its capacity"),
        "counterexample_still_moves": Check(True, 0, "exact rationals: never constant, against the lemma's (iii)"),
        "counterexample_repaired_steps": Check(2.0, 0.0, "the capacity that is left: I = 2 steps"),
        "counterexample_same_limit": Check(True, 0, "exact"),
        "overload_after_one_step": Check(0.0, ROUNDING, "the lemma's (i); rounding of a sum of some rates"),
        "largest_fall_of_a_rate": Check(0.0, ROUNDING, "the lemma's (ii); rounding"),
        "largest_excess_over_bound": Check(0.0, ROUNDING, "1-m(n) <= (1-m(1)) (1-rho)^(n-1); rounding"),
        "repaired_within_min_I_J": Check(True, 0, "each step fills a link and freezes its paths"),
        "pareto_optimal_limits_share": Check(
            1.0, 0.01, f"a linear programme; after {LONG} steps few bottlenecks still change"
        ),
    }
    notes = (
        f"random networks: capacities and starts 1 to 10, each link on a path with probability 0.4; a path stands "
        f"still when its most loaded link has less than {FULL:g} of room",
        f"the repair and the linear programme: {REPAIRED // (5 if quick else 1)} networks of each size",
        *((f"quick: {QUICK} networks of each size, not {COUNT}",) if quick else ()),
    )
    data = _dataset(run.rates.astype(float), repair.rates.astype(float), courses)
    files = (_draw(data, courses).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        expected,
        files,
        notes,
        sample=f"{count} random networks of each of {len(SIZES)} sizes, seeds 1 and 2; moving after I steps: "
        + ", ".join(
            f"{links} x {paths} {sample.share(int((course.gap[links - 1] > FULL).sum()), count)}"
            for (links, paths), course in courses.items()
        ),
    )


def _course(links: int, paths: int, count: int, some: int) -> Course:
    A, C = networks.random(links, paths, seed=1, count=count)
    R = np.random.default_rng(2).integers(1, 11, size=(count, paths)).astype(float)
    start = R[:some]
    R = pareto_batch(A, C, R, steps=1).rates
    rho = R / np.max(A * C[..., None], axis=1)
    room, gaps, bounds = _room(A, C, R), [], []
    first, overload, falls, excess = room, float(-room.min()), 0.0, -np.inf
    for n in range(STEPS):
        bound = first * (1 - rho) ** n
        gaps.append(room.max(axis=1))
        bounds.append(bound.max(axis=1))
        excess = max(excess, float((room - bound).max()))
        following = pareto_batch(A, C, R, steps=1).rates
        falls = max(falls, float((1 - following / R).max()))
        R, room = following, _room(A, C, following)
        overload = max(overload, float(-room.min()))
    sample = list(zip(A[:some], C[:some], start, strict=True))
    repaired = np.array([residual(*network).settled_after for network in sample])
    optimal = np.mean([pareto(*network, steps=LONG).pareto_optimal for network in sample])
    return Course(np.array(gaps), np.array(bounds), excess, overload, falls, repaired, float(optimal))


def _room(A: np.ndarray, C: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Room of each path's most loaded link, 1 - m_j, (networks, paths)."""
    U = (A @ R[..., None])[..., 0] / C
    return 1 - np.max(A * U[..., None], axis=1)


def _settled(course: Course) -> np.ndarray:
    """Share of the networks that stand still after n steps, from n = 0 on."""
    return np.concatenate([[0.0], (course.gap <= FULL).mean(axis=1)])


def _dataset(rates: np.ndarray, repaired: np.ndarray, courses: dict[tuple[int, int], Course]) -> xr.Dataset:
    after = np.arange(STEPS + 1)
    names = [f"{links}x{paths}" for links, paths in SIZES]
    held = np.concatenate([repaired, np.repeat(repaired[-1:], len(rates) - len(repaired), axis=0)])
    by_repair = np.array([[(c.repaired <= n).mean() for n in after] for c in courses.values()])
    share = "share of networks that stand still"
    return xr.Dataset(
        {
            "rate": variable(("step", "path"), rates, "1", "counterexample, (5)-(6)"),
            "rate_repaired": variable(("step", "path"), held, "1", "counterexample, repaired"),
            "settled": variable(("size", "after"), np.array([_settled(c) for c in courses.values()]), "1", share),
            "settled_repaired": variable(("size", "after"), by_repair, "1", f"{share}, repaired"),
        },
        {
            "step": variable("step", np.arange(len(rates)), "1", "step"),
            "after": variable("after", after, "1", "steps"),
            "size": variable("size", np.array(names), "1", "links x paths"),
        },
    )


def _draw(data: xr.Dataset, courses: dict[tuple[int, int], Course]) -> Picture:
    picture, axes = new_figure(1, 3, size=(1.2 * WIDTH, 4.4))
    example, bound, steps = axes[0]
    example.semilogy(data.step, 1.5 - data.rate[:, 2], "o-", ms=4, lw=1, label="(5)-(6): 1, 1, 4/3, 16/11, ...")
    # The repair is there after two steps: a logarithm shows its way only.
    example.semilogy([0, 1], (1.5 - data.rate_repaired[:2, 2]), "s--", color="C2", ms=5, lw=1, label="repaired")
    example.annotate("repaired: 3/2 from here on", (2, 1e-8), rotation=90, color="C2", fontsize=8, ha="right")
    example.axvline(2, color="0.3", ls=":", lw=1, label="the lemma's I = 2 steps")
    example.set(xlabel="step n", ylabel="3/2 - $R_C(n)$", title="two links, three paths", ylim=(1e-9, 2))
    example.set_xticks(range(0, SHOWN + 1, 2))
    course, after = courses[SIZES[-1]], np.arange(1, STEPS + 1)
    for share, style in ((50, "-"), (95, "--"), (99, ":")):
        for k, (rows, text) in enumerate(((course.gap, "room left"), (course.bound, "bound"))):
            rows = np.maximum(np.percentile(rows, share, axis=1), 1e-16)
            bound.semilogy(after, rows, style, color=f"C{k}", lw=1.2, label=f"{text}, {share} % of networks below")
    bound.set(xlabel="step n", ylabel="$1 - m_j(n)$ of the slowest path", ylim=(1e-12, 1.5))
    bound.set(title=f"{SIZES[-1][0]} links, {SIZES[-1][1]} paths: geometric bound")
    for k, (links, paths) in enumerate(SIZES):
        text = f"{links} links, {paths} paths"
        steps.step(data.after, data.settled[k], where="post", color=f"C{k}", lw=1.2, label=f"{text}: (5)-(6)")
        style = {"color": f"C{k}", "lw": 1.2, "ls": "--"}
        steps.step(data.after, data.settled_repaired[k], where="post", label="repaired", **style)
        steps.plot(links, data.settled[k, links], "o", color=f"C{k}", ms=6)
    steps.plot([], [], "o", color="0.5", ms=6, label="after I steps")
    steps.set(xlabel="steps", ylabel="share of random networks that stand still", xlim=(0, 40), ylim=(0, 1.03))
    steps.set(title="how many steps it takes")
    for axis in axes[0]:
        axis.legend(fontsize=7)
        axis.grid(alpha=0.3)
    picture.suptitle("HPCC A.2: from any rates to a Pareto optimum")
    return picture
