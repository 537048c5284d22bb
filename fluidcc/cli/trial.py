"""A setting on a fabric that no search has seen, against the one that the files have."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from fluidcc.cli.contenders import contenders, read
from fluidcc.errors import InputError
from fluidcc.units import TIME, show

SHAPE, WORKLOAD, SEEDS = "leaf-spine:4x4x8", "web-search", 3
_BYTES = 1e8  # that a host could send while flows arrive: some 900 flows in all
_RATE = 12.5e9  # bytes/s, of the shape's hosts where no switch says


def tried(
    scheme: str,
    sources: Sequence[Any],
    point: Mapping[str, float],
    *,
    port: str | None = None,
    sets: Sequence[str] = (),
    preset: str | None = None,
    packet_size: str | None = None,
) -> tuple[str, str]:
    """Run the present setting and another with the same flows, packet by packet.

    Parameters
    ----------
    scheme : str
    sources : sequence of path
        As of ``--from``.
    point : mapping
        Values of the other setting [SI], by name.
    port : str, optional
    sets : sequence of str
        As of ``--set``; those that a fabric does not have are left out.
    preset, packet_size : str, optional
        As of ``--preset`` and ``--packet-size``; by default a fabric's own, and the NIC's or the largest that is usual.

    Returns
    -------
    words, commands : str
        In what the setting is better and worse, or why it was not tried; and a line that repeats the run, empty if none
        was, followed by what finds a setting without a trade if this one is worse in something.
    """
    try:
        return _tried(scheme, [str(source) for source in sources], point, port, sets, preset, packet_size)
    except InputError as error:  # a search of minutes does not end for it
        return f"not tried on a whole fabric: {error}", ""


def _tried(
    scheme: str,
    sources: list[str],
    point: Mapping[str, float],
    port: str | None,
    sets: Sequence[str],
    preset: str | None,
    packet_size: str | None,
) -> tuple[str, str]:
    from fluidcc.builders.names import dimension_of, split
    from fluidcc.cli.fabric import words_against
    from fluidcc.scenario.frames import payloads
    from fluidcc.workloads.fabrics.evaluate import PRESET, fabric

    pairs = [(name.strip(), value.strip(), text) for text in sets for name, _, value in [text.partition("=")]]
    kept = [text for name, _, text in pairs if name != "packet_size" and not split(scheme, {name: 0})["builder"]]
    given = packet_size or next((value for name, value, _ in pairs if name == "packet_size"), None)
    values = [f"{name}={show(value, dimension_of(name), 6)}" for name, value in point.items()]
    setting = f"tuned:{','.join(values)}"
    devices = read(sources, port)
    size = f"{max(payloads(devices.nic if devices else None, given)):g}"
    sent = contenders([scheme], preset or PRESET, kept, devices, size, [setting])
    rates = sent.rates(SHAPE, {})
    until = show(_BYTES / float(rates.get("rate") or _RATE), TIME)
    found = fabric(sent.options, SHAPE, workload=WORKLOAD, load=0.5, until=until, seeds=SEEDS, **rates)
    new, present = f"{scheme}-tuned", scheme
    words = words_against(found, new, present, found.against(new, present))
    options = [f"--from {shlex.quote(source)}" for source in sources]
    options += [] if port is None else [f"--port {shlex.quote(port)}"]
    options += [] if preset is None else [f"--preset {preset}"]
    options += [f"--set {shlex.quote(text)}" for text in kept]
    options.append(f"--packet-size {size}")
    same = f"{scheme} {' '.join(options)} --topology {SHAPE} --workload {WORKLOAD} --load 50%"
    command = f"fluidcc fabric {same} --until {until} --seeds {SEEDS} --setting {shlex.quote(setting)}"
    if "worse: " in words:
        over = " ".join(f"--over {name}" for name in ("kmin", "kmax", "pmax", "g") if name in point)
        command += f"\nfind one that trades less, in some minutes:\n  fluidcc tune {same} {over}"
    where = f"{len(found.topology.hosts)} hosts of {SHAPE}, {found.says}, packets of {size} B, {SEEDS} seeds"
    return f"on a whole fabric ({where}), against the present setting: {words}", command
