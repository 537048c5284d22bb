import numpy as np
import pytest

from fluidcc.engines.run import simulate
from fluidcc.figures.acc import sensitivity as sensitivity
from fluidcc.figures.hpcc import fig1 as hpcc_fig1
from fluidcc.figures.hpcc import pod as hpcc_pod
from fluidcc.scenario.builders import fat_tree
from fluidcc.scenario.round_trips import base_rtt_with_serialisation
from tests.figures.figures import made


@pytest.mark.parametrize("name", sensitivity.CASES)
def test_slowdowns(name, tmp_path):
    result, data = made(name, tmp_path, (1650, 660))
    # An idle network is the fastest, but a flow of less than a packet is stored for less long than its base RTT says:
    # in a rack by up to 2 x 80 ns of 4.2 us.
    assert (data["slowdown"][:, data["unfinished"].values == 0] > 0.95).all()
    assert (data["size"].values < 30e6 + 1).all()
    assert (
        data.sizes["flow"]
        == result.values["small_flows"] + result.values["medium_flows"] + (result.values["large_flows"])
    )
    assert list(data["variant"].values) == list(sensitivity.CASES[name].variants)
    assert data["pauses"].shape == (len(data["variant"]), len(sensitivity.LAYERS))


@pytest.mark.slow
def test_pauses_spread(tmp_path):
    _, data = made("hpcc-fig1", tmp_path, (1650, 645))
    assert data["pauses"].sel(scheme="HPCC").sum() == 0
    many = data["pauses"].sum("hops").values
    np.testing.assert_array_equal(many > 0, data["stopped"].values > 0)
    assert data["senders"].min() >= hpcc_fig1.LEAST


@pytest.mark.slow
def test_a_storm_stops_a_pod(tmp_path):
    _, data = made("hpcc-case1", tmp_path, (1650, 645))
    assert (data["pauses"].sel(storm=False) == 0).all()
    before = data["goodput"].sel(time=slice(0, 4.5e-3))
    np.testing.assert_array_equal(before.sel(storm=True), before.sel(storm=False))
    assert data["stopped"].sel(scheme="DCQCN", storm=True) > data["stopped"].sel(scheme="HPCC", storm=True)


def test_slowdown_of_a_lone_flow_is_one():
    built = fat_tree([(0, 31, 0.0, 1e6)], **sensitivity.TREE, rate=sensitivity.LINE, scheme=sensitivity.ACC())
    took = simulate(built, 1e-3, engine="packet").summary["fct_s"]
    # The last packet is counted twice: in the base RTT, and in the size.
    packet = built.packet_size / sensitivity.LINE
    slack = packet / (base_rtt_with_serialisation(built, built.flows[0]) + 1e6 / sensitivity.LINE)
    assert 1 - 1.01 * slack <= sensitivity.slowdowns(built, took, 1e-3)[0] <= 1 + 1e-9
    late = sensitivity.slowdowns(built, [None], 1e-3)
    assert late[0] == pytest.approx(1e-3 / (took[0] + packet), rel=1e-9)


def test_runs_are_the_sample_of_a_ratio():
    """Seeds whose means are in ratios of 0.5 and 2 leave it open which is better; 0.5, 0.51 and 0.49 do not."""
    first, seeds = np.array([2.0, 2.0, 4.0, 4.0, 6.0, 6.0]), np.array([0, 0, 1, 1, 2, 2])
    for factors, decided in (((0.5, 2.0, 1.0), False), ((0.5, 0.51, 0.49), True)):
        found = np.array([first, first * np.repeat(factors, 2)])
        middle, low, high = sensitivity.ratio_over_seeds(found, seeds)
        assert middle == pytest.approx(np.prod(factors) ** (1 / 3))
        logs = np.log(factors)
        assert np.log(high / low) / 2 == pytest.approx(4.303 * logs.std(ddof=1) / 3**0.5, rel=1e-3)  # t of 2 degrees
        values = {f"{g}_mean_ratio_{end}": x for g in sensitivity.CLASSES for end, x in (("from", low), ("to", high))}
        assert sensitivity.undecided(values) == (
            [] if decided else [f"{g}_better_with_last" for g in sensitivity.CLASSES]
        )


@pytest.mark.parametrize("name", sensitivity.CASES)
def test_who_is_cut_short_has_no_slowdown(name):
    """The full figures demand that all end, and run long enough after the last arrival."""
    assert sensitivity.EXPECTED[name]()["unfinished"].holds(0.0)
    assert not sensitivity.EXPECTED[name]()["unfinished"].holds(1.0)
    assert sensitivity.PLAIN.until > 5 * sensitivity.PLAIN.arrivals


def test_pauses_by_layer():
    received = {"T1": 1, "T12": 2, "L1": 4, "S1": 8, "S16": 16, "hosts": 32}
    assert sensitivity.by_layer(received) == [32, 3, 4, 24]


def test_xoff_scales_with_what_an_incast_brings_to_an_uplink():
    papers, case = 64 * (1 - 16 / 320) / 4, sensitivity.CASES["acc-fig19"]
    ours = case.senders * (1 - sensitivity.TREE["hosts"] / sensitivity.HOSTS) / sensitivity.TREE["leaves"]
    assert case.xoff == pytest.approx(512e3 * ours / papers, rel=5e-3)


def test_tree_carries_up_what_its_hosts_send_as_the_papers_does():
    # Rates up and down of a ToR and of a leaf are equal in the paper's tree of 320 hosts: 16 x 100 = 4 x 400 Gb/s.
    tree = sensitivity.TREE
    assert tree["hosts"] * 100 == tree["leaves"] * 400
    assert tree["tors"] == tree["spines"] // tree["leaves"]
    assert hpcc_pod.POD["hosts"] * hpcc_pod.LINE == hpcc_pod.POD["leaves"] * hpcc_pod.FABRIC


def test_an_incast_is_of_distinct_hosts():
    for seed in range(20):
        rows = hpcc_fig1.incast(seed)
        assert len(set(rows[:, 0])) == len(rows) < hpcc_pod.HOSTS
        assert len(set(rows[:, 1])) == 1
        assert rows[0, 1] not in rows[:, 0]
