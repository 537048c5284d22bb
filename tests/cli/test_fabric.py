"""``fluidcc fabric``: keys as promised, what a study leaves behind, and one line for what makes no sense."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from fluidcc.cli.app import run

SHAPE = ["--topology", "leaf-spine:2x1x4"]
FAST = [*SHAPE, "--workload", "hadoop", "--load", "30%", "--until", "50us"]


def test_a_mix_of_workloads(capsys: pytest.CaptureFixture[str]) -> None:
    mix = ["--workload", "alibaba-storage:70%+hadoop:30%", "--load", "40%", "--until", "50us", "--json"]
    assert run(["fabric", "hpcc", *SHAPE, *mix]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["traffic"] == "alibaba-storage (70 %) + hadoop (30 %) at 40 % load"
    assert found["schemes"][0]["flows"] > 5


def test_its_json_has_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fabric", "hpcc,dctcp", *FAST, "--seeds", "3", "--bins", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["scheme"], each["seed"]) for each in found["runs"]] == [
        ("hpcc", 1), ("hpcc", 2), ("hpcc", 3), ("dctcp", 1), ("dctcp", 2), ("dctcp", 3),
    ]  # fmt: skip
    first = found["runs"][0]
    assert (found["packet_bytes"], found["header_bytes"]) == (1000.0, 0.0)
    assert {"flows", "unfinished", "pfc_pauses", "drops", "packets", "events", "wall_s"} <= first.keys()
    assert set(first["slowdown"]) == {"mean", "p50", "p95", "p99", "p999"}
    assert len(first["bins"]) == 3
    assert {"from_bytes", "to_bytes", "flows", "mean", "p50", "p95", "p99"} <= first["bins"][0].keys()
    assert sum(each["flows"] for each in first["bins"]) + first["unfinished"] == first["flows"]
    together = found["schemes"][0]["slowdown"]["mean"]
    assert together["mean"] == pytest.approx(sum(run["slowdown"]["mean"] for run in found["runs"][:3]) / 3)
    assert 0 < together["low"] < together["mean"] < together["high"]


def test_pairs_and_a_rebuild(capsys: pytest.CaptureFixture[str]) -> None:
    sent = ["--workload", "hadoop", "--pairs", "4", "--rebuild", "3", "--until", "200us", "--since", "50us"]
    assert run(["fabric", "dcqcn", *SHAPE, *sent]) == 0
    told = capsys.readouterr().out
    assert "hadoop by 4 pairs, rebuild from 3" in told
    assert "goodput from 50us to 200us" in " ".join(told.split())
    assert run(["fabric", "dcqcn", *SHAPE, "--pairs", "4", "--until", "200us"]) != 0
    assert "nothing is sent" in capsys.readouterr().err


def test_a_person_sees_tables_and_a_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(["fabric", "hpcc", *FAST, "--out", str(out)]) == 0
    told = capsys.readouterr()
    assert "8 hosts, hadoop at 30 % load" in told.out
    assert "wrote" in told.err
    names = {path.name.partition("-")[0] for path in out.iterdir()}
    assert names == {"slowdown.png", "queues.png", "slowdown.csv", "hpcc"}
    rows = list(csv.DictReader((out / "slowdown.csv").open()))
    assert {"scheme", "seed", "from_bytes", "to_bytes", "p99"} <= rows[0].keys()


def test_parameters_go_to_the_schemes_that_have_them(capsys: pytest.CaptureFixture[str]) -> None:
    flows = ["--workload", "permutation", "--size", "200KB", "--json"]
    means = {}
    for sets in ([], ["--set", "eta=0.5"], ["--set", "header_bytes=500B"], ["--set", "kmin=1KB", "--set", "kmax=1KB"]):
        assert run(["fabric", "hpcc,dctcp", *SHAPE, *flows, *sets]) == 0
        found = json.loads(capsys.readouterr().out)
        means[tuple(sets)] = [each["slowdown"]["mean"]["mean"] for each in found["schemes"]]
    plain, eta, header, kmin = means.values()
    assert eta[0] > plain[0] * 1.2
    assert eta[1] == plain[1]
    assert header[0] != plain[0]
    assert header[1] != plain[1]
    assert kmin[0] == plain[0]
    assert kmin[1] != plain[1]


def test_loss_recovery(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Without it flows that lose a packet never end."""
    topology = tmp_path / "topology.txt"
    topology.write_text("4 1 3\n3\n0 3 100Gbps 1us 0.01\n1 3 100Gbps 1us 0.01\n2 3 100Gbps 1us 0.01\n")
    arguments = [
        "fabric",
        "dcqcn",
        "--topology",
        str(topology),
        "--workload",
        "permutation",
        "--size",
        "500KB",
        "--json",
    ]
    unfinished, again = [], []
    for recovery in ("none", "gbn", "irn"):
        assert run([*arguments, "--loss-recovery", recovery, "--drain", "20ms"]) == 0
        found = json.loads(capsys.readouterr().out)["runs"][0]
        unfinished.append(found["unfinished"])
        again.append(found["retransmissions"])
    assert unfinished == [3, 0, 0]
    assert again[0] == 0
    assert 0 < again[2] < again[1]
    assert run([*arguments, "--loss-recovery", "tcp"]) == 2
    assert "none or gbn or irn" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fabric"], "none is named"),
        (["fabric", "hpcc"], "nothing is sent"),
        (["fabric", "hpcc,hpcc", *FAST], "has one twice"),
        (["fabric", "hpc", *FAST], "did you mean hpcc"),
        (["fabric", "hpcc", *FAST, "--set", "etta=1"], "did you mean eta"),
        (["fabric", "hpcc", *FAST, "--set", "eta"], "no NAME=VALUE"),
        (["fabric", "hpcc", *FAST, "--set", "flows=3"], "belongs to other topologies"),
        (["fabric", "hpcc", *FAST, "--bins", "many"], "--bins"),
        (["fabric", "hpcc", *FAST, "--bins", "10KB,1KB"], "--bins"),
        (["fabric", "hpcc", *FAST, "--out", ""], "--out"),
        (["fabric", "hpcc", *FAST, "--config", "nowhere.txt"], "names its own"),
        (["fabric", *FAST, "--config", "nowhere.txt"], "--workload: nowhere.txt says all that"),
        (["fabric", "--config", "nowhere.txt"], "nowhere.txt: No such file"),
        (["fabric", "hpcc", "--flows-file", "nowhere.txt"], "nowhere.txt: No such file"),
        (["fabric", "hpcc", *SHAPE, "--workload", "hadoop"], "until"),
        (["fabric", "hpcc", *SHAPE, "--until", "1ms", "--workload", "hadoop:30%+web-search:20%"], "add up to 50%"),
    ],
)
def test_one_line_for_what_makes_no_sense(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1


def test_a_topology_given_for_a_scenario_is_recognised(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "topology.txt"
    path.write_text("3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n")
    assert run(["simulate", "hpcc", "--topology", str(path)]) == 2
    assert "fluidcc fabric hpcc --topology" in capsys.readouterr().err
