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
# Of a scheme's variants in turn: towards black (negative) or white, by how much. Paler comes first: a darker orange is
# red to those who see no green.
SHADES = (0.0, 0.5, -0.4, -0.7)
ENGINES: dict[str, str] = {"fluid": SERIES[0], "hybrid": SERIES[1], "packet": SERIES[4]}


def colour(k: int) -> str:
    """The k-th of `SERIES`."""
    return SERIES[k % len(SERIES)]


def shade(name: str, k: int) -> str:
    """Colour of a scheme's k-th variant: its own, then paler and darker in turn.

    Parameters
    ----------
    name : str
        Of `SCHEMES`.
    k : int
        Below the length of `SHADES`.
    """
    part = SHADES[k]
    end = 255 if part > 0 else 0
    parts = (int(SCHEMES[name][at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(each + (end - each) * abs(part)):02x}" for each in parts)


def scheme_of(name: str) -> str | None:
    """Scheme of `SCHEMES` that a name begins with, as ``dcqcn`` of ``"DCQCN, no PFC"``."""
    lower = name.lower()
    found = [each for each in SCHEMES if lower.startswith(each) and not lower[len(each) : len(each) + 1].isalnum()]
    return max(found, key=len, default=None)


def scheme_colours(names: Iterable[str]) -> dict[str, str]:
    """Colours of the schemes of a picture: each its own, its variants shades, and what is none of ours a free one.

    Parameters
    ----------
    names : iterable of str
        In small or capital letters; a variant begins with its scheme's name, such as ``"dcqcn, g 1/16"``. Without
        the scheme itself its first variant has its colour; those beyond `SHADES` have one that is free.
    """
    names = list(names)
    variants: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: name.lower() not in SCHEMES):
        if scheme := scheme_of(name):
            variants.setdefault(scheme, []).append(name)
    own = {name: shade(scheme, k) for scheme, some in variants.items() for k, name in enumerate(some[: len(SHADES)])}
    taken = {SCHEMES[scheme] for scheme in variants}
    free = itertools.cycle([each for each in SERIES if each not in taken] or SERIES)
    return {name: own.get(name) or next(free) for name in names}
