"""What is said of a figure as a whole: that it agrees, does not, or that its runs cannot tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fluidcc.figures.result import Check

AGREES, UNDECIDED, DIFFERS = "agrees", "not decided", "does not agree"


def status(document: Mapping[str, Any]) -> str:
    """Of a figure's result as `Result.as_dict` and ``docs/results`` have it.

    Parameters
    ----------
    document : mapping

    Returns
    -------
    str
        ``not decided`` if all that is not as expected are comparisons whose interval has both answers in it, or that
        lack a number.
    """
    if document["agrees"]:
        return AGREES
    values = document["values"]
    failing = [name for name, check in document["expected"].items() if not Check(**check).holds(values[name])]
    return UNDECIDED if all(undecided(values, name) for name in failing) else DIFFERS


def undecided(values: Mapping[str, Any], name: str) -> bool:
    """Whether a value is the yes of a comparison (`slowdowns.judged`) that came out neither yes nor no.

    Parameters
    ----------
    values : mapping
        Of the figure.
    name : str
    """
    base = name.removesuffix("_holds")
    return base != name and values[name] is False and values.get(f"{base}_fails") is False
