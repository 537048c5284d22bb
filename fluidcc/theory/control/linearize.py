"""Linearisation of a fluid scenario about its equilibrium, exactly: derivatives of the model's own right-hand side.

    x'(t) = A0 x(t) + sum_k A_k x(t - tau_k)

x are the queues of the loaded links and the flows' states. The right-hand side is the one that is integrated, so there
is nothing to derive by hand; automatic differentiation makes its Jacobians by the present state and by each lagged
signal (`control.delayed_inputs`). Delays that depend on queues are frozen at the equilibrium.

Flows interact through queues only. Equal flows are merged into one class, whose linearisation is the aggregate mode;
differences between them follow the class's own block, the fairness mode, once for each flow but one.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from fluidcc.contract.registry import scheme_of
from fluidcc.dde.characteristic import Roots, roots
from fluidcc.dde.delay_system import Array, DelaySystem
from fluidcc.dde.response import DelayLoop
from fluidcc.engines.fluid.network import network_of
from fluidcc.errors import InputError
from fluidcc.results.display import draw, shown
from fluidcc.results.result import Comparable
from fluidcc.scenario import display as html
from fluidcc.scenario.model import Scenario, resolve, thresholds_in_bytes
from fluidcc.surface import constructor, public
from fluidcc.theory.control.fixed_point import Equilibrium, described, same, state_of
from fluidcc.theory.control.local import local, near
from fluidcc.theory.control.merging import merged
from fluidcc.theory.control.states import NO_EQUILIBRIUM, NoEquilibriumError, UnfilledError

if TYPE_CHECKING:
    from fluidcc.schemes.dcqcn.published import PublishedLoop


class Fairness(NamedTuple):
    """Dynamics of a difference between two equal flows of a class with more than one."""

    system: DelaySystem
    modes: float  # of this kind: the class's flows but one


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Linearization(Comparable):
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

    def __repr__(self) -> str:
        """States, delays and modes."""
        modes = sum(each.modes for each in self.fairness)
        delays = int(np.count_nonzero(self.system.tau))
        return f"<Linearization: {len(self.states)} states, {delays} delays, {modes:g} fairness modes>"

    def _repr_html_(self) -> str:
        rows = [("states", ", ".join(self.states)), ("delays", shown("tau_s", self.system.tau))]
        return html.table(repr(self).strip("<>"), rows) + html.folded("equilibrium", self.equilibrium._repr_html_())

    @public()
    def roots(self, count: int = 10) -> Roots:
        """Rightmost characteristic roots of all modes, as `fluidcc.delay.roots` gives them.

        A fairness mode's roots are listed once for each class, however many flows it has.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        Roots
        """
        parts = [roots(system, count) for system in (self.system, *(each.system for each in self.fairness))]
        s: Array = np.concatenate([part.s for part in parts])
        residual: Array = np.concatenate([part.residual for part in parts])
        order = np.lexsort((-np.imag(s), -np.real(s)))
        keep = order[: count + int(len(s) > count and np.imag(s[order[count - 1]]) > 0)]
        worst = next((str(part.state) for part in parts if part.state != "ok"), "ok")
        return Roots(s[keep], residual[keep], np.asarray(len(keep)), np.asarray(worst))

    @public()
    def loop(self) -> DelayLoop | None:
        """The aggregate's loop, cut where flows observe the most loaded queue; None where none stands or is observed.

        The queue is the output; the input takes its place in all that is observed it, so that -1 times the input
        closes the loop.
        """
        links, system = self.equilibrium.links, self.system
        most = max(range(len(links)), key=lambda i: links[i]["queue_bytes"])
        if f"queue {most}" not in self.states:
            return None
        at = self.states.index(f"queue {most}")
        inner = system.A.copy()
        observed = inner[:, :, at].copy()
        inner[:, :, at] = 0.0
        used = observed.any(axis=1)
        if not used.any():
            return None
        output = np.zeros(system.order)
        output[at] = 1.0
        return DelayLoop(DelaySystem(system.A0, inner, system.tau), -observed[used], system.tau[used], output)

    @public()
    def plot(self, count: int = 20, *, title: str | None = None) -> Any:
        """The rightmost roots in the complex plane, those of the aggregate and of the fairness modes.

        Parameters
        ----------
        count : int
            How many roots of each mode.
        title : str
            Above the picture; one that says what it is if not given.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_roots", self, count, title=title)


@overload
def linearize(
    scenario: Scenario, method: Literal["exact"] = "exact", *, at: Equilibrium | None = None
) -> Linearization: ...
@overload
def linearize(scenario: Scenario, method: Literal["paper"]) -> PublishedLoop: ...
@public()
def linearize(
    scenario: Scenario, method: str = "exact", *, at: Equilibrium | None = None
) -> Linearization | PublishedLoop:
    """Linearise a scenario about its equilibrium.

    Parameters
    ----------
    scenario : Scenario
        Of plain numbers; all flows count as active and long-lived. Where the marking that flows need exceeds pmax, the
        RED line is extended beyond kmax (``equilibrium.on_ramp`` is false).
    method : {"exact", "paper"}
        The model's own, or the one that was published for the scheme, which need not be the same (DCQCN's is not): it
        is there to be compared with.
    at : Equilibrium
        Which of several, as `equilibrium` found it (one of its ``others``); that of equal shares if not given.

    Returns
    -------
    Linearization
        By "exact".
    PublishedLoop
        By "paper": `fluidcc.schemes.dcqcn.published`.

    Raises
    ------
    NoEquilibriumError
        If there is no equilibrium to linearise about; an `InputError`.
    InputError
        If the scenario or the method makes no sense, or nothing was published for the scenario.
    """
    if method == "paper":
        if at is not None:
            raise InputError(
                "at: the published linearisation is of equal shares; leave it out, or write method='exact'"
            )
        return _published(thresholds_in_bytes(resolve(scenario)))
    if method != "exact":
        raise InputError(f"method: {str(method)[:20]!r} is unknown; write exact or paper")
    if at is not None and not isinstance(at, Equilibrium):
        raise InputError(
            f"at: {str(at)[:20]!r} is no equilibrium; write at=fluidcc.equilibrium(scenario).others[0], or another"
        )
    if at is None:
        classes, _ = merged(resolve(scenario))
        network = network_of(classes)
        found = local(network)
    else:
        classes, _, state = state_of(resolve(scenario), at)
        network = network_of(classes)
        found = near(network, state)
    if not found.exists[0]:
        raise NoEquilibriumError(f"linearize: {NO_EQUILIBRIUM}")
    fixed_point = described(classes, found)
    if at is not None and not same(at, fixed_point):
        raise NoEquilibriumError(
            "linearize: at: not an equilibrium of this scenario; take one of fluidcc.equilibria(scenario)"
        )
    parts = found.modes()
    if not parts:
        raise UnfilledError("linearize: no link is filled, so the flows stay at their line rate; give more flows")
    (modes,) = parts
    many = np.broadcast_to(np.ravel(network.multiplicity), len(network.flows))
    fairness = [Fairness(system[0], float(many[flow]) - 1.0) for flow, system in modes.fairness]
    names = tuple(found.states.names[row] for row in modes.rows)
    return Linearization(names, modes.aggregate[0], tuple(fairness), fixed_point)


def _published(scenario: Scenario) -> PublishedLoop:
    (scheme, *mixed), (link, *more) = {flow.scheme for flow in scenario.flows}, scenario.links
    module = scheme_of(scheme).module("published")
    if module is None or mixed or more:
        raise InputError("method: paper: nothing was published but DCQCN's, for equal flows of one link; write exact")
    flows, packet = sum(flow.multiplicity for flow in scenario.flows), scenario.wire_packet_of(scenario.flows[0])
    return module.published(scheme, link.marking, flows=flows, rate=link.rate, packet=packet)
