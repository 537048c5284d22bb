"""What is called best: not the queue that is shortest because its link is left idle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.engines.fluid.network import REASONS
from fluidcc.results.grid import Grid
from fluidcc.results.schema import METRICS
from fluidcc.studies.sweeps.result import parse_constraint
from fluidcc.studies.sweeps.store import variables_of

NAN = float("nan")


def swept(queue: list[float], used: list[float], fair: list[float], **attrs: Any) -> fc.studies.SweepResult:
    """A sweep over k = 0, 1, ... with these results; NaN is a point that failed."""
    grid = Grid({"k": np.arange(float(len(queue)))})
    columns = {name: queue for name in METRICS} | {"utilisation": used, "jain": fair}
    failed = np.where(np.isnan(queue), REASONS.index("kmin exceeds kmax"), 0)
    attributes = variables_of(grid)
    variables = {name: ("k", np.array(values), attributes[name].attrs) for name, values in columns.items()}
    variables["reason"] = ("k", failed, attributes["reason"].attrs)
    return fc.studies.SweepResult(xr.Dataset(variables, {**grid.axes, "flow": ["flow 0"]}, attrs))


STARVED = swept([100.0, 200.0, 300.0, 400.0, NAN], [0.65, 0.99, 0.985, 1.0, NAN], [1.0, 0.5, 0.95, 1.0, NAN])


def test_the_shortest_queue_must_use_its_link_and_share_it() -> None:
    assert STARVED.best() == {"k": 2, "metric": "queue_bytes.mean", "value": 300.0, "utilisation": 0.985, "jain": 0.95}


def test_constraints_are_given_in_place_of_those() -> None:
    assert STARVED.best(subject_to="utilisation>=0.99")["k"] == 1
    assert STARVED.best(subject_to=["utilisation>=99%", "jain>=0.96"])["k"] == 3
    assert STARVED.best(subject_to=())["k"] == 0
    assert STARVED.best("utilisation", minimise=False, subject_to="queue_bytes.mean<=0.3KB")["k"] == 1


def test_other_metrics_have_none() -> None:
    assert STARVED.best("jain")["k"] == 1
    assert STARVED.best(minimise=False)["k"] == 3


def test_none_keeps_them() -> None:
    assert STARVED.best(subject_to="utilisation>=2") == {
        **dict.fromkeys(("k", "value", "utilisation", "jain")),
        "metric": "queue_bytes.mean",
    }


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (STARVED, "300B at k = 2, utilisation 0.985, jain 0.95 (of those with utilisation>=0.98 and jain>=0.9)"),
        (swept([1e3], [0.5], [1.0]), "no point has utilisation>=0.98 and jain>=0.9"),
        (swept([NAN], [NAN], [NAN]), None),
    ],
)
def test_a_table_has_the_best_point_if_there_is_one(result: fc.studies.SweepResult, says: str | None) -> None:
    assert dict(result._rows()).get("least queue_bytes.mean") == says


def test_a_scheme_that_leaves_a_part_of_the_link_is_measured_by_its_own_target() -> None:
    used = [0.92, 0.95, 0.96]
    assert swept([1e3, 2e3, 3e3], used, [1.0] * 3).best()["k"] is None
    assert swept([1e3, 2e3, 3e3], used, [1.0] * 3, target_utilisation=0.95).best()["k"] == 1
    assert fc.HPCC(eta=0.9).target_utilisation == 0.9


def test_of_equal_queues_the_one_that_uses_most() -> None:
    """As with W_AI: up to (1 - eta) C T/N there is no queue, and the smallest is the slowest."""
    assert swept([0.0, 1e-9, 0.5, 1500.0], [0.98, 0.99, 0.995, 1.0], [1.0] * 4).best()["k"] == 2
    assert swept([7.0, 7.0, 7.0], [0.99] * 3, [0.95, 1.0, 0.96]).best()["k"] == 1


def test_ranks_put_those_that_keep_them_first() -> None:
    assert [STARVED.rank({"k": k}) for k in (2.0, 3.0, 0.0, 1.0)] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert STARVED.rank({"k": 0.0}, subject_to=()) == (1, 4)


def test_reasons_are_words_also_in_tables(tmp_path: Any) -> None:
    assert STARVED.reasons == {"kmin exceeds kmax": 1}
    lines = STARVED.save(tmp_path / "s.csv").read_text().splitlines()
    assert [line.rpartition(",")[2] for line in lines] == ["reason", *4 * ["ok"], "kmin exceeds kmax"]


@pytest.mark.parametrize("text", ["utilisation", "utilisation=1", "utilisation>=", ">=1", "utilisation>1", ""])
def test_what_is_no_bound_is_refused(text: str) -> None:
    with pytest.raises(fc.InputError, match=r"write for example 'utilisation>=0.99'"):
        parse_constraint(text)


@pytest.mark.parametrize(
    ("text", "says"), [("speed>=1", "no metric"), ("utilisation>=much", "cannot read"), ("jain<=5KB", "unknown unit")]
)
def test_bounds_that_cannot_be_read(text: str, says: str) -> None:
    with pytest.raises(fc.InputError, match=says):
        parse_constraint(text)


def test_bounds_take_units_and_are_shown_with_them() -> None:
    assert str(parse_constraint(" queue_bytes.p99 <= 0.1MB ")) == "queue_bytes.p99<=100KB"


def test_a_map_hatches_what_misses_a_bound_and_says_what_is_grey() -> None:
    """Cells at (0, 1) and (1, 0) keep both bounds, (0, 0) leaves the link idle, (1, 1) failed."""
    flat = swept([100.0, 200.0, 300.0, NAN], [0.65, 0.99, 1.0, NAN], [1.0, 1.0, 1.0, NAN])
    index = {"a": ("k", [0.0, 0.0, 1.0, 1.0]), "b": ("k", [0.0, 1.0, 0.0, 1.0])}
    both = flat.dataset.drop_vars("k").assign_coords(index).set_index(k=["a", "b"]).unstack("k")
    axis = fc.studies.SweepResult(both).plot().axes[0]
    hatched = [patch for patch in axis.patches if patch.get_hatch()]
    assert len(hatched) == 1
    low, high = (float(edge) for edge in (hatched[0].get_x(), hatched[0].get_x() + hatched[0].get_width()))
    assert low < 0.0 < high
    legend = axis.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "misses utilisation>=0.98 or jain>=0.9",
        "no result: kmin above kmax",
    ]


# -- ties and bounds, by hand ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kept"),
    [("jain>=0.5", [False, True, True, False]), ("jain<=0.5", [True, True, False, False])],
)
def test_a_bound_is_kept_on_it_and_by_no_value_that_there_is_not(text: str, kept: list[bool]) -> None:
    assert parse_constraint(text).kept(np.array([0.25, 0.5, 0.75, NAN])).tolist() == kept


@pytest.mark.parametrize(
    ("queue", "used", "fair", "best"),
    [
        ([100.0, 101.0, 102.0], [0.99, 0.995, 1.0], [1.0] * 3, 1),  # within a byte they are the same
        ([100.0, 100.5, 101.5], [0.99, 0.995, 1.0], [1.0] * 3, 1),
        ([1e10, 1e10 + 5.0, 1e10 + 50.0], [0.99, 1.0, 1.0], [1.0] * 3, 1),  # or within 1e-9
        ([7.0] * 3, [0.99] * 3, [0.95, 0.97, 0.96], 1),
        ([7.0] * 3, [0.99, 0.99 + 1e-10, 0.99], [0.95, 0.96, 0.97], 2),  # rounding is no use of a link
        ([7.0] * 3, [0.99, 0.99 + 1e-8, 0.99], [0.95, 0.96, 0.97], 1),
        ([7.0] * 3, [0.99] * 3, [0.96] * 3, 0),  # of equals the first
    ],
)
def test_ties_are_broken_by_use_and_then_by_fairness(
    queue: list[float], used: list[float], fair: list[float], best: int
) -> None:
    assert swept(queue, used, fair).best()["k"] == best


def test_metrics_other_than_queues_are_the_same_to_a_billionth_alone() -> None:
    result = swept([1.0] * 3, [0.7, 0.8, 0.9], [0.5, 0.5 + 1e-10, 0.5 + 1e-8])
    assert result.best("jain", minimise=False)["k"] == 2
    assert result.best("jain")["k"] == 1
    assert swept([1.0] * 2, [0.9, 0.99], [0.9, 0.1]).best("utilisation")["k"] == 0


def test_a_metric_without_a_value_is_no_best_point() -> None:
    result = swept([1.0, 2.0, 3.0], [0.99] * 3, [NAN, 0.5, 0.25])
    assert result.best("jain", subject_to=())["k"] == 2
    assert result.best("jain", minimise=False)["k"] == 1
    assert swept([1.0, 2.0], [NAN, 0.5], [NAN, 0.5]).best("jain")["k"] == 1


def test_ranks_count_what_is_strictly_ahead() -> None:
    result = swept([3.0, 1.0, 1.0, 2.0, NAN], [0.99] * 4 + [NAN], [1.0] * 4 + [NAN])
    assert [result.rank({"k": k})[0] for k in (0.0, 1.0, 2.0, 3.0)] == [4, 1, 1, 3]
    assert [result.rank({"k": k}, minimise=False, subject_to=())[0] for k in (0.0, 1.0, 3.0)] == [1, 3, 2]
    assert result.rank({"k": 0.4})[1] == 4  # of those with a value


def test_a_result_counts_points_failures_and_reasons() -> None:
    assert (STARVED.points, STARVED.failed, STARVED.names) == (5, 1, ["k"])
    dataset = STARVED.dataset.assign(reason=("k", [0, -1, -1, 10_000, 2], STARVED.dataset["reason"].attrs))
    assert fc.studies.SweepResult(dataset).reasons == {"not done": 3, REASONS[2]: 1}
    assert fc.studies.SweepResult(dataset).failed == 4
    last = dataset.assign(reason=("k", [0] * 4 + [len(REASONS) - 1], STARVED.dataset["reason"].attrs))
    assert fc.studies.SweepResult(last).reasons == {REASONS[-1]: 1}
