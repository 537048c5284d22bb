"""Dispatch to the rule of a flow's scheme: plain chains on the scheme's number, so that a compiled loop can be cached.

The chains are generated, as text, from the sides of the built-in schemes (`fluidcc.contract.protocol`). Passing
functions would be shorter, but would defeat the cache of machine code. Schemes from outside have the numbers behind:
their rules are compiled each by itself, and called by their addresses (`fluidcc.engines.common.outside`).
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fluidcc.engines.common import jit

Rules = Mapping[str, Mapping[str, Callable[..., Any]]]  # by rule and table the function that follows it


class Chain(NamedTuple):
    """Rule of a chain: how it is compiled, its arguments, its result if a scheme has none, and its docstring."""

    how: str
    given: str
    nothing: str
    text: str


def field(name: str) -> str:
    """A scheme's name as Python's."""
    return name.replace("-", "_")


def made(
    engine: str,
    chains: Mapping[str, Chain],
    given: Mapping[str, str],
    rules: Rules,
    number: Mapping[str, int],
    call: Any,
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
        Of each table, as flows have it; schemes from outside follow.
    call : callable
        Calls a rule by its address.
    """
    lines: list[str] = []
    for column, (rule, chain) in enumerate(chains.items()):
        lines += _head(rule, chain)
        for i, (name, function) in enumerate(rules[rule].items()):
            state = f"sim.senders.{field(name)}[flow.row]"
            lines += [f"    {'elif' if i else 'if'} flow.scheme == {number[name]}:  # {name}"]
            lines += [f"        {'return ' if chain.nothing else ''}{_called(rule, name, function, state, given)}"]
        passed = ", ".join([*_more(chain), "0", "0", "0"][:3])
        result = f"return call(address, sim, f, {passed}) != 0" if chain.nothing else f"call(address, sim, f, {passed})"
        lines += [
            f"    if flow.scheme >= {len(number)}:",
            f"        address = sim.calls[flow.scheme - {len(number)}, {column}]",
        ]
        lines += ["        if address != 0:", f"            {result}", f"    return {chain.nothing}", ""]
    names = {f"{field(scheme)}_{rule}": each for rule, found in rules.items() for scheme, each in found.items()}
    return _compiled(lines, engine, ", ".join(number), {**names, "call": call})


def outside(
    engine: str, chains: Mapping[str, Chain], given: Mapping[str, str], name: str, side: Any, state_at: Any
) -> dict[str, Any]:
    """Compile the rules of a scheme from outside, each as a function that `made`'s chain may call by its address."""
    lines: list[str] = []
    functions = {rule: side.rules[rule] for rule in chains if rule in side.rules}
    for rule, function in functions.items():
        chain = chains[rule]._replace(how="kernel", given="sim, f, a, b, c")
        called = _called(rule, name, function, "state_at(sim.outside, flow.row)", given)
        lines += _head(rule, chain)
        lines += [f"    {word} = {passed}" for word, passed in zip(_more(chains[rule]), "abc", strict=False)]
        lines += [f"    return int({called})", ""] if chain.nothing else [f"    {called}", "    return 0", ""]
    names = {f"{field(name)}_{rule}": each for rule, each in functions.items()}
    return _compiled(lines, engine, name, {**names, "state_at": state_at}) if lines else {}


def zeros(chain: Chain) -> tuple[int | float, int | float, int | float]:
    """Return numbers of the kinds that a chain passes on besides the run and the flow."""
    first, second, third = (0.0 if word == "dt" else 0 for word in [*_more(chain), "", "", ""][:3])
    return first, second, third


def _more(chain: Chain) -> list[str]:
    return chain.given.split(", ")[2:]


def _head(rule: str, chain: Chain) -> list[str]:
    return ["", f"@{chain.how}", f"def {rule}({chain.given}):", f'    """{chain.text}"""', "    flow = sim.flows[f]"]


def _called(rule: str, name: str, function: Any, state: str, given: Mapping[str, str]) -> str:
    taken = inspect.signature(getattr(function, "py_func", function)).parameters
    arguments = ", ".join({"state": state, **given}.get(argument, argument) for argument in taken)
    return f"{field(name)}_{rule}({arguments})"


def _compiled(lines: list[str], engine: str, of: str, names: Mapping[str, Any]) -> dict[str, Any]:
    lines = [f'"""Generated from the registry of schemes by fluidcc.engines.{engine}.dispatch."""', "", *lines]
    text, file = "\n".join(lines), f"<fluidcc {engine} dispatch of {of}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {
        "kernel": jit.kernel,
        "inlined": jit.inlined,
        "inlined_by_llvm": jit.inlined_by_llvm,
        "__name__": f"fluidcc.engines.{engine}.dispatch",
        **names,
    }
    exec(compile(text, file, "exec"), space)  # our own text, made of checked names
    return space
