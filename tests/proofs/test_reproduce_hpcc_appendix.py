import math

import numpy as np
import pytest

from fluidcc.errors import InputError
from fluidcc.proofs.hpcc.fig_a3 import NETWORK, TARGET, mean_field
from fluidcc.proofs.verdict.registry import verify
from fluidcc.theory.queueing import bridge_exceeds, bridge_mean, exceeds, mean_waiting
from fluidcc.theory.recursion.optimal import max_min
from tests.proofs.figures import made

PIXELS = {"hpcc-a1": (1650, 660), "hpcc-a2": (1980, 660), "hpcc-a3": (1650, 1140), "hpcc-a4": (1980, 690)}


@pytest.mark.parametrize("name", PIXELS)
def test_figure(name, tmp_path):
    result, data = made(name, tmp_path, PIXELS[name])
    CHECKS[name](result.values, data)


def check_a1(values, data):
    assert all("units" in data[name].attrs for name in data.variables)
    assert np.all(np.diff(data.p_exact) < 0)
    assert float(data.p_exact.sel(length=20)) == pytest.approx(10 ** values["log10_p_more_than_20_wait"])
    # The mean number waiting is the sum of P(more than k wait).
    assert float(data.p_exact.sum()) == pytest.approx(values["mean_waiting"], abs=1e-10)
    assert np.all(data.work_bridge > data.work_exact)  # a bridge does not end with a whole packet


def check_a2(values, data):
    third = data.rate.values[:, 2]
    np.testing.assert_allclose(third[:5], [1, 1, 4 / 3, 16 / 11, 64 / 43])
    np.testing.assert_array_equal(data.rate_repaired.values[2:, 2], 1.5)
    # More links, more of them still moving after as many steps; those that the repair left settled settle first.
    moving = [values[f"moving_after_I_steps_{size}_share"] for size in data["size"].values]
    assert moving == sorted(moving)
    assert moving[0] > 0.1
    assert np.all(np.diff(data.settled.values, axis=1) >= 0)
    assert np.all(data.settled_repaired.values[:, 6:] == 1)


def check_a3(values, data):
    np.testing.assert_allclose(data.max_min, max_min(NETWORK.A, TARGET * NETWORK.C))
    np.testing.assert_allclose(data.rate[-1], data.max_min, atol=0.015)  # a = 0.01
    assert np.all(np.diff(data.long_over_short.values, axis=1) < 0)  # more noise, less for the long path
    assert values["long_over_short_a_0.001_noise_0.002"] > 0.5 > values["long_over_short_a_0.001_noise_0.005"]
    assert values["long_over_short_a_0.01_noise_0.02"] > 0.5 > values["long_over_short_a_0.01_noise_0.05"]


def check_a4(values, data):
    assert float(data.packet_queue.max()) >= values["packet_peak_queue_over_bdp"]
    assert not values["packet_drained_scripted"]  # 0.05 of the line is left to drain 64 BT
    assert 64 < values["packet_drained_rtts"] < 100
    # One packet is the least window of Algorithm 1, about 1/50 here.
    assert values["packet_window_divided_by"] == pytest.approx(52296 / 1042, rel=1e-6)
    # Where the existing flow reacts, the burst's end reports as little as beside an idle link.
    assert values["packet_window_at_last_ack_beside_hpcc"] == pytest.approx(
        1 / values["last_utilisation_at_emission_idle"], rel=0.2
    )


CHECKS = {"hpcc-a1": check_a1, "hpcc-a2": check_a2, "hpcc-a3": check_a3, "hpcc-a4": check_a4}


def test_periodic_sources_against_the_proof_in_forty_digits():
    evidence = verify(["hpcc-a1-tail"])[0].as_dict()["evidence"]
    assert exceeds(21, 50, 0.95) == pytest.approx(evidence["p_more_than_20_wait"], rel=1e-12)
    assert exceeds(20, 50, 0.95) == pytest.approx(evidence["p_more_than_20_in_system"], rel=1e-12)


def test_periodic_sources_in_cases_that_one_can_count():
    # One source never waits; the work is 1 when its packet comes, and falls to 0.
    assert mean_waiting(1, 0.7) == pytest.approx(0, abs=1e-15)
    np.testing.assert_allclose(exceeds([0, 0.25, 0.999, 1], 1, 0.5), [0.5, 0.375, 0.0005, 0])
    # Two at full load, in a period of 2: the closer one behind the other, by d < 1, waits 1 - d; d is uniform.
    assert mean_waiting(2, 1.0) == pytest.approx(0.25)
    assert exceeds(0, 2, 1.0) == 1
    np.testing.assert_allclose(bridge_exceeds([0, 1], 50, 1.0), [1, math.exp(-2 / 50)])
    x = np.linspace(0, 60, 60_001)
    assert np.trapezoid(bridge_exceeds(x, 50, 1.0), x) == pytest.approx(bridge_mean(50), rel=1e-9)


@pytest.mark.parametrize(("sources", "load"), [(0, 0.9), (2.5, 0.9), (True, 0.9), (3, 0), (3, 1.1), (3, math.nan)])
def test_periodic_sources_refuse_what_has_no_queue(sources, load):
    with pytest.raises(InputError, match=r"sources|load"):
        exceeds(1, sources, load)


def test_mean_field_without_noise_is_fair():
    assert mean_field(0.01, 1e-9) == pytest.approx(1, abs=1e-6)
    assert mean_field(0.001, 0.01) < mean_field(0.01, 0.01) < mean_field(0.1, 0.01)
