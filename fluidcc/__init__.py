"""fluidcc: datacenter congestion control as delay-differential fluid models.

Everything public is here and loaded when first used: ``import fluidcc as fc`` alone imports nothing heavy.

It sets one switch of XLA, in ``XLA_FLAGS``, by which a single run is ten times as fast; what the user has set
wins, and with ``FLUIDCC_JAX=off`` JAX is left alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fluidcc.compiling.loop_flag import set_flag

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fluidcc.engines.ensemble import ensemble as ensemble
    from fluidcc.engines.fluid.measure import measure as measure
    from fluidcc.engines.packet.buffer_cycle import buffer_cycle as buffer_cycle
    from fluidcc.engines.run import simulate as simulate
    from fluidcc.errors import InputError as InputError
    from fluidcc.operators.audit import Audit as Audit
    from fluidcc.operators.audit import audit as audit
    from fluidcc.results.comparison import Comparison as Comparison
    from fluidcc.results.comparison import compare as compare
    from fluidcc.results.metrics import oscillation as oscillation
    from fluidcc.results.metrics import settling_time as settling_time
    from fluidcc.results.trace import Trace as Trace
    from fluidcc.scenario.builders import chain as chain
    from fluidcc.scenario.builders import clos as clos
    from fluidcc.scenario.builders import clos_testbed as clos_testbed
    from fluidcc.scenario.builders import clos_unit as clos_unit
    from fluidcc.scenario.builders import fat_tree as fat_tree
    from fluidcc.scenario.builders import incast as incast
    from fluidcc.scenario.builders import parking_lot as parking_lot
    from fluidcc.scenario.builders.workloads import incasts as incasts
    from fluidcc.scenario.builders.workloads import poisson_flows as poisson_flows
    from fluidcc.scenario.model import PFC as PFC
    from fluidcc.scenario.model import RED as RED
    from fluidcc.scenario.model import Failure as Failure
    from fluidcc.scenario.model import Flow as Flow
    from fluidcc.scenario.model import Link as Link
    from fluidcc.scenario.model import Scenario as Scenario
    from fluidcc.scenario.model import Storm as Storm
    from fluidcc.scenario.model import TrafficClass as TrafficClass
    from fluidcc.schemes.acc import ACC as ACC
    from fluidcc.schemes.acc.period_map import acc_map as acc_map
    from fluidcc.schemes.acc.period_map import acc_maps as acc_maps
    from fluidcc.schemes.dcqcn import DCQCN as DCQCN
    from fluidcc.schemes.dctcp import DCTCP as DCTCP
    from fluidcc.schemes.hpcc import HPCC as HPCC
    from fluidcc.schemes.hpcc_multiq import HPCCMultiQ as HPCCMultiQ
    from fluidcc.schemes.hpcc_rx import HPCCRx as HPCCRx
    from fluidcc.schemes.none import NoControl as NoControl
    from fluidcc.schemes.registry import register as register
    from fluidcc.schemes.swift import Swift as Swift
    from fluidcc.schemes.timely import TIMELY as TIMELY
    from fluidcc.sweeps import SweepResult as SweepResult
    from fluidcc.sweeps import sweep as sweep
    from fluidcc.sweeps.branches import Branches as Branches
    from fluidcc.sweeps.chart import StabilityChart as StabilityChart
    from fluidcc.sweeps.chart import stability_chart as stability_chart
    from fluidcc.sweeps.hysteresis import bistability as bistability
    from fluidcc.sweeps.hysteresis import from_equilibrium as from_equilibrium
    from fluidcc.sweeps.hysteresis import hysteresis as hysteresis
    from fluidcc.sweeps.wai import WaiSweep as WaiSweep
    from fluidcc.sweeps.wai import wai_sweep as wai_sweep
    from fluidcc.theory.control.equilibrium import Equilibrium as Equilibrium
    from fluidcc.theory.control.equilibrium import equilibria as equilibria
    from fluidcc.theory.control.equilibrium import equilibrium as equilibrium
    from fluidcc.theory.control.limit_cycle import LimitCycle as LimitCycle
    from fluidcc.theory.control.limit_cycle import limit_cycle as limit_cycle
    from fluidcc.theory.control.linearize import Linearization as Linearization
    from fluidcc.theory.control.linearize import linearize as linearize
    from fluidcc.theory.control.stability import Stability as Stability
    from fluidcc.theory.control.stability import stability as stability
    from fluidcc.theory.fairness.lead import sampling_lead as sampling_lead
    from fluidcc.theory.fairness.over_time import finish_times as finish_times
    from fluidcc.theory.fairness.over_time import jain_over_time as jain_over_time
    from fluidcc.theory.fairness.over_time import time_to_fairness as time_to_fairness
    from fluidcc.theory.fairness.queue import shared_decrease as shared_decrease
    from fluidcc.theory.fairness.rates import decrease_rates as decrease_rates
    from fluidcc.theory.recursion.additive import additive_increase as additive_increase
    from fluidcc.theory.recursion.pareto import pareto as pareto
    from fluidcc.theory.recursion.registers import alpha_fair as alpha_fair

_HOMES = {
    "ACC": "fluidcc.schemes.acc",
    "Audit": "fluidcc.operators.audit",
    "Branches": "fluidcc.sweeps.branches",
    "Comparison": "fluidcc.results.comparison",
    "DCQCN": "fluidcc.schemes.dcqcn",
    "DCTCP": "fluidcc.schemes.dctcp",
    "Equilibrium": "fluidcc.theory.control.equilibrium",
    "PFC": "fluidcc.scenario.model",
    "Failure": "fluidcc.scenario.model",
    "TrafficClass": "fluidcc.scenario.model",
    "HPCC": "fluidcc.schemes.hpcc",
    "HPCCMultiQ": "fluidcc.schemes.hpcc_multiq",
    "HPCCRx": "fluidcc.schemes.hpcc_rx",
    "Flow": "fluidcc.scenario.model",
    "InputError": "fluidcc.errors",
    "LimitCycle": "fluidcc.theory.control.limit_cycle",
    "Linearization": "fluidcc.theory.control.linearize",
    "Link": "fluidcc.scenario.model",
    "NoControl": "fluidcc.schemes.none",
    "RED": "fluidcc.scenario.model",
    "Scenario": "fluidcc.scenario.model",
    "Stability": "fluidcc.theory.control.stability",
    "StabilityChart": "fluidcc.sweeps.chart",
    "Storm": "fluidcc.scenario.model",
    "SweepResult": "fluidcc.sweeps",
    "Swift": "fluidcc.schemes.swift",
    "TIMELY": "fluidcc.schemes.timely",
    "Trace": "fluidcc.results.trace",
    "WaiSweep": "fluidcc.sweeps.wai",
    "acc_map": "fluidcc.schemes.acc.period_map",
    "acc_maps": "fluidcc.schemes.acc.period_map",
    "additive_increase": "fluidcc.theory.recursion.additive",
    "alpha_fair": "fluidcc.theory.recursion.registers",
    "audit": "fluidcc.operators.audit",
    "bistability": "fluidcc.sweeps.hysteresis",
    "buffer_cycle": "fluidcc.engines.packet.buffer_cycle",
    "chain": "fluidcc.scenario.builders",
    "clos": "fluidcc.scenario.builders",
    "clos_testbed": "fluidcc.scenario.builders",
    "clos_unit": "fluidcc.scenario.builders",
    "compare": "fluidcc.results.comparison",
    "decrease_rates": "fluidcc.theory.fairness.rates",
    "ensemble": "fluidcc.engines.ensemble",
    "equilibria": "fluidcc.theory.control.equilibrium",
    "equilibrium": "fluidcc.theory.control.equilibrium",
    "fat_tree": "fluidcc.scenario.builders",
    "finish_times": "fluidcc.theory.fairness.over_time",
    "from_equilibrium": "fluidcc.sweeps.hysteresis",
    "hysteresis": "fluidcc.sweeps.hysteresis",
    "incast": "fluidcc.scenario.builders",
    "incasts": "fluidcc.scenario.builders.workloads",
    "jain_over_time": "fluidcc.theory.fairness.over_time",
    "limit_cycle": "fluidcc.theory.control.limit_cycle",
    "linearize": "fluidcc.theory.control.linearize",
    "measure": "fluidcc.engines.fluid.measure",
    "oscillation": "fluidcc.results.metrics",
    "pareto": "fluidcc.theory.recursion.pareto",
    "poisson_flows": "fluidcc.scenario.builders.workloads",
    "parking_lot": "fluidcc.scenario.builders",
    "register": "fluidcc.schemes.registry",
    "sampling_lead": "fluidcc.theory.fairness.lead",
    "settling_time": "fluidcc.results.metrics",
    "shared_decrease": "fluidcc.theory.fairness.queue",
    "simulate": "fluidcc.engines.run",
    "stability": "fluidcc.theory.control.stability",
    "stability_chart": "fluidcc.sweeps.chart",
    "sweep": "fluidcc.sweeps",
    "time_to_fairness": "fluidcc.theory.fairness.over_time",
    "wai_sweep": "fluidcc.sweeps.wai",
}

__all__ = ["__version__", *_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fluidcc' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


set_flag()


def __dir__() -> list[str]:
    return sorted(__all__)
