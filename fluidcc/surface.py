"""The public surface: names that are loaded when first used, and functions that say which keywords they know."""

from __future__ import annotations

import ast
import difflib
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from fluidcc.errors import UnknownNameError

P = ParamSpec("P")
R = TypeVar("R")

# Groups of the public surface, each with a list of its names.
GROUPS = ("theory", "studies", "fabrics", "collectives", "operators", "metrics", "delay")


def lazily(package: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make ``__getattr__``, ``__dir__`` and ``__all__`` of a package from what it imports ``if TYPE_CHECKING``.

    So each public name is stated once, where type checkers look for it. ``delay = dde`` there gives a module another
    name.

    Parameters
    ----------
    package : dict
        Its ``globals()``, which keep what was loaded.
    """
    own = str(package["__name__"])
    source = package["__spec__"].loader.get_source(own)
    (checked,) = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    homes: dict[str, tuple[str | None, str]] = {}
    for node in checked.body:
        if isinstance(node, ast.ImportFrom):
            homes |= {alias.asname: (node.module, alias.name) for alias in node.names if alias.asname}
        elif isinstance(node, ast.Assign):
            homes[ast.unparse(node.targets[0])] = own, ast.unparse(node.value)

    def load(name: str) -> Any:
        if name not in homes:
            raise missing(own, name, homes)
        module, wanted = homes[name]
        home = importlib.import_module(str(module))
        if not (wanted in vars(home) or (module != own and hasattr(home, wanted))):  # a module itself
            return importlib.import_module(f"{module}.{wanted}")
        package[name] = getattr(home, wanted)
        return package[name]

    def names() -> list[str]:
        return sorted([*homes, *(name for name in package if name.startswith("__"))])

    return load, names, list(homes)


def missing(own: str, name: str, homes: Iterable[str]) -> AttributeError:
    """Return the error of a name that a module lacks, with the place where it is, or the nearest name.

    Parameters
    ----------
    own : str
        Name of the module.
    name : str
        Name that was asked for.
    homes : iterable of str
        Public names of the module.
    """
    hint = "" if name.startswith("_") else _hint(name, homes)
    return AttributeError(f"module {own!r} has no attribute {name!r}{hint}", name=name)


def _hint(name: str, homes: Iterable[str]) -> str:
    """Part of a message: where else a name is public, or the nearest name of the package that was asked."""
    top = sys.modules["fluidcc"]
    lists = {"fc": top.__all__, **{f"fc.{group}": getattr(top, group).__all__ for group in (*GROUPS, "units")}}
    found = next((where for where, names in lists.items() if name in names), None)
    if found is not None:
        return f"; write {found}.{name}"
    near = nearest(name, homes)
    return f"; did you mean {near}?" if near else ""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name that was probably meant, if one is near; letters of either case count as the same."""
    lower = {each.lower(): each for each in reversed(list(known))}
    near = difflib.get_close_matches(str(name).lower(), lower, 1)
    return lower[near[0]] if near else None


def one_of(name: str, known: Iterable[str]) -> str:
    """End of a message about a name that is unknown: the one that was probably meant, if one is near, then all."""
    names = list(known)
    near = nearest(name, names)
    return f"{f'did you mean {near}? Else ' if near else ''}write one of {', '.join(names)}"


def refuse_unknown(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuse keywords that are not known.

    Parameters
    ----------
    given, known : iterable of str
    where : str
        The function or class, for the message.

    Raises
    ------
    UnknownNameError
        For the first that is not known, with the nearest that is; letters of either case count as the same.
    """
    names = list(known)
    unknown = next((name for name in given if name not in names), None)
    if unknown is None:
        return
    near = nearest(unknown, names)
    hint = f"did you mean {near}?" if near else f"known are {', '.join(names)}" if names else "leave it out"
    raise UnknownNameError(f"{where}: there is no {str(unknown)[:40]!r}; {hint}")


def keywords(function: Callable[..., Any]) -> tuple[str, ...]:
    """The keywords that a function takes, with those that were given to `public`."""
    parameters = inspect.signature(function).parameters.values()
    own = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != "self"]
    return tuple(dict.fromkeys([*own, *getattr(function, "_passes_on", ())]))


def constructor(check: Callable[[Any], None] | None = None) -> Callable[[type[R]], type[R]]:
    """Decorator of a public class: an unknown keyword of its constructor is an `InputError` with the nearest one.

    Parameters
    ----------
    check : callable, optional
        Called with each object that the constructor has made; raises what is wrong with it.
    """

    def decorate(cls: type[R]) -> type[R]:
        made_by = "__new__" if issubclass(cls, tuple) else "__init__"  # a NamedTuple has no other
        make: Callable[..., Any] = getattr(cls, made_by)
        names = keywords(make)
        if made_by == "__new__":
            names = names[1:]  # without the class
        known = frozenset(names)

        @functools.wraps(make)
        def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not known.issuperset(kwargs):
                refuse_unknown(kwargs, names, (self if isinstance(self, type) else type(self)).__name__)
            made = make(self, *args, **kwargs)
            if check is not None:
                check(self if made is None else made)
            return made

        setattr(cls, made_by, checked)
        return cls

    return decorate


def public(*, passes_on: Iterable[str] = ()) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator of a public function or method: an unknown keyword is an `InputError` with the nearest one.

    Parameters
    ----------
    passes_on : iterable of str
        Keywords that its ``**`` parameter takes, if it has one.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        function._passes_on = tuple(passes_on)  # type: ignore[attr-defined]
        names = keywords(function)
        known = frozenset(names)

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            if not known.issuperset(kwargs):
                refuse_unknown(kwargs, names, function.__name__)
            return function(*args, **kwargs)

        return wrapper

    return decorate
