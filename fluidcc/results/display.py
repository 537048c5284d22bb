"""Results as people see them: their numbers as text, and the one door from them to pictures.

In text the unit of a number is in its key, as in ``queue_bytes`` or ``rate_bytes_per_s``. Computing never plots, and
nothing below the pictures imports them, but for `draw`, which loads `fluidcc.plotting` when something is first drawn.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc import units
from fluidcc.errors import InputError
from fluidcc.surface import refuse_unknown

if TYPE_CHECKING:
    from fluidcc.plotting.style import Picture as Picture

# By what the key ends in: the longer first.
_UNITS = (
    ("_bytes_per_s", units.RATE),
    ("_per_s", "1/s"),
    ("_bytes", units.SIZE),
    ("_deg", "deg"),
    ("_db", "dB"),
    ("_s", units.TIME),
)
_MOST = 6  # values of a list


def label(key: str) -> str:
    """A key without its unit."""
    ending = next((ending for ending, _ in _UNITS if key.endswith(ending)), "")
    return key.removesuffix(ending).replace("_", " ")


def shown(key: str, value: Any) -> str:
    """A value with the unit that its key names; "none" for what is None or not a number."""
    if isinstance(value, Mapping):
        return ", ".join(f"{label(name)} {shown(name, each)}" for name, each in value.items())
    if isinstance(value, (list, tuple, np.ndarray)):
        return listed(shown(key, each) for each in value)
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, complex):
        return f"{value.real:.4g} {'-' if value.imag < 0 else '+'} {abs(value.imag):.4g}i 1/s"
    if value is None or (isinstance(value, (float, np.floating)) and math.isnan(value)):
        return "none"
    if not isinstance(value, (int, float, np.number)):
        return str(value)
    dimension = next((unit for ending, unit in _UNITS if key.endswith(ending)), "")
    if dimension in (units.RATE, units.SIZE, units.TIME):
        return units.show(float(value), dimension)
    return f"{value:.4g}" + (f" {dimension}" if dimension else "")


def listed(texts: Iterable[str]) -> str:
    """Texts in a row; equal ones once, and of many the first."""
    found = list(texts)
    distinct = list(dict.fromkeys(found))
    if len(distinct) == 1 and len(found) > 1:
        return f"{distinct[0]} each"
    more = len(distinct) - _MOST
    return ", ".join(distinct[:_MOST] if len(found) > _MOST else found) + (f" and {more} more" if more > 0 else "")


def span(key: str, values: Any) -> str:
    """The least and the largest of some numbers, NaN left out."""
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    if not finite.size:
        return "none"
    ends = [shown(key, float(end)) for end in (finite.min(), finite.max())]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


_HOMES = {
    "plot_bistable_region": "cycles",
    "plot_branches": "cycles",
    "plot_chart": "stability",
    "plot_comparison": "traces",
    "plot_cycle": "cycles",
    "plot_cycle_branch": "cycles",
    "plot_delay_chart": "delay",
    "plot_front": "tuning",
    "plot_fit": "fits",
    "plot_load": "collectives",
    "plot_loop": "stability",
    "plot_maps": "recursion",
    "plot_packets": "tuning",
    "plot_race": "tuning",
    "plot_trial": "tuning",
    "plot_rates": "recursion",
    "plot_decrease": "fairness",
    "plot_fabric_queues": "fabrics",
    "plot_roots": "stability",
    "plot_sensitivity": "tuning",
    "plot_shared": "fairness",
    "plot_slowdowns": "fabrics",
    "plot_solution": "delay",
    "plot_steps": "collectives",
    "plot_sweep": "sweeps",
    "plot_trace": "traces",
    "plot_wai": "wai",
    "plot_windows": "recursion",
}


def draw(name: str, *of: Any, **options: Any) -> Picture:
    """Draw by one of the functions of `fluidcc.plotting`.

    Parameters
    ----------
    name : str
        Of the function.
    *of, **options
        Its arguments.
    """
    return getattr(importlib.import_module(f"fluidcc.plotting.{_HOMES[name]}"), name)(*of, **options)


def labels_of(labels: Mapping[str, str] | None, names: Iterable[str]) -> Mapping[str, str]:
    """Return the labels of axes by name; none if none are given.

    Raises
    ------
    InputError
        If they are not by name, or of a name that is none of the axes'.
    """
    if labels is None:
        return {}
    known = list(names)
    if not isinstance(labels, Mapping):
        raise InputError(f"labels: expected a text for each name; write for example {{{known[0]!r}: 'text'}}")
    refuse_unknown(labels, known, "labels")
    return labels
