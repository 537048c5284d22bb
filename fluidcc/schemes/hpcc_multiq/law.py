"""MultiQ's law: HPCC's, with a utilisation that is the class's own; one class fills the link, as at the flow level."""

import fluidcc.schemes.hpcc.law as law
from fluidcc.schemes.hpcc.law import NEEDS, SWITCHES, State, largest_window, on_step, rate, start, window, xp
from fluidcc.schemes.hpcc.law import on_class_hop as on_hop

__all__ = [
    "NEEDS",
    "ONLY",
    "SWITCHES",
    "State",
    "largest_window",
    "on_hop",
    "on_step",
    "rate",
    "start",
    "window",
    "xp",
]

ONLY = {name: value for name, value in law.ONLY.items() if name != "multiq"}
