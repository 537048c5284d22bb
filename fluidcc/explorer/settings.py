"""A setting: scheme, preset, topology and what was moved; as a scenario, an address, and Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode

from fluidcc.builders import incast, parking_lot
from fluidcc.contract import registry
from fluidcc.contract.preset import Preset
from fluidcc.contract.registry import preset as preset_named
from fluidcc.contract.registry import presets
from fluidcc.errors import InputError
from fluidcc.explorer.knobs import (
    GIVEN,
    MARKING,
    NETWORK,
    SCHEME,
    TOPOLOGIES,
    TRAFFIC,
    Knob,
    knobs,
    refuse_unknown_knob,
)
from fluidcc.results.comparison import horizon
from fluidcc.scenario.model import RED, Scenario, resolve
from fluidcc.scenario.parameters import resolve as resolve_fields
from fluidcc.surface import nearest
from fluidcc.units import RATE, TIME, is_concrete, quantity, show

_SHARE = 1 / 5  # of the horizon of a comparison with packets
_UNTIL = 5e-3  # s, where no comparison is stated
_NAMES = ("scheme", "preset", "topology")  # of an address, before the values
LONGEST = 4096  # characters of an address


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
