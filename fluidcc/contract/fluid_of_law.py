"""The fluid side of a scheme that has a law and no `fluid.py`, and the equilibrium side of a law of rates.

A law with a window counts ACKs: it acts at the end of each step, and there are no slopes. A law without one is of
rates: its slope is its change in a time, over that time, as the time goes to 0.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.contract.law import in_world, refuse_unbound
from fluidcc.contract.signals import Progress


class Observed(NamedTuple):
    """Lagged signals of a law of rates."""

    signal: Any  # marks, or the largest of what ``on_hop`` makes of the links
    rate: Any  # of the ACKs' packets [bytes/s]
    packet: Any  # [bytes]
    line_rate: Any  # [bytes/s]


def shaped(new: Any, old: Any) -> Any:
    """Return a state that a law made, each number in the shape that it had: a law may return a constant."""
    return jax.tree.map(lambda value, like: jnp.broadcast_to(value, jnp.shape(like)), new, old)


@cache
def fluid_of(law: ModuleType, step: Any) -> ModuleType:
    """Return a module as if it were written; `protocol.Windowed` and `protocol.Projecting` say what it holds.

    ``step`` is the law's, another one once it is loaded again.
    """
    begin, on_step = in_world(law.start, jnp), in_world(step, jnp)
    on_hop = in_world(law.on_hop, jnp) if hasattr(law, "on_hop") else None
    shown: dict[str, tuple[str, str]] = getattr(law, "OBSERVABLES", {})
    of_rates = not hasattr(law, "window")

    def start(parameters: Any, initial_rate: Any, shape: tuple[int, int], hops: int) -> Any:
        none = jnp.zeros(shape, jnp.result_type(initial_rate))
        return law.State(*(none + each for each in begin(parameters, initial_rate)))

    def signal(parameters: Any, signals: Any) -> Any:
        if on_hop is None:
            return signals.marking
        t = signals.telemetry
        return jnp.max(on_hop(parameters, t.queue, t.output, t.arriving, t.capacity), axis=0)

    def feedback(parameters: Any, signals: Any) -> Any:
        observed = signal(parameters, signals)
        return Observed(observed, signals.rate, signals.packet, signals.line_rate) if of_rates else observed

    def after(parameters: Any, state: Any, seconds: Any, observed: Any) -> Any:
        newly, packet, line = observed.rate * seconds, observed.packet, observed.line_rate
        own: Any = 0.0
        progress = Progress(newly, newly, newly, packet, packet, line, own, parameters.base_rtt, seconds)
        return shaped(on_step(parameters, state, progress, observed.signal), state)

    def derivative(parameters: Any, state: Any, observed: Any) -> Any:
        if not of_rates:
            return jax.tree.map(jnp.zeros_like, state)
        none = jnp.zeros((), jnp.result_type(*state))
        # At a limit, where two branches tie, JAX takes the mean of their slopes: for one step a rate leaves slower.
        return jax.jvp(lambda t: after(parameters, state, t, observed), (none,), (none + 1.0,))[1]

    def project(parameters: Any, state: Any, line_rate: Any) -> Any:
        if not of_rates:
            return state
        none = jnp.zeros((), jnp.result_type(*state))
        return after(parameters, state, none, Observed(none, none, none + 1.0, line_rate))

    def jump(parameters: Any, state: Any, progress: Any, observed: Any) -> Any:
        return shaped(on_step(parameters, state, progress, observed), state)

    def observables(state: Any) -> dict[str, Any]:
        return {name: getattr(state, name) for name in shown}

    def time_scale(parameters: Any, line_rate: Any) -> Any:
        refuse_unbound(parameters)
        return np.asarray(parameters.base_rtt) / (1.0 if of_rates else 10.0)

    made = ModuleType(f"{law.__name__}.fluid")
    vars(made).update(
        NEEDS=frozenset((set() if of_rates else {"inflight"}) | ({"telemetry"} if on_hop is not None else set())),
        ONLY=getattr(law, "ONLY", {}),
        OBSERVABLES=shown,
        State=law.State,
        start=start,
        rate=in_world(law.rate, jnp),
        feedback=feedback,
        derivative=derivative,
        project=project,
        observables=observables,
        time_scale=time_scale,
    )
    if not of_rates:
        vars(made).update(jump=jump, window=in_world(law.window, jnp), largest_window=law.largest_window)
    return made


@cache
def equilibrium_of(law: ModuleType) -> ModuleType:
    """Return the equilibrium side of a law of rates: all its state moves, without jumps."""
    made = ModuleType(f"{law.__name__}.equilibrium")
    vars(made).update(MOVES=law.State._fields, smooth=lambda parameters: True)
    return made
