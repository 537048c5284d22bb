"""Rooms in which mistakes are drawn, the one place that names folders: sources, and the tests that must notice."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Room(NamedTuple):
    """Sources and tests, files or folders; where machine code is made of the sources, plain Python is tried first."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()
    numba: bool = False


_SIDES = ("packet.py", "hybrid.py")  # of a scheme: in the rooms of their engines
ROOMS = {
    "base": Room(
        ("fluidcc/scenario", "fluidcc/builders", "fluidcc/results", "fluidcc/units.py"),
        ("tests/scenario", "tests/results", "tests/test_units.py"),
        ("display.py",),
    ),
    "collectives": Room(("fluidcc/workloads/collectives",), ("tests/workloads/collectives",)),
    "delay": Room(
        ("fluidcc/dde",),
        ("tests/dde", "tests/engines/fluid/test_adaptive.py", "tests/engines/fluid/test_plain_adaptive.py"),
        ("charts.py",),
    ),
    "fabrics": Room(("fluidcc/workloads/fabrics",), ("tests/workloads/fabrics", "tests/operators/test_devices.py")),
    "flow-level": Room(("fluidcc/engines/flow_level",), ("tests/engines/flow_level",), numba=True),
    "fluid": Room(("fluidcc/engines/fluid",), ("tests/engines/fluid",)),
    "hybrid": Room(
        ("fluidcc/engines/hybrid", "fluidcc/schemes/*/hybrid.py"),
        ("tests/engines/hybrid", "tests/engines/test_dcqcn_nic.py"),
        numba=True,
    ),
    "operators": Room(("fluidcc/operators",), ("tests/operators",)),
    "packet": Room(
        ("fluidcc/engines/packet", "fluidcc/engines/common", "fluidcc/schemes/*/packet.py"),
        (
            "tests/engines/packet",
            "tests/engines/test_dcqcn_nic.py",
            "tests/schemes/test_timely_*.py",
            "tests/schemes/test_*_laws.py",  # which hold packets' rules to the laws
        ),
        numba=True,
    ),
    "schemes": Room(
        ("fluidcc/schemes", "fluidcc/contract"),
        ("tests/schemes", "tests/engines/test_dcqcn_nic.py", "tests/theory/test_symbolic.py"),
        _SIDES,
    ),
    "sweeps": Room(("fluidcc/studies",), ("tests/studies",)),
    "theory": Room(("fluidcc/theory",), ("tests/theory",)),
}


def files_of(root: Path, places: tuple[str, ...], pattern: str, without: tuple[str, ...] = ()) -> list[str]:
    """Files below places of a checkout, sorted."""
    found: set[Path] = set()
    for place in places:
        for path in root.glob(place):
            found.update(path.rglob(pattern) if path.is_dir() else [path])
    return sorted(str(path.relative_to(root)) for path in found if path.name not in without)
