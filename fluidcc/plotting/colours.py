"""The one table of colours: of lines in turn, of schemes and of engines; without Matplotlib, for all pictures."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

# petroff10: told apart in print, and also by those who see fewer colours (M. Petroff, arXiv:2107.02270).
SERIES: tuple[str, ...] = (
    "#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6", "#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd",
)  # fmt: skip
SCHEMES: dict[str, str] = {
    "acc": SERIES[0],
    "dcqcn": SERIES[1],
    "hpcc": SERIES[2],
    "timely": SERIES[3],
    "swift": SERIES[4],
    "dctcp": SERIES[5],
    "hpcc-multiq": SERIES[6],
    "hpcc-rx": SERIES[7],
    "none": SERIES[8],
    "nscc": SERIES[9],
}
ENGINES: dict[str, str] = {"fluid": SERIES[0], "hybrid": SERIES[1], "packet": SERIES[4]}


def colour(k: int) -> str:
    """The k-th of `SERIES`."""
    return SERIES[k % len(SERIES)]


def scheme_colours(names: Iterable[str]) -> dict[str, str]:
    """Colours of the schemes of a picture: each its own, and what is none of ours one that is free.

    Parameters
    ----------
    names : iterable of str
        In small or capital letters; a second setting has a name of its own, such as ``"dcqcn, g 1/16"``.
    """
    own = {name: SCHEMES.get(name.lower()) for name in names}
    free = itertools.cycle([each for each in SERIES if each not in own.values()] or SERIES)
    return {name: shade or next(free) for name, shade in own.items()}
