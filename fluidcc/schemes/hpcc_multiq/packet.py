"""MultiQ at packet level: HPCC's record and rules, with a utilisation that is the class's own (`class_utilisation`)."""

from fluidcc.schemes.hpcc.packet import OBSERVABLES, ONLY, STATE, init_state, shown

__all__ = ["BASE", "OBSERVABLES", "ONLY", "STATE", "init_state", "shown"]

BASE = "hpcc"
