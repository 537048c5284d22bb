"""The one door from results to pictures: `draw` loads `fluidcc.plotting` when something is first drawn.

Computing never plots, and nothing below the pictures imports them, but for this module.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fluidcc.plotting.style import Picture as Picture

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
