"""Threads over chunks of a batch, with BLAS kept to one thread each.

OpenBLAS divides even matrices of order 60 among all cores, and its threads then wait for one another actively:
eigenvalues of a batch took four times as long as on one thread, and more with other work on the machine.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numpy.linalg import _umath_linalg

_PREFIXES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")
_lock = threading.Lock()
_users: list[int] = []  # the number of threads to return to, once per user


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parallel(function: Callable[[Any], Any], work: Iterable[Any], threads: int) -> list[Any]:
    """Map, in threads: LAPACK runs without Python's lock."""
    work = list(work)
    with one_blas_thread():
        if threads == 1 or len(work) < 2:
            return [function(each) for each in work]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(function, work))


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """NumPy's OpenBLAS on one thread; another BLAS is left as it is."""
    found = _openblas()
    if found is None:
        yield
        return
    get, put = found
    with _lock:
        _users.append(_users[-1] if _users else get())
        put(1)
    try:
        yield
    finally:
        with _lock:
            before = _users.pop()
            if not _users:
                put(before)


@functools.cache
def _openblas() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Getter and setter of its number of threads, found among what NumPy's linear algebra is linked to."""
    try:
        library = ctypes.CDLL(_umath_linalg.__file__)
    except OSError:
        return None
    for prefix in _PREFIXES:
        with contextlib.suppress(AttributeError):
            get, put = (getattr(library, prefix.format(f"{verb}_num_threads")) for verb in ("get", "set"))
            return get, put
    return None
