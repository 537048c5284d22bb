"""Claims of the benchmark figures, judged by 95 % intervals over runs."""

from __future__ import annotations

from typing import Any

from fluidcc.fabrics.study import interval


def spread(name: str, values: Any, unit: str) -> dict[str, float | bool]:
    """Mean over runs, and the ends of its 95 % interval."""
    mean, low, high = interval(values)
    return {f"{name}_{unit}": mean, f"{name}_low_{unit}": low, f"{name}_high_{unit}": high}


def judged(claim: str, surplus: Any, unit: str) -> dict[str, float | bool]:
    """Whether a claim holds or fails, by what must be above 0, run by run; neither says that it is not decided.

    Parameters
    ----------
    claim : str
        Its name among a figure's values.
    surplus : array
        One number per run: the claim is that its mean is above 0.
    unit : str
        Its suffix among values' names.

    Returns
    -------
    dict
        ``claim``, which is whether it holds, ``claim_fails``, and the interval of the mean.
    """
    _, low, high = interval(surplus)
    return {
        claim: bool(low > 0),
        f"{claim}_fails": bool(high < 0),
        **spread(f"{claim}_by", surplus, unit),
    }


def words(values: dict[str, Any], claim: str) -> str:
    """What `judged` found, in a word or two."""
    return "holds" if values[claim] else "fails" if values[f"{claim}_fails"] else "not decided"
