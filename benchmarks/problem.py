"""The problem that fluidcc, a C kernel and JiTCDDE solve: two DCQCN flows as in the paper over one 40 Gb/s link."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.builders import incast
from fluidcc.engines.fluid.engine import Outcome, execute
from fluidcc.engines.fluid.network import Network, network_of
from fluidcc.engines.fluid.plan import Plan, plan_of
from fluidcc.scenario.model import Scenario
from fluidcc.schemes.dcqcn import DCQCN

HORIZON = 0.02  # s
STEP = 1e-6  # s
FLAGS = ("-O3", "-march=native", "-ffast-math", "-fno-math-errno", "-shared", "-fPIC")  # of the C compiler
# Of JiTCDDE: its time unit is 1 us, its bytes are packets: numbers of order one.
LEAST_MARKING = 1e-9
MOST_MARKING = 1 - 1e-9
SECOND = 1e6
FIRST_STEP, MIN_STEP, MAX_STEP = 0.1, 1e-9, 1000.0  # us


@dataclasses.dataclass(frozen=True)
class Case:
    """Where the two flows start from."""

    initial: tuple[str, str]
    alpha: float


# 41 Gb/s on 40 Gb/s: with the paper's g the queue neither empties nor passes Kmax, and no flow reaches its line rate.
SMOOTH = Case(("24Gbps", "17Gbps"), 0.15)
# As after a start at line rate: the queue passes Kmax, where marking jumps to 1, then empties for a while; R_T is held
# at the line rate.
ROUGH = Case(("40Gbps", "20Gbps"), 1.0)

CHUNK = 1024  # points per chunk: few enough for a core's cache, enough to pay for the fixed cost of a step


def scenario(case: Case = ROUGH) -> Scenario:
    """Two flows, preset paper."""
    return incast(2, initial_rate=list(case.initial), scheme=DCQCN(initial_alpha=case.alpha))


def network(points: int = 1, part: int = 0, parts: int = 1, case: Case = ROUGH) -> Network:
    """The network of a batch that sweeps g, or one part of the sweep; a single point has the paper's g."""
    net = network_of(scenario(case))
    if points == 1:
        return net
    group = net.groups[0]
    with jax.enable_x64(True):  # columns of JAX are in SI; arrays of NumPy must not hold rates
        columns = jax.tree.map(jnp.asarray, group.parameters)
    parameters = dataclasses.replace(columns, g=gains(points, part, parts)[None])
    return dataclasses.replace(net, groups=(dataclasses.replace(group, parameters=parameters),))


def gains(points: int, part: int = 0, parts: int = 1) -> np.ndarray:
    """Values of g, those of part ``part`` out of ``parts``."""
    return np.geomspace(1 / 1024, 1 / 64, points * parts)[part * points : (part + 1) * points]


def plan(until: float = HORIZON, dt: float = STEP, **options: Any) -> Plan:
    """Discretisation of a run of this problem."""
    return plan_of(network(), until=until, dt=dt, **options)


def ours(
    points: int = 1, part: int = 0, parts: int = 1, case: Case = ROUGH, **options: Any
) -> tuple[Outcome, float, float]:
    """Run fluidcc: outcome, seconds compiling, seconds integrating."""
    return execute(network(points, part, parts, case), plan(**options), points=points)


def c_compiler() -> str | None:
    """Path of a C compiler, if there is one."""
    return shutil.which("gcc") or shutil.which("cc")


class _Problem(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_double) for name in ("capacity", "line_rate", "packet", "kmin", "kmax", "pmax")),
        *((name, ctypes.c_double) for name in ("rate_ai", "byte_counter", "timer", "cnp_interval", "alpha_timer")),
        *((name, ctypes.c_double) for name in ("fast_recovery_steps", "initial_alpha")),
        ("initial_rate", ctypes.c_double * 2),
        ("dt", ctypes.c_double),
        *((name, ctypes.c_long) for name in ("lag", "depth", "stride", "samples")),
    )


@functools.cache
def library() -> ctypes.CDLL:
    """Compile and load the C kernel, which ctypes calls without Python's lock.

    Raises
    ------
    RuntimeError
        If there is no C compiler.
    """
    cc = c_compiler()
    if cc is None:
        raise RuntimeError("the C kernel needs gcc or cc, and there is neither")
    source = Path(__file__).with_name("dcqcn_kernel.c")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "dcqcn_kernel.so"
        subprocess.run([cc, *FLAGS, str(source), "-o", str(target), "-lmvec", "-lm"], check=True)
        loaded = ctypes.CDLL(str(target))
    pointer = ctypes.POINTER(ctypes.c_double)
    loaded.dcqcn_run.argtypes = (ctypes.POINTER(_Problem), ctypes.c_long, pointer, pointer)
    loaded.dcqcn_run.restype = ctypes.c_int
    return loaded


def in_c(values: np.ndarray, case: Case = ROUGH, until: float = HORIZON) -> np.ndarray:
    """Run the C kernel: queues (samples, points) [bytes] of a batch with these values of g."""
    made, chosen = scenario(case), plan(until)
    scheme, marking, link = made.flows[0].scheme, made.links[0].marking, made.links[0]
    assert marking is not None
    numbers = {
        name: getattr(scheme, name)
        for name in ("rate_ai", "byte_counter", "timer", "cnp_interval", "alpha_timer", "fast_recovery_steps")
    }
    this = _Problem(
        capacity=link.rate,
        line_rate=made.flows[0].line_rate,
        packet=made.wire_packet,
        kmin=marking.kmin,
        kmax=marking.kmax,
        pmax=marking.pmax,
        initial_alpha=scheme.initial_alpha,
        initial_rate=(ctypes.c_double * 2)(*(flow.initial_rate for flow in made.flows)),
        dt=chosen.dt,
        lag=round(scheme.feedback_delay / chosen.dt),
        depth=chosen.depth,
        stride=chosen.stride,
        samples=chosen.samples,
        **numbers,
    )
    values = np.ascontiguousarray(values)
    queue = np.empty((chosen.samples, values.size))
    pointer = ctypes.POINTER(ctypes.c_double)
    failed = library().dcqcn_run(
        ctypes.byref(this), values.size, values.ctypes.data_as(pointer), queue.ctypes.data_as(pointer)
    )
    if failed:
        raise MemoryError("the C kernel found no memory")
    return queue


def equations(case: Case, width: float | None) -> tuple[list[Any], list[tuple[Any, Any]], np.ndarray, float]:
    """Right-hand sides in (queue, rate, target, alpha, rate, target, alpha), helpers, initial state, and lag [us].

    JiTCDDE's language has neither projections nor jumps, so they are written as smooth switches (1 + tanh(x/width))/2,
    of a width that the benchmark varies together with the tolerance: a queue drains only while it is above 0, R_T rises
    only below the line rate (and R_C follows it), marking jumps to 1 above Kmax. A problem on which none of them acts
    is solved without. The kink of the marking curve at Kmin is (x + |x|)/2, and the marking probability is kept above
    `LEAST_MARKING`, because the powers of 1-p have no safe form at p = 0 in that language.

    ``width`` is that of the switches, in packets; None leaves them out.
    """
    from jitcdde import t, y
    from symengine import Abs, Symbol, exp, log, tanh

    helpers: list[tuple[Any, Any]] = []

    def shared(name: str, expression: Any) -> Any:
        """A term that is computed once, as in the other contenders."""
        helpers.append((Symbol(name), expression))
        return helpers[-1][0]

    made = scenario(case)
    link, scheme = made.links[0], made.flows[0].scheme
    marking = link.marking
    assert marking is not None
    packet, rate_unit = made.wire_packet, made.wire_packet * SECOND
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

    line = made.flows[0].line_rate / rate_unit
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
    for flow in made.flows:
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


class JiTCDDE:
    """The problem as JiTCDDE compiles it; call it to integrate from the start."""

    def __init__(self, case: Case, width: float | None) -> None:
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
        return np.array([dde.integrate(t * SECOND)[0] for t in times]) * scenario().wire_packet
