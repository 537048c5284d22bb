"""Whole fabrics: topologies and lists of flows from files that their users have, and how long flows took.

`fluidcc.fabric` runs schemes side by side; `fluidcc.fabrics.slowdown` says how much longer each flow took than alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.surface import lazily

if TYPE_CHECKING:
    from fluidcc.builders.workloads import all_to_all_flows as all_to_all_flows
    from fluidcc.builders.workloads import incasts as incasts
    from fluidcc.builders.workloads import pair_flows as pair_flows
    from fluidcc.builders.workloads import permutation_flows as permutation_flows
    from fluidcc.builders.workloads import poisson_flows as poisson_flows
    from fluidcc.builders.workloads import rebuild_flows as rebuild_flows
    from fluidcc.engines.common.topology import buffer_cycle as buffer_cycle
    from fluidcc.workloads.fabrics.cause import Cause as Cause
    from fluidcc.workloads.fabrics.cause import causes as causes
    from fluidcc.workloads.fabrics.hpcc_config import SimulatorConfig as SimulatorConfig
    from fluidcc.workloads.fabrics.hpcc_config import read_config as read_config
    from fluidcc.workloads.fabrics.hpcc_files import FlowList as FlowList
    from fluidcc.workloads.fabrics.hpcc_files import read_flows as read_flows
    from fluidcc.workloads.fabrics.hpcc_files import read_sizes as read_sizes
    from fluidcc.workloads.fabrics.hpcc_files import read_topology as read_topology
    from fluidcc.workloads.fabrics.hpcc_files import write_fct as write_fct
    from fluidcc.workloads.fabrics.hpcc_files import write_pfc as write_pfc
    from fluidcc.workloads.fabrics.htsim import read_connections as read_connections
    from fluidcc.workloads.fabrics.htsim import read_htsim_topology as read_htsim_topology
    from fluidcc.workloads.fabrics.run import FabricRun as FabricRun
    from fluidcc.workloads.fabrics.shapes import named_topology as named_topology
    from fluidcc.workloads.fabrics.slowdowns import Slowdown as Slowdown
    from fluidcc.workloads.fabrics.slowdowns import alone as alone
    from fluidcc.workloads.fabrics.slowdowns import slowdown as slowdown
    from fluidcc.workloads.fabrics.study import FabricStudy as FabricStudy
    from fluidcc.workloads.fabrics.topology import Cable as Cable
    from fluidcc.workloads.fabrics.topology import Topology as Topology
    from fluidcc.workloads.fabrics.traffic import Incast as Incast
    from fluidcc.workloads.fabrics.traffic import Traffic as Traffic

__getattr__, __dir__, __all__ = lazily(globals())
