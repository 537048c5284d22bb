"""Linearisation of a fluid scenario about its equilibrium, exactly: derivatives of the model's own right-hand side.

    x'(t) = A0 x(t) + sum_k A_k x(t - tau_k)

x are the queues of the loaded links and the flows' states. The right-hand side is the one that is integrated, so there
is nothing to derive by hand; automatic differentiation makes its Jacobians by the present state and by each lagged
signal (`control.taps`). Delays that depend on queues are frozen at the equilibrium.

Flows interact through queues only. Equal flows are merged into one class, whose linearisation is the aggregate mode;
differences between them follow the class's own block, the fairness mode, once for each flow but one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.control.delay_system import Array, DelaySystem
from fluidcc.control.equilibrium import Equilibrium, equilibrium
from fluidcc.control.response import DelayLoop
from fluidcc.control.roots import Roots, roots
from fluidcc.control.taps import taps_of
from fluidcc.errors import InputError
from fluidcc.fluid.classes import system_of
from fluidcc.fluid.network import Network, network_of, with_points
from fluidcc.fluid.queues import QueueNetwork
from fluidcc.fluid.state import State
from fluidcc.scenario import Flow, Link, Scenario, resolve
from fluidcc.schemes.dispatch import part

_SAME_DELAY = 1e-9  # relative: rounding apart
_RESIDUAL = 1e-6  # of an equilibrium: largest rate of change, in parts of the state per fastest delay


class NoEquilibriumError(InputError):
    """There is no equilibrium to linearise about."""


class Fairness(NamedTuple):
    """How a difference between two equal flows moves: of a class with more than one."""

    system: DelaySystem
    modes: float  # of this kind: the class's flows but one


@dataclasses.dataclass(frozen=True)
class Linearization:
    """A scenario near its equilibrium.

    Parameters
    ----------
    states : tuple of str
        Names of x in ``system``: queues [bytes], then each class's states.
    system : DelaySystem
        The aggregate: equal flows as one class.
    fairness : tuple of Fairness
    equilibrium : Equilibrium
    """

    states: tuple[str, ...]
    system: DelaySystem
    fairness: tuple[Fairness, ...]
    equilibrium: Equilibrium

    def roots(self, count: int = 10) -> Roots:
        """Rightmost characteristic roots of all modes, as `control.roots.roots` gives them.

        A fairness mode's roots are listed once for each class, however many flows it has.
        """
        parts = [roots(system, count) for system in (self.system, *(each.system for each in self.fairness))]
        s: Array = np.concatenate([part.s for part in parts])
        residual: Array = np.concatenate([part.residual for part in parts])
        order = np.lexsort((-np.imag(s), -np.real(s)))
        keep = order[: count + int(len(s) > count and np.imag(s[order[count - 1]]) > 0)]
        worst = next((str(part.state) for part in parts if part.state != "ok"), "ok")
        return Roots(s[keep], residual[keep], np.asarray(len(keep)), np.asarray(worst))

    def loop(self) -> DelayLoop | None:
        """The aggregate's loop, cut where flows hear of the most loaded queue; None where no queue stands.

        The queue is the output; the input takes its place in all that is heard of it, so that -1 times the input
        closes the loop.
        """
        links, system = self.equilibrium.links, self.system
        most = max(range(len(links)), key=lambda i: links[i]["queue_bytes"])
        if f"queue {most}" not in self.states:
            return None
        at = self.states.index(f"queue {most}")
        inner = system.A.copy()
        heard = inner[:, :, at].copy()
        inner[:, :, at] = 0.0
        used = heard.any(axis=1)
        output = np.zeros(system.order)
        output[at] = 1.0
        return DelayLoop(DelaySystem(system.A0, inner, system.tau), -heard[used], system.tau[used], output)

    def plot(self, count: int = 20, *, title: str | None = None) -> Any:
        """The rightmost roots in the complex plane, those of the aggregate and of the fairness modes."""
        from fluidcc.control.plots import plot_roots

        return plot_roots(self, count, title=title)


def linearize(scenario: Scenario) -> Linearization:
    """Linearise a scenario about its equilibrium.

    Parameters
    ----------
    scenario : Scenario
        Of plain numbers; all flows count as active and long-lived. Where the marking that flows need exceeds pmax, the
        RED line is extended beyond kmax (``equilibrium.on_ramp`` is false).

    Raises
    ------
    NoEquilibriumError
        If there is no equilibrium to linearise about; an `InputError`.
    InputError
        If the scenario makes no sense, or its scheme has no equilibrium by marking.
    """
    merged = _merged(resolve(scenario))
    rest = equilibrium(merged)
    for link, row in zip(merged.links, rest.links, strict=True):
        if row["marking_probability"] > 0 and link.marking is not None and link.marking.kmax <= link.marking.kmin:
            raise NoEquilibriumError(
                f"linearize: {row['name']} marks by a cut-off, at which nothing rests; give kmax above kmin"
            )
    with jax.enable_x64(True):
        network = with_points(network_of(_extended(merged)), "float64")
        return _linearized(network, system_of(network, 1, jnp.asarray(np.inf)), rest)


def _merged(scenario: Scenario) -> Scenario:
    """Equal flows as one class, always active."""
    classes: dict[Flow, list[float]] = {}
    for flow in scenario.flows:
        plain = dataclasses.replace(
            flow, name="", source="", target="", start=0.0, size=np.inf, multiplicity=1.0, initial_rate=flow.line_rate
        )
        classes.setdefault(plain, []).append(flow.multiplicity)
    flows = tuple(dataclasses.replace(flow, multiplicity=float(sum(n))) for flow, n in classes.items())
    return dataclasses.replace(scenario, flows=flows)


def _extended(scenario: Scenario) -> Scenario:
    """The same ramps, up to a probability of 1: nothing jumps at kmax."""
    return dataclasses.replace(scenario, links=tuple(_extended_link(link) for link in scenario.links))


def _extended_link(link: Link) -> Link:
    red = link.marking
    if red is None or red.kmax <= red.kmin:
        return link
    top = red.kmin + (red.kmax - red.kmin) / red.pmax
    return dataclasses.replace(link, marking=dataclasses.replace(red, kmax=top, pmax=1.0))


def _linearized(network: Network, system: QueueNetwork, rest: Equilibrium) -> Linearization:
    y, z = system.start(jnp.float64)
    y = _at_rest(system, y, rest)
    if z.wait is not None:
        at = jnp.asarray(system._path_queues)
        z = z._replace(wait=(y.queue / network.capacity)[at], wait_growth=jnp.zeros((len(at), 1)))
    heard = taps_of(system, y, z)
    flat, whole = ravel_pytree((y.queue, y.schemes))

    def state_of(x: Any) -> State:
        queue, schemes = whole(x)
        return heard.complete(y._replace(queue=queue, schemes=schemes))

    def values_of(x: Any) -> Any:
        return heard.signals(state_of(x))[jnp.asarray([tap.row for tap in heard.taps])]

    def slope(x: Any, values: Any) -> Any:
        moved = heard.slope(state_of(x), values)
        return ravel_pytree((moved.queue, moved.schemes))[0]

    values = values_of(flat)
    present, past = jax.jacfwd(slope, argnums=(0, 1))(flat, values)
    of_state = np.asarray(jax.jacfwd(values_of)(flat))[:, 0]
    names, moving = _names(system, rest)
    inside = np.flatnonzero(moving)
    if not len(inside):
        raise NoEquilibriumError("linearize: no link is filled, so the flows stay at their line rate; give more flows")
    shortest = min(tap.delay for tap in heard.taps)
    _check(np.asarray(slope(flat, values))[inside], np.asarray(flat)[inside], shortest)
    parts = [
        (tap, np.outer(by_tap, of_state[k]))
        for k, (tap, by_tap) in enumerate(zip(heard.taps, np.asarray(past)[:, :, 0].T, strict=True))
    ]
    together = _joined(np.asarray(present), [(tap.delay, part) for tap, part in parts])
    # What flows hear by its sum is the same for equal ones, and leaves their difference alone.
    alone = _joined(np.asarray(present), [(tap.delay, part) for tap, part in parts if not tap.summed])
    fairness = []
    for i, flow in enumerate(np.broadcast_to(network.multiplicity[:, 0], len(network.flows))):
        own = [k for k in inside if names[k].endswith(f" {i}") and not names[k].startswith("queue")]
        if flow > 1 and own:
            fairness.append(Fairness(_part(alone, own), float(flow) - 1.0))
    return Linearization(tuple(names[k] for k in inside), _part(together, inside.tolist()), tuple(fairness), rest)


def _joined(present: Array, parts: list[tuple[float, Array]]) -> DelaySystem:
    """A system from its present part and lagged ones, of which equal delays are one."""
    matrices: dict[float, Array] = {}
    for delay, matrix in parts:
        same = next((d for d in matrices if abs(d - delay) <= _SAME_DELAY * d), delay)
        matrices[same] = matrices.get(same, 0.0) + matrix
    delays = sorted(matrices)
    return DelaySystem(present, np.array([matrices[d] for d in delays]), np.array(delays))


def _part(system: DelaySystem, rows: Sequence[Any]) -> DelaySystem:
    """Some states of a system, the others at rest."""
    inside = np.ix_(rows, rows)
    A = np.array([matrix[inside] for matrix in system.A]).reshape(-1, len(rows), len(rows))
    used = [k for k in range(len(A)) if A[k].any()]
    return DelaySystem(system.A0[inside], A[used], system.tau[used])


def _at_rest(system: QueueNetwork, y: State, rest: Equilibrium) -> State:
    """The state that the equilibrium describes.

    Raises
    ------
    NoEquilibriumError
        If a scheme changes its state in jumps.
    """
    queue = jnp.asarray([[row["queue_bytes"]] for row in rest.links[: system.network.queues]])
    schemes = []
    for group in system.network.groups:
        room, parameters = part(group.parameters, "equilibrium"), group.parameters
        if not room.smooth(parameters):
            raise NoEquilibriumError(
                f"linearize: {parameters.name}'s windows change in jumps, so there is nothing to linearise; "
                "for appendix A.3's rates write form='rate'"
            )
        schemes.append(room.state([rest.flows[i] for i in group.flows]))
    return y._replace(queue=queue, schemes=tuple(schemes))


def _names(system: QueueNetwork, rest: Equilibrium) -> tuple[list[str], list[bool]]:
    """Names of all states, and which of them move: a link without a queue stays so, and a flow at its limit too."""
    links, groups = rest.links[: system.network.queues], system.network.groups
    names, moving = [f"queue {i}" for i in range(len(links))], [row["queue_bytes"] > 0 for row in links]
    for group in groups:
        room = part(group.parameters, "equilibrium")
        for field in room.STATE._fields:
            names += [f"{field} {i}" for i in group.flows]
            moving += [field in room.MOVES and not room.held(rest.flows[i]) for i in group.flows]
    return names, moving


def _check(slope: np.ndarray, state: np.ndarray, delay: float) -> None:
    moved = np.abs(slope) * delay / np.maximum(np.abs(state), 1e-12)
    if not np.all(moved < _RESIDUAL):
        raise NoEquilibriumError(
            f"linearize: the state found moves by {moved.max():.1e} of itself in a delay: it is no rest"
        )
