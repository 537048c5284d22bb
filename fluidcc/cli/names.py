"""Names that --set and --over take: whose each is, and its dimension."""

from __future__ import annotations

from typing import Any

from fluidcc import units
from fluidcc.errors import InputError
from fluidcc.surface import nearest

_FLOWS = {"start": units.TIME, "initial_rate": units.RATE, "size": units.SIZE}
_LINKS = {"rate": units.RATE, "delay": units.TIME, "loss": units.RATIO}
_SENDERS = {"flows": units.COUNT, "line_rate": units.RATE}
_BURSTS = {"bursts": units.COUNT, "burst_start": units.TIME, "burst_time": units.TIME, "burst_size": units.SIZE}
_FABRIC_SIZES = dict.fromkeys(("pods", "tors", "leaves", "spines", "hosts", "ecmp_seed"), units.COUNT)
# Options of each topology's builder, with their dimensions.
TOPOLOGIES: dict[str, dict[str, str]] = {
    "incast": {**_LINKS, **_FLOWS, **_SENDERS, "stagger": units.TIME, "stagger_group": units.COUNT},
    "parking-lot": {**_LINKS, **_FLOWS, **_SENDERS},
    "chain": {**_LINKS, **_FLOWS, **_BURSTS},
    "fat-tree": {**_LINKS, **_FLOWS, "flows": units.COUNT, "fabric_rate": units.RATE, **_FABRIC_SIZES},
}
# Names that select the shape of the problem, and so cannot be swept.
SHAPES = ("topology", "until", "preset", "scheme", "window", "dt", "rtol", "method", "engine", "seed",
          "bursts", "burst_time", "burst_size", "stagger_group", *_FABRIC_SIZES)  # fmt: skip


def known_names(scheme: str) -> dict[str, tuple[str, str]]:
    """Home and dimension of every name; the homes are scheme, marking, network, pfc and builder."""
    from fluidcc.contract.registry import scheme as scheme_named
    from fluidcc.scenario.model import PFC, RED, Scenario
    from fluidcc.scenario.parameters import specs

    known = {"pfc": ("pfc", "on|off")}
    # A scheme's own parameter goes before one of the same name elsewhere.
    owners = {"pfc": PFC, "network": Scenario, "marking": RED, "scheme": scheme_named(scheme).Parameters}
    for home, owner in owners.items():
        known |= {name: (home, spec.dimension) for name, spec in specs(owner).items()}
    for options in TOPOLOGIES.values():
        known |= {name: ("builder", dimension) for name, dimension in options.items()}
    return known


def takes_whole_numbers(scheme: str, name: str) -> bool:
    """Check whether a parameter, known by `check_name`, takes whole numbers only."""
    from fluidcc.contract.registry import scheme as scheme_named
    from fluidcc.scenario.model import PFC, RED, Scenario
    from fluidcc.scenario.parameters import specs

    owners = (scheme_named(scheme).Parameters, RED, Scenario, PFC)
    spec = next((specs(owner)[name] for owner in owners if name in specs(owner)), None)
    return name in _SENDERS and known_names(scheme)[name][1] == units.COUNT if spec is None else spec.integer


def check_name(scheme: str, name: str, option: str) -> str:
    """Dimension of a parameter's name.

    Raises
    ------
    InputError
        If there is none of that name, with the nearest that there is.
    """
    known = known_names(scheme)
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean {near}?" if near else f"see: fluidcc show {scheme}"
        raise InputError(f"{option}: {scheme} has no parameter {name[:40]!r}; {hint}")
    return known[name][1]


def split(scheme: str, values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Values by their homes, as `known_names` has them."""
    known = known_names(scheme)
    homes: dict[str, dict[str, Any]] = {home: {} for home in ("scheme", "marking", "network", "pfc", "builder")}
    for name, value in values.items():
        homes[known[name][0]][name] = value
    return homes
