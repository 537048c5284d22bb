"""Dispatch to the rule of a flow's scheme: plain chains on the scheme's number, so that a compiled loop can be cached.

The chains are generated, as text, from the sides of all schemes that are known (`fluidcc.contract.protocol`). Passing
functions would be shorter, but would defeat the cache of machine code.
"""

from __future__ import annotations

import importlib
import inspect
import linecache
import threading
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from fluidcc.contract import registry
from fluidcc.contract.models import Scheme

_lock = threading.Lock()
S = TypeVar("S")
Rules = Mapping[str, Mapping[str, Callable[..., Any]]]  # by rule and table the function that follows it


class Chain(NamedTuple):
    """Rule of a chain: how it is compiled, its arguments, its result if a scheme has none, and its docstring."""

    how: str
    given: str
    nothing: str
    text: str


def known(pick: Callable[[Scheme], S | None]) -> tuple[dict[str, S], dict[str, Exception]]:
    """Models of an engine by scheme, those of outside schemes last; and outside schemes that are left out, and why.

    An outside scheme that breaks its contract harms no other.
    """
    found: dict[str, S] = {}
    refused: dict[str, Exception] = {}
    for scheme in (*map(registry.scheme, registry.built_in()), *registry.outside()):
        try:
            model = pick(scheme)
            if model is not None:
                found[scheme.name] = model
        except Exception as error:
            if scheme.name in registry.built_in():
                raise
            refused[scheme.name] = error
    return found, refused


def follow_registry(dispatch: ModuleType, loop: ModuleType) -> None:
    """Make an engine's chains and its loop again once schemes are registered that its ``dispatch`` does not know.

    Their table is of another type: what takes it is compiled again, and finds the new chains.
    """
    with _lock:
        if registry.outside() != dispatch.KNOWN:
            importlib.reload(dispatch)
            importlib.reload(loop)  # so that its machine code is kept apart


def field(name: str) -> str:
    """A scheme's name as Python's."""
    return name.replace("-", "_")


def made(
    engine: str,
    chains: Mapping[str, Chain],
    given: Mapping[str, str],
    rules: Rules,
    number: Mapping[str, int],
    jit: Any,
) -> dict[str, Any]:
    """Compile the chains; tracebacks and debuggers see their text.

    Parameters
    ----------
    engine : str
        Whose they are.
    chains : mapping of Chain
        By rule.
    given : mapping of str
        What a rule may name, as the chain has it.
    rules : mapping
        What the schemes have.
    number : mapping of int
        Of each table, as flows have it.
    jit : module
        With ``kernel``, ``inlined`` and ``inlined_by_llvm``.
    """
    text, name = _text(engine, chains, given, rules, number), f"<fluidcc {engine} dispatch of {', '.join(number)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {
        "kernel": jit.kernel,
        "inlined": jit.inlined,
        "inlined_by_llvm": jit.inlined_by_llvm,
        "__name__": f"fluidcc.engines.{engine}.dispatch",
    }
    for rule, functions in rules.items():
        space |= {f"{field(scheme)}_{rule}": function for scheme, function in functions.items()}
    exec(compile(text, name, "exec"), space)  # our own text, made of checked names
    return space


def _text(
    engine: str, chains: Mapping[str, Chain], given: Mapping[str, str], rules: Rules, number: Mapping[str, int]
) -> str:
    """Source of the chains."""
    lines = [f'"""Generated from the registry of schemes by fluidcc.engines.{engine}.dispatch."""', ""]
    for rule, chain in chains.items():
        lines += [
            "",
            f"@{chain.how}",
            f"def {rule}({chain.given}):",
            f'    """{chain.text}"""',
            "    flow = sim.flows[f]",
        ]
        for i, (name, function) in enumerate(rules[rule].items()):
            state = f"sim.senders.{field(name)}[flow.row]"
            taken = inspect.signature(getattr(function, "py_func", function)).parameters
            arguments = ", ".join({"state": state, **given}.get(argument, argument) for argument in taken)
            call = f"{field(name)}_{rule}({arguments})"
            lines += [f"    {'elif' if i else 'if'} flow.scheme == {number[name]}:  # {name}"]
            lines += [f"        {'return ' if chain.nothing else ''}{call}"]
        lines += [f"    return {chain.nothing}", ""] if chain.nothing else [""]
    return "\n".join(lines)
