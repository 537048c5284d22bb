"""Systems that are recognised only to be refused, so that nobody is advised in another system's words."""

from __future__ import annotations

import dataclasses
import re

from fluidcc.errors import InputError
from fluidcc.operators.switches.description import Description, Words


@dataclasses.dataclass
class UnreadSystem:
    """A reader that refuses: its system, and a pattern of lines that only this system has."""

    WORDS: Words
    signs: str

    def recognises(self, text: str, /) -> bool:
        """Tell whether a text is of this system."""
        return re.search(self.signs, text, re.MULTILINE) is not None

    def read(self, text: str, /) -> Description:
        """Refuse it.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError(
            f"looks like {self.WORDS.system}, which is not read; give SONiC's config_db.json, or a configuration of "
            "Arista EOS, Cisco NX-OS, NVUE or Junos"
        )


DELL_OS10 = UnreadSystem(Words("Dell OS10"), r"^\s*(random-detect color (green|yellow|red)\b|wred \S+\s*$)")
# Ports of four numbers, and thresholds without their names: NX-OS, whose other lines it shares, has neither.
IOS_XR = UnreadSystem(
    Words("Cisco IOS-XR"),
    r"^(!! IOS XR Configuration\b|interface (\w+GigE|Bundle-Ether)\d+(/\d+){3}\b|"
    r"\s*random-detect \d+ \w+ \d+ \w+\s*$|\s*end-(class|policy)-map\s*$)",
)
