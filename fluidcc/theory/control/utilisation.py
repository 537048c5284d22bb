"""Equilibria of schemes that add a constant and multiply by a target over the utilisation of their path (HPCC A.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.contract.models import Equilibrium
from fluidcc.contract.one_link import settled
from fluidcc.dde.delay_system import Array
from fluidcc.errors import NoClosedFormError
from fluidcc.scenario.model import Scenario
from fluidcc.scenario.round_trips import base_rtt_with_serialisation
from fluidcc.theory.recursion.optimal import equilibrium as filled

_ROUNDING = 1e-9  # relative


def utilised_equilibria(
    scenario: Scenario, side: Equilibrium
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], bool | None, str | None]:
    """Links and flows at equilibrium, as `Equilibrium` describes them, whether it is the only one, and why.

    Parameters
    ----------
    scenario : Scenario
        Resolved, of plain numbers; its flows run one scheme with equal parameters.
    side : Equilibrium
        The scheme's, with ``balances`` and ``observables``.

    Raises
    ------
    NoClosedFormError
        If the flows differ, several links would be overloaded, windows reach their least value on several links or
        are more than any may be, a path of several links is longer than T, or flows would be faster than their line.

    Notes
    -----
    R = W/T = a/(1 - Ut/U), with U the load of the most loaded link, over its capacity. Rates hold no bytes: where they
    would exceed C they sum to it, and the queue grows until N a/(1 - Ut/U) = C.
    Windows of one link are `fluidcc.contract.one_link.settled`'s.
    """
    assert side.balances is not None
    assert side.observables is not None
    of = side.balances(scenario)
    balance, *others = {of(flow) for flow in scenario.flows}
    if others:
        raise NoClosedFormError("the flows' parameters differ")
    counts = np.array([round(flow.multiplicity) for flow in scenario.flows])
    A = np.array([[float(i in flow.path) for flow in scenario.flows] for i in range(len(scenario.links))])
    C, T = np.array([link.rate for link in scenario.links]), balance.base_rtt
    used = A.any(axis=1)
    queue = np.zeros(len(C))
    if balance.windows and used.sum() == 1:
        only = int(np.flatnonzero(used)[0])
        window, U_only, queue[only], R, _ = settled(scenario, balance, scenario.links[only].rate)
        U = np.where(used, U_only, 0.0)
    else:
        R, U = _rates(scenario, balance, A, C, counts)
        window = R * T
        queue = np.maximum(U - 1.0, 0.0) * C * T
    if balance.windows and np.max(window) > (1 + _ROUNDING) * balance.largest_window:
        raise NoClosedFormError("windows would be more than the first one")
    if (np.array([flow.line_rate for flow in scenario.flows]) * (1 + _ROUNDING) < R).any():
        raise NoClosedFormError("flows settle at their line rate")
    links = [
        {
            "name": link.name or f"link {i}",
            "marking_probability": 0.0,
            "queue_bytes": float(queue[i]),
            "utilisation": min(float((A[i] * counts) @ R / link.rate), 1.0),
        }
        for i, link in enumerate(scenario.links)
    ]
    flows = []
    for i, flow in enumerate(scenario.flows):
        seen = side.observables(float(np.broadcast_to(window, R.shape)[i]), float(max(U[link] for link in flow.path)))
        rate = {"name": flow.name or f"flow {i}", "marking_probability": 0.0, "rate_bytes_per_s": float(R[i])}
        flows.append(rate | seen)
    if balance.increase == 0.0 and counts.sum() > 1:
        return links, flows, False, "without an increase all shares that load the link to the target are equilibria"
    if len(links) > 1:
        return links, flows, None, None
    # All flows see one load, and so have one window or rate.
    least = ", as long as no window is at its minimum" if balance.windows else ""
    why = f"flows send less the further the load is above {balance.target:g}{least}: only one load fits"
    return links, flows, True, why


def _rates(scenario: Scenario, balance: Any, A: Array, C: Array, counts: Array) -> tuple[Array, Array]:
    """Rates of the classes, and loads of the links."""
    several = A.any(axis=1).sum() > 1
    used = A.any(axis=1)
    columns = np.repeat(A[used], counts, axis=1)
    first = np.cumsum([0, *counts])[:-1]
    R = filled(columns, C[used], increase=balance.increase, target=balance.target)[first]
    if balance.windows:
        trips = [base_rtt_with_serialisation(scenario, flow) for flow in scenario.flows]
        if max(trips) > (1 + _ROUNDING) * balance.wire * balance.base_rtt:
            raise NoClosedFormError("windows go once in a round trip that is longer than T")
        if R.min() * balance.base_rtt < balance.least_window:
            raise NoClosedFormError("windows settle at a packet on several links")
    U = A @ (counts * R) / C
    if U.max() > 1:
        if several:
            raise NoClosedFormError("the increase overloads one of several links")
        R = np.full(len(R), C[used][0] / counts.sum())
        U = np.where(used, balance.target / (1 - balance.increase / R[0]), 0.0)
    return R, U
