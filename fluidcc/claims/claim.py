"""What a claim of a paper is, and how its verdict follows from what was found.

A proof is a function under `claim` that returns a `Finding`: what came out under each way to read the claim, quantities
computed in two ways, and numbers. The verdict follows from these (`Finding.verdict`); nowhere is one written down.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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


@dataclasses.dataclass(frozen=True, eq=False)
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


@dataclasses.dataclass(frozen=True, eq=False)
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
