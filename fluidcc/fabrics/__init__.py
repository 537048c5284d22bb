"""Whole fabrics: topologies and lists of flows from files that their users have, and how long flows took.

`fluidcc.fabric` runs schemes side by side; `fluidcc.slowdown` says how much longer each flow took than alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.surface import lazily

if TYPE_CHECKING:
    from fluidcc.fabrics.hpcc_config import SimulatorConfig as SimulatorConfig
    from fluidcc.fabrics.hpcc_config import read_config as read_config
    from fluidcc.fabrics.hpcc_files import FlowList as FlowList
    from fluidcc.fabrics.hpcc_files import read_flows as read_flows
    from fluidcc.fabrics.hpcc_files import read_sizes as read_sizes
    from fluidcc.fabrics.hpcc_files import write_fct as write_fct
    from fluidcc.fabrics.hpcc_files import write_pfc as write_pfc
    from fluidcc.fabrics.hpcc_topology import read_topology as read_topology
    from fluidcc.fabrics.htsim import read_connections as read_connections
    from fluidcc.fabrics.htsim_topology import read_htsim_topology as read_htsim_topology
    from fluidcc.fabrics.run import FabricRun as FabricRun
    from fluidcc.fabrics.shapes import named_topology as named_topology
    from fluidcc.fabrics.slowdown import alone as alone
    from fluidcc.fabrics.topology import Cable as Cable
    from fluidcc.fabrics.topology import Topology as Topology
    from fluidcc.fabrics.traffic import Incast as Incast
    from fluidcc.fabrics.traffic import Traffic as Traffic

__getattr__, __dir__, __all__ = lazily(globals())
