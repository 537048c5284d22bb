"""Numbers as ns-3 reads them: a bare rate is in bits/s there, and a bare time in seconds."""

from __future__ import annotations

import math

from fluidcc.errors import InputError
from fluidcc.units import LEAST_RATE, RATE, Rate, parse


def ns3_rate(text: str, name: str) -> Rate:
    """Read a rate with or without a unit [bytes/s].

    Parameters
    ----------
    text : str
        Such as ``100Gbps``, or ``100000000000.0``, as scripts that generate topologies print it.
    name : str
        What the rate is, for the error message.

    Raises
    ------
    InputError
        If it is none; and if it is bare and less than a megabit each second, which is a forgotten unit.
    """
    try:
        bits = float(text)
    except ValueError:
        return Rate(parse(text, RATE, name))
    if 0 < bits < LEAST_RATE:
        raise InputError(f"{name}: {text[:30]} without a unit is in bits/s there; write for example 100Gbps")
    if not 0 <= bits < math.inf:
        raise InputError(f"{name}: {text[:30]!r} is none; write for example 100Gbps")
    return Rate(bits / 8)
