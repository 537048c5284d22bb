"""Equations of a scheme on symbols: what the engine's code gives on SymPy in place of `jax.numpy`.

A law has branches (``where``, ``minimum``), which symbols alone cannot take. So each symbol has a number, that of a
scenario's equilibrium, and a branch is the one that these numbers take; what was decided is kept in ``assumed``.
"""

from __future__ import annotations

import builtins
import copy
import dataclasses
import math
import numbers
import sys
from collections.abc import Mapping
from functools import cached_property
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import sympy

from fluidcc.contract.models import Scheme
from fluidcc.contract.signals import Progress
from fluidcc.engines.fluid import stable_math
from fluidcc.engines.fluid.marking import red
from fluidcc.engines.fluid.network import lags_of
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario
from fluidcc.theory.control.fixed_point import key_of

_COPIED = ("fluidcc.schemes.", "fluidcc.engines.fluid.")
_SHORT = 1e-12  # s: the time that decides branches of a slope


def _decay(y: Any) -> Any:
    """Return exp(-y), as a power of 1 - p where y is a multiple of its logarithm."""
    for log in sympy.sympify(y).atoms(sympy.log):
        times = sympy.cancel(-y / log)
        if not times.has(sympy.log):
            return log.args[0] ** times
    return sympy.exp(-y)


# What `stable_math` computes without loss of digits, as it defines it.
_EXACT = {
    "hazard": lambda p: (-sympy.log(1 - p), p / -sympy.log(1 - p)),
    "decay": _decay,
    "saturation": lambda y: 1 - _decay(y),
    "bernoulli": lambda y: y / (_decay(-y) - 1),
}


class World:
    """Symbols of N equal flows on one link, with their numbers.

    Parameters
    ----------
    scenario : Scenario
        Resolved: one link, equal flows.
    scheme : object
        The flows' parameters, filled in (`fluidcc.contract.bind`).

    Attributes
    ----------
    flows, capacity, packet : sympy.Symbol
        N; C [bytes/s]; a packet on the wire [bytes].
    parameters : object
        ``scheme`` with a symbol for each of its numbers.
    values : dict
        Numbers by symbol.
    assumed : list
        Relations that hold in these numbers and decided a branch.
    """

    def __init__(self, scenario: Scenario, scheme: Any) -> None:
        self.values: dict[sympy.Symbol, float] = {}
        self.assumed: list[Any] = []
        link, flow = scenario.links[0], scenario.flows[0]
        self.flows = self.symbol("N", len(scenario.flows))
        self.capacity = self.symbol("C", float(link.rate))
        self.packet = self.symbol("S", float(scenario.wire_packet_of(flow)))
        self._marking = link.marking
        self._spaces: dict[str, SimpleNamespace] = {}
        self.parameters = self._symbols_of(scheme)

    def symbol(self, name: str, value: float) -> Any:
        """Make a symbol, positive unless its number is 0, and give it that."""
        made = sympy.Symbol(name, positive=True) if value > 0 else sympy.Symbol(name, real=True)
        if name in {each.name for each in self.values}:
            raise ValueError(f"{name}: there is such a symbol")
        self.values[made] = float(value)
        return made

    def _symbols_of(self, scheme: Any) -> Any:
        """Return parameters with symbols, by their papers' names where these are no other's, for numbers above 0."""
        made = copy.copy(scheme)
        for field in dataclasses.fields(scheme):
            value, spec = getattr(scheme, field.name), field.metadata.get("spec")
            if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) < math.inf:
                continue
            name = spec.symbol if spec is not None and spec.symbol and not {*"/0123456789"} & {*spec.symbol} else ""
            if not name or name in {each.name for each in self.values}:
                name = field.name
            object.__setattr__(made, field.name, self.symbol(name, float(value)))
        return made

    def marking(self, queue: Any) -> Any:
        """RED's probability at a queue, by the engine's own rule."""
        if self._marking is None:
            return sympy.Integer(0)
        ends = [
            self.symbol(name, float(value))
            for name, value in (
                ("K_min", self._marking.kmin),
                ("K_max", self._marking.kmax),
                ("P_max", self._marking.pmax),
            )
        ]
        return self.law(sys.modules[red.__module__]).red(queue, *ends)

    def law(self, module: ModuleType) -> Any:
        """Return the functions of a module of the engine or of a scheme, on symbols."""
        space = self._spaces.get(module.__name__)
        if space is None:
            space = self._spaces[module.__name__] = SimpleNamespace(__builtins__=builtins)
            for name, value in list(vars(module).items()):
                vars(space)[name] = self._on_symbols(name, value, module, vars(space))
        return space

    def _on_symbols(self, name: str, value: Any, module: ModuleType, names: dict[str, Any]) -> Any:
        if value is jnp or (name == "xp" and isinstance(value, ModuleType)):
            return self
        own = (*_COPIED, f"{module.__name__.rpartition('.')[0]}.")  # a scheme may be of another package
        if isinstance(value, ModuleType):
            return self.law(value) if value.__name__.startswith(own) else value
        if isinstance(value, jax.custom_jvp) or getattr(value, "__module__", "") == stable_math.__name__:
            return _EXACT.get(name, value)
        if not isinstance(value, FunctionType):
            return value
        home = value.__globals__["__name__"]
        if not home.startswith((*own, "fluidcc.contract.")):
            return value
        around = names if home == module.__name__ else vars(self.law(sys.modules[home]))
        made = FunctionType(value.__code__, around, value.__name__, value.__defaults__, value.__closure__)
        made.__kwdefaults__ = value.__kwdefaults__
        return made

    # -- the vocabulary of `jax.numpy` that laws use ---------------------------------------------------------------

    inf, nan = sympy.oo, sympy.nan

    def number(self, expression: Any) -> float:
        """Put numbers in place of symbols."""
        return float(sympy.sympify(expression).evalf(subs=self.values))

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        """Take the branch that the numbers take."""
        return yes if self._holds(condition) else no

    def minimum(self, a: Any, b: Any) -> Any:
        """Take the less of two, by their numbers."""
        return a if self._holds(sympy.sympify(a) <= sympy.sympify(b)) else b

    def maximum(self, a: Any, b: Any) -> Any:
        """Take the larger of two, by their numbers."""
        return a if self._holds(sympy.sympify(a) >= sympy.sympify(b)) else b

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        """Take the value within bounds, by their numbers."""
        return self.minimum(self.maximum(x, low), high)

    exp, log, sqrt = map(staticmethod, (sympy.exp, sympy.log, sympy.sqrt))

    def abs(self, x: Any) -> Any:
        """Take a number's sign away, by the sign that it has."""
        return self.maximum(x, -x)

    @staticmethod
    def logical_not(condition: Any) -> Any:
        """Return whether a condition does not hold."""
        return sympy.Not(condition)

    def _holds(self, condition: Any) -> bool:
        condition = sympy.sympify(condition)
        relations = condition.atoms(sympy.core.relational.Relational)
        known = {each: self._relation(each) for each in relations}
        return bool(condition.subs(known)) if known else bool(condition)

    def _relation(self, relation: Any) -> Any:
        holds = bool(relation.func(sympy.Float(self.number(relation.lhs)), sympy.Float(self.number(relation.rhs))))
        told = relation if holds else sympy.Not(relation)
        if told not in self.assumed:
            self.assumed.append(told)
        return sympy.true if holds else sympy.false

    @staticmethod
    def broadcast_to(x: Any, shape: Any) -> Any:
        """Return x: there are no arrays."""
        return x

    @staticmethod
    def shape(x: Any) -> tuple[int, ...]:
        """Return the shape of a number."""
        return ()

    @staticmethod
    def zeros_like(x: Any) -> Any:
        """Return 0, or false."""
        return sympy.false if isinstance(x, sympy.logic.boolalg.Boolean) else sympy.Integer(0)

    @staticmethod
    def isinf(x: Any) -> Any:
        """Check whether x is infinite."""
        return sympy.sympify(x) == sympy.oo

    @staticmethod
    def max(x: Any, axis: int = 0, keepdims: bool = False) -> Any:
        """Return the one of one."""
        return x

    min = sum = max


def put(expression: Any, values: Mapping[Any, Any]) -> Any:
    """Write an expression with whole numbers and fractions in place of decimals, and some symbols replaced."""
    return sympy.nsimplify(sympy.sympify(expression).subs(dict(values)), rational=True)


class System(World):
    """A `World` in which a scheme writes its equations down.

    Attributes
    ----------
    states, algebraics : list of sympy.Symbol
        What moves, or is mapped from one round trip to the next; and what follows from the states at once.
    right : dict
        The right-hand side of each: its slope, its image, or its value.
    late : dict
        By symbol of a late value: whose it is, and by how much it is late.
    shared : set
        The unknowns that all flows have in common.
    mapped, smooth : bool
        Whether states are mapped; whether the right-hand sides have slopes.
    """

    def __init__(self, scenario: Any, scheme: Any) -> None:
        super().__init__(scenario, scheme)
        self.scenario = scenario
        self.states: list[sympy.Symbol] = []
        self.algebraics: list[sympy.Symbol] = []
        self.right: dict[sympy.Symbol, Any] = {}
        self.late: dict[sympy.Symbol, tuple[sympy.Symbol, Any]] = {}
        self.shared: set[sympy.Symbol] = set()
        self.mapped, self.smooth = False, True

    @cached_property
    def rest(self) -> dict[str, Any]:
        """Numbers of the equilibrium, as the engine finds it; those of flows are the first one's, as all are equal."""
        from fluidcc.theory.control.equilibrium import equilibrium

        found = equilibrium(self.scenario).as_dict()
        return found | {name: value for name, value in found["flows"][0].items() if name in found}

    @cached_property
    def delays(self) -> list[float]:
        """Delays there, from the shortest on [s]."""
        from fluidcc.theory.control.linearize import linearize

        return [float(tau) for tau in linearize(self.scenario).system.tau]

    def state(self, name: str, value: float, *, shared: bool = False) -> Any:
        """Name a state of a flow, or of a link that flows share, with its number at equilibrium."""
        made = self.symbol(name, value)
        self.states.append(made)
        self.shared |= {made} if shared else set()
        return made

    def algebraic(self, name: str, value: float) -> Any:
        """Name what follows from the states at once, of a link."""
        made = self.symbol(name, value)
        self.algebraics.append(made)
        self.shared.add(made)
        return made

    def lagged(self, of: sympy.Symbol, delay: Any) -> Any:
        """Name a value as it was some time ago."""
        made = self.symbol(f"{of.name}({delay})", self.values[of])
        self.late[made] = of, delay
        return made

    def moves(self, slopes: Mapping[sympy.Symbol, Any]) -> None:
        """Take slopes of states."""
        self.right |= slopes

    def maps(self, images: Mapping[sympy.Symbol, Any]) -> None:
        """Take images of states after a round trip."""
        self.right |= images
        self.mapped = True

    def holds(self, values: Mapping[sympy.Symbol, Any]) -> None:
        """Take values of what follows at once."""
        self.right |= values

    def keeps(self, name: sympy.Symbol, at: sympy.Symbol, what: sympy.Symbol) -> None:
        """Let ``name`` be whatever keeps another one where it is, as a step of marking does: nothing has a slope."""
        self.right[name] = name + what - at
        self.smooth = False


def has_slope(scheme: Scheme) -> bool:
    """Check whether a scheme's fluid is made of a law of rates, which observes marks alone."""
    return scheme.law is not None and scheme.law.window is None and not scheme.law.NEEDS and scheme.law.on_hop is None


def write_law(one: System, scheme: Scheme) -> None:
    """Write the equations of a law of rates: its slope, as the fluid follows it, a link's queue, and its marking.

    Raises
    ------
    InputError
        Where marking does not hold the flows, or the law does not show a part of its state.
    """
    found, p, module = one.rest, one.parameters, scheme.module("law")
    if not found["exists"]:
        raise InputError(
            "symbolic: marking: it has no equilibrium with these flows; write fewer flows, a larger pmax, or kmax "
            "above kmin"
        )
    keys = {name: key_of(module.OBSERVABLES[name][0], name) for name in getattr(module, "OBSERVABLES", {})}
    keys = {"rate": "rate_bytes_per_s"} | keys
    hidden = [name for name in module.State._fields if keys.get(name) not in found]
    if hidden:
        raise InputError(f"symbolic: {scheme.name}: its law does not show {hidden[0]}; add it to OBSERVABLES of law.py")
    law, time = one.law(module), one.symbol("t", _SHORT)
    named = {name: one.state("R" if name == "rate" else name, found[keys[name]]) for name in module.State._fields}
    state = module.State(**named)
    queue, marking = one.state("q", found["queue_bytes"], shared=True), one.algebraic("p", found["marking_probability"])
    lags = lags_of(one.scenario, one.scenario.flows[0])
    wait = 0.0 if lags.fixed else found["queue_bytes"] / float(one.scenario.links[0].rate)
    # From the queue to the sender and, where that is not in it, from the sender to the queue.
    tau, line = one.symbol("tau", lags.marking[0] + wait), one.symbol("line", float(one.scenario.flows[0].line_rate))
    way = one.symbol("tau_f", lags.arrival[0]) if lags.arrival[0] > 0 else sympy.Integer(0)
    sent, late = one.lagged(state.rate, tau + way) * time, one.lagged(marking, tau)
    arriving = one.lagged(state.rate, way) if way != 0 else state.rate
    none: Any = sympy.Integer(0)
    progress = Progress(sent, sent, sent, one.packet, one.packet, line, none, p.base_rtt, time)
    after = law.on_step(p, state, progress, late)
    one.moves({own: sympy.diff(new, time).subs(time, 0) for own, new in zip(state, after, strict=True)})
    one.moves({queue: one.flows * law.rate(state._replace(rate=arriving)) - one.capacity})
    one.holds({marking: one.marking(queue)})
    one.assumed[:] = [each.subs(time, 0) for each in one.assumed]
