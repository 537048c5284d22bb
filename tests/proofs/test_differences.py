"""How fast DCQCN's flows become equal in the long run, by the proofs' own Jacobian."""

import pytest

from fluidcc.proofs.dcqcn.stability import difference_root


@pytest.mark.parametrize(("gain", "decay"), [(16, 74.5), (64, 79.2), (256, 64.9), (1024, 26.3)])
def test_roots_of_the_difference_by_gain(gain, decay):
    """Found before by another linearisation and another search, fluidcc.stability's, to a tenth."""
    assert difference_root(2, 1 / gain).real == pytest.approx(-decay, abs=0.05)


def test_without_delay_roots_are_eigenvalues():
    """Two flows have a slow pair; a delay of 50 us, a three-hundredth of its time, hardly moves it."""
    assert difference_root(2, 1 / 256, 0.0) == pytest.approx(difference_root(2, 1 / 256), rel=0.02)
