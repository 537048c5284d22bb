"""Schemes side by side on a fabric, with what ``--from`` and ``--set`` say of its devices."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fluidcc.errors import InputError

_LABEL = re.compile(r"[A-Za-z0-9_.-]{1,40}")

if TYPE_CHECKING:
    from fluidcc.operators.devices import Devices
    from fluidcc.scenario.model import RED
    from fluidcc.workloads.fabrics.topology import Topology


@dataclasses.dataclass(frozen=True)
class Contenders:
    """Options of `Topology.scenario` by the name in results, and the devices whose settings are in them."""

    options: Mapping[str, dict[str, Any]]
    devices: Devices | None = None
    given: frozenset[str] = frozenset()  # names of values that are a user's
    pairs: Sequence[tuple[str, str]] = ()  # a setting and its scheme, a scheme and the first: compared

    def packets(self) -> dict[str, float]:
        """Payload and headers of packets [bytes], under the names that results have."""
        from fluidcc.scenario.frames import IN_BUFFER, payloads
        from fluidcc.units import SIZE, quantity

        options = next(iter(self.options.values()))
        if options.get("payload") is not None:
            return {"packet_bytes": payloads(None, options["payload"])[0], "header_bytes": float(IN_BUFFER)}
        sizes = (("packet_bytes", "packet_size", "1000B"), ("header_bytes", "header_bytes", "0B"))
        return {key: float(quantity(options.get(name, usual), SIZE, name)) for key, name, usual in sizes}

    def rates(self, topology: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Rates of a shape's links that a switch's file says and nobody else.

        Raises
        ------
        InputError
            If there are files for more tiers than the shape has.
        """
        from fluidcc.workloads.fabrics.shapes import is_shape, named_topology

        if self.devices is None or not self.devices.hosts or not is_shape(topology):
            return {}
        tiers = max(named_topology(topology).tiers.values())
        if len(self.devices.above) >= tiers:
            raise InputError(
                f"--from: {1 + len(self.devices.above)} switches are given, and {topology} has {tiers} tiers of them; "
                "give one for each at most"
            )
        found: dict[str, Any] = {}
        if given.get("rate") is None:
            found["rate"] = self.devices.rate
        if given.get("fabric_rate") is None and given.get("oversubscription") is None:
            found["fabric_rate"] = self.devices.fabric_rate
        return found

    def words(self, topology: Topology) -> list[str]:
        """Say which settings of the files are used; nothing without files."""
        if self.devices is None:
            return []
        return self.devices.words(topology.places, self.options.values(), self.given)


def with_sets(sets: list[str] | None, **values: str | None) -> list[str] | None:
    """Add options that have a name of their own to those of ``--set``."""
    added = [f"{name}={value}" for name, value in values.items() if value is not None]
    return [*(sets or []), *added] if added else sets


def read(sources: list[str] | None, port: str | None) -> Devices | None:
    """Read the files of ``--from``: switches in the order of their tiers, and a NIC."""
    if not sources:
        if port is not None:
            raise InputError("--port: there is no switch to read it from; write --from config_db.json beside it")
        return None
    from fluidcc.cli.request import is_switch
    from fluidcc.operators.devices import read_devices

    switches = [source for source in sources if is_switch(source)]
    nics = [source for source in sources if source not in switches]
    if len(nics) > 1:
        raise InputError(f"--from: {nics[1][:200]} is one of {len(nics)} NICs; give one at most")
    if port is not None and not switches:
        raise InputError("--port: there is no switch to read it from; write --from config_db.json beside it")
    return read_devices(switches, nics[0] if nics else None, port)


def contenders(
    names: list[str],
    preset: str,
    sets: list[str] | None,
    devices: Devices | None,
    packet_size: str | None,
    settings: list[str] | None = None,
) -> Contenders:
    """Options of each scheme: those of its preset, then of the devices, then of --set; and again with each --setting.

    Where a NIC's MTU is not known, each scheme runs with both sizes of packets that are usual.

    Raises
    ------
    InputError
        If a name or a value makes no sense, or a NIC's settings are given and DCQCN does not run.
    """
    from fluidcc.builders.names import check_name, known_names
    from fluidcc.contract.registry import preset as preset_of
    from fluidcc.scenario.frames import payloads

    found = {name: preset_of(name, preset).options() for name in names}
    apart = [_setting(text) for text in settings or []]
    for option, texts in (("--set", sets or []), *(("--setting", values) for _, values in apart)):
        for text in texts:
            name = text.partition("=")[0].strip()
            if not any(name in known_names(scheme) for scheme in names):
                check_name(names[0], name, option)
    marked = {name for name in names if found[name]["marking"]("100Gbps") is not None}
    if devices is not None and devices.nic is not None and "dcqcn" not in names:
        raise InputError(f"--from: {devices.nic.source} holds DCQCN settings; write dcqcn in place of {names[0]}")
    given = dict(_pairs(sets or []))
    if packet_size is not None and "packet_size" in given:
        raise InputError("--packet-size: --set packet_size says it too; leave out one of the two")
    size = given.get("packet_size") if packet_size is None else packet_size
    sizes = [size] if devices is None else sorted(payloads(devices.nic, size), reverse=True)
    made: dict[str, dict[str, Any]] = {}
    pairs: list[tuple[str, str]] = []
    for payload in sizes:
        first = ""
        for name in names:
            options = dict(found[name])
            if devices is not None:
                options = devices.options(payload=payload, **options)
            elif payload is not None:
                options["packet_size"] = payload
            # Thresholds are those of the schemes that look at marks; of one that does not, if there is no other.
            marks = not marked or name in marked
            base = f"{name}-{payload:g}B" if len(sizes) > 1 else name
            made[base] = with_values(name, options, sets, marks=marks)
            pairs += [(base, first)] if first else []
            first = first or base
            for label, values in apart:
                alone = "packet_size" in dict(_pairs(values))  # a size of its own: once
                if not _concerns(name, values, marks=marks) or (alone and payload != sizes[0]):
                    continue
                title = f"{name if alone else base}-{label}"
                if title in made:
                    raise InputError(f"--setting: {label[:40]!r} is there twice; give each a name of its own")
                made[title] = with_values(name, options, [*(sets or []), *values], marks=marks, option="--setting")
                pairs.append((title, base))
    names_given = {name for texts in (sets or [], *(values for _, values in apart)) for name, _ in _pairs(texts)}
    return Contenders(made, devices, frozenset(names_given | ({"packet_size"} if size is not None else set())), pairs)


def _pairs(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Names and values of ``NAME=VALUE``."""
    return [(name.strip(), value.strip()) for name, _, value in (text.partition("=") for text in texts)]


def _setting(text: str) -> tuple[str, list[str]]:
    """Name and values of a ``--setting``."""
    name, colon, values = text.partition(":")
    if not colon or not _LABEL.fullmatch(name.strip()) or not values.strip():
        raise InputError(
            f"--setting: {text[:60]!r} is no NAME:PARAMETER=VALUE,...; write new:kmin=100KB,kmax=400KB,pmax=20%"
        )
    return name.strip(), [each.strip() for each in values.split(",")]


def _concerns(scheme: str, values: list[str], *, marks: bool) -> bool:
    """Check whether some of a setting's values are of a scheme, thresholds only if it looks at marks."""
    from fluidcc.builders.names import known_names, split

    mine = {name: value for name, value in _pairs(values) if name in known_names(scheme)}
    return bool(mine) and (marks or len(split(scheme, mine)["marking"]) < len(mine))


def with_values(
    scheme: str, chosen: Mapping[str, Any], sets: list[str] | None, *, marks: bool = True, option: str = "--set"
) -> dict[str, Any]:
    """Options of `Topology.scenario`, with the values of --set that the scheme or the network has."""
    from fluidcc.builders.names import known_names, split
    from fluidcc.builders.replaced import changed_flow_control

    values: dict[str, Any] = {}
    for text, (name, value) in zip(sets or [], _pairs(sets or []), strict=True):
        if not value:
            raise InputError(f"{option}: {text[:60]!r} is no NAME=VALUE; write for example g=1/256")
        if name in known_names(scheme):
            values[name] = value
    parts = split(scheme, values)
    of_links = {name: parts["builder"].pop(name) for name in ("loss",) if name in parts["builder"]}
    alien = next(iter(parts["builder"]), None)
    if alien is not None:
        raise InputError(
            f"{option}: {alien} belongs to other topologies; see fluidcc fabric --help for what a fabric has"
        )
    change = partial(_changed, values=parts["marking"] if marks else {})
    rules = chosen["marking"]
    marking = [partial(change, rule) for rule in rules] if isinstance(rules, list) else partial(change, rules)
    options, network = dict(chosen), parts["network"]
    if "header_bytes" in network and "payload" in options:  # packets that are not RoCE's
        options["packet_size"] = options.pop("payload")
    elif "packet_size" in network and "payload" in options:
        options["payload"] = network.pop("packet_size")
    return {
        **options,
        **network,
        **of_links,
        "pfc": changed_flow_control(chosen.get("pfc"), parts["pfc"]),
        "scheme": dataclasses.replace(chosen["scheme"], **parts["scheme"]),
        "marking": marking,
    }


def _changed(rule: Callable[[Any], RED | None], rate: Any, values: dict[str, Any]) -> RED | None:
    """Marking of a link of some rate with values of --set, which may be all that there is to it."""
    from fluidcc.builders.replaced import changed_marking

    alone = {"kmin", "kmax", "pmax"} <= values.keys()
    try:
        found = rule(rate)
    except InputError:
        if not alone:
            raise
        found = None
    return changed_marking(found, values)


def told_pairs(against: Iterable[tuple[str, str, dict[str, dict[str, float]]]]) -> Any:
    """Ratios of contenders as ``--json`` prints them."""
    from fluidcc.results.schema import plain

    return plain([{"scheme": one, "against": other, "ratios": ratios} for one, other, ratios in against])


def told_against(
    ratios: Mapping[str, Mapping[str, float]],
    measures: Mapping[str, str],
    unfinished: tuple[int, int] = (0, 0),
    what: str = "flows",
) -> str:
    """Say in what one contender is better than another, and in what worse; unfinished flows are in no slowdown."""
    told: dict[str, list[str]] = {"better": [], "worse": [], "not told apart": [], "too few seeds to tell apart": []}
    for name, text in measures.items():
        ratio = ratios[name]
        if not math.isfinite(ratio["mean"]):
            continue
        above, below = ratio["low"] > 1, ratio["high"] < 1  # neither of too few seeds
        kind = "better" if (above if name == "goodput" else below) else "worse" if above or below else "not told apart"
        known = math.isfinite(ratio["low"])
        kind = kind if known else "too few seeds to tell apart"
        ends = f" ({ratio['low']:.3g}–{ratio['high']:.3g})" if known else ""
        told[kind].append(f"{text} x{ratio['mean']:.3g}{ends}")
    if unfinished[0] != unfinished[1]:
        kind = "worse" if unfinished[0] > unfinished[1] else "better"
        told[kind].insert(
            0, f"{unfinished[0]:,} unfinished {what[: -1 if unfinished[0] == 1 else None]}, not {unfinished[1]:,}"
        )
    words = "; ".join(f"{kind}: {', '.join(each)}" for kind, each in told.items() if each)
    return words or "nothing to compare, as too little finished"


def print_against(one: str, other: str, words: str) -> None:
    """Print how a contender compares with another."""
    from rich.console import Console
    from rich.text import Text

    Console().print(Text.assemble((f"{one} against {other}", "bold"), f", seed by seed: {words}"))
