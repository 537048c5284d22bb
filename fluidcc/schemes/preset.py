"""What a preset sets: the scheme, the marking that goes with it, and the network around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from fluidcc.scenario import RED, resolve_marking
from fluidcc.units import RATE, quantity


class Preset(NamedTuple):
    """A named set of parameters.

    Parameters
    ----------
    scheme : scheme parameters
    marking : RED or None
    network : mapping
        Fields of `Scenario` that belong to it, for example ``header_bytes``.
    marking_rate : quantity or None
        If given, ``marking`` holds for a link of this rate, and its thresholds scale with the link's.
    """

    scheme: Any
    marking: RED | None = None
    network: Mapping[str, Any] = MappingProxyType({})
    marking_rate: Any = None

    def marking_at(self, rate: Any) -> RED | None:
        """Marking of a link of some rate (text or bytes/s; may be traced)."""
        if self.marking is None or self.marking_rate is None:
            return self.marking
        marking = resolve_marking(self.marking)
        ratio = quantity(rate, RATE, "rate") / quantity(self.marking_rate, RATE, "rate")
        return dataclasses.replace(marking, kmin=marking.kmin * ratio, kmax=marking.kmax * ratio)
