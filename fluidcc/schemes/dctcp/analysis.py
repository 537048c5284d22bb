"""The fluid of DCTCP's analysis (Alizadeh et al., SIGMETRICS 2011): windows that each marked packet cuts a little.

In packets, with p what the queue marked a round trip ago,

    dW/dt = 1/RTT - W alpha/(2 RTT) p,    dalpha/dt = g/RTT (p - alpha)

and here in bytes. The analysis sends at W/RTT, so dq/dt = N W/RTT - C: a queue that follows N W - C d about a round
trip late. Here, as in packets, a window limits the bytes in flight: what W grows by is sent at once, and a busy link's
queue is N W - C d.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from fluidcc.contract.signals import Progress
from fluidcc.schemes.dctcp.parameters import DCTCP


def derivative(parameters: DCTCP, state: Any, observed: Array, still: Any) -> Any:
    """The two equations, in the state ``still`` in which nothing moves; ``observed`` is p."""
    p, s = parameters, state
    return still._replace(
        window=s.growth - s.window * s.alpha / 2.0 * s.round_trips * observed,
        alpha=p.g * s.round_trips * (observed - s.alpha),
    )


def jump(parameters: DCTCP, state: Any, progress: Progress, held: Array) -> Any:
    """The round trip of the ACKs that came; W grows only if ``held`` back, and has a packet at least (both ours)."""
    p, packet = parameters, progress.packet
    window = jnp.maximum(state.window, packet)
    round_trips = jnp.where(progress.acked > 0, 1.0 / progress.rtt, 0.0)
    return state._replace(
        rate=jnp.minimum(window / p.base_rtt, progress.line_rate),
        window=window,
        round_trips=round_trips,
        growth=jnp.where(held, p.increase * packet * round_trips, 0.0),
    )
