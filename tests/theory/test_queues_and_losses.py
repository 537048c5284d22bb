"""Closed forms of a queue of periodic sources and of go-back-N, against counting by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fluidcc.errors import InputError
from fluidcc.theory.loss_recovery import go_back_n_goodput
from fluidcc.theory.queueing import bridge_exceeds, bridge_mean, exceeds, mean_waiting


@pytest.mark.parametrize(("sources", "load"), [(1, 0.5), (1, 1.0), (2, 0.5), (2, 1.0), (3, 0.9), (3, 1.0)])
def test_work_left_by_packets_at_random_phases(sources: int, load: float) -> None:
    """By the ages of each source's last packet: work is the most of n less the age of the n-th youngest."""
    period = sources / load
    fine = {1: 4000, 2: 400, 3: 60}[sources]
    one = (np.arange(fine) + 0.5) / fine * period
    ages = np.sort(np.stack([each.ravel() for each in np.meshgrid(*[one] * sources)], axis=1), axis=1)
    work = np.maximum((np.arange(1, sources + 1) - ages).max(axis=1), 0.0)
    at = np.array([0.1, 0.5, 0.9, 1.3, 2.2])
    assert exceeds(at, sources, load) == pytest.approx([(work > x).mean() for x in at], abs=0.02)
    waiting = np.maximum(np.ceil(work) - 1, 0).mean()
    assert mean_waiting(sources, load) == pytest.approx(waiting, abs=0.02)
    assert exceeds(0.0, sources, load) == pytest.approx(load)  # as long as the server is busy


def test_work_of_one_and_two_packets_in_closed_form() -> None:
    """One source's work is by its age alone; two leave more than a packet where both are younger than 2 - x."""
    assert exceeds([0.0, 0.25, 1.0, 2.0], 1, 0.5) == pytest.approx([0.5, 0.375, 0.0, 0.0])
    assert mean_waiting(1, 0.7) == pytest.approx(0.0, abs=1e-15)
    D = 4.0  # two packets, load 1/2: for x in [1, 2] both are younger than 2 - x
    assert exceeds(1.5, 2, 0.5) == pytest.approx((0.5 / D) ** 2 * (D - 0.5) / (D - 0.5), rel=1e-12)
    assert mean_waiting(2, 0.5) == pytest.approx((1 / D) ** 2, rel=1e-12)


def test_the_bridge_of_heavy_traffic() -> None:
    """exp(-2 x (x + D - N) / N), its integral at full load, and the exact form of many sources."""
    assert bridge_exceeds([0.0, 2.0, 3.0], 8, 0.8) == pytest.approx(np.exp([0.0, -2.0, -3.75]))
    assert bridge_mean(8) == pytest.approx(math.sqrt(math.pi))
    x = np.linspace(0, 60, 6001)
    assert np.trapezoid(bridge_exceeds(x, 50, 1.0), x) == pytest.approx(bridge_mean(50), rel=1e-6)
    assert bridge_exceeds(np.array([5.0, 20.0]), 1000, 1.0) == pytest.approx(exceeds([5.0, 20.0], 1000, 1.0), rel=0.05)


def test_sources_and_loads_that_are_none() -> None:
    for sources in (0, -1, True, 2.0):
        with pytest.raises(InputError, match="sources"):
            exceeds(1.0, sources, 0.5)  # type: ignore[arg-type]
    for load in (0.0, -0.1, 1.01):
        with pytest.raises(InputError, match="load"):
            bridge_exceeds(1.0, 2, load)
    assert exceeds(0.5, np.int64(1), 1.0) == pytest.approx(0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("loss", "trip", "timeout"), [*itertools.product([0.1, 0.5], [3.0, 3.2], [math.inf, 7.0, 6.5])]
)
def test_goodput_is_packets_over_slots(loss: float, trip: float, timeout: float) -> None:
    """Each packet takes a slot; a loss the slots until the NACK is obeyed, and each loss again those until the next."""
    window = 1 + math.ceil(trip)
    again = window if math.isinf(timeout) else math.ceil(timeout)
    slots = 1.0 + loss * window + loss * sum(loss**k for k in range(1, 60)) * (1 + again)
    assert go_back_n_goodput(loss, trip, timeout) == pytest.approx(1 / slots, rel=1e-12)


def test_goodput_at_its_bounds() -> None:
    """A round trip of whole slots, to rounding, is that many; no loss, no cost."""
    assert go_back_n_goodput(0.0, 5.0) == 1.0
    assert go_back_n_goodput(0.1, 3.0 + 1e-10, 7.0 + 1e-10) == go_back_n_goodput(0.1, 3.0, 7.0)
    assert go_back_n_goodput(0.1, 3.0 + 1e-8) < go_back_n_goodput(0.1, 3.0)
    for arguments in ((1.0, 3.0), (-0.1, 3.0), (0.1, 0.0), (0.1, math.inf), (0.1, 3.0, 0.0), (math.nan, 3.0)):
        with pytest.raises(InputError):
            go_back_n_goodput(*arguments)
