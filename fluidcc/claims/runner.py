"""Discovery and running of the claims in `fluidcc.proofs`."""

from __future__ import annotations

import difflib
import importlib
import json
import pkgutil
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

from fluidcc.claims.claim import Claim, Finding, Result
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.surface import public


def _modules() -> Iterator[ModuleType]:
    """The modules of `fluidcc.proofs`, folder by folder."""
    proofs = importlib.import_module("fluidcc.proofs")
    for found in pkgutil.walk_packages(proofs.__path__, "fluidcc.proofs."):
        yield importlib.import_module(found.name)


@public()
def list_claims() -> dict[str, Claim]:
    """All claims by name, in the order of the files' names and of the functions within."""
    found: dict[str, Claim] = {}
    for module in _modules():
        for one in claims_of(module):
            if one.name in found:
                raise RuntimeError(f"two claims are named {one.name}")
            found[one.name] = one
    return found


def claims_of(module: ModuleType) -> list[Claim]:
    """The claims that a module checks, without those that it imports."""
    found = [getattr(value, "claim", None) for value in vars(module).values()]
    return [one for one in found if isinstance(one, Claim) and one.check.__module__ == module.__name__]


@public()
def verify(names: str | Sequence[str] = (), *, slow: bool = True) -> list[Result]:
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
    known = list_claims()
    names = (names,) if isinstance(names, str) else names
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, cutoff=0.0)
            raise InputError(f"verify: {name[:40]!r} is no claim; did you mean {near[0]!r}? --list names all")
    return [known[name] for name in dict.fromkeys(names)] or [one for one in known.values() if slow or not one.slow]


def check(chosen: Sequence[Claim], *, progress: bool = True) -> Iterator[Result]:
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


def guarded(one: Claim) -> Result:
    """Check a claim; whatever is raised, also where what was found cannot be compared or shown, is its finding."""
    try:
        result = Result(one, one.check())
        json.dumps(result.as_dict())
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return Result(one, Finding({}, {}, error=f"the check raised {said} ({Path(at.filename).name}:{at.lineno})"))
    return result


def main(name: str) -> None:
    """Run a proof's own file as a script: print its verdicts; exit status 1 if one is undecided."""
    from fluidcc.claims.report import print_results

    results = print_results(check(claims_of(sys.modules[name]), progress=not sys.stdout.isatty()))
    sys.exit(0 if all(result.finding.agrees for result in results) else 1)
