"""Running the parts of a grid: on the cores of this machine, or on a Dask scheduler's workers.

Threads and not processes: the integration runs without Python's lock, and nothing is forked, which JAX's own threads
would not survive. Of either kind a few are under way at a time, whatever their number: each is handed in when one is
taken out.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

from fluidcc.errors import InputError

J = TypeVar("J")
R = TypeVar("R")


def on_threads(work: Callable[[J, threading.Event], R], jobs: Sequence[J], threads: int) -> Iterator[tuple[J, R]]:
    """Jobs and the results of ``work(job, stopped)`` as they come in.

    However this ends, the event is set then, and work that is under way may look at it and raise.
    """
    stopped = threading.Event()
    pool = ThreadPoolExecutor(threads)
    try:
        yield from _rolling(lambda job: pool.submit(work, job, stopped), wait, jobs, lambda: 2 * threads)
    finally:
        stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)


def on_dask(
    address: Any, work: Callable[..., R], jobs: Sequence[J], arguments: Callable[[J], tuple[Any, ...]]
) -> Iterator[tuple[J, R]]:
    """Jobs and the results of ``work(*arguments(job))`` as they come in; one is under way for each of Dask's threads.

    Parameters
    ----------
    address : str or distributed.Client
    work : callable
    jobs : sequence
    arguments : callable
        Of a job; called when it is handed in.

    Raises
    ------
    InputError
        If Dask is not installed, there is no scheduler, or its workers die.
    """
    try:
        from distributed import Client, KilledWorker
        from distributed import wait as dask_wait
    except ImportError:
        raise InputError("dask: needs dask.distributed; install it with: pip install 'fluidcc[sweep]'") from None
    client: Any = address
    own = False
    if isinstance(address, str):
        try:
            client, own = Client(address, timeout=10), True
        except (OSError, ValueError, TypeError) as error:
            raise InputError(
                f"dask: no scheduler at {address[:80]!r} ({error}); write for example tcp://host:8786"
            ) from None
    try:
        yield from _rolling(
            lambda job: client.submit(work, *arguments(job), pure=False),
            dask_wait,
            jobs,
            lambda: max(1, sum(client.nthreads().values())),
        )
    except KilledWorker as error:
        raise InputError(
            f"dask: workers died at one chunk again and again, {error.last_worker} last; give them more memory or "
            "fewer threads. Chunks in the store are kept: go on with --resume"
        ) from None
    finally:
        if own:
            client.close()


def _rolling(
    submit: Callable[[J], Any], wait: Callable[..., Any], jobs: Sequence[J], most: Callable[[], int]
) -> Iterator[tuple[J, Any]]:
    """Jobs and results as they come in; a job is handed in when the result of another has been dealt with."""
    left = iter(jobs)
    running: dict[Any, J] = {}
    try:
        while True:
            for job in itertools.islice(left, max(0, most() - len(running))):
                running[submit(job)] = job
            if not running:
                return
            future = next(iter(wait(list(running), return_when="FIRST_COMPLETED").done))
            yield running.pop(future), future.result()
    finally:
        for future in running:
            future.cancel()
