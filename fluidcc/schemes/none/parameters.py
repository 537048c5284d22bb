"""Parameters of a sender without congestion control, and their presets."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fluidcc.contract.fields import feedback_delay_field
from fluidcc.contract.preset import EVALUATION, Preset
from fluidcc.errors import InputError
from fluidcc.scenario.model import PFC, RED
from fluidcc.scenario.parameters import parameter, register
from fluidcc.units import RATE, TIME, is_concrete, quantity

if TYPE_CHECKING:
    from fluidcc.contract.bind import PathInformation

MOST_STEPS = 64
_EXAMPLE = "write for example 0:10Gbps,1ms:5Gbps"


def steps_of(schedule: Any, name: str = "schedule") -> list[tuple[float, float]]:
    """Read a schedule: times from the flow's start [s], and the rates from then on [bytes/s].

    Parameters
    ----------
    schedule : str or sequence
        ``"0:10Gbps,1ms:5Gbps"``, or pairs of quantities.
    name : str
        What it is, for the error message.

    Raises
    ------
    InputError
        If it cannot be read, its times do not increase, or it has more than 64 steps.
    """
    pairs = [step.split(":") for step in schedule.split(",")] if isinstance(schedule, str) else schedule
    try:
        pairs = [tuple(pair) for pair in pairs]
    except TypeError:
        raise InputError(f"{name}: {repr(schedule)[:40]} is no list of times and rates; {_EXAMPLE}") from None
    if not 1 <= len(pairs) <= MOST_STEPS:
        raise InputError(f"{name}: a sender takes 1 to {MOST_STEPS} steps, not {len(pairs)}; {_EXAMPLE}")
    if any(len(pair) != 2 for pair in pairs):
        raise InputError(f"{name}: {repr(schedule)[:40]} is not made of TIME:RATE; {_EXAMPLE}")
    times = [quantity(time, TIME, f"{name} time") for time, _ in pairs]
    rates = [quantity(rate, RATE, f"{name} rate") for _, rate in pairs]
    if not all(map(is_concrete, (*times, *rates))):
        raise InputError(f"{name}: selects other equations, and cannot be traced; make a scenario for each")
    times, rates = [float(time) for time in times], [float(rate) for rate in rates]
    if not all(0 <= time < math.inf for time in times) or any(a >= b for a, b in itertools.pairwise(times)):
        raise InputError(f"{name}: times must be finite and increase from 0 on; {_EXAMPLE}")
    if not all(0 <= rate < math.inf for rate in rates):
        raise InputError(f"{name}: rates must be finite and not negative; {_EXAMPLE}")
    return list(zip(times, rates, strict=True))


def canonical(schedule: Any, name: str) -> str:
    """A schedule as text that reads back to the same numbers."""
    return ",".join(f"{time!r}s:{rate!r}B/s" for time, rate in steps_of(schedule, name))


@register()
class NoControl:
    """A sender that obeys nothing but PFC: at line rate, the papers' baseline, or as scripted.

    ``schedule`` changes the rate at given times after the flow's start, again and again with ``repeat``; a rate of 0
    is silence. Steps beyond the period are not reached.
    """

    schedule: Any = parameter(
        "choice",
        "rates from times on, TIME:RATE,...; none: the initial rate",
        default=None,
        none_word="none",
        check=canonical,
    )
    repeat: Any = parameter(
        TIME,
        "period after which the schedule repeats; never: once",
        default=None,
        low=0,
        open_low=True,
        none_word="never",
    )
    feedback_delay: Any = feedback_delay_field()

    name: ClassVar[str] = "none"
    int_bytes = 0.0  # collects no telemetry
    default_marking: ClassVar[RED | None] = None
    default_rate: ClassVar[str] = "100Gbps"
    feedback_pause = 0.0  # time that feedback waits at the receiver [s]

    def bind(self, path: PathInformation) -> Self:
        """Return the parameters as they are: none is left to the scenario."""
        return self


PRESETS = {
    # DCQCN section 4's switch: 12 MB of shared buffer.
    "paper": Preset(NoControl(), None, {"buffer": "12MB", "pfc": PFC()}),
    "hpcc-eval": Preset(NoControl(), None, EVALUATION),
}
