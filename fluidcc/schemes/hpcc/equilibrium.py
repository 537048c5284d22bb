"""Equilibrium of HPCC: R = a/(1 - eta/U), with U of the most loaded link of the path (appendix A.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fluidcc.contract.bind import binder
from fluidcc.errors import NoClosedFormError
from fluidcc.scenario.model import Flow, Scenario
from fluidcc.schemes.hpcc.fluid import State
from fluidcc.schemes.hpcc.multipliers import multipliers as multipliers
from fluidcc.schemes.hpcc.parameters import HPCC


class Balance(NamedTuple):
    """Constants from which a flow's equilibrium follows.

    Parameters
    ----------
    target : float
        eta, what U would be without increase.
    increase : float
        a, W_AI/T [bytes/s].
    base_rtt : float
        T, over which a queue counts in U [s].
    windows : bool
        Whether bytes in flight rest, rather than rates: a queue's bytes are then among them.
    least_window, largest_window : float
        Bounds of W [bytes].
    least_inflight : float
        Amount that a flow may always have in flight [bytes as windows count them].
    wire : float
        Bytes on the wire for each that windows count.
    """

    target: float
    increase: float
    base_rtt: float
    windows: bool
    least_window: float
    largest_window: float
    least_inflight: float
    wire: float


def balances(scenario: Scenario) -> Callable[[Flow], Balance]:
    """Balance of each HPCC flow of a resolved scenario of plain numbers.

    Raises
    ------
    NoClosedFormError
        If the flows have registers per link, per-class utilisations, or a U that observes no queue.
    """
    bound = binder(scenario)

    def of(flow: Flow) -> Balance:
        p: Any = bound(flow)
        for name, solved in (("registers", "one"), ("multiq", "off"), ("u_queue", True)):
            if getattr(p, name) != solved:
                raise NoClosedFormError(f"HPCC's equilibrium is solved for {name}={solved} only")
        packet = scenario.wire_packet_of(flow) if scenario.window_unit == "wire" else scenario.packet_size
        windows, paper = p.form == "window", p.variant == "paper"
        T, most = float(p.base_rtt), float(p.initial_window)
        least = min(packet, most) if paper else float(p.min_rate) * T
        wire = scenario.wire_packet_of(flow) / packet
        return Balance(
            target=float(p.eta),
            increase=float(p.w_ai) / T,
            base_rtt=T,
            windows=windows,
            least_window=least if windows else 0.0,
            largest_window=most,
            least_inflight=0.0 if paper else packet,
            wire=wire,
        )

    return of


def observables(window: float, utilisation: float) -> dict[str, float]:
    """Keys as `fluidcc equilibrium` shows them."""
    return {"window_bytes": window, "utilisation_estimate": utilisation}


def smooth(parameters: HPCC) -> bool:
    """Check whether nothing changes in jumps at equilibrium, so that the equations can be linearised."""
    return parameters.form == "rate"


def late(state: State) -> State:
    """A state that has seen ACKs."""
    return state._replace(last_update=0.0 * state.last_update, stage=0.0 * state.stage)


MOVES = ("reference_window", "utilisation")  # by themselves; all else follows in jumps
SMOOTH_INSTEAD = "for appendix A.3's rates write form='rate'"
