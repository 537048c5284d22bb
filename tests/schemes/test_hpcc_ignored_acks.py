"""HPCC's fluid where an ACK is ignored (probabilistic feedback): rate and window are what they were before it.

The packets' rule is that an ACK that is ignored returns without a new rate. In the simulator's variant a rate may lie
below a packet per T while a packet may always be in flight: the window is then a packet, and no rate follows from it.
"""

from __future__ import annotations

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.bind import binder
from fluidcc.contract.signals import Progress
from fluidcc.schemes.hpcc import fluid
from tests.schemes.plain_laws import plain

hpcc = plain(fluid)
LINE, PACKET = 12.5e9, 1000.0
ONE = np.ones((1, 1))
EXACT = 1e-12  # relative: a product and a quotient by T


@pytest.mark.parametrize(("variant", "share"), [("hpcc-sim", 0.0099), ("hpcc-sim", 0.19), ("paper", 0.19)])
def test_an_ignored_ack_leaves_rate_and_window(variant: str, share: float) -> None:
    """At U = 1.05 eta without increase: a rate of a share of the line's is kept, or divided by 1.05, and nothing else.

    It is divided at the ACK with which the shares of those that would divide it add up to 1 (III-D, on average). T is
    4 us and more, so that a packet per T is 0.02 of the line rate: one of the shares is below it.
    """
    scheme = fc.HPCC(variant=variant, w_ai=0.0, probabilistic=True, min_rate="10Mbps", sampling=1)
    scenario = fc.incast(1, rate="100Gbps", scheme=scheme)
    p = binder(scenario)(scenario.flows[0])
    T, rate = p.base_rtt, share * LINE
    assert (rate * T < PACKET) == (share < 0.1)
    state = hpcc.start(p, LINE * ONE, (1, 1), 1)
    state = state._replace(
        rate=rate * ONE,
        window=max(rate * T, PACKET) * ONE,
        reference_window=rate * T * ONE[None],
        utilisation=1.05 * 0.95 * ONE[None],
        last_update=0 * ONE,
    )
    observed, cuts, k = 0.0, 0, 0
    while cuts < 2:
        k += 1
        told = (k * PACKET + 5 * PACKET, k * PACKET, PACKET, PACKET, PACKET, LINE)
        progress = Progress(*(x * ONE for x in told), ONE[None], 1e-5 * ONE)
        state = hpcc.jump(p, state, progress, hpcc.Feedback(state.utilisation, None))
        observed += rate / LINE
        if observed >= 1:
            rate, observed, cuts = rate / 1.05, 0.0, cuts + 1
        assert float(state.rate[0, 0]) == pytest.approx(rate, rel=EXACT)
        window = max(rate * T, PACKET) if variant == "hpcc-sim" else rate * T
        assert float(state.window[0, 0]) == pytest.approx(window, rel=EXACT)
    assert k == {0.0099: 102 + 107, 0.19: 6 + 6}[share]
