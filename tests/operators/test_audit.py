"""Findings of an audit, each provoked by the one thing wrong."""

import json
from pathlib import Path

import pytest

import fluidcc as fc
from fluidcc.operators.checks import ecn_bound
from tests.operators.short_audits import short_audits
from tests.shapes import give_depth

EXAMPLE = Path(__file__).parents[2] / "examples" / "leaf-100g"


def edited(tmp_path, change=None, nic=None):
    """The sample, with its configuration changed in place and lines of the NIC's settings replaced."""
    config = json.loads((EXAMPLE / "config_db.json").read_text())
    if change is not None:
        change(config)
    switch, settings = tmp_path / "config_db.json", tmp_path / "nic.txt"
    switch.write_text(json.dumps(config))
    text = (EXAMPLE / "nic.txt").read_text()
    for name, value in (nic or {}).items():
        lines = [f"         {name}    {value}" if line.split()[:1] == [name] else line for line in text.splitlines()]
        text = "\n".join(lines)
    settings.write_text(text)
    return switch, settings


@pytest.fixture
def short():
    """Make runs short, for findings that do not depend on them."""
    with short_audits(1, "2.5ms", "5ms"):
        yield


def test_what_an_audit_applies_reaches_every_port_of_a_group(tmp_path):
    """Three ports without a watchdog, and a fourth with one, on queues that do not mark, so that nothing is run."""

    def change(config):
        ports = [*config["PORT"]][:4]
        config["PORT"] = {name: config["PORT"][name] for name in ports}
        for table in ("QUEUE", "BUFFER_PG", "BUFFER_QUEUE"):
            config[table] = {key: row for key, row in config[table].items() if key.split("|")[0] in ports}
        for row in config["QUEUE"].values():
            row.pop("wred_profile", None)
        config["PORT_QOS_MAP"] = {name: config["PORT_QOS_MAP"][name] for name in ports}
        config["PFC_WD"] = {name: row for name, row in config["PFC_WD"].items() if name in ("GLOBAL", ports[3])}

    switch, nic = edited(tmp_path, change)
    found = fc.audit(switch, nic)
    config = json.loads(switch.read_text())
    groups = {each.names: [f for f in each.findings if f.what == "no PFC watchdog"] for each in found.groups}
    assert {(names, len(each)) for names, each in groups.items()} == {
        (("Ethernet0", "Ethernet4", "Ethernet8"), 1),
        (("Ethernet12",), 0),
    }
    for finding in [finding for each in groups.values() for finding in each]:
        assert finding.suggest.endswith("; likewise for Ethernet4, Ethernet8")
        for each in finding.apply:
            table, key, field = each.path[1:].split("/")
            config[table].setdefault(key, {})[field] = each.value
    switch.write_text(json.dumps(config))
    again = fc.audit(switch, nic)
    assert not any(finding.what == "no PFC watchdog" for each in again.groups for finding in each.findings)
    assert again.names == ("Ethernet0", "Ethernet4", "Ethernet8", "Ethernet12")


def severity(found, what):
    return next((f.severity for f in found.findings if what in f.what), None)


@pytest.fixture(scope="module")
def sample():
    with short_audits():
        return fc.audit(EXAMPLE / "config_db.json", EXAMPLE / "nic.txt", flows=8)


def test_section_4_numbers():
    # The paper's switch: 12 MB, 32 ports, 22.4 KB of headroom, beta 8; it prints 21.75 KB.
    assert ecn_bound(12e6, 22.4e3, 32, 8.0) == pytest.approx(21755.6, rel=1e-5)


def test_the_sample(sample):
    document = sample.as_dict()
    assert document["settings"]["kmin_bytes"] == 1048576
    assert document["settings"]["nic"]["g"] == pytest.approx(5 / 1024)
    assert document["stability"] == fc.stability(sample.scenario(flows=1, multiplicity=8.0)).as_dict()
    assert document["settings"]["nic"]["clamp_tgt_rate"] is False
    assert not any("clamp_tgt_rate" in line for line in document["settings"]["ignored"])
    assert severity(sample, "PFC can pause before ECN marks") == "warn"
    assert severity(sample, "not scaled") == "warn"
    assert severity(sample, "alpha's period") == "ok"
    solved = fc.equilibrium(sample.scenario(flows=1, multiplicity=8.0)).as_dict()
    assert document["equilibrium"] == {**solved, "reached_from_line_rate": False}
    json.dumps(document, allow_nan=False)
    assert [f.severity for f in sample.findings] == sorted(
        (f.severity for f in sample.findings), key=("bad", "warn", "ok").index
    )


def test_a_fixed_point_that_no_start_reaches_says_so(sample):
    """The sample's is unstable, and its run from line rate goes on cycling; milder marking settles, and says that."""
    (finding,) = [f for f in sample.findings if f.what == "a fixed point exists"]
    assert "unstable" in finding.why
    assert "does not reach it in the averaged fluid: the queue stays between 0B and" in finding.why
    assert "settle at" not in finding.why


def test_a_fixed_point_that_is_reached_says_so(tmp_path, monkeypatch):
    give_depth(monkeypatch)

    def mild(config):
        config["WRED_PROFILE"]["AZURE_LOSSLESS"] |= {
            "green_min_threshold": "12500",
            "green_max_threshold": "500000",
            "green_drop_probability": "1",
        }

    quiet = {"RPG_TIME_RESET_P1": 55, "RPG_BYTE_RESET_P1": 0, "DCE_TCP_RTT_P1": 55, "MIN_TIME_BETWEEN_CNPS_P1": 50}
    found = fc.audit(*edited(tmp_path, mild, quiet), port="Ethernet0", packets=0)
    document = found.as_dict()
    assert document["stability"]["stable"] is True
    assert document["equilibrium"]["reached_from_line_rate"] is True
    assert "a start at line rate reaches it" in next(f.why for f in found.findings if f.what == "a fixed point exists")


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("change", "what", "expected"),
    [
        (lambda w: w.update(ecn="ecn_none"), "ECN is off", "bad"),
        (lambda w: w.update(green_min_threshold="3000000"), "Kmax is below Kmin", "bad"),
        (lambda w: w.update(green_drop_probability="0"), "Pmax is 0", "bad"),
        (lambda w: w.update(green_min_threshold="2097152"), "step marking", "warn"),
        (lambda w: w.update(green_min_threshold="12500", green_max_threshold="500000"), "ECN marks before PFC", "ok"),
        (lambda w: w.update(green_min_threshold="12500", green_max_threshold="500000"), "thresholds scaled", "ok"),
    ],
)
def test_marking(tmp_path, change, what, expected):
    found = fc.audit(*edited(tmp_path, lambda c: change(c["WRED_PROFILE"]["AZURE_LOSSLESS"])), packets=0)
    assert severity(found, what) == expected
    assert all(f.suggest for f in found.findings if f.severity != "ok")
    assert (found.equilibrium is None) == (expected == "bad")


@pytest.mark.usefixtures("short")
def test_pfc_off(tmp_path):
    found = fc.audit(*edited(tmp_path, lambda c: c["PORT_QOS_MAP"].clear()), packets=0)
    assert severity(found, "PFC is off") == "warn"


@pytest.mark.usefixtures("short")
def test_one_profile_for_two_speeds(tmp_path):
    changed = edited(tmp_path, lambda c: c["PORT"]["Ethernet4"].update(speed="25000"))
    found = fc.audit(*changed, port="Ethernet0", packets=0)
    assert severity(found, "several speeds") == "warn"


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("nic", "what", "expected"),
    [
        ({"ROCE_CC_PRIO_MASK_P1": "7"}, "DCQCN is off", "bad"),
        ({"RPG_TIME_RESET_P1": "2"}, "rates rise between CNPs", "warn"),
        ({"RPG_BYTE_RESET_P1": "32767"}, "byte counter dominates", "warn"),
        ({"DCE_TCP_RTT_P1": "55"}, "alpha's period", None),
    ],
)
def test_nic(tmp_path, nic, what, expected):
    assert severity(fc.audit(*edited(tmp_path, nic=nic), packets=0), what) == expected


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_too_many_flows_have_no_fixed_point():
    found = fc.audit(EXAMPLE / "config_db.json", EXAMPLE / "nic.txt", flows=300, packets=0)
    assert severity(found, "no fixed point with 300 flows") == "warn"
    finding = next(f for f in found.findings if "no fixed point" in f.what)
    assert found.reach.from_line_rate is None  # there is nothing to reach
    most = float(finding.why.split("reached at ")[1].split()[0])
    below, above = (fc.equilibrium(found.scenario(flows=1, multiplicity=n)).exists for n in (0.99 * most, 1.01 * most))
    assert below
    assert not above


@pytest.mark.usefixtures("short")
def test_without_a_nic_the_defaults_are_taken():
    found = fc.audit(EXAMPLE / "config_db.json", packets=0)
    assert severity(found, "no NIC settings") == "warn"
    assert found.scheme.timer == pytest.approx(300e-6)


def test_unknown_port_lists_those_there_are():
    with pytest.raises(fc.InputError, match="Ethernet0"):
        fc.audit(EXAMPLE / "config_db.json", port="Ethernet999")


def test_flows_must_be_a_count():
    with pytest.raises(fc.InputError, match="flows"):
        fc.audit(EXAMPLE / "config_db.json", flows=0)


def test_packets_say_what_the_hybrid_says_of_the_sample(sample):
    hybrid, packets = sample.behaviour, sample.behaviour["packets"]
    assert packets["utilisation"] == pytest.approx(hybrid["utilisation"], abs=0.02)
    assert packets["queue_bytes"]["p95"] == pytest.approx(hybrid["queue_bytes"]["p95"], rel=0.1)
    assert packets["pfc_pauses"] > 0  # from the start at line rate
    assert packets["drops"] == 0
    assert severity(sample, "packet runs agree") == "ok"


@pytest.mark.usefixtures("short")
def test_a_longer_round_trip_has_another_yardstick(tmp_path):
    switch, nic = edited(tmp_path)
    found = fc.audit(switch, nic, port="Ethernet0", flows=2, rtt="20us", packets=0)
    why = next(f.why for f in found.findings if "not scaled" in f.what)
    assert "a round trip of 20us: Kmax 500KB to 750KB" in why
    assert found.scenario().links[0].delay == pytest.approx(5e-6)
    assert found.as_dict()["settings"]["rtt_s"] == 20e-6
    with pytest.raises(fc.InputError, match="no round trip of a datacenter"):
        fc.audit(switch, nic, rtt="1s")


@pytest.mark.usefixtures("short")
def test_values_for_machines_name_files_and_places(tmp_path):
    switch, nic = edited(tmp_path, nic={"RPG_AI_RATE_P1": "131072"})
    found = fc.audit(switch, nic, port="Ethernet0", flows=2, packets=0).as_dict()["findings"]
    changes = {finding["what"]: finding["apply"] for finding in found}
    assert changes["thresholds are not scaled with port speed"][1] == {
        "file": str(switch),
        "path": "/WRED_PROFILE/AZURE_LOSSLESS/green_max_threshold",
        "value": "500000",
    }
    (change,) = changes["rpg_ai_rate is beyond mlxconfig's field"]
    assert change == {"file": str(nic), "path": "RPG_AI_RATE_P1", "value": 131071}


@pytest.mark.usefixtures("short")
def test_an_entry_for_several_ports_is_left_to_who_wrote_it(tmp_path):
    def change(config):
        entry = config["PORT_QOS_MAP"].pop("Ethernet0")
        del config["PORT_QOS_MAP"]["Ethernet4"]
        config["PORT_QOS_MAP"]["Ethernet0,Ethernet4"] = {**entry, "pfc_enable": ""}

    switch, nic = edited(tmp_path, change)
    found = fc.audit(switch, nic, port="Ethernet0", flows=2, packets=0).findings
    off = next(finding for finding in found if finding.what == "PFC is off")
    assert off.apply == ()
