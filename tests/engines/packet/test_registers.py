"""HPCC's registers per link in packets (A.3): the shares that equation (7) promises, and what W_AI is needed for them.

``python -m tests.engines.packet.test_registers`` prints what is measured here.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import fluidcc as fc


def shares(alpha: float, rate_ai: str, until: str = "20ms") -> np.ndarray:
    """Rates [Gb/s] of a flow over two links at 100 Gb/s and of two over one each, and receivers' idle links behind."""
    scheme = fc.HPCC(registers="per-link", alpha_fair=alpha, rate_ai=rate_ai)
    scenario = fc.parking_lot(3, rate="100Gbps", scheme=scheme)
    return np.array(fc.simulate(scenario, until, engine="packet").summary["rate_bytes_per_s"]) * 8e-9


@pytest.mark.parametrize("alpha", [1.0, 2.0, 4.0, math.inf])
def test_registers_share_a_parking_lot_alpha_fairly(alpha: float) -> None:
    """R = (sum of R_i^-alpha)^(-1/alpha) over two equal links: short flows get 2^(1/alpha) times the long one's rate.

    Within 2 %: 1 % for the registers of links that do not limit, 1 % for whole packets. W_AI of 2 Gb/s, 3 % of U, lies
    above the noise of U; with less, registers of one link that differ in it a little differ much (A.3).
    """
    long, *short = shares(alpha, "2Gbps")
    assert np.mean(short) / long == pytest.approx(2 ** (1 / alpha), rel=0.02)


if __name__ == "__main__":
    for exponent in (1.0, 2.0, 4.0, math.inf):
        for increase in ("150Mbps", "500Mbps", "2Gbps"):
            flows = shares(exponent, increase)
            ratio = flows[1:].mean() / flows[0]
            print(f"alpha {exponent:g}, W_AI/T {increase}: {flows.round(1)}, {ratio:.3f} for {2 ** (1 / exponent):.3f}")
