"""Find, check and make the claims and figures of `fluidcc.proofs`: ``fluidcc verify`` and ``fluidcc reproduce``."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import json
import pkgutil
import re
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from fluidcc.errors import InputError
from fluidcc.files import check_writable
from fluidcc.progress import Bar
from fluidcc.proofs.verdict.claim import Claim, Finding
from fluidcc.proofs.verdict.claim import Result as Checked
from fluidcc.proofs.verdict.figure import Figure, Result
from fluidcc.surface import nearest, public

if TYPE_CHECKING:
    import os

# Names of the version before: they answer with a warning, for one version.
_RENAMED = {"dctcp-swings": "dctcp-oscillation", "swift-swings": "swift-oscillation"}


@cache
def homes(decorator: str) -> dict[str, str]:
    """Find the names that a decorator gives, such as ``@claim("hpcc-a1-bound", ...)``, and the modules of each.

    They are read off the sources, in the order of files and lines: to import all papers takes seconds.
    """
    pattern = re.compile(rf'^@{decorator}\(\s*"([^"]+)"', re.MULTILINE)
    proofs = importlib.import_module("fluidcc.proofs")
    found: dict[str, str] = {}
    for each in pkgutil.walk_packages(proofs.__path__, "fluidcc.proofs."):
        spec = importlib.util.find_spec(each.name)
        text = spec.loader.get_source(each.name) if spec is not None else ""  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]
        for name in pattern.findall(text or ""):
            if name in found:
                raise RuntimeError(f"two of {decorator} are named {name}")
            found[name] = each.name
    return found


def claims_of(module: ModuleType) -> list[Claim]:
    """The claims that a module checks, without those that it imports."""
    found = [getattr(value, "claim", None) for value in vars(module).values()]
    return [one for one in found if isinstance(one, Claim) and one.check.__module__ == module.__name__]


def claim_named(name: str) -> Claim:
    """Load a claim; one of `homes`."""
    return next(one for one in claims_of(importlib.import_module(homes("claim")[name])) if one.name == name)


def figure_named(name: str) -> Figure:
    """Load a figure; one of `homes`."""
    module = importlib.import_module(homes("reproduces")[name])
    return next(one for value in vars(module).values() for one in getattr(value, "figures", ()) if one.name == name)


@public()
def list_claims() -> dict[str, Claim]:
    """List all claims by name, in the order of the files' names and of the functions within."""
    return {name: claim_named(name) for name in homes("claim")}


@public()
def list_figures() -> dict[str, Figure]:
    """List all figures by name, paper by paper, their numbers in order; this loads every figure's module."""
    return {name: figure_named(name) for name in sorted(homes("reproduces"), key=_by_number)}


def _by_number(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Key that sorts fig9 before fig10."""
    parts = re.split(r"(\d+)", name)
    return tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)


@public()
def verify(names: str | Sequence[str] = (), *, slow: bool = True) -> list[Checked]:
    """Check claims.

    Parameters
    ----------
    names : str or sequence of str
        Of `list_claims`; all if empty.
    slow : bool
        False leaves out what takes long, unless named.

    Returns
    -------
    list of Result
        One for each; a check that raises loses no other, and is undecided.

    Raises
    ------
    InputError
        For a name that is none, with the nearest one.
    """
    return list(check(choose(names, slow=slow)))


def choose(names: str | Sequence[str] = (), *, slow: bool = True) -> list[Claim]:
    """The claims of these names, each once; parameters and errors as for `verify`."""
    names = (names,) if isinstance(names, str) else names
    for name in names:
        if name not in homes("claim"):
            near = difflib.get_close_matches(name, homes("claim"), 1, cutoff=0.0)
            raise InputError(f"verify: {name[:40]!r} is no claim; did you mean {near[0]!r}? --list names all")
    return [claim_named(name) for name in dict.fromkeys(names)] or [
        one for one in list_claims().values() if slow or not one.slow
    ]


def check(chosen: Sequence[Claim], *, progress: bool = True) -> Iterator[Checked]:
    """Check these claims one after the other, and give each result as soon as it is there.

    Parameters
    ----------
    chosen : sequence of Claim
    progress : bool
        Whether to show how many are done if it takes long: a bar, or lines where none can be seen.
    """
    with Bar("checking claims", len(chosen), "claims") if progress else nullcontext() as bar:
        for done, one in enumerate(chosen, 1):
            yield guarded(one)
            if bar is not None:
                bar(done / len(chosen))


def guarded(one: Claim) -> Checked:
    """Check a claim; whatever is raised, also where what was found cannot be compared or shown, is its finding."""
    try:
        result = Checked(one, one.check())
        json.dumps(result.as_dict())
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return Checked(one, Finding({}, {}, error=f"the check raised {said} ({Path(at.filename).name}:{at.lineno})"))
    return result


def main(name: str) -> None:
    """Run a proof's own file as a script: print its verdicts; exit status 1 if one is undecided."""
    from fluidcc.proofs.verdict.report import print_results

    results = print_results(check(claims_of(sys.modules[name]), progress=not sys.stdout.isatty()))
    sys.exit(0 if all(result.finding.agrees for result in results) else 1)


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
    known = homes("reproduces")
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean {near}? Else " if near else ""
        names = ", ".join(sorted(known, key=_by_number))
        raise InputError(f"reproduce: {name[:40]!r} is no figure; {hint}write list, or one of {names}")
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "bad name"
        raise InputError(f"--out: {str(out)[:200]}: {reason}; give a folder that can be made or exists") from None
    check_writable(folder / f"{name}.nc", "--out")
    figure = figure_named(name)
    return figure.make(figure, folder, quick)
