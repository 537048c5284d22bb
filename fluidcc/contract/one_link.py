"""Equal windows of one link at equilibrium, which add a constant and multiply by a target over U (HPCC A.3)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import root_scalar

from fluidcc.errors import NoClosedFormError
from fluidcc.scenario.model import Scenario
from fluidcc.scenario.round_trips import base_rtt_with_serialisation


class Settled(NamedTuple):
    """One link at equilibrium.

    Parameters
    ----------
    window : float
        W of each flow [bytes].
    utilisation : float
        U, as the flows observe it; above 1 if a queue stands.
    queue : float
        [bytes].
    rates : ndarray
        What a flow of each class sends, (classes,) [bytes/s].
    boundary : float
        Largest additive increase W_AI that leaves no queue [bytes].
    """

    window: float
    utilisation: float
    queue: float
    rates: np.ndarray
    boundary: float


def settled(scenario: Scenario, balance: Any, capacity: float) -> Settled:
    """Compute the equilibrium of windows whose flows all go through one link.

    A window is sent at W/T or, if that is less, once in the actual round trip D + q/C. With a queue, U is 1 + q/(C T),
    which gives W = W_AI/(1 - target/U), and the sum of min(W/T, W/(D_i + q/C)) = C gives q.

    Parameters
    ----------
    scenario : Scenario
        Resolved, of plain numbers.
    balance : fluidcc.schemes.hpcc.equilibrium.Balance
        Shared by all its flows.
    capacity : float
        C [bytes/s].

    Raises
    ------
    NoClosedFormError
        If windows are less than a packet and there is no queue.
    """
    b, C, T = balance, capacity, balance.base_rtt
    w_ai = b.increase * T
    counts = np.array([flow.multiplicity for flow in scenario.flows], float)
    D = np.array([base_rtt_with_serialisation(scenario, flow) for flow in scenario.flows], float)

    def window(U: float) -> float:
        return max(b.least_window, w_ai / (1 - b.target / U))

    def sent(queue: float) -> np.ndarray:
        W = window(1 + queue / (C * T))
        return np.minimum(W / T, max(W, b.least_inflight) * b.wire / (D + queue / C))

    free = np.minimum(1.0 / T, b.wire / D)  # rate of each byte of a window while there is no queue
    flow = float(counts @ free)
    boundary = (1 - b.target) * C / flow
    U = max(b.target + w_ai * flow / C, b.least_window * flow / C)
    W = U * C / flow
    if U <= 1.0 and b.least_inflight <= W:
        return Settled(W, U, 0.0, W * free, boundary)
    if counts @ sent(0.0) <= C:
        raise NoClosedFormError("windows are less than a packet and nothing waits")
    most = C * T
    while counts @ sent(most) > C:
        most *= 2
    queue = float(root_scalar(lambda q: float(counts @ sent(q)) - C, bracket=(0.0, most), rtol=1e-14).root)
    U = 1 + queue / (C * T)
    return Settled(max(window(U), b.least_inflight), U, queue, sent(queue), boundary)
