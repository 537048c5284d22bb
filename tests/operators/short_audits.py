"""Audits of shorter and fewer runs, for tests that look at other things than what runs do."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fluidcc.engines.run import simulate
from fluidcc.operators.behaviour import reach
from fluidcc.theory.control.equilibrium import equilibrium
from tests.shapes import give_depth


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, called once for equal arguments: most files differ in what no run depends on."""
    known: dict[bytes, Any] = {}

    def call(*given: Any, **options: Any) -> Any:
        key = pickle.dumps((given, options))
        if key not in known:
            known[key] = function(*given, **options)
        return known[key]

    return call


# Runs of fixed lengths and the fluid's answers, of which tests of several files ask for the same.
_ONCE = [
    ("fluidcc.theory.control.equilibrium", "equilibrium", remembered(equilibrium)),
    ("fluidcc.operators.audit", "reach", remembered(reach)),
    ("fluidcc.operators.behaviour", "simulate", remembered(simulate)),
]


@contextmanager
def short_audits(seeds: int = 2, opens: str = "12.5ms", closes: str = "25ms") -> Iterator[pytest.MonkeyPatch]:
    """Run each behaviour over fewer seeds and less time, and follow a start at line rate for 0.2 s in place of 0.5."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fluidcc.operators.behaviour.SEEDS", seeds)
        patch.setattr("fluidcc.operators.behaviour.OPENS", opens)
        patch.setattr("fluidcc.operators.behaviour.CLOSES", closes)
        patch.setattr("fluidcc.operators.behaviour.UNTIL", "200ms")
        give_depth(patch)
        for module, name, function in _ONCE:
            patch.setattr(importlib.import_module(module), name, function)
        yield patch
