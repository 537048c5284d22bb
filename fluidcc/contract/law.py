"""One rule in several worlds: a law is written once, as pure functions over the vocabulary ``xp``.

``xp`` is NumPy where the law is written, for tests by hand; `jax.numpy` in the fluid engine; scalar functions in
compiled engines (`fluidcc.engines.common.scalars`). All of these have ``where(condition, yes, no)``, ``maximum(a, b)``,
``minimum(a, b)``, ``clip(x, low, high)``, ``abs``, ``exp``, ``log``, ``sqrt`` and ``logical_not``; constants such as
``math.inf`` are Python's. ``xp.where`` evaluates both branches, so both must be finite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dis import get_instructions
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

from fluidcc.contract.signals import Progress
from fluidcc.errors import InputError

# Functions that ``xp`` has in each world, and how many numbers they take.
VOCABULARY: Mapping[str, int] = MappingProxyType(
    {
        **{"where": 3, "maximum": 2, "minimum": 2, "clip": 3},
        **{"abs": 1, "exp": 1, "log": 1, "sqrt": 1, "logical_not": 1},
    }
)


def in_world(rule: Any, xp: ModuleType, made: Callable[[Any], Any] = lambda function: function) -> Any:
    """Return the same rule over another vocabulary, with the functions of its scheme that it calls.

    Parameters
    ----------
    rule : function
        In whose module ``xp`` is the vocabulary.
    xp : module
        The other.
    made : callable
        What is made of each function, as a decorator.
    """
    space = {**rule.__globals__, "xp": xp}
    package = rule.__module__.rpartition(".")[0]
    for name in {each.argval for each in get_instructions(rule.__code__) if each.opname == "LOAD_GLOBAL"}:
        called = space.get(name)
        if isinstance(called, FunctionType) and called.__module__.startswith((f"{package}.", __name__)):
            space[name] = in_world(called, xp, made)
    other = FunctionType(rule.__code__, space, rule.__name__, rule.__defaults__, rule.__closure__)
    other.__module__, other.__qualname__, other.__doc__ = rule.__module__, rule.__qualname__, rule.__doc__
    return made(other)


def refuse_unbound(parameters: Any) -> None:
    """Refuse parameters in which ``bind`` left the base RTT open, in an engine that is made of a law.

    Raises
    ------
    InputError
        If it did.
    """
    if parameters.base_rtt is None:
        raise InputError(
            f"scheme {parameters.name}: bind leaves base_rtt None; write there dataclasses.replace(self, "
            "base_rtt=path.largest_base_rtt) where it is (CONTRIBUTING.md)"
        )


def held(state: Any, progress: Progress) -> Any:
    """Check whether the window holds a flow back: that of one at line rate with less in flight does not grow."""
    inflight = (progress.sent - progress.acked + progress.newly) * (progress.packet / progress.wire_packet)
    return (state.rate < progress.line_rate) | (inflight >= state.window)
