"""A scenario's fluid as a law of `fluidcc.dde.orbit`: one link, one constant lag, equal flows as one class.

The right-hand side, what flows observe, and the limits are those of the fluid engine (`control.states`).
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.compiling.functions import per_shape
from fluidcc.compiling.settings import our_settings
from fluidcc.dde.equation import Array
from fluidcc.dde.orbit import Limited, Rates
from fluidcc.engines.fluid.classes import system_of
from fluidcc.engines.fluid.network import Network
from fluidcc.errors import InputError
from fluidcc.theory.control.newton import jacobian
from fluidcc.theory.control.states import States


@dataclasses.dataclass(frozen=True, eq=False)
class FluidLaw:
    """A `Law` of a network.

    Parameters
    ----------
    network : Network
        Of plain numbers, each column (rows, 1); one queue.
    tangent : Network
        Its derivative by the parameter.
    observed : ndarray
        As `observed_of` gives it.
    """

    network: Network
    tangent: Network
    observed: Array

    @property
    def lag(self) -> tuple[float, float]:
        """The lag [s], and its derivative by the parameter."""
        return _number(self.network.marking_lag), _number(self.tangent.marking_lag)

    @property
    def jump(self) -> tuple[int, float, float]:
        """Marking jumps at kmax: the queue's row, that queue [bytes], and its derivative by the parameter."""
        rows = self.states.delayed_inputs.delayed_inputs
        queue = next(k for k, read in enumerate(rows) if read.row < self.network.queues)
        return queue, _number(self.network.kmax), _number(self.tangent.kmax)

    @property
    def flows(self) -> float:
        """Number of flows."""
        return _number(self.network.multiplicity)

    @cached_property
    def states(self) -> States:
        """States of the network by rows."""
        return states_of(self.network, 1)

    def rates(self, x: Array, u: Array) -> Rates:
        """Right-hand side at states (places, n) and observed values (places, k)."""
        with our_settings():
            found = _rates(self.network, self.tangent, jnp.asarray(x.T), jnp.asarray(u.T), points=len(x))
            return Rates(*(np.moveaxis(np.asarray(each), -1, 0) for each in found))

    def limits(self, x: Array) -> Limited:
        """Put states (places, n) back within limits: no queue below 0, no rate above the line's."""
        with our_settings():
            found = _limits(self.network, self.tangent, jnp.asarray(x.T), points=len(x))
            return Limited(*(np.moveaxis(np.asarray(each), -1, 0) for each in found))


def observed_of(network: Network) -> Array:
    """Return the matrix from states to what flows observe, of which all are observed equally late."""
    with our_settings():
        states = states_of(network, 1)
        return np.asarray(jacobian(states.observed, jnp.ones((len(states.names), 1))))[:, :, 0]


def _number(column: Any) -> float:
    return float(np.ravel(column)[0])


def states_of(network: Network, points: int) -> States:
    """States of a network by rows, at so many points."""
    return States(system_of(network, points, jnp.asarray(np.inf)))


@per_shape(rooms=("fluid", "equilibrium"))
def _rates(network: Network, tangent: Network, x: Any, u: Any, *, points: int) -> Any:
    def slope(network: Network, both: Any) -> Any:
        return states_of(network, points).slope(both[: len(x)], both[len(x) :])

    both = jnp.concatenate([x, u])
    by = jax.jvp(lambda network: slope(network, both), (network,), (tangent,))[1]
    slopes = jacobian(lambda both: slope(network, both), both)
    return slope(network, both), slopes[:, : len(x)], slopes[:, len(x) :], by


@per_shape(rooms=("fluid", "equilibrium"))
def _limits(network: Network, tangent: Network, x: Any, *, points: int) -> Any:
    def limited(network: Network, x: Any) -> Any:
        return states_of(network, points).projected(x)

    by = jax.jvp(lambda network: limited(network, x), (network,), (tangent,))[1]
    return limited(network, x), jacobian(lambda x: limited(network, x), x), by


def check_one_link(network: Network) -> None:
    """Refuse networks with several links, lags or classes of flows.

    Raises
    ------
    InputError
    """
    if network.queues != 1 or len(network.flows) != 1:
        raise InputError(
            f"cycle_branch: {network.queues} links and {len(network.flows)} classes of flows; one link and one class "
            "can be followed: write incast(1, multiplicity=n)"
        )
    if network.own_lag is not None or network.queueing:
        raise InputError(
            "cycle_branch: what flows observe is as old as the queue is long; give one constant lag by "
            "feedback_delay to a scheme of rates, for example DCQCN(feedback_delay='50us') (schemes with windows or "
            "several lags cannot be followed)"
        )
