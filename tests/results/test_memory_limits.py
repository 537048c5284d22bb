"""Memory that may be taken: what says so, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fluidcc.errors import InputError
from fluidcc.results import memory_limit
from fluidcc.results.memory_limit import VARIABLE, limit, require


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine of 1000 pages of 4 KB, in no container."""
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(memory_limit.os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(memory_limit, "_CONTAINER", (str(tmp_path / "max"),))


def test_a_limit_is_as_given_or_the_environments_or_half_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limit() == 2_048_000.0
    assert limit(default=5.0) == 5.0
    monkeypatch.setenv(VARIABLE, "3KB")
    assert limit() == limit(default=5.0) == 3e3
    assert limit("1MB", 5.0) == 1e6
    monkeypatch.setenv(VARIABLE, "")
    assert limit() == 2_048_000.0


@pytest.mark.parametrize(("text", "bytes_"), [("1000\n", 500.0), ("max\n", 2_048_000.0), ("9e99\n", 2_048_000.0)])
def test_a_container_may_have_less(tmp_path: Path, text: str, bytes_: float) -> None:
    (tmp_path / "max").write_text(text)
    assert limit() == bytes_


@pytest.mark.parametrize("given", [0, -1.0, "0B", "much"])
def test_limits_that_are_none_are_refused(given: Any) -> None:
    with pytest.raises(InputError, match="memory"):
        limit(given)


@pytest.mark.parametrize(
    ("needed", "most", "amount"),
    [(1e8, 1e8, None), (1.5e8, 1e8, "200MB"), (2.01e9, 2e9, "2.1GB"), (101.0, 100.0, "100MB")],
)
def test_what_takes_more_is_refused_with_an_amount_that_is_enough(
    needed: float, most: float, amount: str | None
) -> None:
    if amount is None:
        require(needed, most, "it takes", "give less")
    else:
        with pytest.raises(
            InputError, match=rf"^it takes {amount} of memory.*give less, or allow more: {VARIABLE}={amount}$"
        ):
            require(needed, most, "it takes", "give less")
