"""Delay-differential equations of your own: solutions, equilibria, exact roots, margins, limit cycles, charts.

Nothing here knows networks; the kernel and the roots are those that the fluid models run on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.surface import lazily

if TYPE_CHECKING:
    from fluidcc.delay.charts import Chart as Chart
    from fluidcc.delay.charts import chart as chart
    from fluidcc.delay.cycle import Cycle as Cycle
    from fluidcc.delay.cycle import limit_cycle as limit_cycle
    from fluidcc.delay.equation import Equation as Equation
    from fluidcc.delay.fixed_points import equilibria as equilibria
    from fluidcc.delay.hopf import Crossing as Crossing
    from fluidcc.delay.hopf import crossings as crossings
    from fluidcc.delay.linear import abscissa as abscissa
    from fluidcc.delay.linear import count_right as count_right
    from fluidcc.delay.linear import critical_delay as critical_delay
    from fluidcc.delay.linear import linearize as linearize
    from fluidcc.delay.linear import margins as margins
    from fluidcc.delay.linear import roots as roots
    from fluidcc.delay.solution import Solution as Solution
    from fluidcc.delay.solution import solve as solve
    from fluidcc.theory.delay_systems.delay_system import DelaySystem as DelaySystem
    from fluidcc.theory.delay_systems.response import DelayLoop as DelayLoop

# The public names and their modules; a test holds the imports above to it.
_HOMES = {
    "Chart": "fluidcc.delay.charts",
    "Crossing": "fluidcc.delay.hopf",
    "Cycle": "fluidcc.delay.cycle",
    "DelayLoop": "fluidcc.theory.delay_systems.response",
    "DelaySystem": "fluidcc.theory.delay_systems.delay_system",
    "Equation": "fluidcc.delay.equation",
    "Solution": "fluidcc.delay.solution",
    "abscissa": "fluidcc.delay.linear",
    "chart": "fluidcc.delay.charts",
    "count_right": "fluidcc.delay.linear",
    "critical_delay": "fluidcc.delay.linear",
    "crossings": "fluidcc.delay.hopf",
    "equilibria": "fluidcc.delay.fixed_points",
    "limit_cycle": "fluidcc.delay.cycle",
    "linearize": "fluidcc.delay.linear",
    "margins": "fluidcc.delay.linear",
    "roots": "fluidcc.delay.linear",
    "solve": "fluidcc.delay.solution",
}

__all__ = [*_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__, __dir__ = lazily(globals(), _HOMES)
