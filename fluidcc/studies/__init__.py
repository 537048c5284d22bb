"""Many runs for one answer: sweeps, charts, tuning and fitting.

`fluidcc.sweep`, `fluidcc.tune` and `fluidcc.fit` are what everybody uses; the rest, and what they return, is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.surface import lazily

if TYPE_CHECKING:
    from fluidcc.studies.fitting import Fit as Fit
    from fluidcc.studies.fitting import Shares as Shares
    from fluidcc.studies.sweeps import SweepResult as SweepResult
    from fluidcc.studies.sweeps.bistable_region import BistableRegion as BistableRegion
    from fluidcc.studies.sweeps.bistable_region import bistable_region as bistable_region
    from fluidcc.studies.sweeps.chart import StabilityChart as StabilityChart
    from fluidcc.studies.sweeps.chart import stability_chart as stability_chart
    from fluidcc.studies.sweeps.cycle_branch import CycleBranch as CycleBranch
    from fluidcc.studies.sweeps.cycle_branch import cycle_branch as cycle_branch
    from fluidcc.studies.sweeps.hysteresis import Branches as Branches
    from fluidcc.studies.sweeps.hysteresis import bistability as bistability
    from fluidcc.studies.sweeps.hysteresis import from_equilibrium as from_equilibrium
    from fluidcc.studies.sweeps.hysteresis import hysteresis as hysteresis
    from fluidcc.studies.sweeps.wai import WaiSweep as WaiSweep
    from fluidcc.studies.sweeps.wai import wai_sweep as wai_sweep
    from fluidcc.studies.tuning import FabricTuning as FabricTuning
    from fluidcc.studies.tuning import Tuning as Tuning
    from fluidcc.studies.tuning import tune_fabric as tune_fabric

__getattr__, __dir__, __all__ = lazily(globals())
