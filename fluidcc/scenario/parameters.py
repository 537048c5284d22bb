"""Declaring a parameter once: its dimension, symbol, source and range, for conversion, checks and `show`.

Parameter sets are frozen dataclasses whose fields are made by `parameter` and which `register` turns into
JAX pytrees, so that every number in them can be swept, traced or differentiated.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import math
import numbers
import operator
import sys
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar

from fluidcc import units
from fluidcc.errors import InputError
from fluidcc.surface import constructor

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Spec:
    """Declaration of one parameter, without its value.

    ``none_word`` is what to write for None where that has a meaning of its own (``"path"``, ``"line"``).
    ``check(value, name)`` reads a value that is no number and returns it as text.
    """

    dimension: str
    doc: str
    symbol: str = ""
    source: str = ""
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    none_word: str = ""
    unlimited: bool = False
    integer: bool = False
    choices: tuple[Any, ...] = ()
    check: Callable[[Any, str], str] | None = None

    @property
    def static(self) -> bool:
        """Check whether the parameter is a switch that selects equations, rather than a number in them."""
        return bool(self.choices) or self.check is not None


def parameter(dimension: str, doc: str, *, default: Any = dataclasses.MISSING, **spec: Any) -> Any:
    """Make a dataclass field with a `Spec`; without a default it is required.

    Raises
    ------
    InputError
        If a number's dimension is none of those in `fluidcc.units`.
    """
    made = Spec(dimension, doc, **spec)
    if not made.static and dimension not in units.DIMENSIONS:
        known = ", ".join(f"{name} ({unit})" for unit, name in units.DIMENSIONS.items())
        raise InputError(f"parameter: {str(dimension)[:40]!r} is no dimension; write one of fluidcc.units: {known}")
    return dataclasses.field(default=default, metadata={"spec": made})


def bound(doc: str) -> Any:
    """Make a field that a scheme's ``bind`` fills in; nobody types it, and ``doc`` says what it is, with its unit."""
    return dataclasses.field(default=None, repr=False, metadata={"bound": doc})


def specs(cls: Any) -> Mapping[str, Spec]:
    """Return the specifications of a parameter set's fields, by name; a class's own before those it inherits."""
    return _specs(cls if isinstance(cls, type) else type(cls))


@cache
def _specs(cls: type) -> Mapping[str, Spec]:
    found = {f.name: f.metadata["spec"] for f in dataclasses.fields(cls) if "spec" in f.metadata}  # type: ignore[arg-type]
    lines = [inspect.get_annotations(base) for base in cls.__mro__]
    nearest = {name: next(i for i, line in enumerate(lines) if name in line) for name in found}
    return MappingProxyType({name: found[name] for name in sorted(found, key=nearest.__getitem__)})


@typing.overload
@typing.dataclass_transform(frozen_default=True, field_specifiers=(parameter,))
def register(cls: type[T], /) -> type[T]: ...
@typing.overload
@typing.dataclass_transform(frozen_default=True, field_specifiers=(parameter,))
def register(
    *, meta: tuple[str, ...] = (), check: Callable[[Any], None] | None = None
) -> Callable[[type[T]], type[T]]: ...
def register(
    cls: type[T] | None = None, /, *, meta: tuple[str, ...] = (), check: Callable[[Any], None] | None = None
) -> Any:
    """Class decorator: frozen dataclass, registered as a pytree; ``meta`` and switches stay out of it.

    Its constructor refuses unknown keywords, rates and long times without a unit and what ``check`` raises, and
    converts nothing. JAX makes objects without calling it, so that a run's inner loop does not meet these checks.
    """

    def decorate(cls: type[T]) -> type[T]:
        cls = dataclasses.dataclass(frozen=True)(cls)
        names = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
        static = {name for name, spec in specs(cls).items() if spec.static} | set(meta)
        units_given = _have_units(cls)

        def checks(made: Any) -> None:
            units_given(made)
            if check is not None:
                check(made)

        cls = constructor(checks)(cls)
        register_pytree(cls, tuple(n for n in names if n not in static), tuple(n for n in names if n in static))
        return cls

    return decorate if cls is None else decorate(cls)  # without parentheses it is given the class


def _have_units(cls: type) -> Callable[[Any], None]:
    """Build a constructor's check of rates and times, those within text or lists (``Spec.check``) too."""
    rates, times = ([n for n, spec in specs(cls).items() if spec.dimension == d] for d in (units.RATE, units.TIME))
    read = [(name, spec) for name, spec in specs(cls).items() if spec.check is not None]

    def check(made: Any) -> None:
        for name in rates:
            units.refuse_bare_rate(getattr(made, name), f"{cls.__name__} {name}")
        for name in times:
            units.refuse_bare_time(getattr(made, name), f"{cls.__name__} {name}")
        for name, spec in read:
            convert(getattr(made, name), spec, f"{cls.__name__} {name}")

    return check


_HASHED = frozenset({float, int, str, type(None), units.Rate, units.Seconds})
_MOST_KNOWN = 4096  # conversions kept; of starts and sizes there may be a million


def convert(value: Any, spec: Spec, name: str) -> Any:
    """Bring one value to SI and check its range if it is a plain number.

    Raises
    ------
    InputError
        If it cannot be read, or lies outside the parameter's range.
    """
    if spec.none_word and (value is None or (isinstance(value, str) and value == spec.none_word)):
        return None
    if spec.choices:
        return _choice(value, spec, name)
    if spec.check is not None:
        return spec.check(value, name)
    try:
        value = units.quantity(value, spec.dimension, name)
    except InputError as error:
        raise InputError(f"{error}" + (f", or {spec.none_word}" if spec.none_word else "")) from None
    if units.is_concrete(value):
        problem = _range_problem(float(value), spec)
        if problem:
            raise InputError(f"{name}: {units.show(value, spec.dimension)} {problem}")
    return value


def _choice(value: Any, spec: Spec, name: str) -> Any:
    text = str(value)
    if isinstance(value, (str, numbers.Real)) and value in spec.choices:
        return spec.choices[spec.choices.index(value)]
    for choice in spec.choices:
        spellings = {True: ("on", "true", "yes"), False: ("off", "false", "no")}.get(choice, (str(choice),))
        if text.lower() in spellings:
            return choice
    shown = " or ".join({True: "on", False: "off"}.get(c, str(c)) for c in spec.choices)
    raise InputError(f"{name}: {text[:40]!r} is not a choice; write {shown}")


def _range_problem(value: float, spec: Spec) -> str:
    if math.isinf(value) and not spec.unlimited:
        return "is not finite"
    if spec.integer and value != round(value):
        return "is not a whole number"
    if value < spec.low or (spec.open_low and value == spec.low):
        least = units.show(spec.low, spec.dimension)
        return f"is too small; it must be {'above' if spec.open_low else 'at least'} {least}"
    if value > spec.high:
        most = f"is too large; it must be at most {units.show(spec.high, spec.dimension)}"
        if spec.dimension != units.RATIO or spec.high != 1 or value != round(value):
            return most
        return f"{most}: write {f'{value:.0f}% or ' if value <= 100 else ''}1/{value:.0f}"
    return ""


def resolve(obj: T, where: str = "") -> T:
    """Convert and check every field of a parameter set.

    Parameters
    ----------
    obj : dataclass
        Its fields may hold text with units, numbers in SI (of rates: `fluidcc.units.Rate`), or traced arrays.
    where : str
        Prefix for error messages, for example ``"link 0 "``.

    Returns
    -------
    dataclass
        The same kind of object with SI floats (traced values pass unchecked: `out_of_range` masks them).

    Raises
    ------
    InputError
        If a field cannot be read or lies outside its range.
    """
    return dataclasses.replace(obj, **converted(obj, where))  # type: ignore[type-var]


def converted(obj: Any, where: str = "", known: dict[Any, Any] | None = None) -> dict[str, Any]:
    """Convert and check every field of a parameter set as `resolve` does; return the values by name.

    ``known`` keeps what was converted, for many sets of one class whose fields are mostly the same.
    """
    if known is None:
        return {name: convert(getattr(obj, name), spec, where + name) for name, spec in specs(obj).items()}
    found = {}
    for name, spec in specs(obj).items():
        value = getattr(obj, name)
        key = (name, type(value), value) if type(value) in _HASHED else None
        if key is None or key not in known:
            found[name] = convert(value, spec, where + name)
            if key is not None and len(known) < _MOST_KNOWN:
                known[key] = found[name]
        else:
            found[name] = known[key]
    return found


def out_of_range(obj: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name of each field with a range, and a traceable condition that is true where it is violated."""
    for name, spec in specs(obj).items():
        value = getattr(obj, name)
        if value is None or spec.static:
            continue
        bad = value != value  # NaN
        if spec.low > -math.inf:
            bad = bad | ((value <= spec.low) if spec.open_low else (value < spec.low))
        if spec.high < math.inf:
            bad = bad | (value > spec.high)
        yield name, bad


def fractional(obj: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name of each whole-number field, and a traceable condition that is true where it is not whole."""
    for name, spec in specs(obj).items():
        value = getattr(obj, name)
        if spec.integer and value is not None:
            yield name, value % 1 != 0


# -- pytrees: as soon as JAX is there; packets and refusals do without it ----------------------------------


_waiting: list[tuple[type, tuple[str, ...], tuple[str, ...]]] = []


def register_pytree(cls: type, data: tuple[str, ...], meta: tuple[str, ...]) -> None:
    """Do what `jax.tree_util.register_dataclass` does, now or when JAX is imported."""
    if "jax" in sys.modules:
        _register(cls, data, meta)
        return
    if not _waiting:
        sys.meta_path.insert(0, _WhenJAXIsImported())
    _waiting.append((cls, data, meta))


class _WhenJAXIsImported(MetaPathFinder):
    """Registers what waits after the first import of JAX."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find JAX as Python does, and add to what is done if it is loaded: some only look whether it is there."""
        if fullname != "jax":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("jax")
        sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def loaded(module: ModuleType) -> None:
                load(module)
                sys.meta_path.remove(self)
                while _waiting:
                    _register(*_waiting.pop())

            spec.loader.exec_module = loaded
        return spec


def _register(cls: type, data: tuple[str, ...], meta: tuple[str, ...]) -> None:
    """Objects are made without their constructor: a third of the time."""
    from jax import tree_util

    keys = [tree_util.GetAttrKey(name) for name in data]
    leaves, rest = _getter(data), _getter(meta)
    order, new = (*data, *meta), object.__new__

    def make(switches: tuple[Any, ...], values: Any) -> Any:
        made = new(cls)
        made.__dict__.update(zip(order, (*values, *switches), strict=True))
        return made

    tree_util.register_pytree_with_keys(
        cls,
        lambda each: (tuple(zip(keys, leaves(each), strict=True)), rest(each)),
        make,
        lambda each: (leaves(each), rest(each)),
    )


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Function from an object to a tuple of some of its attributes."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda each: tuple(getattr(each, name) for name in names)
