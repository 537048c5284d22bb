"""Builders: named nodes, sound paths, the published topologies, and what they refuse."""

import gzip
import itertools
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.builders.common import marking_of
from fluidcc.errors import InputError
from fluidcc.scenario.model import base_rtt, resolve_marking
from fluidcc.scenario.routing import check_paths
from fluidcc.scenario.switches import in_bytes
from fluidcc.schemes.hpcc import PRESETS

FAT = Path(__file__).parents[1] / "data" / "ns3_hpcc_fat_tree.txt.gz"


def ends(scenario: fc.Scenario) -> Counter:
    return Counter((link.source, link.target) for link in scenario.links)


@pytest.mark.parametrize(
    "scenario",
    [
        fc.incast(3),
        fc.parking_lot(4),
        fc.chain(3),
        fc.fat_tree([(0, 319), (5, 16), (1, 2)]),
        fc.clos_testbed([(0, 15), (0, 5), (10, 19)]),
    ],
    ids=["incast", "parking-lot", "chain", "fat-tree", "testbed"],
)
def test_every_node_has_a_name_and_paths_hold_together(scenario):
    assert all(link.source and link.target for link in scenario.links)
    assert all(flow.source and flow.target for flow in scenario.flows)
    assert all(count == 1 for count in ends(scenario).values())
    check_paths(scenario)


def test_flows_of_a_parking_lot_have_hosts_of_their_own():
    scenario = fc.parking_lot(4)
    assert len({flow.source for flow in scenario.flows} | {flow.target for flow in scenario.flows}) == 8
    assert [link.target for link in scenario.links] == ["switch 1", "switch 2", "switch 3"]
    assert all(flow.egress_delay == 1e-6 for flow in scenario.flows)


def test_builders_take_fields_of_the_network():
    for build in (fc.incast, fc.parking_lot):
        scenario = build(3, buffer="1MB", pfc=fc.PFC("50KB"), ack_bytes="84B", timing="ns3", header_bytes="48B")
        assert (scenario.buffer, scenario.ack_bytes, scenario.header_bytes) == (1e6, 84.0, 48.0)
        assert scenario.pfc is not None
        assert scenario.pfc.xoff == 50e3
        assert scenario.timing == "ns3"
    preset = PRESETS["hpcc-sim"]
    assert fc.incast(2, rate="100Gbps", scheme=preset.scheme, **preset.network).wire_packet == 1048.0


@pytest.mark.parametrize(
    ("name", "hint"), [("bufer", "did you mean buffer"), ("colour", "known are"), ("links", "known")]
)
def test_unknown_fields_of_the_network_are_refused_by_name(name, hint):
    for build in (fc.incast, fc.parking_lot, fc.chain, lambda **given: fc.fat_tree([(0, 1)], **given)):
        with pytest.raises(TypeError, match=rf"there is no .{name}.; .*{hint}"):
            build(**{name: 1})


def test_marking_may_follow_the_rate():
    def marking(rate):
        return fc.RED("100KB", "400KB", 0.2) if rate == "400Gbps" else None

    links = {link.name: link for link in fc.fat_tree([(0, 1)], marking=marking).links}
    assert links["T1->L1"].marking is not None
    assert links["T1->H0"].marking is None


# -- ACC's chain -----------------------------------------------------------------------------------------------


def test_the_chain_is_accs():
    scenario = fc.chain()
    assert scenario.pfc is not None
    assert scenario.pfc.xoff == 512e3
    f0, f1, *bursts = scenario.flows
    crossed = [[scenario.links[i].name for i in flow.path] for flow in (f0, f1)]
    assert crossed[0] == ["SW1->SW2", "SW2->SW3", "SW3->SW4", "SW4->R0"]
    assert crossed[1] == ["SW1->SW2", "SW2->SW3", "SW3->SW4", "SW4->R1"]
    # ACC 2.3: the pipe of F1, C RTT / (N + 1), is "around 0.012MB in this scenario" with N = 20.
    assert 12.5e9 * base_rtt(scenario, f1) / 21 == pytest.approx(0.012e6, rel=0.01)
    assert Counter(flow.source for flow in bursts) == dict.fromkeys((f"H{i}" for i in range(1, 16)), 33)
    assert {flow.size for flow in bursts} == {64e3}
    starts = sorted({flow.start for flow in bursts})
    assert starts[0] == 1e-3
    assert starts[-1] < 3e-3
    apart = np.diff(starts)
    assert apart[:8] == pytest.approx(64e3 / 12.5e9)  # at line rate, until 512 KB wait at SW4
    assert apart[9:] == pytest.approx(16 * 64e3 / 12.5e9)  # then at the share of R1's link


def test_the_chains_marking_may_follow_its_rate():
    asked = []
    fc.chain(
        0, rate="40Gbps", initial_rate="10Gbps", marking=lambda rate: asked.append(rate) or fc.RED("5KB", "9KB", 1)
    )
    assert asked == ["40Gbps"]


def test_the_chains_bursts_can_be_set():
    assert len(fc.chain(0).flows) == len(fc.chain(3, burst_time=0).flows) == 2
    assert len(fc.chain(2, burst_time="30us", burst_size="125KB").flows) == 2 + 2 * 3  # 10 us apart
    assert fc.chain(2, pfc=None).pfc is None
    for given, says in (
        ({"bursts": -1}, "bursts"),
        ({"burst_size": 0.0}, "burst_size"),
        ({"burst_size": "1B"}, "more than 4096 flows"),
        ({"burst_time": "long"}, "burst_time"),
    ):
        with pytest.raises(fc.InputError, match=says):
            fc.chain(**given)


# -- fabrics ---------------------------------------------------------------------------------------------------


def node(number: int) -> str:
    """The simulator's node numbers: hosts, ToRs, Agg, Core."""
    for first, letter in ((360, "S"), (340, "L"), (320, "T")):
        if number >= first:
            return f"{letter}{number - first + 1}"
    return f"H{number}"


def test_the_fat_tree_is_the_hpcc_simulators():
    with gzip.open(FAT, "rt") as lines:
        nodes, switches, count = (int(word) for word in next(lines).split())
        next(lines)
        theirs = {tuple(node(int(n)) for n in line.split()[:2]): line.split()[2:4] for line in lines if line.strip()}
    assert len(theirs) == count
    scenario = fc.fat_tree([(0, 319)])
    links = {(link.source, link.target): link for link in scenario.links}
    assert len({end for pair in links for end in pair}) == nodes
    assert len({link.source for link in scenario.links}) == switches
    both = {pair for a, b in theirs for pair in ((a, b), (b, a))}
    assert {pair for pair in both if not pair[0].startswith("H")} == links.keys()  # a host's port is its flows'
    for (a, b), (rate, delay) in theirs.items():
        link = links[a, b] if (a, b) in links else links[b, a]
        assert link.rate == {"100Gbps": 12.5e9, "400Gbps": 50e9}[rate]
        assert delay == "1000ns"
        assert link.delay == 1e-6
    assert base_rtt(scenario, scenario.flows[0]) == pytest.approx(12e-6)


def test_a_fat_tree_of_degree_k():
    k = 4
    scenario = fc.fat_tree([(0, 15)], pods=k, tors=2, leaves=2, spines=4, hosts=2, fabric_rate="100Gbps")
    assert ends(scenario).total() == 16 + 2 * (16 + 16)
    assert len(scenario.flows[0].path) == 5


def test_the_testbed_is_dcqcns():
    pairs = ends(fc.clos_testbed([(0, 15)]))
    switches = {pair for pair in pairs if not pair[1].startswith("H")}
    expected = {(t, leaf) for t, leaf in itertools.product(("T1", "T2"), ("L1", "L2"))}
    expected |= {(t, leaf) for t, leaf in itertools.product(("T3", "T4"), ("L3", "L4"))}
    expected |= {(f"L{i}", f"S{j}") for i in range(1, 5) for j in (1, 2)}
    assert switches == expected | {(b, a) for a, b in expected}
    assert pairs.total() - len(switches) == 20


def test_ecmp_of_the_testbed_maps_flows_anew_with_each_seed():
    def uplinks(seed):
        scenario = fc.clos_testbed([(0, 15), (1, 15)], ecmp_seed=seed)
        return tuple(scenario.links[flow.path[0]].name for flow in scenario.flows)

    counts = Counter(uplinks(seed) for seed in range(200))
    assert uplinks(3) == uplinks(3)
    assert len(counts) == 4
    assert min(counts.values()) > 30


def test_thirty_thousand_flows():
    draw = np.random.default_rng(1)
    hosts = draw.integers(0, 320, (30000, 2))
    hosts[:, 1] = np.where(hosts[:, 0] == hosts[:, 1], (hosts[:, 1] + 1) % 320, hosts[:, 1])
    table = np.column_stack([hosts, np.sort(draw.uniform(0, 2e-3, 30000)), draw.uniform(100, 1e6, 30000)])
    scenario = fc.fat_tree(table, scheme=fc.HPCC())
    flow = scenario.flows[12345]
    assert (flow.source, flow.target) == (f"H{hosts[12345, 0]}", f"H{hosts[12345, 1]}")
    assert (flow.start, flow.size) == tuple(table[12345, 2:])
    used = Counter(scenario.links[i].name for flow in scenario.flows for i in flow.path)
    up = np.array([used[f"L{leaf}->S{s}"] for leaf in range(1, 21) for s in range(1, 17)])
    assert (up > 0).sum() == 80
    assert up[up > 0].std() < 0.1 * up[up > 0].mean()


@pytest.mark.parametrize(
    ("flows", "options", "says"),
    [
        ([(0, 320)], {}, "flow 0 target: there is no host 320; the hosts are 0 to 319"),
        ([(0, 1), (-1, 1)], {}, "flow 1 source"),
        ([(0.5, 1)], {}, "no host 0.5"),
        ([("H0", 1)], {}, "no host 'H0'"),
        ([(4, 4)], {}, "to itself"),
        ([(4,)], {}, "write .source, target, start, size."),
        ([5], {}, "is no flow"),
        ([(0, 1, 0, 1, 2)], {}, "is no flow"),
        ([(0, 1, "1 parsec")], {}, "flow 0 start"),
        ([], {}, "no flows"),
        ([(0, 1)], {"spines": 6}, "spines: 6 cannot be shared out among 4"),
        ([(0, 1)], {"pods": 0}, "pods"),
        ([(0, 1)], {"hosts": 60000}, "more than"),
    ],
)
def test_what_makes_no_fabric(flows, options, says):
    with pytest.raises(fc.InputError, match=says):
        fc.fat_tree(flows, **options)


def test_a_threshold_of_tcd_that_is_given_stays():
    """A scheme that needs it gets the usual one only where marking has none; others get none at all."""
    ours = fc.RED("5KB", "200KB", 0.01, mark_on="departure", max_on="7us")
    plain, needs = (SimpleNamespace(tcd=tcd, default_marking=None) for tcd in (False, True))
    assert marking_of(ours, needs, "40Gbps") is ours
    assert marking_of(ours, plain, "40Gbps") is ours
    assert marking_of(None, plain, "40Gbps") is None
    found, usual = (marking_of(given, needs, "40Gbps") for given in (fc.RED("5KB", "200KB", 0.01), None))
    assert found is not None
    assert usual is not None
    assert (found.kmin, found.max_on is None, found.mark_on) == ("5KB", False, "departure")
    assert usual.max_on == found.max_on


def test_a_failed_link_is_named_from_either_end() -> None:
    """Notice a link that is known from below only: both names take both of its directions away."""
    sizes = {"pods": 1, "tors": 2, "leaves": 2, "spines": 0, "hosts": 1}
    up, down = (fc.clos([(0, 1)], failed=[name], **sizes) for name in ("T1-L2", "L2-T1"))
    names = {link.name for link in up.links}
    assert names == {link.name for link in down.links}
    assert "T1->L1" in names
    assert not names & {"T1->L2", "L2->T1"}
    with pytest.raises(InputError, match="T1-L9"):
        fc.clos([(0, 1)], failed=["T1-L9"], **sizes)


def test_both_thresholds_are_fewer_bytes_than_cells() -> None:
    """Notice one of them left as it is: a packet of 1086 B fills six cells of 208 B, of 1248 B."""
    found = in_bytes(resolve_marking(fc.RED(12_480, 124_800, 0.1, cell=208)), 1086.0)
    assert (found.kmin, found.kmax, found.cell) == pytest.approx((10_860, 108_600, None))
