"""Metrics of several runs of one scenario, by hand; nothing is compiled."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from fluidcc.engines.common.outcome import Outcome, QueueMoments, metrics_of
from fluidcc.engines.packet.layout import DATA, PAUSE, PAUSED, RECEIVED, RESUME
from fluidcc.engines.packet.record import bin_of, write
from tests.engines.packet.plain import plain


def moments(mean: float) -> QueueMoments:
    """A queue of 2 s that is always as long."""
    spent, area = np.zeros(8), np.zeros(8)
    return QueueMoments(2.0, 2 * mean, 2 * mean**2, mean, mean, mean, 0.5, spent, area)


def outcome(*means: float) -> Outcome:
    return Outcome([moments(mean) for mean in means], [0, 0], np.array([1.0, 3.0]), np.array([1.0, 1.0]), 5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # bins without time have no percentiles
def test_queues_are_those_of_the_link_with_the_largest_mean() -> None:
    """Over all runs: the second link's, which has less than the first in one of them."""
    together, each, rates = metrics_of([outcome(30.0, 10.0), outcome(0.0, 50.0)])
    assert together["queue_bytes.mean"] == pytest.approx(30.0)
    assert each["queue_bytes.mean"].tolist() == [10.0, 50.0]
    assert rates.tolist() == [2.0]


def test_bins_of_packets_queues_are_a_percent_wide_up_to_306_gb() -> None:
    """Each begins at 64 KiB times a power of 1.01. Catches bins that end at a megabyte or a gigabyte."""
    found = plain(bin_of)
    assert [found(length) for length in (0, 127, 128, 65535)] == [0, 0, 1, 511]
    for k in (1, 100, 770, 970, 1535):  # 770 is at 139 MB, 970 at 1 GB
        edge = 65536 * 1.01**k
        assert (found(edge * (1 - 1e-6)), found(edge * (1 + 1e-6))) == (511 + k, 512 + k)
    assert found(1e15) == 2047


def test_seeds_of_two_engines_are_pooled() -> None:
    """The hybrid has other bins than packets, to which a seed beyond the buffer goes. Catches adding up both as one."""

    def run(spent: list[float], queue: list[float]) -> Outcome:
        area = np.array(spent) * queue
        link = QueueMoments(sum(spent), area.sum(), 0.0, 0.0, 0.0, 0.0, 0.5, np.array(spent), area)
        return Outcome([link], [0, 0], np.array([1.0, 3.0]), np.array([1.0, 1.0]), 5)

    together, _, _ = metrics_of([run([1.0, 0.0, 1.0], [0.0, 0.0, 40.0]), run([1.0, 1.0], [20.0, 90.0])])
    names = ("mean", "p5", "p50", "p75", "p95")
    assert [together[f"queue_bytes.{name}"] for name in names if f"queue_bytes.{name}" in together] == [
        37.5,
        0.0,
        20.0,
        90.0,
    ]


@pytest.mark.parametrize(
    ("frames_only", "kept"), [(0, [PAUSE, DATA, PAUSE, RESUME]), (1, [PAUSE, RESUME])], ids=["all", "frames"]
)
def test_a_fabric_s_log_has_frames_of_pfc_that_arrive_alone(frames_only: int, kept: list[int]) -> None:
    """Catches a log of all but those, which would fill a fabric's memory, or of none."""
    core, log = SimpleNamespace(frames_only=frames_only, logged=0, now=7), [SimpleNamespace() for _ in range(4)]
    for what, kind in ((RECEIVED, PAUSE), (RECEIVED, DATA), (PAUSED, PAUSE), (RECEIVED, RESUME)):
        plain(write)(core, log, what, 0, 0, kind, 0, 0, 0)
    assert [line.kind for line in log[: core.logged]] == kept
