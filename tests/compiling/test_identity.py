"""The key of a kept function covers all of our code that runs when it is traced, and nothing that it does not use."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import CodeType
from typing import Any

import jax
import pytest

import fluidcc as fc
from fluidcc.compiling import functions
from fluidcc.compiling.folder import files_behind
from fluidcc.compiling.identity import reader_of, structure_of
from fluidcc.contract import registry
from fluidcc.engines.common import jit

ROOT = Path(__file__).parents[2]

PACKAGE = str(Path(fc.__file__).parent)


class Traced(Exception):  # noqa: N818
    """Shapes were found without compiling; what is made of values would need them."""


@pytest.fixture
def missed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Code that ran in tracing and is in no key; nothing is compiled."""
    found: list[str] = []

    def trace(self: Any, arguments: Any, switches: dict[str, Any], tree: Any, leaves: Any) -> Any:
        ran: set[CodeType] = set()

        def note(frame: Any, event: str, _: Any) -> None:
            if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
                ran.add(frame.f_code)

        def call(*values: Any) -> Any:
            sys.setprofile(note)
            try:
                return self.function(*values, **switches)
            finally:
                sys.setprofile(None)

        shapes = jax.eval_shape(call, *arguments)
        reader = reader_of([self.function], structure_of(tree)[1], self.rooms)
        assert len(ran) > 10
        found.extend(
            f"{code.co_filename}:{code.co_firstlineno} {code.co_qualname}"
            for code in ran
            if code not in reader.codes and code.co_filename not in reader.files
        )
        if self.function.__name__ != "begin":
            raise Traced
        return lambda *_: shapes

    monkeypatch.setattr(functions, "_held", type(functions._held)())
    monkeypatch.setattr(functions.PerShape, "_make", trace)
    return found


SCHEMES = [name for name in registry.built_in() if registry.scheme(name).fluid is not None]


def ask(scenario: fc.Scenario, **options: Any) -> None:
    """Ask for a run; it ends where its loop is traced."""
    with pytest.raises(Traced):
        fc.simulate(scenario, "20us", estimate_error=False, **options)


QUICK = {"acc", "dcqcn"}


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SCHEMES])
def test_every_function_of_a_run_is_in_its_key(name: str, missed: list[str]) -> None:
    """An edit of one that is not would run stale physics."""
    ask(fc.parking_lot(3, scheme=name, size=["20KB", math.inf, math.inf]))
    assert missed == []


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({"buffer": "100KB", "pfc": fc.PFC()}, {}),
        ({"classes": (fc.TrafficClass(), fc.TrafficClass(1, 2))}, {"method": "rk4"}),
        ({}, {"rtol": 1e-4}),
    ],
    ids=["lossless", "classes", "adaptive"],
)
def test_every_mechanism_is_in_the_key(changes: dict[str, Any], options: dict[str, Any], missed: list[str]) -> None:
    ask(fc.incast(2, **changes), **options)
    assert missed == []


def test_a_linearisation_is_in_its_key(missed: list[str]) -> None:
    with pytest.raises(Traced):
        fc.linearize(fc.incast(2))
    assert missed == []


def test_an_edit_elsewhere_leaves_machine_code_valid() -> None:
    """List the files behind machine code: none of other engines, of schemes' other sides or of the command line."""
    files = {engine: jit.sources(f"fluidcc.engines.{engine}.engine") for engine in ("packet", "hybrid")}
    names = {engine: {f"{path.parent.name}/{path.name}" for path in found} for engine, found in files.items()}
    assert {"packet/engine.py", "packet/calendar.py", "dcqcn/packet.py", "vai_sf/packet.py"} <= names["packet"]
    assert {"hybrid/engine.py", "hybrid/queue.py", "dcqcn/hybrid.py", "common/jit.py"} <= names["hybrid"]
    assert {"contract/law.py", "swift/law.py"} <= names["packet"]
    assert "contract/red.py" in names["hybrid"]
    sides = {
        f"{path.parent.name}/{path.name}"
        for side in ("fluid", "equilibrium", "crosscheck")
        for path in (ROOT / "fluidcc" / "schemes").glob(f"*/{side}.py")
    }
    assert {"hpcc/fluid.py", "vai_sf/fluid.py"} <= sides
    others = {"packet": sides | {"dcqcn/hybrid.py"}, "hybrid": sides | {"packet/switch.py"}}
    for engine, found in files.items():
        assert not names[engine] & others[engine]
        assert not {path.parent.name for path in found} & ({"fluid", "flow_level", "hybrid", "cli"} - {engine})


def test_imports_are_found_however_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "written"
    package.mkdir()
    texts = {
        "__init__": "",
        "a": "from written import b, c as other\nfrom .d import (  # of several lines\n    x,\n    y,\n)\n",
        "b": "import written.e\nimport sys, written.f as f\n",
        "c": "def late():\n    from written.g import z\n    return z\n",
        "d": "from . import h\n",
        **dict.fromkeys("efghi", ""),
    }
    for name, text in texts.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    found = {path.stem for path in files_behind(["written.a", "written.none"], ["written"])}
    assert found == set("abcdefgh")
