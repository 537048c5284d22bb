"""The step's error, estimated: how far a run is from that with half the step, and whether a third step bears that out.

A method of order k is of first order where marking jumps and of order k elsewhere, so a step twice as long has an error
2 to 2^k times as large, and successive differences shrink like that. Where they do not, because the run locks to its
grid or two errors cancel by chance, the difference says little of the error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from fluidcc.dde.stepping import method_named
from fluidcc.engines.fluid.engine import Outcome

NEGLIGIBLE = 1e-5  # relative: of differences that small it does not matter how they shrink
SLACK = 2.0  # factor around what the order says
UNKNOWN: dict[str, float | None] = {"queue_rel": None, "rate_rel": None, "as_expected": None}

StepError = dict[str, float | None]


def shrinks(before: float | None, after: float | None, method: str) -> bool | None:
    """Check whether two successive differences, each between a step and its half, shrink as a method's order says.

    Parameters
    ----------
    before, after : float
        Relative differences, that of the longer steps first; None if unknown.
    method : str

    Returns
    -------
    bool
        None if one of them is unknown.
    """
    if before is None or after is None or not (math.isfinite(before) and math.isfinite(after)):
        return None
    if max(before, after) <= NEGLIGIBLE:
        return True
    return 2.0 / SLACK * after <= before <= 2.0 ** method_named(method).order * SLACK * after


def both(verdicts: Sequence[bool | None]) -> bool | None:
    """Check whether all verdicts are true; None if none is false but one is unknown."""
    return False if False in verdicts else None if None in verdicts else True


def relative(ours: np.ndarray, theirs: np.ndarray, least: float) -> float | None:
    """Largest difference, relative to the largest of the second or to a least scale; None if not finite."""
    scale = max(float(np.max(np.abs(theirs))), least)
    worst = float(np.max(np.abs(ours - theirs)))
    return None if not math.isfinite(worst) else worst / scale if scale > 0 else worst


def tolerance_error(runs: Sequence[Outcome], packet: float) -> StepError:
    """Do as `discretisation_error` does, for runs to ten times a tolerance, to it, and to a tenth of it.

    A tolerance bounds the error of a step, not of the run: all that is expected is that differences do not grow as it
    falls.
    """
    found = [_differences(runs, name, least) for name, least in {"queue_mean": packet, "rate_mean": 0.0}.items()]
    verdicts = [_falls(before, after) for before, after in found]
    return {"queue_rel": found[0][1], "rate_rel": found[1][1], "as_expected": both(verdicts)}


def _falls(before: float | None, after: float | None) -> bool | None:
    if before is None or after is None:
        return None
    return after <= max(NEGLIGIBLE, SLACK * before)


def _differences(runs: Sequence[Outcome], name: str, least: float) -> list[float | None]:
    means = [getattr(run.summary, name)[:, 0] for run in runs]
    return [relative(ours, theirs, least) for ours, theirs in itertools.pairwise(means)]


def discretisation_error(runs: Sequence[Outcome], reported: int, packet: float, method: str) -> StepError:
    """Relative difference of the window's mean queue and mean rates between step h and h/2.

    A mean queue below one packet counts as one packet: what is left of an empty queue has no relative error.

    Parameters
    ----------
    runs : sequence of Outcome
        Three, each with half the step of the one before.
    reported : int
        Which of them has step h: 0 or 1.
    packet : float
        Bytes.
    method : str
    """
    scales = {"queue_mean": packet, "rate_mean": 0.0}
    differences = {name: _differences(runs, name, least) for name, least in scales.items()}
    return {
        "queue_rel": differences["queue_mean"][reported],
        "rate_rel": differences["rate_mean"][reported],
        "as_expected": both([shrinks(before, after, method) for before, after in differences.values()]),
    }
