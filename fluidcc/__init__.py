"""fluidcc: datacenter congestion control as delay-differential fluid models.

Everything public is here and loaded when first used: ``import fluidcc as fc`` alone imports nothing heavy.

It sets one switch of XLA, in ``XLA_FLAGS``, by which a single run is ten times as fast; what the user has set
wins, and with ``FLUIDCC_JAX=off`` JAX is left alone.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

from fluidcc.compiling.loop_flag import set_flag

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fluidcc.audit import Audit as Audit
    from fluidcc.audit import audit as audit
    from fluidcc.buffer_dependencies import buffer_cycle as buffer_cycle
    from fluidcc.compare import Comparison as Comparison
    from fluidcc.compare import compare as compare
    from fluidcc.compare import ensemble as ensemble
    from fluidcc.control.equilibrium import Equilibrium as Equilibrium
    from fluidcc.control.equilibrium import equilibria as equilibria
    from fluidcc.control.equilibrium import equilibrium as equilibrium
    from fluidcc.control.limit_cycle import LimitCycle as LimitCycle
    from fluidcc.control.limit_cycle import limit_cycle as limit_cycle
    from fluidcc.control.linearize import Linearization as Linearization
    from fluidcc.control.linearize import linearize as linearize
    from fluidcc.control.stability import Stability as Stability
    from fluidcc.control.stability import stability as stability
    from fluidcc.errors import InputError as InputError
    from fluidcc.fairness.lead import sampling_lead as sampling_lead
    from fluidcc.fairness.over_time import finish_times as finish_times
    from fluidcc.fairness.over_time import jain_over_time as jain_over_time
    from fluidcc.fairness.over_time import time_to_fairness as time_to_fairness
    from fluidcc.fairness.queue import shared_decrease as shared_decrease
    from fluidcc.fairness.rates import decrease_rates as decrease_rates
    from fluidcc.fluid.measure import measure as measure
    from fluidcc.recursion.additive import additive_increase as additive_increase
    from fluidcc.recursion.pareto import pareto as pareto
    from fluidcc.recursion.registers import alpha_fair as alpha_fair
    from fluidcc.scenario import PFC as PFC
    from fluidcc.scenario import RED as RED
    from fluidcc.scenario import Failure as Failure
    from fluidcc.scenario import Flow as Flow
    from fluidcc.scenario import Link as Link
    from fluidcc.scenario import Scenario as Scenario
    from fluidcc.scenario import Storm as Storm
    from fluidcc.scenario import TrafficClass as TrafficClass
    from fluidcc.schemes.acc import ACC as ACC
    from fluidcc.schemes.acc.period_map import acc_map as acc_map
    from fluidcc.schemes.acc.period_map import acc_maps as acc_maps
    from fluidcc.schemes.dcqcn import DCQCN as DCQCN
    from fluidcc.schemes.dctcp import DCTCP as DCTCP
    from fluidcc.schemes.hpcc import HPCC as HPCC
    from fluidcc.schemes.hpcc_multiq import HPCCMultiQ as HPCCMultiQ
    from fluidcc.schemes.hpcc_rx import HPCCRx as HPCCRx
    from fluidcc.schemes.none import NoControl as NoControl
    from fluidcc.schemes.swift import Swift as Swift
    from fluidcc.schemes.timely import TIMELY as TIMELY
    from fluidcc.simulate import simulate as simulate
    from fluidcc.sweep import SweepResult as SweepResult
    from fluidcc.sweep import sweep as sweep
    from fluidcc.sweep.branches import Branches as Branches
    from fluidcc.sweep.chart import StabilityChart as StabilityChart
    from fluidcc.sweep.chart import stability_chart as stability_chart
    from fluidcc.sweep.hysteresis import bistability as bistability
    from fluidcc.sweep.hysteresis import from_rest as from_rest
    from fluidcc.sweep.hysteresis import hysteresis as hysteresis
    from fluidcc.sweep.wai import WaiSweep as WaiSweep
    from fluidcc.sweep.wai import wai_sweep as wai_sweep
    from fluidcc.topologies import chain as chain
    from fluidcc.topologies import clos as clos
    from fluidcc.topologies import clos_testbed as clos_testbed
    from fluidcc.topologies import clos_unit as clos_unit
    from fluidcc.topologies import fat_tree as fat_tree
    from fluidcc.topologies import incast as incast
    from fluidcc.topologies import parking_lot as parking_lot
    from fluidcc.trace import Trace as Trace
    from fluidcc.trace import oscillation as oscillation
    from fluidcc.trace import settling_time as settling_time
    from fluidcc.workloads import incasts as incasts
    from fluidcc.workloads import poisson_flows as poisson_flows

_HOMES = {
    "ACC": "fluidcc.schemes.acc",
    "Audit": "fluidcc.audit",
    "Branches": "fluidcc.sweep.branches",
    "Comparison": "fluidcc.compare",
    "DCQCN": "fluidcc.schemes.dcqcn",
    "DCTCP": "fluidcc.schemes.dctcp",
    "Equilibrium": "fluidcc.control.equilibrium",
    "PFC": "fluidcc.scenario",
    "Failure": "fluidcc.scenario",
    "TrafficClass": "fluidcc.scenario",
    "HPCC": "fluidcc.schemes.hpcc",
    "HPCCMultiQ": "fluidcc.schemes.hpcc_multiq",
    "HPCCRx": "fluidcc.schemes.hpcc_rx",
    "Flow": "fluidcc.scenario",
    "InputError": "fluidcc.errors",
    "LimitCycle": "fluidcc.control.limit_cycle",
    "Linearization": "fluidcc.control.linearize",
    "Link": "fluidcc.scenario",
    "NoControl": "fluidcc.schemes.none",
    "RED": "fluidcc.scenario",
    "Scenario": "fluidcc.scenario",
    "Stability": "fluidcc.control.stability",
    "StabilityChart": "fluidcc.sweep.chart",
    "Storm": "fluidcc.scenario",
    "SweepResult": "fluidcc.sweep",
    "Swift": "fluidcc.schemes.swift",
    "TIMELY": "fluidcc.schemes.timely",
    "Trace": "fluidcc.trace",
    "WaiSweep": "fluidcc.sweep.wai",
    "acc_map": "fluidcc.schemes.acc.period_map",
    "acc_maps": "fluidcc.schemes.acc.period_map",
    "additive_increase": "fluidcc.recursion.additive",
    "alpha_fair": "fluidcc.recursion.registers",
    "audit": "fluidcc.audit",
    "bistability": "fluidcc.sweep.hysteresis",
    "buffer_cycle": "fluidcc.buffer_dependencies",
    "chain": "fluidcc.topologies",
    "clos": "fluidcc.topologies",
    "clos_testbed": "fluidcc.topologies",
    "clos_unit": "fluidcc.topologies",
    "compare": "fluidcc.compare",
    "decrease_rates": "fluidcc.fairness.rates",
    "ensemble": "fluidcc.compare",
    "equilibria": "fluidcc.control.equilibrium",
    "equilibrium": "fluidcc.control.equilibrium",
    "fat_tree": "fluidcc.topologies",
    "finish_times": "fluidcc.fairness.over_time",
    "from_rest": "fluidcc.sweep.hysteresis",
    "hysteresis": "fluidcc.sweep.hysteresis",
    "incast": "fluidcc.topologies",
    "incasts": "fluidcc.workloads",
    "jain_over_time": "fluidcc.fairness.over_time",
    "limit_cycle": "fluidcc.control.limit_cycle",
    "linearize": "fluidcc.control.linearize",
    "measure": "fluidcc.fluid.measure",
    "oscillation": "fluidcc.trace",
    "pareto": "fluidcc.recursion.pareto",
    "poisson_flows": "fluidcc.workloads",
    "parking_lot": "fluidcc.topologies",
    "sampling_lead": "fluidcc.fairness.lead",
    "settling_time": "fluidcc.trace",
    "shared_decrease": "fluidcc.fairness.queue",
    "simulate": "fluidcc.simulate",
    "stability": "fluidcc.control.stability",
    "stability_chart": "fluidcc.sweep.chart",
    "sweep": "fluidcc.sweep",
    "time_to_fairness": "fluidcc.fairness.over_time",
    "wai_sweep": "fluidcc.sweep.wai",
}

__all__ = ["__version__", *_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fluidcc' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


class _Package(types.ModuleType):
    """The package itself: ``fc.simulate`` stays the function after ``fluidcc.simulate``, its module, is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
set_flag()


def __dir__() -> list[str]:
    return sorted(__all__)
