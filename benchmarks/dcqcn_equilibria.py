"""Random DCQCN settings: is every reported equilibrium one, and does a run near it do what its roots say?

    python -m benchmarks.dcqcn_equilibria [COUNT] [SEED]

Each equilibrium that `fluidcc.equilibrium` reports, equal or unequal, is put into the fluid's own right-hand side: the
state may move by 1e-9 of itself in the shortest delay. Then the fluid starts beside it, each group of equal flows with
one flow off by 1e-5, so that sums and differences move, and runs until a mode of the rightmost root would have grown or
died to a thousandth: the distance must end below half of the perturbation where ``stability`` says stable, above twice
it where it does not. Rightmost roots within 1 % of the axis, relative to their modulus, are left out. Where the ramp
ends below the marking it is extended, as the linearisation has it.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import fluidcc as fc
from fluidcc.engines.fluid.classes import system_of
from fluidcc.engines.fluid.engine import Continued
from fluidcc.engines.fluid.network import network_of, with_points
from fluidcc.engines.fluid.plan import plan_of
from fluidcc.scenario.model import resolve
from fluidcc.theory.control.fixed_point import Equilibrium, state_of
from fluidcc.theory.control.local import movement
from fluidcc.theory.control.states import States, extended
from fluidcc.units import Rate

STILL = 1e-9  # of itself in the shortest delay
ASIDE = 1e-5  # of a state, where runs start
FOLDS = math.log(1e3)  # of the rightmost mode's time that a run lasts
STAYS, LEAVES = 0.5, 2.0  # of the perturbation: less is left, or more has come of it
NEAR_AXIS = 0.01  # of a root's modulus
_SAMPLES = 400  # of the distance
_LAST = 0.15  # of a run, in which the largest distance counts: an oscillation passes through 0
_BATCH = 25  # runs of similar length that go together
_CLASSES = 4  # flow classes of each: one flow, and the rest, of up to two groups


class Case(NamedTuple):
    """An equilibrium of a setting, and what was found out about it."""

    scenario: fc.Scenario
    equilibrium: Equilibrium
    moved: float
    stable: bool | None
    root: complex
    unequal: bool

    @property
    def counts(self) -> bool:
        """Whether its rightmost root is far enough from the axis to be tried."""
        return self.stable is not None and abs(self.root.real) > NEAR_AXIS * abs(self.root)

    @property
    def limited(self) -> bool:
        """Whether a target rate is held at the line rate."""
        line = self.scenario.flows[0].line_rate
        return any(row["target_rate_bytes_per_s"] >= line for row in self.equilibrium.flows)


def settings(count: int, seed: int) -> list[fc.Scenario]:
    """Two to sixteen flows of one link, every parameter that an equilibrium depends on drawn, over decades."""
    rng, found = np.random.default_rng(seed), []

    def log(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(math.log(low), math.log(high))))

    for k in range(count):
        # Every third has a byte counter that is fast beside the timer, where unequal shares may last.
        byte_counter, timer = (log(2e3, 2e4), log(1e-3, 1e-2)) if k % 3 == 2 else (log(3e3, 1e7), log(30e-6, 10e-3))
        flows = rng.integers(2, 5 if k % 3 == 2 else 17)
        scheme = fc.DCQCN(
            g=log(1 / 1024, 1 / 8),
            rate_ai=Rate(log(1e6, 5e7)),
            byte_counter=byte_counter,
            timer=timer,
            cnp_interval=log(4e-6, 100e-6),
            alpha_timer=log(20e-6, 200e-6),
            fast_recovery_steps=float(rng.integers(1, 6)),
            feedback_delay=log(5e-6, 100e-6),
        )
        kmin = log(1e3, 1e5)
        marking = fc.RED(kmin, kmin + log(1e5, 1e7), log(0.005, 0.5))
        found.append(fc.incast(1, multiplicity=float(flows), marking=marking, scheme=scheme))
    return found


def cases(scenarios: list[fc.Scenario]) -> list[Case]:
    """All equilibria of some scenarios, on the right-hand side and in the complex plane."""
    found = []
    for scenario in map(resolve, scenarios):
        equal = fc.equilibrium(scenario)
        for one in (equal, *equal.others):
            classes, _, state = state_of(scenario, one)
            moved = movement(network_of(classes), state)
            local = fc.stability(scenario, at=one)
            root = local.rightmost_root
            found.append(
                Case(
                    scenario,
                    one,
                    math.inf if moved is None else moved,
                    local.stable,
                    complex(math.nan) if root is None else root,
                    one is not equal,
                )
            )
    return found


def distances(tried: list[Case]) -> np.ndarray:
    """How far runs that start beside equilibria are from them in the end, over how far they were."""
    order = sorted(range(len(tried)), key=lambda i: abs(tried[i].root.real))
    found = np.empty(len(tried))
    for limited in (False, True):
        kept, size = [i for i in order if tried[i].limited is limited], _BATCH // 2 if limited else _BATCH
        for first in range(0, len(kept), size):
            some = kept[first : first + size]
            batch = [tried[i] for i in some + [some[-1]] * (size - len(some))]
            found[some] = _run(batch, limited)[: len(some)]
    return found


def _run(cases: list[Case], limited: bool) -> np.ndarray:
    """Distances from equilibria; or, of those on a limit, from a second run that starts there.

    Heun's middle stage overshoots a limit by what is pushed against it in a step, and a run settles aside by as much.
    """
    batch = cases * 2 if limited else cases
    points = [_apart(case) for case in batch]
    with jax.enable_x64(True):
        networks = [extended(with_points(point[0], np.dtype(float))) for point in points]
        network = jax.tree.map(lambda *a: jnp.concatenate([jnp.atleast_2d(x) for x in a], axis=-1), *networks)
        network = dataclasses.replace(network, multiplicity=jnp.asarray(np.array([p[1] for p in points]).T))
        lasts = np.array([FOLDS / abs(case.root.real) for case in cases])
        plan = plan_of(network, until=float(lasts.max()))
        states = States(system_of(network, len(batch), jnp.asarray(np.inf)))
        x = np.array([[point[2][name] for name in states.names] for point in points]).T
        # One flow of each group is off, and the queue with it.
        off = np.array([ASIDE * (name.rsplit(" ", 1)[1] in "02") for name in states.names])[:, None]
        start = x * (1 + off * (np.arange(len(batch)) < len(cases)))
        # A class without flows is a copy, whose differences from its group are nobody's.
        of = np.array([-1 if name.startswith("queue") else int(name[-1]) for name in states.names])
        there = ((of[:, None] < 0) | (np.array([point[1] for point in points]).T[of] > 0))[:, : len(cases)]
        run = Continued(network, plan, len(batch))
        run.begin_at(states.state(jnp.asarray(start)))
        steps = max(1, math.ceil(lasts.max() / plan.dt / _SAMPLES))
        far = []
        for _ in range(_SAMPLES):
            run.window(steps)
            now = np.asarray(states.rows(run.state))
            ours, theirs = now[:, : len(cases)], now[:, len(cases) :] if limited else x
            far.append(np.where(there, np.abs(ours / theirs - 1), 0.0).max(axis=0) / ASIDE)
    times, curve = steps * plan.dt * np.arange(1, _SAMPLES + 1), np.array(far)
    ends = np.minimum(np.searchsorted(times, lasts), _SAMPLES - 1)
    begins = np.searchsorted(times, (1 - _LAST) * lasts)
    return np.array([curve[min(a, b) : b + 1, k].max() for k, (a, b) in enumerate(zip(begins, ends, strict=True))])


def _apart(case: Case) -> tuple[Any, list[float], dict[str, float]]:
    """Network of `_CLASSES` classes, their multiplicities, and the state: of each group one flow and the rest."""
    classes, _, state = state_of(case.scenario, case.equilibrium)
    many, rows = [], {"queue 0": state["queue 0"]}
    for k in range(_CLASSES):
        group = min(k // 2, len(classes.flows) - 1)
        total = classes.flows[group].multiplicity if k // 2 < len(classes.flows) else 0.0
        many.append(min(total, 1.0) if k % 2 == 0 else max(total - 1.0, 0.0))
        rows |= {f"{name} {k}": state[f"{name} {group}"] for name in ("rate", "target_rate", "alpha")}
    flows = tuple(dataclasses.replace(classes.flows[0], multiplicity=1.0) for _ in range(_CLASSES))
    return network_of(dataclasses.replace(classes, flows=flows)), many, rows


def main(count: int = 200, seed: int = 0) -> int:
    """Print what was found; the number of equilibria that are none, or do otherwise than their roots say."""
    found = cases(settings(count, seed))
    tried = [case for case in found if case.counts]
    ends = distances(tried)
    none = [case for case in found if not case.moved < STILL]
    wrong = [
        (case, end) for case, end in zip(tried, ends, strict=True) if not (end < STAYS if case.stable else end > LEAVES)
    ]
    several = {id(case.scenario) for case in found if case.unequal}
    print(f"{count} settings, {len(found)} equilibria; {len(several)} settings with unequal ones")
    print(f"off the ramp: {sum(not case.equilibrium.exists for case in found)}")
    print(f"largest relative change of the state per shortest delay: {max(case.moved for case in found):.2g}")
    print(
        f"runs: {len(tried)}, of which {sum(case.stable is True for case in tried)} stable; near the axis, or nothing "
        f"to linearise: {len(found) - len(tried)}"
    )
    for case in none:
        print("no equilibrium:", case.moved, case.scenario)
    for case, end in wrong:
        print(f"stable {case.stable}, root {case.root:.4g}, yet the distance ended at {end:.3g}:", case.scenario)
    return len(none) + len(wrong)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) > 0)
