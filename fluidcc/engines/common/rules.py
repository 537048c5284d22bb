"""Rules of schemes in compiled engines: made of their laws, and dispatched by chains on the scheme's number.

Of a scheme's law a record is made, and rules, as text that calls it, for one flow's numbers. The chains are plain, so
that a compiled loop can be cached, and generated, as text, from the sides of the built-in schemes
(`fluidcc.contract.protocol`). Passing functions would be shorter, but would defeat the cache of machine code.

Schemes from outside have the numbers behind: their rules are compiled each by itself, and the loop calls them by
address. So the loop's machine code stays as it is, and a law that was edited is ready in a second or two instead of the
loop's half a minute. A flow of such a scheme has its state among the bytes of ``sim.outside``, where its ``row`` is the
first; ``sim.calls`` has the addresses of each scheme's rules, 0 where it has none.
"""

from __future__ import annotations

import dataclasses
import inspect
import linecache
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core import cgutils, types
from numba.core.errors import NumbaError
from numba.extending import intrinsic, overload

from fluidcc.contract import registry
from fluidcc.contract.law import in_world
from fluidcc.contract.models import Law, Scheme
from fluidcc.contract.signals import Progress
from fluidcc.engines.common import jit, scalars
from fluidcc.engines.common.jit import kernel
from fluidcc.errors import InputError
from fluidcc.scenario.parameters import specs

Rules = Mapping[str, Mapping[str, Callable[..., Any]]]  # by rule and table the function that follows it
_LINE = 64  # bytes of a line of cache
_intrinsic: Any = intrinsic  # which is called without its first argument
_functions: dict[int, Callable[..., Any]] = {}  # by address; they live as long as a loop may call them


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
    space: dict[str, Any] = {
        "kernel": jit.kernel,
        "inlined": jit.inlined,
        "inlined_by_llvm": jit.inlined_by_llvm,
        "__name__": f"fluidcc.engines.{engine}.dispatch",
        **names,
    }
    return _executed(lines, f"<fluidcc {engine} dispatch of {of}>", space)


def _executed(lines: Sequence[str], file: str, space: dict[str, Any]) -> dict[str, Any]:
    """Execute lines in a space of names; tracebacks and debuggers see their text."""
    text = "\n".join(lines) + "\n"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), space)  # our own text, made of checked names
    return space


def call(address: Any, sim: Any, f: Any, a: Any, b: Any, c: Any) -> Any:
    """Call a rule by its address."""
    function = _functions[address]
    return getattr(function, "py_func", function)(sim, f, a, b, c)


@_intrinsic
def _call(_: Any, address: Any, sim: Any, f: Any, a: Any, b: Any, c: Any) -> Any:
    numbers = (types.float64 if isinstance(each, types.Float) else types.int64 for each in (f, a, b, c))
    kinds = (sim, *numbers)  # Numba makes numbers of other kinds these

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        convention = context.call_conv
        pointer = builder.inttoptr(values[0], convention.get_function_type(types.int64, kinds).as_pointer())
        status, result = convention.call_function(builder, pointer, types.int64, kinds, values[1:])
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return result

    return types.int64(address, *kinds), codegen


@overload(call, strict=False, jit_options=jit.OPTIONS)
def _compiled_call(address: Any, sim: Any, f: Any, a: Any, b: Any, c: Any) -> Any:
    return lambda address, sim, f, a, b, c: _call(address, sim, f, a, b, c)


def reader(dtype: np.dtype[Any], step: int) -> Callable[[Any, Any], Any]:
    """Return a function that gives the record of a type that begins after so many steps [bytes] of a memory."""
    kind = numba.from_dtype(dtype)

    def state_at(memory: Any, row: Any) -> Any:
        return memory[row * step : row * step + dtype.itemsize].view(dtype).view(np.recarray)[0]

    @_intrinsic
    def cast(_: Any, memory: Any, first: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, values[0]).data
            return builder.bitcast(builder.gep(data, [values[1]]), context.get_value_type(kind))

        return kind(memory, first), codegen

    @overload(state_at, strict=False, jit_options=jit.OPTIONS)
    def _compiled(memory: Any, row: Any) -> Any:
        return lambda memory, row: cast(memory, row * step)

    return state_at


class Schemes:
    """The schemes of an engine's runs: those built in, and behind them a run's own from outside.

    Parameters
    ----------
    engine : str
    rules : mapping of Chain
        The engine's.
    given : mapping of str
        What a rule may name, as a chain has it.
    side_of : callable
        A scheme's side in the engine; None if it has none.
    by_rows : bool
        Whether a flow's ``row`` counts states, as in a run of one scheme, and not bytes.

    Attributes
    ----------
    tables : dict
        Sides of the built-in schemes that have a table of states, by name: all but those that add to another's rules.
    number : dict of int
        Of these.
    """

    def __init__(
        self,
        engine: str,
        rules: Mapping[str, Chain],
        given: Mapping[str, str],
        side_of: Callable[[Scheme], Any],
        *,
        by_rows: bool = False,
    ) -> None:
        self._engine, self._chains, self._given, self._side_of = engine, rules, given, side_of
        self._by_rows = by_rows
        sides = {name: side_of(registry.scheme(name)) for name in registry.built_in()}
        self._built_in = {name: side for name, side in sides.items() if side is not None}
        self.tables = {name: side for name, side in self._built_in.items() if self.home(name) == name}
        self.number = {name: number for number, name in enumerate(self.tables)}
        self._made: dict[Scheme, tuple[Any, dict[str, Any]]] = {}

    def home(self, name: str) -> str:
        """Return the name of the table in which a built-in scheme's flows are."""
        return getattr(self._built_in[name], "BASE", None) or name

    def chains(self) -> dict[str, Any]:
        """Compile the engine's chains: see `made`."""
        rules: dict[str, dict[str, Any]] = {rule: {} for rule in self._chains}
        for name, side in self._built_in.items():
            for rule in rules.keys() & side.rules.keys():
                rules[rule].setdefault(self.home(name), side.rules[rule])
        return made(self._engine, self._chains, self._given, rules, self.number, call)

    def side(self, name: str) -> Any:
        """Return the side of a scheme; None if it has none."""
        return self._built_in.get(name) if name in registry.built_in() else self._known(name)[0]

    def from_outside(self, names: Iterable[str]) -> list[str]:
        """Return which schemes of a run are from outside, in the order of their numbers."""
        return [name for name in dict.fromkeys(names) if name not in registry.built_in()]

    def numbers(self, names: Iterable[str]) -> dict[str, int]:
        """Return the numbers of a run's schemes."""
        behind = {name: len(self.number) + k for k, name in enumerate(self.from_outside(names))}
        return {name: behind[name] if name in behind else self.number[self.home(name)] for name in names}

    def _known(self, name: str) -> tuple[Any, dict[str, Any]]:
        scheme = registry.scheme(name)
        side = self._side_of(scheme)
        if scheme not in self._made or self._made[scheme][0] != side:  # the one to which it adds may be another by now
            functions = dict[str, Any]()
            if side is not None:
                state_at = reader(side.STATE, side.STATE.itemsize if self._by_rows else 1)
                functions = outside(self._engine, self._chains, self._given, name, side, state_at)
            self._made[scheme] = side, functions
        return self._made[scheme]

    def memory(self, counts: Mapping[str, int]) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        """Make the bytes for the states of so many flows of each scheme.

        Returns
        -------
        memory : array of bytes
        tables : dict of arrays of records
            The same bytes as each scheme's states.
        rows : dict of arrays of int
            The byte with which each state begins: its flow's ``row``.
        """
        states = {name: self.side(name).STATE for name in counts}
        sizes = [-(-counts[name] * state.itemsize // _LINE) * _LINE for name, state in states.items()]
        words = np.zeros((sum(sizes) + 2 * _LINE) // 8)
        memory = words.view(np.uint8)[-words.ctypes.data % _LINE :][: max(sum(sizes), _LINE)]
        tables, rows = dict[str, Any](), dict[str, Any]()
        for (name, state), first in zip(states.items(), np.cumsum([0, *sizes]).tolist(), strict=False):
            rows[name] = first + state.itemsize * np.arange(counts[name])
            tables[name] = memory[first:][: counts[name] * state.itemsize].view(state).view(np.recarray)
        return memory, tables, rows

    def calls(self, names: list[str], sim: Any) -> Any:
        """Compile the rules of schemes for the memory of a run, and return their addresses, (schemes, rules)."""
        found = np.zeros((max(len(names), 1), len(self._chains)), np.int64)
        for row, name in enumerate(names):
            functions = self._known(name)[1]
            for column, (rule, chain) in enumerate(self._chains.items()):
                if rule not in functions:
                    continue
                try:
                    found[row, column] = _address(functions[rule], sim, chain)
                except NumbaError as error:
                    raise InputError(f"scheme {name}: {_not_compiled(str(error))}") from error
        return found


def _address(function: Any, sim: Any, chain: Chain) -> int:
    if jit.config.DISABLE_JIT:
        address = id(function)
    else:
        kinds = (numba.typeof(sim), types.int64, *(numba.typeof(zero) for zero in zeros(chain)))
        function.compile(kinds)
        made = function.overloads[kinds]
        address = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
    _functions[address] = function
    return address


def _not_compiled(error: str) -> str:
    """Tell by Numba's message what cannot be compiled, in which line of a user's file."""
    said = next((line for line in error.splitlines() if line.strip() and not line.startswith("Failed in")), "")
    where = re.search(r'File "(?!<)(.+?)", line (\d+)', error)
    at = f"{Path(where[1]).name}, line {where[2]}" if where else "a rule"
    if "<class 'function'>" in said:
        said += "; a law may call functions of its own package, other rules those with @kernel above them"
    return f"{at} cannot be compiled: {said}"


def constants(parameters: Any, switches: Sequence[str] = ()) -> list[tuple[str, Any]]:
    """Fields of a record for a parameters class: its numbers, what is true or false, and ``switches``, its properties.

    Units are SI, under the parameters' names, so that a law's formulas take the record for the parameters.
    """
    found: list[tuple[str, Any]] = [(name, np.bool_) for name in switches]
    known = specs(parameters)
    for field in dataclasses.fields(parameters):
        spec = known.get(field.name)
        if spec is None or not spec.static:
            found.append((field.name, np.float64))
        elif set(spec.choices) <= {True, False}:
            found.append((field.name, np.bool_))
    return found


def record(parameters: Any, law: Law, more: Sequence[Any] = ()) -> np.dtype[Any]:
    """Return the record of a flow: its parameters' numbers and switches, its state ``now``, and ``more`` fields."""
    state = np.dtype([(name, np.float64) for name in law.State._fields], align=True)
    given = np.dtype(constants(parameters, law.SWITCHES), align=True)
    return np.dtype([("parameters", given), ("now", state), *more], align=True)


def copy(parameters: Any, record: Any, given: Sequence[tuple[str, Any]] | None = None) -> None:
    """Copy bound parameters into a record, or those of its ``given`` fields; NaN is what is None."""
    names = (record.dtype.names or ()) if given is None else [name for name, _ in given]
    for name in names:
        value = getattr(parameters, name)
        setattr(record, name, np.nan if value is None else value)


def stored(law: Law, new: str) -> list[str]:
    """Lines of a rule that write a ``new`` state."""
    return [
        *(f"    state.now.{field} = {new}.{field}" for field in law.State._fields),
        f"    flow.rate = rate({new})",
        *([] if law.window is None else [f"    flow.window = window(state.parameters, {new})"]),
    ]


def rule(lines: Sequence[str], law: Law, where: str, **names: Any) -> Callable[..., None]:
    """Compile a rule from its text, which calls the law's functions; tracebacks and debuggers see the text."""
    text = "\n".join(lines)
    functions = {"start": law.start, "step": law.on_step, "rate": law.rate, "window": law.window, "on_hop": law.on_hop}
    used = {key: each for key, each in functions.items() if each is not None and key in text}
    space: dict[str, Any] = {key: in_world(each, scalars, kernel) for key, each in used.items()}
    space |= {"Progress": Progress, "__name__": __name__, **names}
    _executed(lines, f"<fluidcc {where}>", space)
    return kernel(space[lines[0].removeprefix("def ").partition("(")[0]])
