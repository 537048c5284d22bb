"""The papers' claims, checked: discovery and running of the files in ``proofs/``.

A proof is a function under `claim` that returns a `Finding`: what came out under each way to read the claim, quantities
computed in two ways, and numbers. The verdict follows from these (`Finding.verdict`); nowhere is one written down.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import importlib.util
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from fluidcc.errors import InputError

HPCC = "HPCC, SIGCOMM 2019"
HPCCPP = "HPCC++, IETF slides"
DCQCN = "DCQCN, SIGCOMM 2015"
ECN_OR_DELAY = "ECN or Delay, CoNEXT 2016"
ACC = "ACC, NSDI 2024"
VAI = "Fast convergence to fairness (VAI, SF)"

HOLDS, CONDITIONAL = "holds", "holds-with-conditions"
FALSE, AMBIGUOUS = "false-as-printed", "ambiguous"


@dataclasses.dataclass(frozen=True)
class Way:
    """One quantity computed in two independent ways.

    Parameters
    ----------
    what : str
    first, second : number
        Of any kind that subtracts: float, exact fraction, NumPy's.
    tolerance : float
        Largest difference relative to the greater (absolute where one is 0); 0 for exact arithmetic.
    """

    what: str
    first: Any
    second: Any
    tolerance: float = 0.0

    @property
    def agrees(self) -> bool:
        """Whether the two are the same within the tolerance; never for NaN."""
        scale = max(abs(self.first), abs(self.second)) if self.first and self.second else 1.0
        return bool(abs(self.first - self.second) <= self.tolerance * scale)


@dataclasses.dataclass(frozen=True)
class Finding:
    """What a proof found out.

    Parameters
    ----------
    readings : dict of bool
        Whether the claim holds, for each way to read it as printed; usually one.
    evidence : dict
        Numbers, SI with the unit in the name.
    ways : sequence of Way
    restricted : bool or None
        Whether the claim holds under `conditions`; None if no condition is known that saves it.
    conditions : str
        What must be added, or which reading is meant; empty if nothing.
    correction : str
        The statement to put in its place, and
    corrected : bool
        whether that passed its own check.
    """

    readings: Mapping[str, bool]
    evidence: Mapping[str, Any]
    ways: Sequence[Way] = ()
    restricted: bool | None = None
    conditions: str = ""
    correction: str = ""
    corrected: bool = True

    @property
    def verdict(self) -> str:
        """Derived: holds if every reading does, else with conditions if those were checked to save it."""
        if all(self.readings.values()):
            return HOLDS
        if self.restricted:
            return CONDITIONAL
        return AMBIGUOUS if any(self.readings.values()) else FALSE

    @property
    def agrees(self) -> bool:
        """Whether all two ways came out the same, and correction and conditions passed their checks."""
        return all(way.agrees for way in self.ways) and self.corrected and self.restricted is not False


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement of a paper and the function that checks it.

    Parameters
    ----------
    name : str
        As typed on the command line.
    paper, section, text : str
    check : callable
        Without arguments, to a `Finding`.
    slow : bool
        Takes more than about two seconds.
    """

    name: str
    paper: str
    section: str
    text: str
    check: Callable[[], Finding]
    slow: bool = False

    def as_dict(self) -> dict[str, Any]:
        """What is known without running it."""
        return {"name": self.name, "paper": self.paper, "section": self.section, "claim": self.text}


@dataclasses.dataclass(frozen=True)
class Result:
    """A claim with its finding."""

    claim: Claim
    finding: Finding

    def as_dict(self) -> dict[str, Any]:
        """Keys as in the CLI."""
        found = self.finding
        return self.claim.as_dict() | {
            "verdict": found.verdict,
            "conditions": found.conditions if found.verdict == CONDITIONAL else "",
            "correction": found.correction if found.verdict != HOLDS else "",
            "agrees": bool(found.agrees),
            "readings": _plain(found.readings),
            "ways": [_plain(dataclasses.asdict(way)) | {"agrees": way.agrees} for way in found.ways],
            "evidence": _plain(found.evidence),
        }


def claim(
    name: str, paper: str, section: str, text: str, *, slow: bool = False
) -> Callable[[Callable[..., Finding]], Callable[..., Finding]]:
    """Decorator: the function checks this claim. It is called without arguments; parameters have defaults.

    Parameters
    ----------
    name, paper, section, text : str
        As in `Claim`; the text in the paper's words as far as they are short.
    slow : bool
    """

    def mark(check: Callable[..., Finding]) -> Callable[..., Finding]:
        check.__dict__["claim"] = Claim(name, paper, section, text, check, slow)
        return check

    return mark


def folder() -> Path:
    """Where the proofs are: inside the package in a wheel, beside it in a clone.

    Raises
    ------
    InputError
        If they are in neither place.
    """
    package = Path(__file__).resolve().parent
    for place in (package / "proofs", package.parent / "proofs"):
        if place.is_dir():
            return place
    raise InputError(f"verify: no folder proofs in or beside {package}; install fluidcc from its wheel or clone")


def claims() -> dict[str, Claim]:
    """All claims by name, in the order of the files' names and of the functions within.

    Raises
    ------
    InputError
        If there is no folder of proofs.
    """
    found: dict[str, Claim] = {}
    with _importable(folder()):
        for path in sorted(folder().glob("[a-z]*.py")):
            for one in claims_of(_load(path)):
                if one.name in found:
                    raise RuntimeError(f"two claims are named {one.name}")
                found[one.name] = one
    return found


def claims_of(module: ModuleType) -> list[Claim]:
    """The claims that a module checks."""
    return [value.claim for value in vars(module).values() if isinstance(getattr(value, "claim", None), Claim)]


def _load(path: Path) -> ModuleType:
    """Import a file of the folder by its path, once."""
    if path.stem in sys.modules and getattr(sys.modules[path.stem], "__file__", None) == str(path):
        return sys.modules[path.stem]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _importable(place: Path) -> Iterator[None]:
    """Let the proofs import each other, as they do when run as scripts."""
    sys.path.insert(0, str(place))
    try:
        yield
    finally:
        sys.path.remove(str(place))


def verify(names: Sequence[str] = (), *, slow: bool = True) -> list[Result]:
    """Check claims.

    Parameters
    ----------
    names : sequence of str
        Of `claims`; all if empty.
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
    known = claims()
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, cutoff=0.0)
            raise InputError(f"verify: {name[:40]!r} is no claim; did you mean {near[0]!r}? --list names all")
    return run(
        [known[name] for name in dict.fromkeys(names)] or [one for one in known.values() if slow or not one.slow]
    )


def run(chosen: Sequence[Claim]) -> list[Result]:
    """Check these claims, with a progress bar if it takes long."""
    from fluidcc.progress import Bar

    results = []
    with Bar("checking claims", len(chosen), "claims") as bar:
        for done, one in enumerate(chosen, 1):
            results.append(Result(one, one.check()))
            bar(done / len(chosen))
    return results


def main(name: str) -> None:
    """Run a proof's own file as a script: print its verdicts; exit status 1 if two ways disagree."""
    from fluidcc.cli.verify import print_results

    results = run(claims_of(sys.modules[name]))
    print_results(results)
    sys.exit(0 if all(result.finding.agrees for result in results) else 1)


def _plain(value: Any) -> Any:
    """Numbers of any library as Python's; exact fractions as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return value.item()
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return str(value)


def rounds_to(value: float, printed: str) -> bool:
    """Whether a value is a printed number within half of the last digit printed.

    Parameters
    ----------
    value : float
    printed : str
        Such as ``"24.47"``; an exponent is allowed.
    """
    mantissa, _, exponent = printed.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - decimals)
    return abs(value - float(printed)) <= unit / 2 * (1 + 1e-9)


def cut_to(value: float, printed: str) -> bool:
    """Whether a printed number is the value with its further digits cut off, as a bound from below is printed."""
    decimals = len(printed.partition(".")[2])
    return math.floor(value * 10**decimals * (1 + 1e-12)) == round(float(printed) * 10**decimals)
