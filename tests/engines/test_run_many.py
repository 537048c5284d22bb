"""Many runs at once on threads: a few at a time, results of each, how far they are, and how they stop."""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar
from typing import Any

import pytest

from fluidcc.engines.run_many import Place, StoppedError, run_all, run_many
from fluidcc.progress import Bar

LETTER: ContextVar[str] = ContextVar("LETTER", default="none")


def test_jobs_are_handed_in_as_others_end() -> None:
    """Catches jobs that are handed in all at once, each with its memory."""
    begun: list[int] = []

    def work(job: int, place: Place) -> int:
        begun.append(job)
        return -job

    found = {}
    for job, result in run_many(work, range(100), threads=2):
        found[job] = result
        assert len(begun) <= len(found) + 4
    assert found == {job: -job for job in range(100)}


def test_results_are_in_the_order_of_jobs() -> None:
    """Catches results in the order in which they come in: the first job ends last."""
    second = threading.Event()

    def work(job: str, place: Place) -> str:
        if job == "a":
            assert second.wait(10)
            time.sleep(0.1)  # until its result is there
        else:
            second.set()
        return job.upper()

    assert run_all(work, ["a", "b"], threads=2) == ["A", "B"]


def looks(place: Place) -> None:
    place.look(0.5)


def draws(place: Place) -> None:
    with Bar("inside", 1, "runs") as bar:
        bar(0.5)


@pytest.mark.parametrize("look", [looks, draws])
def test_work_under_way_is_told_to_stop(look: Any) -> None:
    """Catches others that go on to their end, also where only a bar of theirs could tell them."""
    ends: list[str] = []
    begun = threading.Event()

    def work(job: int, place: Place) -> None:
        if job == 0:
            assert begun.wait(10)
            raise KeyboardInterrupt
        begun.set()
        until = time.monotonic() + 10
        try:
            while time.monotonic() < until:
                look(place)
        except StoppedError:
            ends.append("stopped")

    with pytest.raises(KeyboardInterrupt):
        list(run_many(work, range(2), threads=2))
    deadline = time.monotonic() + 5
    while not ends and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ends == ["stopped"]


def test_a_caller_that_takes_no_more_stops_the_rest() -> None:
    """Catches threads that outlive their caller's loop."""
    begun, stopped = threading.Event(), threading.Event()

    def work(job: int, place: Place) -> int:
        if job == 0:
            assert begun.wait(10)
        begun.set()
        try:
            while job:
                place.check()
        except StoppedError:
            stopped.set()
        return job

    runs = run_many(work, range(2), threads=2)
    assert next(runs) == (0, 0)
    assert not stopped.is_set()
    runs.close()
    assert stopped.wait(5)


def test_progress_counts_parts_of_jobs_and_has_the_words_of_the_furthest() -> None:
    """Catches a bar that knows whole jobs alone, one that a finished job leaves short, and words of a job behind."""
    told: list[tuple[Any, ...]] = []
    said = [threading.Event(), threading.Event()]

    def work(job: int, place: Place) -> None:
        if job == 0:
            place.look(0.5, "ahead")
            said[0].set()
            assert said[1].wait(10)
        else:
            assert said[0].wait(10)
            place.look(0.25, "behind")
            said[1].set()

    run_all(work, range(2), threads=2, report=lambda *each: told.append(each))
    assert told[0] == (0.25, "ahead")
    assert told[-1] == (1.0,)
    assert ("behind",) not in [each[1:] for each in told]


def test_threads_have_the_context_of_their_caller() -> None:
    """Catches threads that do not know what is set for all that the caller does, such as where rescued files go."""
    token = LETTER.set("a")
    try:
        assert run_all(lambda job, place: LETTER.get(), range(2), threads=2) == ["a", "a"]
    finally:
        LETTER.reset(token)
