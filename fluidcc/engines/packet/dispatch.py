"""Dispatch to the rule of a flow's scheme, packet by packet: see `fluidcc.engines.common.chains`."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from fluidcc.contract import registry
from fluidcc.contract.models import Packet, Scheme
from fluidcc.engines.common.chains import Chain, Schemes, field
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


def _side_of(scheme: Scheme) -> Packet | None:
    """Return a scheme's side; of one from outside that adds to another's rules, with these.

    Raises
    ------
    InputError
        If it adds to none, or to a rule that there is.
    """
    side = side_of(scheme)
    if side is None or side.BASE is None or scheme.name in registry.built_in():
        return side
    base = side_of(registry.scheme(side.BASE)) if side.BASE in registry.names() else None
    if base is None or base.BASE is not None:
        raise InputError(f"scheme {scheme.name}: BASE names {side.BASE!r}, which has no packet side of its own")
    for rule, function in side.rules.items():
        if base.rules.get(rule, function) is not function:
            raise InputError(f"scheme {scheme.name}: {side.BASE} has {rule} already; leave it out, or leave out BASE")
    shown = {**base.OBSERVABLES, **side.OBSERVABLES}  # all that the base's rules may write
    return dataclasses.replace(
        side, STATE=base.STATE, OBSERVABLES=shown, shown=None, rules={**base.rules, **side.rules}
    )


SCHEMES = Schemes("packet", _CHAINS, _GIVEN, _side_of)

_chains = SCHEMES.chains()
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
Senders: Any = NamedTuple("Senders", [(field(name), Any) for name in SCHEMES.tables])  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
Senders.__module__ = __name__  # where the cache of machine code looks for it


def tables(names: list[str]) -> Any:
    """Empty tables with a row for each flow of a built-in scheme."""
    own = SCHEMES.from_outside(names)
    homes = [SCHEMES.home(name) for name in names if name not in own]
    return Senders(*(records(side.STATE, max(1, homes.count(name))) for name, side in SCHEMES.tables.items()))
