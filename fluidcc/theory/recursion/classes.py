"""HPCC in several classes that share one link under weights, once per round trip.

>>> run = share_link([0.5, 0.5], [0.2, 2.0], rules=["slides", "fixed"])
>>> run.rates[-1]
array([0.475, 2.   ])
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fluidcc.errors import InputError
from fluidcc.results.result import Comparable
from fluidcc.theory.recursion import multiq
from fluidcc.theory.recursion.checks import Array, positive, scalar, whole

RULES = (*multiq.RULES, "fixed")
_SUM = 1e-9  # by which the weights' sum may miss 1


@dataclasses.dataclass(frozen=True, eq=False)
class Shared(Comparable):
    """A run of `share_link`; all in the unit of the line, bytes as a rate times the round trip.

    Parameters
    ----------
    rates : ndarray
        (steps + 1, ..., classes). Window over round trip; row 0 is the start.
    sent : ndarray
        (steps, ..., classes). What the class put into its queue in each round trip.
    served : ndarray
        (steps, ..., classes). What left it.
    backlog : ndarray
        (steps + 1, ..., classes). What waits at the end of each; row 0, before the first, is 0.
    utilization : ndarray
        (steps, ..., classes). U of the class; NaN of one with a fixed rate, which looks at none.
    """

    rates: Array
    sent: Array
    served: Array
    backlog: Array
    utilization: Array


def share_link(
    weights: ArrayLike,
    R0: ArrayLike,
    *,
    line: float = 1.0,
    rules: str | Sequence[str] = "slides",
    eta: float = 0.95,
    increase: float = 0.0,
    threshold: float = 0.0,
    steps: int = 100,
) -> Shared:
    """Run R' = R eta/U + a for classes that share a link, each with a queue and a U of its own.

    In a round trip a class offers its window, or what still waits if that is more. The link serves the classes in
    proportion to their weights, and what one leaves of its share goes to the others in that proportion. What is not
    served waits.

    Parameters
    ----------
    weights : array_like
        Share of the line that each class is guaranteed, (..., classes); they sum to 1.
    R0 : array_like
        Rates to start from, (..., classes). Leading axes are broadcast: many links at once.
    line : float
        B, rate of the link, in any unit.
    rules : str or sequence of str
        One for all classes or one for each: ``"slides"``, ``"spare"`` and ``"class"`` as in `multiq.utilisation`;
        ``"fixed"`` for a class that sends at its first rate whatever happens.
    eta : float
        Target utilisation.
    increase : float
        a of a class: the sum of its flows' additive increases, in the unit of ``line``.
    threshold : float
        Backlog up to which the slides' rule takes a queue for empty.
    steps : int
        Round trips.

    Returns
    -------
    Shared

    Raises
    ------
    InputError
        If a weight or rate is not positive, weights do not sum to 1, shapes do not fit, or a rule is unknown.

    Notes
    -----
    HPCC++ slides, MultiQ. One class beside others that leave it A is `recursion.multiq.step`, as long as its
    window does not fall below what waits.
    """
    w, rates = _classes("weights", weights), _classes("R0", R0)
    try:
        shape = np.broadcast_shapes(w.shape, rates.shape)
    except ValueError:
        shape = ()
    if not shape or w.shape[-1] != rates.shape[-1]:
        raise InputError(f"R0: shape {rates.shape}, weights {w.shape}; give one rate for each class")
    off = np.argwhere(np.abs(w.sum(axis=-1) - 1) > _SUM)
    if len(off):
        total = w.sum(axis=-1)[tuple(off[0])]
        where = f"[{', '.join(map(str, off[0]))}]" if w.ndim > 1 else ""
        raise InputError(
            f"weights{where}: they sum to {total:g}; give shares of the line that sum to 1: divide by that"
        )
    chosen = _rules(rules, shape[-1])
    B, target, a = scalar("line", line), scalar("eta", eta, most=1.0), scalar("increase", increase, zero=True)
    least = scalar("threshold", threshold, zero=True)
    R, Q = np.broadcast_to(rates, shape).astype(float), np.zeros(shape)
    rows: list[tuple[Array, ...]] = []
    for _ in range(whole("steps", steps)):
        sent = np.maximum(R - Q, 0.0)
        offered = Q + sent
        served = water_fill(offered, w, B)
        Q = offered - served
        U = np.full(shape, np.nan)
        unused = np.maximum(B - served.sum(axis=-1), 0.0)
        for c, rule in enumerate(chosen):
            if rule != "fixed":
                link = {"guaranteed": w[..., c] * B, "line": B, "unused": unused, "threshold": least}
                U[..., c] = multiq.of_class(served[..., c], Q[..., c], rule, **link)
        R = np.where(np.isnan(U), R, R * target / np.where(np.isnan(U), 1.0, U) + a)
        rows.append((R, sent, served, Q, U))
    R, sent, served, Q, U = (np.stack(each) for each in zip(*rows, strict=True))
    start = np.broadcast_to(rates, shape)[None]
    return Shared(np.concatenate([start, R]), sent, served, np.concatenate([np.zeros_like(start), Q]), U)


def water_fill(offered: Array, weights: Array, line: float) -> Array:
    """Weighted fair service of classes: min(offered, weight times a level) that uses the line or serves all.

    Parameters
    ----------
    offered : ndarray
        (..., classes).
    weights : ndarray
        Greater than 0, (..., classes).
    line : float

    Returns
    -------
    ndarray
        (..., classes)
    """
    weights = np.broadcast_to(weights, offered.shape)
    order = np.argsort(offered / weights, axis=-1)
    d, w = (np.take_along_axis(values, order, axis=-1) for values in (offered, weights))
    # What the level serves is the least of these lines in it: the first k classes get all they offer, the rest share.
    full = np.cumsum(d, axis=-1) - d
    sharing = np.flip(np.cumsum(np.flip(w, axis=-1), axis=-1), axis=-1)
    level = ((line - full) / sharing).max(axis=-1, keepdims=True)
    return np.minimum(offered, weights * level)


def _classes(name: str, values: ArrayLike) -> Array:
    """Positive numbers, (..., classes)."""
    shape = np.shape(np.asarray(values, dtype=object))
    if not shape:
        raise InputError(f"{name}: {values!r}; give a list of one number per class, for example [0.5, 0.5]")
    return positive(name, values, shape[-1], "class", batched=True)


def _rules(rules: str | Sequence[str], count: int) -> list[str]:
    """Return one rule for each class, after a check."""
    chosen = [rules] * count if isinstance(rules, str) else list(rules)
    if len(chosen) != count:
        raise InputError(f"rules: {len(chosen)} for {count} classes; give one, or one for each")
    for rule in chosen:
        if rule not in RULES:
            raise InputError(f"rules: {str(rule)[:20]!r} is unknown; write {', '.join(RULES[:-1])} or {RULES[-1]}")
    return chosen
