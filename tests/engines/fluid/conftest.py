"""Fixtures of several files."""

from __future__ import annotations

import pytest

from fluidcc.dde.history import ring_depth
from tests.engines.fluid.in_numpy import numpy_only
from tests.shapes import full_columns

__all__ = ["full_columns", "numpy_only"]


@pytest.fixture
def one_depth(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every run a history of the module's `RECORDS`, or more if it needs them, so that steps share a shape."""
    least = request.module.RECORDS
    deep = lambda longest, dt: max(least, ring_depth(longest, dt))  # noqa: E731
    monkeypatch.setattr("fluidcc.engines.fluid.plan.ring_depth", deep)
