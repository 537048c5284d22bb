"""The one door from results to pictures: `draw` loads `fluidcc.plotting` when something is first drawn.

Computing never plots, and nothing below the pictures imports them, but for this module.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fluidcc.errors import InputError
from fluidcc.surface import refuse_unknown

if TYPE_CHECKING:
    from fluidcc.plotting.style import Picture as Picture

_HOMES = {
    "plot_bistable_region": "cycle_branches",
    "plot_branches": "branches",
    "plot_chart": "chart",
    "plot_comparison": "traces",
    "plot_cycle": "cycle",
    "plot_cycle_branch": "cycle_branches",
    "plot_delay_chart": "delay",
    "plot_front": "tuning",
    "plot_fit": "fits",
    "plot_load": "collectives",
    "plot_loop": "stability",
    "plot_maps": "period_map",
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
