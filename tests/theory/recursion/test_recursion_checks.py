"""Checks of arrays before a recursion: shapes, bounds, and what of them is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fluidcc.errors import InputError
from fluidcc.theory.recursion.checks import incidence, positive, rational, scalar, whole, whole_numbers


def test_more_than_a_matrix_or_a_list_is_taken_in_batches_alone() -> None:
    two = np.ones((2, 3))
    for batched in (True, False):
        assert positive("C", two[0], 3, "link", batched=batched).tolist() == [1, 1, 1]
        assert incidence(two, batched=batched).tolist() == two.tolist()
    assert positive("C", two, 3, "link", batched=True).shape == (2, 3)
    assert incidence([two, two], batched=True).shape == (2, 2, 3)
    for refused in (
        lambda: positive("C", two, 3, "link"),
        lambda: positive("C", two, 2, "link", batched=True),
        lambda: positive("C", 1.0, 1, "link", batched=True),
        lambda: positive("C", two, None, "link"),
        lambda: positive("C", [], None, "link"),
        lambda: incidence([two, two]),
        lambda: incidence(two[0], batched=True),
        lambda: incidence(np.ones((0, 3))),
    ):
        with pytest.raises(InputError, match="shape"):
            refused()
    assert positive("C", [1, 2], None, "link").tolist() == [1, 2]


def test_a_path_uses_a_link_or_not_and_one_at_least() -> None:
    with pytest.raises(InputError, match=r"A\[1, 0\]: 0.5"):
        incidence([[1, 1], [0.5, 0]])
    with pytest.raises(InputError, match="path 1 uses no link"):
        incidence([[1, 0], [1, 0]])
    assert incidence([[1, 1], [0, 0]]).tolist() == [[1, 1], [0, 0]]  # a link that nobody uses


@pytest.mark.parametrize("bad", [0, -1])
def test_0_is_not_positive(bad: int) -> None:
    for check in (positive, rational):
        with pytest.raises(InputError, match=rf"R\[1\]: {bad}; give every path"):
            check("R", [1, bad], 2, "path")
    assert rational("R", np.array([0.5, 3.0]), 2, "path").tolist() == [Fraction(1, 2), Fraction(3)]
    with pytest.raises(InputError, match="shape"):
        rational("R", [1, 2, 3], 2, "path")


def test_bounds_of_one_number_are_allowed_but_for_0() -> None:
    assert scalar("a", 0, zero=True) == 0.0
    assert scalar("a", 1, most=1) == 1.0
    for value, zero in ((0, False), (-1, True), (1.1, False), ([0.5], False)):
        with pytest.raises(InputError, match="give one number"):
            scalar("a", value, zero=zero, most=1)  # type: ignore[arg-type]


def test_whole_numbers_from_the_least_on() -> None:
    assert whole("n", 1) == 1
    assert whole_numbers("k", 2, 3, least=2).tolist() == [2, 2, 2]
    assert whole_numbers("k", [2, 5], 2, least=2).tolist() == [2, 5]
    for value in (0, True, 1.0):
        with pytest.raises(InputError, match="whole number of at least 1"):
            whole("n", value)  # type: ignore[arg-type]
    for values in ([2, 1], [2, 2.5]):
        with pytest.raises(InputError, match=r"k\[1\]"):
            whole_numbers("k", values, 2, least=2)
    with pytest.raises(InputError, match="shape"):
        whole_numbers("k", [2, 2, 2], 2, least=2)
