"""Fixtures by which runs of the fluid share a shape, whatever their numbers: to compile one takes a second.

Runs with histories as short as they can be, and with one row for flows that are all alike, are in the tests of the
engine that use neither.
"""

from __future__ import annotations

import pytest

from fluidcc.dde.history import ring_depth
from fluidcc.engines.fluid.state import column

RECORDS = 1 << 15  # of a history: what the longest here need, but for flow control


def give_depth(patch: pytest.MonkeyPatch, records: int = RECORDS) -> None:
    """Give every run a history of some records, or more if it needs them, until the patch is undone."""
    deep = lambda longest, dt: max(records, ring_depth(longest, dt))  # noqa: E731
    for module in ("engines.fluid.plan", "studies.sweeps.batch"):
        patch.setattr(f"fluidcc.{module}.ring_depth", deep)


@pytest.fixture
def same_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every run a history of `RECORDS`, or more if it needs them."""
    give_depth(monkeypatch)


@pytest.fixture
def full_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a row for each flow and link, also where all are equal."""
    monkeypatch.setattr("fluidcc.engines.fluid.network.column", lambda values, collapse=True: column(values, False))
