"""What an audit says."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that was checked: ``severity`` is ok, warn or bad."""

    severity: str
    what: str
    why: str
    suggest: str = ""
