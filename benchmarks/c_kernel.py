"""The C kernel: compiled when first used, called through ctypes (which releases Python's lock)."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import problem

FLAGS = ("-O3", "-march=native", "-ffast-math", "-fno-math-errno", "-shared", "-fPIC")


def compiler() -> str | None:
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
    """Compile and load the kernel.

    Raises
    ------
    RuntimeError
        If there is no C compiler.
    """
    cc = compiler()
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


def run(gains: np.ndarray, case: problem.Case = problem.ROUGH, until: float = problem.HORIZON) -> np.ndarray:
    """Queues (samples, points) [bytes] of a batch with these values of g."""
    scenario, plan = problem.scenario(case), problem.plan(until)
    scheme, marking, link = scenario.flows[0].scheme, scenario.links[0].marking, scenario.links[0]
    assert marking is not None
    numbers = {
        name: getattr(scheme, name)
        for name in ("rate_ai", "byte_counter", "timer", "cnp_interval", "alpha_timer", "fast_recovery_steps")
    }
    this = _Problem(
        capacity=link.rate,
        line_rate=scenario.flows[0].line_rate,
        packet=scenario.wire_packet,
        kmin=marking.kmin,
        kmax=marking.kmax,
        pmax=marking.pmax,
        initial_alpha=scheme.initial_alpha,
        initial_rate=(ctypes.c_double * 2)(*(flow.initial_rate for flow in scenario.flows)),
        dt=plan.dt,
        lag=round(scheme.feedback_delay / plan.dt),
        depth=plan.depth,
        stride=plan.stride,
        samples=plan.samples,
        **numbers,
    )
    gains = np.ascontiguousarray(gains)
    queue = np.empty((plan.samples, gains.size))
    pointer = ctypes.POINTER(ctypes.c_double)
    failed = library().dcqcn_run(
        ctypes.byref(this), gains.size, gains.ctypes.data_as(pointer), queue.ctypes.data_as(pointer)
    )
    if failed:
        raise MemoryError("the C kernel found no memory")
    return queue
