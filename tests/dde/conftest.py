"""Settings for tests of delay equations."""

import numpy as np
import pytest

from fluidcc.dde import fixed_points, linear


@pytest.fixture(autouse=True)
def small_batches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newton's method takes 32 rows at once, not 128: most tests have few, and each row is solved by itself.

    Linear parts come in multiples of 32 too, so that one row and a chart of ten share what is compiled. Slow tests keep
    what users have.
    """
    if "slow" not in request.keywords:
        monkeypatch.setattr(fixed_points, "_AT_ONCE", 32)
        monkeypatch.setattr(linear, "padded", lambda count: np.arange(-(-count // 32) * 32).clip(max=count - 1))
