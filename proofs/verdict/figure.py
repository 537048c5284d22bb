"""Figures of papers: who makes one, what is expected of its numbers, and whether they agree."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

AGREES, UNDECIDED, DIFFERS = "agrees", "not decided", "does not agree"


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure that can be made.

    Parameters
    ----------
    name : str
        As typed on the command line.
    paper, figure : str
    make : callable
        From ``(figure, folder, quick)`` to a `Result`.
    """

    name: str
    paper: str
    figure: str
    make: Callable[[Figure, Path, bool], Result]


Maker = Callable[[Figure, Path, bool], "Result"]


def reproduces(name: str, paper: str, figure: str) -> Callable[[Maker], Maker]:
    """Decorator: the function makes this figure; it may make several.

    Parameters
    ----------
    name : str
        As typed on the command line.
    paper : str
        Of `fluidcc.proofs.papers`.
    figure : str
        Its number, and its subject.
    """

    def mark(make: Maker) -> Maker:
        make.__dict__.setdefault("figures", []).append(Figure(name, paper, figure, make))
        return make

    return mark


@dataclasses.dataclass(frozen=True)
class Check:
    """Expected value of a quantity, with its tolerance.

    Parameters
    ----------
    value : float or bool
    tolerance : float
        Largest absolute difference; 0 for a yes or no.
    why : str
        Where the value and its tolerance come from.
    """

    value: float | bool
    tolerance: float
    why: str

    def holds(self, found: Any) -> bool:
        """Check whether a found value is within the tolerance."""
        if isinstance(self.value, bool):
            return found is self.value
        return abs(found - self.value) <= self.tolerance  # False for NaN


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
    """A figure that was made.

    Parameters
    ----------
    figure : Figure
    values : dict
        Numbers in SI with the unit in the name, and yes or no.
    expected : dict of Check
        For some of the values' names.
    files : tuple of Path
        Picture and data.
    notes : tuple of str
        How the paper was read, and what a quick run leaves out.
    sample : str
        What was drawn: how many seeds, networks or outcomes, over which window, and the interval; empty if nothing is
        drawn and no run is finite.
    """

    figure: Figure
    values: dict[str, float | bool]
    expected: dict[str, Check]
    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    sample: str = ""

    @property
    def agrees(self) -> bool:
        """True if every expectation holds."""
        return all(check.holds(self.values[name]) for name, check in self.expected.items())

    def as_dict(self) -> dict[str, Any]:
        """Keys as in the CLI."""
        return {
            "name": self.figure.name,
            "paper": self.figure.paper,
            "figure": self.figure.figure,
            "values": self.values,
            "expected": {name: dataclasses.asdict(check) for name, check in self.expected.items()},
            "agrees": self.agrees,
            "files": [str(path) for path in self.files],
            "notes": list(self.notes),
            "sample": self.sample,
        }


def printed(value: float, digit: float, step_error: float, why: str) -> Check:
    """Expect a printed number, to half its last digit and twice the change that our own step makes.

    The step of the run that the number comes from is not stated. Where marking jumps at Kmax (5), the error
    is of first order in the step, and either sign: a reference at our coarse step departs from the limit by
    as much as we do there, and we at the finer step by less.

    Parameters
    ----------
    value, digit : float
        The number and one unit of its last printed digit, both SI.
    step_error : float
        Difference of our value between the coarse and the fine step; 0 where nothing is integrated.
    why : str
    """
    return Check(value, digit / 2 + 2 * abs(step_error), why)


def status(document: Mapping[str, Any]) -> str:
    """Return the status of a figure's result, which `Result.as_dict` and ``docs/results`` hold.

    Parameters
    ----------
    document : mapping

    Returns
    -------
    str
        ``not decided`` if every value that differs is a comparison whose interval holds both answers, or that lacks a
        number.
    """
    if document["agrees"]:
        return AGREES
    values = document["values"]
    failing = [name for name, check in document["expected"].items() if not Check(**check).holds(values[name])]
    return UNDECIDED if all(undecided(values, name) for name in failing) else DIFFERS


def undecided(values: Mapping[str, Any], name: str) -> bool:
    """Check whether a value is the yes of a comparison (`slowdowns.judged`) that came out neither yes nor no.

    Parameters
    ----------
    values : mapping
        The figure's values.
    name : str
    """
    base = name.removesuffix("_holds")
    return base != name and values[name] is False and values.get(f"{base}_fails") is False
