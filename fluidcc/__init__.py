"""fluidcc: datacenter congestion control as delay-differential fluid models.

What everybody uses is here; the rest is grouped in `fluidcc.collectives`, `fluidcc.delay`, `fluidcc.fabrics`,
`fluidcc.metrics`, `fluidcc.operators`, `fluidcc.studies` and `fluidcc.theory`. All is loaded when first used: ``import
fluidcc as fc`` alone imports nothing heavy.

It sets one switch of XLA, in ``XLA_FLAGS``, by which a single run is ten times as fast; what the user has set
wins, and with ``FLUIDCC_JAX=off`` JAX is left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.compiling.settings import set_flag
from fluidcc.surface import lazily
from fluidcc.version import VERSION

__version__ = VERSION

if TYPE_CHECKING:
    from fluidcc import dde
    from fluidcc import errors as errors
    from fluidcc import operators as operators
    from fluidcc import studies as studies
    from fluidcc import theory as theory
    from fluidcc import units as units
    from fluidcc.builders import chain as chain
    from fluidcc.builders import clos as clos
    from fluidcc.builders import clos_testbed as clos_testbed
    from fluidcc.builders import clos_unit as clos_unit
    from fluidcc.builders import fat_tree as fat_tree
    from fluidcc.builders import incast as incast
    from fluidcc.builders import parking_lot as parking_lot
    from fluidcc.builders.toml_file import load_scenario as load_scenario
    from fluidcc.builders.toml_file import save_scenario as save_scenario
    from fluidcc.contract.preset import Preset as Preset
    from fluidcc.contract.registry import preset as preset
    from fluidcc.contract.registry import presets as presets
    from fluidcc.contract.registry import register as register
    from fluidcc.engines.fluid.metrics import measure as measure
    from fluidcc.engines.run import ensemble as ensemble
    from fluidcc.engines.run import simulate as simulate
    from fluidcc.errors import InputError as InputError
    from fluidcc.operators.audit import Audit as Audit
    from fluidcc.operators.audit import audit as audit
    from fluidcc.proofs.verdict.registry import list_claims as list_claims
    from fluidcc.proofs.verdict.registry import list_figures as list_figures
    from fluidcc.proofs.verdict.registry import reproduce as reproduce
    from fluidcc.proofs.verdict.registry import verify as verify
    from fluidcc.results import metrics as metrics
    from fluidcc.results.comparison import Comparison as Comparison
    from fluidcc.results.comparison import compare as compare
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
    from fluidcc.studies.fitting import fit as fit
    from fluidcc.studies.sweeps import sweep as sweep
    from fluidcc.studies.sweeps.saved import load as load
    from fluidcc.studies.tuning import tune as tune
    from fluidcc.theory.control.equilibrium import equilibria as equilibria
    from fluidcc.theory.control.equilibrium import equilibrium as equilibrium
    from fluidcc.theory.control.limit_cycle import limit_cycle as limit_cycle
    from fluidcc.theory.control.linearize import linearize as linearize
    from fluidcc.theory.control.stability import stability as stability
    from fluidcc.theory.symbolic.model import symbolic as symbolic
    from fluidcc.workloads import collectives as collectives
    from fluidcc.workloads import fabrics as fabrics
    from fluidcc.workloads.collectives.study import collective as collective
    from fluidcc.workloads.fabrics.study import fabric as fabric

    delay = dde

__getattr__, __dir__, __all__ = lazily(globals())

set_flag()
