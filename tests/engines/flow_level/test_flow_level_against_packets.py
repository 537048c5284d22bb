"""Flow level against packets on random fabrics and jobs, by the bounds stated before: 5 % in 90 % of jobs."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.flow_level import CASES, case, measured

AIM, SHARE = 0.05, 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    "scheme",
    [
        "none",
        "dctcp",
        pytest.param(
            "hpcc",
            marks=pytest.mark.xfail(
                reason="the last of an all-to-all's flows is late in packets: which windows fall behind is decided by "
                "the order of packets, which rates do not have (docs: flow level)"
            ),
        ),
        pytest.param(
            "swift",
            marks=pytest.mark.xfail(
                reason="where the round trip exceeds Swift's target, windows below a packet decide (docs: flow level)"
            ),
        ),
    ],
)
def test_jobs_end_when_they_do_by_packets(scheme: str) -> None:
    """Over with the miss that is one too many; all-to-alls, which are missed most, come first."""
    jobs = [each for each in map(case, range(CASES)) if each.job != "poisson"]
    missed = 0
    for each in sorted(jobs, key=lambda job: job.job):
        missed += not abs(measured(each, scheme, ["dynamics"])["dynamics"].end) <= AIM
        assert missed <= (1 - SHARE) * len(jobs)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["timely", "acc"])
def test_rings_end_when_they_do_by_packets(scheme: str) -> None:
    """Three of the first four: who is starved in a permutation or an all-to-all is decided by the order of packets."""
    ends = [measured(case(number), scheme, ["dynamics"])["dynamics"].end for number in (0, 4, 8, 12)]
    assert sum(abs(end) <= AIM for end in ends) >= 3, ends


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["none", "hpcc", "swift", "dctcp"])
def test_half_of_the_flows_of_a_workload_are_as_long_as_by_packets(scheme: str) -> None:
    """The median of the errors of each bin's median, over the seven workloads; 5 % like the jobs'."""
    found = [measured(each, scheme, ["dynamics"])["dynamics"] for each in map(case, range(3, CASES, 4))]
    for low, high in ((0.0, 10e3), (10e3, 100e3), (100e3, 1e6), (1e6, np.inf)):
        errors = np.array([each.error(50, low, high) for each in found])
        assert np.nanmedian(np.abs(errors)) <= AIM
