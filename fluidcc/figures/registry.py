"""The figures that can be made: the function that makes one says so by a decorator."""

from __future__ import annotations

import importlib
import pkgutil
import re
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fluidcc.errors import InputError
from fluidcc.figures.result import Figure, Result
from fluidcc.files import check_writable
from fluidcc.surface import nearest, public

if TYPE_CHECKING:
    import os

# Names of the version before: they answer with a warning, for one version.
_RENAMED = {"dctcp-swings": "dctcp-oscillation", "swift-swings": "swift-oscillation"}
Maker = Callable[[Figure, Path, bool], Result]
_registered: dict[str, tuple[Figure, Maker]] = {}


def reproduces(name: str, paper: str, figure: str) -> Callable[[Maker], Maker]:
    """Decorator: the function makes this figure from ``(figure, folder, quick)``; it may make several.

    Parameters
    ----------
    name : str
        As typed on the command line.
    paper : str
        Of `fluidcc.papers`.
    figure : str
        What it shows.
    """

    def mark(make: Maker) -> Maker:
        if name in _registered and _registered[name][1].__module__ != make.__module__:
            raise RuntimeError(f"two figures are named {name}")
        _registered[name] = Figure(name, paper, figure), make
        return make

    return mark


@public()
@cache
def list_figures() -> dict[str, Figure]:
    """All figures by name, paper by paper, their numbers in order; loads every figure's module."""
    package = importlib.import_module("fluidcc.figures")
    for found in pkgutil.walk_packages(package.__path__, "fluidcc.figures."):
        importlib.import_module(found.name)
    return {name: _registered[name][0] for name in sorted(_registered, key=_by_number)}


def _by_number(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Key that sorts fig9 before fig10."""
    parts = re.split(r"(\d+)", name)
    return tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)


@public()
def reproduce(name: str, out: str | os.PathLike[str] = "out", *, quick: bool = False) -> Result:
    """Make a figure of a paper.

    Parameters
    ----------
    name : str
        One of `list_figures`.
    out : path
        Folder for picture and data; made if missing.
    quick : bool
        Fewer values and coarser steps, same verdicts where they can be had; ``Result.notes`` says what is left out.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        If there is no such figure, or the folder cannot be written to.
    """
    if name in _RENAMED:
        warnings.warn(f"figure {name} is now {_RENAMED[name]}", DeprecationWarning, stacklevel=2)
        name = _RENAMED[name]
    known = list_figures()
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean {near}? Else " if near else ""
        raise InputError(f"reproduce: {name[:40]!r} is no figure; {hint}write list, or one of {', '.join(known)}")
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "bad name"
        raise InputError(f"--out: {str(out)[:200]}: {reason}; give a folder that can be made or exists") from None
    check_writable(folder / f"{name}.nc", "--out")
    figure, make = _registered[name]
    return make(figure, folder, quick)
