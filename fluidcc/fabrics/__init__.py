"""Whole fabrics: topologies and lists of flows from files that their users have, and how long flows took.

`fluidcc.slowdown` says how much longer each flow took than alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidcc.surface import lazily

if TYPE_CHECKING:
    from fluidcc.fabrics.hpcc_files import FlowList as FlowList
    from fluidcc.fabrics.hpcc_files import read_flows as read_flows
    from fluidcc.fabrics.hpcc_files import read_sizes as read_sizes
    from fluidcc.fabrics.hpcc_files import read_topology as read_topology
    from fluidcc.fabrics.hpcc_files import write_fct as write_fct
    from fluidcc.fabrics.slowdown import alone as alone
    from fluidcc.fabrics.topology import Cable as Cable
    from fluidcc.fabrics.topology import Topology as Topology

_HOMES = {
    "Cable": "fluidcc.fabrics.topology",
    "FlowList": "fluidcc.fabrics.hpcc_files",
    "Topology": "fluidcc.fabrics.topology",
    "alone": "fluidcc.fabrics.slowdown",
    "read_flows": "fluidcc.fabrics.hpcc_files",
    "read_sizes": "fluidcc.fabrics.hpcc_files",
    "read_topology": "fluidcc.fabrics.hpcc_files",
    "write_fct": "fluidcc.fabrics.hpcc_files",
}

__all__ = [*_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__, __dir__ = lazily(globals(), _HOMES)
