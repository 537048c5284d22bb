"""MultiQ's fluid model: HPCC's, with a utilisation that is the class's own (`class_utilisation` there)."""

from fluidcc.schemes.hpcc.fluid import (
    NEEDS,
    OBSERVABLES,
    derivative,
    feedback,
    jump,
    largest_window,
    observables,
    rate,
    start,
    time_scale,
    window,
)

__all__ = [
    "NEEDS",
    "OBSERVABLES",
    "derivative",
    "feedback",
    "jump",
    "largest_window",
    "observables",
    "rate",
    "start",
    "time_scale",
    "window",
]
