"""The fluid engine's sources run by NumPy in place of JAX: nothing is compiled, and a step takes a millisecond.

A test that uses `numpy_only` runs the same text as the engine, one operation after the other. Nothing of the package
stays changed after it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fluidcc.contract import registry
from fluidcc.dde.stepping import METHODS, Carry, Loop
from fluidcc.engines.fluid import running_statistics
from fluidcc.engines.fluid.classes import system_of
from fluidcc.engines.fluid.engine import Numbers, begin
from fluidcc.engines.fluid.network import Network, columns_of, network_of
from fluidcc.engines.fluid.queues import QueueNetwork
from fluidcc.scenario.model import Scenario, resolve


class _Array(np.ndarray):
    """With the gathers that the engine spells as JAX's."""

    @property
    def at(self) -> Any:
        class At:
            def __getitem__(_, index: Any) -> Any:  # noqa: N805
                class Get:
                    get = staticmethod(lambda **_: np.asarray(self)[index])

                return Get()

        return At()


class Numpy:
    """`jax.numpy` by NumPy."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def zeros(shape: Any, dtype: Any = np.float64) -> Any:
        return np.zeros(shape, dtype).view(_Array)

    @staticmethod
    def take_along_axis(values: Any, index: Any, axis: int, **_: Any) -> Any:
        return np.take_along_axis(values, index, axis)


def _stacked(parts: list[Any]) -> Any:
    return None if parts[0] is None else jax.tree.map(lambda *each: np.stack(each), *parts)


class Lax:
    """`jax.lax` by NumPy."""

    @staticmethod
    def scan(body: Callable[..., Any], carry: Any, xs: Any, length: int | None = None) -> tuple[Any, Any]:
        parts = []
        for i in range(len(xs) if xs is not None else length or 0):
            carry, part = body(carry, None if xs is None else xs[i])
            parts.append(part)
        return carry, _stacked(parts)

    @staticmethod
    def fori_loop(first: int, last: int, body: Callable[..., Any], state: Any) -> Any:
        for i in range(first, int(last)):
            state = body(i, state)
        return state

    @staticmethod
    def while_loop(going: Callable[[Any], Any], body: Callable[[Any], Any], state: Any) -> Any:
        while going(state):
            state = body(state)
        return state

    @staticmethod
    def dynamic_update_index_in_dim(ring: Any, values: Any, index: Any, axis: int, **_: Any) -> Any:
        ring = np.array(ring)
        ring[index] = values
        return ring.view(_Array)

    @staticmethod
    def dynamic_index_in_dim(ring: Any, index: Any, axis: int, keepdims: bool = True) -> Any:
        return ring[index][None] if keepdims else ring[index]

    @staticmethod
    def dynamic_slice(ring: Any, begin: Any, size: Any, **_: Any) -> Any:
        return np.asarray(ring)[tuple(slice(int(b), int(b) + n) for b, n in zip(begin, size, strict=True))].view(_Array)

    @staticmethod
    def slice(ring: Any, begin: Any, end: Any) -> Any:
        return np.asarray(ring[tuple(slice(b, e) for b, e in zip(begin, end, strict=True))]).view(_Array)

    @staticmethod
    def bitcast_convert_type(values: Any, dtype: Any) -> Any:
        return np.asarray(values).view(dtype)

    optimization_barrier = stop_gradient = staticmethod(lambda values: values)


@pytest.fixture
def numpy_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """NumPy in all modules of the package that are loaded, and in every scheme's."""
    for scheme in map(registry.scheme, registry.built_in()):
        scheme.module("fluid")
    for name, module in list(sys.modules.items()):
        if not name.startswith("fluidcc.") or module is None:
            continue
        for key, value in list(vars(module).items()):
            if value is jnp:
                monkeypatch.setattr(module, key, Numpy())
            elif value is lax:
                monkeypatch.setattr(module, key, Lax())
            elif isinstance(value, jax.custom_jvp):
                monkeypatch.setattr(module, key, value.fun)
            elif isinstance(value, FunctionType):
                _to_numpy(value, monkeypatch)
    with np.errstate(all="ignore"):
        yield


def _to_numpy(rule: FunctionType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bring a rule of a law, and the rules that it calls, into NumPy's world (`fluidcc.contract.law`)."""
    if rule.__globals__.get("xp") is jnp:
        monkeypatch.setitem(rule.__globals__, "xp", Numpy())
        for called in list(rule.__globals__.values()):
            if isinstance(called, FunctionType):
                _to_numpy(called, monkeypatch)


def plain_network(scenario: Scenario) -> Network:
    """Columns of a scenario, with a points axis of one."""
    return columns_of(network_of(resolve(scenario)), np.float64)


class Run:
    """Steps of a network, one by one.

    Parameters
    ----------
    scenario : Scenario
        Resolved here; or a network of columns with a points axis.
    dt : float
        Step [s].
    method : str
    depth : int
        Records of history.
    points : int
    """

    def __init__(
        self, scenario: Scenario | Network, dt: float, method: str = "heun", depth: int = 256, points: int = 1
    ) -> None:
        self.network = scenario if isinstance(scenario, Network) else plain_network(scenario)
        limit = np.float64((depth - 3) * dt)
        never = np.int32(2**30)
        numbers = Numbers(np.float64(dt), np.int32(0), never, never, limit)
        static = {"points": points, "depth": depth, "method": method, "aligned": False}
        progress = begin(self.network, numbers, **static)
        self.system: QueueNetwork = system_of(self.network, points, limit)
        self.loop = Loop(self.system, METHODS[method], numbers.dt, False)
        self.carry: Carry = progress.carry
        self.statistics: running_statistics.RunningStatistics = progress.statistics

    def step(self) -> Carry:
        """Take one."""
        self.carry = self.loop.step(self.carry)
        return self.carry

    def steps(self, count: int) -> list[Carry]:
        """Take some; the states before each, and after the last."""
        return [self.carry, *(self.step() for _ in range(count))]


def queues(found: list[Carry]) -> np.ndarray:
    """(steps, queues) of the first point [bytes]."""
    return np.array([carry.y.queue[:, 0] for carry in found])
