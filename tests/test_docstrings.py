"""What the public docstrings must say, in the manner of python-control's ``docstrings_test.py``.

Every parameter is documented, every documented one exists, quantities have a unit, and who raises an `InputError` says
so.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from fluidcc.scenario.parameters import Spec, specs
from tests.test_imports import ROOT, modules
from tests.test_public import public_names
from tests.test_public import value_of as of
from tests.together import together

_SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "Notes", "Examples", "Yields", "See Also")


# What a scheme hands to the engines, not what users call: `fluidcc.contract.protocol` documents it.
CONTRACT = {"bind"}


def documented() -> Iterator[tuple[str, Any]]:
    """Public functions and classes, and the public methods and properties of classes."""
    for package, name in public_names():
        value = of(package, name)
        yield name, value
        if inspect.isclass(value) and not issubclass(value, Exception):
            for member, one in vars(value).items():
                if (
                    not member.startswith("_")
                    and member not in CONTRACT
                    and (callable(one) or isinstance(one, (property, staticmethod)))
                ):
                    yield f"{name}.{member}", one


ALL = [(name, value) for name, value in documented() if not isinstance(value, type) or value.__doc__]
CALLABLE = [
    (name, value)
    for name, value in ALL
    if callable(value) and not (isinstance(value, type) and issubclass(value, Exception))
]


def named(case: tuple[str, Any]) -> str:
    return case[0]


def plain(value: Any) -> Any:
    return value.__func__ if isinstance(value, staticmethod) else value.fget if isinstance(value, property) else value


def sections(value: Any) -> dict[str, str]:
    """A docstring's sections by title, "" what is before them."""
    text = inspect.cleandoc(plain(value).__doc__ or "")
    parts = re.split(rf"^({'|'.join(_SECTIONS)})\n-+\n", text, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def entries(section: str) -> dict[str, tuple[str, str]]:
    """Names of a section, each with its type and its text; names before a colon share both."""
    found: dict[str, tuple[str, str]] = {}
    for head, text in re.findall(r"^(\S.*)\n?((?:(?:[ ]{4}.*)?(?:\n|$))*)", section, flags=re.MULTILINE):
        names, _, kind = head.partition(" : ")
        for name in names.split(","):
            found[name.strip().lstrip("*")] = kind, " ".join(text.split())
    return found


def parameters(value: Any) -> dict[str, inspect.Parameter]:
    found = inspect.signature(plain(value)).parameters
    filled = (
        {field.name for field in dataclasses.fields(value) if "bound" in field.metadata} if _is_set(value) else set()
    )
    return {name: each for name, each in found.items() if name != "self" and name not in filled}


def _is_set(value: Any) -> bool:
    """Whether it is a class of parameters, some of whose fields `bind` fills in."""
    return isinstance(value, type) and dataclasses.is_dataclass(value)


def told(value: Any) -> dict[str, tuple[str, str]]:
    """What the docstring says of parameters; of a set of parameters also what its fields say of themselves."""
    found = entries(sections(value).get("Parameters", "")) | entries(sections(value).get("Attributes", ""))
    if isinstance(value, type) and dataclasses.is_dataclass(value):
        found |= {name: ("quantity", f"{spec.doc} [{spec.dimension}]") for name, spec in specs(value).items()}
    return found


@together(ALL, named)
def test_begins_with_a_sentence(name: str, value: Any) -> None:
    first = sections(value)[""].partition("\n")[0]
    assert first.endswith((".", ":", "?", "; see")), f"{name}: {first!r}"
    assert len(first) <= 120


@together(CALLABLE, named)
def test_every_parameter_is_documented_and_every_documented_one_exists(name: str, value: Any) -> None:
    said, has = set(told(value)), set(parameters(value))
    assert not has - said, f"{name}: say what {', '.join(sorted(has - said))} is"
    assert not said - has, f"{name}: has no {', '.join(sorted(said - has))}"


@together(CALLABLE, named)
def test_quantities_have_a_unit(name: str, value: Any) -> None:
    """In brackets, or by reference to another function."""
    for key, (kind, text) in told(value).items():
        has_unit = "quantity" not in kind or re.search(r"\[[^\]]+\]|^As (in|of) ", text)
        assert has_unit, f"{name}: give the unit of {key} in brackets"


@together(CALLABLE, named)
def test_who_raises_an_input_error_says_so(name: str, value: Any) -> None:
    if isinstance(value, type):
        return
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(plain(value))))
    raised = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Raise) and "InputError" in ast.unparse(node)
    ]
    assert not raised or "InputError" in sections(value).get("Raises", ""), f"{name}: add a section Raises"


@together(CALLABLE, named)
def test_who_returns_something_says_what(name: str, value: Any) -> None:
    if isinstance(value, type):
        return
    hint = inspect.signature(plain(value)).return_annotation
    first = sections(value)[""].partition("\n")[0]
    short = not parameters(value)  # its first line is all there is to say
    assert hint in (None, "None") or "Returns" in sections(value) or short, f"{name}: add a section Returns ({first})"


def test_fields_say_what_they_are() -> None:
    """Names, meanings and units of `fluidcc show` are complete."""
    for package, name in public_names():
        value = of(package, name)
        if isinstance(value, type) and dataclasses.is_dataclass(value):
            for key, spec in specs(value).items():
                assert isinstance(spec, Spec)
                assert spec.doc, f"{name}.{key}"
                assert spec.dimension, f"{name}.{key}"


def test_the_parser_of_docstrings() -> None:
    def function(one: Any, two: Any = 1, **rest: Any) -> Callable[..., Any]:
        """Do something.

        Parameters
        ----------
        one, two : quantity
            Of the link [bytes/s].

            More on it.
        **rest
            As in `other`.

        Returns
        -------
        callable

        Raises
        ------
        InputError
            Never.
        """
        return function

    assert set(sections(function)) == {"", "Parameters", "Returns", "Raises"}
    assert told(function) == {
        "one": ("quantity", "Of the link [bytes/s]. More on it."),
        "two": ("quantity", "Of the link [bytes/s]. More on it."),
        "rest": ("", "As in `other`."),
    }
    assert list(parameters(function)) == ["one", "two", "rest"]


def test_no_docstring_opens_as_a_question_or_a_clause() -> None:
    """`What a point does.` and `Whether it is there.` have to be read twice; private ones count."""
    refused = {"What", "Whether", "Which", "How", "Of", "As", "When", "Where", "Why", "Who", "That"}
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    opened = [
        f"{path.relative_to(ROOT)}: {text.partition(chr(10))[0]}"
        for path in modules().values()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, kinds) and (text := ast.get_docstring(node)) and text.split()[0] in refused
    ]
    assert opened == []
