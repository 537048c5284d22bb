"""The simulator's config.txt: what it selects, what is refused, and its T over all pairs of hosts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.cli.app import run
from fluidcc.workloads.fabrics import hpcc_config, named_topology, read_config, read_topology
from fluidcc.workloads.fabrics.hpcc_config import largest, round_trips

TOPOLOGY = "5 2 4\n3 4\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n3 4 400Gbps 1us 0\n2 4 100Gbps 1us 0\n"
FLOWS = "2\n0 2 3 100 50000 2.0\n1 2 3 100 50000 2.000001\n"
# As in the repository's mix/config.txt, but for one register (MULTI_RATE 0) and a map for each rate.
CONFIG = """ENABLE_QCN 1
USE_DYNAMIC_PFC_THRESHOLD 1

PACKET_PAYLOAD_SIZE 1000

TOPOLOGY_FILE mix/topology.txt
FLOW_FILE mix/flow.txt
TRACE_FILE mix/trace.txt
FCT_OUTPUT_FILE mix/fct.txt

SIMULATOR_STOP_TIME 4.00

CC_MODE 3
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
CLAMP_TARGET_RATE 0
RP_TIMER 900
EWMA_GAIN 0.00390625
FAST_RECOVERY_TIMES 1
RATE_AI 50Mb/s
RATE_HAI 100Mb/s
MIN_RATE 100Mb/s
DCTCP_RATE_AI 1000Mb/s
ERROR_RATE_PER_LINK 0.0000
L2_ACK_INTERVAL 1
HAS_WIN 1
GLOBAL_T 1
VAR_WIN 1
FAST_REACT 1
U_TARGET 0.95
MI_THRESH 0
INT_MULTI 4
MULTI_RATE 0
SAMPLE_FEEDBACK 0
RATE_BOUND 1
LINK_DOWN 0 0 0
KMAX_MAP 2 100000000000 1600 400000000000 6400
KMIN_MAP 2 100000000000 400 400000000000 1600
PMAX_MAP 2 100000000000 0.2 400000000000 0.2
BUFFER_SIZE 32
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A folder as that simulator has it."""
    folder = tmp_path / "mix"
    folder.mkdir()
    for name, text in (("topology.txt", TOPOLOGY), ("flow.txt", FLOWS), ("config.txt", CONFIG)):
        (folder / name).write_text(text)
    return folder / "config.txt"


def changed(path: Path, old: str, new: str) -> Path:
    assert CONFIG.count(old) == 1
    path.write_text(CONFIG.replace(old, new))
    return path


def test_hpcc(study: Path) -> None:
    found = read_config(study)
    assert (found.scheme, found.until, found.words) == ("hpcc", 2.0, ())
    scheme = found.options["scheme"]
    assert (scheme.eta, scheme.max_stage, scheme.int_multi, scheme.registers) == (0.95, 0, 4, "one")
    assert scheme.rate_ai == 50e6 / 8
    # Three links of 1 us both ways, and 1000 B at 100, 400 and 100 Gb/s, in whole ns.
    assert scheme.base_rtt == pytest.approx(6180e-9, rel=1e-12)
    assert scheme.initial_window == 6180e-9 * 100e9 / 8
    assert (found.options["buffer"], found.options["timing"]) == (32 * 2**20, "ns3")
    assert found.options["marking"]("100Gbps") is None
    done = fc.fabric({"hpcc": found.options}, found.topology, flows=found.flows, ideal="hpcc-sim")
    assert done.statistics()["unfinished"].sum() == 0


def test_dcqcn(study: Path) -> None:
    found = read_config(changed(study, "CC_MODE 3", "CC_MODE 1"))
    scheme = found.options["scheme"]
    assert (scheme.timer, scheme.alpha_timer, scheme.rate_decrease_interval) == (900e-6, 1e-6, 4e-6)
    assert (scheme.variant, scheme.win, scheme.fast_recovery_steps) == ("hpcc-sim", True, 1)
    marking = found.options["marking"]("400Gbps")
    assert (marking.kmin, marking.kmax, marking.pmax, marking.mark_on) == (1.6e6, 6.4e6, 0.2, "departure")
    with pytest.raises(fc.InputError, match="line 38: KMIN_MAP: has no threshold for links of 25 Gb/s"):
        found.options["marking"]("25Gbps")


def test_a_timer_that_is_turned_off_by_a_long_time(study: Path) -> None:
    text = changed(study, "CC_MODE 3", "CC_MODE 1").read_text()
    study.write_text(text.replace("RP_TIMER 900", "RP_TIMER 100000000"))
    assert read_config(study).options["scheme"].timer == 100.0


def test_timely_and_dctcp(study: Path) -> None:
    timely = read_config(changed(study, "CC_MODE 3", "CC_MODE 7")).options["scheme"]
    assert (timely.name, timely.hai_gain, timely.win) == ("timely", 2.0, True)
    dctcp = read_config(changed(study, "CC_MODE 3", "CC_MODE 8")).options["scheme"]
    assert (dctcp.name, dctcp.rate_ai, dctcp.g) == ("dctcp", 1e9 / 8, 1 / 256)


def test_a_link_that_fails(study: Path) -> None:
    """At 2 s and so many microseconds of that simulator's time."""
    found = read_config(changed(study, "LINK_DOWN 0 0 0", "LINK_DOWN 30 4 3"))
    assert [(each.link, each.at) for each in found.options["failures"]] == [("4->3", pytest.approx(30e-6))]


@pytest.mark.parametrize(
    ("given", "link"), [("30 3 4", "3->4"), ("30 0 3", "3->0"), ("30 3 0", "3->0"), ("0.5 4 2", "4->2")]
)
def test_the_way_from_a_switch_fails(study: Path, given: str, link: str) -> None:
    """From the first of the two, or from the other where that is a host."""
    found = read_config(changed(study, "LINK_DOWN 0 0 0", f"LINK_DOWN {given}"))
    (failure,) = found.options["failures"]
    assert (failure.link, failure.at) == (link, pytest.approx(float(given.split()[0]) * 1e-6))


def test_a_link_fails_after_the_first_flow_has_started(study: Path) -> None:
    """At 2 s and 30 us of that simulator's time, of which the first flow's start is taken off."""
    changed(study, "LINK_DOWN 0 0 0", "LINK_DOWN 30 4 3")
    for start, at in (("2.00003", 0.0), ("2.00001", 20e-6), ("2.00004", None)):
        (study.parent / "flow.txt").write_text(f"1\n0 2 3 100 50000 {start}\n")
        if at is None:
            with pytest.raises(fc.InputError, match="LINK_DOWN: is before the first flow starts"):
                read_config(study)
        else:
            assert read_config(study).options["failures"][0].at == pytest.approx(at, abs=1e-12)


@pytest.mark.parametrize(("rate", "across"), [("400Gbps", (6180, 77_250)), ("10Gbps", (6960, 8700))])
def test_round_trips_by_hand(rate: str, across: tuple[int, int], tmp_path: Path) -> None:
    """Twice 1 us a cable, 80 ns of a payload at 100 Gb/s, 20 at 400 and 800 at 10; a window at the slowest.

    Hosts 0 and 1 are alike, so that one of them is asked for its ways to the other and to 2, and 2 for its ways back.
    """
    path = tmp_path / "topology.txt"
    path.write_text(TOPOLOGY.replace("400Gbps", rate))
    assert sorted(round_trips(read_topology(path), 1000)) == [(4160, 52_000), *[across] * 3]
    assert largest([(5, 70), (9, 20)]) == pytest.approx((9e-9, 70.0))
    assert largest([]) == (0.0, 0.0)


def test_links_that_lose_packets(study: Path) -> None:
    """The rate of all links, where a cable has none of its own; and hosts go back."""
    found = read_config(changed(study, "ERROR_RATE_PER_LINK 0.0000", "ERROR_RATE_PER_LINK 0.02"))
    assert {cable.loss for cable in found.topology.cables} == {0.02}
    assert found.options["loss_recovery"] == "gbn"
    assert "timeout" in found.words[0]
    done = fc.fabric({"hpcc": found.options}, found.topology, flows=found.flows).runs[0]
    assert done.slowdown.unfinished == 0
    assert done.numbers["drops"] > 0
    assert done.numbers["retransmissions"] >= done.numbers["drops"]
    (study.parent / "topology.txt").write_text(TOPOLOGY.replace("1 3 100Gbps 1us 0", "1 3 100Gbps 1us 0.5"))
    assert [cable.loss for cable in read_config(study).topology.cables] == [0.02, 0.5, 0.02, 0.02]


def test_its_t_of_the_fat_tree() -> None:
    """As measured: 12 240 ns and 153 000 B (tests/data/ns3/README.md)."""
    base_rtt, window = largest(round_trips(named_topology("fat-tree:320"), 1000))
    assert (round(base_rtt * 1e9), window) == (12240, 153_000)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("CC_MODE 3", "CC_MODE 10", "line 13: CC_MODE: 10 is not modelled; write one of 1 .dcqcn."),
        ("CC_MODE 3", "CC_MOD 3", "line 13: 'CC_MOD' is no key known here; delete the line if it changes no results"),
        ("CC_MODE 3", "cc_mode 3", "line 13: 'cc_mode' is no key known here; write CC_MODE"),
        ("CC_MODE 3", "CC_MODE 3\nLB_MODE 9\nNEW 1", "line 15: 'NEW' is no key.*line 14: LB_MODE: 9 .ConWeave. is"),
        ("CC_MODE 3", "CC_MODE", "line 13: CC_MODE has no value"),
        ("CC_MODE 3", "CC_MODE x", "line 13: CC_MODE: 'x' is no number"),
        ("CC_MODE 3", "CC_MODE 3\nCC_MODE 3", "line 14: CC_MODE is there twice"),
        ("RATE_AI 50Mb/s", "RATE_AI 50", "RATE_AI"),
        ("GLOBAL_T 1", "GLOBAL_T 0", "GLOBAL_T: .* not modelled"),
        ("RATE_BOUND 1", "RATE_BOUND 0", "RATE_BOUND: .* not modelled"),
        ("SAMPLE_FEEDBACK 0", "SAMPLE_FEEDBACK 1", "SAMPLE_FEEDBACK: .* not modelled"),
        ("CLAMP_TARGET_RATE 0", "CLAMP_TARGET_RATE 1", "CLAMP_TARGET_RATE: .* not modelled"),
        ("BUFFER_SIZE 32", "NIC_TOTAL_PAUSE_TIME 5", "NICs that stand still are not modelled; .* with other results"),
        ("VAR_WIN 1", "VAR_WIN 0", "line 28: VAR_WIN: hpcc without a window"),
        ("U_TARGET 0.95", "U_TARGET 1.5", "line 30: U_TARGET: 1.5 is too large"),
        ("MI_THRESH 0", "MI_THRESH 2.5", "line 31: MI_THRESH: 2.5 is not a whole number"),
        ("FAST_REACT 1", "FAST_REACT x", "line 29: FAST_REACT: 'x' is no number"),
        ("BUFFER_SIZE 32", "BUFFER_SIZE 0", "BUFFER_SIZE: 0B is too small"),
        ("PACKET_PAYLOAD_SIZE 1000", "PACKET_PAYLOAD_SIZE 0", "line 4: PACKET_PAYLOAD_SIZE: 0B is too small"),
        ("mix/flow.txt", "mix/other.txt", "line 7: FLOW_FILE: 'mix/other.txt' is not there"),
        ("FLOW_FILE mix/flow.txt\n", "", "has no FLOW_FILE"),
        ("SIMULATOR_STOP_TIME 4.00", "SIMULATOR_STOP_TIME 1", "before the first flow"),
        ("LINK_DOWN 0 0 0", "LINK_DOWN 30 4", "LINK_DOWN: '30 4' is no time"),
        ("LINK_DOWN 0 0 0", "LINK_DOWN 30 x 3", "LINK_DOWN: '30 x 3' is no time"),
        ("LINK_DOWN 0 0 0", "LINK_DOWN 30 4 3 1", "LINK_DOWN: '30 4 3 1' is no time"),
        ("LINK_DOWN 0 0 0", "LINK_DOWN 30 4 0", "no cable is between 4 and 0"),
        ("SIMULATOR_STOP_TIME 4.00", "SIMULATOR_STOP_TIME 2.0", "before the first flow"),
        ("ERROR_RATE_PER_LINK 0.0000", "ERROR_RATE_PER_LINK 1.5", "ERROR_RATE_PER_LINK: 1.5 is no probability"),
    ],
)
def test_what_is_refused(study: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(fc.InputError, match=f"config.txt.*{words}"):
        read_config(changed(study, old, new))


def test_a_map_that_is_none(study: Path) -> None:
    path = changed(study, "CC_MODE 3", "CC_MODE 1")
    path.write_text(path.read_text().replace("KMIN_MAP 2 ", "KMIN_MAP 3 "))
    with pytest.raises(fc.InputError, match="line 38: KMIN_MAP: is no map"):
        read_config(path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("KMAX_MAP 2 100000000000 1600 400000000000 6400\n", "", "config.txt: has no KMAX_MAP; write a line with it$"),
        ("PMAX_MAP 2 100000000000 0.2", "PMAX_MAP 2 100000000000 20", "line 39: PMAX_MAP: 20 for links of 100 Gb/s"),
    ],
)
def test_maps_are_refused_by_their_key(study: Path, old: str, new: str, words: str) -> None:
    """Catches a message about another one's parameter, or of two messages in each other."""
    path = changed(study, "CC_MODE 3", "CC_MODE 1")
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(fc.InputError, match=words):
        read_config(path)


def test_a_flow_from_no_host_is_named_by_its_line(study: Path) -> None:
    flows = study.with_name("flow.txt")
    first = FLOWS.splitlines()[1].split()
    flows.write_text(FLOWS.replace(" ".join(first), " ".join(["99", *first[1:]])))
    with pytest.raises(fc.InputError, match=r"flow.txt, line \d+: there is no host 99"):
        read_config(study)


def test_thresholds_that_cross(study: Path) -> None:
    path = changed(study, "CC_MODE 3", "CC_MODE 1")
    path.write_text(path.read_text().replace("KMIN_MAP 2 100000000000 400", "KMIN_MAP 2 100000000000 4000"))
    with pytest.raises(fc.InputError, match="line 38: KMIN_MAP: 4000 KB for links of 100 Gb/s exceeds KMAX_MAP's 1600"):
        read_config(path)


def test_thresholds_that_meet_are_a_step(study: Path) -> None:
    path = changed(study, "CC_MODE 3", "CC_MODE 1")
    path.write_text(path.read_text().replace("KMIN_MAP 2 100000000000 400", "KMIN_MAP 2 100000000000 1600"))
    marking = read_config(path).options["marking"]("100Gbps")
    assert (marking.kmin, marking.kmax) == (1.6e6, 1.6e6)


def test_no_key_is_both_read_and_without_effect() -> None:
    assert not {*hpcc_config._DEFAULTS, *hpcc_config._MAPS} & hpcc_config._WITHOUT_EFFECT


# Keys that other simulators made from this one write, after their scripts; files and values are ours.
CONWEAVE = """VOQ_MON_DETAIL_FILE mix/voq_per_dst.txt
EST_ERROR_MON_FILE mix/est_error.txt
CNP_OUTPUT_FILE mix/cnp.txt
FLOW_INPUT_FILE mix/in.txt
SW_MONITORING_INTERVAL 10000
FLOWGEN_START_TIME 2.0
FLOWGEN_STOP_TIME 2.1
CONWEAVE_PATH_PAUSE_TIME 16
LOAD 50
RANDOM_SEED 1
"""
SIMAI = """RATE_MON_FILE mix/rate.txt
MON_START 0
QP_MON_INTERVAL 100
TRACE_NODE 0
"""


@pytest.mark.parametrize(
    ("keys", "fields"),
    [
        ("LB_MODE 0\nENABLE_PFC 1\nENABLE_IRN 0\n", {"loss_recovery": None, "load_balancing": None}),
        ("LB_MODE 0\nENABLE_PFC 0\nENABLE_IRN 1\n", {"pfc": None, "loss_recovery": "irn"}),
        ("ENABLE_PFC 0\n", {"pfc": None, "loss_recovery": "gbn"}),
        ("LB_MODE 6\n", {"load_balancing": "flowlet", "flowlet_gap": "100us"}),
    ],
)
def test_conweaves_keys_change_the_network(study: Path, keys: str, fields: dict[str, Any]) -> None:
    """PFC, IRN and paths, where leaving the key out would have given another network; outputs are passed over."""
    study.write_text(CONFIG + CONWEAVE + keys)
    found = read_config(study)
    assert {name: found.options.get(name) for name in fields} == fields
    assert found.until == 2.0  # of SIMULATOR_STOP_TIME
    study.write_text(CONFIG.replace("SIMULATOR_STOP_TIME 4.00", "") + CONWEAVE)
    assert read_config(study).until == pytest.approx(10.1)  # ten seconds after the last flow may start


def test_a_t_of_each_pair_where_it_is_the_same(study: Path) -> None:
    """SimAI reads GLOBAL_T and takes 1; and where all pairs are alike, or nobody uses T, it changes nothing."""
    study.write_text(CONFIG.replace("GLOBAL_T 1", "GLOBAL_T 0") + SIMAI)
    assert "takes 1" in read_config(study).words[0]
    study.write_text(
        CONFIG.replace("GLOBAL_T 1", "GLOBAL_T 0").replace("CC_MODE 3", "CC_MODE 1").replace("WIN 1", "WIN 0")
    )
    assert read_config(study).words == ()
    (study.parent / "topology.txt").write_text("4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 100Gbps 1us 0\n")
    study.write_text(CONFIG.replace("GLOBAL_T 1", "GLOBAL_T 0"))
    assert read_config(study).options["scheme"].base_rtt == pytest.approx(4160e-9, rel=1e-12)


def test_what_a_count_leaves_out_is_said(study: Path) -> None:
    """As many flows and pairs are read as are announced: the simulator's own flow.txt says 2 and has 257."""
    (study.parent / "flow.txt").write_text(
        FLOWS + "0 2 3 100 7 2.1\n\nFirst line: # of flows\nsrc dst 3 port size start\n"
    )
    text = CONFIG.replace("CC_MODE 3", "CC_MODE 1")
    study.write_text(text.replace("400000000000 1600", "400000000000 1600 25000000000 100"))
    found = read_config(study)
    assert len(found.flows) == 2
    assert [line.rpartition(": ")[2] for line in found.words] == [
        "says 2 flows, and 1 more are left out",
        "KMIN_MAP says 2 pairs, and 1 more are left out",
    ]
    study.write_text(text.replace("KMIN_MAP 2 ", "KMIN_MAP 1 "))
    with pytest.raises(fc.InputError, match="KMIN_MAP: has no threshold for links of 400 Gb/s; add one, and count it"):
        read_config(study)


def test_rates_without_a_unit_and_a_run_for_ever(study: Path) -> None:
    """ns-3 takes bits/s; SimAI's and astra-sim's files stop after 4e13 s."""
    study.write_text(CONFIG.replace("RATE_AI 50Mb/s\n", "RATE_AI 50000000\n").replace("4.00", "40000000000000.00"))
    found = read_config(study)
    assert (found.options["scheme"].rate_ai, found.until) == (50e6 / 8, 1e6)


def test_files_in_place_of_those_named(study: Path, tmp_path: Path) -> None:
    """SimAI's configuration names no topology, and flows that are not there."""
    study.write_text(CONFIG.replace("TOPOLOGY_FILE mix/topology.txt\n", "").replace("mix/flow.txt", "/etc/no/flow.txt"))
    with pytest.raises(fc.InputError, match="has no TOPOLOGY_FILE"):
        read_config(study)
    other = tmp_path / "flows"
    other.write_text("1\n0 2 3 100 7 2.0\n")
    assert len(read_config(study, topology=study.parent / "topology.txt", flows=other).flows) == 1
    other.write_text("0\n")
    with pytest.raises(fc.InputError, match="line 6: FLOW_FILE: the file has no flows"):
        read_config(study, topology=study.parent / "topology.txt", flows=other)


def test_files_above_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PowerTCP's names files from the root of its simulator."""
    folder = tmp_path / "examples" / "PowerTCP"
    folder.mkdir(parents=True)
    for name, text in (("topology.txt", TOPOLOGY), ("flow.txt", FLOWS)):
        (folder / name).write_text(text)
    (folder / "config.txt").write_text(
        CONFIG.replace("mix/t", "examples/PowerTCP/t").replace("mix/f", "examples/PowerTCP/f")
    )
    monkeypatch.chdir(folder)
    assert len(read_config("config.txt").flows) == 2


def test_a_comment_behind_a_value(study: Path) -> None:
    assert read_config(changed(study, "BUFFER_SIZE 32", "BUFFER_SIZE 16 # MB")).options["buffer"] == 16 * 2**20


def test_thresholds_in_bytes_in_place_of_kb_are_named(study: Path) -> None:
    """Catches a Kmin of 1.6 GB in a buffer of 32 MB, of which nothing was said."""
    text = changed(study, "CC_MODE 3", "CC_MODE 1").read_text()
    assert not any("KMIN_MAP" in each for each in read_config(study).words)
    text = text.replace("400 400000000000 1600\nPMAX", "400 400000000000 1600000\nPMAX")
    study.write_text(text.replace("1600 400000000000 6400", "1600 400000000000 6400000"))
    (said,) = (each for each in read_config(study).words if "KMIN_MAP" in each)
    assert said.endswith("1.6e+06 KB for links of 400 Gb/s is more than BUFFER_SIZE, 32 MB: nothing is marked")


@pytest.mark.parametrize(("size", "fits"), [("4095", True), ("33554432", False)])
def test_a_buffer_in_bytes_in_place_of_mb_is_refused(size: str, fits: bool, study: Path) -> None:
    path = changed(study, "BUFFER_SIZE 32", f"BUFFER_SIZE {size}")
    if fits:
        assert read_config(path).options["buffer"] == int(size) * 2**20
        return
    with pytest.raises(fc.InputError, match=r"BUFFER_SIZE: is in MB, up to .* write 16 for 16 MB"):
        read_config(path)


def test_its_packets_are_told_by_the_command(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside a config.txt no scheme is named, and --set has the last word."""
    for options, size in (([], 1000.0), (["--set", "packet_size=500B"], 500.0)):
        assert run(["fabric", "--config", str(study), *options, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["packet_bytes"], found["runs"][0]["unfinished"]) == (size, 0)
