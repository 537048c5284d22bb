"""Equilibria of schemes that add a constant and multiply by a target over the utilisation of their path (HPCC A.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.errors import NoClosedFormError
from fluidcc.scenario.model import Scenario
from fluidcc.schemes.sides import Equilibrium
from fluidcc.theory.recursion.optimal import equilibrium as filled

_ROUNDING = 1e-9  # relative


def utilised_equilibria(
    scenario: Scenario, side: Equilibrium
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str | None]:
    """Links and flows at equilibrium, as `Equilibrium` describes them, and why there is no other, where that is known.

    Parameters
    ----------
    scenario : Scenario
        Resolved, of plain numbers; its flows run one scheme with equal parameters.
    side : Equilibrium
        The scheme's, with ``balances`` and ``observables``.

    Raises
    ------
    NoClosedFormError
        If the flows differ, several links would be overloaded, windows reach their least value on several links, or
        flows would be faster than their line.

    Notes
    -----
    R = a/(1 - Ut/U) with U the load of the most loaded link, over its capacity. Above 1 the load is bytes in flight:
    windows hold U C T of them, (U - 1) C T in the queue. Rates hold none: they sum to C, and the queue grows until
    N a/(1 - Ut/U) = C.
    """
    assert side.balances is not None
    assert side.observables is not None
    of = side.balances(scenario)
    balance, *others = {of(flow) for flow in scenario.flows}
    if others:
        raise NoClosedFormError("the flows' parameters differ")
    columns = [
        [float(i in flow.path) for i in range(len(scenario.links))]
        for flow in scenario.flows
        for _ in range(round(flow.multiplicity))
    ]
    first = np.cumsum([0, *(round(flow.multiplicity) for flow in scenario.flows)])[:-1]
    A, C = np.array(columns).T, np.array([link.rate for link in scenario.links])
    used = A.any(axis=1)
    R = filled(A[used], C[used], increase=balance.increase, target=balance.target)
    T, single = balance.base_rtt, bool(used.sum() == 1)
    if balance.least_window > 0 and R.min() * T < balance.least_window:
        if not single:
            raise NoClosedFormError("windows settle at a packet on several links")
        R = np.maximum(R, balance.least_window / T)
    U = A @ R / C
    if U.max() > 1 and not single:
        raise NoClosedFormError("the increase overloads one of several links")
    if U.max() > 1 and not balance.windows:
        R = np.full(len(R), C[used][0] / len(R))
        U = np.where(used, balance.target / (1 - balance.increase / R[0]), 0.0)
    links = [
        {
            "name": link.name or f"link {i}",
            "marking_probability": 0.0,
            "queue_bytes": max(float(U[i]) - 1.0, 0.0) * link.rate * T,
            "utilisation": min(float(U[i]), 1.0),
        }
        for i, link in enumerate(scenario.links)
    ]
    flows = []
    for i, (flow, k) in enumerate(zip(scenario.flows, first, strict=True)):
        most = float(max(U[link] for link in flow.path))
        sent = float(R[k]) / max(most, 1.0) if balance.windows else float(R[k])
        if sent > (1 + _ROUNDING) * flow.line_rate:
            raise NoClosedFormError("flows settle at their line rate")
        seen = side.observables(float(R[k]), most, T)
        flows.append({"name": flow.name or f"flow {i}", "marking_probability": 0.0, "rate_bytes_per_s": sent, **seen})
    # With one link all flows see one load, and so have one rate.
    balanced = f"loads above {balance.target:g}: C (U - {balance.target:g}) = N a has one root, and U gives the rates"
    return links, flows, balanced if len(links) == 1 else None
