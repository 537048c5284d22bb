"""Flow level against packets on random fabrics and jobs, by the bounds stated before: 5 % in 90 % of jobs."""

from __future__ import annotations

import numpy as np
import pytest

import fluidcc as fc
from benchmarks.flow_level import CASES, case, measured
from fluidcc.engines.flow_level.run import flow_times
from fluidcc.workloads.fabrics import named_topology

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


@pytest.mark.parametrize("senders", [2, 5])
def test_senders_that_fill_a_port_together_from_line_rate_are_told_of_its_marks(senders: int) -> None:
    """Means over four seeds of the time of the last, 5 % like the jobs'; without marks they share the port at once.

    Packets have no fixed feedback delay, which DCQCN's default is.
    """
    rows = [(host, 7, 0.0, 2e6) for host in range(senders)]
    scheme = fc.DCQCN(feedback_delay=None)
    given = named_topology("leaf-spine:2x2x4").scenario(rows, ecmp_seed=1, scheme=scheme)
    packets = [max(fc.simulate(given, "30ms", engine="packet", seed=k).summary["fct_s"]) for k in range(4)]
    found = [flow_times(given, model="dynamics", seed=k).completion.max() for k in range(4)]
    assert np.mean(found) == pytest.approx(np.mean(packets), rel=AIM)
    assert np.mean(packets) > 2 * flow_times(given, model="ideal").completion.max()
