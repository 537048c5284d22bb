"""Section IV-B of Snyder and Lebeck: decreases per RTT, R(t), and per s ACKs, S(t), in closed form and integrated.

S' = -beta S^2/(s MTU) and R' = -beta R/r, each flow by itself from S(0) = R(0) = C. In x = beta t/r and with
A = C r/(s MTU) they are S/C = 1/(1 + A x) and R/C = exp(-x).
"""

from __future__ import annotations

import numpy as np

from fluidcc.theory.fairness.settings import Array, Decrease

RULES = ("per RTT", "sampling")
_RTOL = 1e-11  # of the integrator


def solved(initial: Array, times: Array, setting: Decrease) -> Array:
    """Rates of both rules in closed form.

    Parameters
    ----------
    initial : ndarray
        C (flows,) [bytes/s].
    times : ndarray
        (times,) [s].
    setting : Decrease

    Returns
    -------
    ndarray
        (rule, times, flows) [bytes/s], the rules as in `RULES`.

    Notes
    -----
    Snyder and Lebeck, section IV-B: S_i(t) = C_i/(1 + beta C_i t/(s MTU)), R_i(t) = C_i exp(-beta t/r).
    """
    x = (setting.beta / setting.rtt * times)[:, None]
    A = initial * (setting.rtt / setting.sample)
    return np.stack([initial * np.exp(-x), initial / (1 + A * x)])


def integrated(initial: Array, times: Array, setting: Decrease) -> Array:
    """The same by integrating the differential equations, without what solves them.

    Parameters
    ----------
    initial, times, setting
        As in `solved`; times from 0 on, ascending.

    Returns
    -------
    ndarray
        (rule, times, flows) [bytes/s], to about 1e-9 of each rate.

    Notes
    -----
    In logarithms, so that the error is relative to each rate however far it has fallen: (ln S)' = -A e^(ln S/C).
    """
    from scipy.integrate import solve_ivp

    x = setting.beta / setting.rtt * times
    A = initial * (setting.rtt / setting.sample)
    found = solve_ivp(
        lambda _, y: np.concatenate([-np.ones_like(A), -A * np.exp(y[len(A) :])]),
        (0.0, float(x[-1])),
        np.zeros(2 * len(A)),
        method="LSODA",  # large A: a boundary layer of 1/A at the start
        t_eval=x,
        rtol=_RTOL,
        atol=_RTOL,
    ).y.reshape(2, len(A), -1)
    return initial * np.exp(found.transpose(0, 2, 1))
