"""Discovery and running of the claims in `fluidcc.proofs`."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

from fluidcc.claims.claim import Claim, Result
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

    Raises
    ------
    InputError
        For a name that is none, with the nearest one.
    """
    known = list_claims()
    names = (names,) if isinstance(names, str) else names
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, cutoff=0.0)
            raise InputError(f"verify: {name[:40]!r} is no claim; did you mean {near[0]!r}? --list names all")
    return run(
        [known[name] for name in dict.fromkeys(names)] or [one for one in known.values() if slow or not one.slow]
    )


def run(chosen: Sequence[Claim]) -> list[Result]:
    """Check these claims, with a progress bar if it takes long."""
    results = []
    with Bar("checking claims", len(chosen), "claims") as bar:
        for done, one in enumerate(chosen, 1):
            results.append(Result(one, one.check()))
            bar(done / len(chosen))
    return results


def main(name: str) -> None:
    """Run a proof's own file as a script: print its verdicts; exit status 1 if two ways disagree."""
    from fluidcc.claims.report import print_results

    results = run(claims_of(sys.modules[name]))
    print_results(results)
    sys.exit(0 if all(result.finding.agrees for result in results) else 1)
