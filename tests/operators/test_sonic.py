import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest

from fluidcc.errors import InputError
from fluidcc.operators import read_sonic
from fluidcc.operators.port_fields import Watchdog

SAMPLE = Path(__file__).parents[2] / "examples" / "leaf-100g" / "config_db.json"
SMALL = {
    "PORT": {
        "Ethernet0": {"speed": "100000", "admin_status": "up"},
        "Ethernet4": {"speed": "25000", "admin_status": "up"},
        "Ethernet8": {"speed": "25000", "admin_status": "down"},
    },
    "PORT_QOS_MAP": {"Ethernet0,Ethernet4": {"pfc_enable": "3,4"}},
    "WRED_PROFILE": {
        "W": {
            "green_min_threshold": "1000",
            "green_max_threshold": "5000",
            "green_drop_probability": "20",
            "ecn": "ecn_all",
        }
    },
    "QUEUE": {"Ethernet0|3": {"wred_profile": "W"}, "Ethernet4|0-1": {"wred_profile": "W"}},
    "BUFFER_POOL": {"pool": {"size": "9000000", "xoff": "800000"}},
    "BUFFER_PROFILE": {"P": {"pool": "pool", "size": "100", "xon": "50", "xoff": "700", "dynamic_th": "-3"}},
    "BUFFER_PG": {"Ethernet0,Ethernet4|3-4": {"profile": "P"}},
}


@pytest.fixture
def read(tmp_path):
    def run(config=None, port=None, **tables):
        text = config if isinstance(config, str) else json.dumps({**copy.deepcopy(SMALL), **tables})
        path = tmp_path / "config_db.json"
        path.write_text(text)
        return read_sonic(path, port)

    return run


def refused(read, *mentions, **kwargs):
    with pytest.raises(InputError) as caught:
        read(**kwargs)
    message = str(caught.value)
    assert "\n" not in message
    for mention in ("config_db.json", *mentions):
        assert mention in message


def test_sample_in_si_units():
    port = read_sonic(SAMPLE)
    assert (port.name, port.queue, port.ports, port.lossless_priorities) == ("Ethernet0", 3, 32, (3, 4))
    assert port.rate == 100e9 / 8
    assert port.lossless
    assert port.ecn
    assert (port.kmin, port.kmax, port.pmax) == (2**20, 2**21, 0.05)
    assert (port.buffer_size, port.headroom, port.beta) == (22020096, 49152, 1.0)
    assert not port.notes
    assert any("yellow" in text for text in port.ignored)
    assert any("scheduler.1" in text for text in port.ignored)
    assert port.traffic is not None
    assert (port.traffic.classes, port.traffic.dscps, port.traffic.groups) == ((3,), (3, 26), (3,))
    assert (port.cable, port.mtu, port.watchdog, port.dynamic_buffers, port.wred_green) == (
        5.0,
        9100.0,
        Watchdog("drop", "200", "200", "200"),
        False,
        True,
    )
    red = port.red
    assert red is not None
    assert (red.kmin, red.kmax, red.pmax) == (2**20, 2**21, 0.05)


def test_sample_uplink_has_a_longer_cable():
    assert read_sonic(SAMPLE, "Ethernet124").headroom == 55296


def test_import_is_light():
    code = "import sys; import fluidcc.operators.sonic, fluidcc.operators.nvidia; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_buffers_of_the_priority_group(read):
    port = read()
    assert (port.headroom, port.reserved, port.xon) == (700, 100, 50)
    assert (port.buffer_size, port.pool_headroom, port.beta) == (9e6, 8e5, 1 / 8)
    assert port.ports == 2  # one is down


def test_both_reference_spellings_and_numbers_without_quotes(read):
    profile = {"W": {"green_min_threshold": 1000, "green_max_threshold": 5e3, "green_drop_probability": 20}}
    profile["W"]["ecn"] = "ecn_all"
    queue = {"Ethernet0|3": {"wred_profile": "[WRED_PROFILE|W]"}}
    group = {"Ethernet0|3": {"profile": "[BUFFER_PROFILE|P]"}}
    assert read(WRED_PROFILE=profile, QUEUE=queue, BUFFER_PG=group) == read(
        QUEUE={"Ethernet0|3": {"wred_profile": "W"}}, BUFFER_PG={"Ethernet0|3": {"profile": "P"}}
    )


@pytest.mark.parametrize("key", ["Ethernet0|3", "Ethernet0|3-4", "Ethernet4,Ethernet0|2-3", "host|asic0|Ethernet0|3"])
def test_queue_keys(read, key):
    port = read(QUEUE={key: {"wred_profile": "W"}})
    assert (port.name, port.queue, port.lossless, port.profile) == ("Ethernet0", 3, True, "W")


def test_fields_of_overlapping_queue_keys_are_merged(read):
    port = read(QUEUE={"Ethernet0|3": {"scheduler": "s"}, "Ethernet0|3-4": {"wred_profile": "W"}})
    assert port.queue == 3
    assert port.profile == "W"
    assert any("scheduler" in text for text in port.ignored)


def test_without_pfc_the_first_marked_queue(read):
    port = read(port="Ethernet4", PORT_QOS_MAP={})
    assert (port.queue, port.lossless, port.lossless_priorities) == (0, False, ())


def test_default_port_has_a_lossless_marked_queue(read):
    queues = {"Ethernet0|0": {"wred_profile": "W"}, "Ethernet4|4": {"wred_profile": "W"}}
    port = read(QUEUE=queues)
    assert (port.name, port.queue, port.rate) == ("Ethernet4", 4, 25e9 / 8)


def test_lossless_queue_without_marking_is_returned_for_the_audit(read):
    port = read(port="Ethernet4")
    assert (port.queue, port.lossless, port.ecn, port.red) == (3, True, False, None)
    assert any("no WRED profile" in note for note in port.notes)


def test_pfc_priority_maps_to_another_queue(read):
    port = read(
        PORT_QOS_MAP={"Ethernet0": {"pfc_enable": "3", "pfc_to_queue_map": "M"}},
        MAP_PFC_PRIORITY_TO_QUEUE={"M": {"3": "5"}},
        QUEUE={"Ethernet0|5": {"wred_profile": "W"}},
    )
    assert (port.queue, port.priority, port.lossless, port.headroom) == (5, 3, True, 700)


@pytest.mark.parametrize(
    ("mode", "marks"),
    [
        ("ecn_all", True),
        ("ecn_green", True),
        ("ecn_green_red", True),
        ("ecn_none", False),
        ("ecn_yellow_red", False),
    ],
)
def test_ecn_modes(read, mode, marks):
    assert read(WRED_PROFILE={"W": SMALL["WRED_PROFILE"]["W"] | {"ecn": mode}}).ecn is marks


def test_unwise_thresholds_are_left_to_the_audit(read):
    port = read(WRED_PROFILE={"W": {"green_min_threshold": "9", "green_max_threshold": "3", "ecn": "ecn_all"}})
    assert (port.kmin, port.kmax, port.pmax) == (9, 3, 1.0)
    assert any("green_drop_probability" in note for note in port.notes)


def test_thresholds_and_probabilities_of_nothing_are_read_as_they_stand(read):
    profile = SMALL["WRED_PROFILE"]["W"]
    none = dict.fromkeys(("green_min_threshold", "green_max_threshold", "green_drop_probability"), "0")
    port = read(WRED_PROFILE={"W": profile | none})
    assert (port.kmin, port.kmax, port.pmax) == (0.0, 0.0, 0.0)
    assert read(WRED_PROFILE={"W": profile | {"green_drop_probability": 100}}).pmax == 1.0
    for wrong in ("-1", "101"):
        refused(read, "percent", WRED_PROFILE={"W": profile | {"green_drop_probability": wrong}})


@pytest.mark.parametrize(
    ("power", "beta"), [("-10", 2.0**-10), ("0", 1.0), ("10", 1024.0), ("-11", None), ("11", None)]
)
def test_powers_of_two_that_alpha_may_be(read, power, beta):
    profile = {"P": SMALL["BUFFER_PROFILE"]["P"] | {"dynamic_th": power}}
    if beta is None:
        refused(read, "dynamic_th", BUFFER_PROFILE=profile)
    else:
        assert read(BUFFER_PROFILE=profile).beta == beta


@pytest.mark.parametrize(("speed", "rate"), [("1", 125e3), ("100000000", 12.5e12), ("0", None), ("100000001", None)])
def test_speeds_are_megabits_of_a_port(read, speed, rate):
    ports = {"Ethernet0": {"speed": speed, "admin_status": "up"}}
    if rate is None:
        refused(read, "PORT|Ethernet0 speed", PORT=ports)
    else:
        assert read(PORT=ports).rate == rate


def test_the_longest_of_a_ports_cables_counts(read):
    lengths = {"A": {"Ethernet0": "5m", "Ethernet4": "900m"}, "B": {"Ethernet0": "40 M"}}
    assert read(CABLE_LENGTH=lengths).cable == 40.0
    assert read(CABLE_LENGTH={"A": {"Ethernet4": "5m"}}).cable is None
    assert read(CABLE_LENGTH={"A": {"Ethernet0": "0m"}}).cable == 0.0
    refused(read, "CABLE_LENGTH|A Ethernet0", CABLE_LENGTH={"A": {"Ethernet0": "-1m"}})


def test_a_groups_buffers_are_those_of_the_rows_that_hold_its_priority(read):
    """Priority 3 is of both ends; a row beside it says nothing."""
    profiles = {name: {"pool": "pool", "xoff": xoff} for name, xoff in (("P", "700"), ("Q", "900"))}
    for rows, headroom in (
        ({"Ethernet0|0-3": {"profile": "Q"}}, 900.0),
        ({"Ethernet0|3-7": {"profile": "Q"}}, 900.0),
        ({"Ethernet0|0-2": {"profile": "Q"}, "Ethernet0|4": {"profile": "Q"}}, None),
        ({"Ethernet0|3": {"profile": "P"}, "Ethernet0|3-4": {"profile": "Q"}}, 900.0),
    ):
        assert read(BUFFER_PROFILE=profiles, BUFFER_PG=rows).headroom == headroom


def test_an_egress_queue_is_that_of_the_rows_that_hold_it(read):
    profiles = SMALL["BUFFER_PROFILE"] | {"Q": {"static_th": "900"}}
    for row, limit in (("0-3", 900.0), ("3-7", 900.0), ("0-2", None), ("4-7", None)):
        rows = {f"Ethernet0|{row}": {"profile": "Q"}}
        assert read(BUFFER_PROFILE=profiles, BUFFER_QUEUE=rows).queue_limit == limit


def test_maps_lead_a_dscp_to_its_queue_and_group(read):
    """DSCP 26 to class 4, class 4 to queue 3 and group 2; PFC of priority 3 watches group 5."""
    tables = {
        "DSCP_TO_TC_MAP": {"D": {"26": "4", "48": "6", "8": "3"}},
        "TC_TO_QUEUE_MAP": {"Q": {"4": "3", "3": "4"}},
        "TC_TO_PRIORITY_GROUP_MAP": {"G": {"4": "2"}},
        "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": {"P": {"3": "5"}},
    }
    fields = {"dscp_to_tc_map": "D", "tc_to_queue_map": "Q", "tc_to_pg_map": "G", "pfc_to_pg_map": "P"}
    named = {"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3,4"} | fields}}
    found = read(port="Ethernet0", **tables, **named).traffic
    assert (found.classes, found.dscps, found.groups, found.wanted_group) == ((4,), (26,), (2,), 5)
    assert found.queues_of_dscp == ((8, 4), (26, 3), (48, 6))
    assert (found.dscp_map, found.group_map, found.lacking, found.other_queues) == ("D", "G", (), (3, 4, 6))
    silent = read(port="Ethernet0", **named).traffic
    assert silent.lacking == tuple((table, next(iter(entry))) for table, entry in tables.items())
    assert (silent.classes, silent.dscps, silent.groups, silent.wanted_group) == ((3,), None, (3,), 3)
    for table, most in (("DSCP_TO_TC_MAP", 15), ("TC_TO_QUEUE_MAP", 255), ("TC_TO_PRIORITY_GROUP_MAP", 7)):
        (name,) = tables[table]
        assert read(port="Ethernet0", **named, **tables | {table: {name: {"26": str(most)}}}).traffic is not None
        refused(read, table, port="Ethernet0", **named, **tables | {table: {name: {"26": str(most + 1)}}})


def test_buffers_left_to_the_switch_are_unknown(read):
    port = read(BUFFER_PG={"Ethernet0|3-4": {"profile": "NULL"}})
    assert (port.headroom, port.buffer_size, port.beta) == (None, None, None)
    assert any("the switch chooses" in note for note in port.notes)


def test_port_that_is_down_is_noted(read):
    queues = {"Ethernet8|3": {"wred_profile": "W"}}
    assert any("not administratively up" in note for note in read(port="Ethernet8", QUEUE=queues).notes)


def test_missing_port_lists_those_there_are(read):
    refused(read, "'Ethernet99'", "Ethernet0, Ethernet4, Ethernet8", port="Ethernet99")


def test_missing_tables(tmp_path):
    for table in ("PORT", "QUEUE", "WRED_PROFILE"):
        path = tmp_path / "config_db.json"
        path.write_text(json.dumps({k: v for k, v in SMALL.items() if k != table}))
        with pytest.raises(InputError, match=table):
            read_sonic(path)


def test_json_error_has_line_and_column(read):
    refused(read, "config_db.json:2:8", config='{"PORT":\n {"a": x}}')


@pytest.mark.parametrize(
    "value", ["-5", -5, "1e400", 1e300, "NaN", float("nan"), {"a": {}}, [], True, None, "", "5KB", 10**30]
)
def test_bad_thresholds(read, value):
    profile = {"W": SMALL["WRED_PROFILE"]["W"] | {"green_min_threshold": value}}
    refused(read, "WRED_PROFILE|W green_min_threshold", "bytes", WRED_PROFILE=profile)


@pytest.mark.parametrize(
    ("tables", "mentions"),
    [
        ({"PORT": {"Ethernet0": {"admin_status": "up"}}}, ["PORT|Ethernet0", "speed", "100000"]),
        ({"PORT": {"Ethernet0": "fast"}}, ["PORT|Ethernet0", "object"]),
        ({"PORT": {}}, ["PORT"]),
        ({"PORT": []}, ["PORT", "a list"]),
        ({"QUEUE": {}, "PORT_QOS_MAP": {}}, ["wred_profile", "pfc_enable"]),
        ({"QUEUE": {"Ethernet0|x": {}}}, ["QUEUE|Ethernet0|x", "Ethernet0|3"]),
        ({"QUEUE": {"Ethernet0|4-3": {}}}, ["4-3"]),
        ({"QUEUE": {"Ethernet0|3": {"wred_profile": "V"}}}, ["QUEUE|Ethernet0|3", "'V'", "it has: W"]),
        ({"QUEUE": {"Ethernet0|3": {"wred_profile": "[SCHEDULER|W]"}}}, ["WRED_PROFILE"]),
        ({"QUEUE": {"Ethernet0|3": {"wred_profile": {}}}}, ["a nested object"]),
        ({"WRED_PROFILE": {"W": {"ecn": "ecn_all"}}}, ["green_min_threshold", "1048576"]),
        ({"WRED_PROFILE": {"W": SMALL["WRED_PROFILE"]["W"] | {"ecn": "on"}}}, ["'on'", "ecn_all"]),
        (
            {"WRED_PROFILE": {"W": SMALL["WRED_PROFILE"]["W"] | {"green_drop_probability": "101"}}},
            ["percent"],
        ),
        (
            {"WRED_PROFILE": {"W": SMALL["WRED_PROFILE"]["W"] | {"green_drop_probability": "0.1"}}},
            ["'0.1'", "percent, a whole number"],
        ),
        ({"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3,9"}}}, ["pfc_enable", "0 to 7"]),
        ({"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": [3]}}}, ["pfc_enable", '"3,4"']),
        ({"BUFFER_PROFILE": {}}, ["BUFFER_PG|Ethernet0|3", "'P'"]),
        ({"BUFFER_PROFILE": {"P": {"dynamic_th": "99"}}}, ["dynamic_th"]),
        ({"BUFFER_POOL": {}}, ["BUFFER_POOL"]),
        ({"QUEUE": {"Ethernet0|3": {"wred_profile": "a\nb\x1b"}}}, ["QUEUE|Ethernet0|3"]),
    ],
)
def test_refusals_say_where_and_what_to_write(read, tables, mentions):
    refused(read, *mentions, **tables)


def test_a_text_with_an_exponent_is_refused_and_a_number_is_not(read):
    """SONiC reads 2 of the text 2e5, which was taken as 200000; the JSON number 2e5 is 200000 to it."""
    profile = SMALL["WRED_PROFILE"]["W"]
    at = {"W": profile | {"green_min_threshold": "2e5"}}
    refused(read, "W green_min_threshold: '2e5' has an exponent", "in digits", WRED_PROFILE=at)
    assert read(WRED_PROFILE={"W": profile | {"green_min_threshold": 2e5}}).kmin == 200_000


def test_unreadable_files(tmp_path):
    (tmp_path / "latin").write_bytes(b'{"PORT": "\xff"}')
    (tmp_path / "deep").write_text("[" * 200_000)
    (tmp_path / "digits").write_text('{"PORT": ' + "9" * 5000 + "}")
    (tmp_path / "array").write_text("[1]")
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbf{}")
    for name, mention in [
        ("latin", "UTF-8"),
        ("deep", "nested"),
        ("digits", "digits"),
        ("array", "a list"),
        ("bom", "no table PORT"),
        ("none", "no such file"),
        (".", "directory"),
        ("a\0b", "file name"),
        ("x" * 300, "cannot be read"),
    ]:
        with pytest.raises(InputError, match=mention):
            read_sonic(f"{tmp_path}/{name}")


def test_file_size_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("fluidcc.operators.config_files.LARGEST", 100)
    path = tmp_path / "big"
    path.write_text(" " * 101)
    with pytest.raises(InputError, match="larger than"):
        read_sonic(path)


@pytest.mark.parametrize(("state", "up"), [("up", True), ("down", False), (None, False)])
def test_a_port_is_down_if_the_file_says_so(state, up, tmp_path):
    tables = json.loads(SAMPLE.read_text())
    for fields in tables["PORT"].values():
        fields.pop("admin_status")
        fields |= {} if state is None else {"admin_status": state}
    path = tmp_path / "config_db.json"
    path.write_text(json.dumps(tables))
    assert read_sonic(path, "Ethernet0").up is up


@pytest.mark.parametrize(
    ("fields", "shaper"),
    [({"pir": "1250000"}, 1.25e6), ({"pir": "0"}, None), ({"meter_type": "packets", "pir": "9"}, None)],
)
def test_a_queues_shaper_is_in_bytes_per_second(fields, shaper, tmp_path):
    tables = json.loads(SAMPLE.read_text())
    tables["SCHEDULER"]["scheduler.1"] |= fields
    path = tmp_path / "config_db.json"
    path.write_text(json.dumps(tables))
    assert read_sonic(path, "Ethernet0").shaper == shaper
