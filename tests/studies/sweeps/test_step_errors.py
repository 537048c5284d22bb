"""Step errors of a sweep's points, from arrays that are written here."""

from __future__ import annotations

import numpy as np
import pytest

from fluidcc.studies.sweeps.batch import _differs, _failed, largest_error


def test_a_difference_is_relative_to_the_largest_of_the_first_run() -> None:
    """By sums of both, by the second run, or by each row's own it would be another number."""
    ours = np.array([[-8.0, 1.0, 0.0], [4.0, 2.0, 0.0]])
    theirs = np.array([[-10.0, 1.0, 0.0], [3.0, 1.5, 0.0]])
    assert _differs(ours, theirs, 0.0) == pytest.approx([2 / 8, 0.5 / 2, 0.0])
    assert _differs(ours, theirs, 4.0) == pytest.approx([2 / 8, 0.5 / 4, 0.0])  # a least scale


def test_the_largest_error_is_of_points_that_have_one() -> None:
    """A failed point's NaN does not count; one without a number among the others leaves none to say."""
    errors = {"reason": np.array([0, 0, 3]), "queue_error_rel": np.array([0.01, 0.03, np.nan])}
    rates = np.array([0.2, 0.1, 9.0])
    found = largest_error({**errors, "rate_error_rel": rates})
    assert (found["queue_rel"], found["rate_rel"], found["as_expected"]) == (0.03, 0.2, None)
    rates = np.array([0.2, np.inf, 9.0])
    assert largest_error({**errors, "rate_error_rel": rates})["rate_rel"] is None
    nobody = largest_error({**errors, "reason": np.array([1, 2, 3]), "rate_error_rel": rates})
    assert (nobody["queue_rel"], nobody["rate_rel"]) == (None, None)


def test_a_failed_point_has_a_reason_and_no_numbers() -> None:
    found = {"reason": np.zeros(3), "queue": np.ones(3), "rates": np.ones((3, 2)), "steps": np.float64(5)}
    _failed(found, np.array([0, 2]), 4)
    np.testing.assert_array_equal(found["reason"], [4, 0, 4])
    np.testing.assert_array_equal(found["queue"], [np.nan, 1, np.nan])
    np.testing.assert_array_equal(np.isnan(found["rates"]), [[True, True], [False, False], [True, True]])
    assert found["steps"] == 5
