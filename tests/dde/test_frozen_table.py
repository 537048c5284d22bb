"""Values of the frozen table of delay equations: published Hopf points, folds, kept sums, cycles, users' cases."""

from __future__ import annotations

import numpy as np
import pytest

from tests.dde.frozen import CASES, WITHIN, Case, frozen

FROZEN = frozen()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}: {case.name}")
def test_a_case_keeps_its_values(case: Case) -> None:
    """A guard that was removed though a case needs it: a value moves, or is lost, or is another equilibrium's."""
    assert np.ravel(case.values()) == pytest.approx(FROZEN[case.name], rel=WITHIN[case.kind], abs=1e-14, nan_ok=True)


def test_the_table_has_each_case_once() -> None:
    assert list(FROZEN) == [case.name for case in CASES]
