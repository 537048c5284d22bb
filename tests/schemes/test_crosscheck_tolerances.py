"""Tests of where the schemes promise an agreement of fluid and packets: in an incast, and in nothing else."""

from __future__ import annotations

import pytest

import fluidcc as fc
from fluidcc.contract.registry import scheme_of
from fluidcc.scenario.model import resolve

SCHEMES = (fc.DCQCN(), fc.HPCC(), fc.Swift(), fc.TIMELY(), fc.DCTCP(), fc.ACC(), fc.NSCC())


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
def test_tolerances_are_an_incast_s(scheme: fc.Scheme) -> None:
    """Notice a promise about several links that nobody has measured, and an incast without one."""
    side = scheme_of(scheme).crosscheck
    assert side is not None
    assert side.tolerances(resolve(fc.incast(4, scheme=scheme)))
    assert side.tolerances(resolve(fc.parking_lot(3, scheme=scheme))) == {}
