"""Warnings of `fluidcc simulate`."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from fluidcc.cli.simulate import _say_beyond


@pytest.mark.parametrize(
    ("longest", "engine", "warns"),
    [
        ([1e5, 2e5], "fluid", False),
        ([1e5, 200_001.0], "fluid", True),
        ([1e5, 200_001.0], "hybrid", True),
        ([1e5, 200_001.0], "packet", False),  # it has the buffer
        ([None, 1.0], "fluid", False),
    ],
)
def test_a_queue_beyond_the_buffer_is_said(longest: list[Any], engine: str, warns: bool) -> None:
    summary = {"links": [{"queue_bytes": {"max_whole_run": each}} for each in longest]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _say_beyond(summary, "200KB", engine)
    told = f"in the {engine} a queue comes to 200KB, beyond the 200KB"
    assert [told in str(each.message) for each in caught] == [True] * warns
