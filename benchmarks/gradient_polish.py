"""What the fluid's gradients would add to a tuning.

    python -m benchmarks.gradient_polish [EVALUATIONS]

Five tunings on the fluid: the mean queue under a bound on utilisation. From the best of EVALUATIONS (120) points, as
`fluidcc.tune` finds it, SLSQP (scipy) goes on with gradients through the integration, also between the values that can
be set. A gradient counts as valid where each component is within a tenth of a central difference over 2 * 10^-4 of the
range, or of a hundredth of the largest component. Stated before measuring: the polish is worth having if it lowers the
objective by more than 1 % somewhere where it is valid.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

import fluidcc as fc
from fluidcc.engines.fluid.network import network_of
from fluidcc.engines.fluid.plan import plan_of
from fluidcc.scenario.model import resolve
from fluidcc.studies.tuning.evaluate import Evaluator, engine_draws
from fluidcc.studies.tuning.goal import goal_of
from fluidcc.studies.tuning.search import search
from fluidcc.studies.tuning.space import Space, space_of

_WIDTH = 1e-4  # of the differences, as a share of the range
_LINK, _FLOWS, _DELAY = fc.units.Rate(100e9 / 8), 8, "1us"


def _incast(scheme: Any, **more: Any) -> fc.Scenario:
    return fc.incast(_FLOWS, rate=_LINK, delay=_DELAY, scheme=scheme, **more)


def tunings() -> dict[str, tuple[Callable[..., fc.Scenario], dict[str, tuple[Any, Any]], str, float]]:
    """What makes a scenario, over which ranges, how long, and the least utilisation."""
    return {
        "HPCC, eta, W_AI": (
            lambda eta, w_ai: _incast(fc.HPCC(eta=eta, w_ai=w_ai)),
            {"eta": (0.9, 0.98), "w_ai": ("20B", "400B")},
            "5ms",
            0.93,
        ),
        "DCTCP, K": (
            lambda kmin: _incast(fc.DCTCP(), marking=fc.RED(kmin, kmin, 1.0)),
            {"kmin": ("10KB", "400KB")},
            "20ms",
            0.98,
        ),
        "Swift, target, beta": (
            lambda base_target, beta: _incast(fc.Swift(base_target=base_target, beta=beta)),
            {"base_target": ("6us", "60us"), "beta": (0.2, 0.8)},
            "10ms",
            0.98,
        ),
        "DCQCN, thresholds": (
            lambda kmin, kmax, pmax: _incast(fc.DCQCN(), marking=fc.RED(kmin, kmax, pmax)),
            {"kmin": ("4KB", "400KB"), "kmax": ("400KB", "4MB"), "pmax": (0.01, 1.0)},
            "100ms",
            0.99,
        ),
        "DCQCN, thresholds and g": (
            lambda kmin, kmax, pmax, g: _incast(fc.DCQCN(g=g), marking=fc.RED(kmin, kmax, pmax)),
            {"kmin": ("4KB", "400KB"), "kmax": ("400KB", "4MB"), "pmax": (0.01, 1.0), "g": ("1/1024", "1/4")},
            "100ms",
            0.99,
        ),
    }


def on_the_fluid(make: Callable[..., fc.Scenario], space: Space, until: str, dt: float) -> Callable[[Any], jax.Array]:
    """Mean queue and utilisation at a place in the cube, traceable."""

    def both(shares: Any) -> jax.Array:
        values = {
            each.name: each.low * (each.high / each.low) ** share
            if each.logarithmic
            else each.low + share * (each.high - each.low)
            for each, share in zip(space.variables, shares, strict=True)
        }
        found = fc.measure(make(**values), until=until, dt=dt)
        return jnp.stack([found["queue_bytes.mean"][0], found["utilisation"][0]])

    return both


def off_by(value: Callable[..., Any], slopes: Callable[..., Any], at: np.ndarray) -> float:
    """How far gradients are from differences, in parts of what they should be."""
    steps = _WIDTH * np.eye(len(at))
    ahead, behind = (np.stack([np.asarray(value(at + sign * step)) for step in steps]) for sign in (1, -1))
    differences = ((ahead - behind) / (2 * _WIDTH)).T
    sizes = np.abs(differences)
    least = np.maximum(sizes, 0.01 * sizes.max(axis=1, keepdims=True))
    return float((np.abs(np.asarray(slopes(at)) - differences) / np.maximum(least, 1e-300)).max())


def polished(
    value: Callable[..., Any], slopes: Callable[..., Any], at: np.ndarray, least: float
) -> tuple[float, float]:
    """Mean queue and utilisation where SLSQP ends."""
    scale = float(value(at)[0])
    found = minimize(
        lambda at: float(value(at)[0]) / scale,
        at,
        jac=lambda at: np.asarray(slopes(at)[0]) / scale,
        bounds=[(0.0, 1.0)] * len(at),
        constraints={
            "type": "ineq",
            "fun": lambda at: float(value(at)[1]) - least,
            "jac": lambda at: np.asarray(slopes(at)[1]),
        },
        method="SLSQP",
        options={"maxiter": 30, "ftol": 1e-6},
    )
    queue, used = (float(each) for each in value(found.x))
    return queue, used


def row(
    make: Callable[..., fc.Scenario], over: dict[str, tuple[Any, Any]], until: str, least: float, evaluations: int
) -> str:
    """Search, polish and compare."""
    began = time.perf_counter()
    space, goal = space_of(over), goal_of("queue_bytes.mean", None, [f"utilisation>={least}"], True, 1.0)
    evaluator = Evaluator(make, [{}], engine_draws("fluid", until, None), [], set())
    search(space, goal, evaluator, evaluations=evaluations, seed=1, known=[])
    kept = [
        (found.metrics["queue_bytes.mean"][0], values)
        for values, found in evaluator.known()
        if not found.reason and found.metrics["utilisation"][0] >= least
    ]
    if not kept:
        return "no point keeps the bound"
    point = space.named(min(kept)[1])
    searched, began = time.perf_counter() - began, time.perf_counter()
    dt = plan_of(network_of(resolve(make(**point))), until=until).dt  # as the search has it
    with jax.enable_x64(True):
        both = on_the_fluid(make, space, until, dt)
        value, slopes = jax.jit(both), jax.jit(jax.jacfwd(both))
        at = space.shares(point)
        before = float(value(at)[0])
        if before < 1.0:
            return f"{before:12,.0f} B {searched:3.0f} s: nothing to gain"
        (queue, used), off = polished(value, slopes, at, least), off_by(value, slopes, at)
    queue = queue if used >= least - 1e-6 and queue < before else before
    return (
        f"{before:12,.0f} B {searched:3.0f} s {queue:12,.0f} B {time.perf_counter() - began:3.0f} s "
        f"{1 - queue / before:7.2%}  {'valid' if off <= 0.1 else 'NOT valid'} (furthest off: {off:.1%})"
    )


def main() -> None:
    evaluations = int(next((a for a in sys.argv[1:] if a.isdigit()), 120))
    print(f"{'tuning':26} {'search':>18} {'and gradients':>18} {'gain':>8}  gradient against differences", flush=True)
    for name, (make, over, until, least) in tunings().items():
        print(f"{name:26} {row(make, over, until, least, evaluations)}", flush=True)


if __name__ == "__main__":
    main()
