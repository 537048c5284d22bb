"""Presets: the scheme, the marking that goes with it, and the network around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from fluidcc.scenario.model import PFC, RED, resolve_marking
from fluidcc.surface import constructor, public
from fluidcc.units import RATE, quantity, refuse_bare_rate


@constructor(lambda preset: refuse_bare_rate(preset.marking_rate, "Preset marking_rate"))
class Preset(NamedTuple):
    """A named set of parameters.

    Parameters
    ----------
    scheme : scheme parameters
    marking : RED or None
    network : mapping
        Fields of `Scenario` that belong to it, for example ``header_bytes``.
    marking_rate : quantity or None
        If given, ``marking`` holds for a link of this rate [bytes/s], and its thresholds scale with the link's.
    """

    scheme: Any
    marking: Any = None
    network: Mapping[str, Any] = MappingProxyType({})
    marking_rate: Any = None

    @public()
    def marking_at(self, rate: Any) -> RED | None:
        """Marking of a link of some rate.

        Parameters
        ----------
        rate : quantity
            [bytes/s]; may be traced.

        Returns
        -------
        RED or None
        """
        refuse_bare_rate(rate, "rate")
        if self.marking is None or self.marking_rate is None:
            return self.marking
        marking = resolve_marking(self.marking)
        ratio = quantity(rate, RATE, "rate") / quantity(self.marking_rate, RATE, "rate")
        return dataclasses.replace(marking, kmin=marking.kmin * ratio, kmax=marking.kmax * ratio)

    @public()
    def options(self) -> dict[str, Any]:
        """Options of a builder: scheme, marking as a function of a link's rate, and fields of the network.

        Returns
        -------
        dict

        Examples
        --------
        >>> import fluidcc as fc
        >>> chosen = fc.preset("hpcc", "hpcc-sim").options()
        >>> fc.incast(8, rate="100Gbps", **chosen) == fc.incast(8, rate="100Gbps", scheme="hpcc", preset="hpcc-sim")
        True
        """
        return {"scheme": self.scheme, "marking": self.marking_at, **self.network}


# The network of the HPCC authors' public simulator: 48 B of headers, ACKs of 46 B before padding and telemetry,
# whole nanoseconds, windows of payload, PFC with dynamic thresholds.
SIMULATOR = {
    "header_bytes": "48B",
    "ack_bytes": "46B",
    "timing": "ns3",
    "window_unit": "payload",
    "buffer": 32 * 2**20,
    "pfc": PFC(alpha=1 / 8, xon_gap=3072.0, reserve=4096.0),
}
# HPCC section 5.1: PFC once an ingress queue exceeds 1/8 of the free buffer (printed as 11 %), 32 MB of buffer.
EVALUATION = {"buffer": "32MB", "pfc": PFC(alpha=1 / 8)}
