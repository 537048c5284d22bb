"""Readers of the counters of switches and NICs, as operators copy them from terminals, databases and monitoring."""

from fluidcc.operators.counters.model import Counters, NicCounters, PortCounters
from fluidcc.operators.counters.reading import read_counters, read_growth

__all__ = ["Counters", "NicCounters", "PortCounters", "read_counters", "read_growth"]
