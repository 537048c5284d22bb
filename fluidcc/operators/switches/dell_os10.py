"""Systems that are recognised only to be refused, so that nobody is advised in another system's words."""

from __future__ import annotations

import re

from fluidcc.errors import InputError
from fluidcc.operators.switches.description import Description, Words

WORDS = Words("Dell OS10")
_SIGNS = re.compile(r"^\s*(random-detect color (green|yellow|red)\b|wred \S+\s*$)", re.MULTILINE)


def recognises(text: str) -> bool:
    """Tell whether a text is of Dell OS10."""
    return _SIGNS.search(text) is not None


def read(text: str) -> Description:
    """Refuse it.

    Raises
    ------
    InputError
        Always.
    """
    raise InputError(
        f"looks like {WORDS.system}, which is not read; give SONiC's config_db.json, or a configuration of Arista EOS, "
        "Cisco NX-OS, NVUE or Junos"
    )
