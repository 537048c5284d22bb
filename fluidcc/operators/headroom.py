"""The headroom that a lossless priority needs behind its cable, as a range: vendors call such sums first estimates.

What may still come after a PAUSE is sent: what is on the cable, there and back, at the port's rate; a packet that is
being sent at either end; what leaves the other end before it obeys; and the chip's own delay. SONiC's published sum for
NVIDIA's switches (sonic-swss, `cfgmgr/buffer_headroom_mellanox.lua`) is followed: light at 198 000 km/s in the cable,
the response times of IEEE 802.3 31B.3.7, 0.8 KiB in the chip, and 1 KiB of lossless MTU. Its low end takes full
packets; its high end packets of 64 B, each of which fills a cell of 144 B.
"""

from __future__ import annotations

from fluidcc.units import Rate

_LIGHT = 1.98e8  # m/s
_CHIP, _LOSSLESS_MTU = 0.8 * 1024, 1024  # bytes
_CELL, _LEAST_PACKET = 144, 64  # bytes
_GBPS = Rate(1e9 / 8)
QUANTUM = 512 // 8  # bytes of a pause quantum
# Pause quanta within which a port obeys, by rate [Gb/s].
QUANTA = {10: 67, 25: 80, 40: 118, 50: 147, 100: 394, 200: 453, 400: 905, 800: 905}


def needed(rate: float, cable: float, mtu: float) -> tuple[float, float]:
    """Least and largest estimate of the headroom, SONiC's ``xoff`` [bytes].

    Parameters
    ----------
    rate : float
        Of the port [bytes/s].
    cable : float
        Its length [m].
    mtu : float
        Largest packet of the port [bytes].
    """
    speed = rate / _GBPS
    nearest = min(QUANTA, key=lambda known: abs(known - speed))
    on_the_way = mtu + 2 * cable / _LIGHT * rate + _CHIP + QUANTA[nearest] * QUANTUM
    return _LOSSLESS_MTU + on_the_way, _LOSSLESS_MTU + on_the_way * _CELL / _LEAST_PACKET
