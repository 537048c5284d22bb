"""Audits of shorter and fewer runs, for tests that look at other things than what runs do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def short_audits(seeds: int = 2, opens: str = "12.5ms", closes: str = "25ms") -> Iterator[pytest.MonkeyPatch]:
    """Run each behaviour over fewer seeds and less time, and follow a start at line rate for 0.2 s in place of 0.5."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fluidcc.operators.behaviour.SEEDS", seeds)
        for module in ("behaviour", "packet_check"):
            patch.setattr(f"fluidcc.operators.{module}.OPENS", opens)
            patch.setattr(f"fluidcc.operators.{module}.CLOSES", closes)
        patch.setattr("fluidcc.operators.reach.UNTIL", "200ms")
        yield patch
