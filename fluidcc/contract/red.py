"""RED on the instantaneous queue, DCQCN (5), in any world of `fluidcc.contract.law`."""

from __future__ import annotations

from typing import Any

import numpy as xp

_UNKNOWN = float("inf")  # width of a ramp of no slope: a link without marking


def red(queue: Any, kmin: Any, kmax: Any, pmax: Any) -> Any:
    """Probability that a packet which sees a queue is marked; it jumps to 1 above kmax."""
    width = kmax - kmin
    share = (queue - kmin) / xp.where((width > 0.0) & (width < _UNKNOWN), width, 1.0)
    on_ramp = xp.where(queue <= kmin, 0.0, xp.minimum(xp.maximum(share, 0.0), 1.0) * pmax)
    return xp.where(queue > kmax, 1.0, on_ramp)
