"""Settings for tests of delay equations."""

import pytest

from fluidcc.dde import newton


@pytest.fixture(autouse=True)
def small_batches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newton's method takes 32 rows at once, not 128: most tests have few, and each row is solved by itself.

    Slow tests keep what users have.
    """
    if "slow" not in request.keywords:
        monkeypatch.setattr(newton, "_AT_ONCE", 32)
