"""Theory in addition to the engines: control theory, the papers' recursions, fairness, queueing.

What belongs to one paper is public here: ``fc.theory.pareto``. Loaded when first used. Plain delay systems are in
``fc.delay``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.surface import lazily

if TYPE_CHECKING:
    from fluidcc.schemes.acc.period_map import acc_map as acc_map
    from fluidcc.schemes.acc.period_map import acc_maps as acc_maps
    from fluidcc.schemes.dcqcn.published import published as published
    from fluidcc.theory import loss_recovery as loss_recovery
    from fluidcc.theory import queueing as queueing
    from fluidcc.theory.control.equilibrium import Equilibrium as Equilibrium
    from fluidcc.theory.control.limit_cycle import LimitCycle as LimitCycle
    from fluidcc.theory.control.linearize import Linearization as Linearization
    from fluidcc.theory.control.noise import QueueNoise as QueueNoise
    from fluidcc.theory.control.stability import Stability as Stability
    from fluidcc.theory.fairness.lead import sampling_lead as sampling_lead
    from fluidcc.theory.fairness.over_time import finish_times as finish_times
    from fluidcc.theory.fairness.over_time import jain_over_time as jain_over_time
    from fluidcc.theory.fairness.over_time import time_to_fairness as time_to_fairness
    from fluidcc.theory.fairness.queue import shared_decrease as shared_decrease
    from fluidcc.theory.fairness.rates import decrease_rates as decrease_rates
    from fluidcc.theory.queueing import BurstQueue as BurstQueue
    from fluidcc.theory.queueing import burst_queue as burst_queue
    from fluidcc.theory.recursion.additive import additive_increase as additive_increase
    from fluidcc.theory.recursion.pareto import pareto as pareto
    from fluidcc.theory.recursion.registers import alpha_fair as alpha_fair
    from fluidcc.theory.symbolic.model import Symbolic as Symbolic

__getattr__, __dir__, __all__ = lazily(globals())
