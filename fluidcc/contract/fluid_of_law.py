"""The fluid side of a scheme that has a law and no `fluid.py`: the law at the end of each step, and no slopes."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.contract.law import in_world


@cache
def fluid_of(law: ModuleType, step: Any) -> ModuleType:
    """Return a module as if it were written; `fluidcc.contract.protocol.Windowed` says what its functions are.

    ``step`` is the law's, another one once it is loaded again.
    """
    begin, on_step, window = (in_world(rule, jnp) for rule in (law.start, step, law.window))
    on_hop = in_world(law.on_hop, jnp) if hasattr(law, "on_hop") else None
    shown: dict[str, tuple[str, str]] = getattr(law, "OBSERVABLES", {})

    def start(parameters: Any, initial_rate: Any, shape: tuple[int, int], hops: int) -> Any:
        none = jnp.zeros(shape, jnp.result_type(initial_rate))
        return law.State(*(none + each for each in begin(parameters, initial_rate)))

    def feedback(parameters: Any, signals: Any) -> Any:
        if on_hop is None:
            return signals.marking
        t = signals.telemetry
        return jnp.max(on_hop(parameters, t.queue, t.output, t.arriving, t.capacity), axis=0)

    def derivative(parameters: Any, state: Any, observed: Any) -> Any:
        return jax.tree.map(jnp.zeros_like, state)

    def observables(state: Any) -> dict[str, Any]:
        return {name: getattr(state, name) for name in shown}

    def time_scale(parameters: Any, line_rate: Any) -> Any:
        return np.asarray(parameters.base_rtt) / 10.0

    made = ModuleType(f"{law.__name__}.fluid")
    vars(made).update(
        NEEDS=frozenset({"inflight"} | ({"telemetry"} if on_hop is not None else set())),
        ONLY=getattr(law, "ONLY", {}),
        OBSERVABLES=shown,
        State=law.State,
        start=start,
        rate=law.rate,
        window=window,
        largest_window=law.largest_window,
        feedback=feedback,
        derivative=derivative,
        jump=on_step,
        observables=observables,
        time_scale=time_scale,
    )
    return made
