"""Thresholds that others use, by port speed, each with its source: to compare with, not to copy."""

from __future__ import annotations

from typing import NamedTuple

from fluidcc.units import RATE, SIZE, TIME, parse, show


class Yardstick(NamedTuple):
    """Thresholds that somebody uses; sizes in bytes."""

    name: str
    kmin: float
    kmax: float
    pmax: float
    source: str

    def __str__(self) -> str:
        """Format the thresholds and their source in one line."""
        return f"{self.source}: Kmin {show(self.kmin, SIZE)}, Kmax {show(self.kmax, SIZE)}, Pmax {100 * self.pmax:g} %"


_PAPER_RATE, _ALIBABA_RATE = parse("40Gbps", RATE), parse("25Gbps", RATE)


def yardsticks(rate: float) -> tuple[Yardstick, ...]:
    """Return the reference thresholds for a port, the paper's first.

    Parameters
    ----------
    rate : float
        Of the port [bytes/s].

    Returns
    -------
    tuple of Yardstick
    """
    paper, alibaba = rate / _PAPER_RATE, rate / _ALIBABA_RATE
    return (
        Yardstick("paper", 5e3 * paper, 200e3 * paper, 0.01, "DCQCN, Fig. 14, from 40 Gb/s in proportion"),
        Yardstick(
            "alibaba",
            100e3 * alibaba,
            400e3 * alibaba,
            0.2,
            "Alibaba's, published with HPCC's simulator for each 25 Gb/s (High-Precision-Congestion-Control#21)",
        ),
        Yardstick("sonic", 1_048_576.0, 2_097_152.0, 0.05, "SONiC's template AZURE_LOSSLESS, for any speed"),
    )


def guide(rate: float, rtt: float) -> str:
    """A vendor's rule by round trip, in a line: Kmax of two to three bandwidth-delay products, and nothing of Kmin.

    Parameters
    ----------
    rate : float
        Of the port [bytes/s].
    rtt : float
        Round trip of an empty network [s].
    """
    low, high = (show(each * rate * rtt, SIZE) for each in (2, 3))
    return (
        f"a vendor's guide, 2 to 3 bandwidth-delay products at a round trip of {show(rtt, TIME)}: Kmax {low} to {high}"
    )
