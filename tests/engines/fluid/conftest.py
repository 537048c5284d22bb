"""Fixtures of several files."""

from __future__ import annotations

import pytest

from tests.engines.fluid.in_numpy import numpy_only
from tests.shapes import full_columns, give_depth

__all__ = ["full_columns", "numpy_only"]


@pytest.fixture
def one_depth(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every run a history of the module's `RECORDS`, or more if it needs them, so that steps share a shape."""
    give_depth(monkeypatch, request.module.RECORDS)
