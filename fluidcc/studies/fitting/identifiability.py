"""Combinations of the unknowns that measurements determine: singular values of the weighted Jacobian, in words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fluidcc.studies.fitting.space import Space

WIDEST = 0.5  # interval of what is called identifiable, as a share of the value
_PART = 0.25  # of a direction, below which a parameter has no part in it


def combinations(jacobian: np.ndarray, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Singular values, largest first, and directions (rows), by the logarithms of the unknowns.

    Parameters
    ----------
    jacobian : ndarray
        Of numbers with standard deviation 1, by the unit cube.
    space : Space
    """
    scale = np.where(space.logarithmic, np.log(space.high / np.where(space.logarithmic, space.low, 1.0)), 1.0)
    _, values, rows = np.linalg.svd(jacobian / scale, full_matrices=False)
    signs = np.sign(rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)])
    return values, rows * signs[:, None]


def in_words(
    values: np.ndarray, rows: np.ndarray, identifiable: Mapping[str, bool], source: str = "the trace"
) -> list[str]:
    """Directions that are not determined to within `WIDEST`, in sentences.

    Parameters
    ----------
    values, rows : ndarray
        As `combinations` has them.
    identifiable : mapping
        Of the unknowns, in order: a direction of which all are is not spoken of.
    source : str
        Name of what was measured.
    """
    found, names = [], tuple(identifiable)
    for value, row in zip(values, rows, strict=True):
        if 2 * 1.96 / max(float(value), 1e-300) < WIDEST:
            continue
        parts = [(name, share) for name, share in zip(names, row, strict=True) if abs(share) >= _PART]
        if all(identifiable[name] for name, _ in parts):
            continue
        listed = " and ".join(name for name, _ in parts)
        if len(parts) == 1:
            found.append(f"{source} does not determine {listed} to within half of its value")
            continue
        kept = _product(parts)
        found.append(f"{listed} cannot be told apart: {kept} may change and {source} stays as it is")
    return found


def _product(parts: list[tuple[str, float]]) -> str:
    """A direction in logarithms, as the product that moves along it."""
    return " * ".join(f"{name}^{share:.2g}" for name, share in parts)
