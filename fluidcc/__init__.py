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
from fluidcc.version import VERSION

__version__ = VERSION

if TYPE_CHECKING:
    from fluidcc import dde
    from fluidcc import errors as errors
    from fluidcc import operators as operators
    from fluidcc import theory as theory
    from fluidcc import units as units
    from fluidcc.builders import chain as chain
    from fluidcc.builders import clos as clos
    from fluidcc.builders import clos_testbed as clos_testbed
    from fluidcc.builders import clos_unit as clos_unit
    from fluidcc.builders import fat_tree as fat_tree
    from fluidcc.builders import incast as incast
    from fluidcc.builders import parking_lot as parking_lot
    from fluidcc.builders.closed_loops import pair_flows as pair_flows
    from fluidcc.builders.closed_loops import rebuild_flows as rebuild_flows
    from fluidcc.builders.toml_file import load_scenario as load_scenario
    from fluidcc.builders.toml_file import save_scenario as save_scenario
    from fluidcc.builders.workloads import all_to_all_flows as all_to_all_flows
    from fluidcc.builders.workloads import incasts as incasts
    from fluidcc.builders.workloads import permutation_flows as permutation_flows
    from fluidcc.builders.workloads import poisson_flows as poisson_flows
    from fluidcc.contract.preset import Preset as Preset
    from fluidcc.contract.presets import preset as preset
    from fluidcc.contract.presets import presets as presets
    from fluidcc.contract.registry import register as register
    from fluidcc.engines.ensemble import ensemble as ensemble
    from fluidcc.engines.fluid.measure import measure as measure
    from fluidcc.engines.packet.buffer_cycle import buffer_cycle as buffer_cycle
    from fluidcc.engines.run import simulate as simulate
    from fluidcc.errors import InputError as InputError
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
    from fluidcc.schemes.swift import Swift as Swift
    from fluidcc.schemes.timely import TIMELY as TIMELY
    from fluidcc.studies.fitting import Fit as Fit
    from fluidcc.studies.fitting import Shares as Shares
    from fluidcc.studies.fitting import fit as fit
    from fluidcc.studies.sweeps import SweepResult as SweepResult
    from fluidcc.studies.sweeps import sweep as sweep
    from fluidcc.studies.sweeps.bistable_region import BistableRegion as BistableRegion
    from fluidcc.studies.sweeps.bistable_region import bistable_region as bistable_region
    from fluidcc.studies.sweeps.branches import Branches as Branches
    from fluidcc.studies.sweeps.chart import StabilityChart as StabilityChart
    from fluidcc.studies.sweeps.chart import stability_chart as stability_chart
    from fluidcc.studies.sweeps.cycle_branch import CycleBranch as CycleBranch
    from fluidcc.studies.sweeps.cycle_branch import cycle_branch as cycle_branch
    from fluidcc.studies.sweeps.hysteresis import bistability as bistability
    from fluidcc.studies.sweeps.hysteresis import from_equilibrium as from_equilibrium
    from fluidcc.studies.sweeps.hysteresis import hysteresis as hysteresis
    from fluidcc.studies.sweeps.load import load as load
    from fluidcc.studies.sweeps.wai import WaiSweep as WaiSweep
    from fluidcc.studies.sweeps.wai import wai_sweep as wai_sweep
    from fluidcc.studies.tuning import FabricTuning as FabricTuning
    from fluidcc.studies.tuning import Tuning as Tuning
    from fluidcc.studies.tuning import tune as tune
    from fluidcc.studies.tuning import tune_fabric as tune_fabric
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
    from fluidcc.theory.symbolic.model import Symbolic as Symbolic
    from fluidcc.theory.symbolic.model import symbolic as symbolic
    from fluidcc.workloads import collectives as collectives
    from fluidcc.workloads import fabrics as fabrics
    from fluidcc.workloads.collectives.evaluate import collective as collective
    from fluidcc.workloads.collectives.study import CollectiveStudy as CollectiveStudy
    from fluidcc.workloads.fabrics.evaluate import fabric as fabric
    from fluidcc.workloads.fabrics.slowdown import Slowdown as Slowdown
    from fluidcc.workloads.fabrics.slowdown import slowdown as slowdown
    from fluidcc.workloads.fabrics.study import FabricStudy as FabricStudy

    delay = dde

__getattr__, __dir__, __all__ = lazily(globals())

set_flag()
