"""Switches and NICs of a fabric by their own files: tiers, rates, packets, and what is said of them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.cli.contenders import contenders, read, told_against
from fluidcc.cli.request import Request, scenario_of, with_ports
from fluidcc.errors import InputError
from fluidcc.operators.devices import Devices, read_devices
from fluidcc.scenario.frames import framed
from fluidcc.scenario.model import resolve
from fluidcc.workloads.fabrics import named_topology

EXAMPLES = Path(__file__).parents[2] / "examples"
LEAF, FABRIC = (str(EXAMPLES / name / "config_db.json") for name in ("leaf-100g", "fabric-400g"))
NIC = str(EXAMPLES / "leaf-100g" / "nic.txt")
NONE = fc.RED(0, 0, 0)  # of no link here
ALL_OF_IT = "all of DCQCN's settings"
FLOWS = [(0, 2, 0.0, 1e5), (1, 2, 0.0, 1e5), (0, 1, 0.0, 1e5)]


def marked(devices: Devices, shape: str, **rates: Any) -> dict[str, set[float]]:
    """Kmin of links to hosts, of ToRs' links up, and of tier 2."""
    topology = named_topology(shape, **{"rate": devices.rate, "fabric_rate": devices.fabric_rate, **rates})
    links = topology.scenario(FLOWS, **devices.options(scheme=fc.DCQCN())).links
    spines = {str(switch) for switch, tier in topology.tiers.items() if tier == 2}
    hosts = set(map(str, topology.hosts))
    found: dict[str, set[float]] = {"hosts": set(), "up": set(), "above": set()}
    for link in links:
        place = "hosts" if link.target in hosts else "above" if link.source in spines else "up"
        found[place].add((link.marking or NONE).kmin)
    return found


def test_each_link_has_the_thresholds_of_its_own_file_and_port() -> None:
    """By hand: the leaf's file has one kind of port in two groups, the fabric's 400 KB to hosts and 1 MiB upwards."""
    assert marked(read_devices([LEAF, FABRIC]), "leaf-spine:2x1x2") == {
        "hosts": {1_048_576.0}, "up": {1_048_576.0}, "above": {400e3},
    }  # fmt: skip
    one = read_devices([FABRIC])
    assert marked(one, "leaf-spine:2x1x2") == {"hosts": {400e3}, "up": {1_048_576.0}, "above": {1_048_576.0}}
    assert marked(one, "leaf-spine:1x1x3") == {"hosts": {400e3}, "up": {1_048_576.0}, "above": {1_048_576.0}}
    turned = read_devices([FABRIC], port="Ethernet96")  # its ports to hosts are the others
    assert marked(turned, "leaf-spine:2x1x2") == {"hosts": {1_048_576.0}, "up": {400e3}, "above": {400e3}}


def faster_up(tmp_path: Path) -> str:
    """The leaf with links up of 400 Gb/s and their own thresholds."""
    document = json.loads(Path(LEAF).read_text())
    profiles = document["WRED_PROFILE"]
    profiles["UP"] = {**profiles["AZURE_LOSSLESS"], "green_min_threshold": "300000", "green_max_threshold": "800000"}
    for number in range(96, 128, 4):
        document["PORT"][f"Ethernet{number}"]["speed"] = "400000"
        for queue in (3, 4):
            document["QUEUE"][f"Ethernet{number}|{queue}"] = {
                **document["QUEUE"].get(f"Ethernet{number}|{queue}", {}), "wred_profile": "UP",
            }  # fmt: skip
    path = tmp_path / "mixed.json"
    path.write_text(json.dumps(document))
    return str(path)


@pytest.mark.parametrize("port", [None, "Ethernet0", "Ethernet8"])
def test_hosts_have_the_rate_of_their_own_ports(port: str | None, tmp_path: Path) -> None:
    devices = read_devices([faster_up(tmp_path)], port=port)
    assert (devices.rate, devices.fabric_rate) == (12.5e9, 50e9)
    assert marked(devices, "leaf-spine:2x1x2") == {"hosts": {1_048_576.0}, "up": {300e3}, "above": {300e3}}


def test_one_rack_is_what_simulate_runs() -> None:
    """The same port, NIC, packets, buffer and flow control by the two ways from the same files."""
    request = with_ports(Request("dcqcn", flows=2, packet_size="4096", sources=[LEAF, NIC]))
    wanted = resolve(scenario_of(request))
    sent = contenders(["dcqcn"], "hpcc-eval", None, read([LEAF, NIC], None), "4096")
    topology = named_topology("leaf-spine:1x1x3", **sent.rates("leaf-spine:1x1x3", {}))
    found = topology.scenario([(0, 2), (1, 2)], **sent.options["dcqcn"])
    port = next(link for link in found.links if link.target == "2")
    (bottleneck,) = wanted.links
    assert (port.rate, port.marking) == (pytest.approx(bottleneck.rate, rel=1e-15), bottleneck.marking)
    for name in ("packet_size", "header_bytes", "buffer", "pfc"):
        assert getattr(found, name) == getattr(wanted, name), name
    assert found.flows[0].scheme == wanted.flows[0].scheme
    assert found.flows[0].line_rate == pytest.approx(wanted.flows[0].line_rate, rel=1e-15)


def test_packets_of_a_size_are_those_of_an_incast() -> None:
    """Headers in the packet, gaps in the rates: as `framed` makes of the same fabric."""
    topology = named_topology("leaf-spine:2x1x2")
    found, plain = topology.scenario(FLOWS, payload="4096"), framed(topology.scenario(FLOWS), 4096.0)
    assert (found.packet_size, found.header_bytes) == (4096.0, 62.0)
    assert found.links[0].rate == pytest.approx(topology.scenario(FLOWS).links[0].rate * 4158 / 4178)
    for one, other in zip((*found.links, *found.flows), (*plain.links, *plain.flows), strict=True):
        rates = [name for name in ("rate", "line_rate") if hasattr(one, name)]
        assert [getattr(one, name) for name in rates] == pytest.approx([getattr(other, name) for name in rates])
        assert dataclasses.replace(one, **{name: getattr(other, name) for name in rates}) == other


def test_the_nic_is_dcqcns_alone() -> None:
    sent = contenders(["dcqcn", "hpcc"], "hpcc-eval", ["g=1/64"], read([NIC], None), "1024")
    timer = sent.options["dcqcn"]["scheme"].timer
    assert timer == 3e-4  # rpg_time_reset of the file
    assert sent.options["dcqcn"]["scheme"].g == "1/64"  # --set goes before files
    assert sent.options["hpcc"]["scheme"] == fc.preset("hpcc", "hpcc-eval").scheme
    assert sent.options["hpcc"]["payload"] == 1024


def test_an_unknown_mtu_runs_both_sizes(tmp_path: Path) -> None:
    sent = contenders(["dcqcn"], "hpcc-eval", None, read([LEAF, NIC], None), None)
    assert {name: each["payload"] for name, each in sent.options.items()} == {"dcqcn-4096B": 4096, "dcqcn-1024B": 1024}
    known = tmp_path / "nic.txt"
    known.write_text(Path(NIC).read_text() + "\nactive_mtu: 1024 (3)\n")
    sent = contenders(["dcqcn"], "hpcc-eval", None, read([LEAF, str(known)], None), None)
    assert {name: each["payload"] for name, each in sent.options.items()} == {"dcqcn": 1024}
    sent = contenders(["dcqcn"], "hpcc-eval", ["packet_size=2000", "header_bytes=30"], read([LEAF], None), None)
    assert [sent.options["dcqcn"][name] for name in ("packet_size", "header_bytes")] == ["2000", "30"]
    assert "payload" not in sent.options["dcqcn"]


def without_marks(tmp_path: Path) -> str:
    document = json.loads(Path(LEAF).read_text())
    for profile in document["WRED_PROFILE"].values():
        profile["ecn"] = "ecn_none"
    path = tmp_path / "no_ecn.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_a_port_that_does_not_mark_is_refused_unless_thresholds_are_given(tmp_path: Path) -> None:
    devices = read([without_marks(tmp_path)], None)
    topology = named_topology("leaf-spine:1x1x3")
    refused = contenders(["dcqcn"], "hpcc-eval", None, devices, "1024")
    with pytest.raises(InputError, match="does not mark"):
        topology.scenario(FLOWS, **refused.options["dcqcn"])
    part = contenders(["dcqcn"], "hpcc-eval", ["kmin=5KB"], devices, "1024")
    with pytest.raises(InputError, match="does not mark"):
        topology.scenario(FLOWS, **part.options["dcqcn"])
    values = ["kmin=5KB", "kmax=9KB", "pmax=3%"]
    given = contenders(["dcqcn"], "hpcc-eval", values, devices, "1024")
    assert {(link.marking or NONE).kmax for link in topology.scenario(FLOWS, **given.options["dcqcn"]).links} == {9e3}
    alone = contenders(["hpcc"], "hpcc-eval", None, devices, "1024")  # looks at no marks
    assert {link.marking for link in topology.scenario(FLOWS, **alone.options["hpcc"]).links} == {None}


def test_the_smallest_buffer_serves_all() -> None:
    """The smaller of 88 MB and 22 MB, with the flow control of that switch."""
    for files in ([LEAF, FABRIC], [FABRIC, LEAF]):
        options = read_devices(files).options(scheme=fc.DCQCN(), buffer="1GB", pfc=None)
        assert (options["buffer"], options["pfc"].alpha) == (22_020_096.0, 1.0)
    assert read_devices([], NIC).options(scheme=fc.DCQCN(), buffer="1GB")["buffer"] == "1GB"


def test_a_lossy_port_has_no_pause(tmp_path: Path) -> None:
    """Its buffer is the file's, and PFC off as there; where no file says anything of buffers, all is the preset's."""
    document = json.loads(Path(LEAF).read_text())
    for each in document["PORT_QOS_MAP"].values():
        each.pop("pfc_enable", None)
        each.pop("pfcwd_sw_enable", None)
    path = tmp_path / "lossy.json"
    path.write_text(json.dumps(document))
    lossy = contenders(["dcqcn"], "hpcc-eval", None, read([str(path)], None), "1024")
    assert (lossy.options["dcqcn"]["buffer"], lossy.options["dcqcn"]["pfc"]) == (22_020_096.0, None)
    document = {name: table for name, table in json.loads(Path(LEAF).read_text()).items() if "BUFFER" not in name}
    path.write_text(json.dumps(document))
    silent = contenders(["dcqcn"], "hpcc-eval", None, read([str(path)], None), "1024")
    assert silent.options["dcqcn"]["buffer"] == fc.preset("dcqcn", "hpcc-eval").options()["buffer"]
    topology = named_topology("leaf-spine:2x1x2")
    assert "with PFC (assumed: no file says)" in " ".join(silent.words(topology))
    given = contenders(["dcqcn"], "hpcc-eval", ["buffer=10MB"], read([str(path)], None), "1024")
    assert "assumed" not in " ".join(given.words(topology))


def test_words_are_of_what_runs() -> None:
    """Whose thresholds a link has, at which other rate, what replaces them; buffers, NIC and packets."""
    devices = read([LEAF, FABRIC, NIC], None)

    def told(sets: list[str] | None = None, packet_size: str | None = None) -> list[str]:
        sent = contenders(["dcqcn"], "hpcc-eval", sets, devices, packet_size)
        return sent.words(named_topology("leaf-spine:2x1x2", rate="100Gbps", fabric_rate="200Gbps"))

    hosts, up, above, buffer, nic, packets = told()
    leaf = f"Kmin 1.049MB, Kmax 2.097MB, Pmax 5 % ({LEAF}, queue 3 of Ethernet"
    assert hosts == f"links to hosts, 100Gbps: {leaf}0 and 23 like it)"
    assert up == f"ToRs' links up, 200Gbps: {leaf}96 and 7 like it, of 100Gbps, the nearest rate)"
    assert above.startswith(f"links of tier 2, 200Gbps: Kmin 400KB, Kmax 1.6MB, Pmax 20 % ({FABRIC}, queue 3 of")
    assert (buffer, nic) == ("each switch shares 22.02MB of buffer, with PFC", f"{devices.nic.source}: {ALL_OF_IT}")
    assert packets.startswith("packets of 4096 and 1024 B of payload and 62 B of headers")
    changed = told(["kmin=7KB", "pfc=off", "g=1/16"], "2048")
    assert [line.count("Kmin 7KB, ") for line in changed] == [line.count(", changed)") for line in changed]
    assert sum("Kmin 7KB, " in line for line in changed) == 3
    assert changed[3].endswith("without PFC")
    assert changed[4].endswith(f"{ALL_OF_IT} but g")
    assert changed[-1].endswith("(as given)")
    assert Devices().words({(0, 1e9)}, [{"scheme": fc.DCQCN()}]) == []


@pytest.mark.parametrize(
    ("sources", "port", "words"),
    [
        (None, "Ethernet0", "--port: there is no switch"),
        ([NIC], "Ethernet0", "--port: there is no switch"),
        ([NIC, str(EXAMPLES / "fabric-400g" / "nic.txt")], None, "is one of 2 NICs"),
        ([LEAF], "Ethernet999", "table PORT has no 'Ethernet999'"),
    ],
)
def test_what_makes_no_sense_is_refused(sources: list[str] | None, port: str | None, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(sources, port)


def test_a_file_for_a_tier_that_is_not_there_is_refused() -> None:
    """Its buffer would count, and its thresholds nowhere."""
    three = contenders(["dcqcn"], "hpcc-eval", None, read([LEAF, FABRIC, LEAF], None), "1024")
    with pytest.raises(InputError, match="3 switches are given, and leaf-spine:2x1x2 has 2 tiers of them"):
        three.rates("leaf-spine:2x1x2", {})
    assert three.rates("fat-tree:64", {})["rate"] == 12.5e9  # of three tiers


def test_a_nic_without_dcqcn_is_refused() -> None:
    with pytest.raises(InputError, match="holds DCQCN settings; write dcqcn in place of hpcc"):
        contenders(["hpcc"], "hpcc-eval", None, read([NIC], None), None)


def test_a_setting_is_one_more_contender() -> None:
    """After --set, of the schemes that have its parameters; each is compared with the first of its packets' size."""
    settings = ["low: kmin=2KB, kmax=54KB", "slow:g=1/64", "eager:eta=0.9", "small:packet_size=1024"]
    sent = contenders(["dcqcn", "hpcc"], "hpcc-eval", ["kmin=9KB", "g=1/16"], read([LEAF], None), "4096", settings)
    assert list(sent.options) == [
        "dcqcn", "dcqcn-low", "dcqcn-slow", "dcqcn-small", "hpcc", "hpcc-eager", "hpcc-small"
    ]  # fmt: skip
    marks = {name: sent.options[name]["marking"][0](12.5e9) for name in ("dcqcn", "dcqcn-low", "dcqcn-slow")}
    assert {name: (red.kmin, red.kmax) for name, red in marks.items()} == {
        "dcqcn": ("9KB", 2_097_152.0), "dcqcn-low": ("2KB", "54KB"), "dcqcn-slow": ("9KB", 2_097_152.0),
    }  # fmt: skip
    assert [sent.options[name]["scheme"].g for name in ("dcqcn", "dcqcn-slow")] == ["1/16", "1/64"]
    assert sent.options["hpcc-eager"]["scheme"].eta == "0.9"
    assert sent.options["dcqcn-small"]["payload"] == "1024"
    assert sent.pairs == [
        ("dcqcn-low", "dcqcn"), ("dcqcn-slow", "dcqcn"), ("dcqcn-small", "dcqcn"),
        ("hpcc", "dcqcn"), ("hpcc-eager", "hpcc"), ("hpcc-small", "hpcc"),
    ]  # fmt: skip


def test_sizes_of_packets_are_compared_with_their_own() -> None:
    """Each of two sizes has its own first; a setting with a size of its own runs once."""
    settings = ["small:packet_size=512", "new:kmin=9KB"]
    both = contenders(["dcqcn", "hpcc"], "hpcc-eval", None, read([LEAF], None), None, settings)
    assert both.pairs == [
        ("dcqcn-small", "dcqcn-4096B"), ("dcqcn-4096B-new", "dcqcn-4096B"), ("hpcc-4096B", "dcqcn-4096B"),
        ("hpcc-small", "hpcc-4096B"), ("dcqcn-1024B-new", "dcqcn-1024B"), ("hpcc-1024B", "dcqcn-1024B"),
    ]  # fmt: skip
    with pytest.raises(InputError, match="--packet-size: --set packet_size says it too"):
        contenders(["dcqcn"], "hpcc-eval", ["packet_size=512"], None, "1024")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["kmin=2KB"], "is no NAME:PARAMETER=VALUE"),
        (["a b:kmin=2KB"], "is no NAME:PARAMETER=VALUE"),
        (["a:"], "is no NAME:PARAMETER=VALUE"),
        (["a:gg=2"], "--setting: dcqcn has no parameter 'gg'; did you mean g"),
        (["a:kmin"], "--setting: 'kmin' is no NAME=VALUE"),
        (["a:kmin=1KB", "a:kmin=2KB"], "is there twice"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        contenders(["dcqcn"], "hpcc-eval", None, None, None, settings)


def test_what_is_better_is_told_from_what_is_worse() -> None:
    """Below 1 is better, of goodput above; an interval that holds 1 tells nothing, nor does none."""
    sure = {"mean": 0.5, "low": 0.4, "high": 0.6}
    more, open_, none = ({"mean": 1.5, "low": low, "high": 1.7} for low in (1.4, 0.9, float("nan")))
    ratios = {"a": sure, "b": more, "goodput": more, "c": open_, "d": none, "e": {**none, "mean": float("nan")}}
    assert told_against(ratios, {name: f"of {name}" for name in ratios}) == (
        "better: of a x0.5 (0.4–0.6), of goodput x1.5 (1.4–1.7); worse: of b x1.5 (1.4–1.7); "
        "not told apart: of c x1.5 (0.9–1.7); too few seeds to tell apart: of d x1.5"
    )
    of_a = {"a": "of a"}
    assert told_against({"a": sure}, of_a, (3, 1)).endswith("(0.4–0.6); worse: 3 unfinished flows, not 1")
    assert told_against({"a": sure}, of_a, (0, 1_000)) == "better: 0 unfinished flows, not 1,000, of a x0.5 (0.4–0.6)"
    assert "unfinished" not in told_against({"a": sure}, of_a, (2, 2))
    assert (
        told_against({"a": {**none, "mean": float("nan")}}, of_a, (2, 2))
        == "nothing to compare, as too little finished"
    )
