"""The command line's contract: keys, exit codes, files, and that help is quick because nothing heavy loads."""

import importlib
import json
import math
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

import fluidcc as fc
from fluidcc.builders import toml_file as scenario_file
from fluidcc.cli.app import run
from fluidcc.contract.preset import Preset
from fluidcc.engines.fluid.run import UNKNOWN
from fluidcc.operators.audit import audit as audit_files
from fluidcc.schemes.dcqcn import PRESETS
from fluidcc.studies.sweeps import run as sweeps_run
from fluidcc.theory.control.equilibrium import equilibrium
from tests.operators.short_audits import short_audits

EXAMPLE = Path(__file__).parents[2] / "examples" / "leaf-100g"
SHORT = ["--until", "3ms"]


@pytest.fixture
def fluidcc(capsys):
    """Run a command in this process: status, standard output (read as JSON if asked for) and standard error."""

    def call(*arguments):
        status = run([str(a) for a in arguments])
        out, err = capsys.readouterr()
        if "--json" in arguments and status != 2:
            out = json.loads(out, parse_constant=lambda c: pytest.fail(f"{c} is no JSON"))
        return status, out, err

    return call


def in_words(fluidcc, *arguments):
    """Run a command for a person: it says something, and complains of nothing."""
    status, out, err = fluidcc(*arguments)
    assert status == 0
    assert out.strip()
    assert err == ""


@pytest.mark.usefixtures("full_columns")
def test_simulate_has_the_contract_s_keys(fluidcc):
    flows = ["--flows", 3, "--start", "0,1ms,1ms", "--size", "1MB,1GB,1GB"]
    status, found, err = fluidcc("simulate", "dcqcn", *flows, *SHORT, "--json")
    assert status == 0
    assert err == ""
    assert found.keys() >= {
        "engine", "scheme", "flows", "until_s", "window_s", "queue_bytes", "rate_bytes_per_s", "goodput_bytes_per_s",
        "jain", "utilisation", "rate_gap_bytes_per_s", "discretisation_error", "fct_s", "compile_s", "wall_s", "links",
    }  # fmt: skip
    assert (found["packet_bytes"], found["header_bytes"]) == (1000.0, 0.0)
    assert found["queue_bytes"].keys() == {"mean", "std", "p5", "p50", "p95", "p99", "min", "max", "max_whole_run"}
    # Propagation, the last packet's store at the switch, its ACK's at receiver and switch.
    assert found["fct_s"][0] == pytest.approx(1e6 / 5e9 + 4e-6 + (1000 + 2 * 64) / 5e9, abs=1e-9)
    assert found["fct_s"][1:] == [None, None]
    assert found["window_s"] == [0.0015, 0.003]


@pytest.mark.usefixtures("full_columns")
def test_simulate_equals_the_library(fluidcc):
    arguments = ["--flows", 3, "--rate", "10Gbps", "--set", "g=1/64", "--set", "kmin=8KB", "--feedback-delay", "60us"]
    arguments += ["--start", "0,1ms", "--size", "1MB,1GB"]
    _, found, _ = fluidcc("simulate", "dcqcn", *arguments, "--initial-rate", "1Gbps,2Gbps", *SHORT, "--json")
    scenario = fc.incast(
        3,
        rate="10Gbps",
        scheme=fc.DCQCN(g=1 / 64),
        marking=fc.RED("8KB", "200KB", "1%"),
        feedback_delay="60us",
        initial_rate=["1Gbps", "2Gbps"],
        start=["0", "1ms"],
        size=["1MB", "1GB"],
    )
    expected = fc.simulate(scenario, "3ms").summary
    for name in ("queue_bytes", "rate_bytes_per_s", "jain", "fct_s"):
        assert found[name] == expected[name]
    in_words(fluidcc, "simulate", "dcqcn", *arguments, "--initial-rate", "1Gbps,2Gbps", *SHORT)


def test_files_and_scenarios_go_round(fluidcc, tmp_path):
    files = [tmp_path / name for name in ("t.nc", "t.png", "s.toml")]
    options = ["--out", files[0], "--plot", files[1], "--save-scenario", files[2]]
    _, first, _ = fluidcc("simulate", "dcqcn", "--topology", "parking-lot", *SHORT, *options, "--json")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.toml", "t.nc", "t.png"]
    trace = fc.Trace.load(files[0])
    assert trace["queue"].dims == ("time", "link")
    assert trace["queue"].attrs["units"] == "bytes"
    assert trace.dataset.attrs["command"].startswith("fluidcc")
    assert files[1].read_bytes().startswith(b"\x89PNG")
    _, again, _ = fluidcc("simulate", "dcqcn", "--topology", files[2], *SHORT, "--json")
    assert again["rate_bytes_per_s"] == first["rate_bytes_per_s"]
    _, changed, _ = fluidcc("simulate", "dcqcn", "--topology", files[2], "--set", "kmin=50KB", *SHORT, "--json")
    assert changed["queue_bytes"] != first["queue_bytes"]


@pytest.fixture
def described(fluidcc, tmp_path, monkeypatch):
    """The scenario that options describe, as the command line saves it; nothing is computed of it."""
    importlib.import_module("fluidcc.theory.control.updates")  # first loaded below, it would keep the stand-in
    monkeypatch.setattr(
        "fluidcc.theory.control.equilibrium.equilibrium",
        lambda scenario: SimpleNamespace(as_dict=lambda: {"exists": False}, others=()),
    )

    def call(*arguments):
        file = tmp_path / "s.toml"
        status, _, err = fluidcc("equilibrium", *arguments, "--save-scenario", file, "--json")
        assert (status, err) == (0, "")
        return scenario_file.load_scenario(file)

    return call


def test_set_reaches_every_part_of_the_scenario(described):
    sets = {"buffer": "2MB", "ack_bytes": "84B", "ack_interval": 4, "start_policy": "share", "timing": "ns3",
            "header_bytes": "48B", "mark_on": "departure", "kmin": "10KB",
            "xoff": "60KB", "xon_gap": "6KB", "g": "1/64"}  # fmt: skip
    options = [part for name, value in sets.items() for part in ("--set", f"{name}={value}")]
    pfc = fc.PFC("60KB", xon_gap="6KB")
    network = {name: sets[name] for name in ("buffer", "ack_bytes", "ack_interval", "start_policy", "timing")}
    marking = fc.RED("10KB", "200KB", "1%", "departure")
    scheme = fc.DCQCN(g="1/64")
    expected = fc.incast(2, scheme=scheme, marking=marking, pfc=pfc, header_bytes="48B", **network)
    assert described("dcqcn", *options) == expected


def test_flow_control_is_on_or_off_or_set(described):
    assert described("dcqcn").pfc is None
    assert described("dcqcn", "--set", "pfc=on").pfc == fc.incast(pfc=fc.PFC()).pfc
    assert described("dcqcn", "--set", "alpha=1/4").pfc == fc.incast(pfc=fc.PFC(alpha=0.25)).pfc
    assert described("dcqcn", "--topology", "chain", "--set", "bursts=1", "--set", "pfc=off").pfc is None


def test_a_chain_is_published_with_rate_delay_and_flow_control(described):
    assert described("dcqcn", "--topology", "chain") == fc.chain()
    options = ["--set", "bursts=2", "--set", "burst_time=100us", "--rate", "40Gbps", "--size", "1MB,2MB"]
    changed = described("dcqcn", "--topology", "chain", *options, "--set", "xon_gap=1KB")
    assert changed == fc.chain(
        2, burst_time="100us", rate="40Gbps", size=["1MB", "2MB"], pfc=fc.PFC("512KB", xon_gap="1KB")
    )


def test_flows_of_a_fat_tree_lead_half_the_fabric_further(described):
    options = ["--set", "pods=2", "--set", "hosts=2", "--set", "fabric_rate=200Gbps", "--start", "0,1us"]
    scenario = described("dcqcn", "--topology", "fat-tree", "--flows", 3, *options)
    rows = [(0, 8, 0.0), (1, 9, "1us"), (2, 10, 0.0)]
    assert scenario == fc.fat_tree(rows, pods=2, hosts=2, fabric_rate="200Gbps")


def test_a_scenario_file_takes_settings_too(fluidcc, described, tmp_path):
    file = tmp_path / "plain.toml"
    plain = fc.incast(2, marking=lambda rate: None)
    file.write_text(scenario_file.to_toml(plain))
    found = described("dcqcn", "--topology", file, "--set", "kmin=5KB", "--set", "kmax=200KB", "--set", "pmax=1%",
                      "--set", "pfc=on", "--set", "buffer=1MB", "--size", "1MB")  # fmt: skip
    assert found == fc.incast(2, pfc=fc.PFC(), buffer="1MB", size="1MB")
    status, _, err = fluidcc("equilibrium", "dcqcn", "--topology", file, "--set", "kmin=5KB")
    assert status == 2
    assert "kmax: is missing" in err


def test_options_beside_a_scenario_file_have_their_meaning_or_are_refused(fluidcc, described, tmp_path, monkeypatch):
    """None is passed over in silence: --preset was, even one that does not exist."""
    file = tmp_path / "three.toml"
    file.write_text(scenario_file.to_toml(fc.incast(3)))
    lists = {"start": "0,1ms", "size": "1MB,2MB", "initial_rate": "1Gbps,2Gbps"}
    applied = {**lists, "packet_size": "500B", "feedback_delay": "20us"}
    options = [part for name, value in applied.items() for part in (f"--{name.replace('_', '-')}", value)]
    expected = {**applied, **{name: value.split(",") for name, value in lists.items()}}
    assert described("dcqcn", "--topology", file, *options) == fc.incast(3, **expected)
    assert described("dcqcn", "--topology", file, "--initial-rate", "line,1Gbps") == fc.incast(
        3, initial_rate=[None, "1Gbps"]
    )
    refused = {"--preset": "paper", "--flows": "4", "--delay": "2us", "--from": EXAMPLE, "--port": "Ethernet0"}
    for option, value in refused.items():
        for command in ("equilibrium", "stability"):
            status, _, err = fluidcc(command, "dcqcn", "--topology", file, option, value)
            assert status == 2
            assert option.lstrip("-") in err.split(":")[1], option
    monkeypatch.setattr(
        "fluidcc.theory.control.stability.stability",
        lambda scenario, at: SimpleNamespace(as_dict=lambda: {"flows": len(scenario.flows)}),
    )
    _, found, _ = fluidcc("stability", "dcqcn", "--topology", file, "--json")
    assert [point["flows"] for point in found["points"]] == [3]


def test_python_runs_the_package_as_the_command(fluidcc):
    done = subprocess.run([sys.executable, "-m", "fluidcc", "walk"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == fluidcc("walk")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_a_preset_brings_its_network(monkeypatch, described):
    network = {"header_bytes": "48B", "buffer": "2MB", "pfc": fc.PFC(alpha=1 / 4)}
    preset = Preset(fc.DCQCN(), fc.RED("100KB", "400KB", 0.2), network, "100Gbps")
    monkeypatch.setitem(PRESETS, "paper", preset)
    assert described("dcqcn") == fc.incast(2, marking=fc.RED("40KB", "160KB", 0.2), **network)
    found = described(
        "dcqcn", "--rate", "100Gbps", "--set", "kmin=90KB", "--set", "header_bytes=0", "--set", "xoff=1KB"
    )
    network |= {"header_bytes": 0.0, "pfc": fc.PFC("1KB", 1 / 4)}
    assert found == fc.incast(2, rate="100Gbps", marking=fc.RED("90KB", "400KB", 0.2), **network)


def test_equilibrium(fluidcc):
    status, found, _ = fluidcc("equilibrium", "dcqcn", "--flows", 8, "--json")
    assert status == 0
    assert found.keys() >= {
        "exists",
        "on_ramp",
        "marking_probability",
        "queue_bytes",
        "alpha",
        "rate_bytes_per_s",
        "target_rate_bytes_per_s",
    }
    assert found["rate_bytes_per_s"] == pytest.approx(5e9 / 8)
    assert found["stable"] is True
    status, found, _ = fluidcc("equilibrium", "dcqcn", "--flows", 20, "--json")
    assert status == 0  # a missing equilibrium is an answer
    assert found["exists"] is False
    assert "stable" not in found
    assert found["queue_bytes"] > 200e3
    status, found, _ = fluidcc("equilibrium", "dcqcn", "--preset", "strawman", "--json")
    assert found["exists"] is False


UNEQUAL = ["dcqcn", "--flows", 2, "--set", "byte_counter=5KB", "--set", "timer=10ms", "--set", "pmax=10%"]


def test_equilibria_beside_the_equal_one(fluidcc, monkeypatch):
    """The link is full at each; the other is in words too."""
    scenarios = []

    @cache
    def once(toml):
        return equilibrium(scenarios[-1])

    monkeypatch.setattr(
        "fluidcc.theory.control.equilibrium.equilibrium",
        lambda scenario: scenarios.append(scenario) or once(scenario_file.to_toml(scenario)),
    )
    status, found, _ = fluidcc("equilibrium", *UNEQUAL, "--json")
    assert status == 0
    assert found["unique"] is False
    assert found["marking_probability"] == pytest.approx(0.0175102, abs=5e-8)
    assert found["links"][0]["utilisation"] == pytest.approx(1.0)
    (other,) = found["others"]
    assert sum(other["rate_bytes_per_s"]) == pytest.approx(5e9)
    _, out, _ = fluidcc("equilibrium", *UNEQUAL)
    assert "another (1)" in out
    assert found["stable"] is other["stable"] is False  # neither is where a run ends
    assert out.count("unstable") == 2
    assert "3.601Gbps, 36.4Gbps" in out
    assert "looked for others" in out
    assert "searched" not in out
    status, _, err = fluidcc("stability", *UNEQUAL, "--at", 2)
    assert status == 2
    assert "equilibria 0 to 1" in err


@pytest.mark.slow
def test_stability_at_either_equilibrium(fluidcc):
    _, equal, _ = fluidcc("stability", *UNEQUAL, "--json")
    _, unequal, _ = fluidcc("stability", *UNEQUAL, "--at", 1, "--json")
    assert equal["points"][0]["fairness_root_per_s"] is not None
    assert unequal["points"][0]["fairness_root_per_s"] is None
    assert fluidcc("stability", "dcqcn", "--at", 1)[0] == 2


def test_sweep(fluidcc, tmp_path, monkeypatch):
    monkeypatch.setattr(sweeps_run, "sampled_error", lambda *_: UNKNOWN)  # its own tests run it
    axes = ["--over", "kmin=5KB:300KB:3", "--over", "g=log:1/256:1/16:2"]
    files = ["--out", tmp_path / "s.csv", "--plot", tmp_path / "s.png", "--store", tmp_path / "s.zarr"]
    status, found, err = fluidcc("sweep", "dcqcn", *axes, *files, *SHORT, "--json")
    assert status == 0
    assert err == ""
    assert found["points"] == 6
    assert found["failed"] == 2  # kmin above kmax
    assert found["reasons"] == {"kmin exceeds kmax": 2}
    assert found["best"].keys() == {"kmin", "g", "metric", "value", "utilisation", "jain"}
    assert found["best"]["metric"] == "queue_bytes.mean"
    assert found["store"] == str(tmp_path / "s.zarr")
    assert found.keys() >= {"compile_s", "wall_s", "points_per_s", "metrics"}
    assert (tmp_path / "s.csv").read_text().count("kmin exceeds kmax") == 2
    stored = ["sweep", "dcqcn", *axes, "--store", tmp_path / "s.zarr", "--resume", *SHORT]  # nothing is run again
    status, again, _ = fluidcc(*stored, "--json")
    assert again["best"] == found["best"]
    metric = ["--metric", "queue_bytes.max_whole_run", "--subject-to", "utilisation>=0", "--json"]
    (_, least, _), (_, most, _) = fluidcc(*stored, *metric), fluidcc(*stored, *metric, "--maximise")
    assert least["best"]["value"] < most["best"]["value"]
    assert least["subject_to"] == ["utilisation>=0"]
    assert least["feasible"] == 4
    _, text, _ = fluidcc(*stored, "--subject-to", "utilisation>=2")
    assert "no point keeps utilisation>=2; utilisation from" in " ".join(text.split())
    in_words(fluidcc, *stored)


@pytest.mark.slow
def test_the_best_uses_its_link_and_says_so(fluidcc, tmp_path):
    # Eight flows: pmax 100 % leaves 2.2 KB and uses 96.6 % of the link, 10 % leaves 10.5 KB and uses 99.4 %.
    arguments = ["sweep", "dcqcn", "--flows", 8, "--over", "pmax=1%,10%,100%", "--until", "30ms"]
    arguments += ["--store", tmp_path / "s.zarr"]
    _, found, _ = fluidcc(*arguments, "--json")
    arguments += ["--resume"]
    assert found["subject_to"] == ["utilisation>=0.98", "jain>=0.9"]
    assert found["feasible"] == 2
    assert found["best"]["pmax"] == 0.1
    assert found["best"]["utilisation"] > 0.98
    _, free, _ = fluidcc(*arguments, "--subject-to", "utilisation>=0", "--json")
    assert free["best"]["pmax"] == 1
    assert free["at_end"] == ["pmax"]
    _, text, _ = fluidcc(*arguments)
    for word in ("utilisation 0.99", "jain 1", "utilisation>=0.98 and jain>=0.9: 2 of 3 points"):
        assert word in " ".join(text.split())
    _, text, _ = fluidcc(*arguments, "--subject-to", "utilisation>=2")
    assert "no point keeps utilisation>=2; utilisation from 0.96" in " ".join(text.split())


def test_sweeping_flows_goes_by_multiplicity(fluidcc, monkeypatch):
    made = []

    def sweep(make, axes, **options):
        made.extend(make(flows=number) for number in axes["flows"])
        raise fc.InputError("nothing is run")

    monkeypatch.setattr("fluidcc.studies.sweeps.sweep", sweep)
    assert fluidcc("sweep", "dcqcn", "--over", "flows=2,16", *SHORT)[0] == 2
    assert [[flow.multiplicity for flow in scenario.flows] for scenario in made] == [[2], [16]]


@cache
def audited_once(*arguments, **options):
    with short_audits():
        return audit_files(*arguments, **options)


@pytest.fixture
def audited(monkeypatch):
    """Audit the same files with the same options once for all tests: which are asked for is what these look at."""
    monkeypatch.setattr("fluidcc.operators.audit.audit", audited_once)


@pytest.mark.slow
def test_sources(fluidcc):
    arguments = ["--from", EXAMPLE / "config_db.json", "--from", EXAMPLE / "nic.txt", "--json"]
    _, found, _ = fluidcc("equilibrium", "dcqcn", "--preset", "vendor", "--flows", 8, *arguments)
    files = (str(EXAMPLE / name) for name in ("config_db.json", "nic.txt"))
    with short_audits(1, "2.5ms", "5ms"):
        audit = audit_files(*files, port="all", flows=8, rtt="4us", packets=0, packet_size="4096")
    assert found["queue_bytes"] == pytest.approx(audit.equilibrium.as_dict()["queue_bytes"], rel=1e-9)
    _, louder, _ = fluidcc("equilibrium", "dcqcn", "--flows", 8, "--set", "pmax=0.5", *arguments)
    assert louder["queue_bytes"] < found["queue_bytes"]


def test_audit(fluidcc, audited):
    status, found, _ = fluidcc("audit", "--sonic", EXAMPLE / "config_db.json", "--nic", EXAMPLE / "nic.txt", "--json")
    assert status == 0  # a finding is an answer
    assert found.keys() == {"ports", "settings", "findings", "equilibrium", "stability", "behaviour"}
    assert [(len(port["names"]), port["priority"]) for port in found["ports"]] == [(24, 3), (24, 4), (8, 3), (8, 4)]
    assert {name: found[name] for name in ("settings", "findings")} == {
        name: found["ports"][0][name] for name in ("settings", "findings")
    }
    assert found["behaviour"]["engine"] == "hybrid"
    assert found["stability"]["stable"] is False
    assert found["equilibrium"]["reached_from_line_rate"] is False
    assert {f["severity"] for f in found["findings"]} <= {"ok", "warn", "bad"}


def test_an_audit_of_files_that_are_just_named(fluidcc, audited):
    switch, nic = EXAMPLE / "config_db.json", EXAMPLE / "nic.txt"
    _, by_options, _ = fluidcc("audit", "--sonic", switch, "--nic", nic, "--json")
    for named in ([switch, nic], [nic, switch], [switch, "--nic", nic]):
        status, found, _ = fluidcc("audit", *named, "--json")
        assert status == 0
        assert found == by_options
    for named, words in (([nic], "config_db.json nic.txt"), ([switch, nic, nic], "one more NIC")):
        status, _, err = fluidcc("audit", *named)
        assert status == 2
        assert words in err
        assert err.count("\n") == 1


def test_an_audit_fails_where_it_is_asked_to(fluidcc, audited):
    """The sample has warnings and nothing bad."""
    files = ["--sonic", EXAMPLE / "config_db.json", "--nic", EXAMPLE / "nic.txt"]
    status, out, _ = fluidcc("audit", *files, "--fail-on", "warn")
    assert status == 3
    assert "Ethernet12 and 20 more, 100Gbps, queues 3, 4, lossless: 4 warn" in " ".join(out.split())
    assert "--verbose" in out
    status, told, _ = fluidcc("audit", *files, "--fail-on", "bad", "--verbose")
    assert status == 0
    assert "not used by the model" in " ".join(told.split())
    assert len(told) > len(out)
    status, _, err = fluidcc("audit", *files, "--fail-on", "ok")
    assert status == 2
    assert "--fail-on" in err


def test_an_audit_with_counters(fluidcc, audited):
    """The sample's counters: a NIC that ignores CNPs is named, as text, in JSON, and by the exit status."""
    read = ["--counters", EXAMPLE / "counters" / "after", "--before", EXAMPLE / "counters" / "before"]
    command = ["audit", EXAMPLE / "config_db.json", EXAMPLE / "nic.txt", "--packets", 0, *read, "--interval", "6ms"]
    status, out, _ = fluidcc(*command, "--fail-on", "bad")
    assert status == 3
    words = " ".join(out.split())
    assert "counters of 8 ports and 8 NICs in 6ms: bad a NIC ignores CNPs H1 ignored 647 CNPs" in words
    status, found, _ = fluidcc(*command, "--json")
    assert status == 0
    assert found["counters"].keys() == {"findings", "ports", "nics", "left_out", "seconds"}
    assert found["counters"]["nics"] == [f"H{k}" for k in range(8)]
    assert found["counters"]["seconds"] == pytest.approx(6e-3)
    for wrong, word in (
        (["--before", EXAMPLE / "counters" / "before"], "none are given"),
        (["--interval", "6ms"], "none are given"),
        (["--workload", "hadoop"], "none are given"),
        ([*read, "--workload", "hadop"], "hadoop"),
        ([*read, "--interval", "0s"], "60s"),
        (["--counters", EXAMPLE / "nic.txt"], "found no counters"),
        (["--counters", read[3], "--before", read[1]], "wrong order"),
    ):
        status, _, err = fluidcc("audit", EXAMPLE / "config_db.json", *wrong)
        assert status == 2
        assert word in err
        assert err.count("\n") == 1


def test_an_audit_is_of_the_ports_that_are_named(fluidcc, monkeypatch):
    asked = []

    def audit(*files, **options):
        asked.append(options["port"])
        raise fc.InputError("nothing is run")

    monkeypatch.setattr("fluidcc.operators.audit.audit", audit)
    for more in ([], ["--port", "Eth1"]):
        assert fluidcc("audit", EXAMPLE / "config_db.json", *more)[0] == 2
    assert asked == ["all", "Eth1"]


def test_show(fluidcc):
    _, found, _ = fluidcc("show", "dcqcn", "--json")
    names = {row["name"]: row for row in found["parameters"]}
    assert names["g"] == {
        "name": "g",
        "unit": "1",
        "default": 1 / 256,
        "symbol": "g",
        "source": "DCQCN Table 14",
        "meaning": "gain of alpha",
    }
    assert names["kmax"]["default"] == 200e3
    _, vendor, _ = fluidcc("show", "dcqcn", "--preset", "vendor", "--json")
    assert {row["name"]: row["default"] for row in vendor["parameters"]}["feedback_delay"] == "path"
    _, simulator, _ = fluidcc("show", "hpcc", "--preset", "hpcc-sim", "--json")
    names = {row["name"]: row["default"] for row in simulator["parameters"]}
    expected = {"pfc": True, "reserve": 4096, "header_bytes": 48, "timing": "ns3", "xoff": "dynamic", "kmin": None}
    assert names.items() >= expected.items()
    assert len(names) == len(simulator["parameters"])


def test_words_for_a_person(fluidcc, audited):
    for arguments in (
        ["equilibrium", "dcqcn"],
        ["show", "dcqcn"],
        ["audit", "--sonic", EXAMPLE / "config_db.json", "--nic", EXAMPLE / "nic.txt"],
        ["--help"],
        ["--version"],
        [],
    ):
        in_words(fluidcc, *arguments)


@pytest.mark.slow
def test_words_for_a_person_of_a_switch_alone(fluidcc):
    in_words(fluidcc, "audit", "--sonic", EXAMPLE / "config_db.json")


BAD = [
    (["simulate"], "SCHEME"),
    (["walk"], "walk"),
    (["simulate", "bbr"], "dcqcn"),
    (["simulate", "dcqcn", "--preset", "best"], "paper"),
    (["simulate", "dcqcn", "--topology", "ring"], "incast"),
    (["simulate", "dcqcn", "--rate", "40"], "40Gbps"),
    (["simulate", "dcqcn", "--flows", "0"], "flows"),
    (["simulate", "dcqcn", "--flows", "1e3"], "flows"),
    (["simulate", "dcqcn", "--set", "g"], "NAME=VALUE"),
    (["simulate", "dcqcn", "--set", "kmim=5KB"], "kmin"),
    (["simulate", "dcqcn", "--set", "g=3"], "g"),
    (["simulate", "dcqcn", "--set", "hyper_increase=maybe"], "on"),
    (["simulate", "dcqcn", "--set", "kmin=1MB"], "kmax"),
    (["simulate", "dcqcn", "--start", "0,,1ms"], "empty"),
    (["simulate", "dcqcn", "--set", "pfc=maybe"], "on"),
    (["simulate", "dcqcn", "--set", "pfc=off", "--set", "xoff=3KB"], "xoff"),
    (["simulate", "dcqcn", "--set", "timing=slow"], "ns3"),
    (["simulate", "dcqcn", "--set", "bursts=3"], "chain"),
    (["simulate", "dcqcn", "--topology", "chain", "--flows", "3"], "bursts"),
    (["simulate", "dcqcn", "--topology", "chain", "--set", "bursts=1.5"], "whole"),
    (["simulate", "dcqcn", "--topology", "chain", "--delay", "1us,2us"], "one delay"),
    (["simulate", "dcqcn", "--topology", "fat-tree", "--set", "spines=6"], "spines"),
    (["equilibrium", "hpcc", "--set", "kmin=5KB", "--set", "pmax=1%"], "kmax: is missing"),
    (["simulate", "dcqcn", "--until", "0s"], "until"),
    (["simulate", "dcqcn", "--until", "1e9s"], "steps"),
    (["simulate", "dcqcn", "--until", "100"], "write 100us, 100ms or 100s"),
    (["crosscheck", "dcqcn", "--until", "10.5"], "write 10.5us"),
    (["sweep", "dcqcn", "--over", "g=1/256,1/16", "--until", "1e3"], "write 1000us"),
    (["simulate", "dcqcn", "--rate", "40e9"], "write 40Gbps, or 320Gbps if bytes/s were meant"),
    (["simulate", "dcqcn", "--initial-rate", "10Gbps,1e9"], "has no unit"),
    (["simulate", "dcqcn", "--set", "rate_ai=40e6"], "write 40Mbps, or 320Mbps"),
    (["sweep", "dcqcn", "--over", "rate=40e9,80e9"], "write 40Gbps, or 320Gbps"),
    (["simulate", "dcqcn", "--until", "1ms", "--window", "1ms"], "A:B"),
    (["simulate", "dcqcn", "--until", "1ms", "--window", "1ms:2ms"], "window"),
    (["simulate", "dcqcn", "--dt", "1ms"], "dt"),
    (["simulate", "dcqcn", "--rtol", "2"], "rtol"),
    (["simulate", "hpcc", "--rtol", "1e-4"], "hpcc changes state in jumps"),
    (["simulate", "dcqcn", "--feedback-delay", "0s"], "delay"),
    (["simulate", "dcqcn", "--initial-rate", "80Gbps"], "line rate"),
    (["simulate", "dcqcn", "--engine", "quantum"], "fluid"),
    (["simulate", "dcqcn", "--seed", "3"], "packet"),
    (["crosscheck", "dcqcn", "--seeds", "0"], "--seeds"),
    (["crosscheck", "dcqcn", "--seeds", "1", "--engines", "hybrid,packet"], "--seeds: one run of each"),
    (["simulate", "dcqcn", "--method", "dopri"], "heun"),
    (["simulate", "dcqcn", "--dtype", "float16"], "float32"),
    (["simulate", "dcqcn", "--until", "1ms", "--out", "/nowhere/t.nc"], "/nowhere"),
    (["simulate", "dcqcn", "--until", "1ms", "--plot", "t.gif"], ".png"),
    (["simulate", "dcqcn", "--from", "/nowhere.json"], "/nowhere.json"),
    (["sweep", "dcqcn"], "--over"),
    (["sweep", "dcqcn", "--over", "g"], "NAME=VALUES"),
    (["sweep", "dcqcn", "--over", "until=1ms,2ms"], "shape"),
    (["sweep", "dcqcn", "--over", "g=1/256", "--over", "g=1/16"], "twice"),
    (["sweep", "dcqcn", "--over", "hyper_increase=on,off"], "equations"),
    (["sweep", "dcqcn", "--over", "timing=exact,ns3"], "equations"),
    (["sweep", "dcqcn", "--over", "pfc=on,off"], "equations"),
    (["sweep", "dcqcn", "--over", "bursts=1,2"], "shape"),
    (["sweep", "dcqcn", "--topology", "chain", "--over", "rate=10Gbps,20Gbps"], "rate"),
    (["sweep", "dcqcn", "--topology", "fat-tree", "--over", "flows=2,4"], "fat-tree"),
    (["sweep", "dcqcn", "--over", "g=1/256", "--metric", "speed"], "utilisation"),
    (["sweep", "dcqcn", "--over", "g=1/256", "--subject-to", "utilisation=1"], "utilisation>=0.99"),
    (["sweep", "dcqcn", "--over", "g=1/256", "--subject-to", "speed>=1"], "utilisation"),
    (["sweep", "dcqcn", "--over", "g=1/256", "--resume"], "--store DIR.zarr"),
    (["sweep", "dcqcn", "--over", "g=1/256", "--memory", "some"], "memory"),
    (["sweep", "dcqcn", "--over", "flows=2:5:3"], "whole number"),
    (["sweep", "dcqcn", "--over", "g=1/256", "--until", "1ms", "--out", "s.xls"], ".csv"),
    (["audit"], "--sonic"),
    (["audit", "--sonic", "/nowhere.json"], "/nowhere.json"),
    (["show", "swoop"], "dcqcn"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD, ids=lambda a: " ".join(a) if isinstance(a, list) else "")
def test_bad_usage_is_one_line_that_says_what_to_type(fluidcc, arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = fluidcc(*arguments)
    assert status == 2
    assert out == ""
    assert err.startswith("fluidcc: ")
    assert err.count("\n") == 1
    assert says in err
    assert list(tmp_path.iterdir()) == []


def test_importing_loads_nothing_heavy_and_changes_no_setting():
    code = (
        "import sys, fluidcc, fluidcc.cli;"
        "heavy = {'jax', 'numpy', 'scipy', 'xarray', 'matplotlib', 'rich.table'} & sys.modules.keys();"
        "assert not heavy, heavy;"
        "import jax; before = jax.config.values.copy();"
        "[getattr(fluidcc, name) for name in fluidcc.__all__];"
        "assert jax.config.values == before;"
        "assert not isinstance(fluidcc.simulate, type(sys))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_command_answers_in_a_process_of_its_own():
    command = [sys.executable, "-c", "from fluidcc.cli import main; main()"]
    done = subprocess.run([*command, "show", "dcqcn", "--json"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["scheme"] == "dcqcn"


def test_crosscheck(fluidcc, tmp_path):
    options = ["--flows", 2, "--seeds", 2, "--until", "4ms", "--sample-interval", "10us"]
    status, found, err = fluidcc("crosscheck", "dcqcn", *options, "--plot", tmp_path / "c.png", "--json")
    assert err == ""
    assert found.keys() >= {"fluid", "packet", "spread", "difference", "tolerance", "within"}
    assert (found["packet_bytes"], found["header_bytes"]) == (1000.0, 0.0)
    assert found["difference"].keys() == {
        "queue_mean_rel", "queue_p95_rel", "queue_peak_rel", "drain_time_rel", "rate_rel_max", "window_rel",
        "jain_abs", "settling_time_rel",
    }  # fmt: skip
    assert found["packet"].keys() >= {"events", "packets", "pfc_pauses", "drops", "queue_bytes", "seeds"}
    assert found["fluid"]["discretisation_error"].keys() == {"queue_rel", "rate_rel", "as_expected"}
    assert status == (0 if found["within"] else 1)
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    status, out, _ = fluidcc("crosscheck", "dcqcn", *options)
    assert status in (0, 1)
    assert "queue mean" in out


def test_crosscheck_of_what_nobody_judges_is_no_success(fluidcc, tmp_path):
    """A parking lot has no tolerances: `within` was true, exit status 0, of 12 Gb/s against 6."""
    options = ["--topology", "parking-lot", "--flows", 3, "--seeds", 1, "--until", "1ms"]
    status, found, _ = fluidcc("crosscheck", "dcqcn", *options, "--json")
    assert (status, found["within"], found["tolerance"]) == (1, None, {})
    status, out, _ = fluidcc("crosscheck", "dcqcn", *options)
    assert status == 1
    assert "not judged: no tolerance is set for this scenario" in out


def test_the_hybrid_engine(fluidcc):
    _, found, _ = fluidcc("simulate", "dcqcn", "--engine", "hybrid", "--seed", "2", "--until", "2ms", "--json")
    assert (found["engine"], found["seed"]) == ("hybrid", 2)
    over = ("--over", "kmin=5KB,20KB", "--until", "2ms", "--engine", "hybrid", "--seeds", "3")
    _, swept, _ = fluidcc("sweep", "dcqcn", *over, "--json")
    assert (swept["engine"], swept["seeds"], swept["discretisation_error"]) == ("hybrid", 3, None)
    assert {"value", "utilisation", "jain"} <= set(swept["best"])
    pair = ("--engines", "hybrid,packet", "--until", "4ms", "--seeds", "3")
    _, checked, _ = fluidcc("crosscheck", "dcqcn", *pair, "--json")
    assert checked["engines"] == ["hybrid", "packet"]
    assert set(checked["tolerance"]) <= set(checked["difference"])


def test_the_packet_engine(fluidcc):
    arguments = ["simulate", "dcqcn", "--engine", "packet", "--size", "1MB", "--until", "2ms"]
    status, found, _ = fluidcc(*arguments, "--seed", 3, "--json")
    assert status == 0
    assert found.keys() >= {"events", "packets", "pfc_pauses", "drops", "fct_s"}
    assert "discretisation_error" not in found
    assert found["packets"] == 2000
    status, out, _ = fluidcc(*arguments)
    assert "PFC pauses" in out


def test_stability(fluidcc):
    status, found, _ = fluidcc("stability", "dcqcn", "--flows", "8:9", "--json")
    assert status == 0
    eight, nine = found["points"]
    assert (eight["flows"], nine["flows"]) == (8, 9)
    assert eight["rightmost_root_per_s"] == pytest.approx([-47.73, 2754.1], rel=1e-4)
    assert eight["phase_margin_deg"]["exact"] > nine["phase_margin_deg"]["exact"]
    assert math.isfinite(eight["critical_feedback_delay_s"])
    assert eight["fairness_root_per_s"][0] < eight["aggregate_root_per_s"][0]


def test_stability_plots(fluidcc, tmp_path):
    picture = tmp_path / "roots.png"
    status, out, _ = fluidcc("stability", "dcqcn", "--flows", "2,20", "--plot", picture)
    assert status == 0
    assert "extended beyond kmax" in " ".join(out.split())
    assert picture.stat().st_size > 10_000


NO_NUMBERS = [
    (["hpcc"], "write base_rtt=", None),
    (["hpcc-multiq"], "scheme hpcc-multiq has no equilibrium side", None),
    (["swift"], "jumps", None),
    (["dctcp"], "jumps", None),
    (["none"], "scheme none has no equilibrium side", None),
    (["timely"], "no fixed point", False),
    pytest.param(["timely", "--preset", "fluid"], "no fixed point", False, marks=pytest.mark.slow),
    pytest.param(
        ["hpcc", "--set", "form=rate", "--set", "u_queue=off", "--flows", "64"],
        "no fixed point",
        False,
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize(("arguments", "why", "exists"), NO_NUMBERS)
def test_stability_answers_where_nothing_can_be_linearised(fluidcc, tmp_path, arguments, why, exists):
    """A state in place of numbers, exit 0, a picture that says the same."""
    picture = tmp_path / "s.png"
    status, found, err = fluidcc("stability", *arguments, "--plot", picture, "--json")
    assert (status, err) == (0, "")
    (point,) = found["points"]
    assert why in point["state"]
    assert (point["exists"], point["stable"], point["rightmost_root_per_s"]) == (exists, None, None)
    assert picture.stat().st_size > 10_000


def test_stability_in_words_says_where_to_look_on(fluidcc):
    status, out, err = fluidcc("stability", "timely", "--flows", "2,4")
    assert (status, err) == (0, "")
    assert "flows 2, 4: no fixed point" in out
    assert "fluidcc equilibrium timely" in out
    assert "margins" not in out  # there are none


@pytest.mark.slow
def test_equilibrium_of_what_cycles_is_no_fixed_point(fluidcc):
    status, out, err = fluidcc("equilibrium", "dctcp", "--flows", "8")
    assert (status, err) == (0, "")
    title, *rows = out.splitlines()
    assert "no fixed point" in title
    assert any(row.split() == ["in", "the", "long", "run", "cycle"] for row in rows)
    status, out, _ = fluidcc("equilibrium", "timely", "--preset", "patched", "--flows", "8")
    assert "no fixed point" not in out
    status, found, _ = fluidcc("equilibrium", "dctcp", "--flows", "8", "--json")
    assert found["exists"] is False
    assert found["limit_cycle"]["kind"] == "cycle"
    assert found["queue_bytes"] == pytest.approx(found["limit_cycle"]["queue_bytes"]["mean"])


@pytest.mark.slow
@pytest.mark.parametrize("options", ["--topology chain --set burst_time=50us", "--set pfc=on"])
def test_equilibrium_answers_with_flow_control_and_along_a_chain(fluidcc, options):
    status, _, err = fluidcc("equilibrium", "dcqcn", *options.split(), "--json")
    assert (status, err) == (0, "")


@pytest.mark.parametrize("flows", ["0", "2:1", "two", "1:99999", "2,"])
def test_stability_refuses_what_is_no_count(fluidcc, flows):
    status, _, err = fluidcc("stability", "dcqcn", "--flows", flows)
    assert status == 2
    assert "--flows" in err
