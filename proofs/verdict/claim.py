"""Claims of papers, and how a claim's verdict follows from what was found.

A proof is a function under `claim` that returns a `Finding`: what came out under each way to read the claim, quantities
computed in two ways, and numbers. The verdict follows from these (`Finding.verdict`); nowhere is one written down.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Rational
from typing import Any

from fluidcc.proofs.verdict.theorems import proof_of

HOLDS, CONDITIONAL = "holds", "holds-with-conditions"
FALSE, AMBIGUOUS = "false-as-printed", "ambiguous"
UNTESTABLE, UNDECIDED = "not-testable-here", "undecided"


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
        """True if the two numbers are the same within the tolerance; never for NaN."""
        scale = max(abs(self.first), abs(self.second)) if self.first and self.second else 1.0
        return bool(abs(self.first - self.second) <= self.tolerance * scale)

    def as_dict(self) -> dict[str, Any]:
        """The fields and whether they agree, with ``exact`` values beside where these are fractions."""
        fields = dataclasses.asdict(self)
        return plain(fields) | {"agrees": self.agrees} | _beside(fields)


@dataclasses.dataclass(frozen=True, eq=False)
class Finding:
    """Outcome of a proof.

    Parameters
    ----------
    readings : dict of bool
        Whether the claim holds, for each way to read it as printed; usually one. What the claim says together ("A and
        B", "for any N") is one reading, which holds if all of it does.
    evidence : dict
        Numbers, SI with the unit in the name.
    ways : sequence of Way
    restricted : bool or None
        Whether the claim holds under `conditions`; None if no condition is known that saves it.
    conditions : str
        What must be added, or which reading is meant; empty if nothing.
    correction : str
        A correct statement instead of the claim.
    corrected : bool
        Whether the correction passed its own check.
    missing : str
        What a check of the claim needs and does not have here, from its numbers; then there is no reading.
    sample : str
        What was drawn at random: seeds, networks or draws, the window, and the interval; empty if nothing is drawn.
    error : str
        Why the check raised; then nothing else is known.
    """

    readings: Mapping[str, bool]
    evidence: Mapping[str, Any]
    ways: Sequence[Way] = ()
    restricted: bool | None = None
    conditions: str = ""
    correction: str = ""
    corrected: bool = True
    missing: str = ""
    sample: str = ""
    error: str = ""

    @property
    def reason(self) -> str:
        """Reason for no verdict: the check raised, tested no reading, or its two ways disagree; else empty."""
        if self.error:
            return self.error
        if not self.readings and not self.missing:
            return "no reading was checked"
        return "; ".join(
            f"two ways disagree: {way.what}: {way.first} against {way.second}" for way in self.ways if not way.agrees
        )

    @property
    def verdict(self) -> str:
        """Derived: undecided if there is a reason; holds if every reading does, else with conditions that save it.

        Not testable here if something is missing, whatever was read.
        """
        if self.reason:
            return UNDECIDED
        if self.missing:
            return UNTESTABLE
        if all(self.readings.values()):
            return HOLDS
        if self.restricted:
            return CONDITIONAL
        return AMBIGUOUS if any(self.readings.values()) else FALSE

    @property
    def agrees(self) -> bool:
        """True if there is a verdict, and correction and conditions passed their checks."""
        return not self.reason and self.corrected and self.restricted is not False


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
        """Return what is known without running the claim."""
        said = {"name": self.name, "paper": self.paper, "section": self.section, "claim": self.text}
        return said | {"proved_by": proof_of(self.name)}


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
    """A claim with its finding."""

    claim: Claim
    finding: Finding

    def as_dict(self) -> dict[str, Any]:
        """Keys as in the CLI. Numbers are numbers; ``exact`` has those beside them that are fractions, as text."""
        found = self.finding
        decided = found.verdict not in (HOLDS, UNTESTABLE, UNDECIDED)
        return (
            self.claim.as_dict()
            | {
                "verdict": found.verdict,
                "reason": found.reason or found.missing,
                "conditions": found.conditions if found.verdict == CONDITIONAL else "",
                "correction": found.correction if decided else "",
                "agrees": bool(found.agrees),
                "readings": plain(found.readings),
                "sample": found.sample,
                "ways": [way.as_dict() for way in found.ways],
                "evidence": plain(found.evidence),
            }
            | _beside(found.evidence)
        )


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


def plain(value: Any, *, exact: bool = False) -> Any:
    """Convert a value to what JSON can hold: numbers of any library as Python's, anything else as text.

    Parameters
    ----------
    value : any
    exact : bool
        Fractions as text such as ``"1/3"``; else the nearest float, or a whole number.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item, exact=exact) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, exact=exact) for item in value]
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return value.item()
    if hasattr(value, "tolist"):
        return plain(value.tolist(), exact=exact)
    if isinstance(value, Integral) or (isinstance(value, Rational) and value.denominator == 1):
        return int(value.numerator)
    if isinstance(value, Rational) and exact:
        return str(value)
    try:
        return float(value)  # fractions, mpmath's and sympy's numbers
    except (TypeError, ValueError, OverflowError):
        return str(value)


def _beside(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that JSON changes, exactly, under ``exact``; an empty dict if it changes none."""
    both = {str(key): (plain(value), plain(value, exact=True)) for key, value in values.items()}
    found = {key: exact for key, (near, exact) in both.items() if near != exact}
    return {"exact": found} if found else {}


def rounds_to(value: float, printed: str) -> bool:
    """Check whether a value is a printed number within half of the last digit printed.

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
    """Check whether a printed number is the value with its further digits cut off, as a lower bound is printed."""
    decimals = len(printed.partition(".")[2])
    return math.floor(value * 10**decimals * (1 + 1e-12)) == round(float(printed) * 10**decimals)
