"""Fluid laws and packet rules as plain functions: NumPy in place of `jax.numpy`, Python in place of machine code.

Nothing is compiled, so a law is evaluated at hundreds of random points in a few milliseconds, and a second way (the
packet rule, or the paper's text in plain Python) goes through them one by one. Each scheme has one test more that
compares NumPy's law with the compiled one (`check_compiled`).
"""

from __future__ import annotations

import builtins
import copy
import functools
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import fluidcc as fc
from fluidcc.contract.bind import bind
from fluidcc.contract.signals import Progress
from fluidcc.scenario.model import resolve
from fluidcc.schemes.vai_sf import fluid as vai_sf
from fluidcc.schemes.vai_sf import packet as vai_sf_packet

FLOWS, POINTS = 2, 200
SHAPE = (FLOWS, POINTS)
SAME = 1e-12  # two forms of the same sum of a few terms in double precision
_FLUID = ("fluidcc.engines.fluid.stable_math", "fluidcc.engines.fluid.marking")
_PLAIN = ("fluidcc.schemes", *_FLUID, "fluidcc.engines.packet")
_LAX = SimpleNamespace(bitcast_convert_type=lambda x, dtype: np.asarray(x).view(dtype))


def plain(module: ModuleType, **instead: Any) -> Any:
    """Copy of a module without compiled functions, in which some names may stand for others."""
    made = _plain(module) if not instead else _copied(module, SimpleNamespace())
    vars(made).update(instead)
    return made


@functools.cache
def _namespace(name: str) -> SimpleNamespace:
    return SimpleNamespace()


def _plain(module: ModuleType) -> Any:
    made = _namespace(module.__name__)
    return made if vars(made) else _copied(module, made)


def _copied(module: ModuleType, made: SimpleNamespace) -> SimpleNamespace:
    names = vars(made)
    names["__builtins__"] = builtins
    for name, value in list(vars(module).items()):
        names[name] = _without_compiling(value, module, names)
    return made


def _without_compiling(value: Any, module: ModuleType, names: dict[str, Any]) -> Any:
    if value is jnp:
        return np
    if value is lax:
        return _LAX
    if isinstance(value, ModuleType):
        return _plain(value) if value.__name__.startswith(_PLAIN) else value
    function = value.fun if isinstance(value, jax.custom_jvp) else getattr(value, "py_func", value)
    if not isinstance(function, FunctionType):
        return value
    home = function.__globals__["__name__"]
    if not home.startswith(_PLAIN):
        return value
    around = names if home == module.__name__ else vars(_plain(sys.modules[home]))
    made = FunctionType(function.__code__, around, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def record(packet: Any, **values: Any) -> SimpleNamespace:
    """A zeroed record of a packet side's state, with some values of its fields."""
    assert values.keys() <= set(packet.STATE.names)
    return SimpleNamespace(**(dict.fromkeys(packet.STATE.names, 0) | values))


class Draws:
    """Numbers for all points, each from one of some values or ranges (low, high), so that ties come often."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def __call__(self, *choices: Any, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
        values = [
            self.rng.uniform(*each, shape) if isinstance(each, tuple) else np.full(shape, float(each))
            for each in choices
        ]
        return np.choose(self.rng.integers(len(choices), size=shape), values)


def bound(scheme: Any, **values: Any) -> Any:
    """A scheme's parameters bound to a path of 100 Gb/s, some of them replaced by numbers or arrays."""
    scenario = resolve(fc.incast(1, rate="100Gbps", scheme=scheme))
    return replaced(bind(scenario, scenario.flows[0]), **values)


def replaced(parameters: Any, **values: Any) -> Any:
    """The same parameters with some values that no constructor checks."""
    made = copy.copy(parameters)
    made.__dict__.update(values)
    return made


def progress(own: Any = 1.0, **values: Any) -> Progress:
    """Bytes of a step; sizes of packets, line rate and the rest have defaults."""
    known = {"packet": 1000.0, "wire_packet": 1000.0, "line_rate": 12.5e9, "rtt": 1e-5, "dt": 1e-6} | values
    arrays = {name: np.broadcast_to(np.asarray(value, float), SHAPE) for name, value in known.items()}
    return Progress(**arrays, own=np.broadcast_to(own, (*np.shape(own)[:-2], *SHAPE) if np.ndim(own) else (1, *SHAPE)))


def rows(*trees: Any) -> Iterator[tuple[Any, ...]]:
    """Each flow at each point, as the same structures of floats; of what has registers or hops, lists of floats."""
    flat = [jax.tree.flatten(tree) for tree in trees]
    for f in range(FLOWS):
        for i in range(POINTS):
            yield tuple(kind.unflatten([_at(leaf, f, i) for leaf in leaves]) for leaves, kind in flat)


def _at(leaf: Any, f: int, i: int) -> Any:
    leaf = np.asarray(leaf)
    return np.broadcast_to(leaf, (*leaf.shape[:-2], *SHAPE))[..., f, i].tolist()


def check(found: Any, expected: list[Any], rel: float = SAME, skip: tuple[str, ...] = ()) -> None:
    """Compare a law's result with what another way gives at each row, field by field."""
    wanted = [jax.tree.leaves(row, is_leaf=lambda each: isinstance(each, list)) for row in expected]
    for k, (path, leaf) in enumerate(jax.tree_util.tree_leaves_with_path(found)):
        name = jax.tree_util.keystr(path)
        if name.rpartition(".")[2] in skip:
            continue
        want = np.array([row[k] for row in wanted], float)
        want = np.moveaxis(want.reshape(*SHAPE, *want.shape[1:]), (0, 1), (-2, -1))
        size = np.abs(want[np.isfinite(want)]).max(initial=0.0)
        np.testing.assert_allclose(np.broadcast_to(leaf, want.shape), want, rel, SAME * size, err_msg=name)


def check_compiled(
    law: Callable[..., Any],
    module: ModuleType,
    *arguments: Any,
    rel: float = SAME,
    by_numpy: Callable[..., Any] | None = None,
) -> None:
    """Compare a law by NumPy, which may be another function, with itself compiled, at the first few points."""
    few = jax.tree.map(lambda leaf: np.asarray(leaf)[..., :8] if np.ndim(leaf) else leaf, arguments)
    name = next(name for name, each in vars(module).items() if each is law)
    mine = (by_numpy or getattr(plain(module), name))(*few)
    with jax.enable_x64(True):
        theirs = jax.jit(law)(*few)
    assert jax.tree.structure(mine) == jax.tree.structure(theirs)
    for one, other in zip(jax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
        assert other.dtype in (np.float64, bool)
        np.testing.assert_allclose(one, other, rel, rel * np.abs(np.asarray(other)).max())


# -- Variable AI, Sampling Frequency and probabilistic feedback ----------------------------------------------------


MECHANISMS = plain(vai_sf_packet)


def mechanisms(draw: Draws, thresh: Any, div: float, **switches: Any) -> dict[str, Any]:
    """Values of their parameters, with what is on."""
    values = {"ai_cap": draw(0.0, 10.0, 100.0), "bank_cap": draw(15.0, 1000.0), "dampener_constant": draw(1.0, 8.0)}
    sampling = {"sampling": draw(1.0, 3.0, 7.0)} if switches.pop("sampling", False) else {}
    return switches | values | sampling | {"ai_div": div * draw(1.0, 2.0), "token_thresh": thresh}


def tokens(draw: Draws, p: Any, acked: Any, step: Any) -> vai_sf.Tokens | None:
    """Their state, with round trips that end before, with and after what is acknowledged; None if they are off."""
    if not p.mechanisms:
        return None
    trip_end = np.maximum(np.where(draw(0, 1, 1) > 0, acked + step * draw(-1, 0, 1), 0.0), 0.0)
    factor = draw(1.0, (1.0, 20.0)) if p.vai else draw(1.0)
    measured = p.token_thresh * draw(0.0, 0.5, 1.0, 3.0)
    bank, dampener, acks = draw(0.0, 0.0, (0.0, 30.0)), draw(0.0, 0.5, 1.0, (0.0, 9.0)), np.floor(draw(0, 1, (0, 9)))
    return vai_sf.Tokens(bank, dampener, measured, draw(0.0, 1.0), trip_end, acks, draw(0.0, (0.0, 1.5)), factor)


class Chance:
    """III-D's random number for packets, and the sum of shares in its place in the fluid: both ignore, or neither.

    An update is ignored until the shares of the ACKs, or of the periods, that would decrease add up to 1.
    """

    def __init__(self, p: Any, drawn: float, share: float, acks: float) -> None:
        self.period, self.drawn, self.asked = p.ignored_costs == "period", drawn, False
        self.sum = drawn + share * (1.0 if self.period else acks)

    def __getitem__(self, _: int) -> float:
        self.asked = True
        return np.inf if self.sum < 1.0 else -np.inf

    def left(self, adjusted: bool) -> float:
        """The sum afterwards; ``adjusted``: the reference was."""
        if not self.period:
            return 0.0 if adjusted else self.sum if self.asked else self.drawn
        return self.drawn if not self.asked else self.sum - 1.0 if self.sum >= 1.0 else self.sum


def fill(p: Any, t: vai_sf.Tokens | None, me: Any, per: float) -> None:
    """Write them to a packet side's record; ``per`` are its bytes for each of the fluid's."""
    MECHANISMS.init_state(p, me)
    if t is not None:
        me.bank, me.dampener, me.measured, me.congested = t.bank, t.dampener, t.measured, t.congested
        me.trip_end, me.acks = t.trip_end * per, t.acks


def filled(me: Any, per: float, drawn: float) -> vai_sf.Tokens:
    """The state of the fluid that is a packet side's record."""
    factor, congested = MECHANISMS.increases(me), float(me.congested)
    return vai_sf.Tokens(me.bank, me.dampener, me.measured, congested, me.trip_end / per, me.acks, drawn, factor)
