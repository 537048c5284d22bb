"""The same equations in JiTCDDE: adaptive steps, compiled C, one trajectory at a time.

Its language has neither projections nor jumps, so they are written as smooth switches (1 + tanh(x/width))/2, of a
width that the benchmark varies together with the tolerance: a queue drains only while it is above 0, R_T rises
only below the line rate (and R_C follows it), marking jumps to 1 above Kmax. A problem on which none of them acts
is solved without.
The kink of the marking curve at Kmin is (x + |x|)/2, and the marking probability is kept above `LEAST_MARKING`,
because the powers of 1-p have no safe form at p = 0 in its language.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import problem

LEAST_MARKING = 1e-9
MOST_MARKING = 1 - 1e-9
SECOND = 1e6  # its time unit is 1 us, its bytes are packets: numbers of order one
FIRST_STEP, MIN_STEP, MAX_STEP = 0.1, 1e-9, 1000.0  # us


def equations(case: problem.Case, width: float | None) -> tuple[list[Any], list[tuple[Any, Any]], np.ndarray, float]:
    """Right-hand sides in (queue, rate, target, alpha, rate, target, alpha), helpers, initial state, and lag [us].

    ``width`` is that of the switches, in packets; None leaves them out.
    """
    from jitcdde import t, y
    from symengine import Abs, Symbol, exp, log, tanh

    helpers: list[tuple[Any, Any]] = []

    def shared(name: str, expression: Any) -> Any:
        """A term that is computed once, as in the other contenders."""
        helpers.append((Symbol(name), expression))
        return helpers[-1][0]

    scenario = problem.scenario(case)
    link, scheme = scenario.links[0], scenario.flows[0].scheme
    marking = link.marking
    assert marking is not None
    packet, rate_unit = scenario.wire_packet, scenario.wire_packet * SECOND
    kmin, kmax = marking.kmin / packet, marking.kmax / packet
    tau, alpha_timer, timer = (getattr(scheme, n) * SECOND for n in ("cnp_interval", "alpha_timer", "timer"))
    counter, steps = scheme.byte_counter / packet, scheme.fast_recovery_steps
    rate_ai = scheme.rate_ai / rate_unit
    lag = scheme.feedback_delay * SECOND

    def switch(x: Any, scale: float = 1.0) -> Any:
        """1 where x is above 0, 0 below."""
        return 1.0 if width is None else (1 + tanh(x / (scale * width))) / 2

    def positive(x: Any) -> Any:
        return (x + Abs(x)) / 2

    line = scenario.flows[0].line_rate / rate_unit
    above = shared("above", (y(0, t - lag) - kmin) / (kmax - kmin) * marking.pmax)
    ramp = LEAST_MARKING + positive(above)
    if width is not None:
        jump = shared("jump", switch(y(0, t - lag) - kmax))
        ramp = ramp * (1 - jump) + MOST_MARKING * jump
    p = shared("p", ramp)  # (5)
    minus_log = shared("minus_log", -log(1 - p))
    excess = shared("excess", y(1) + y(4) - link.rate / rate_unit)
    moves = [excess if width is None else positive(excess) - positive(-excess) * switch(y(0))]  # (6), (11)
    for k in (1, 4):
        rate, target, alpha = y(k), y(k + 1), y(k + 2)
        lagged = shared(f"lagged{k}", y(k, t - lag))
        cut = shared(f"cut{k}", (1 - exp(-tau * lagged * minus_log)) / tau)
        by_bytes = shared(f"by_bytes{k}", lagged * p / (exp(counter * minus_log) - 1))
        by_timer = shared(f"by_timer{k}", lagged * p / (exp(timer * lagged * minus_log) - 1))
        after_bytes, after_timer = exp(-steps * counter * minus_log), exp(-steps * timer * lagged * minus_log)
        gap = target - rate
        below = switch(line - target, line / kmax)
        moves.append(gap / 2 * (by_bytes + by_timer) - rate * alpha / 2 * cut)  # (9)
        moves.append(rate_ai * (after_bytes * by_bytes + after_timer * by_timer) * below - gap * cut)  # (8)
        moves.append(scheme.g / alpha_timer * (1 - exp(-alpha_timer * lagged * minus_log) - alpha))  # (7)
    start = [0.0]
    for flow in scenario.flows:
        start += [flow.initial_rate / rate_unit] * 2 + [scheme.initial_alpha]
    return moves, helpers, np.array(start), lag


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """A working directory without a pyproject.toml, which its build would read."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


class Contender:
    """The compiled problem; call it to integrate from the start."""

    def __init__(self, case: problem.Case, width: float | None) -> None:
        from jitcdde import jitcdde

        moves, helpers, self._start, lag = equations(case, width)
        with _elsewhere():
            self._dde = jitcdde(moves, helpers=helpers, delays=[0, lag], max_delay=lag, verbose=False)
            self._dde.compile_C(simplify=False, verbose=False)

    def __call__(self, tolerance: float, times: np.ndarray) -> np.ndarray:
        """Queues [bytes] at times [s], with this relative tolerance per step."""
        dde = self._dde
        dde.purge_past()
        dde.constant_past(self._start)
        dde.set_integration_parameters(
            rtol=tolerance, atol=1e-3 * tolerance, first_step=FIRST_STEP, min_step=MIN_STEP, max_step=MAX_STEP
        )
        dde.adjust_diff(shift_ratio=1e-5)
        return np.array([dde.integrate(t * SECOND)[0] for t in times]) * problem.scenario().wire_packet
