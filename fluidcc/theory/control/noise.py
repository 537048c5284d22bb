"""Linear noise approximation: how far random feedback moves a queue about a stable equilibrium.

Near it a fluid is x'(t) = A0 x(t) + sum_k A_k x(t - tau_k) + n(t). Flows draw their chance apart from each other, so

    S_q(w) = sum over flows |e_q Delta(i w)^-1|^2 weighted by S_n(w),   variance = 1/pi int_0^inf S_q(w) dw,

with the exact characteristic matrix Delta, delays included. S_n is what a scheme says of itself (``noise`` of its
equilibrium side): the spectrum of its moving states' jumps at a constant intensity of marks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import cubature

from fluidcc.contract.registry import equilibrium_of
from fluidcc.dde.characteristic import roots
from fluidcc.dde.delay_system import Array, DelaySystem
from fluidcc.errors import NoClosedFormError
from fluidcc.scenario.model import Scenario
from fluidcc.surface import constructor, public
from fluidcc.theory.control.fixed_point import Equilibrium, state_of
from fluidcc.theory.control.linearize import Linearization
from fluidcc.theory.control.merging import merged

_ROOTS = 10  # whose frequencies the integral looks at by name
_BELOW, _BEYOND = 1e-5, 1e3  # of the least and the largest of them: S_q is flat below, and falls as w^-4 beyond
_SHARPEST = 1e-10  # width of a peak over its frequency, to which roots are exact
_ERROR = 1e-3  # of the variance: estimated, and larger than it is


class Source(NamedTuple):
    """Chance of one class of equal flows, each with its own."""

    states: tuple[int, ...]  # of the class's mean, as rows of the system
    columns: tuple[int, ...]  # of the density
    flows: float
    density: Callable[[Array], Array]  # (frequencies, m, m), two-sided, of one flow


@constructor()
@dataclasses.dataclass(frozen=True, eq=False)
class QueueNoise:
    """Random fluctuations of a scenario's most loaded queue near its equilibrium, to first order.

    Parameters
    ----------
    system : DelaySystem
        The aggregate: equal flows as one class.
    queue : int
        The queue's row in ``system``.
    sources : tuple of Source
    """

    system: DelaySystem
    queue: int
    sources: tuple[Source, ...]

    @public()
    def spectrum(self, frequency: ArrayLike) -> Array:
        """Spectral density of the queue, two-sided: its integral over all w, by 2 pi, is the variance.

        Parameters
        ----------
        frequency : array_like
            w > 0 [rad/s], of any shape.

        Returns
        -------
        ndarray
            [bytes^2 s], of the same shape.
        """
        w = np.asarray(frequency, float)
        flat = np.ravel(w)
        output = np.zeros(self.system.order, complex)
        output[self.queue] = 1.0
        # One row of the inverse: Delta^T r = e_q.
        across = self.system.characteristic(1j * flat).swapaxes(-1, -2)
        row = np.linalg.solve(across, np.broadcast_to(output[:, None], (len(flat), len(output), 1)))[..., 0]
        total = np.zeros(len(flat))
        for source in self.sources:
            of = row[:, source.states]
            density = source.density(flat)[:, source.columns][:, :, source.columns]
            total += np.einsum("wi,wij,wj->w", of, density, of.conj()).real / source.flows
        return total.reshape(w.shape)

    @public()
    def std_bytes(self) -> float:
        """Standard deviation of the queue [bytes].

        Raises
        ------
        NoClosedFormError
            If the spectrum's peaks are too sharp to be integrated.
        """
        s = roots(self.system, _ROOTS).s
        size = np.abs(s)[np.abs(s) > 0]
        turning = s[s.imag > _BELOW * size.max()]
        if (np.abs(turning.real) < _SHARPEST * np.abs(turning)).any():
            raise NoClosedFormError("the spectrum's peaks are too sharp to be integrated")
        # Looked at by name, with decades of each peak's width on either side: found by halving, a sharp peak takes
        # thousands of parts.
        sides = np.abs(turning.real)[:, None] * np.concatenate([[0.0], *([10.0**k, -(10.0**k)] for k in range(16))])
        near = (turning.imag[:, None] + sides)[np.abs(sides) < turning.imag[:, None] / 2]
        ends = np.log([_BELOW * size.min(), _BEYOND * size.max()])

        def integrand(x: Array) -> Array:
            w = np.exp(x[:, 0])
            return self.spectrum(w) * w / np.pi

        found = cubature(integrand, ends[:1], ends[1:], rtol=_ERROR, points=[[x] for x in np.log(np.unique(near))])
        if found.status != "converged":
            raise NoClosedFormError("the spectrum's peaks are too sharp to be integrated")
        return float(np.sqrt(found.estimate))


def queue_noise(scenario: Scenario, found: Linearization, at: Equilibrium | None = None) -> QueueNoise:
    """The noise that drives a scenario's most loaded queue.

    Parameters
    ----------
    scenario : Scenario
        Resolved.
    found : Linearization
        Of it, at a stable equilibrium.
    at : Equilibrium
        Which of several, as for `linearize`.

    Raises
    ------
    NoClosedFormError
        If a flow's scheme has no random feedback, or says nothing of it for its parameters.
    """
    here = found.equilibrium
    most = max(range(len(here.links)), key=lambda i: here.links[i]["queue_bytes"])
    classes = merged(scenario)[0] if at is None else state_of(scenario, at)[0]
    sources = []
    for k, (flow, row) in enumerate(zip(classes.flows, here.flows, strict=True)):
        side, name = equilibrium_of(flow.scheme), flow.scheme.name
        if side is None or side.noise is None:
            raise NoClosedFormError(f"{name} has no random feedback, or says nothing of it")
        values = {key.removesuffix("_per_s").removesuffix("_bytes"): value for key, value in row.items()}
        moving = [(i, f"{field} {k}") for i, field in enumerate(side.MOVES) if f"{field} {k}" in found.states]
        density = side.noise(flow.scheme, values, row["marking_probability"], classes.wire_packet_of(flow))
        columns, states = tuple(i for i, _ in moving), tuple(found.states.index(text) for _, text in moving)
        sources.append(Source(states, columns, flow.multiplicity, density))
    if f"queue {most}" not in found.states:
        raise NoClosedFormError("no queue stands")
    return QueueNoise(found.system, found.states.index(f"queue {most}"), tuple(sources))
