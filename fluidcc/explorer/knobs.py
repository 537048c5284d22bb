"""Values of a scenario that can be moved by hand, with their ranges, from the specifications of the parameters."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from fluidcc import units
from fluidcc.errors import InputError
from fluidcc.scenario.display import value_text
from fluidcc.scenario.model import RED, Flow, Link, Scenario
from fluidcc.scenario.parameters import Spec, convert, resolve, specs
from fluidcc.surface import nearest
from fluidcc.units import COUNT, RATE, RATIO, SIZE, TIME, quantity, show

TRAFFIC, MARKING, SCHEME, NETWORK = "traffic", "marking", "scheme", "network"
GIVEN = "given"  # topology of a scenario that is handed in: what it is made of stays
STEPS = 200  # positions of a slider, but where it moves by whole numbers
_REACH = 50.0  # times the default, up and down
_BROAD = 0.1  # a share at or above it is moved evenly, a smaller one by factors
_DIGITS = 3  # digits of a value that a slider sets
_MOST_FLOWS = 64
_UNIT_WORDS = {RATE: "A rate", SIZE: "Bytes", TIME: "A time", RATIO: "A share", COUNT: "A number"}


@dataclasses.dataclass(frozen=True)
class Knob:
    """Value of a scenario that can be moved.

    Parameters
    ----------
    name : str
    home : {"traffic", "marking", "scheme", "network"}
        What it belongs to.
    spec : Spec
        Its unit, symbol, meaning and range.
    default : object
        What the preset has: an SI float, a choice, or None.
    stops : tuple of float
        Where its slider stops [SI]; empty if it has none, because nothing says how far it should reach.
    main : bool
        Whether papers have a symbol for it, so that it stands in front.
    """

    name: str
    home: str
    spec: Spec
    default: Any
    stops: tuple[float, ...] = ()
    main: bool = False

    @property
    def label(self) -> str:
        """Symbol and name."""
        symbol = self.spec.symbol
        return f"{symbol}, {self.name}" if symbol[:1].isalpha() and symbol != self.name else self.name

    @property
    def tip(self) -> str:
        """Meaning, unit, default and source, from the parameter's own declaration."""
        spec = self.spec
        if spec.choices:
            unit = f"One of {', '.join(self.text(choice) for choice in spec.choices)}"
        elif spec.check is not None:
            unit = "A text"
        else:
            unit = f"{_UNIT_WORDS[spec.dimension]}, such as {units.EXAMPLE[spec.dimension]}"
        source = f" Source: {spec.source}." if spec.source else ""
        return f"{spec.doc[0].upper()}{spec.doc[1:]}. {unit}; default: {self.text(self.default) or 'none'}.{source}"

    def text(self, value: Any) -> str:
        """Format a value as it is typed; `read` gives the same value back."""
        if value is None:
            return self.spec.none_word
        shown = value_text(value, self.spec)
        if not units.is_concrete(value) or isinstance(value, bool) or math.isinf(value):
            return shown
        suffix = {units.RATE: "B/s", units.SIZE: "B", units.TIME: "s"}.get(self.spec.dimension, "")
        finer = units.show(float(value), self.spec.dimension, 15)
        texts = (text for text in (shown, finer) if self.read(text) == value)
        return next(texts, f"{float(value)!r}{suffix}")

    def read(self, text: str) -> Any:
        """Parse a value.

        Raises
        ------
        InputError
            If it cannot be read or is out of range.
        """
        if not text.strip() and self.default is None:
            return None
        unlimited = self.spec.unlimited and text.strip() == "unlimited"
        return convert(math.inf if unlimited else text.strip(), self.spec, self.name)

    def stop_text(self, place: int) -> str:
        """Return the value at one of the slider's stops, with its unit."""
        return units.show(self.stops[place], self.spec.dimension, 6)

    def nearest_stop(self, value: Any) -> int:
        """The slider's stop that is nearest to a value; the first if it is none."""
        if not self.stops or value is None or not math.isfinite(value):
            return 0
        near = np.clip(value, self.stops[0], self.stops[-1])  # from far beyond, all stops would seem alike
        return int(np.argmin(np.abs(np.asarray(self.stops) - near)))


def _traffic(topology: str) -> dict[str, tuple[Spec, Any]]:
    """Values of a topology that are no fields of a scheme or of marking, and their defaults."""
    link, start = specs(Link), specs(Flow)["start"]
    own = {"rate": (link["rate"], None), "delay": (link["delay"], "1us")}
    if topology == "incast":
        flows = Spec(COUNT, "senders into one port", symbol="N", low=1, integer=True)
        late = Spec(COUNT, "senders that start later, of all flows", low=0, integer=True)
        late_start = dataclasses.replace(start, doc="when the late senders start", low=0)
        own |= {"flows": (flows, 8.0), "late": (late, 1.0), "late_start": (late_start, None)}
    elif topology == "parking-lot":
        flows = Spec(COUNT, "flows over all links, and as many over each link", symbol="N", low=1, integer=True)
        own |= {
            "flows": (flows, 2.0),
            "links": (Spec(COUNT, "contended links in a row", low=1, high=6, integer=True), 3.0),
        }
    until = Spec(TIME, "how long it runs; numbers are of the second half", low=0, open_low=True)
    return {**(own if topology != GIVEN else {}), "until": (until, None)}


TOPOLOGIES = ("incast", "parking-lot")


def _stops(name: str, spec: Spec, default: Any) -> tuple[float, ...]:
    """Return the stops of a slider: by factors about the default, or evenly through a narrow range."""
    if spec.static or default is None or isinstance(default, str) or not 0 < default < math.inf:
        return ()
    if spec.integer:
        most = _MOST_FLOWS if name == "flows" else min(spec.high, max(4 * default, 8))
        return tuple(float(k) for k in range(int(max(spec.low, 0)), int(most) + 1))
    if spec.dimension == RATIO and default >= _BROAD and spec.high <= 1:
        return tuple(k / 100 for k in range(int(spec.open_low), 101))
    low, high = max(default / _REACH, spec.low), min(default * _REACH, spec.high)
    steps = np.geomspace(low if low > 0 else high * 1e-4, high, STEPS)
    return tuple(dict.fromkeys(float(f"{value:.{_DIGITS}g}") for value in steps))


@cache
def knobs(
    scheme: Any, marking: RED | None, network: tuple[tuple[str, Any], ...], topology: str, rate: float, until: float
) -> Mapping[str, Knob]:
    """Return all knobs by name, traffic first.

    Parameters
    ----------
    scheme : scheme parameters
        The preset's.
    marking : RED or None
        The preset's.
    network : tuple of (str, value)
        Its packets' sizes.
    topology : str
    rate, until : float
        Defaults of the link's rate [bytes/s] and of the horizon [s].
    """
    plain = resolve(scheme)
    own = inspect.get_annotations(type(scheme))
    found: dict[str, Knob] = {}

    def add(name: str, home: str, spec: Spec, default: Any, main: bool) -> None:
        found[name] = Knob(name, home, spec, default, _stops(name, spec, default), main)

    derived = {"rate": units.Rate(rate), "until": until, "late_start": quantity(show(until / 4, TIME), TIME)}
    for name, (spec, default) in _traffic(topology).items():
        value = derived[name] if default is None else convert(default, spec, name)
        add(name, TRAFFIC, spec, value, True)
    marks = None if marking is None else resolve(marking)
    for name, spec in specs(RED).items():
        value = None if marks is None else getattr(marks, name)
        add(name, MARKING, spec, value, bool(spec.symbol) and marks is not None and name != "max_on")
    for name, spec in specs(plain).items():
        value = getattr(plain, name)
        # What a scheme shares with others is a mechanism that is off unless one asks for it.
        add(name, SCHEME, spec, value, bool(spec.symbol) and name in own and value not in (None, math.inf))
    for name, value in network:
        add(name, NETWORK, specs(Scenario)[name], convert(value, specs(Scenario)[name], name), False)
    return found


def refuse_unknown_knob(name: str, known: Mapping[str, Knob]) -> None:
    """Refuse a name that is no knob.

    Raises
    ------
    InputError
    """
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean {near}?" if near else f"write one of {', '.join(list(known)[:8])}, ..."
        raise InputError(f"{name[:40]}: there is no such value here; {hint}")
