"""Random traffic: its load, its sizes, and that flows are between two hosts."""

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.builders.workloads import SIZES, distribution

LINE = 100e9 / 8


@pytest.mark.parametrize("sizes", SIZES)
def test_load_and_sizes_are_those_asked_for(sizes):
    """Over 400 seeds, of 600 flows each; a mean's standard error is then 0.2 % of the arrivals."""
    hosts, until = 32, 1e-2
    at, share = np.array(SIZES[sizes]).T
    mean = np.sum(np.diff(share) * (at[1:] + at[:-1]) / 2)
    drawn = [
        fc.fabrics.poisson_flows(hosts, load=mean / 4e6, until=until, rate="60Gbps", sizes=sizes, seed=seed)
        for seed in range(400)
    ]
    count = hosts * 60e9 / 8 * until / 4e6
    assert np.mean([len(rows) for rows in drawn]) == pytest.approx(count, rel=4 * (count * 400) ** -0.5)
    rows = np.concatenate(drawn)
    found = [np.mean(rows[:, 3] <= size) for size in at]
    np.testing.assert_allclose(found, share, atol=4 * 0.5 * len(rows) ** -0.5 + 1e-3)  # a size of 100 B is in a step
    assert (rows[:, 0] != rows[:, 1]).all()
    assert np.unique(rows[:, :2]).tolist() == list(range(hosts))
    for one in drawn[:20]:
        assert (np.diff(one[:, 2]) >= 0).all()
        assert one[-1, 2] <= until
        assert (one[:, 3] == np.round(one[:, 3])).all()
        assert one[:, 3].min() >= 1


def test_the_same_seed_draws_the_same_flows():
    first, second, other = (fc.fabrics.poisson_flows(8, load=0.5, until="5ms", seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first, second)
    assert first.shape != other.shape or not np.array_equal(first, other)


def test_sizes_can_be_given():
    rows = fc.fabrics.poisson_flows(4, load=0.5, until="10ms", sizes=[(1000, 0.0), (2000, 1.0)])
    assert rows[:, 3].min() >= 1000
    assert rows[:, 3].max() <= 2000
    assert rows[:, 3].mean() == pytest.approx(1500, rel=0.01)


def test_an_incast_is_many_senders_to_one_receiver_at_once():
    rows = fc.fabrics.incasts(320, load=0.2, until="10ms", senders=64, size="20KB", seed=3)
    events = rows.reshape(-1, 64, 4)
    count = 0.2 * 320 * LINE * 1e-2 / (64 * 20e3)
    assert len(events) == pytest.approx(count, rel=4 * count**-0.5)
    for event in events:
        assert len(set(event[:, 0])) == 64
        assert len(set(event[:, 1])) == len(set(event[:, 2])) == 1
        assert event[0, 1] not in event[:, 0]
    assert (rows[:, 3] == 20e3).all()
    assert fc.fabrics.incasts(4, load=1e-6, until="1us", senders=2).shape == (0, 4)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"load": 0}, "load"),
        ({"load": 1.2}, "load"),
        ({"until": "0s"}, "until"),
        ({"sizes": "video"}, "sizes"),
        ({"sizes": [(0, 0.0), (10, 0.9)]}, "sizes"),
        ({"sizes": [(10, 0.0), (5, 1.0)]}, "sizes"),
        ({"hosts": 1}, "hosts"),
    ],
)
def test_traffic_that_makes_no_sense_is_refused(options, named):
    with pytest.raises(fc.InputError, match=named):
        fc.fabrics.poisson_flows(**{"hosts": 8, "load": 0.5, "until": "1ms"} | options)


@pytest.mark.parametrize(
    ("sizes", "good"),
    [
        ([(0, 0.0), (10, 0.5), (20, 0.5), (30, 1.0)], True),  # nothing between 10 and 20
        ([(0, 0.0), (1, 0.5), (2, 1.0)], True),  # of a byte or two
        ([(0, 0.0), (10, 0.5), (20, 0.4), (30, 1.0)], False),
        ([(0, 0.0), (10, 0.5), (10, 0.6), (30, 1.0)], False),
        ([(-1, 0.0), (10, 1.0)], False),
        ([(0, 0.1), (10, 1.0)], False),
        ([(0, 1.0)], False),
    ],
)
def test_shares_never_fall_and_sizes_rise(sizes, good):
    if good:
        assert distribution(sizes) == sizes
    else:
        with pytest.raises(fc.InputError, match="pairs that rise"):
            distribution(sizes)


def test_an_incast_needs_hosts_to_send():
    with pytest.raises(fc.InputError, match="senders"):
        fc.fabrics.incasts(8, load=0.5, until="1ms", senders=8)
    with pytest.raises(fc.InputError, match="size"):
        fc.fabrics.incasts(8, load=0.5, until="1ms", senders=2, size="0B")


def test_everybody_to_everybody_has_a_limit():
    assert len(fc.fabrics.all_to_all_flows(1024)) == 1024 * 1023
    with pytest.raises(fc.InputError, match="over a million flows"):
        fc.fabrics.all_to_all_flows(1025)


def test_everybody_sends_to_the_host_after_it_first() -> None:
    rows = fc.fabrics.all_to_all_flows(4, size="2MB")
    assert rows[:, :2].tolist() == [[source, (source + k) % 4] for source in range(4) for k in (1, 2, 3)]
    assert rows[:, 2:].tolist() == [[0.0, 2e6]] * 12


@pytest.mark.parametrize("hosts", [2, 3, 9])
def test_a_permutation_is_one_cycle_of_all_hosts(hosts: int) -> None:
    """Following targets from host 0 meets each host once; all begin at once."""
    rows = fc.fabrics.permutation_flows(hosts, size="2MB", seed=4)
    targets, seen = dict(rows[:, :2].astype(int).tolist()), [0]
    while targets[seen[-1]] != 0:
        seen.append(targets[seen[-1]])
    assert sorted(seen) == list(range(hosts))
    assert rows[:, 2:].tolist() == [[0.0, 2e6]] * hosts
