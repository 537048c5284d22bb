"""Steps of the search, one by one: its start, its pattern along the axes, and its clouds."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from fluidcc.studies.tuning.evaluate import Measured
from fluidcc.studies.tuning.goal import SETTLING, TUNED, Goal, Objective
from fluidcc.studies.tuning.space import Point, Space, Variable

searching = importlib.import_module("fluidcc.studies.tuning.search")
TIME = Goal((Objective(SETTLING),), ())
LINE, SQUARE = (Space(tuple(Variable(name, 0.0, 1.0) for name in names)) for names in ("x", "xy"))


class Table:
    """Stand-in for an evaluator: a settling time by a formula, and the batches that were asked for."""

    def __init__(self, time: Callable[..., float]) -> None:
        self.time, self.table = time, dict[tuple[float, ...], Measured]()
        self.batches: list[np.ndarray] = []

    @property
    def runs(self) -> int:
        return len(self.table)

    def __call__(self, points: Sequence[Point], report: Any = None) -> list[Measured]:
        self.batches.append(np.array([list(point.values()) for point in points]))
        for point in points:
            metrics = {name: np.array([math.nan]) for name in TUNED} | {SETTLING: np.array([self.time(**point)])}
            self.table.setdefault(tuple(point.values()), Measured(metrics, {}))
        return [self.table[tuple(point.values())] for point in points]

    def known(self) -> list[tuple[tuple[float, ...], Measured]]:
        return list(self.table.items())


def polished(space: Space, table: Any, until: int, seed: int = 1) -> None:
    searching._polish(space, TIME, table, until, None, seed)


# -- the start ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evaluations", "known", "spread"),
    [
        (400, 0, 100),
        (400, 3, 100),
        (64, 0, 32),
        (63, 0, 63),
        (63, 3, 60),
        (5, 0, 5),
        (1, 0, 1),
        (1, 1, 0),
        (200, 1, 50),
    ],
)
def test_a_quarter_is_spread_evenly_after_what_is_known(
    monkeypatch: pytest.MonkeyPatch, evaluations: int, known: int, spread: int
) -> None:
    """At least 32 from 64 on, and all of fewer; then half is left for what follows the population."""
    table, asked = Table(lambda x, y: x + y), dict[str, Any]()
    monkeypatch.setattr(searching, "_evolve", lambda *given: asked.update(evolve=given[4], start=given[3]))
    monkeypatch.setattr(searching, "_polish", lambda *given: asked.update(polish=given[3]))
    points = [{"x": 0.25 * (k + 1), "y": 7.0} for k in range(known)]
    searching.search(SQUARE, TIME, table, evaluations=evaluations, seed=1, known=points)
    (batch,) = table.batches
    assert len(batch) == known + spread == len(asked["start"])
    assert batch[:known].tolist() == [[0.25 * (k + 1), 1.0] for k in range(known)]  # moved into the range
    assert (asked["evolve"], asked["polish"]) == (round(evaluations / 2), evaluations)
    if spread >= 32:  # Sobol: one of the first 32 in each 32nd of an axis
        for axis in batch[known : known + 32].T:
            assert sorted(np.floor(axis * 32)) == list(range(32))


# -- the pattern -------------------------------------------------------------------------------------------------


def test_a_pattern_goes_on_the_same_way_and_halves_its_step_where_it_stays() -> None:
    """Steps of 0.12 up a slope, twice where it goes up; at the end of the range in ever shorter ones to 0.004."""
    table = Table(lambda x: 1.0 - x)
    table([{"x": 0.5}])
    polished(LINE, table, 12)
    tried = [values[0] for values in table.table]
    assert tried == pytest.approx([0.5, 0.62, 0.38, 0.74, 0.86, 0.98, 1.0, 0.88, 0.94, 0.97, 0.985, 0.9925])


def test_a_pattern_moves_to_the_best_of_its_neighbours() -> None:
    """Neighbours along both axes, and both ways: y falls twice as fast as x rises."""
    table = Table(lambda x, y: 3.0 - x + 2 * y)
    table([{"x": 0.5, "y": 0.5}])
    polished(SQUARE, table, 6)
    assert table.batches[1] == pytest.approx(np.array([[0.62, 0.5], [0.5, 0.62], [0.38, 0.5], [0.5, 0.38]]))
    assert table.batches[2] == pytest.approx(np.array([[0.5, 0.26]]))


def test_a_pattern_turns_back_where_the_same_way_is_no_better() -> None:
    table = Table(lambda x: abs(x - 0.63))
    table([{"x": 0.5}])
    polished(LINE, table, 5)
    assert [values[0] for values in table.table] == pytest.approx([0.5, 0.62, 0.38, 0.74, 0.68, 0.56], abs=1e-9)


def test_a_pattern_takes_no_shorter_step_than_can_be_set() -> None:
    """Steps of a quarter: neighbours at once, and then clouds that hold nothing new, until it gives up."""
    table = Table(lambda x: abs(x - 0.5))
    space = Space((Variable("x", 0.0, 1.0, 0.25),))
    table([{"x": 0.5}])
    polished(space, table, 100)
    assert table.batches[1].tolist() == [[0.75], [0.25]]
    assert set(table.table) <= {(0.25 * k,) for k in range(5)}


# -- clouds ------------------------------------------------------------------------------------------------------


def clouds(
    monkeypatch: pytest.MonkeyPatch, known: int, until: int, seed: int = 1
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The best of some points, all of them there, and the clouds about them, without a pattern before."""
    monkeypatch.setattr(searching, "_STEP", 0.0)
    table = Table(lambda x, y: 1.0 + 1e-3 * math.hypot(x - 0.5, y - 0.5))
    offsets = 1e-9 * np.arange(known)
    table([{"x": 0.5 + off, "y": 0.5} for off in offsets])
    polished(SQUARE, table, until, seed)
    return np.array([0.5, 0.5]), table.batches[1:]


def test_a_cloud_is_as_wide_as_a_tenth_of_the_range_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen points about a single one, Gaussian along each axis: over ten seeds 320 numbers."""
    found = [clouds(monkeypatch, 1, 17, seed) for seed in range(10)]
    offs = np.concatenate([(batches[0] - best).ravel() for best, batches in found])
    assert len(offs) == 320
    assert offs.std() == pytest.approx(0.1, rel=0.15)
    assert abs(offs.mean()) < 0.02
    assert np.abs(offs).max() < 0.45
    assert np.mean(np.abs(offs) < 0.0674) == pytest.approx(0.5, abs=0.1)  # its quartiles


def test_clouds_end_narrow_however_many_points_were_known_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred to come after 100: a tenth at first, and a 250th at last, by equal ratios."""
    best, batches = clouds(monkeypatch, 100, 200)
    widths = [np.median(np.abs(batch - best)) / 0.6745 for batch in batches]
    assert widths[0] == pytest.approx(0.1, rel=0.5)  # the median of 16: within 50 % but once in a thousand
    assert widths[3] == pytest.approx(0.1 * 0.04**0.48, rel=0.5)  # likewise
    assert widths[-1] < 0.01
    assert [len(batch) for batch in batches[:2]] == [16, 16]
    assert sum(map(len, batches)) >= 100


def test_the_last_cloud_has_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    _, batches = clouds(monkeypatch, 1, 20)
    assert [len(batch) for batch in batches] == [16, 3]


class Watched(Space):
    """Notes where the next values that can be set are asked for."""

    def spacing(self, shares: np.ndarray) -> np.ndarray:
        asked.append(np.array(shares))
        return super().spacing(shares)


asked: list[np.ndarray] = []


def test_spacings_are_asked_for_within_the_cube_alone() -> None:
    """Differences of good points about a corner lead outside of it."""
    for corner in (0.0, 1.0):
        asked.clear()
        space = Watched(tuple(Variable(name, 0.0, 1.0, 0.01) for name in "xy"))
        table = Table(lambda x, y, corner=corner: math.hypot(x - corner, y - corner))
        table([{"x": 0.5, "y": 0.5}])
        polished(space, table, 60)
        places = np.array(asked)
        assert len(places) > 30
        assert ((places >= 0) & (places <= 1)).all()
        assert (np.abs(places - corner) < 1e-12).all(axis=1).any()


def test_points_without_sense_are_no_centre_of_a_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "_STEP", 0.0)
    table = Table(lambda x: x)
    table([{"x": 0.7}])
    table.table[(0.1,)] = Measured({name: np.array([math.nan]) for name in TUNED}, {}, "no sense")
    polished(LINE, table, 18)
    assert np.abs(table.batches[1] - 0.7).mean() < 0.2
