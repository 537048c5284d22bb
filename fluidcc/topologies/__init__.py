"""Builders of common scenarios. All quantities may be text with units, SI numbers, or traced values."""

from fluidcc.topologies.clos import clos, clos_testbed, fat_tree
from fluidcc.topologies.common import MAX_FLOW_CLASSES
from fluidcc.topologies.rows import CHAIN_PFC, chain, incast, parking_lot

__all__ = ["CHAIN_PFC", "MAX_FLOW_CLASSES", "chain", "clos", "clos_testbed", "fat_tree", "incast", "parking_lot"]
