"""Completions for the Tab key: names that fit the command line so far, found without computing anything.

Figures and claims are read off the sources: to import them all takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fluidcc.errors import InputError

Completion = Callable[[Any, str], list[str]]


def words(*known: str) -> Completion:
    """Completion by words that are known beforehand."""
    return lambda ctx, incomplete: list(known)


def schemes(ctx: Any, incomplete: str) -> list[str]:
    """Schemes' names; after commas too, where several may be given."""
    from fluidcc.contract.registry import names

    before = incomplete[: incomplete.rfind(",") + 1]
    return [before + name for name in names()]


def presets(ctx: Any, incomplete: str) -> list[str]:
    """Presets of the scheme that is typed already."""
    from fluidcc.contract.registry import presets as presets_of

    return _of_scheme(ctx, presets_of)


def parameters(ctx: Any, incomplete: str) -> list[str]:
    """Return what --set and --over take for the scheme that is typed already."""
    from fluidcc.builders.names import known_names

    return [f"{name}=" for name in _of_scheme(ctx, known_names)]


def topologies(ctx: Any, incomplete: str) -> list[str]:
    """Topologies by name, as `fluidcc.builders.names` has them; a file's name is the shell's business."""
    return ["incast", "parking-lot", "chain", "fat-tree"]


def figures(ctx: Any, incomplete: str) -> list[str]:
    """Return what `reproduce` takes."""
    return ["list", *_homes("reproduces")]


def claims(ctx: Any, incomplete: str) -> list[str]:
    """Return what `verify` takes."""
    return _homes("claim")


def _of_scheme(ctx: Any, names: Callable[[str], Iterable[str]]) -> list[str]:
    """Names of the scheme on the line, or of the first of several; none if there is none."""
    # Behind an option whose value is still to come, click leaves the words before it unassigned.
    typed = [ctx.params.get("scheme"), ctx.params.get("schemes"), *ctx.args]
    try:
        return list(names(next(filter(None, typed), "").partition(",")[0]))
    except InputError:
        return []


def _homes(decorator: str) -> list[str]:
    from fluidcc.proofs.verdict.registry import homes

    return sorted(homes(decorator))
