"""Dispatch to the rule of a flow's scheme, packet by packet: see `fluidcc.engines.common.chains`.

Built-in schemes come first, in the order of names, then registered ones. `fluidcc.engines.packet.loop` imports this
module again when a scheme has been registered since.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fluidcc.contract import registry
from fluidcc.contract.models import Packet
from fluidcc.engines.common import jit
from fluidcc.engines.common.chains import Chain, field, made
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


def _known() -> dict[str, Packet]:
    """Packet sides by scheme; those of outside schemes come last, and what adds to another's comes after it."""
    found: dict[str, Packet] = {}
    for scheme in map(registry.scheme, registry.built_in()):
        if scheme.packet is not None:
            found[scheme.name] = scheme.packet
    for scheme in registry.outside():
        try:
            side = side_of(scheme)
            if side is not None:
                _fit(scheme.name, side, found)
                found[scheme.name] = side
        except Exception as error:  # whatever its module does; it harms no flow of another scheme
            REFUSED[scheme.name] = error
    return found


def _fit(name: str, side: Packet, found: dict[str, Packet]) -> None:
    """Refuse what adds to no table, or to a rule that the table has."""
    if side.BASE is None:
        return
    if side.BASE not in found or found[side.BASE].BASE is not None:
        raise InputError(f"scheme {name}: BASE names {side.BASE!r}, which has no packet side of its own")
    beside = [each for other, each in found.items() if side.BASE in (other, each.BASE)]
    for rule, function in side.rules.items():
        if any(each.rules.get(rule, function) is not function for each in beside):
            raise InputError(f"scheme {name}: {side.BASE} has {rule} already; leave it out, or leave out BASE")


REFUSED: dict[str, Exception] = {}  # outside schemes that are left out, and why
SIDES = _known()
MODULES = {name: side for name, side in SIDES.items() if side.BASE is None}
NUMBER = {name: number for number, name in enumerate(MODULES)}


def home(name: str) -> str:
    """Name of the table in which a scheme's flows are."""
    if name in REFUSED:
        raise REFUSED[name]
    base = SIDES[name].BASE
    return name if base is None else base


def _rules() -> dict[str, dict[str, Callable[..., Any]]]:
    """Return the functions of each rule by table, as {rule: {table: function}}."""
    found: dict[str, dict[str, Callable[..., Any]]] = {rule: {} for rule in _CHAINS}
    for name, side in SIDES.items():
        for rule, function in side.rules.items():
            found[rule].setdefault(home(name), function)
    return found


_chains = made("packet", _CHAINS, _GIVEN, _rules(), NUMBER, jit)
begin: Any = _chains["begin"]
on_ack: Any = _chains["on_ack"]
on_packet: Any = _chains["on_packet"]
on_answer: Any = _chains["on_answer"]
on_cnp: Any = _chains["on_cnp"]
on_timer: Any = _chains["on_timer"]
on_sent: Any = _chains["on_sent"]
on_loss: Any = _chains["on_loss"]
observe: Any = _chains["observe"]

# A table of states for each scheme; a flow's `row` is in its own scheme's.
Senders: Any = NamedTuple("Senders", [(field(name), Any) for name in MODULES])  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
Senders.__module__ = __name__  # where the cache of machine code looks for it


def tables(names: list[str]) -> Any:
    """Empty tables with a row for each flow of a scheme."""
    homes = [home(name) for name in names]
    return Senders(*(records(side.STATE, max(1, homes.count(name))) for name, side in MODULES.items()))


KNOWN = registry.outside()  # what was registered as this was made
