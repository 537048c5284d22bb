"""A setting that was found, tried where no search has seen it, against the present one and two that are public."""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fluidcc.cli.contenders import contenders, read
from fluidcc.errors import InputError
from fluidcc.units import SIZE, TIME, show

if TYPE_CHECKING:
    from rich.table import Table

    from fluidcc.scenario.model import Scenario
    from fluidcc.studies.tuning import Tuning
    from fluidcc.studies.tuning.trial import Row, Trial

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
    from fluidcc.operators.reference_thresholds import yardsticks

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
    """Say in what the recommended setting is better and worse than the present one, most first; whether in anything."""
    from fluidcc.studies.tuning.trial import COUNT, RECOMMENDED

    changed: dict[str, dict[str, list[tuple[str, float]]]] = {"Better": {}, "Worse": {}}
    lost, same, known = {"Better": list[str](), "Worse": list[str]()}, 0, 0
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
