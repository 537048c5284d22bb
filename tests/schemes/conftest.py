"""Fixtures of several files."""

from __future__ import annotations

import pytest

from tests.shapes import full_columns, same_depth

__all__ = ["full_columns", "same_depth"]


@pytest.fixture(autouse=True)
def one_depth(same_depth: None) -> None:
    """Give every run the same history."""
