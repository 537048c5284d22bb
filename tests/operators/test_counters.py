"""Counters of switches and NICs: each form that operators copy, read exactly, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluidcc.errors import InputError
from fluidcc.operators.counters import Counters, NicCounters, PortCounters, read_counters
from fluidcc.operators.counters.model import Entry
from fluidcc.operators.counters.reading import _values
from tests.operators.test_fuzz import attempt

DATA = Path(__file__).parents[1] / "data" / "counters"
Give = Callable[..., Counters]


@pytest.fixture
def give(tmp_path: Path) -> Give:
    """Read texts as files; names and texts in turn, or one text."""

    def read(*texts: str, name: str = "leaf1.txt") -> Counters:
        paths = []
        for i, text in enumerate(texts):
            paths.append(tmp_path / str(i) / name)
            paths[-1].parent.mkdir(exist_ok=True)
            paths[-1].write_text(text)
        return read_counters(paths)

    return read


def refused(give: Give, *texts: str, name: str = "leaf1.txt") -> str:
    with pytest.raises(InputError) as error:
        give(*texts, name=name)
    return str(error.value)


PORT = PortCounters(
    "leaf1",
    "Ethernet0",
    {
        "received_packets": 1_200_300,
        "received_bytes_per_s": 2e9,
        "received_errors": 10,
        "received_drops": 7,
        "sent_packets": 900,
        "sent_bytes_per_s": 204_800,
        "sent_errors": 0,
        "sent_drops": 3,
    },
    {
        0: {"sent_packets": 11, "sent_bytes": 1100, "dropped_packets": 1},
        3: {
            "sent_packets": 52_000,
            "sent_bytes": 54_600_000,
            "dropped_packets": 19,
            "marked_packets": 4321,
            "watermark_bytes": 2_057_328,
            "pauses_received": 203,
            "pauses_sent": 213,
            "ingress_dropped_packets": 803,
            "ingress_watermark_bytes": 103_000,
            "headroom_watermark_bytes": 9216,
        },
    },
)
NIC = NicCounters(
    "host7",
    {
        "cnps_sent": 500,
        "cnps_handled": 41,
        "cnps_ignored": 2,
        "marked_packets": 6000,
        "out_of_sequence": 3,
        "sequence_errors": 4,
        "timeouts": 1,
        "retransmissions": 5,
        "received_errors": 12,
        "received_discards": 9,
        "out_of_buffer": 6,
        "sent_bytes": 10**18 + 1,
        "received_bytes": 2000,
    },
    {
        3: {
            "sent_packets": 20,
            "sent_bytes": 21_000,
            "received_packets": 30,
            "received_bytes": 31_000,
            "pauses_sent": 71,
            "pauses_received": 72,
            "paused_s": pytest.approx(1.5),
            "pausing_s": pytest.approx(0.25),
            "discards": 8,
        }
    },
)


@pytest.mark.parametrize("name", ["sonic.txt", "counters_db.json", "ports.csv"])
def test_the_forms_of_a_switch_give_the_same_numbers(name: str) -> None:
    """A column shifted by one, KB for bytes, multicast queues as priorities, and RX for TX would differ."""
    found = read_counters([DATA / name])
    port = next(each for each in found.ports if each.name == "Ethernet0")
    if name == "counters_db.json":  # names no switch, and has bytes
        port = dataclasses.replace(port, switch="leaf1", values={**port.values})
        assert (port.values.pop("received_bytes"), port.values.pop("sent_bytes")) == (5, 6)  # type: ignore[attr-defined]
    assert (port, found.seconds) == (PORT, None)


@pytest.mark.parametrize("names", [["nic.txt"], ["nic_sysfs.txt", "nic_json.txt"], ["nic.csv"]])
def test_the_forms_of_a_nic_give_the_same_numbers(names: list[str]) -> None:
    """Microseconds as seconds, a priority's counters as the port's, and one error of five would differ."""
    assert read_counters([DATA / name for name in names]) == Counters(nics=(NIC,))


def test_large_counts_are_exact() -> None:
    """A float of 10^18 + 1 is 10^18: a small difference of two large counts would be lost."""
    late, early = (Counters(nics=(NicCounters("h", {"sent_bytes": 10**18 + n}),)) for n in (7, 2))
    assert late.since(early).nics[0].values == {"sent_bytes": 5}


# -- SONiC ----------------------------------------------------------------------------------------------------

QUEUES = """\
     Port    TxQ    Counter/pkts    Counter/bytes    Drop/pkts    Drop/bytes
---------  -----  --------------  ---------------  -----------  ------------
Ethernet0    UC3           1,052               70           19            76
"""


def test_both_columns_of_dropped_are_told_apart(give: Give) -> None:
    newer = (
        QUEUES.replace("Drop/bytes", "Drop/bytes    Trim/pkts   Pkts/s   Bits/s")
        .replace("--------\nE", "--------  ---  ---  ---\nE")
        .replace("           76", "    76   N/A   12.00/s   1.00 Mb/s")
    )
    wanted = {3: {"sent_packets": 1052, "sent_bytes": 70, "dropped_packets": 19}}
    assert give(QUEUES).ports[0].queues == give(newer).ports[0].queues == wanted


def test_devices_are_named_by_prompts_headings_and_files(give: Give) -> None:
    """Two switches with the same ports would be one, and their counters a conflict."""
    other = QUEUES.replace("1,052", "7")
    text = (
        f"{QUEUES}admin@leaf2:~$ show queue counters\n{other}==> leaf3.dc1.txt <==\n{QUEUES}[root@leaf4 ~]# x\n{other}"
    )
    found = {each.switch: each.queues[3]["sent_packets"] for each in give(text).ports}
    assert found == {"leaf1": 1052, "leaf2": 7, "leaf3.dc1": 1052, "leaf4": 7}


GROUPS = """\
     Port    PG0    PG3
---------  -----  -----
Ethernet0      0     42
"""


@pytest.mark.parametrize(
    ("title", "counter"),
    [
        ("Ingress headroom per PG: (Namespace asic0)", "headroom_watermark_bytes"),
        ("Ingress shared pool occupancy per PG:", "ingress_watermark_bytes"),
        ("Ingress PG dropped packets:", "ingress_dropped_packets"),
        ("a@leaf1:~$ show priority-group watermark headroom", "headroom_watermark_bytes"),
        ("a@leaf1:~$ show both headroom and\nIngress shared pool occupancy per PG:", "ingress_watermark_bytes"),
        ("a@leaf1:~$ show priority-group drop counters\nLast cached time was 2026-01-02", "ingress_dropped_packets"),
    ],
)
def test_tables_of_priority_groups_are_told_apart_by_title_or_command(give: Give, title: str, counter: str) -> None:
    above = f"Ingress PG dropped packets:\n{GROUPS.replace('Ethernet0', 'Ethernet4')}"
    found = give(f"{above}{title}\n{GROUPS}").ports[0]
    assert found.queues == {0: {counter: 0}, 3: {counter: 42}}


def test_of_two_watermarks_the_higher_counts(give: Give) -> None:
    """The persistent one and that since the last clearing differ, and neither is wrong."""
    text = "Ingress headroom per PG:\n" + GROUPS
    assert give(text, text.replace("42", "99"), text).ports[0].queues[3] == {"headroom_watermark_bytes": 99}


def test_tables_of_other_commands_are_skipped(give: Give) -> None:
    """Their cells hold spaces, so that a check of columns would refuse them."""
    history = """\
     Port    Priority    Recent RX Pause Timestamp
---------  ----------  ---------------------------
Ethernet0        PFC0         01/10/2008, 21:20:00
"""
    assert give(history + QUEUES).ports[0].queues.keys() == {3}


# -- NICs -----------------------------------------------------------------------------------------------------


def test_several_interfaces_of_a_host_are_several_nics(give: Give) -> None:
    text = "".join(
        f"root@host7:~# ethtool -S eth{n} | grep prio3\n     tx_prio3_pause: {n + 1}\n     tx_nonsense: -1\n"
        f"root@host7:~# rdma statistic show link mlx5_{n}/1\n"
        f"link mlx5_{n}/1 np_cnp_sent {n + 5}\n    out_of_sequence\n0\n"
        for n in range(2)
    )
    found = give(text)
    assert {each.name: each.priorities or each.values for each in found.nics} == {
        "host7 eth0": {3: {"pauses_sent": 1}},
        "host7 eth1": {3: {"pauses_sent": 2}},
        "host7 mlx5_0": {"cnps_sent": 5, "out_of_sequence": 0},
        "host7 mlx5_1": {"cnps_sent": 6, "out_of_sequence": 0},
    }


def test_bytes_of_the_rdma_port_are_words_and_count_without_ethtool_alone(give: Give) -> None:
    words = "/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data:250\n"
    assert give(words).nics[0].values == {"sent_bytes": 1000}
    assert give(words + "NIC statistics:\n     tx_bytes_phy: 1300\n").nics[0].values == {"sent_bytes": 1300}


def test_counters_of_queue_pairs_are_not_those_of_the_link(give: Give) -> None:
    text = "link mlx5_0/1 np_cnp_sent 7\nlink mlx5_0/1 cntn 4 type RC np_cnp_sent 3\n    LQPN: <178>\n"
    listed = '[{"ifname":"mlx5_0","port":1,"cntn":4,"np_cnp_sent":3},{"ifname":"mlx5_0","port":1,"np_cnp_sent":7}]'
    assert give(text).nics[0].values == give(listed).nics[0].values == {"cnps_sent": 7}


def test_output_goes_on_behind_json(give: Give) -> None:
    text = '[{"ifname":"mlx5_0","port":1,"np_cnp_sent":7}]root@host8:~# ethtool -S eth0\n  rx_discards_phy: 3\n'
    found = {each.name: each.values for each in give(text).nics}
    assert found == {"leaf1": {"cnps_sent": 7}, "host8": {"received_discards": 3}}


# -- CSV ------------------------------------------------------------------------------------------------------


def test_rates_count_for_a_second(give: Give) -> None:
    text = "switch,port,queue,counter,rate\nleaf1,Ethernet0,3,pauses_sent,12.5\nhost,,3,tx_prio3_pause_duration,2e5\n"
    found = give(text)
    assert found.seconds == 1
    assert found.ports[0].queues == {3: {"pauses_sent": 12.5}}
    assert found.nics[0].priorities == {3: {"pausing_s": pytest.approx(0.2)}}
    with pytest.raises(InputError, match="no earlier reading"):
        found.since(found)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("leaf1,Ethernet0,3,pauses_snet,1", "x.csv:2: unknown counter pauses_snet of queue 3"),
        ("leaf1,Ethernet0,,dropped_packets,1", "x.csv:2: unknown counter dropped_packets without a queue"),
        ("h,,4,tx_prio3_pause,1", "x.csv:2: unknown counter tx_prio3_pause of queue 4"),
        ("h,,,cnps_sent,1\nh,,3,watermark_bytes,1", "x.csv:3: watermark_bytes is a switch's counter"),
        ("leaf1,Ethernet0,3,pauses_sent", "x.csv:2: 4 columns where the header has 5"),
        (",Ethernet0,3,pauses_sent,1", "x.csv:2: names no device"),
        ("leaf1,Ethernet0,UC3,pauses_sent,1", "x.csv:2: UC3 is no queue"),
        ("leaf1,Ethernet0,3,pauses_sent,-1", "x.csv:2: pauses_sent is -1; write a number from 0"),
        ("leaf1,Ethernet0,3,pauses_sent,1e20", "x.csv:2: pauses_sent is 1e20"),
        ("leaf1,Ethernet0,3,pauses_sent,nan", "x.csv:2: pauses_sent is nan"),
        ('leaf1,Ethernet0,3,"pauses_sent,1', "x.csv:2: not CSV"),
        ("leaf1,Ethernet0,3,sent_bytes,9\nleaf1,Ethernet0,3,SAI_QUEUE_STAT_BYTES,8", "sent_bytes is 8 here and 9 in"),
    ],
)
def test_rows_that_are_no_counters_are_named(give: Give, rows: str, words: str) -> None:
    assert words in refused(give, f"device,port,queue,counter,value\n{rows}\n", name="x.csv")


def test_a_csv_needs_its_columns(give: Give) -> None:
    assert "device or host or switch" in refused(give, "port,counter,value\nEthernet0,sent_bytes,1\n")
    assert "value or rate" in refused(give, "device,counter,value,rate\nh,cnps_sent,1,1\n")
    assert "totals" in refused(give, "device,counter,rate\nh,cnps_sent,1\n", QUEUES)


# -- two readings ---------------------------------------------------------------------------------------------


def reading(sent: float, mark: float, *, also: str = "") -> Counters:
    port = PortCounters(
        "leaf1",
        "Ethernet0",
        {"sent_packets": sent, "sent_bytes_per_s": mark},
        {3: {"pauses_sent": sent / 2, "watermark_bytes": mark}, 4: {"pauses_sent": 1} if also else {}},
    )
    more = (PortCounters("leaf1", also, {"sent_packets": 1}),) if also else ()
    return Counters((port, *more), (NicCounters("host7", {"cnps_sent": sent}, {3: {"paused_s": sent / 4}}),))


def test_growth_is_of_sums_and_watermarks_are_the_later_ones() -> None:
    found = reading(100, 7, also="Ethernet4").since(reading(60, 9, also="Ethernet8"))
    assert found.ports[0].values == {"sent_packets": 40, "sent_bytes_per_s": 7}
    both = {"watermark_bytes": 7, "watermark_before_bytes": 9}
    assert found.ports[0].queues == {3: {"pauses_sent": 20, **both}, 4: {"pauses_sent": 0}}
    assert found.nics == (NicCounters("host7", {"cnps_sent": 40}, {3: {"paused_s": 10}}),)
    assert found.left_out == ("leaf1 Ethernet8", "leaf1 Ethernet4")
    assert found.seconds is None


def test_a_counter_of_one_reading_alone_is_left_out() -> None:
    """It would otherwise count from zero."""
    late = Counters((PortCounters("s", "p", {"sent_packets": 9, "sent_bytes": 5}, {1: {"pauses_sent": 2}}),))
    assert late.since(Counters((PortCounters("s", "p", {"sent_bytes": 1}),))).ports == (
        PortCounters("s", "p", {"sent_bytes": 4}),
    )


def test_a_cleared_counter_is_refused() -> None:
    with pytest.raises(InputError, match=r"leaf1 Ethernet0: sent_packets fell from 60 to 10.* both readings again"):
        reading(10, 0).since(reading(60, 0))
    queue = [Counters((PortCounters("s", "p", queues={3: {"pauses_sent": n}}),)) for n in (1, 2)]
    with pytest.raises(InputError, match="s p queue 3: pauses_sent"):
        queue[0].since(queue[1])
    with pytest.raises(InputError, match="no port and no NIC is in both"):
        reading(10, 0).since(queue[0])


def test_a_device_that_began_anew_is_left_out() -> None:
    """One of hundreds of hosts is always restarted."""
    late = dataclasses.replace(
        reading(100, 0), nics=(NicCounters("h1", {"cnps_sent": 1}), NicCounters("h2", {"cnps_sent": 9}))
    )
    early = dataclasses.replace(
        reading(60, 0), nics=(NicCounters("h1", {"cnps_sent": 5}), NicCounters("h2", {"cnps_sent": 5}))
    )
    found = late.since(early)
    assert found.nics == (NicCounters("h2", {"cnps_sent": 4}),)
    assert found.left_out == ("h1",)


def test_a_reading_that_was_taken_twice_is_refused() -> None:
    with pytest.raises(InputError, match="no counter grew"):
        reading(60, 3).since(reading(60, 3))


def test_rates_become_totals_and_watermarks_stay() -> None:
    found = reading(60, 7).times(10.0)
    assert found.ports[0].values == {"sent_packets": 600, "sent_bytes_per_s": 7}
    assert found.ports[0].queues[3] == {"pauses_sent": 300, "watermark_bytes": 7}
    assert found.nics[0] == NicCounters("host7", {"cnps_sent": 600}, {3: {"paused_s": 150}})
    assert found.seconds == 10.0


# -- refusals -------------------------------------------------------------------------------------------------


def test_a_row_that_lost_a_column_is_named(give: Give) -> None:
    assert "leaf1.txt:3: the row of Ethernet0 has 5 columns where the header has 6" in refused(
        give, QUEUES.replace("            76", "")
    )
    assert "leaf1.txt:3: Drop/pkts is -19" in refused(give, QUEUES.replace(" 19", "-19"))
    assert "without its title" in refused(give, GROUPS)


def test_two_values_of_one_counter_are_refused(give: Give) -> None:
    """The later would win, or both add up."""
    message = refused(give, QUEUES, QUEUES.replace("1,052", "1,053"))
    assert "leaf1 Ethernet0 queue 3: sent_packets is 1053 here and 1052 in" in message
    assert give(QUEUES, QUEUES) == give(QUEUES)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("hello\n", "begins with hello"),
        ('{"DEVICE_METADATA": {}, "PORT": {}}', "it is JSON with DEVICE_METADATA, PORT"),
        ('{"COUNTERS:oid:0x1": {"SAI_PORT_STAT_IF_IN_OCTETS": "1"}}', "no COUNTERS_PORT_NAME_MAP"),
        ('\n{"COUNTERS": ', "leaf1.txt:2: not JSON"),
        ("[" * 100_000, "begins with [["),
        ('{"a":' * 100_000, "nested too deep"),
        ("link mlx5_0/1 np_cnp_sent x\n", "no pairs"),
        ("a\0b", "no text"),
    ],
)
def test_texts_without_counters_are_refused(give: Give, text: str, words: str) -> None:
    assert words in refused(give, text)


def test_files_that_are_no_texts_are_refused(tmp_path: Path) -> None:
    binary, pipe = tmp_path / "b.bin", tmp_path / "pipe"
    binary.write_bytes(b"\x80\x81")
    os.mkfifo(pipe)
    (tmp_path / "empty").mkdir()
    for path, words in (
        (binary, "not UTF-8"),
        (pipe, "pipe"),
        (tmp_path, "has a folder empty within"),
        (tmp_path / "empty", "has no files"),
        (tmp_path / "x", "No such"),
    ):
        with pytest.raises(InputError, match=words):
            read_counters([path])
    with pytest.raises(InputError, match="no file"):
        read_counters([])


def test_a_folder_is_its_files(tmp_path: Path) -> None:
    """Each file once, without hidden ones."""
    for name in ("h1.txt", "h2.txt", ".h3.txt"):
        (tmp_path / name).write_text("link mlx5_0/1 np_cnp_sent 3\n")
    assert [nic.name for nic in read_counters([tmp_path]).nics] == ["h1", "h2"]
    # One of many hosts without counters is left out and named, unless it was asked for or is the only one.
    none = tmp_path / "h0.txt"
    none.write_text("No such device\n")
    assert read_counters([tmp_path]).left_out == (str(none),)
    assert [nic.name for nic in read_counters([tmp_path]).nics] == ["h1", "h2"]
    for asked in ([none], [tmp_path / "h1.txt", none]):
        with pytest.raises(InputError, match=r"h0\.txt: found no counters"):
            read_counters(asked)


def test_a_large_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluidcc.operators.counters.reading.LARGEST", 2**20)
    (tmp_path / "x").write_bytes(b" " * (2**20 + 1))
    with pytest.raises(InputError, match="larger than 1 MiB"):
        read_counters([tmp_path / "x"])


LINES = [line for path in sorted(DATA.glob("*")) if path.suffix != ".md" for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "file.txt"


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=60)), max_size=12))
def test_any_text_is_read_or_refused(path: Path, lines: list[str]) -> None:
    """An index out of range, or a digit that is not ASCII, would raise something else."""
    path.write_text("\n".join(lines), errors="ignore")
    attempt(lambda each: read_counters([each]), path)


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=9)), lambda inner: st.lists(inner)),
    st.sampled_from(sorted(json.loads((DATA / "counters_db.json").read_text()))),
)
def test_any_entry_of_a_dump_is_read_or_refused(path: Path, value: object, key: str) -> None:
    document = json.loads((DATA / "counters_db.json").read_text())
    for changed in (value, {"type": "hash", "value": {"SAI_QUEUE_STAT_BYTES": value, "Ethernet0:3": value}}):
        path.write_text(json.dumps(document | {key: changed}))
        attempt(lambda each: read_counters([each]), path)


def test_reading_imports_nothing_heavy() -> None:
    code = "import sys, fluidcc.operators.counters; print(*{'numpy', 'jax', 'pandas', 'xarray'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


def test_watermarks_that_an_operator_clears_go_before_persistent_ones(give: Give) -> None:
    """The highest would stay what it was, whatever is cleared."""
    of = {"SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES": "900"}
    document = {
        "COUNTERS_PORT_NAME_MAP": {"Ethernet0": "oid:0x1"},
        "COUNTERS_QUEUE_NAME_MAP": {"Ethernet0:3": "oid:0x2"},
        "PERSISTENT_WATERMARKS:oid:0x2": of,
        "USER_WATERMARKS:oid:0x2": {name: "7" for name in of},
    }
    assert give(json.dumps(document), name="leaf1.json").ports[0].queues == {3: {"watermark_bytes": 7}}
    del document["USER_WATERMARKS:oid:0x2"]
    assert give(json.dumps(document), name="leaf1.json").ports[0].queues == {3: {"watermark_bytes": 900}}


def test_of_readings_that_agree_the_first_is_named_and_of_watermarks_the_highest_counts() -> None:
    def read(counter: str, *values: float) -> float:
        entries = [Entry("switch", "s", "p", 3, counter, "x", value, f"line {k}") for k, value in enumerate(values)]
        return _values(entries)[1][3][counter]

    assert read("watermark_bytes", 5.0, 7.0, 6.0) == 7.0
    assert read("sent_packets", 5.0, 5.0) == 5.0
    with pytest.raises(InputError, match=r"^line 2: s p queue 3: sent_packets is 6 here and 5 in line 0; "):
        read("sent_packets", 5.0, 5.0, 6.0)
