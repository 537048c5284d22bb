"""Packets of a scheme that has a law alone: ACK by ACK in plain Python, against rules written for packets."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract import registry
from fluidcc.contract.models import Scheme
from fluidcc.engines.common import jit
from fluidcc.engines.common import rules as chains
from fluidcc.engines.common.rules import Chain
from fluidcc.engines.packet.dispatch import packet_of, side_of
from fluidcc.schemes import dctcp
from fluidcc.schemes.dctcp import packet as dctcp_packet
from tests.engines.packet.plain import plain
from tests.schemes import plain_laws
from tests.schemes.plain_laws import bound, record

POWERTCP = Path(__file__).parents[3] / "examples" / "powertcp"
PAYLOAD, OVERHEAD, LINE, PS = 1000.0, 62.0, 12.5e9, 1e-12
WIRE = PAYLOAD + OVERHEAD


class LawAlone(Scheme):
    """A scheme whose packet side is not looked at."""

    packet = None


def begun(side: Any, parameters: Any, now: int) -> tuple[Any, SimpleNamespace, Any]:
    """A core, a flow and its record as packets begin it."""
    core = SimpleNamespace(now=now, payload_window=1, ns3=0, recovery=0, jitter=0.0)
    flow = SimpleNamespace(
        rate=LINE, line_rate=LINE, payload=PAYLOAD, overhead=OVERHEAD, sent=0, acked=0, sent_wire=0, acked_wire=0,
        last_size=0, in_burst=0, window=0.0, telemetry=0,
    )  # fmt: skip
    state = np.zeros(1, side.STATE).view(np.recarray)[0] if "parameters" in side.STATE.names else record(side)
    side.init_state(parameters, flow, state)
    plain(side.rules["begin"] if hasattr(side, "rules") else side.begin)(core=core, flow=flow, state=state)
    return core, flow, state


def test_dctcp_s_law_is_its_rule_for_packets() -> None:
    """Whole packets with a mark of 0 or 1: windows, rates and alpha of 400 ACKs, some of several packets."""
    p = bound(fc.DCTCP(), base_rtt=1e-5, initial_window=LINE * 1e-5)
    side = side_of(LawAlone(dctcp.Parameters, {}, dctcp.__name__))
    assert side is not None
    core, flow, state = begun(side, p, 0)
    rule = plain_laws.plain(dctcp_packet)
    other, mine, me = begun(SimpleNamespace(**vars(rule)), p, 0)
    rng, now, cuts = np.random.default_rng(3), 10_000_000, 0
    on_ack = plain(side.rules["on_ack"])
    for _ in range(400):
        now += int(rng.integers(50_000, 400_000))
        covers = int(rng.choice([1, 1, 2]))
        marks = covers if rng.random() < 0.02 else 0
        acked = flow.acked_wire / WIRE + covers
        sent = max(acked + float(rng.integers(5, 30)), flow.sent_wire / WIRE)
        for each in (flow, mine):
            each.sent, each.acked, each.sent_wire, each.acked_wire = (
                sent * PAYLOAD, acked * PAYLOAD, sent * WIRE, acked * WIRE,
            )  # fmt: skip
        ack = SimpleNamespace(covers=covers, marks=marks, end=acked * PAYLOAD, sent=now - 9_000_000, hops=0)
        core.now = other.now = now
        before = flow.window
        on_ack(SimpleNamespace(core=[core]), flow, state, ack)
        rule.on_ack(other, mine, me, ack)
        cuts += flow.window < before
        assert flow.window == pytest.approx(mine.window, rel=1e-9)
        assert flow.rate == pytest.approx(mine.rate, rel=1e-9)
        assert state.now.alpha == pytest.approx(me.alpha, rel=1e-9)
    assert cuts > 4


def test_powertcp_s_packets_do_what_its_paper_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """NEWACK of Algorithm 1, with a power by its own stamps; GETCWND between the windows that were noted."""
    monkeypatch.syspath_prepend(str(POWERTCP))
    monkeypatch.setattr(registry, "_outside", dict(registry._outside))  # it is met here only
    import powertcp

    tau, beta = 1e-5, 5e3
    p = bound(powertcp.PowerTCP(gamma=0.8, beta=beta, initial_window=1e5), base_rtt=tau)
    side = packet_of(p)
    core, flow, state = begun(side, p, 0)
    assert flow.telemetry == 1
    assert (flow.window, flow.rate) == (1e5, LINE)
    rng, on_ack, ports = np.random.default_rng(5), plain(side.rules["on_ack"]), [SimpleNamespace(rate=LINE)] * 2
    stamps = np.zeros((2, 6))
    stamps[:, 3] = [0, 1]
    cwnd, smooth, older, noted, start, end, last = 1e5, 1.0, 1e5, 1e5, 0.0, -1.0, None
    now, sent, acked = 8_000_000, 60.0, 0.0
    for k in range(300):
        now += int(rng.integers(40_000, 300_000))
        covers = int(rng.choice([1, 1, 3]))
        acked, sent = acked + covers, max(sent, acked + float(rng.integers(20, 60)))
        new = stamps.copy()
        new[:, 2] += rng.integers(40_000, 300_000, 2)
        new[:, 1] += np.floor((new[:, 2] - stamps[:, 2]) * PS * LINE * rng.uniform(0.2, 1.0, 2))
        new[:, 0] = rng.integers(0, 80_000, 2)
        flow.sent_wire, flow.acked_wire, core.now = sent * WIRE, acked * WIRE, now
        ack = SimpleNamespace(covers=covers, marks=0, sent=now - 9_000_000, hops=2, path=0, telemetry=new.astype(int))
        on_ack(SimpleNamespace(core=[core], ports=ports), flow, state, ack)
        if last is None:  # the first ACK leaves its stamps
            stamps, last = new, now
            continue
        power = 0.0
        for old, latest in zip(stamps, new, strict=True):  # NORMPOWER
            dt = (latest[2] - old[2]) * PS
            current = max((latest[0] - old[0]) / dt + (latest[1] - old[1]) / dt, 0.0)
            power = max(power, current * (latest[0] + LINE * tau) / (LINE**2 * tau))
        dt = min((now - last) * PS, tau)
        if end >= 0:
            smooth = (smooth * (tau - dt) + power * dt) / tau
            share = min((acked * WIRE - start) / max(end - start, PAYLOAD), 1.0)
            for _ in range(covers):
                then = older + share * (noted - older)
                cwnd = 0.8 * (then / max(smooth, 1e-3) + beta) + 0.2 * cwnd
            cwnd = min(max(cwnd, PAYLOAD), 1e5)
        if acked * WIRE > max(end, 0.0):
            older, noted, start, end = noted, cwnd, acked * WIRE, sent * WIRE
        stamps, last = new, now
        assert state.now.power == pytest.approx(smooth, rel=1e-9), k
        assert flow.window == pytest.approx(cwnd, rel=1e-9), k
        assert flow.rate == pytest.approx(min(cwnd / tau, LINE), rel=1e-9), k
    samples = np.zeros((1, 1, 5))
    plain(side.rules["observe"])(samples, 0, 0, state)
    assert samples[0, 0, 3:].tolist() == [state.now.window, state.now.power]


class Memory(NamedTuple):
    """The memory that a chain is given."""

    flows: Any
    senders: Any
    outside: Any
    calls: Any


SUM = np.dtype([("total", np.float64), ("acks", np.int64)], align=True)


@jit.kernel
def add(state: Any, f: Any, k: Any) -> None:
    """Note an ACK."""
    state.total += 10.0 * f + k
    state.acks += 1


@jit.kernel
def due(flow: Any, nic: Any) -> Any:
    """Answer a late flow at the third NIC."""
    return nic == 3 and flow.late


@pytest.mark.parametrize("by_rows", [False, True])
def test_rules_from_outside_are_called_by_their_addresses(monkeypatch: pytest.MonkeyPatch, by_rows: bool) -> None:
    """Two flows of such a scheme, behind one built-in: the chain hands on flow, packet and NIC, and a rule's answer."""
    rules = {
        "on_ack": Chain("kernel", "sim, f, k", "", "An ACK."),
        "on_packet": Chain("kernel", "sim, f, k, nic", "False", "Data."),
        "on_loss": Chain("kernel", "sim, f, size, why, when", "", "A loss."),
    }
    side = SimpleNamespace(STATE=SUM, rules={"on_ack": add, "on_packet": due})
    names = SimpleNamespace(scheme=lambda name: name, built_in=lambda: ("first",))
    monkeypatch.setattr(chains, "registry", names)
    first = SimpleNamespace(rules={})
    own = chains.Schemes("test", rules, {}, lambda name: first if name == "first" else side, by_rows=by_rows)
    assert own.numbers(["first", "other", "mine"]) == {"first": 0, "other": 1, "mine": 2}
    assert own.from_outside(["first", "mine", "mine"]) == ["mine"]
    chain = own.chains()
    flows = np.zeros(3, [("scheme", np.int32), ("row", np.int32), ("late", np.bool_)]).view(np.recarray)
    flows.scheme[1:], flows.late[2] = 1, True
    memory, tables, rows = own.memory({"other": 5, "mine": 3})
    flows.row[1:] = [8, 10] if by_rows else rows["mine"][[0, 2]]  # five of the other take two lines: eight of these
    sim = Memory(flows, np.zeros(1), memory, np.zeros((1, 1), np.int64))
    sim = sim._replace(calls=own.calls(["mine"], sim))
    assert (sim.calls != 0).tolist() == [[True, True, False]]
    on_ack, on_packet, on_loss = (chain[rule] for rule in rules)

    @numba.njit
    def loop(sim: Any) -> Any:
        for f in range(3):
            on_ack(sim, f, 5)
            on_loss(sim, f, 1, 2, 3)
        on_ack(sim, 2, 6)
        return on_packet(sim, 0, 0, 3), on_packet(sim, 2, 0, 3), on_packet(sim, 2, 0, 1), on_packet(sim, 1, 0, 3)

    assert loop(sim) == (False, True, False, False)
    assert tables["mine"].tolist() == [(15.0, 1), (0.0, 0), (51.0, 2)]
    assert not tables["other"].acks.any()
