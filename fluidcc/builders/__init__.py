"""Builders of common scenarios. All quantities may be text with units, SI numbers, or traced values."""

from fluidcc.builders.clos import clos, clos_testbed, clos_unit, fat_tree
from fluidcc.builders.common import CHAIN_PFC, MAX_FLOW_CLASSES
from fluidcc.builders.rows import chain, incast, parking_lot

__all__ = [
    "CHAIN_PFC",
    "MAX_FLOW_CLASSES",
    "chain",
    "clos",
    "clos_testbed",
    "clos_unit",
    "fat_tree",
    "incast",
    "parking_lot",
]
