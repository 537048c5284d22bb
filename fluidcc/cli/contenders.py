"""Schemes side by side on a fabric, with what ``--from`` and ``--set`` say of its devices, and settings likewise.

A setting that was found is tried where no search has seen it, against the present one and two that are public.
"""

from __future__ import annotations

import dataclasses
import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fluidcc.errors import InputError
from fluidcc.units import SIZE, TIME, show

if TYPE_CHECKING:
    from rich.table import Table

    from fluidcc.operators.devices import Devices
    from fluidcc.scenario.model import RED, Scenario
    from fluidcc.studies.tuning import Tuning
    from fluidcc.studies.tuning.trial import Row, Trial
    from fluidcc.workloads.fabrics.topology import Topology

_LABEL = re.compile(r"[A-Za-z0-9_.-]{1,40}")


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
    from fluidcc.builders.names import changed_flow_control, known_names, split

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
    from fluidcc.builders.names import changed_marking

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


# -- a setting that was found, tried where no search has seen it -------------------------------------------


SHAPE, WORKLOAD, COLLECTIVE = "leaf-spine:4x4x8", "web-search", "all-to-all"
PICTURE = "trial.png"
_BYTES = 1e8  # that a host could send while flows arrive: some 900 flows in all
_RATE = 12.5e9  # bytes/s, of the shape's hosts where no switch says
_SENT = 4e6 / _RATE  # s at a host's rate: bytes of the collective
_PUBLIC = ("alibaba", "sonic", "paper")  # of these two, as far as they are not the present setting
_SHOWN = 2
_SAME = 0.005  # share: a smaller difference is none, however sure
_FEW = 0.1  # of PAUSEs: fewer more or less are chance


@dataclasses.dataclass(frozen=True)
class Tried:
    """Result of a trial.

    Parameters
    ----------
    trial : Trial or None
        None where there was none.
    words : str
        In what the setting is better and worse, or why it was not tried.
    commands : str
        A line that repeats the part with a workload, and what finds a setting without a trade if this one is worse in
        something; "" if nothing was tried.
    """

    trial: Trial | None
    words: str
    commands: str = ""


def tried(
    scheme: str,
    sources: Sequence[Any],
    point: Mapping[str, float],
    *,
    make: Callable[..., Scenario] | None = None,
    tuned: Tuning | None = None,
    window: Any = None,
    port: str | None = None,
    sets: Sequence[str] = (),
    preset: str | None = None,
    packet_size: str | None = None,
    narrow: bool = False,
) -> Tried:
    """Run the present setting, another and two public ones side by side, packet by packet.

    Parameters
    ----------
    scheme : str
    sources : sequence of path
        As of ``--from``.
    point : mapping
        Values of the other setting [SI], by name.
    make, tuned, window
        As of `tune`, and what it found; without them there are no incasts.
    port : str, optional
    sets : sequence of str
        As of ``--set``; those that a fabric does not have are left out.
    preset, packet_size : str, optional
        As of ``--preset`` and ``--packet-size``; by default a fabric's own, and the NIC's or the largest that is usual.
    narrow : bool
        Whether more seeds run, until intervals are within 10 %.
    """
    from fluidcc.studies.tuning.trial import PRESENT, RECOMMENDED, Incasts

    incasts = None
    if make is not None and tuned is not None and tuned.start is not None:
        ran = {PRESENT: tuned.packets["start"].traces, RECOMMENDED: tuned.packets["best"].traces}
        incasts = Incasts(make, tuned.packet_cases, tuned.start.point, ran, window)
    try:
        return _tried(
            scheme, [str(source) for source in sources], point, incasts, port, sets, preset, packet_size, narrow
        )
    except InputError as error:  # a search of minutes does not end for it
        return Tried(None, f"not tried on a whole fabric: {error}")


def _tried(
    scheme: str,
    sources: list[str],
    point: Mapping[str, float],
    incasts: Any,
    port: str | None,
    sets: Sequence[str],
    preset: str | None,
    packet_size: str | None,
    narrow: bool,
) -> Tried:
    from fluidcc.builders.names import split
    from fluidcc.scenario.frames import payloads
    from fluidcc.studies.tuning.trial import PRESENT, RECOMMENDED, OnFabric, try_settings
    from fluidcc.workloads.fabrics.study import PRESET

    pairs = [(name.strip(), value.strip(), text) for text in sets for name, _, value in [text.partition("=")]]
    kept = [text for name, _, text in pairs if name != "packet_size" and not split(scheme, {name: 0})["builder"]]
    given = packet_size or next((value for name, value, _ in pairs if name == "packet_size"), None)
    devices = read(sources, port)
    size = f"{max(payloads(devices.nic if devices else None, given)):g}"
    points = {PRESENT: dict[str, float](), RECOMMENDED: dict(point)} | _public(scheme, devices)
    settings = {name: f"{name}:{_values(values)}" for name, values in points.items() if name != PRESENT}
    sent = contenders([scheme], preset or PRESET, kept, devices, size, list(settings.values()))
    rates = sent.rates(SHAPE, {})
    rate = float(rates.get("rate") or _RATE)
    until = show(_BYTES / rate, TIME)
    options = {name: sent.options[scheme if name == PRESENT else f"{scheme}-{name}"] for name in points}
    fabric = OnFabric(options, SHAPE, WORKLOAD, 0.5, until, COLLECTIVE, show(_SENT * rate, SIZE), rates)
    trial = try_settings(points, fabric, incasts, narrow=narrow)
    command = [f"--from {shlex.quote(source)}" for source in sources]
    command += [] if port is None else [f"--port {shlex.quote(port)}"]
    command += [] if preset is None else [f"--preset {preset}"]
    command += [f"--set {shlex.quote(text)}" for text in kept]
    command.append(f"--packet-size {size}")
    same = f"{scheme} {' '.join(command)} --topology {SHAPE} --workload {WORKLOAD} --load 50%"
    seeds = trial.seeds[WORKLOAD]
    again = " ".join(f"--setting {shlex.quote(text)}" for text in settings.values())
    lines = f"fluidcc fabric {same} --until {until} --seeds {seeds} {again}"
    words, worse = words_of(trial)
    if worse:
        over = " ".join(f"--over {name}" for name in ("kmin", "kmax", "pmax", "g") if name in point)
        lines += f"\nsearch for a setting that costs less elsewhere (some minutes):\n  fluidcc tune {same} {over}"
    where = f"packets of {size} B; {SHAPE} with {trial.says[WORKLOAD]}, {trial.says[COLLECTIVE]}; {seeds} seeds"
    return Tried(trial, f"{words} ({where})", lines)


def _public(scheme: str, devices: Any) -> dict[str, dict[str, float]]:
    """Thresholds that others use at the speed of the switch's ports, but for the present ones."""
    from fluidcc.operators.thresholds import yardsticks

    if scheme != "dcqcn" or devices is None or not devices.hosts:
        return {}
    red = devices.hosts[0].switch.red
    there = {} if red is None else {"kmin": red.kmin, "kmax": red.kmax, "pmax": red.pmax}
    known = {each.name: each for each in yardsticks(float(devices.rate))}
    found: dict[str, dict[str, float]] = {}
    for name in _PUBLIC:
        values = {each: float(getattr(known[name], each)) for each in ("kmin", "kmax", "pmax")}
        same = all(math.isclose(there.get(each, 0.0), value, rel_tol=1e-3) for each, value in values.items())
        if not same and len(found) < _SHOWN:
            found[name] = values
    return found


def _values(point: Mapping[str, float]) -> str:
    from fluidcc.builders.names import dimension_of

    return ",".join(f"{name}={show(value, dimension_of(name), 6)}" for name, value in point.items())


def words_of(trial: Trial) -> tuple[str, bool]:
    """Say in what the recommended setting is worse and better than the present one, most first; whether it is worse."""
    from fluidcc.studies.tuning.trial import COUNT, RECOMMENDED

    changed: dict[str, dict[str, list[tuple[str, float]]]] = {"Worse": {}, "Better": {}}
    lost, same, known = {"Worse": list[str](), "Better": list[str]()}, 0, 0
    for row in trial.rows:
        if row.unit == COUNT:
            own, there = row.own(RECOMMENDED), row.present
            if abs(own - there) > (_FEW * max(own, there) if row.measure == "pfc_pauses" else 0.0):
                words = f"{own:,.0f} {row.title} with {row.case}, not {there:,.0f}"
                lost["Worse" if own > there else "Better"].append(words)
            continue
        found = row.ratio(RECOMMENDED)
        known += math.isfinite(found["mean"])
        sure = found["low"] > 1 or found["high"] < 1
        if sure and abs(found["mean"] - 1) > _SAME:
            kind = "Better" if (found["low"] > 1) == row.more else "Worse"
            changed[kind].setdefault(row.title, []).append((row.case, found["mean"]))
        else:
            same += math.isfinite(found["mean"])
    parts = ["The recommended setting over the present one"]
    for kind, measures in changed.items():
        ordered = sorted(measures.items(), key=lambda each: -max(abs(math.log(mean)) for _, mean in each[1]))
        told = [*lost[kind], *(f"{title} with {_cases(each)}" for title, each in ordered)]
        parts += [f"{kind}: {'; '.join(told)}"] if told else []
    parts += [f"The same, or not told apart: {same} of {known}"] if same else []
    return ". ".join(parts), bool(changed["Worse"] or lost["Worse"])


def _cases(found: Sequence[tuple[str, float]]) -> str:
    """Name cases with the least and the largest of their ratios."""
    *names, last = [case for case, _ in found]
    means = [mean for _, mean in found]
    ends = dict.fromkeys((f"x{min(means):.3g}", f"x{max(means):.3g}"))
    return f"{', '.join(names)} and {last} {' to '.join(ends)}" if names else f"{last} {next(iter(ends))}"


def _ratio(found: Mapping[str, float]) -> str:
    low, high = (f"{found[end]:.3g}" for end in ("low", "high"))
    return f"x{found['mean']:.3g}" + (f" ({low}–{high})" if math.isfinite(found["low"]) and low != high else "")


HEADS = ("", "present")


def cells(trial: Trial) -> list[tuple[str, ...]]:
    """Rows of a table: case and measure, the present value, the ratio to it of each setting."""
    rows: list[tuple[str, ...]] = []
    for case in trial.says:
        rows.append((case, *[""] * (1 + len(trial.settings))))
        for row in trial.of(case):
            if all(not values.any() for values in row.pairs.values()):  # no PAUSE, no unfinished flow
                continue
            rows.append((f"  {row.title}", _present(row), *(_own(row, name) for name in row.pairs)))
    return rows


def _present(row: Row) -> str:
    from fluidcc.studies.tuning.trial import COUNT

    if row.unit == COUNT:
        return f"{row.present:,.0f}"
    return show(row.present, row.unit, 3) if row.unit else f"{row.present:.3g}"


def _own(row: Row, name: str) -> str:
    from fluidcc.studies.tuning.trial import COUNT

    if row.unit == COUNT:
        return f"{row.own(name):,.0f}"
    found = row.ratio(name)
    return _ratio(found) if math.isfinite(found["mean"]) else "none"


def table_of(trial: Trial) -> Table:
    """Settings side by side, as the terminal shows them."""
    from rich.table import Table

    table = Table(box=None, header_style="bold")
    for i, column in enumerate((*HEADS, *trial.settings)):
        table.add_column(column, justify="right" if i else "left")
    for row in cells(trial):
        table.add_row(*row)
    return table
