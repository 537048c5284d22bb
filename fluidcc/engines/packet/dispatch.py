"""Dispatch to the rule of a flow's scheme, packet by packet: see `fluidcc.engines.common.chains`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from fluidcc.contract import registry
from fluidcc.contract.models import Packet, Scheme
from fluidcc.engines.common.chains import Chain, field, made
from fluidcc.engines.common.outside import Outside, call
from fluidcc.engines.packet.laws import side_of
from fluidcc.engines.packet.layout import records
from fluidcc.errors import InputError

_CHAINS = {
    "begin": Chain("kernel", "sim, f", "", "A flow starts."),
    "on_ack": Chain("inlined_by_llvm", "sim, f, k", "", "An ACK, packet ``k``, reaches its sender."),
    "on_packet": Chain("kernel", "sim, f, k, nic", "False", "Data reaches a receiver; whether it should answer now."),
    "on_answer": Chain("kernel", "sim, f, k", "", "A receiver that decides when it answers does so by packet ``k``."),
    "on_cnp": Chain("kernel", "sim, f, k", "", "A CNP, packet ``k``, reaches its sender."),
    "on_timer": Chain("kernel", "sim, f, which", "", "A flow's timer runs out."),
    "on_loss": Chain("kernel", "sim, f, size, why, when", "", "A flow's sender learns that a packet is lost."),
    "on_sent": Chain("inlined", "sim, f, size", "", "A flow's packet leaves."),
    "observe": Chain("kernel", "sim, f, row", "", "Write what a scheme shows of a flow into a row of the samples."),
}
# What a rule may name, as the chain has it.
_GIVEN = {
    "core": "sim.core[0]",
    "ports": "sim.ports",
    "uniforms": "sim.uniforms",
    "samples": "sim.flow_samples",
    "flows": "sim.ports[nic].incoming",
    **dict.fromkeys(("ack", "cnp", "packet"), "sim.packets[k]"),
}


SIDES: dict[str, Packet] = {
    scheme.name: scheme.packet for scheme in map(registry.scheme, registry.built_in()) if scheme.packet is not None
}
MODULES = {name: side for name, side in SIDES.items() if side.BASE is None}
NUMBER = {name: number for number, name in enumerate(MODULES)}


def home(name: str) -> str:
    """Name of the table in which a built-in scheme's flows are."""
    return SIDES[name].BASE or name


def _outside_side(scheme: Scheme) -> Packet | None:
    """Return the side of a scheme from outside, with the rules of the one whose rules it adds to.

    Raises
    ------
    InputError
        If it adds to none, or to a rule that there is.
    """
    side = side_of(scheme)
    if side is None or side.BASE is None:
        return side
    base = MODULES.get(side.BASE)
    if base is None:
        raise InputError(f"scheme {scheme.name}: BASE names {side.BASE!r}, which has no packet side of its own")
    beside = [base, *(each for each in SIDES.values() if side.BASE == each.BASE)]
    for rule, function in side.rules.items():
        if any(each.rules.get(rule, function) is not function for each in beside):
            raise InputError(f"scheme {scheme.name}: {side.BASE} has {rule} already; leave it out, or leave out BASE")
    return dataclasses.replace(side, STATE=base.STATE, rules={**base.rules, **side.rules})


def _rules() -> dict[str, dict[str, Callable[..., Any]]]:
    """Return the functions of each rule by table, as {rule: {table: function}}."""
    found: dict[str, dict[str, Callable[..., Any]]] = {rule: {} for rule in _CHAINS}
    for name, side in SIDES.items():
        for rule, function in side.rules.items():
            found[rule].setdefault(home(name), function)
    return found


_chains = made("packet", _CHAINS, _GIVEN, _rules(), NUMBER, call)
OUTSIDE = Outside("packet", _CHAINS, _GIVEN, _outside_side)
begin: Any = _chains["begin"]
on_ack: Any = _chains["on_ack"]
on_packet: Any = _chains["on_packet"]
on_answer: Any = _chains["on_answer"]
on_cnp: Any = _chains["on_cnp"]
on_timer: Any = _chains["on_timer"]
on_sent: Any = _chains["on_sent"]
on_loss: Any = _chains["on_loss"]
observe: Any = _chains["observe"]

# A table of states for each built-in scheme; a flow's `row` is in its own scheme's.
Senders: Any = NamedTuple("Senders", [(field(name), Any) for name in MODULES])  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
Senders.__module__ = __name__  # where the cache of machine code looks for it


def tables(names: list[str]) -> Any:
    """Empty tables with a row for each flow of a built-in scheme."""
    homes = [home(name) for name in names if name in SIDES]
    return Senders(*(records(side.STATE, max(1, homes.count(name))) for name, side in MODULES.items()))


def side(name: str) -> Packet:
    """Return the side of any scheme."""
    return SIDES[name] if name in SIDES else OUTSIDE.side(name)


def numbers(schemes: Iterable[str]) -> dict[str, int]:
    """Return the numbers of a run's schemes: those from outside come behind the tables of all built-in ones."""
    behind = {name: len(NUMBER) + k for k, name in enumerate(OUTSIDE.names(schemes))}
    return {name: behind[name] if name in behind else NUMBER[home(name)] for name in schemes}
