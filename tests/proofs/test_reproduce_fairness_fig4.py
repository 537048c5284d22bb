"""Snyder and Lebeck's Figure 4. What the figure expects of itself has its tolerances there; here 1e-9 is rounding."""

import numpy as np
import pytest

import fluidcc as fc
from tests.proofs.figures import made


@pytest.mark.slow
def test_figure_4(tmp_path):
    result, data = made("fairness-fig4", tmp_path, (2310, 1140))
    assert all("units" in data[name].attrs for name in data.variables)
    values = result.values
    # (2) by hand: S = C/(1 + beta C t/(s MTU)), R = C exp(-beta t/r), in bytes and nanoseconds.
    t, C = data.time.values * 1e9, np.array([12.5, 6.25])
    R, S = C * np.exp(-0.5 * t / 30e3)[:, None], C / (1 + 0.5 * C * t[:, None] / 30e3)
    np.testing.assert_allclose(data.lead / 1e9, R[:, 0] - R[:, 1] - S[:, 0] + S[:, 1], atol=1e-9)
    assert (data.lead.values[t > values["sign_change_s"] * 1e9] < 0).all()
    # The metric has it that sampling is the less fair there; ratios have it the other way round.
    assert values["ratio_per_rtt_at_sign_change"] > 1.9 > 1.01 > values["ratio_sampling_at_sign_change"]
    # The map: later for longer RTTs, and a point of it alone.
    ahead = data.map_sign_change.values
    both = np.isfinite(ahead[1:]) & np.isfinite(ahead[:-1])
    assert (np.diff(ahead, axis=0)[both] > 0).all()
    one = fc.theory.sampling_lead("100Gbps", "50Gbps", rtt=float(data.rtt[20]), acks=float(data.acks[10]))
    np.testing.assert_allclose(ahead[20, 10], one.sign_change, rtol=1e-9)
    assert np.isnan(ahead).any()
    # With delay the flow that was faster ends slower.
    assert values["shared_queue_ratio_of_first_to_second_sampling"] < 1
