"""The problem that all contenders solve: two DCQCN flows at the paper's settings over one 40 Gb/s link."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.builders import incast
from fluidcc.engines.fluid.engine import Outcome, execute
from fluidcc.engines.fluid.network import Network, network_of
from fluidcc.engines.fluid.plan import Plan, plan_of
from fluidcc.scenario.model import Scenario
from fluidcc.schemes.dcqcn import DCQCN

HORIZON = 0.02  # s
STEP = 1e-6  # s


@dataclasses.dataclass(frozen=True)
class Case:
    """Where the two flows start from."""

    initial: tuple[str, str]
    alpha: float


# 41 Gb/s on 40 Gb/s: with the paper's g the queue neither empties nor passes Kmax, and no flow reaches its line rate.
SMOOTH = Case(("24Gbps", "17Gbps"), 0.15)
# As after a start at line rate: the queue passes Kmax, where marking jumps to 1, then empties for a while; R_T is held
# at the line rate.
ROUGH = Case(("40Gbps", "20Gbps"), 1.0)

CHUNK = 1024  # points per chunk: few enough for a core's cache, enough to pay for the fixed cost of a step


def scenario(case: Case = ROUGH) -> Scenario:
    """Two flows, preset paper."""
    return incast(2, initial_rate=list(case.initial), scheme=DCQCN(initial_alpha=case.alpha))


def network(points: int = 1, part: int = 0, parts: int = 1, case: Case = ROUGH) -> Network:
    """The network of a batch that sweeps g, or one part of the sweep; a single point has the paper's g."""
    net = network_of(scenario(case))
    if points == 1:
        return net
    group = net.groups[0]
    with jax.enable_x64(True):  # columns of JAX are in SI; arrays of NumPy must not hold rates
        columns = jax.tree.map(jnp.asarray, group.parameters)
    parameters = dataclasses.replace(columns, g=gains(points, part, parts)[None])
    return dataclasses.replace(net, groups=(dataclasses.replace(group, parameters=parameters),))


def gains(points: int, part: int = 0, parts: int = 1) -> np.ndarray:
    """Values of g, those of part ``part`` out of ``parts``."""
    return np.geomspace(1 / 1024, 1 / 64, points * parts)[part * points : (part + 1) * points]


def plan(until: float = HORIZON, dt: float = STEP, **options: Any) -> Plan:
    """Discretisation of a run of this problem."""
    return plan_of(network(), until=until, dt=dt, **options)


def ours(
    points: int = 1, part: int = 0, parts: int = 1, case: Case = ROUGH, **options: Any
) -> tuple[Outcome, float, float]:
    """Run fluidcc: outcome, seconds compiling, seconds integrating."""
    return execute(network(points, part, parts, case), plan(**options), points=points)
