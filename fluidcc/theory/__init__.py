"""Theory beside the engines: control theory, the papers' recursions, fairness, queueing.

What belongs to one paper or to plain delay systems is public here: ``fc.theory.pareto``. Loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.surface import lazily

if TYPE_CHECKING:
    from fluidcc.schemes.acc.period_map import acc_map as acc_map
    from fluidcc.schemes.acc.period_map import acc_maps as acc_maps
    from fluidcc.schemes.dcqcn.published import published as published
    from fluidcc.theory import queueing as queueing
    from fluidcc.theory.control.noise import QueueNoise as QueueNoise
    from fluidcc.theory.delay_systems.critical import critical_delay as critical_delay
    from fluidcc.theory.delay_systems.delay_system import DelaySystem as DelaySystem
    from fluidcc.theory.delay_systems.response import DelayLoop as DelayLoop
    from fluidcc.theory.delay_systems.roots import abscissa as abscissa
    from fluidcc.theory.delay_systems.roots import roots as roots
    from fluidcc.theory.delay_systems.winding import count_right as count_right
    from fluidcc.theory.fairness.lead import sampling_lead as sampling_lead
    from fluidcc.theory.fairness.queue import shared_decrease as shared_decrease
    from fluidcc.theory.fairness.rates import decrease_rates as decrease_rates
    from fluidcc.theory.recursion.additive import additive_increase as additive_increase
    from fluidcc.theory.recursion.pareto import pareto as pareto
    from fluidcc.theory.recursion.registers import alpha_fair as alpha_fair

# The public names and their modules; a test holds the imports above to it.
_HOMES = {
    "DelayLoop": "fluidcc.theory.delay_systems.response",
    "DelaySystem": "fluidcc.theory.delay_systems.delay_system",
    "QueueNoise": "fluidcc.theory.control.noise",
    "abscissa": "fluidcc.theory.delay_systems.roots",
    "acc_map": "fluidcc.schemes.acc.period_map",
    "acc_maps": "fluidcc.schemes.acc.period_map",
    "additive_increase": "fluidcc.theory.recursion.additive",
    "alpha_fair": "fluidcc.theory.recursion.registers",
    "count_right": "fluidcc.theory.delay_systems.winding",
    "critical_delay": "fluidcc.theory.delay_systems.critical",
    "decrease_rates": "fluidcc.theory.fairness.rates",
    "pareto": "fluidcc.theory.recursion.pareto",
    "published": "fluidcc.schemes.dcqcn.published",
    "roots": "fluidcc.theory.delay_systems.roots",
    "sampling_lead": "fluidcc.theory.fairness.lead",
    "shared_decrease": "fluidcc.theory.fairness.queue",
}
_MODULES = ("queueing",)

__all__ = [*_HOMES, *_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__, __dir__ = lazily(globals(), _HOMES, _MODULES)
