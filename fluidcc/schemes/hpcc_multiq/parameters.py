"""MultiQ's parameters: HPCC's, with a utilisation that is the class's own."""

from __future__ import annotations

from typing import ClassVar

from fluidcc.contract.preset import EVALUATION, Preset
from fluidcc.scenario.parameters import parameter, register
from fluidcc.schemes.hpcc.parameters import HPCC


@register()
class HPCCMultiQ(HPCC):
    """Parameters of an HPCC sender in one of several classes (HPCC++ MultiQ).

    A class's weight is that of its `TrafficClass` among those of the same priority. The slides give neither the weights
    of their simulation nor its flavour of TCP, its backlog threshold beyond an example, or its packets' size.
    """

    multiq: str = parameter(
        "choice",
        "U of the port, or of the class: over the link, by MultiQ's branches, or over what is guaranteed or unused",
        default="slides",
        source="HPCC++ MultiQ",
        choices=("off", "class", "slides", "spare"),
    )

    name: ClassVar[str] = "hpcc-multiq"


PRESETS = {"paper": Preset(HPCCMultiQ()), "hpcc-eval": Preset(HPCCMultiQ(), None, EVALUATION)}
