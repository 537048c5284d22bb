"""Snyder and Lebeck's figures of packets: where they are as printed and where not, and what their data must satisfy."""

import math

import numpy as np
import pytest

from fluidcc.proofs.fairness.common import LINE, Run, rank_correlation, run, staggered
from fluidcc.proofs.fairness.fig10 import FIGURES
from fluidcc.proofs.verdict.registry import list_figures, reproduce
from fluidcc.results.metrics import jain
from tests.proofs.figures import made

LAST = {16: 140e-6, 96: 940e-6}  # s: two flows every 20 us
MEGABYTE = 1e6


def fair_since(times, index, after):
    """Whether an index is below 0.95 just before a time, and at or above it from then on for 100 us."""
    before, since = index[times < after - 0.5e-6], index[(times > after - 0.5e-6) & (times < after + 100e-6)]
    return before[-1] < 0.95 and (since >= 0.95).all()


def check_jain(values, data):
    assert data["jain"].dims == ("scheme", "variant", "time")
    times, index = data.time.values, data["jain"].values
    assert ((index > 0) & (index <= 1 + 1e-12) | np.isnan(index)).all()
    for scheme, name in (("hpcc", "HPCC"), ("swift", "Swift")):
        after = LAST[16] + values[f"{scheme}_gbps_fair_after_s"]
        assert fair_since(times, data["jain"].sel(scheme=name, variant="gbps").values, after)
        assert (
            float(data["queue"].sel(scheme=name, variant="default").max())
            == values[f"{scheme}_default_queue_max_bytes"]
        )
        # A lower bound where it is not fair while all flows run.
        assert not values[f"{scheme}_default_fair_before_first_end"]
        bound = values[f"{scheme}_default_first_end_s"] - LAST[16]
        assert values[f"{scheme}_default_fair_after_s"] == pytest.approx(bound, abs=1e-9)
    # The first two flows have the link for 20 us alone.
    assert float(data["jain"].sel(time=5e-6, method="nearest").min()) > 0.99


def check_finish(values, data):
    finish = data["finish"].values
    np.testing.assert_allclose(data["start"], np.arange(16) // 2 * 20e-6)
    # The link delivers no more than its rate: k flows are not over before k MB have crossed it, nor one before its own.
    assert (np.sort(finish, axis=1) > np.arange(1, 17) * MEGABYTE / LINE).all()
    assert (finish - data["start"].values > MEGABYTE / LINE).all()
    assert np.ptp(finish[0]) == values["default_spread_s"]
    assert finish[0][[14, 15]].max() < finish[0][[0, 1]].min()


def check_incasts(values, data):
    assert {"jain_16", "queue_16", "jain_96", "queue_96"} <= set(data)
    after = LAST[16] + values["N16_vai_sf_fair_after_s"]
    assert fair_since(data["time_16"].values, data["jain_16"].sel(variant="vai_sf").values, after)
    # 30 ACKs of a 96th of the link; packets have their headers, HPCC's telemetry too.
    period = 30 * 96 * 1000 / LINE
    assert period <= values["N96_vai_sf_sampling_period_of_fair_share_s"] < 1.1 * period
    assert values["N96_s5_sampling_period_of_fair_share_s"] * 6 == pytest.approx(
        values["N96_vai_sf_sampling_period_of_fair_share_s"]
    )
    # Fewer ACKs, sooner fair and less of a queue; references are at least what ACKs make of them.
    assert values["N96_s5_fair_after_s"] < values["N96_vai_sf_fair_after_s"]
    assert values["N96_s5_queue_mean_bytes"] < values["N96_vai_sf_queue_mean_bytes"]
    assert values["N96_vai_sf_references_over_bdp_at_first"] >= values["N96_vai_sf_windows_over_bdp_at_first"] > 1
    # What no end cuts short takes as long, or longer than the bound.
    for key in ("default", "gbps", "vai_sf"):
        without = values[f"N16_{key}_fair_after_without_ends_s"]
        if values[f"N16_{key}_fair_before_first_end"]:
            assert without == pytest.approx(values[f"N16_{key}_fair_after_s"], abs=1e-9)
        else:
            assert without > values[f"N16_{key}_fair_after_s"]


def check_tree(values, data):
    """No tier is oversubscribed: 16 hosts of 100 Gb/s under 4 links of 400, and so on up."""
    tier = data["tier"].values[data["ends"].values]  # nodes are numbered from 0
    up = {k: float(data["rate"].values[tier.sum(axis=1) == k].sum()) for k in (1, 3, 5)}
    assert up[1] == up[3] == up[5] == 320 * LINE
    assert values["rtt_rack_s"] < values["rtt_pod_s"] < values["rtt_across_s"]
    # Packets and ACKs wait for no one: 12 links of 1 us, the rest is serialisation.
    assert 12e-6 < values["rtt_across_s"] < 12.5e-6


def check_joiner(values, data):
    joined = data.sel(time=slice(0, None)).isel(time=1)
    assert (joined["lead"] > 20).all()  # a whole window against a 64th, or somewhat more
    assert (joined["joiner"] < 2).all()
    assert (joined["others"].sel(variant="vai_sf") > 8).all()
    assert (data["others"].sel(variant=["default", "sf"]) == 0).all()
    assert values["swift_unscaled_lead_1ms"] > 5 * values["swift_default_lead_1ms"]


def check_tradeoffs(values, data):
    # Where the swept settings are the preset's, all sweeps have run the same.
    for scheme in ("hpcc", "swift"):
        for metric in ("fair_after_s", "queue_mean_bytes", "queue_p99_bytes", "utilisation"):
            by_s = float(data[f"{scheme}_{metric}_sampling_packet"].sel(sampling=30))
            assert by_s == float(data[f"{scheme}_{metric}_ai_cap_packet"].sel(ai_cap=100))
            assert scheme == "hpcc" or by_s == float(data[f"swift_{metric}_base_target_packet"].sel(base_target=5e-6))
    used = data["hpcc_utilisation_sampling_packet"].values
    assert (np.diff(used) > 0).all()
    assert used[-1] <= 1
    # Late flows have the large windows and the small dampeners: few tokens at a time are worse than none.
    for scheme in ("hpcc", "swift"):
        slow = data[f"{scheme}_fair_after_s_ai_cap_packet"]
        assert float(slow.sel(ai_cap=10)) > float(slow.sel(ai_cap=1)) > float(slow.sel(ai_cap=100))


# Where the next ACK draws again the trend stays; where an ignored update costs its round trip it ends, and finishes
# spread by more than half of the default's.
STILL_A_TREND = ("probabilistic_rank_correlation", "probabilistic_period_much_closer")
SLOWER = ("N96_vai_sf_much_sooner",)
UNSCALED = ("swift_vai_sf_lead_less_than_default", "swift_vai_sf_fairer_than_default")
MADE = {
    "fairness-fig1": ((1650, 1050), check_jain, ()),
    "fairness-fig2": ((1650, 840), check_finish, STILL_A_TREND),
    "fairness-fig3": ((1650, 840), check_finish, (*STILL_A_TREND, "probabilistic_much_closer")),
    "fairness-fig5": ((1650, 1050), check_incasts, (*SLOWER, "N96_vai_sf_queue_near_default")),
    "fairness-fig6": ((1650, 1050), check_incasts, SLOWER),
    "fairness-fig7": ((1650, 750), check_tree, ()),
    "fairness-fig8": ((1650, 840), check_finish, ()),
    "fairness-fig9": ((1650, 840), check_finish, ()),
    "fairness-joiner": ((1650, 1050), check_joiner, UNSCALED),
    "fairness-tradeoffs": ((1650, 1350), check_tradeoffs, ()),
}


def test_all_are_here():
    elsewhere = {"fairness-fig4", *FIGURES}
    assert {name for name in list_figures() if name.startswith("fairness-")} - elsewhere == set(MADE)


@pytest.mark.parametrize("name", MADE)
def test_figure(name, tmp_path):
    size, check, not_as_printed = MADE[name]
    result, data = made(name, tmp_path, size, not_as_printed)
    assert all("units" in data[each].attrs for each in data.data_vars)
    check(result.values, data)


def test_run_reads_its_trace():
    scenario = staggered("hpcc", "default", 4, size="200KB")
    found = run([scenario], 400e-6, 1e-6)[0]
    assert isinstance(found, Run)
    np.testing.assert_array_equal(found.starts, [0, 0, 20e-6, 20e-6])
    assert found.first_end == found.finish.min()
    assert found.spread == found.finish.max() - found.finish.min()
    at = found.trace.dataset.sel(time=30e-6, method="nearest")
    assert float(found.jain.sel(time=30e-6, method="nearest")) == pytest.approx(float(jain(at["window"].values)))
    assert math.isfinite(found.fair_after())
    assert found.fair_after(1.0) == pytest.approx(found.first_end - 20e-6)  # never: the bound
    assert found.fair_after(0.3) == 0.0  # at once: four windows have at least 1/4
    late = found.queue(late=True)
    assert 0 < len(late) == pytest.approx((found.first_end - 20e-6) / 2 / 1e-6, abs=2)


def test_rank_correlation():
    assert rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([5.0, 8.0, 80.0])) == pytest.approx(1)
    assert rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([5.0, 4.0, -1.0])) == pytest.approx(-1)
    assert rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([5.0, 5.0, 5.0])) == 0


@pytest.mark.slow
def test_fluid_finishes_as_packets_do(tmp_path):
    values = reproduce("fairness-fig8", tmp_path).values
    for key in ("default", "vai_sf"):
        for name in ("first_finish_s", "last_finish_s", "spread_s"):
            assert values[f"fluid_{key}_{name}"] == pytest.approx(values[f"{key}_{name}"], rel=0.1)


@pytest.mark.slow
def test_fluid_trades_as_packets_do(tmp_path):
    result = reproduce("fairness-tradeoffs", tmp_path)
    assert result.agrees
    off = {name: value for name, value in result.values.items() if "_fluid_off_by_" in name}
    assert len(off) == 15
    # A twelfth of the bandwidth-delay product of 50 KB, half of it at the 99th percentile; 3 % of the link.
    limits = {"queue_mean": 50e3 / 12, "queue_p99": 25e3, "utilisation": 0.03}
    for name, value in off.items():
        assert value < next(limit for metric, limit in limits.items() if metric in name), name
