"""A law without a window, that of the example of a scheme: slope, limits and packets, against those by hand."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract import registry
from fluidcc.contract.models import Scheme
from fluidcc.contract.signals import Signals
from fluidcc.engines.flow_level import dispatch as flow_level
from fluidcc.engines.packet.dispatch import side_of
from tests.engines.packet.plain import plain
from tests.schemes.plain_laws import bound, record

ROOT = Path(__file__).parents[2]
LINE, PAYLOAD, OVERHEAD, TAU, A, B = 1.25e9, 1000.0, 62.0, 1e-5, 5e6, 1 / 16
WIRE = PAYLOAD + OVERHEAD


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scheme]:
    """The example with its law, and next to it the same sender written by hand for packets (``by_hand.py``)."""
    shutil.copytree(ROOT / "examples" / "own_scheme" / "aimd_ecn", tmp_path / "aimd_ecn")
    shutil.copy(ROOT / "tests" / "data" / "aimd_sides" / "packet.py", tmp_path / "aimd_ecn" / "by_hand.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_outside", dict(registry._outside))
    importlib.invalidate_caches()
    package = importlib.import_module("aimd_ecn")
    yield Scheme(package.Parameters, package.PRESETS, "aimd_ecn")
    for name in [name for name in sys.modules if name.partition(".")[0] == "aimd_ecn"]:
        del sys.modules[name]


def parameters(known: Scheme) -> Any:
    return bound(known.Parameters(rate_ai="40Mbps", beta=B, min_rate="8Mbps"), base_rtt=TAU)


def test_its_slope_is_what_it_changes_in_no_time(known: Scheme) -> None:
    """R' = a/T + R ln(1 - b p) R(t - tau)/packet, of marks and rates that differ by flow and point."""
    rng = np.random.default_rng(1)
    rates, late, marks = rng.uniform(2e6, LINE, (3, 4)), rng.uniform(2e6, LINE, (3, 4)), rng.uniform(0, 1, (1, 4))
    fluid, p = known.fluid, parameters(known)
    assert fluid is not None
    with jax.enable_x64(True):
        observed = fluid.feedback(p, Signals(jnp.asarray(marks), jnp.asarray(late), jnp.asarray(WIRE), line_rate=LINE))
        start = fluid.start(p, jnp.asarray(LINE), (3, 4), 1)
        slope = fluid.derivative(p, start._replace(rate=jnp.asarray(rates)), observed)
    assert start.rate.tolist() == np.full((3, 4), LINE).tolist()
    np.testing.assert_allclose(slope.rate, A / TAU + rates * np.log(1 - B * marks) * late / WIRE, rtol=1e-12)
    assert fluid.jump is None
    assert fluid.window is None
    assert not fluid.NEEDS


def test_its_limits_are_those_of_the_law(known: Scheme) -> None:
    fluid, p = known.fluid, parameters(known)
    assert fluid is not None
    beyond = fluid.start(p, jnp.asarray([[1.0], [5e8], [2 * LINE]]), (3, 1), 1)
    assert np.ravel(fluid.project(p, beyond, LINE).rate).tolist() == pytest.approx([1e6, 5e8, LINE])


def test_all_its_state_moves_at_an_equilibrium(known: Scheme) -> None:
    side = known.equilibrium
    assert side is not None
    assert side.MOVES == ("rate",)
    assert side.smooth(parameters(known))


AVERAGING = """
from typing import Any, NamedTuple

import numpy as xp

OBSERVABLES = {"alpha": ("1", "average share of marks")}


class State(NamedTuple):
    alpha: Any
    rate: Any


def start(parameters, initial_rate):
    return State(0.0, initial_rate)


def rate(state):
    return state.rate


def on_step(parameters, state, progress, observed):
    p = parameters
    share = progress.dt / p.base_rtt
    alpha = state.alpha + xp.minimum(p.beta * share, 1.0) * (observed - state.alpha)
    moved = state.rate + share * (p.rate_ai - state.rate * state.alpha / 2)
    return State(alpha, xp.minimum(xp.maximum(moved, p.min_rate), progress.line_rate))
"""


@pytest.mark.slow  # symbols, and a linearisation that is compiled: 6 s
def test_symbols_of_a_law_that_looks_at_marks_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its marks are late by the way back, and its bytes by the way to the queue: in the sum there is no other delay.

    By hand alpha = 2 a/R; the characteristic function is the engine's, by automatic differentiation, to 1e-12.
    """
    place = tmp_path / "averaging"
    shutil.copytree(ROOT / "examples" / "own_scheme" / "aimd_ecn", place)
    for file in place.glob("*.py"):
        file.write_text(file.read_text().replace("aimd_ecn", "averaging").replace("aimd-ecn", "averaging"))
    (place / "law.py").write_text(AVERAGING)
    (place / "crosscheck.py").unlink()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_outside", dict(registry._outside))
    importlib.invalidate_caches()
    package = importlib.import_module("averaging")
    fc.register(package)
    scheme = package.Parameters()
    found, near = fc.symbolic(scheme, flows=4), fc.linearize(fc.incast(4, scheme=scheme)).system
    rest = {name.name: found.number(value).real for name, value in (found.solution or {}).items()}
    assert rest["alpha"] == pytest.approx(2 * 5e6 / rest["R"], rel=1e-12)
    assert [name.name for name in found.unknowns] == ["alpha", "R", "q", "p"]
    for s in (1e3 + 2e4j, -5e3 + 1e5j, 3e4, 1j):
        late = sum(matrix * np.exp(-s * tau) for tau, matrix in zip(near.tau, near.A, strict=True))
        engines = complex(np.linalg.det(s * np.eye(near.order) - near.A0 - late))
        assert found.number(found.characteristic, {"s": s}) == pytest.approx(engines, rel=1e-12)


def test_a_law_of_windows_has_no_equilibrium_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "powertcp"))
    package = importlib.import_module("powertcp")
    assert Scheme(package.Parameters, package.PRESETS, "powertcp").equilibrium is None


def test_its_packets_are_those_by_hand(known: Scheme) -> None:
    """The same bits over 500 ACKs, of which some carry a mark and some answer two packets of which both do."""
    p, side, by_hand = parameters(known), side_of(known), importlib.import_module("aimd_ecn.by_hand")
    assert side is not None
    flows = [
        SimpleNamespace(
            rate=0.4 * LINE, line_rate=LINE, payload=PAYLOAD, overhead=OVERHEAD, sent=0, acked=0, sent_wire=0,
            acked_wire=0, last_size=0, in_burst=0, window=np.inf, telemetry=0,
        )
        for _ in range(2)
    ]  # fmt: skip
    core = SimpleNamespace(now=1_000_000, payload_window=1, ns3=0, recovery=0, jitter=0.0)
    made, mine = np.zeros(1, side.STATE).view(np.recarray)[0], record(by_hand)
    side.init_state(p, flows[0], made)
    by_hand.init_state(p, flows[1], mine)
    plain(side.rules["begin"])(core, flows[0], made)
    plain(by_hand.begin)(core, mine)
    rng, on_ack, other = np.random.default_rng(2), plain(side.rules["on_ack"]), plain(by_hand.on_ack)
    seen = set()
    for _ in range(500):
        core.now += int(rng.integers(500_000, 3_000_000))
        covers = int(rng.choice([1, 1, 2]))
        ack = SimpleNamespace(covers=covers, marks=covers * int(rng.random() < 0.1), sent=core.now - 9_000_000, hops=0)
        on_ack(SimpleNamespace(core=[core]), flows[0], made, ack)
        other(core, flows[1], mine, ack)
        assert flows[0].rate == flows[1].rate
        seen.add(flows[0].rate)
    assert len(seen) > 400
    assert flows[0].window == np.inf


def test_the_flow_level_leaves_its_bytes_in_flight_free(known: Scheme) -> None:
    """One step by hand: a/T in its time, and two packets of which a half is marked."""
    p, side = parameters(known), flow_level.side_of(known)
    assert side is not None
    flow = SimpleNamespace(
        initial_rate=0.5 * LINE, line_rate=LINE, rate=0.0, window=np.inf, sent=4e4, acked=3e4, newly=2 * WIRE,
        counted=PAYLOAD, packet=WIRE, rtt=TAU, marking=0.5,
    )  # fmt: skip
    state = np.zeros(1, side.STATE).view(np.recarray)[0]
    side.init_state(p, flow, state)
    assert flow.rate == 0.5 * LINE
    plain(side.rules["on_step"])(flow, state, 1e-6)
    assert flow.rate == pytest.approx((0.5 * LINE + A / TAU * 1e-6) * (1 - B / 2) ** 2, rel=1e-12)
    assert flow.window == np.inf
