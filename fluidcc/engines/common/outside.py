"""Schemes from outside in a compiled engine: their rules are compiled apart, and the loop calls them by address.

So the loop's machine code stays as it is, and a law that was edited is ready in a second or two instead of the loop's
half a minute. A flow of such a scheme has its state among the bytes of ``sim.outside``, where its ``row`` is the first;
``sim.calls`` has the addresses of each scheme's rules, 0 where it has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.core.errors import NumbaError
from numba.extending import intrinsic, overload

from fluidcc.contract import registry
from fluidcc.contract.models import Scheme
from fluidcc.engines.common import chains, jit
from fluidcc.engines.common.chains import Chain
from fluidcc.errors import InputError

_LINE = 64  # bytes of a line of cache
_intrinsic: Any = intrinsic  # which is called without its first argument
_functions: dict[int, Callable[..., Any]] = {}  # by address; they live as long as a loop may call them


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
        """Compile the engine's chains: see `fluidcc.engines.common.chains.made`."""
        rules: dict[str, dict[str, Any]] = {rule: {} for rule in self._chains}
        for name, side in self._built_in.items():
            for rule in rules.keys() & side.rules.keys():
                rules[rule].setdefault(self.home(name), side.rules[rule])
        return chains.made(self._engine, self._chains, self._given, rules, self.number, call)

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
                functions = chains.outside(self._engine, self._chains, self._given, name, side, state_at)
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
        kinds = (numba.typeof(sim), types.int64, *(numba.typeof(zero) for zero in chains.zeros(chain)))
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
