"""A setting: scheme, preset, topology and what was moved; as a scenario, an address, and Python.

What can be moved by hand, and how far, follows from the specifications of the parameters.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode

import numpy as np

from fluidcc import units
from fluidcc.builders import incast, parking_lot
from fluidcc.contract import registry
from fluidcc.contract.preset import Preset
from fluidcc.contract.registry import preset as preset_named
from fluidcc.contract.registry import presets
from fluidcc.errors import InputError
from fluidcc.results.comparison import horizon
from fluidcc.scenario.display import value_text
from fluidcc.scenario.model import RED, Flow, Link, Scenario, resolve
from fluidcc.scenario.parameters import Spec, convert, specs
from fluidcc.scenario.parameters import resolve as resolve_fields
from fluidcc.surface import nearest
from fluidcc.units import COUNT, RATE, RATIO, SIZE, TIME, is_concrete, quantity, show

TRAFFIC, MARKING, SCHEME, NETWORK = "traffic", "marking", "scheme", "network"
GIVEN = "given"  # topology of a scenario that is handed in: what it is made of stays
STEPS = 200  # positions of a slider, but where it moves by whole numbers
_REACH = 50.0  # times the default, up and down
_BROAD = 0.1  # a share at or above it is moved evenly, a smaller one by factors
_DIGITS = 3  # digits of a value that a slider sets
_MOST_FLOWS = 64
_UNIT_WORDS = {RATE: "A rate", SIZE: "Bytes", TIME: "A time", RATIO: "A share", COUNT: "A number"}
TOPOLOGIES = ("incast", "parking-lot")
_SHARE = 1 / 5  # of the horizon of a comparison with packets
_UNTIL = 5e-3  # s, where no comparison is stated
_NAMES = ("scheme", "preset", "topology")  # of an address, before the values
LONGEST = 4096  # characters of an address


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
    plain = resolve_fields(scheme)
    own = inspect.get_annotations(type(scheme))
    found: dict[str, Knob] = {}

    def add(name: str, home: str, spec: Spec, default: Any, main: bool) -> None:
        found[name] = Knob(name, home, spec, default, _stops(name, spec, default), main)

    derived = {"rate": units.Rate(rate), "until": until, "late_start": quantity(show(until / 4, TIME), TIME)}
    for name, (spec, default) in _traffic(topology).items():
        value = derived[name] if default is None else convert(default, spec, name)
        add(name, TRAFFIC, spec, value, True)
    marks = None if marking is None else resolve_fields(marking)
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


def schemes() -> tuple[str, ...]:
    """Schemes that have a fluid side."""
    return tuple(name for name in registry.names() if registry.scheme(name).module("fluid") is not None)


def preset_names(scheme: str) -> list[str]:
    """Names of those presets of a scheme whose equations its fluid side has.

    Raises
    ------
    InputError
        If there is no such scheme, or it has no fluid side.
    """
    _refuse_unknown_scheme(scheme)
    side = registry.scheme(scheme).fluid
    only = {} if side is None else side.ONLY
    found = {name: resolve_fields(each.scheme) for name, each in presets(scheme).items()}
    return [name for name, each in found.items() if all(getattr(each, switch) == only[switch] for switch in only)]


def _refuse_unknown_scheme(scheme: str) -> None:
    """Refuse what has no fluid side, and recommend only what has one."""
    known = schemes()
    if scheme in known:
        return
    near = "" if scheme in registry.names() else nearest(scheme, known)
    what = "has no fluid, with which this begins" if scheme in registry.names() else "is unknown"
    hint = f"did you mean {near}? Else " if near else ""
    raise InputError(f"scheme: {scheme[:40]!r} {what}; {hint}write one of {', '.join(known)}")


@dataclasses.dataclass(frozen=True)
class Setting:
    """Setting that the explorer shows.

    Parameters
    ----------
    scheme, preset, topology : str
    values : tuple of (str, str)
        Names and texts of what differs from the preset, in the order of `knobs`.
    given : Scenario or None
        With topology "given": the scenario whose scheme and marking are moved.
    """

    scheme: str = registry.DEFAULT
    preset: str = "paper"
    topology: str = TOPOLOGIES[0]
    values: tuple[tuple[str, str], ...] = ()
    given: Scenario | None = None

    @classmethod
    def of(cls, scenario: Scenario) -> Self:
        """The setting of a scenario that is handed in, of which scheme and marking can be moved.

        Raises
        ------
        InputError
            If its flows run several schemes.
        """
        scenario = resolve(scenario)
        if len({flow.scheme for flow in scenario.flows}) > 1:
            raise InputError("explore: the flows run several parameter sets; give a scenario whose flows run one")
        _refuse_unknown_scheme(scenario.flows[0].scheme.name)
        return cls(scenario.flows[0].scheme.name, "", GIVEN, (), scenario)

    # -- what can be moved -----------------------------------------------------------------------------------------

    @cached_property
    def _preset(self) -> Preset:
        if self.given is not None:
            markings = {link.marking for link in self.given.links}
            return Preset(self.given.flows[0].scheme, markings.pop() if len(markings) == 1 else None)
        if self.topology not in TOPOLOGIES:
            raise InputError(f"topology: {self.topology[:40]!r} is unknown; write one of {', '.join(TOPOLOGIES)}")
        known = preset_names(self.scheme)
        if self.preset not in known and self.preset in presets(self.scheme):
            raise InputError(
                f"preset: {self.preset} of {self.scheme} has no fluid, with which this begins; "
                f"write one of {', '.join(known)}"
            )
        return preset_named(self.scheme, self.preset)

    @cached_property
    def knobs(self) -> Mapping[str, Knob]:
        """Knobs of the setting, by name.

        Raises
        ------
        InputError
            If there is no such scheme, preset or topology.
        """
        of, rate = self._preset, quantity(self._preset.scheme.default_rate, RATE)
        example = self.given or incast(1, rate=rate, scheme=of.scheme, **of.network)
        try:
            until = quantity(show(quantity(horizon(example), TIME) * _SHARE, TIME), TIME)
        except InputError:
            until = _UNTIL
        sizes = tuple((name, float(getattr(example, name))) for name in ("packet_size", "header_bytes"))
        return knobs(of.scheme, of.marking_at(rate), sizes, self.topology, float(rate), until)

    def value(self, name: str) -> Any:
        """Return a value in SI.

        Raises
        ------
        InputError
            If there is none of that name.
        """
        refuse_unknown_knob(name, self.knobs)
        texts = dict(self.values)
        return self.knobs[name].read(texts[name]) if name in texts else self.knobs[name].default

    def text(self, name: str) -> str:
        """Return a value as it is typed."""
        texts = dict(self.values)
        return texts[name] if name in texts else self.knobs[name].text(self.knobs[name].default)

    def moved(self, name: str, text: str) -> Self:
        """The setting with one value moved; one that is the preset's again is left out.

        Raises
        ------
        InputError
            If there is none of that name, or the text is no value of it.
        """
        refuse_unknown_knob(name, self.knobs)
        knob, text = self.knobs[name], text.strip()
        texts = dict(self.values) | {name: text}
        if knob.read(text) == knob.default:
            del texts[name]
        return dataclasses.replace(self, values=tuple((n, texts[n]) for n in self.knobs if n in texts))

    def switched(self, **names: str) -> Self:
        """Return the setting with another scheme (and its own preset), preset or topology, and the values that fit."""
        preset = "paper" if names.get("scheme", self.scheme) != self.scheme else self.preset
        bare = dataclasses.replace(self, **{"preset": preset, **names, "values": ()})
        kept = bare
        for name, text in self.values:
            if name in bare.knobs and bare.knobs[name].home == TRAFFIC and name not in ("rate", "until", "late_start"):
                kept = kept.moved(name, text)
        return kept

    # -- what it means ---------------------------------------------------------------------------------------------

    def numbers(self) -> dict[str, Any]:
        """Return all values in SI, by name."""
        return {name: self.value(name) for name in self.knobs}

    def scenario(self, values: Mapping[str, Any] | None = None) -> Scenario:
        """The scenario; with other (perhaps traced) values if given.

        Raises
        ------
        InputError
            If the values make no sense together.
        """
        values = self.numbers() if values is None else values
        base = self._preset
        own = {home: {n: values[n] for n, k in self.knobs.items() if k.home == home} for home in (SCHEME, MARKING)}
        scheme = dataclasses.replace(base.scheme, **own[SCHEME])
        marking = self._marking(own[MARKING])  # not scaled with the rate: what one reads is what there is
        network = {n: values[n] for n, knob in self.knobs.items() if knob.home == NETWORK}
        if self.given is not None:
            links = tuple(dataclasses.replace(link, marking=marking or link.marking) for link in self.given.links)
            flows = tuple(dataclasses.replace(flow, scheme=scheme) for flow in self.given.flows)
            return resolve(dataclasses.replace(self.given, links=links, flows=flows, **network))
        options = {**base.network, **network, "scheme": scheme, "rate": values["rate"], "delay": values["delay"]}
        options["marking"] = marking
        if self.topology == "parking-lot":
            return parking_lot(int(values["links"]) + 1, multiplicity=values["flows"], **options)
        flows, late, start = values["flows"], values["late"], values["late_start"]
        if is_concrete(late) and late == 0:
            return incast(1, multiplicity=flows, **options)
        if is_concrete(flows) and late >= flows:
            raise InputError(f"late: {late:g} of {flows:g} flows would start late; write fewer, or 0")
        return incast(2, multiplicity=[flows - late, late], start=[0.0, start], **options)

    def _marking(self, values: Mapping[str, Any]) -> RED | None:
        """RED with these values; None where nothing is marked and none is given."""
        # What was switched off is said: left out, the builder would fill in what the scheme needs.
        words = {name: knob.spec.none_word for name, knob in self.knobs.items() if knob.default is not None}
        values = {name: words.get(name) or None if value is None else value for name, value in values.items()}
        given = {name: value for name, value in values.items() if value is not None}
        if self._preset.marking is None and not {"kmin", "kmax", "pmax"} & given.keys():
            return None
        missing = [name for name in ("kmin", "kmax", "pmax") if name not in given]
        if missing:
            raise InputError(f"{missing[0]}: is missing; this preset marks nothing, so write kmin, kmax and pmax")
        return RED(**given)

    @property
    def until(self) -> float:
        """Horizon [s]."""
        return float(self.value("until"))

    # -- what it is shared as --------------------------------------------------------------------------------------

    def query(self) -> str:
        """Return the part of an address behind "?".

        Raises
        ------
        InputError
            If it is of a scenario that was handed in, which no address holds.
        """
        if self.given is not None:
            raise InputError("query: this scenario was handed in from Python; share its Python instead")
        return urlencode([(name, getattr(self, name)) for name in _NAMES] + list(self.values))

    @classmethod
    def of_query(cls, text: str) -> Self:
        """Parse the setting of an address.

        Raises
        ------
        InputError
            If a name or a value in it makes no sense.
        """
        if len(text) > LONGEST:
            raise InputError(f"address: has {len(text)} characters; give one of at most {LONGEST}")
        pairs = parse_qsl(text.lstrip("?"))
        names = {name: value for name, value in pairs if name in _NAMES}
        setting = dataclasses.replace(cls(), **names)
        for name, value in pairs:
            if name not in _NAMES:
                setting = setting.moved(name, value)
        return setting

    def title(self) -> str:
        """Describe the setting in a line."""
        moved = ", ".join(f"{name} {text}" for name, text in self.values)
        where = f"{self.scheme} {self.preset}, {self.topology}" if self.given is None else f"{self.scheme}, as given"
        return f"{where}: {moved or 'as in the preset'}"
