"""Delay-differential equations of your own: solutions, equilibria, exact roots, margins, limit cycles, charts.

Nothing here knows networks; the kernel and the roots are those that the fluid models run on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.surface import lazily

if TYPE_CHECKING:
    from fluidcc.dde.charts import Chart as Chart
    from fluidcc.dde.charts import chart as chart
    from fluidcc.dde.cycle import Cycle as Cycle
    from fluidcc.dde.cycle import limit_cycle as limit_cycle
    from fluidcc.dde.delay_system import DelaySystem as DelaySystem
    from fluidcc.dde.equation import Equation as Equation
    from fluidcc.dde.fixed_points import equilibria as equilibria
    from fluidcc.dde.hopf import Crossing as Crossing
    from fluidcc.dde.hopf import crossings as crossings
    from fluidcc.dde.linear import abscissa as abscissa
    from fluidcc.dde.linear import count_right as count_right
    from fluidcc.dde.linear import critical_delay as critical_delay
    from fluidcc.dde.linear import linearize as linearize
    from fluidcc.dde.linear import margins as margins
    from fluidcc.dde.linear import roots as roots
    from fluidcc.dde.response import DelayLoop as DelayLoop
    from fluidcc.dde.solution import Solution as Solution
    from fluidcc.dde.solution import solve as solve

__getattr__, __dir__, __all__ = lazily(globals())
