"""Branches side by side: where they differ, and why not."""

from __future__ import annotations

import numpy as np
import pytest

from fluidcc.results.grid import Grid
from fluidcc.studies.sweeps.hysteresis import Branches, branches_of

NAN = float("nan")


def pair(one: tuple[float, str], other: tuple[float, str]) -> Branches:
    """A point with two branches, each with its swing and kind."""
    found = {
        name: {
            key: np.array([swing]) for key in ("peak_to_peak", "queue_bytes.min", "queue_bytes.max", "queue_bytes.mean")
        }
        | {"kind": np.array([kind])}
        for name, (swing, kind) in (("up", one), ("down", other))
    }
    return branches_of(Grid({"n": np.array([3.0])}), found)


@pytest.mark.parametrize(
    ("one", "other", "bistable"),
    [
        ((10.0, "cycle"), (8.9, "cycle"), True),
        ((10.0, "cycle"), (9.0, "cycle"), False),  # a tenth of the larger is the same
        ((10.0, "cycle"), (9.1, "cycle"), False),
        ((1.0, "equilibrium"), (10.0, "cycle"), True),
        ((1.0, "equilibrium"), (10.0, "equilibrium"), False),
        ((1.0, "growing"), (10.0, "cycle"), False),  # the smaller may grow to it
        ((1.0, "equilibrium"), (10.0, "decaying"), False),  # and the larger fall
        ((1.0, "decaying"), (10.0, "cycle"), True),
        ((1.0, "cycle"), (10.0, "growing"), True),
        ((NAN, "out of range"), (10.0, "cycle"), False),
        ((NAN, "out of range"), (NAN, "out of range"), False),
        ((0.0, "equilibrium"), (0.0, "cycle"), False),
    ],
)
def test_branches_differ_by_a_tenth_that_does_not_go_away(
    one: tuple[float, str], other: tuple[float, str], bistable: bool
) -> None:
    for first, second in ((one, other), (other, one)):
        assert pair(first, second)["bistable"].values.tolist() == [bistable]


def test_branches_have_the_grids_shape_and_their_names() -> None:
    grid = Grid({"n": np.array([1.0, 2.0]), "tau": np.array([1.0, 2.0, 3.0])})
    swings = {"given": np.arange(6.0), "other": 10 * np.arange(6.0)}
    found = branches_of(
        grid,
        {
            name: {key: at for key in ("peak_to_peak", "queue_bytes.min", "queue_bytes.max", "queue_bytes.mean")}
            | {"kind": np.full(6, "cycle")}
            for name, at in swings.items()
        },
    )
    assert found["peak_to_peak"].dims == ("branch", "n", "tau")
    assert found.sel(branch="other").peak_to_peak.values.tolist() == [[0.0, 10.0, 20.0], [30.0, 40.0, 50.0]]
    assert found["bistable"].values.tolist() == [[False, True, True], [True, True, True]]
    assert found.names == ["n", "tau"]
    assert repr(found) == "<Branches n: 2, tau: 3; bistable at 5>"
