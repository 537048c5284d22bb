"""Schemes by name, and their presets: those in `fluidcc.schemes`, what was registered, and what is installed.

Names are known without an import; a scheme's parameters are imported when it is asked for, its sides when they are.
"""

from __future__ import annotations

import importlib
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from fluidcc.errors import InputError
from fluidcc.surface import one_of, public

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from fluidcc.contract.models import Equilibrium, Fluid, Hybrid, Packet, Scheme
    from fluidcc.contract.preset import Preset

DEFAULT = "dcqcn"  # where no scheme is given
ENTRY_POINTS = "fluidcc.schemes"
_HERE = "fluidcc.schemes"
_REQUIRED = {
    "name": 'name: ClassVar[str] = "my-scheme"',
    "int_bytes": "int_bytes = 0.0",
    "default_marking": "default_marking: ClassVar[RED | None] = None",
    "default_rate": 'default_rate: ClassVar[str] = "100Gbps"',
    "feedback_delay": "feedback_delay: Any = feedback_delay_field()",
    "feedback_pause": "feedback_pause = 0.0",
    "bind": "def bind(self, path): return self",
}
_T = TypeVar("_T")
_outside: dict[str, Scheme] = {}  # in the order in which they came
replaced = 0  # how often a scheme was registered again after an edit: what was compiled before is of another law
_lock = threading.RLock()


@cache
def built_in() -> tuple[str, ...]:
    """Names of the schemes in this package."""
    folders = sorted(path.parent.name for path in (Path(__file__).parents[1] / "schemes").glob("*/parameters.py"))
    return tuple(folder.replace("_", "-") for folder in folders)


def names() -> tuple[str, ...]:
    """Names of all schemes: built in, registered, and of installed packages."""
    return tuple(dict.fromkeys((*built_in(), *_outside, *_installed())))


def outside() -> tuple[Scheme, ...]:
    """Schemes from other packages that have been registered, or asked for by name, so far."""
    return tuple(_outside.values())


def scheme(name: str) -> Scheme:
    """A scheme by its name.

    Raises
    ------
    InputError
        If there is none of that name, or an installed one keeps not to the contract.
    """
    if name in built_in():
        return _built_in(name)
    with _lock:
        if name not in _outside and name in _installed():
            _load(name, _installed()[name])
    if name not in _outside:
        raise InputError(
            f"scheme: {str(name)[:40]!r} is unknown; {one_of(name, names())}, or register yours with fluidcc.register"
        )
    return _outside[name]


_scheme = scheme  # for functions with a parameter of that name


def scheme_of(parameters: Any) -> Scheme:
    """The scheme whose parameters these are; one that is not known yet is registered by its parameters' package.

    Raises
    ------
    InputError
        If it has none.
    """
    name = parameters.name
    if name not in built_in() and name not in _outside:
        register(type(parameters))
    return scheme(name)


def fluid_of(parameters: Any) -> Fluid:
    """The fluid side of a scheme, from its parameters.

    Raises
    ------
    InputError
        If it has none.
    """
    return _side(parameters, "fluid", "packet")


def packet_of(parameters: Any) -> Packet:
    """The packet side of a scheme, from its parameters.

    Raises
    ------
    InputError
        If it has none.
    """
    return _side(parameters, "packet", "fluid")


def hybrid_of(parameters: Any) -> Hybrid:
    """The hybrid side of a scheme, from its parameters.

    Raises
    ------
    InputError
        If it has none.
    """
    return _side(parameters, "hybrid", "packet")


def _side(parameters: Any, side: str, other: str) -> Any:
    """Return the side that an engine needs; if there is none, raise, naming an engine that has one."""
    known = scheme_of(parameters)
    found = getattr(known, side)
    if found is None:
        raise InputError(
            f"scheme {known.name} has no {side} side ({known.file(side)}); write one, or simulate with engine={other!r}"
        )
    return found


def equilibrium_of(parameters: Any) -> Equilibrium | None:
    """The equilibrium side of a scheme, from its parameters; None if it has none."""
    return scheme_of(parameters).equilibrium


@public()
def register(scheme: _T) -> _T:
    """Make a scheme known by its name, to engines, sweeps, stability and the command line.

    Parameters
    ----------
    scheme : package, or class of parameters in it
        See CONTRIBUTING.md; a package has ``Parameters``, and optionally ``PRESETS``. Its sides, ``fluid``,
        ``packet``, ``equilibrium`` and ``crosscheck``, are modules next to it, imported when first used.

    Returns
    -------
    package, or class
        What was given, so that it can decorate a class.

    Raises
    ------
    InputError
        If its name is taken, or it lacks a part.

    Examples
    --------
    >>> import aimd_ecn, fluidcc as fc  # doctest: +SKIP
    >>> fc.register(aimd_ecn)  # doctest: +SKIP
    >>> fc.simulate(fc.incast(2, scheme=aimd_ecn.AIMD()), "10ms", engine="packet")  # doctest: +SKIP
    """
    global replaced
    made = _made(scheme)
    with _lock:
        known = _built_in(made.name) if made.name in built_in() else _outside.get(made.name)
        again = made.name in _outside and known is not None and known.package == made.package
        reloaded = again and known is not None and known.was_reloaded()
        replaced += reloaded
        if known is None or reloaded or (again and known.Parameters is not made.Parameters):
            _outside[made.name] = made
        elif known.Parameters is not made.Parameters:
            raise InputError(
                f"scheme: the name {made.name!r} is taken by {known.package}; give {made.package} another one"
            )
    return scheme


def _made(given: Any) -> Scheme:
    from fluidcc.contract.models import Scheme
    from fluidcc.scenario.parameters import specs

    if isinstance(given, Scheme):
        made = given
    else:
        package = given if isinstance(given, ModuleType) else _package_of(given)
        cls = getattr(package, "Parameters", given if isinstance(given, type) else None)
        if cls is None:
            raise InputError(
                f"register: {repr(given)[:80]} is no scheme; give a package with Parameters, or a class of parameters"
            )
        _check(cls)
        made = Scheme(cls, getattr(package, "PRESETS", None) or _default_presets(cls), _path(package, cls))
        if "paper" not in made.PRESETS:
            raise InputError(
                f"register: PRESETS of {made.package} has {', '.join(made.PRESETS)} and no paper, the command line's "
                f'default; write PRESETS = {{"paper": Preset({cls.__name__}()), ...}}'
            )
        if made.has("law") and "base_rtt" not in specs(cls):
            raise InputError(
                f"register: {cls.__module__}.{cls.__name__} has no base_rtt, which engines made of a law read; "
                'write base_rtt: Any = base_rtt_field(source=""), and fill it in in bind'
            )
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", made.name):
        raise InputError(f"scheme: {made.name!r} is no name; write lower case and dashes, for example aimd-ecn")
    if not any(made.has(side) for side in ("law", "fluid", "packet")):
        raise InputError(
            f"scheme {made.name}: it has no {made.file('law')}, {made.file('fluid')} or {made.file('packet')}; "
            "write one (CONTRIBUTING.md)"
        )
    return made


def _package_of(given: Any) -> ModuleType | None:
    """Package in whose module a class of parameters stands."""
    module = getattr(given, "__module__", "")
    for path in (module, module.rpartition(".")[0]):
        package = sys.modules.get(path)
        if package is not None and hasattr(package, "__path__"):
            return package
    return None


def _path(package: ModuleType | None, cls: Any) -> str:
    return cls.__module__ if package is None else package.__name__


def _check(cls: Any) -> None:
    """The parameters against the contract."""
    from fluidcc.scenario.parameters import specs
    from fluidcc.scenario.switches import RED

    where = f"{cls.__module__}.{getattr(cls, '__name__', cls)}"
    if not hasattr(cls, "__dataclass_fields__"):
        raise InputError(f"register: {where} is no class of parameters; write @fluidcc.scenario.parameters.register()")
    doubled = sorted(set(specs(cls)) & (set(specs(RED)) | {"flows"}))
    if doubled:
        raise InputError(
            f"register: {where} has a parameter {doubled[0]}, which is the marking's or a builder's; rename it"
        )
    missing = [name for name in _REQUIRED if not hasattr(cls, name) and name not in specs(cls)]
    if missing:
        raise InputError(f"register: {where} has no {missing[0]}; write {_REQUIRED[missing[0]]}")


def _default_presets(cls: Any) -> dict[str, Any]:
    from fluidcc.contract.preset import Preset

    made = cls()
    return {"paper": Preset(made, made.default_marking)}


@cache
def _built_in(name: str) -> Scheme:
    from fluidcc.contract.models import Scheme

    package = importlib.import_module(f"{_HERE}.{name.replace('-', '_')}")
    return Scheme(package.Parameters, package.PRESETS, package.__name__)


@cache
def _installed() -> dict[str, EntryPoint]:
    """Entry points of installed packages, by the names of their schemes; not imported."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=ENTRY_POINTS) if point.name not in built_in()}


def _load(name: str, point: EntryPoint) -> None:
    try:
        found = point.load()
    except Exception as error:  # whatever a package does as it is imported
        raise InputError(
            f"scheme: {name} cannot be loaded from {point.value} ({type(error).__name__}: {error}); repair or remove "
            "that package"
        ) from error
    made = _made(found)
    if made.name != name:
        raise InputError(f"scheme: {point.value} is installed as {name!r} but named {made.name!r}; agree on one")
    register(found)


@public()
def presets(scheme: str) -> dict[str, Preset]:
    """Return all presets of a scheme.

    Parameters
    ----------
    scheme : str
        Its name, such as ``"dcqcn"``.

    Returns
    -------
    dict of Preset
        By name, ``"paper"`` first.

    Raises
    ------
    InputError
        If there is no such scheme.
    """
    return dict(_scheme(scheme).PRESETS)


@public()
def preset(scheme: str, name: str = "paper") -> Preset:
    """A scheme's preset.

    Parameters
    ----------
    scheme : str
        Its name, such as ``"dcqcn"``.
    name : str
        Of the preset, such as ``"vendor"``.

    Returns
    -------
    Preset
        With ``scheme``, ``marking`` and ``network``; its `Preset.options` are those of a builder.

    Raises
    ------
    InputError
        If there is no such scheme or preset.

    Examples
    --------
    >>> preset("dcqcn", "vendor").scheme.timer
    0.0003
    """
    known = presets(scheme)
    if not isinstance(name, str) or name not in known:
        raise InputError(f"preset: {scheme} has no {str(name)[:40]!r}; write one of {', '.join(known)}")
    return known[name]


def shared_functions(given: Scheme, one: str, other: str) -> list[str]:
    """Return the names, such as ``hpcc.law.reacted``, of what two engines share, in the order of the alphabet.

    An engine for which a scheme has no file is made of its law.
    """
    return sorted(_functions(given, one) & _functions(given, other))


def _functions(given: Scheme, engine: str) -> set[str]:
    """Functions that an engine's side calls and that are not of the side's own file."""
    side = given.module(engine)
    made = getattr(side, "__file__", None) is None
    home = given.module("law") if made else side
    within = f"{given.package.rpartition('.')[0] or given.package}."  # one scheme may add to another's rules
    waiting = [] if home is None else list(_of_schemes(vars(home).values(), within))
    if (base := getattr(side, "BASE", None)) is not None:
        waiting += _of_schemes(vars(scheme(base).module(engine)).values(), within)
    found = dict[int, FunctionType]()
    while waiting:
        function = waiting.pop()
        if id(function) not in found:
            found[id(function)] = function
            names = function.__code__.co_names
            called = [function.__globals__.get(name) for name in names]
            by_module = [getattr(each, name, None) for each in called if isinstance(each, ModuleType) for name in names]
            waiting += _of_schemes([*called, *by_module], within)
    own = f".{engine}"
    return {
        f"{each.__module__.removeprefix(within)}.{each.__name__}"
        for each in found.values()
        if made or not each.__module__.endswith(own)
    }


def _of_schemes(values: Iterable[Any], within: str) -> Iterator[FunctionType]:
    """Functions among some values that are of schemes, compiled or not."""
    for value in values:
        function = getattr(value, "py_func", value)
        if isinstance(function, FunctionType) and f"{function.__module__}.".startswith(within):
            yield function
