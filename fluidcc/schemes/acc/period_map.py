"""ACC once per period: the fluid model of the paper's appendix A, and the map of Algorithm 1 itself.

>>> printed, algorithm = acc_maps([0.9, 0.5], r=1 / 250)
>>> round(float(printed.utilization), 6), round(float(algorithm.utilization), 6)
(0.502, 1.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fluidcc.errors import InputError
from fluidcc.schemes.acc.period_map_result import AccMap, AccMaps, Array
from fluidcc.surface import keywords, public
from fluidcc.units import RATE, RATIO, TIME, Rate, parse, refuse_bare_rate

FORMS = ("appendix", "algorithm")
Values = ArrayLike | Sequence[Any] | Fraction

_EMPTY = 1e-12  # of C and C T: what floats leave of an excess or a queue that is none
_LOW_PERIODS = 2  # Algorithm 1, line 14


@public()
def acc_map(
    rates: Values,
    *,
    form: str = "appendix",
    r: Values = 1 / 250,
    r_high: Values | None = None,
    line_rates: Values | None = None,
    capacity: Values | str = 1.0,
    period: Values | str = 1.0,
    join: ArrayLike = 0,
    steps: int = 1000,
    raised: bool = False,
    reset: bool = True,
    exact: bool = False,
) -> AccMap:
    """Run ACC's flows on one bottleneck, period by period.

    Parameters
    ----------
    rates : array_like
        Rates to start from, greater than 0, (..., N), in the unit of ``capacity``, or text such as ``"10Gbps"``. They
        may exceed the capacity. Leading axes are a batch; all arrays are broadcast.
    form : {"appendix", "algorithm"}
        The model printed in appendix A, or Algorithm 1.
    r : array_like
        RI over the flow's line rate, in (0, 1], broadcast against (..., N): RI_Low in the algorithm.
    r_high : array_like
        RI_High over the line rate, of the algorithm alone; 10 r, at most 1, if not given (section 6.1).
    line_rates : array_like
        Rates of the flows' NICs, (..., N); the capacity if not given, as in the appendix.
    capacity : text or array_like
        C, (...), in any unit of rate; as text, ``"40Gbps"``, with ``rates`` that are text.
    period : text or array_like
        T, (...), in s; as text only with a capacity that is text, or 1. With both at 1, rates are in C, queues in C T
        and times in T.
    join : array_like
        Period in which each flow starts, (..., N). A flow with ``inf`` is absent, so that a batch may differ in N.
    steps : int
        Rows to run; a row is a period, or of the algorithm a whole halt.
    raised : bool
        Of the algorithm: T_i sends at a rate raised once more, since all ACKs in hand when it begins are older than the
        congestion (Fig. 5). False: "at the same rate as" T_{i-1} (section 4.2, Fig. 7).
    reset : bool
        Of the algorithm: congestion resets N_u. It never does as printed (False): RI_High from then on.
    exact : bool
        Rationals (`Fraction`) instead of floats; floats given are taken at their exact binary value.

    Returns
    -------
    AccMap

    Raises
    ------
    InputError
        If a rate, r, capacity or period is out of range, shapes do not fit, or the form is unknown.

    Notes
    -----
    ACC (NSDI 2024), appendix A, (2)-(8), and Algorithm 1. With phi_i = S_i / sum S:

    **appendix.** Where the queue at a period's end is empty, S_i rises to (1 - r) S_i + RI_i and is sent. Otherwise
    S_i = phi_i C is recorded and the flow halts for the period. Ours: the queue ends at 0, where (3) and (7) go on
    below it, and no flow sends before it is there, where (3) prints R_i = phi_i C.

    **algorithm.** A period T_{i-1} above C is followed by T_i, whose ACKs report R_i = phi_i C. Then flow i halts for
    t_Halt + t_extend = (dS - dA)/R + r/R (lines 29 and 7-8), which is not a number of periods, and sends R_i. Where
    the paper is silent: R_s of line 7 is T_i's rate, before line 4 overwrites it, and dS what T_i sent; a halt is
    extended once; congestion resets N_u; a flow that starts or resumes changes nothing until a period of eligible
    ACKs is over, the first of which takes a round trip, here T; clocks of the flows are aligned, by the last to
    resume. The queue is then empty just as that one does, and never before.

    In both a flow whose period falls into a halt, or into T_i, starts when that is over.
    """
    if form not in FORMS:
        raise InputError(f"form: {str(form)[:20]!r} is unknown; write {' or '.join(FORMS)}")
    for name, asked in (("r_high", r_high is not None), ("raised", raised), ("reset", not reset)):
        if asked and form == "appendix":
            raise InputError(f"{name}: the appendix has no such thing; leave it out, or write form='algorithm'")
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise InputError(f"steps: {steps!r}; give a whole number of at least 1")
    start, C = _positive("rates", rates, RATE, exact), _positive("capacity", capacity, RATE, exact)
    T, low = _positive("period", period, TIME, exact), _positive("r", r, RATIO, exact, most=1)
    line = C[..., None] if line_rates is None else _positive("line_rates", line_rates, RATE, exact)
    _one_unit(rates=rates, line_rates=line_rates, capacity=capacity, period=period)
    high = np.asarray(np.minimum(10 * low, 1)) if r_high is None else _positive("r_high", r_high, RATIO, exact, most=1)
    at = _times(join)
    C, T = C[..., None], T[..., None]
    named = {"rates": start, "r": low, "r_high": high, "line_rates": line, "join": at, "capacity": C, "period": T}
    given = _common({name: values.shape for name, values in named.items()})
    shape = given if len(given) > 1 else (1, *given)  # sums of objects along the only axis would be no arrays
    low, high, at, C, T = (np.broadcast_to(values, shape) for values in (low, high, at, C, T))
    law = _Law(low, high, np.broadcast_to(line, shape) / C, 0 if exact else _EMPTY, raised, reset)
    rows = _run(np.broadcast_to(start, shape) / C, at, law, _appendix if form == "appendix" else _algorithm, steps)
    one = C[..., 0], T[..., 0]
    run = AccMap(form, *one, rows.time * T[..., 0], rows.S * C, rows.R * C, rows.Q * one[0] * one[1], *rows[4:])
    return run if len(given) > 1 else run[0]


@public(passes_on=[name for name in keywords(acc_map) if name not in ("form", "raised", "reset")])
def acc_maps(rates: Values, *, r_high: Values | None = None, **options: Any) -> AccMaps:
    """Run both forms of `acc_map` side by side.

    Parameters
    ----------
    rates, r_high
        As in `acc_map`; ``r_high`` goes to the algorithm.
    **options
        What else `acc_map` takes for both: ``r``, ``line_rates``, ``capacity``, ``period``, ``join``, ``steps`` and
        ``exact``.

    Returns
    -------
    AccMaps
        ``appendix``, ``algorithm``; `AccMaps.summary` has their numbers, `AccMaps.plot` draws both.

    Raises
    ------
    InputError
        As `acc_map`.
    """
    printed = acc_map(rates, form="appendix", **options)
    algorithm = acc_map(rates, form="algorithm", r_high=r_high, **options)
    return AccMaps(printed, algorithm)


class _Law(NamedTuple):
    """Constants of a run; rates in C. Increments and line rates (..., N)."""

    low: Array
    high: Array
    line: Array
    empty: float
    raised: bool
    reset: bool

    def more(self, S: Array, N_u: Array | int = 0) -> Array:
        """Line 19, and (4), (8): rates after an uncongested period."""
        return S + np.where(N_u < _LOW_PERIODS, self.low, self.high) * (self.line - S)

    def above(self, value: Array) -> Array:
        """Return the values that are above 0 by more than rounding, and 0 for the others."""
        return np.where(value > self.empty, value, 0)


class _State(NamedTuple):
    """State at the beginning of a row: rates (..., N) in C, queue (...) in C T."""

    S: Array
    Q: Array
    halt: Array  # how long each flow halts in this row, in T; 0 in rows that send
    shares: Array  # of T_{i-1} where this row is T_i, and 0 elsewhere
    observed: Array  # whether eligible ACKs arrive in this row
    N_u: Array


class _Rows(NamedTuple):
    time: Array
    S: Array
    R: Array
    Q: Array
    halted: Array
    joined: Array


def _run(start: Array, join: Array, law: _Law, rule: Any, steps: int) -> _Rows:
    zero = np.zeros_like(start)
    joined, no = zero != 0, zero != 0
    now, time = _State(zero, zero[..., 0], zero, zero, no, np.zeros(start.shape, dtype=np.int64)), zero[..., 0]
    rows = []
    for _ in range(steps + 1):
        halted: Array = np.any(now.halt > 0, axis=-1)
        waiting = (halted | np.any(now.shares > 0, axis=-1))[..., None]
        enter = ~joined & ~waiting & (join <= time[..., None] + law.empty)
        joined = joined | enter
        now = now._replace(S=np.where(enter, start, now.S))
        after, R, duration = rule(now, joined, halted[..., None], law)
        rows.append((time, now.S, R, now.Q, halted, joined))
        now, time = after, time + duration
    return _Rows(*(np.stack(column) for column in zip(*rows, strict=True)))


def _shares(S: Array) -> Array:
    """phi, (..., N); 0 where nobody sends."""
    total = S.sum(axis=-1, keepdims=True)
    return S / np.where(total > 0, total, 1)


def _appendix(now: _State, joined: Array, halted: Array, law: _Law) -> tuple[_State, Array, Any]:
    """A period of appendix A; also what is sent in it, and how long it is."""
    R = np.where(halted, 0, now.S)
    Q = law.above(now.Q + R.sum(axis=-1) - 1)  # (2), (3), (6), (7), ended at 0
    congested = Q[..., None] > 0
    S = np.where(congested, _shares(now.S), np.where(joined, law.more(now.S), 0))  # (2), (6); (4), (8)
    return now._replace(S=S, Q=Q, halt=np.where(congested & joined, 1, 0)), R, 1


def _algorithm(now: _State, joined: Array, halted: Array, law: _Law) -> tuple[_State, Array, Any]:
    """A period of Algorithm 1, or a halt; also what is sent in it on average, and how long it is."""
    S, halt = now.S, now.halt
    duration = np.where(halted, halt.max(axis=-1, keepdims=True), 1)
    R = np.where(halted, S * (duration - halt) / duration, S)
    load = S.sum(axis=-1, keepdims=True)
    Q = np.where(halted, 0, law.above(now.Q[..., None] + load - 1))[..., 0]
    second = np.any(now.shares > 0, axis=-1, keepdims=True)  # this is T_i
    first = ~halted & ~second & (law.above(load - 1) > 0)  # this is T_{i-1}
    rises = joined & now.observed & ~halted & ~second & (~first | law.raised)
    # Lines 29 and 7-8, by R_i = phi_i C: dS/R - 1 of T_{i-1}, whose sum is Q + 1, and dS/R - 1 of T_i.
    own = S / np.where(second & joined, now.shares, 1) if law.raised else load
    due = now.Q[..., None] + own - 1
    after = _State(
        S=np.where(second, now.shares, np.where(rises, law.more(S, now.N_u), S)),
        Q=Q,
        halt=np.where(second & joined, due, 0),
        shares=np.where(first, _shares(S), 0),
        observed=joined & ~halted & ~second,
        N_u=np.where(second & law.reset, 0, now.N_u + rises),
    )
    return after, R, duration[..., 0]


def _positive(name: str, values: Any, dimension: str, exact: bool, most: float = np.inf) -> Array:
    """Finite numbers above 0 as an array of floats or of `Fraction`; text is read with its unit."""
    try:
        given: Any = np.asarray(values)
        if given.dtype.kind not in "iuf" or exact:
            each = [_number(name, value, dimension, exact) for value in np.asarray(values, dtype=object).ravel()]
            given = np.array([*each, None], dtype=object)[:-1].reshape(given.shape)
        numbers = np.asarray(given, dtype=object if exact else np.float64)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name}: {str(values)[:40]} are no finite numbers; give lists of equal length") from None
    bad = ~np.asarray((numbers > 0) & (numbers <= most) & (numbers < np.inf), dtype=bool)
    if bad.any() or not numbers.size:
        wrong = numbers[bad][0] if numbers.size else "nothing"
        raise InputError(f"{name}: {wrong}; give numbers above 0" + (f", at most {most:g}" if most < np.inf else ""))
    return numbers


def _one_unit(*, period: Any, **rates: Any) -> None:
    """Rates are plain numbers of one unit, or all have their own; with a period in seconds plain ones are in C."""
    flat = {name: np.asarray(given, dtype=object).ravel() for name, given in rates.items() if given is not None}
    united = any(isinstance(each, (str, Rate)) for values in flat.values() for each in values)
    if united or (isinstance(period, str) and any(each != 1 for each in flat["capacity"])):
        for name, values in flat.items():
            for each in values:
                refuse_bare_rate(each, name)


def _number(name: str, value: Any, dimension: str, exact: bool) -> Any:
    """Text with its unit or a number, as float or as `Fraction`."""
    value = parse(value, dimension, name) if isinstance(value, str) else value
    return Fraction(value.item() if isinstance(value, np.generic) else value) if exact else float(value)


def _times(join: ArrayLike) -> Array:
    """Periods of at least 0, or inf."""
    try:
        at = np.asarray(join, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"join: {join!r}; give numbers of periods, for example [0, 100]") from None
    if not (at >= 0).all():
        raise InputError(f"join: {at[~(at >= 0)][0]}; give each flow a period of at least 0, or inf if it is absent")
    return at


def _common(shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of all together, (..., N)."""
    flows = shapes["rates"][-1:]
    try:
        shape = np.broadcast_shapes(*shapes.values())
    except ValueError:
        shape = ()
    if not flows or shape[-1:] != flows:
        seen = ", ".join(f"{name} {each}" for name, each in shapes.items() if each != (1,))
        raise InputError(
            f"rates: shapes do not fit: {seen}; give (..., N), the flows last, or (..., 1) for all flows alike"
        )
    return shape
