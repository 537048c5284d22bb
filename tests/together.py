"""Hundreds of small cases as one test: pytest takes milliseconds for each test, more than these cases take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def together(cases: Iterable[Any], named: Callable[[Any], str]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Make one test of a check of one case; it names all cases that fail. A tuple is several arguments."""

    def decorate(check: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            wrong = {}
            for case in cases:
                try:
                    check(*(case if type(case) is tuple else (case,)))
                except Exception as error:
                    wrong[named(case)] = f"{type(error).__name__}: {error}"
            assert not wrong, "\n".join(f"{name}: {text}" for name, text in wrong.items())

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return decorate
