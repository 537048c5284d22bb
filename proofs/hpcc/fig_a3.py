"""HPCC appendix A.3: where an additive increase takes rates, with one register and several, without noise and with it.

"If a is small enough the rates will be approximately max-min fair"; with a register per link "the rate R is the
alpha-fair rate allocation"; and with fluctuations of U rates "will be biased away from max-min fairness towards
proportional fairness". The last is true of little noise: more takes a long path past it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import brentq
from scipy.special import ndtr

from fluidcc.plotting.style import Picture
from fluidcc.plotting.style import figure as new_figure
from fluidcc.proofs import papers
from fluidcc.proofs.shared.runs import WIDTH, save, variable
from fluidcc.proofs.verdict.figure import Check, Figure, Result, reproduces
from fluidcc.theory.recursion.additive import additive_increase
from fluidcc.theory.recursion.networks import from_paths, linear
from fluidcc.theory.recursion.optimal import alpha_optimum, equilibrium, max_min
from fluidcc.theory.recursion.registers import alpha_fair

TARGET = 0.95
# Path 0 over three links of different capacity, paths 1 to 3 over one each.
NETWORK = from_paths([[0, 1, 2], [0], [1], [2]], [1.0, 1.4, 2.2])
START, INCREASE, STEPS = [0.1, 0.8, 0.3, 1.5], 0.01, 1500
INCREASES = np.logspace(-5, -1, 17)
ITERATED = {0.1: 500, 0.03: 1500, 0.01: 4000, 0.003: 12_000, 0.001: 40_000}  # a: steps, some 10/a and more
ALPHAS, QUICK_ALPHAS = np.array([0.25, 0.5, 1, 2, 4, 8, 16]), np.array([0.5, 1, 4])
COMPARED = 4  # the largest alpha: beyond, the optimum is flatter in the largest rate than its solver can tell
PAIR = linear(2)  # for noise: a path over two links of 1, a path over each
NOISES = np.array([0.0, 0.002, 0.005, 0.01, 0.02, 0.05])
NOISY = (0.01, 0.001)  # a
LONG, SINCE, SEEDS, QUICK_SEEDS = 20_000, 5000, 4, 1
FINE = np.logspace(-4, -1, 61)


@reproduces("hpcc-a3", papers.HPCC, "appendix A.3: additive increase, fairness and noise")
def make_a3(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make the figure."""
    A, C = NETWORK
    fair = max_min(A, TARGET * C)
    run = additive_increase(A, C, START, increase=INCREASE, target=TARGET, steps=STEPS)
    fixed_points = np.array([equilibrium(A, C, increase=a, target=TARGET) for a in INCREASES])
    ends = np.array([additive_increase(A, C, START, increase=a, steps=n).final for a, n in ITERATED.items()])
    solved = np.array([equilibrium(A, C, increase=a, target=TARGET) for a in ITERATED])
    alphas = QUICK_ALPHAS if quick else ALPHAS
    registers = [alpha_fair(A, C, [0.3] * 4, alpha=alpha, increase=INCREASE, steps=8000) for alpha in alphas]
    optima = np.array(
        [alpha_optimum(A, C * each.utilization[-1], alpha=a) for each, a in zip(registers, alphas, strict=True)]
    )
    held = np.array([each.final for each in registers])
    count = QUICK_SEEDS if quick else SEEDS
    ratio = _noisy(count)
    theory = np.array([[mean_field(a, noise) for noise in NOISES] for a in NOISY])
    errors = np.abs(fixed_points - fair).max(axis=1)
    values: dict[str, float | bool] = {
        "iteration_against_equilibrium": float(np.abs(ends / solved - 1).max()),
        "error_at_a_0.001": float(np.abs(equilibrium(A, C, increase=1e-3) - fair).max()),
        "error_order_in_a": float(np.polyfit(np.log(INCREASES[:9]), np.log(errors[:9]), 1)[0]),
        "registers_against_optimum": float(np.abs(held / optima - 1)[alphas <= COMPARED].max()),
        "noise_against_mean_field": float(np.abs(ratio / theory - 1).max()),
    }
    for a, row in zip(NOISY, ratio, strict=True):
        values |= {f"long_over_short_a_{a:g}_noise_{s:g}": float(r) for s, r in zip(NOISES, row, strict=True)}
        passed: Any = brentq(lambda s, a=a: mean_field(a, s) - 0.5, 1e-5, 0.5)
        values[f"proportional_at_noise_a_{a:g}"] = passed
    values["noise_stays_short_of_proportional"] = bool(ratio.min() >= 0.5)
    expected = {
        "iteration_against_equilibrium": Check(0.0, 1e-9, "A.3's R = a/(1 - Ut/U), by filling links; rounding"),
        "error_order_in_a": Check(1.0, 0.05, "first order in a, where a is small"),
        "registers_against_optimum": Check(0.0, 1e-4, "(7) is exact for U C; the root of the optimiser's tolerance"),
        "noise_against_mean_field": Check(
            0.0, 0.1, "what is left out is of second order in the noise; twice the largest noise"
        ),
        "noise_stays_short_of_proportional": Check(False, 0, "more noise than some a/R takes long paths beyond"),
    }
    notes = (
        "noise: lognormal, independent by path, link and step; ratio of mean rates on two links, a path over both and "
        "one over each; proportional fairness is 0.5",
        "mean field: R (1 - (Ut/U) E) = a, with E the mean of 1/(noise) for a short path, of 1/max of two for the long "
        "one, whose loads fluctuate as the noise does",
        f"registers against the optimum: alpha up to {COMPARED}; at 16 a rate of 1.7 beside 0.5 counts (1.7/0.5)^-16",
        *((f"quick: {len(QUICK_ALPHAS)} values of alpha, {QUICK_SEEDS} seed of noise",) if quick else ()),
    )
    data = xr.Dataset(
        {
            "rate": variable(("step", "path"), run.rates, "1", f"rates, a = {INCREASE:g}"),
            "max_min": variable("path", fair, "1", "max-min fair rates within the target capacity"),
            "error": variable("a", errors, "1", "largest distance of a rate at equilibrium from max-min"),
            "iterated_error": variable("iterated_a", np.abs(ends - fair).max(axis=1), "1", "the same, iterated"),
            "register_rate": variable(("alpha", "path"), held, "1", "rates with a register per link"),
            "optimal_rate": variable(("alpha", "path"), optima, "1", "alpha-fair rates, by convex optimisation"),
            "long_over_short": variable(("noisy_a", "noise"), ratio, "1", "mean rate of the long path over a short"),
            "mean_field": variable(("noisy_a", "noise"), theory, "1", "the same in mean field"),
        },
        {
            "a": variable("a", INCREASES, "1", "additive increase"),
            "iterated_a": variable("iterated_a", np.array(list(ITERATED)), "1", "additive increase"),
            "alpha": variable("alpha", alphas, "1", "alpha of (7)"),
            "noisy_a": variable("noisy_a", np.array(NOISY), "1", "additive increase"),
            "noise": variable("noise", NOISES, "1", "standard deviation of log U"),
        },
    )
    files = (_draw(data).write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        expected,
        files,
        notes,
        sample=f"noise: {count} seed{'s' * (count > 1)} of {LONG} steps, from {SINCE} on, for each of "
        f"{len(NOISY) * len(NOISES)} settings, and no interval; the rest draws nothing",
    )


def mean_field(a: float, noise: float) -> float:
    """Rate of the path over two links of 1 over that of a path over one, in the mean over the noise.

    With log e normal of mean -s^2/2: E(1/e) = exp(s^2), and E(1/max(e, e')) = 2 exp(s^2) Phi(-d/2), d being the
    deviation of log e - log e', which is s sqrt 2 of the noise alone. The loads add to it: each is set anew by the
    noise of the round trip before, which differs between the links for the share of the short paths.
    """

    def ratio(before: float) -> float:
        apart = noise * np.sqrt(2 * (1 + 1 / (1 + before) ** 2))
        short, long = np.exp(noise**2), 2 * np.exp(noise**2) * ndtr(-apart / 2)
        x: Any = brentq(  # Ut/U, at which the rates make up the load
            lambda x: a / (1 - x * short) + a / (1 - x * long) - TARGET / x, 1e-6, (1 - 1e-12) / short
        )
        return float((1 - x * short) / (1 - x * long))

    found: Any = brentq(lambda r: ratio(r) - r, 1e-6, 1 + 1e-6)
    return found


def _noisy(seeds: int) -> np.ndarray:
    """Mean rate of the long path over that of the short ones, (a, noise)."""

    def ratio(a: float, noise: float) -> float:
        options = {"increase": a, "target": TARGET, "steps": LONG, "noise": noise}
        runs = [additive_increase(*PAIR, [0.4] * 3, seed=seed, **options) for seed in range(seeds)]
        mean = np.mean([run.rates[SINCE:].mean(axis=0) for run in runs], axis=0)
        return float(mean[0] / mean[1:].mean())

    return np.array([[ratio(a, float(noise)) for noise in NOISES] for a in NOISY])


def _draw(data: xr.Dataset) -> Picture:
    picture, axes = new_figure(2, 2, size=(WIDTH, 7.6))
    (rates, error), (alpha, noise) = axes
    names = ("path 0, all three links", "path 1, link of 1", "path 2, link of 1.4", "path 3, link of 2.2")
    for j, name in enumerate(names):
        rates.plot(data.step, data.rate[:, j], color=f"C{j}", lw=1.2, label=name)
        rates.axhline(data.max_min[j], color=f"C{j}", lw=0.8, ls=":")
        alpha.plot(data.alpha, data.optimal_rate[:, j], color=f"C{j}", lw=1, label=name)
        alpha.plot(data.alpha, data.register_rate[:, j], "o", color=f"C{j}", mfc="none")
    rates.plot([], [], color="0.3", lw=0.8, ls=":", label="max-min within $U_{target}C$")
    rates.set(
        xlabel="step", ylabel="rate [capacity of link 0]", title=f"a = {INCREASE:g}", xlim=(0, 500), ylim=(0, 2.8)
    )
    error.loglog(data.a, data.error, "k-", lw=1, label="rest, R = a/(1 - $U_t$/U)")
    error.loglog(data.iterated_a, data.iterated_error, "o", mfc="none", label="iterated")
    error.loglog(data.a, data.a * float(data.error[0] / data.a[0]), color="0.5", lw=0.8, ls="--", label="first order")
    error.set(xlabel="additive increase a [capacity of link 0]", ylabel="largest distance from max-min")
    error.set(title="max-min fair as a goes to 0")
    alpha.plot([], [], "ko", mfc="none", label="a register per link (7)")
    alpha.plot([], [], "k-", lw=1, label="convex optimum")
    alpha.set_xscale("log", base=2)
    alpha.set_xticks(data.alpha.values, labels=[f"{v:g}" for v in data.alpha.values])
    alpha.set(xlabel="α", ylabel="rate [capacity of link 0]", title="registers: α-fair", ylim=(0, 2.8))
    for k, a in enumerate(data.noisy_a.values):
        noise.plot(
            FINE * 100, [mean_field(float(a), s) for s in FINE], color=f"C{k}", lw=1, label=f"mean field, a = {a:g}"
        )
        noise.plot(data.noise[1:] * 100, data.long_over_short[k, 1:], "o", color=f"C{k}", mfc="none", label="iterated")
    noise.axhline(1.0, color="0.3", lw=0.8, ls=":", label="max-min")
    noise.axhline(0.5, color="0.3", lw=0.8, ls="--", label="proportional fairness")
    noise.set(xscale="log", xlabel="standard deviation of log U [%]", ylabel="rate, long path over short")
    noise.set(title="noise in U: towards proportional fairness, and past it", ylim=(0, 1.05))
    for axis in axes.flat:
        axis.legend(fontsize=7, **({"ncols": 2, "loc": "upper right"} if axis in (rates, alpha) else {}))
        axis.grid(alpha=0.3)
    picture.suptitle("HPCC A.3: additive increase")
    return picture
