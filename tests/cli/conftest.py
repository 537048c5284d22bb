"""The whole command is built once for all that these tests run, which takes longer than most of what they run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import typer

from fluidcc.cli.app import app
from tests.shapes import full_columns

__all__ = ["full_columns"]


@pytest.fixture(autouse=True, scope="package")
def built_once() -> Iterator[None]:
    build = typer.main.get_command

    @cache
    def built(callbacks: tuple[Any, ...]) -> Any:  # anew where a test has put others in their place
        return build(app)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            typer.main,
            "get_command",
            lambda typed: built(tuple(each.callback for each in app.registered_commands)),
        )
        yield
