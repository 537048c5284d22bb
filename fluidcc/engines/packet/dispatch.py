"""Dispatch to the rule of a flow's scheme, packet by packet: see `fluidcc.engines.common.rules`.

The packet side of a scheme that has a law and no `packet.py` is made here: at each ACK, a step that ends with it. A
link's signals are those of two telemetry stamps in a row: its queue as the packet left it, and what it sent and what
came between the two. The first ACK on a path leaves its stamps, and nothing else.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fluidcc.contract import registry
from fluidcc.contract.law import refuse_unbound
from fluidcc.contract.models import Packet, Scheme
from fluidcc.engines.common import rules as chains
from fluidcc.engines.common.rules import Chain, Schemes, field
from fluidcc.engines.packet.layout import COLUMNS, HOPS, PORT_ID, QLEN, SAMPLED, TS, TX_BYTES, records
from fluidcc.engines.packet.pacing import repace
from fluidcc.engines.packet.telemetry import EXACT, same_path
from fluidcc.errors import InputError

_STAMPS = [("path_hops", np.int64), ("stamps", np.int64, (HOPS, COLUMNS))]
_OVER_HOPS = (
    "    fresh, observed = not same_path(EXACT, state.path_hops, state.stamps, 0, ack), 0.0",
    "    for h in range(ack.hops):",
    "        seconds = (ack.telemetry[h, TS] - state.stamps[h, TS]) * 1e-12",
    "        if not fresh and seconds > 0.0:",
    "            output = (ack.telemetry[h, TX_BYTES] - state.stamps[h, TX_BYTES]) / seconds",
    "            queue = float(ack.telemetry[h, QLEN])",
    "            arriving = max(output + (queue - state.stamps[h, QLEN]) / seconds, 0.0)",
    "            capacity = sim.ports[ack.telemetry[h, PORT_ID]].rate",
    "            observed = max(observed, on_hop(state.parameters, queue, output, arriving, capacity))",
    "        for column in range(COLUMNS):",
    "            state.stamps[h, column] = ack.telemetry[h, column]",
    "    state.path_hops = ack.hops",
    "    if fresh:",
    "        return",
)
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


def packet_of(parameters: Any) -> Packet:
    """Return the packet side of a scheme, from its parameters; the one of its law if it has no other.

    Raises
    ------
    InputError
        If it has neither.
    """
    return side_of(registry.scheme_of(parameters)) or registry.packet_of(parameters)


@cache
def side_of(scheme: Scheme) -> Packet | None:
    """Return the packet side of a scheme; the one of its law if it has no other; None if it has neither."""
    law = scheme.law
    if law is None or scheme.packet is not None:
        return scheme.packet
    by_hops = law.on_hop is not None

    def init_state(parameters: Any, flow: Any, state: Any) -> None:
        """Copy the parameters' numbers, and ask for telemetry if the law looks at links."""
        refuse_unbound(parameters)
        chains.copy(parameters, state.parameters)
        flow.telemetry = int(by_hops)

    begin = [
        "def begin(core, flow, state):",
        '    """Start the law."""',
        "    state.last = core.now",
        "    first = start(state.parameters, flow.rate)",
        *chains.stored(law, "first"),
    ]
    on_ack = [
        "def on_ack(sim, flow, state, ack):",
        '    """Follow the law for the packets that an ACK answers."""',
        "    now, last = sim.core[0].now, state.last",
        "    state.last = now",
        *(_OVER_HOPS if by_hops else ["    observed = ack.marks / max(ack.covers, 1)"]),
        "    wire = float(flow.payload + flow.overhead)",
        "    counted = float(flow.payload) if sim.core[0].payload_window else wire",
        "    sent, acked, newly = float(flow.sent_wire), float(flow.acked_wire), ack.covers * wire",
        "    rtt, dt = (now - ack.sent) * 1e-12, (now - last) * 1e-12",
        "    progress = Progress(sent, acked, newly, counted, wire, flow.line_rate, 0.0, rtt, dt)",
        "    new = step(state.parameters, state.now, progress, observed)",
        *chains.stored(law, "new"),
        "    repace(sim.core[0], flow)",
    ]
    observe = [
        "def observe(samples, row, f, state):",
        '    """Write a flow\'s sample."""',
        *(f"    samples[row, f, {column}] = state.now.{name}" for column, name in enumerate(law.OBSERVABLES, SAMPLED)),
        "    return",
    ]
    names = {"same_path": same_path, "repace": repace, "EXACT": EXACT, "COLUMNS": COLUMNS}
    names |= {"PORT_ID": PORT_ID, "QLEN": QLEN, "TS": TS, "TX_BYTES": TX_BYTES}
    texts = {"begin": begin, "on_ack": on_ack, "observe": observe}
    rules = {key: chains.rule(text, law, f"packets' {key} of {scheme.name}", **names) for key, text in texts.items()}
    record = chains.record(scheme.Parameters, law, [("last", np.int64), *(_STAMPS if by_hops else [])])
    return Packet(record, law.OBSERVABLES, init_state, ONLY=law.ONLY, rules=rules)


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
