"""Builders of common scenarios. All quantities may be text with units, SI numbers, or traced values."""

from fluidcc.scenario.builders.clos import clos, clos_testbed, clos_unit, fat_tree
from fluidcc.scenario.builders.common import CHAIN_PFC, MAX_FLOW_CLASSES
from fluidcc.scenario.builders.rows import chain, incast, parking_lot

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
