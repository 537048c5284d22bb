"""ACC, sections 3.3, 6.3 and 6.4: what was simulated there: an ideal stop; deadlocks and completion times, at a cost.

What takes more packets than a check may is said to be not testable here, with how many it takes and why.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy import stats

from fluidcc.proofs.acc.pipe import ABOUT, HOSTS, LINE, LINK_DELAY, LINKS, share
from fluidcc.proofs.papers import ACC
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.workload_shares import drawn, share_below
from fluidcc.proofs.verdict.claim import Finding, Way, claim, rounds_to
from fluidcc.proofs.verdict.registry import main
from fluidcc.units import Seconds

WORK = 10**7  # packets that a check may take: some twenty seconds
PACKET, SEED = 1000, 0  # bytes; of the traffic of a run, drawn
WEB_SEARCH = "web-search"


@claim("acc-33-stop", ACC, "3.3, Fig. 3", "an ideal stopping time of F1 is 180 us, at N = 20")
def stop(hosts: int = HOSTS, printed: str = "180") -> Finding:
    """Compute the time to drain what F1 sends at half the line, beyond its share, in the RTT until it sees marks."""
    pace = share(hosts)
    law, of_bursts = (
        1e6 * float((LINE / 2 - rate) * 2 * LINKS * LINK_DELAY / rate) for rate in (pace, pace * (hosts + 1) / hosts)
    )
    queued = backlog(hosts)
    packets = 1e6 * queued / float(pace)
    return Finding(
        {
            "an RTT at 50 Gb/s beyond F1's share C/(N+1), sent at it": rounds_to(law, printed),
            "beyond C/N, the bursts' share without F1, sent at it": rounds_to(of_bursts, printed),
        },
        {
            "by_law_us": law,
            "with_the_bursts_share_us": of_bursts,
            "in_packets_us": packets,
            "backlog_bytes": queued,
            "pc_rate_gbps": 8e-9 * pace,
        },
        # Congestion is observed when the first mark is back; what came to P4 meanwhile is of whole packets.
        [Way("us: law, F1's packets in all queues over PC_rate", law, packets, ABOUT)],
        restricted=rounds_to(of_bursts, printed),
        conditions=f"with C/N for F1's share; with C/(N+1), which it has, {law:.0f} us by the same law",
        sample="a law, and beside it one run of packets, until congestion is observed, seed 1, which draws "
        f"{sample.MARKS}: one draw, so no interval",
    )


def backlog(hosts: int) -> float:
    """Bytes of F1 in the chain's queues one round trip after the bursts begin, in packets."""
    from fluidcc.proofs.acc.common import LINKS as PORTS
    from fluidcc.proofs.acc.common import FlowLog
    from fluidcc.proofs.acc.fig3 import DETECTED, scenario_of
    from fluidcc.proofs.shared.runs import packet_runs

    (trace,) = packet_runs([scenario_of(hosts, None)], 1.05 * DETECTED, log=True)
    log = FlowLog(trace, 1)
    return sum(float(log.backlog(np.array([DETECTED]), port)[0]) for port in PORTS)


def cost(packets: float, what: str) -> str:
    """Return why a claim is not tested if it takes more packets than a check may, else empty text."""
    if packets <= WORK:
        return ""
    return f"{packets:.2g} packets, {packets / WORK:.2g} times what a check may take: {what}"


@claim(
    "acc-63-table-2",
    ACC,
    "6.3, Table 2",
    "on a Clos unit with two failed links Web Search at 60 % ends in deadlock in none of 50 runs of 100 ms with ACC "
    "and HPCC, in 3 with DCQCN, in 37 with TIMELY",
)
def table_2(runs: int = 50, milliseconds: int = 100, rarest: Fraction = Fraction(3, 50)) -> Finding:
    """Compute how many runs distinguish no deadlock from DCQCN's share of them, and what they cost in packets."""
    from fluidcc.builders.workloads import poisson_flows
    from fluidcc.proofs.acc.table2 import HOSTS, LOAD

    needed = math.ceil(math.log(0.05) / math.log(1 - rarest))
    counted = next(n for n in range(1, 10_000) if stats.binom.cdf(0, n, float(rarest)) < 0.05)
    seconds = milliseconds / 1e3
    each = LOAD * HOSTS * float(LINE) * seconds / PACKET
    sizes = poisson_flows(HOSTS, load=LOAD, until=Seconds(seconds), seed=SEED)[:, 3]
    error = 5 * float(np.std(sizes) / np.mean(sizes)) / math.sqrt(len(sizes)) + 5 / math.sqrt(len(sizes))
    total = 4 * min(runs, needed) * each
    return Finding(
        {},
        {"packets_of_a_run": each, "runs_that_tell_none_from_the_rarest": needed, "packets_in_all": total},
        [
            Way("runs after which none is unlike DCQCN's share: logarithm, binomial", needed, counted),
            Way("packets of a run: load, flows drawn", each, float(sizes.sum()) / PACKET, error),
        ],
        missing=cost(
            total,
            f"{min(runs, needed)} runs of {milliseconds} ms with each of four schemes, as none in fewer than {needed} "
            f"may be chance beside {float(rarest):.0%}; fluidcc reproduce acc-table2 makes them",
        ),
        sample=f"nothing is run; the cost of a run is checked on {len(sizes)} drawn flows, seed {SEED}, to "
        f"{100 * error:.1f} % (5 standard errors)",
    )


@claim(
    "acc-64-fct",
    ACC,
    "6.4, Fig. 13(a)",
    "Web Search at 80 % on 320 servers: small flows' FCT with DCQCN is 3.3 (mean) and 11.5 times (99th percentile) "
    "that with ACC, which is 29 % and 40 % less than with HPCC",
)
def completion_times(about: float = ABOUT) -> Finding:
    """Packets at least: of so many small flows that the percentile's rank is known to 10 %, and of all beside them."""
    from fluidcc.builders.workloads import SIZES

    at, upto = np.array(SIZES[WEB_SEARCH]).T
    small = share_below(WEB_SEARCH, 1e5)
    mean = float(np.diff(upto) @ (at[1:] + at[:-1]) / 2)
    sizes = drawn(WEB_SEARCH)
    beside = sizes.sum() / np.count_nonzero(sizes <= 1e5) / PACKET
    error = 5 * (float(np.std(sizes)) / mean + math.sqrt((1 - small) / small)) / math.sqrt(len(sizes))
    per_small = mean / small / PACKET
    beyond = about**-2  # Poisson's: their number is known to 1/sqrt
    flows = beyond / 0.01
    total = 3 * flows * per_small
    return Finding(
        {},
        {
            "packets_for_each_small_flow": per_small,
            "small_flows": flows,
            "packets_of_three_schemes": total,
        },
        [Way("packets sent for each small flow: table, flows drawn", per_small, float(beside), error)],
        missing=cost(
            total,
            f"{flows:.0f} small flows, {beyond:.0f} of them beyond the 99th percentile, come with {per_small:.0f} "
            "packets each of flows of all sizes, with each of three schemes; how long the runs lasted is not printed",
        ),
        sample=f"nothing is run; packets for each small flow are checked on {len(sizes)} drawn flows, to "
        f"{100 * error:.1f} % (5 standard errors)",
    )


if __name__ == "__main__":
    main(__name__)
