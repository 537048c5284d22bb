"""SONiC's configuration as it comes: chassis, several ASICs, dumps, switch-wide maps, switches of each port."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fluidcc.cli.audit import print_audit
from fluidcc.errors import InputError
from fluidcc.operators import SwitchPort, checks, lossless, read_sonic
from fluidcc.operators.audit import audit
from fluidcc.operators.commands import commands_of
from fluidcc.operators.config_db import ConfigDB, configurations
from fluidcc.operators.ports import alike, read_ports
from tests.operators.test_commands import applied

SAMPLE = Path(__file__).parents[2] / "examples" / "leaf-100g" / "config_db.json"
UNSAID: dict[str, str | None] = {"admin_status": None}
DOWN: dict[str, str | None] = {"admin_status": "down"}
PORTS = ("Ethernet0", "Ethernet4", "Ethernet8", "Ethernet12")
Write = Callable[[Any], Path]


def small() -> dict[str, Any]:
    """The sample with four ports."""
    config = json.loads(SAMPLE.read_text())
    for table in ("PORT", "QUEUE", "BUFFER_PG", "BUFFER_QUEUE", "PORT_QOS_MAP", "PFC_WD"):
        config[table] = {
            key: value for key, value in config[table].items() if key.split("|")[0] in (*PORTS, "GLOBAL", "global")
        }
    return config


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def saved(document: Any) -> Path:
        path = tmp_path / "config_db.json"
        path.write_text(json.dumps(document))
        return path

    return saved


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_dump_as_copied_from_a_terminal(tmp_path: Path, encoding: str) -> None:
    """Prompts before and after it are none of it; a fault is told by its line in the file."""
    path, prompt = tmp_path / "dump.txt", "admin@leaf1:~$ "
    text = f"{prompt}show runningconfiguration all\n{json.dumps(small(), indent=4)}\n{prompt}\n"
    path.write_text(text, encoding=encoding)
    assert ConfigDB(path).tables == small()
    path.write_text(text.replace('"PORT": {', '"PORT": {,'), encoding=encoding)
    at = text[: text.index('"PORT": {')].count("\n") + 1
    with pytest.raises(InputError, match=rf"dump\.txt:{at}:\d+: not JSON"):
        ConfigDB(path)


def test_open_braces_are_refused_at_once(tmp_path: Path) -> None:
    """Half a megabyte of them took minutes: each was looked at to the end of the file."""
    path = tmp_path / "open.json"
    path.write_text("{\n" * 50_000 + "}\n" + "{\n" * 200_000)
    with pytest.raises(InputError, match=r"open\.json:2:1: not JSON"):
        ConfigDB(path)


def kinds(found: Any) -> dict[str, str]:
    return {each.what: each.severity for each in found}


# -- chassis: rows of all cards ----------------------------------------------------------------------------------------


def chassis(own: Mapping[str, str], cards: tuple[str, ...] = ("lc-a|Asic0", "lc-b|Asic0")) -> dict[str, Any]:
    """Rows of two cards; those of the second, which come last, mark earlier."""
    config = small()
    config["DEVICE_METADATA"]["localhost"] = dict(own)
    config["WRED_PROFILE"]["REMOTE"] = config["WRED_PROFILE"]["AZURE_LOSSLESS"] | {"green_min_threshold": "1000"}
    config["QUEUE"] = {
        f"{card}|{port}|{queue}": {"wred_profile": profile}
        for card, profile in zip(cards, ("AZURE_LOSSLESS", "REMOTE"), strict=True)
        for port in PORTS
        for queue in (3, 4)
    }
    return config


@pytest.mark.parametrize(
    ("own", "cards"),
    [
        ({"hostname": "lc-a", "asic_name": "Asic0"}, ("lc-a|Asic0", "lc-b|Asic0")),
        ({"hostname": "LC-A", "asic_name": "asic0"}, ("lc-a|Asic0", "lc-b|Asic0")),  # spelled in another way
        ({"hostname": "lc-a"}, ("lc-a|Asic0", "lc-b|Asic0")),
        ({"hostname": "lc-a", "asic_name": "asic0"}, ("lc-a|asic0", "lc-a|asic1")),  # of two ASICs of one card
    ],
)
def test_rows_of_other_cards_are_theirs(own: dict[str, str], cards: tuple[str, str], write: Write) -> None:
    port = read_sonic(write(chassis(own, cards)))
    assert (port.profile, port.kmin) == ("AZURE_LOSSLESS", 1048576)
    assert any(cards[1] in line for line in port.ignored)


@pytest.mark.parametrize("own", [{}, {"hostname": "renamed"}])
def test_cards_none_of_which_is_known_to_be_this_one_are_refused(own: dict[str, str], write: Write) -> None:
    with pytest.raises(InputError, match=r"lc-a\|Asic0 and lc-b\|Asic0.*hostname and asic_name"):
        read_sonic(write(chassis(own)))


def test_rows_of_one_card_are_this_ones_whatever_it_is_called(write: Write) -> None:
    config = chassis({"hostname": "renamed"})
    config["QUEUE"] = {key: row for key, row in config["QUEUE"].items() if key.startswith("lc-a")}
    assert read_sonic(write(config)).profile == "AZURE_LOSSLESS"


def test_a_patch_leaves_other_cards_alone(write: Write) -> None:
    """Both cards share the profile: this one's rows get their own, and those of the other keep it."""
    config = chassis({"hostname": "lc-a", "asic_name": "Asic0"})
    for row in config["QUEUE"].values():
        row["wred_profile"] = "AZURE_LOSSLESS"
    path = write(config)
    groups, _ = read_ports(path, "Ethernet0")
    found = commands_of(path, alike(groups, groups[0].switch), None, {"kmin": 2000.0})
    queues = applied(config, found.patch)["QUEUE"]
    assert {row["wred_profile"] for key, row in queues.items() if not key.startswith("lc-a|Asic0|Ethernet0|")} == {
        "AZURE_LOSSLESS"
    }
    assert queues["lc-a|Asic0|Ethernet0|3"]["wred_profile"] == "AZURE_LOSSLESS_100G"


# -- ports that send nothing -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 4),
        ({"Ethernet8": {"role": "Inb"}, "Ethernet12": {"role": "Rec"}}, 2),
        ({"Ethernet8": {"role": "Int"}, "Ethernet12": {"role": "Ext"}}, 4),  # backplane ports carry traffic
        ({"Ethernet8": {"admin_status": "down"}}, 3),
        ({"Ethernet0": UNSAID, "Ethernet4": UNSAID, "Ethernet8": {"admin_status": "Down"}}, 1),
        ({"Ethernet0": UNSAID, "Ethernet4": UNSAID, "Ethernet8": DOWN, "Ethernet12": DOWN}, 2),
        ({name: DOWN for name in PORTS}, 4),
    ],
)
def test_senders_are_ports_that_are_up_and_have_a_cable(
    changes: dict[str, dict[str, str | None]], count: int, write: Write
) -> None:
    config = small()
    for name, fields in changes.items():
        config["PORT"][name] = {k: v for k, v in (config["PORT"][name] | fields).items() if v is not None}
    assert read_sonic(write(config), "Ethernet0").ports == count


def test_in_band_ports_of_older_releases_are_known_by_name(write: Write) -> None:
    config = small()
    for name in ("Ethernet-IB0", "Ethernet-Rec0"):
        config["PORT"][name] = config["PORT"]["Ethernet0"]
    path = write(config)
    assert read_sonic(path).ports == 4
    assert read_ports(path)[0][0].names == PORTS


# -- maps of the whole switch ------------------------------------------------------------------------------------------


def test_a_map_of_the_switch_holds_for_ports_that_name_none(write: Write) -> None:
    """One port names its own; of the others the map of the switch leads no DSCP to queue 3."""
    config = small()
    config["DSCP_TO_TC_MAP"]["ALL_TO_1"] = {str(dscp): "1" for dscp in range(64)}
    config["PORT_QOS_MAP"]["global"] = {"dscp_to_tc_map": "ALL_TO_1"}
    for name in PORTS[1:]:
        del config["PORT_QOS_MAP"][name]["dscp_to_tc_map"]
    path = write(config)
    own, others = (lossless.traffic(read_sonic(path, name), None) for name in PORTS[:2])
    assert kinds(own) == {"DSCPs lead to this queue": "ok"}
    (found,) = others
    assert (found.severity, found.what) == ("bad", "no DSCP leads to this queue")
    assert "DSCP_TO_TC_MAP|ALL_TO_1" in found.why
    assert "go to queue 1" in found.why


def test_priorities_of_the_switch_as_a_whole_are_no_ports(write: Write) -> None:
    config = small()
    config["PORT_QOS_MAP"]["global"] = {"pfc_enable": "5"}
    assert read_sonic(write(config)).lossless_priorities == (3, 4)


# -- switches of each port and priority --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listed", "unwatched"), [("3", [4]), ("3,4", []), (" 4 , 3", []), ("", [3, 4]), (None, []), ("5", [3, 4])]
)
def test_priorities_that_the_watchdog_watches(listed: str | None, unwatched: list[int], write: Write) -> None:
    config = small()
    for name in PORTS:
        config["PORT_QOS_MAP"][name].pop("pfcwd_sw_enable")
        if listed is not None:
            config["PORT_QOS_MAP"][name]["pfcwd_sw_enable"] = listed
    what = "the PFC watchdog does not watch this priority"
    ports = [group.switch for group in read_ports(write(config))[0]]
    found = [port.priority for port in ports if what in kinds(lossless.watchdog(port))]
    assert found == unwatched
    told = {str(each.apply[0].value) for port in ports for each in lossless.watchdog(port) if each.what == what}
    assert told == ({"3,4,5"} if listed == "5" else {"3,4"} if unwatched else set())  # one list for both priorities
    fine = [port for port in ports if port.priority not in unwatched]
    usual = {"the PFC watchdog may watch nothing": "warn"} if listed is None else {"PFC watchdog": "ok"}
    assert all(kinds(lossless.watchdog(port)) == usual for port in fine)


def test_a_port_without_a_list_beside_one_that_has_it_is_not_watched(write: Write) -> None:
    config = small()
    first, *others = PORTS
    config["PORT_QOS_MAP"][first].pop("pfcwd_sw_enable")
    path, what = write(config), "the PFC watchdog does not watch this priority"
    assert what in kinds(lossless.watchdog(read_sonic(path, first)))
    assert all(what not in kinds(lossless.watchdog(read_sonic(path, name))) for name in others)


def test_asymmetric_pfc_is_told(write: Write) -> None:
    config = small()
    config["PORT"]["Ethernet0"]["pfc_asym"] = "on"
    config["PORT"]["Ethernet4"]["pfc_asym"] = "off"
    path = write(config)
    on, off = (kinds(lossless.watchdog(read_sonic(path, name))) for name in PORTS[:2])
    assert on.keys() - off.keys() == {"PFC is asymmetric"}


# -- static thresholds and egress queues -------------------------------------------------------------------------------


def fixed(threshold: int, kmin: int, **more: Any) -> dict[str, Any]:
    config = small()
    profile = config["BUFFER_PROFILE"][config["BUFFER_PG"]["Ethernet0|3-4"]["profile"]]
    del profile["dynamic_th"]
    profile["static_th"] = str(threshold)
    config["WRED_PROFILE"]["AZURE_LOSSLESS"]["green_min_threshold"] = str(kmin)
    config["BUFFER_PROFILE"]["egress_lossless_profile"] |= more
    return config


@pytest.mark.parametrize(
    ("kmin", "what", "says"),
    [
        (74_999, "ECN marks before PFC pauses", "below 75KB"),
        (75_000, "PFC can pause before ECN marks", "below 75KB"),
        (400_000, "PFC can pause before ECN marks", "PAUSE at 300KB comes before Kmin 400KB"),
    ],
)
def test_a_static_threshold_of_pause_is_compared_with_kmin(kmin: int, what: str, says: str, write: Write) -> None:
    """300 KB over four ports are 75 KB: below it ECN marks first, wherever a port's packets wait."""
    port = read_sonic(write(fixed(300_000, kmin)))
    assert (port.static_th, port.beta) == (300_000, None)
    (found,) = checks.buffers(port)
    assert found.what == what
    assert says in found.why
    if found.severity != "ok":
        assert found.suggest == (
            "lower green_min_threshold to 74999 or less, or raise static_th of "
            f"BUFFER_PROFILE|{port.buffer_profile} to {4 * kmin + 1} or more"
        )
    assert not any("static_th" in line for line in port.ignored)


@pytest.mark.parametrize(("mode", "wanted"), [("dynamic", (None, 1.0)), ("static", (300_000, None))])
def test_of_both_thresholds_the_one_of_the_pools_mode_holds(mode: str, wanted: tuple[Any, Any], write: Write) -> None:
    config = fixed(300_000, 9000)
    config["BUFFER_PROFILE"][config["BUFFER_PG"]["Ethernet0|3-4"]["profile"]]["dynamic_th"] = "0"
    config["BUFFER_POOL"]["ingress_lossless_pool"]["mode"] = mode
    port = read_sonic(write(config))
    assert (port.static_th, port.beta) == wanted


def test_a_static_threshold_that_no_buffer_holds_is_not_advised(write: Write) -> None:
    (found,) = checks.buffers(dataclasses.replace(read_sonic(write(fixed(20_000, 6_000_000))), kmax=9e6))
    assert "dynamic_th" in found.suggest  # 5 KB are below two packets, and 24 MB above the pool
    assert found.apply == ()


@pytest.mark.parametrize(
    ("profile", "limit"),
    [
        ({}, 33554432),  # SONiC's template: all of the pool
        ({"static_th": "1000000"}, 1_000_000),
        ({"static_th": "1000000", "size": "500"}, 1_000_500),
        ({"static_th": "99999999999"}, 33554432),
        ({"static_th": None, "dynamic_th": "0"}, 16777216),  # half of the pool
        ({"static_th": None, "dynamic_th": "-1"}, 33554432 / 3),
    ],
)
def test_what_an_egress_queue_may_fill(profile: dict[str, Any], limit: float, write: Write) -> None:
    config = small()
    entry = config["BUFFER_PROFILE"]["egress_lossless_profile"] | profile
    config["BUFFER_PROFILE"]["egress_lossless_profile"] = {k: v for k, v in entry.items() if v is not None}
    assert read_sonic(write(config)).queue_limit == pytest.approx(limit)


# -- several ASICs, and databases --------------------------------------------------------------------------------------


def two_asics() -> dict[str, Any]:
    first, second = small(), small()
    second["WRED_PROFILE"]["AZURE_LOSSLESS"]["green_min_threshold"] = "5000"
    return {"localhost": {"DEVICE_METADATA": {"localhost": {"hostname": "m"}}}, "asic0": first, "asic1": second}


def test_each_asic_is_read_with_its_own_ports_and_profiles(write: Write) -> None:
    path = write(two_asics())
    groups, _ = read_ports(path)
    assert [(each.switch.asic, each.switch.queue, each.switch.kmin, each.switch.ports) for each in groups] == [
        ("asic0", 3, 1048576, 4),
        ("asic0", 4, 1048576, 4),
        ("asic1", 3, 5000, 4),
        ("asic1", 4, 5000, 4),
    ]
    for name, asics in (("Ethernet0", ["asic0", "asic1"]), ("asic1:Ethernet0", ["asic1"])):
        assert [each.switch.asic for each in read_ports(path, name)[0] if each.switch.queue == 3] == asics
    with pytest.raises(InputError, match="asic0:Ethernet0"):
        read_ports(path, "Ethernet99")


def test_a_patch_names_the_asic(write: Write) -> None:
    """SONiC's apply-patch takes a path below /asic0; undone, the file is as it was."""
    document = two_asics()
    path = write(document)
    groups, _ = read_ports(path)
    found = commands_of(path, groups, None, {"kmin": 2000.0})
    after = applied(document, found.patch)
    assert [after[asic]["WRED_PROFILE"]["AZURE_LOSSLESS"]["green_min_threshold"] for asic in ("asic0", "asic1")] == [
        "2000",
        "2000",
    ]
    assert applied(after, found.undo) == document
    assert "-gmin 2000 -n asic1" in found.files["ecnconfig.txt"]


def dumped(config: Mapping[str, Mapping[str, Any]], separator: str, suffix: str = "") -> dict[str, Any]:
    """A database as redis-dump and sonic-db-dump write it."""
    return {
        separator.join((f"{table}{suffix}", key.replace("|", separator))): {
            "type": "hash",
            "value": fields or {"NULL": "NULL"},
            "ttl": -1,
        }
        for table, entries in config.items()
        for key, fields in entries.items()
    }


@pytest.mark.parametrize("separator", ["|", ":"])
@pytest.mark.parametrize("wrapped", [lambda d: d, lambda d: {"CONFIG_DB": d}, lambda d: {"0": {"a": 1}, "4": d}])
def test_a_dump_is_read_as_the_file(separator: str, wrapped: Callable[[Any], Any], write: Write) -> None:
    expected = read_sonic(write(small()))
    port = read_sonic(write(wrapped(dumped(small(), separator))))
    assert port == expected
    plain = {name: entry["value"] for name, entry in dumped(small(), separator).items()}
    assert read_sonic(write(wrapped(plain))) == expected


def test_each_asic_is_named_and_no_queue_twice(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    document = two_asics()
    for asic in ("asic0", "asic1"):  # nothing is marked, so that nothing is run
        for queue in document[asic]["QUEUE"].values():
            queue.pop("wred_profile", None)
    print_audit(audit(write(document), packets=0))
    said = " ".join(capsys.readouterr().out.split())
    for asic in ("asic0", "asic1"):
        ports = ", ".join(f"{asic}:Ethernet{n}" for n in (0, 4, 8, 12))
        assert said.count(f"{ports}, 100Gbps, queues 3, 4, lossless") == 1


def test_a_dump_of_several_asics(write: Write) -> None:
    document = {name: dumped(config, "|") for name, config in two_asics().items()}
    assert [each.switch.asic for each in read_ports(write(document))[0]] == ["asic0", "asic0", "asic1", "asic1"]


def test_what_was_configured_goes_before_what_was_applied() -> None:
    """APPL_DB names its tables PORT_TABLE: alone it is read, beside CONFIG_DB's it adds nothing."""
    told = dumped({"PORT": {"Ethernet0": {"speed": "1"}}}, "|")
    applied_ = dumped({"PORT": {"Ethernet0": {"speed": "2"}, "PortInitDone": {}}}, ":", "_TABLE")
    assert configurations(told | applied_)[""]["PORT"] == {"Ethernet0": {"speed": "1"}}
    assert configurations(applied_)[""]["PORT"]["Ethernet0"] == {"speed": "2"}


def test_references_of_an_applied_database(write: Write) -> None:
    config = small()
    for row in config["BUFFER_PG"].values():
        row["profile"] = f"[BUFFER_PROFILE_TABLE:{row['profile']}]"
    assert read_sonic(write(config)).headroom == 49152


def test_one_asic_or_a_plain_document_has_no_name() -> None:
    plain = small()
    assert configurations(plain) == {"": plain}
    assert configurations({"localhost": plain}) == {"": plain}
    assert [*configurations({"asic0": plain})] == ["asic0"]
    assert configurations({"x": 1}) == {"": {"x": 1}}


def test_a_port_is_looked_for_in_each_asic_and_the_best_queue_in_all(write: Write) -> None:
    """A port of the second alone is found there; without a name, the first of those that are best."""
    document = two_asics()
    document["asic1"]["PORT"]["Ethernet20"] = document["asic1"]["PORT"]["Ethernet0"]
    document["asic1"]["QUEUE"]["Ethernet20|3"] = document["asic1"]["QUEUE"]["Ethernet0|3"]
    path = write(document)
    found = read_sonic(path, "Ethernet20")
    assert (found.asic, found.kmin) == ("asic1", 5000)
    assert read_sonic(path, "Ethernet0").asic == read_sonic(path).asic == "asic0"
    for port in PORTS:
        document["asic0"]["PORT_QOS_MAP"][port]["pfc_enable"] = ""
    assert read_sonic(write(document)).asic == "asic1"
    with pytest.raises(InputError, match="table PORT has no 'Ethernet99'"):
        read_sonic(path, "Ethernet99")


def test_ports_of_one_asic_are_called_by_their_names_alone(write: Write) -> None:
    """A document of one ASIC is no switch with several: neither ports that are read, refused or left out name it."""
    config = small()
    config["PORT_QOS_MAP"]["Ethernet4"]["pfc_enable"] = ""
    for queue in (3, 4):
        del config["QUEUE"][f"Ethernet4|{queue}"]["wred_profile"]
    groups, left_out = read_ports(write({"asic0": config}))
    assert left_out == ["Ethernet4"]
    assert {group.switch.asic for group in groups} == {""}
    with pytest.raises(InputError, match=r"its ports are Ethernet0, "):
        read_ports(write({"asic0": config}), "Ethernet99")
    _, left_out = read_ports(write({"asic0": config, "asic1": small()}))
    assert left_out == ["asic0:Ethernet4"]


def test_what_is_no_file_is_refused_at_once() -> None:
    """A device never ends."""
    with pytest.raises(InputError, match="pipe or a device"):
        audit("/dev/zero")


def test_a_port_is_described_alike_whatever_the_form(write: Write) -> None:
    """Copies of one configuration for two ASICs differ in the ASIC's name alone."""
    document = {"asic0": small(), "asic1": copy.deepcopy(small())}
    first, second = (group.switch for group in read_ports(write(document), "Ethernet0")[0][::2])
    fields = {name for name in vars(first) if getattr(first, name) != getattr(second, name)}
    assert fields == {"asic"}
    assert isinstance(first, SwitchPort)


def test_an_empty_table_of_the_hosts_is_no_asics() -> None:
    """Catches a switch of several ASICs that is refused for its host's empty PORT."""
    parts = {"localhost": {"PORT": {}}, "asic0": {"PORT": {"Ethernet0": {}}}, "asic1": {"PORT": {"Ethernet4": {}}}}
    assert [*configurations(parts)] == ["asic0", "asic1"]
    assert [*configurations({"localhost": {"PORT": {}}, "asic0": {"PORT": {}}})] == ["localhost", "asic0"]


def test_a_scheduler_whose_rate_was_read_is_not_said_to_be_unread(write: Write) -> None:
    config = small()
    config["SCHEDULER"] = {"scheduler.1": {"pir": "1250000"}}
    assert not [line for line in read_sonic(write(config)).ignored if "SCHEDULER" in line]
