"""Predictions of what packets would measure: on surfaces by hand, whose differences are known."""

from __future__ import annotations

import numpy as np
import pytest

from fluidcc.studies.tuning.evaluate import Measured
from fluidcc.studies.tuning.surfaces import predicted

PLACES = np.random.default_rng(1).random((60, 2))
AT = np.array([[0.5, 0.5], [0.3, 0.7]])
CLOSE = 0.02  # of a surface of slope 1 through 60 places, 0.1 apart, with runs as noisy as the smoothing supposes


def queue(places: np.ndarray) -> np.ndarray:
    """Bytes, of which the logarithm is a plane: 20 KB to 400 KB."""
    return 2e4 * np.exp(2 * places[:, 0] + places[:, 1])


def measured(**cases: list[np.ndarray]) -> list[Measured]:
    """A row per point of columns per case."""
    columns = {name.replace("__", "."): np.stack(values, axis=1) for name, values in cases.items()}
    return [Measured({name: rows[k] for name, rows in columns.items()}, {}) for k in range(len(PLACES))]


def test_a_factor_between_packets_and_the_search_is_kept() -> None:
    """Packets have twice the queue in the second case, and a twentieth less of the link in the first."""
    used = 1 - 0.1 * PLACES[:, 0]
    searched = measured(queue_bytes__p99=[queue(PLACES)], utilisation=[used])
    ran = measured(queue_bytes__p99=[queue(PLACES), 2 * queue(PLACES)], utilisation=[used - 0.05, used])[:9]
    found = predicted({"queue_bytes.p99", "utilisation"}, (PLACES, searched), (PLACES[:9], ran), [0, 0], AT)
    for one, long, share in zip(found, queue(AT), 1 - 0.1 * AT[:, 0], strict=True):
        assert one.metrics["queue_bytes.p99"] == pytest.approx([long, 2 * long], rel=3 * CLOSE)
        assert one.metrics["utilisation"] == pytest.approx([share - 0.05, share], abs=CLOSE)
        assert one.errors == {}


def test_each_packet_case_follows_the_search_s_case_that_it_is_like() -> None:
    searched = measured(jain=[PLACES[:, 0], PLACES[:, 1]])
    ran = measured(jain=[1 - (1 - PLACES[:, 1]) / 2, PLACES[:, 0]])[:9]
    found = predicted({"jain"}, (PLACES, searched), (PLACES[:9], ran), [1, 0], AT)
    assert found[1].metrics["jain"] == pytest.approx([0.85, 0.3], abs=2 * CLOSE)


def test_a_point_that_was_given_up_tells_of_its_first_cases_only() -> None:
    """Nothing is known of the second case: the search is believed. No value, or NaN, is not a value of 0."""
    searched = measured(jain=[PLACES[:, 0]])
    ran = [Measured({"jain": np.array([1 - 1.4 * (1 - place[0])])}, {}) for place in PLACES[:9]]
    ran[0].metrics["jain"][0] = np.nan
    found = predicted({"jain"}, (PLACES, searched), (PLACES[:9], ran), [0, 0], AT)
    assert found[0].metrics["jain"] == pytest.approx([0.3, 0.5], abs=2 * CLOSE)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_points_or_points_on_a_line_give_no_slope_that_is_not_there(count: int) -> None:
    line = np.column_stack([np.linspace(0.2, 0.8, 10), np.full(10, 0.5)])
    for places in (PLACES[:count], line):
        searched = [Measured({"jain": np.array([0.7])}, {}) for _ in places]
        found = predicted({"jain"}, (places, searched), (places, searched), [0], AT)
        assert [one.metrics["jain"][0] for one in found] == pytest.approx([0.7, 0.7], abs=CLOSE)


def test_differences_are_learnt_where_packets_ran() -> None:
    """Packets are better the further they are to the right, of which the search knows nothing."""
    searched = measured(jain=[np.full(60, 0.5)])
    ran = measured(jain=[0.5 + 0.4 * PLACES[:, 0]])[:30]
    found = predicted({"jain"}, (PLACES, searched), (PLACES[:30], ran), [0], np.array([[0.2, 0.5], [0.8, 0.5]]))
    assert [one.metrics["jain"][0] for one in found] == pytest.approx([0.58, 0.82], abs=0.06)


def test_a_cliff_of_utilisation_is_seen_as_one() -> None:
    """Full to the right of 0.5 and falling to 0.6 left of it: no share above 1, and none too low beside the cliff."""
    places = np.random.default_rng(2).random((80, 1))
    used = np.minimum(1.0, 1 - 0.8 * (0.5 - places[:, 0]))
    searched = [Measured({"utilisation": np.array([each])}, {}) for each in used]
    at = np.linspace(0.05, 0.95, 19)[:, None]
    found = predicted({"utilisation"}, (places, searched), (places, searched), [0], at)
    shares = np.array([one.metrics["utilisation"][0] for one in found])
    assert shares.max() <= 1.001
    assert shares[at[:, 0] > 0.52].min() > 0.995
    assert shares == pytest.approx(np.minimum(1.0, 1 - 0.8 * (0.5 - at[:, 0])), abs=0.02)
