"""A scheme's sides as engines and theory use them: checked against the contract, with what was left out filled in."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fluidcc.contract import checks, protocol
from fluidcc.contract.protocol import Observables
from fluidcc.errors import InputError

if TYPE_CHECKING:
    from fluidcc.contract.tolerance import Tolerance

# The compiled engines' rules, and what each may name in addition to what all may.
PACKET_RULES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "begin": (),
        "on_ack": ("ack",),
        "on_packet": ("packet", "flows"),
        "on_answer": ("packet",),
        "on_cnp": ("cnp",),
        "on_timer": ("which",),
        "on_sent": ("size",),
        "on_loss": ("size", "why", "when"),
        "observe": ("samples", "row"),
    }
)
HYBRID_RULES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"begin": (), "on_cnp": (), "on_timer": (), "on_bytes": (), "observe": ("samples", "row")}
)
RULES = {"packet": PACKET_RULES, "hybrid": HYBRID_RULES}
COMMON = {
    "packet": ("sim", "core", "ports", "uniforms", "flow", "state", "f"),
    "hybrid": ("flow", "state", "f", "now"),
}


@dataclasses.dataclass(frozen=True)
class Law:
    """A law; see `fluidcc.contract.protocol.LawSide`. Without a window it is of rates."""

    State: type[Any]
    start: Callable[..., Any]
    on_step: Callable[..., Any]
    rate: Callable[..., Any]
    window: Callable[..., Any] | None = None
    largest_window: Callable[..., Any] | None = None
    on_hop: Callable[..., Any] | None = None
    OBSERVABLES: Observables = dataclasses.field(default_factory=dict)
    SWITCHES: tuple[str, ...] = ()
    NEEDS: frozenset[str] = frozenset()
    ONLY: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Fluid:
    """A fluid side; see `fluidcc.contract.protocol.FluidSide`. What is None it does not have."""

    start: Callable[..., Any]
    rate: Callable[..., Any]
    feedback: Callable[..., Any]
    derivative: Callable[..., Any]
    observables: Callable[..., dict[str, Any]]
    time_scale: Callable[..., Any]
    OBSERVABLES: Observables
    NEEDS: frozenset[str] = frozenset()
    ONLY: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    project: Callable[..., Any] = lambda parameters, state, line_rate: state  # no limits
    interval: Callable[..., Any] | None = None
    longest_interval: Callable[..., Any] | None = None
    jump: Callable[..., Any] | None = None
    window: Callable[..., Any] | None = None
    largest_window: Callable[..., Any] | None = None
    sending: Callable[..., Any] | None = None


@dataclasses.dataclass(frozen=True)
class Packet:
    """A packet side; see `fluidcc.contract.protocol.PacketSide`. ``rules`` are those that it has itself."""

    STATE: Any
    OBSERVABLES: Observables
    init_state: Callable[..., None]
    BASE: str | None = None
    ONLY: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    shown: Callable[[Any], int] | None = None
    rules: Mapping[str, Callable[..., Any]] = dataclasses.field(default_factory=dict)

    def columns(self, parameters: Any) -> int:
        """Count the observables that a flow shows."""
        return len(self.OBSERVABLES) if self.shown is None else self.shown(parameters)


@dataclasses.dataclass(frozen=True)
class Hybrid:
    """A hybrid side; see `fluidcc.contract.protocol.HybridSide`. ``rules`` are those that it has."""

    STATE: Any
    OBSERVABLES: Observables
    init_state: Callable[..., None]
    ONLY: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    PACED_BY: tuple[str, ...] = ()
    rules: Mapping[str, Callable[..., Any]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Equilibrium:
    """An equilibrium side; see `fluidcc.contract.protocol.EquilibriumSide`. What is None it does not have."""

    MOVES: tuple[str, ...]
    smooth: Callable[[Any], bool]
    late: Callable[[Any], Any] = lambda state: state
    SMOOTH_INSTEAD: str = ""
    solve_equilibrium: Callable[..., protocol.FixedPoint] | None = None
    marking_at: Callable[..., Any] | None = None
    fixed_point: Callable[..., protocol.FixedPoint] | None = None
    least_rate: Callable[..., float] | None = None
    largest_rate: Callable[..., float] = lambda parameters, line_rate: line_rate
    single_marking: Callable[[Any], bool] = lambda parameters: True
    noise: Callable[..., protocol.Noise] | None = None
    balances: Callable[..., Any] | None = None
    observables: Callable[..., dict[str, float]] | None = None
    multipliers: Callable[..., protocol.Multipliers] | None = None


@dataclasses.dataclass(frozen=True)
class Crosscheck:
    """A crosscheck side; see `fluidcc.contract.protocol.CrosscheckSide`. Without one nothing is claimed."""

    UNTIL: str = "200ms"
    tolerances: Callable[..., dict[str, Tolerance]] = lambda scenario: {}


_FLUID_FIELDS = tuple(field.name for field in dataclasses.fields(Fluid))
_fluids: dict[str, tuple[Any, tuple[Any, ...], Fluid]] = {}  # by scheme: its module, what was in it, and the side


# Parts that a given part requires, checked in advance so that none is found missing in the middle of a run.
_TOGETHER = {
    "window": ("jump", "largest_window"),
    "largest_window": ("window",),
    "sending": ("jump",),
    "interval": ("longest_interval",),
    "marking_at": ("solve_equilibrium", "fixed_point", "least_rate"),
    "balances": ("observables",),
}
_NEEDED = {"inflight": "jump", "delay": "interval"}


@dataclasses.dataclass(frozen=True, eq=False)
class Scheme:
    """A scheme that is known by its name; sides are imported when first asked for, and None if there are none.

    Parameters
    ----------
    Parameters : type
        Its parameters' class.
    PRESETS : mapping
    package : str
        Where its sides are.
    """

    Parameters: Any
    PRESETS: Mapping[str, Any]
    package: str

    @property
    def name(self) -> str:
        """Name of the scheme, as on the command line."""
        return self.Parameters.name

    @property
    def fluid(self) -> Fluid | None:
        """Fluid side of the scheme, from the module as it is now: a function that is replaced there takes effect."""
        module = self.module("fluid")
        if module is None:
            return None
        now = tuple(getattr(module, name, None) for name in _FLUID_FIELDS)
        if self.name not in _fluids or _fluids[self.name][0] is not module or _fluids[self.name][1] != now:
            _fluids[self.name] = module, now, self._checked_fluid(module)
        return _fluids[self.name][2]

    def _checked_fluid(self, module: Any) -> Fluid:
        found = self._made(Fluid, module, "fluid")
        for need, rule in _NEEDED.items():
            if need in found.NEEDS and getattr(found, rule) is None:
                raise self._lacks("fluid", rule, f', or leave "{need}" out of NEEDS')
        return found

    @cached_property
    def law(self) -> Law | None:
        """Law of the scheme, or None."""
        module = self.module("law")
        if module is None:
            return None
        found = self._made(Law, module, "law")
        if not hasattr(found.State, "_fields"):
            raise self._refused("law", "State is no NamedTuple; write class State(NamedTuple) and rate: Any in it")
        if not inspect.ismodule(getattr(module, "xp", None)):
            raise self._refused("law", "has no xp; write import numpy as xp, and xp.where in place of if")
        if ("telemetry" in found.NEEDS) != (found.on_hop is not None):
            asked = f'NEEDS has "telemetry"; write {checks.written("law", "on_hop")}'
            raise self._refused(
                "law", 'it has on_hop; write NEEDS = frozenset({"telemetry"})' if found.on_hop else asked
            )
        by_slope = found.window is None and not self.has("fluid")
        if by_slope and "delay" in found.NEEDS:
            raise self._refused("law", "NEEDS has 'delay', which a law's slope is not given; write window, or fluid.py")
        for name, known in (("OBSERVABLES", found.State), ("SWITCHES", self.Parameters)):
            alien = [each for each in getattr(found, name) if not hasattr(known, each)]
            if alien:
                more = f"write a property {alien[0]} of parameters"
                more = f"its State has {', '.join(found.State._fields)}" if known is found.State else more
                raise self._refused("law", f"{name} has {alien[0]!r}; {more}")
        if slip := checks.slip(module, self.Parameters, by_slope):
            raise self._refused("law", slip)
        return found

    @cached_property
    def packet(self) -> Packet | None:
        """Packet side of the scheme, or None."""
        module = self.module("packet")
        if module is None:
            return None
        return dataclasses.replace(self._made(Packet, module, "packet"), rules=self._rules(module, "packet"))

    @cached_property
    def hybrid(self) -> Hybrid | None:
        """Hybrid side of the scheme, or None."""
        module = self.module("hybrid")
        if module is None:
            return None
        return dataclasses.replace(self._made(Hybrid, module, "hybrid"), rules=self._rules(module, "hybrid"))

    @cached_property
    def equilibrium(self) -> Equilibrium | None:
        """Equilibrium side of the scheme, or None."""
        module = self.module("equilibrium")
        if module is None:
            return None
        found = self._made(Equilibrium, module, "equilibrium")
        start = None if self.fluid is None else getattr(self.module("fluid"), "start", None)
        state = typing.get_type_hints(start).get("return") if start is not None else None
        alien = [name for name in found.MOVES if name not in getattr(state, "_fields", found.MOVES)]
        if alien:
            fields = ", ".join(getattr(state, "_fields", ()))
            where = self.file("fluid")
            raise self._refused("equilibrium", f"MOVES has {alien[0]!r}; the state of {where} has {fields}")
        return found

    @cached_property
    def crosscheck(self) -> Crosscheck:
        """Crosscheck side of the scheme, or the default."""
        module = self.module("crosscheck")
        return Crosscheck() if module is None else self._made(Crosscheck, module, "crosscheck")

    def was_reloaded(self) -> bool:
        """Check whether the module of a side that was looked at has been loaded again since."""
        for side, function in (("law", "on_step"), ("packet", "init_state"), ("hybrid", "init_state")):
            found, module = vars(self).get(side), sys.modules.get(f"{self.package}.{side}")
            if found is not None and getattr(found, function) is not getattr(module, function, None):
                return True
        return False

    def has(self, side: str) -> bool:
        """Check whether a side has a file; it is not imported."""
        try:
            return importlib.util.find_spec(f"{self.package}.{side}") is not None
        except ModuleNotFoundError:  # it is a module, not a package
            return False

    def file(self, side: str) -> str:
        """Return the path of a side's file, present or not, for messages to users."""
        return f"{self.package.rpartition('.')[2]}/{side}.py"

    def module(self, side: str) -> Any:
        """Module of a side; None if there is none. Without a fluid side, the one that is made of the law.

        Where that is of a law of rates, the equilibrium side is too.
        """
        path = f"{self.package}.{side}"
        try:
            return importlib.import_module(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
        if side not in ("fluid", "equilibrium") or self.law is None:
            return None
        from fluidcc.contract.fluid_of_law import equilibrium_of, fluid_of

        law = self.module("law")
        made = fluid_of(law, law.on_step)
        if side == "fluid":
            return made
        return equilibrium_of(law) if self.law.window is None and self.module("fluid") is made else None

    def _made(self, cls: Any, module: Any, side: str) -> Any:
        given = {}
        fields = [field for field in dataclasses.fields(cls) if field.name != "rules"]
        names = [field.name for field in fields] + list(RULES.get(side, ()))
        # A scheme that adds to another's rules may leave it to that one to write what both show.
        shown = side not in RULES or hasattr(module, "observe") or getattr(module, "BASE", None) is not None
        problem = checks.problem(side, module, names, shown)
        for field in fields:
            if hasattr(module, field.name):
                given[field.name] = getattr(module, field.name)
            elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                raise self._lacks(side, field.name)
        if problem:
            raise self._refused(side, problem)
        for name, others in _TOGETHER.items():
            missing = [other for other in others if name in given and other in names and other not in given]
            if missing:
                raise self._lacks(side, missing[0], f", which goes with {name}")
        for constant in ("ONLY", "PACED_BY"):
            alien = sorted(set(given.get(constant, ())) - {each.name for each in dataclasses.fields(self.Parameters)})
            if alien:
                raise self._refused(
                    side, f"{constant} has {alien[0]!r}, which is no parameter; `fluidcc show` lists them"
                )
        return cls(**given)

    def _lacks(self, side: str, name: str, more: str = "") -> InputError:
        return self._refused(side, f"has no {name}; write {checks.written(side, name)} there{more}")

    def _refused(self, side: str, problem: str) -> InputError:
        between = " " if problem.startswith("has ") else ": "
        return InputError(f"scheme {self.name}: {self.file(side)}{between}{problem} (CONTRIBUTING.md)")

    def _rules(self, module: Any, side: str) -> dict[str, Any]:
        return {name: self._rule(getattr(module, name), name, side) for name in RULES[side] if hasattr(module, name)}

    def _rule(self, rule: Any, name: str, side: str) -> Any:
        """A rule of a compiled engine, if it is compiled and names what there is."""
        from numba.core import config

        known = (*COMMON[side], *RULES[side][name])
        where = self.file(side)
        if not hasattr(rule, "py_func") and not config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue]
            raise InputError(f"scheme {self.name}: {where}: {name} is not compiled; write @kernel above it")
        for parameter in inspect.signature(getattr(rule, "py_func", rule)).parameters:
            if parameter not in known:
                raise InputError(
                    f"scheme {self.name}: {where}: {name} takes {parameter!r}, which there is not; "
                    f"it may name {', '.join(known)}"
                )
        return rule
