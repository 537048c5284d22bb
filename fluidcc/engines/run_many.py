"""Many runs, on the threads of this machine or on the workers of a Dask scheduler.

Threads and not processes: the loops run without Python's lock, and nothing is forked, which JAX's own threads would not
survive. A few are under way at a time, whatever their number: each is handed in when one is taken out. Where a Dask
scheduler computes, a thread here waits for each: what is read and kept stays in this process.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any, TypeVar

from fluidcc.compiling.threads import cores
from fluidcc.errors import InputError
from fluidcc.progress import watch

J = TypeVar("J")
R = TypeVar("R")

_MOST_WAITING = 1 << 12  # threads that wait for workers
_LOOK = 1.0  # s between looks for new workers
_KEPT = "What is in a store or a folder is kept: go on with --resume, or run the same again"


class StoppedError(Exception):
    """The work was stopped, because other work failed or was interrupted."""


class SchedulerError(InputError):
    """A Dask scheduler that cannot be used: no choice among scenarios or engines mends it."""


class Place:
    """Place of one job among the others: where it computes, how far it is, whether it is to stop."""

    def __init__(self, client: Any, stopped: threading.Event, told: Callable[..., None]) -> None:
        self._client, self._stopped, self._told, self._future = client, stopped, told, None

    def check(self) -> None:
        """Raise `StoppedError` if the job is to stop."""
        if self._stopped.is_set():
            raise StoppedError

    def look(self, share: float, *words: str) -> None:
        """Report the share of the job that is done, and in words where it is; raise as `check` does."""
        self.check()
        self._told(share, *words)

    def compute(self, function: Callable[..., R], *arguments: Any, **options: Any) -> R:
        """Call a function, on a Dask worker if there are any; its ``report`` is `look`, or on a worker raises as that.

        For a worker, function, arguments and result must be such that pickle takes them.
        """
        if self._client is None:
            return function(*arguments, report=self.look, **options)
        self._future = future = self._client.submit(_on_worker, function, arguments, options, pure=False)
        if self._stopped.is_set():
            self.stop()
        return future.result()

    def stop(self) -> None:
        """Give up what a worker computes."""
        if self._future is not None:
            self._future.cancel()


def run_many(
    work: Callable[[J, Place], R],
    jobs: Sequence[J],
    *,
    threads: int | None = None,
    dask: Any = None,
    report: Callable[..., None] | None = None,
) -> Generator[tuple[J, R], None, None]:
    """Yield jobs and the results of ``work(job, place)`` as they come in.

    The first that fails ends it, and so does Ctrl-C: the others then raise at their next look. So does every `Bar` in
    them. Each runs in a copy of the caller's context.

    Parameters
    ----------
    work : callable
        What it does by ``place.compute`` is done by workers, if there are any.
    jobs : sequence
    threads : int
        Of this machine; one per core by default.
    dask : str or distributed.Client
        Scheduler in place of these: one job is under way for each thread of its workers.
    report : callable
        Given the share of all jobs that is done, and the words of the one that is furthest; such as a `Bar`.

    Raises
    ------
    SchedulerError
        As `connected` does.
    """
    stopped, lock = threading.Event(), threading.Lock()
    shares: dict[int, float] = {}  # of jobs that said how far they are
    done = 0

    def told(k: int, share: float, *words: str) -> None:
        with lock:
            shares[k] = share
            first = max(shares, key=shares.__getitem__)
            whole = (done + sum(shares.values())) / len(jobs)
        if report is not None and k == first:
            report(whole, *words)

    with connected(dask) as client:
        pool = ThreadPoolExecutor(_MOST_WAITING if client is not None else threads or cores())
        left, running = iter(enumerate(jobs)), dict[Future[R], tuple[int, J, Place]]()
        try:
            while True:
                most = max(1, sum(client.nthreads().values())) if client is not None else 2 * (threads or cores())
                for k, job in itertools.islice(left, max(0, most - len(running))):
                    place = Place(client, stopped, lambda *said, k=k: told(k, *said))
                    running[pool.submit(copy_context().run, _begin, work, job, place)] = k, job, place
                if not running:
                    return
                wait(running, None if client is None else _LOOK, FIRST_COMPLETED)
                if (future := next((each for each in running if each.done()), None)) is None:
                    continue
                k, job, _ = running.pop(future)
                found = future.result()
                with lock:
                    shares.pop(k, None)
                    done += 1
                    whole = (done + sum(shares.values())) / len(jobs)
                yield job, found
                if report is not None:
                    report(whole)
        finally:
            stopped.set()
            for _, _, place in running.values():
                place.stop()
            pool.shutdown(wait=False, cancel_futures=True)


def run_all(work: Callable[[J, Place], R], jobs: Sequence[J], **options: Any) -> list[R]:
    """Return the results of all jobs in their order; see `run_many`."""
    found = dict(run_many(lambda k, place: work(jobs[k], place), range(len(jobs)), **options))
    return [found[k] for k in range(len(jobs))]


@contextlib.contextmanager
def connected(dask: Any) -> Iterator[Any]:
    """Connect to a Dask scheduler, for as long as the context lasts.

    Parameters
    ----------
    dask : str, distributed.Client or None
        Address, or a client, which stays open; without one there is none.

    Raises
    ------
    SchedulerError
        If Dask is not installed, there is no scheduler, it is lost, or its workers die.
    """
    if dask is None:
        yield None
        return
    try:
        from distributed import Client, KilledWorker
    except ImportError:
        raise SchedulerError("dask: needs dask.distributed; install it with: pip install 'fluidcc[sweep]'") from None
    client: Any = dask
    if isinstance(dask, str):
        try:
            client = Client(dask, timeout=10, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise SchedulerError(
                f"dask: no scheduler at {dask[:80]!r} ({error}); write for example tcp://host:8786"
            ) from None
    try:
        yield client
    except KilledWorker as error:
        raise SchedulerError(
            f"dask: workers died at one job again and again, {error.last_worker} last; give them more memory or fewer "
            f"threads. {_KEPT}"
        ) from None
    except CancelledError:
        raise SchedulerError(f"dask: the scheduler was lost; start it again. {_KEPT}") from None
    finally:
        if client is not dask:
            client.close()


def _begin(work: Callable[[J, Place], R], job: J, place: Place) -> R:
    """Run a job in its thread."""
    watch.set(place.check)
    place.check()
    return work(job, place)


def _on_worker(function: Callable[..., R], arguments: tuple[Any, ...], options: dict[str, Any]) -> R:
    """Run a function on a Dask worker, until nobody waits for it any more."""
    from distributed import get_worker

    worker: Any = get_worker()
    key = worker.get_current_task()

    def check() -> None:
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise StoppedError

    token = watch.set(check)
    try:
        return function(*arguments, report=lambda *_: check(), **options)
    finally:
        watch.reset(token)
