"""fluidcc: datacenter congestion control as delay-differential fluid models.

Everything public is here, in `fluidcc.collectives`, `fluidcc.delay`, `fluidcc.fabrics`, `fluidcc.operators` and
`fluidcc.theory`, and loaded when first used: ``import fluidcc as fc`` alone imports nothing heavy.

It sets one switch of XLA, in ``XLA_FLAGS``, by which a single run is ten times as fast; what the user has set
wins, and with ``FLUIDCC_JAX=off`` JAX is left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.compiling.loop_flag import set_flag
from fluidcc.surface import lazily

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fluidcc import collectives as collectives
    from fluidcc import delay as delay
    from fluidcc import errors as errors
    from fluidcc import fabrics as fabrics
    from fluidcc import operators as operators
    from fluidcc import theory as theory
    from fluidcc import units as units
    from fluidcc.collectives.evaluate import collective as collective
    from fluidcc.collectives.study import CollectiveStudy as CollectiveStudy
    from fluidcc.engines.ensemble import ensemble as ensemble
    from fluidcc.engines.fluid.measure import measure as measure
    from fluidcc.engines.packet.buffer_cycle import buffer_cycle as buffer_cycle
    from fluidcc.engines.run import simulate as simulate
    from fluidcc.errors import InputError as InputError
    from fluidcc.fabrics.evaluate import fabric as fabric
    from fluidcc.fabrics.slowdown import Slowdown as Slowdown
    from fluidcc.fabrics.slowdown import slowdown as slowdown
    from fluidcc.fabrics.study import FabricStudy as FabricStudy
    from fluidcc.fitting import Fit as Fit
    from fluidcc.fitting import fit as fit
    from fluidcc.operators.audit import Audit as Audit
    from fluidcc.operators.audit import audit as audit
    from fluidcc.proofs.verdict.registry import list_claims as list_claims
    from fluidcc.proofs.verdict.registry import list_figures as list_figures
    from fluidcc.proofs.verdict.registry import reproduce as reproduce
    from fluidcc.proofs.verdict.registry import verify as verify
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
    from fluidcc.scenario.builders.closed_loops import pair_flows as pair_flows
    from fluidcc.scenario.builders.closed_loops import rebuild_flows as rebuild_flows
    from fluidcc.scenario.builders.toml_file import load_scenario as load_scenario
    from fluidcc.scenario.builders.toml_file import save_scenario as save_scenario
    from fluidcc.scenario.builders.workloads import all_to_all_flows as all_to_all_flows
    from fluidcc.scenario.builders.workloads import incasts as incasts
    from fluidcc.scenario.builders.workloads import permutation_flows as permutation_flows
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
    from fluidcc.schemes.dcqcn import DCQCN as DCQCN
    from fluidcc.schemes.dctcp import DCTCP as DCTCP
    from fluidcc.schemes.hpcc import HPCC as HPCC
    from fluidcc.schemes.hpcc_multiq import HPCCMultiQ as HPCCMultiQ
    from fluidcc.schemes.hpcc_rx import HPCCRx as HPCCRx
    from fluidcc.schemes.none import NoControl as NoControl
    from fluidcc.schemes.nscc import NSCC as NSCC
    from fluidcc.schemes.preset import Preset as Preset
    from fluidcc.schemes.presets import preset as preset
    from fluidcc.schemes.presets import presets as presets
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
    from fluidcc.sweeps.load import load as load
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
    from fluidcc.theory.fairness.over_time import finish_times as finish_times
    from fluidcc.theory.fairness.over_time import jain_over_time as jain_over_time
    from fluidcc.theory.fairness.over_time import time_to_fairness as time_to_fairness
    from fluidcc.tuning import Tuning as Tuning
    from fluidcc.tuning import tune as tune

# The public names and their modules; a test holds the imports above to it.
_HOMES = {
    "ACC": "fluidcc.schemes.acc",
    "Audit": "fluidcc.operators.audit",
    "Branches": "fluidcc.sweeps.branches",
    "CollectiveStudy": "fluidcc.collectives.study",
    "Comparison": "fluidcc.results.comparison",
    "DCQCN": "fluidcc.schemes.dcqcn",
    "DCTCP": "fluidcc.schemes.dctcp",
    "Equilibrium": "fluidcc.theory.control.equilibrium",
    "FabricStudy": "fluidcc.fabrics.study",
    "Failure": "fluidcc.scenario.model",
    "Fit": "fluidcc.fitting",
    "Flow": "fluidcc.scenario.model",
    "HPCC": "fluidcc.schemes.hpcc",
    "HPCCMultiQ": "fluidcc.schemes.hpcc_multiq",
    "HPCCRx": "fluidcc.schemes.hpcc_rx",
    "InputError": "fluidcc.errors",
    "LimitCycle": "fluidcc.theory.control.limit_cycle",
    "Linearization": "fluidcc.theory.control.linearize",
    "Link": "fluidcc.scenario.model",
    "NSCC": "fluidcc.schemes.nscc",
    "NoControl": "fluidcc.schemes.none",
    "PFC": "fluidcc.scenario.model",
    "Preset": "fluidcc.schemes.preset",
    "RED": "fluidcc.scenario.model",
    "Scenario": "fluidcc.scenario.model",
    "Slowdown": "fluidcc.fabrics.slowdown",
    "Stability": "fluidcc.theory.control.stability",
    "StabilityChart": "fluidcc.sweeps.chart",
    "Storm": "fluidcc.scenario.model",
    "SweepResult": "fluidcc.sweeps",
    "Swift": "fluidcc.schemes.swift",
    "TIMELY": "fluidcc.schemes.timely",
    "Trace": "fluidcc.results.trace",
    "TrafficClass": "fluidcc.scenario.model",
    "Tuning": "fluidcc.tuning",
    "WaiSweep": "fluidcc.sweeps.wai",
    "all_to_all_flows": "fluidcc.scenario.builders.workloads",
    "audit": "fluidcc.operators.audit",
    "bistability": "fluidcc.sweeps.hysteresis",
    "buffer_cycle": "fluidcc.engines.packet.buffer_cycle",
    "chain": "fluidcc.scenario.builders",
    "clos": "fluidcc.scenario.builders",
    "clos_testbed": "fluidcc.scenario.builders",
    "clos_unit": "fluidcc.scenario.builders",
    "collective": "fluidcc.collectives.evaluate",
    "compare": "fluidcc.results.comparison",
    "ensemble": "fluidcc.engines.ensemble",
    "equilibria": "fluidcc.theory.control.equilibrium",
    "equilibrium": "fluidcc.theory.control.equilibrium",
    "fabric": "fluidcc.fabrics.evaluate",
    "fat_tree": "fluidcc.scenario.builders",
    "finish_times": "fluidcc.theory.fairness.over_time",
    "fit": "fluidcc.fitting",
    "from_equilibrium": "fluidcc.sweeps.hysteresis",
    "hysteresis": "fluidcc.sweeps.hysteresis",
    "incast": "fluidcc.scenario.builders",
    "incasts": "fluidcc.scenario.builders.workloads",
    "jain_over_time": "fluidcc.theory.fairness.over_time",
    "limit_cycle": "fluidcc.theory.control.limit_cycle",
    "linearize": "fluidcc.theory.control.linearize",
    "list_claims": "fluidcc.proofs.verdict.registry",
    "list_figures": "fluidcc.proofs.verdict.registry",
    "load": "fluidcc.sweeps.load",
    "load_scenario": "fluidcc.scenario.builders.toml_file",
    "measure": "fluidcc.engines.fluid.measure",
    "oscillation": "fluidcc.results.metrics",
    "pair_flows": "fluidcc.scenario.builders.closed_loops",
    "parking_lot": "fluidcc.scenario.builders",
    "permutation_flows": "fluidcc.scenario.builders.workloads",
    "poisson_flows": "fluidcc.scenario.builders.workloads",
    "preset": "fluidcc.schemes.presets",
    "presets": "fluidcc.schemes.presets",
    "rebuild_flows": "fluidcc.scenario.builders.closed_loops",
    "register": "fluidcc.schemes.registry",
    "reproduce": "fluidcc.proofs.verdict.registry",
    "save_scenario": "fluidcc.scenario.builders.toml_file",
    "settling_time": "fluidcc.results.metrics",
    "simulate": "fluidcc.engines.run",
    "slowdown": "fluidcc.fabrics.slowdown",
    "stability": "fluidcc.theory.control.stability",
    "stability_chart": "fluidcc.sweeps.chart",
    "sweep": "fluidcc.sweeps",
    "time_to_fairness": "fluidcc.theory.fairness.over_time",
    "tune": "fluidcc.tuning",
    "verify": "fluidcc.proofs.verdict.registry",
    "wai_sweep": "fluidcc.sweeps.wai",
}
_MODULES = ("collectives", "delay", "errors", "fabrics", "operators", "theory", "units")
# Names of the version before: they answer with a warning, for one version.
_RENAMED = {
    "acc_map": "theory.acc_map",
    "acc_maps": "theory.acc_maps",
    "additive_increase": "theory.additive_increase",
    "alpha_fair": "theory.alpha_fair",
    "decrease_rates": "theory.decrease_rates",
    "pareto": "theory.pareto",
    "sampling_lead": "theory.sampling_lead",
    "shared_decrease": "theory.shared_decrease",
    "from_rest": "from_equilibrium",
}

__all__ = ["__version__", *_HOMES, *_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__, __dir__ = lazily(globals(), _HOMES, _MODULES, _RENAMED)

set_flag()
