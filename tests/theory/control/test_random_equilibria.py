"""Equilibria of random DCQCN settings: on the right-hand side, and by runs beside them; bounds in the script."""

import pytest

from benchmarks import dcqcn_equilibria
from benchmarks.dcqcn_equilibria import LEAVES, STAYS, STILL, cases, distances, settings


def check(count: int, seed: int) -> None:
    found = cases(settings(count, seed))
    assert max(case.moved for case in found) < STILL
    assert any(case.unequal for case in found)
    tried = [case for case in found if case.counts]
    assert {case.stable for case in tried} == {True, False}
    for case, end in zip(tried, distances(tried), strict=True):
        assert end < STAYS if case.stable else end > LEAVES, (case.root, end, case.scenario)


@pytest.mark.slow
def test_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check 8 of the 200 that ``python -m benchmarks.dcqcn_equilibria 200`` runs, in batches as small as they are."""
    monkeypatch.setattr(dcqcn_equilibria, "_BATCH", 12)
    check(8, 0)
