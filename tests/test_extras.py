"""Without an extra, what needs it says which one to install, and the rest does without."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde.delay_system import DelaySystem
from fluidcc.dde.response import DelayLoop
from fluidcc.errors import InputError

STAR = "leaf-spine:1x1x4"


def sweep(**options: Any) -> Any:
    return fc.sweep(
        lambda kmin: fc.incast(2, marking=fc.RED(kmin, "200KB")), over={"kmin": ["5KB"]}, until="100us", **options
    )


def tune(**options: Any) -> Any:
    return fc.tune(
        lambda kmin: fc.incast(2, marking=fc.RED(kmin, "200KB")), {"kmin": ("5KB", "90KB")}, until="100us", seeds=1,
        evaluations=3, packet_seeds=0, **options,
    )  # fmt: skip


def to_control() -> Any:
    system = DelaySystem(np.zeros((1, 1)), np.zeros((0, 1, 1)), np.zeros(0))
    return DelayLoop(system, np.ones((1, 1)), np.zeros(1), np.ones(1)).to_control([1.0])


@pytest.mark.parametrize(
    ("package", "extra", "call"),
    [
        ("zarr", "sweep", lambda: sweep(store="none.zarr")),
        ("distributed", "sweep", lambda: sweep(dask="tcp://127.0.0.1:1")),
        ("distributed", "sweep", lambda: tune(dask="tcp://127.0.0.1:1")),
        ("distributed", "sweep", lambda: fc.fabric("none", STAR, flows=[(0, 2, 0, 1e3)], dask="tcp://127.0.0.1:1")),
        ("distributed", "sweep", lambda: fc.collective("all-reduce", STAR, "none", dask="tcp://127.0.0.1:1")),
        ("control", "control", to_control),
        ("pymoo", "tune", tune),
        ("SALib", "tune", lambda: tune(sensitivity=2)),
        ("panel", "explore", lambda: fc.incast(2).explore()),
    ],
)
def test_it_names_the_extra(
    package: str, extra: str, call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=re.escape(f"pip install 'fluidcc[{extra}]'")) as said:
        call()
    assert "\n" not in str(said.value)
    assert list(tmp_path.iterdir()) == []
