"""``fluidcc tune`` on a whole fabric: what it is asked, what runs, and what is to be typed."""

from __future__ import annotations

import itertools
import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.cli import output
from fluidcc.cli import tune_fabric as cli
from fluidcc.cli.app import run
from fluidcc.cli.contenders import contenders, read
from fluidcc.cli.request import Request
from fluidcc.errors import InputError
from fluidcc.scenario.model import RED
from fluidcc.studies.tuning import on_fabric, race
from fluidcc.studies.tuning.space import space_of
from fluidcc.units import Rate
from fluidcc.workloads.fabrics.shapes import named_topology

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = [str(EXAMPLES / "leaf-100g" / name) for name in ("config_db.json", "nic.txt")]
FROM = [text for file in FILES for text in ("--from", file)]
SMALL = ["--topology", "leaf-spine:2x1x2", "--workload", "hadoop", "--load", "60%", "--until", "0.4ms"]
OVER = ["--over", "kmin=2KB:500KB", "--over", "g"]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (race, on_fabric):
        monkeypatch.setattr(module, "RUNGS", (2, 1, 1))
    monkeypatch.setattr(on_fabric, "_MOST", 4)


@pytest.mark.usefixtures("short")
def test_its_json_has_the_promised_keys(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Names and shapes that scripts rely on; the files that are named are there."""
    arguments = ["tune", "dcqcn", *FROM, *SMALL, *OVER, "--evaluations", "6", "--packet-size", "4096"]
    assert run([*arguments, "--write", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"start", "best", "evaluations", "pareto", "plateau", "irrelevant", "cases", "confirmed"} <= told.keys()
    assert (told["packet_bytes"], told["header_bytes"]) == (4096.0, 62.0)
    assert told["start"] == {"kmin": 1048576.0, "g": pytest.approx(1019 / 1024 - 1014 / 1024)}
    assert set(told["yardsticks"]) == set()  # Kmin alone is nobody's setting
    assert told["evaluations"] == 6
    (case,) = told["cases"]
    assert (case["workload"], case["load"], case["until"]) == ("hadoop", "60%", "0.4ms")
    assert case["start"]["slowdown.small.p99"] >= 1
    assert all(low <= high for low, high in told["plateau"].values())
    assert all(Path(file).exists() for file in told["files"])
    assert {"tuning.json", "race.png"} <= {Path(file).name for file in told["files"]}
    assert told["devices"][0].startswith("links to hosts, 100Gbps: Kmin 1.049MB")
    if told["best"] is not None:
        assert {"patch.json", "undo.json"} <= {Path(file).name for file in told["files"]}
    assert run([*arguments, "--write", str(tmp_path)]) == 0  # from what is kept
    out = capsys.readouterr().out
    assert "dcqcn on 4 hosts: 6 settings of kmin, g" in out
    assert "present: kmin 1.049MB, g " in out
    assert ("with 8 other seeds:" in out) is told["confirmed"]
    assert told["confirmed"] is (told["recommended"] is not None)
    assert len(told["commands"]) == told["confirmed"]


def test_a_load_is_that_of_a_workload(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["tune", "dcqcn", "--over", "kmin", "--topology", "leaf-spine:2x1x2", "--collective", "all-reduce"]
    assert run([*arguments, "--load", "50%"]) == 2
    assert "--load: belongs to --workload" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (["--engine", "hybrid"], ("--engine", "no effect")),
        (["--seeds", "4"], ("--seeds", "no effect")),
        (["--packets", "0"], ("--packets", "no effect")),
        (["--no-defaults"], ("--no-defaults", "no effect")),
        (["--flows", "8"], ("--flows", "no effect")),
        (["--start", "0,1ms"], ("--start", "leave it out")),
        (["--over", "timer"], ("timer", "usual bounds", "--over timer=LO:HI")),
        (["--over", "kmax=1KB"], ("no NAME=LO:HI",)),
        (["--over", "kmin"], ("kmin", "twice")),
        (["--over", "kmni=1KB:2KB"], ("kmni", "did you mean kmin")),
        (["--across", "flows=f.txt"], ("flows", "leave it out")),
        (["--across", "load"], ("no NAME=V,V",)),
        (["--across", "load=30%,60%"], ("load", "twice")),
        (["--across", "seeds=1,2"], ("seeds", "no case")),
        (["--across", "burst=4,4"], ("burst=4,4", "twice")),
        (["--evaluations", "3"], ("--evaluations", "4 or more")),
        (["--collective", "all-reduce,broadcast"], ("--collective", "--across collective=")),
        (["--bytes", "1MB"], ("--bytes", "--collective all-reduce")),
        (["--objective", "jain"], ("objective", "slowdown.small.p99")),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: list[str], keys: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything runs: options without effect are named."""
    assert run(["tune", "dcqcn", *SMALL, "--over", "kmin=2KB:500KB", "--evaluations", "4", *arguments]) == 2
    said = capsys.readouterr().err
    assert all(key in said for key in keys), said


AT_400G = named_topology("leaf-spine:2x1x2", rate="400Gbps", fabric_rate="400Gbps")


def base(**options: Any) -> dict[str, Any]:
    return {**contenders(["dcqcn"], "hpcc-eval", None, None, None).options["dcqcn"], **options}


def test_usual_bounds_come_from_the_port_and_its_packets() -> None:
    """No Kmin below what 8 flows make at p99, 3 packets, or 54 of bursts of 16; up to twice what anybody uses here."""
    over = ["kmin", "kmax", "pmax", "g=1/512:1/8"]
    found = cli._bounds("dcqcn", over, AT_400G, [base(payload=4096.0), base(payload=1024.0)])
    assert found["kmin"] == (3 * (4096 + 62), 2 * 1.6e6)  # Alibaba's 100 KB for each 25 Gb/s
    assert found["kmax"] == (6 * (4096 + 62), 2 * 6.4e6)
    assert (found["pmax"], found["g"]) == (("1%", "100%"), ("1/512", "1/8"))
    bursts = cli._bounds("dcqcn", over, AT_400G, [base(payload="1024"), base(payload="1024", burst="16")])
    assert bursts["kmin"][0] == 54 * (1024 + 62)  # of the case with the longest


def test_a_threshold_alone_stops_at_the_present_other_one() -> None:
    """Or a race of minutes would end at the first Kmin above Kmax."""
    here = [base(payload=4096.0)]  # Alibaba's: 1.6 MB and 6.4 MB
    assert cli._bounds("dcqcn", ["kmin"], AT_400G, here)["kmin"] == (3 * (4096 + 62), 3.2e6)
    assert cli._bounds("dcqcn", ["kmin=2KB:9MB"], AT_400G, here)["kmin"] == (2e3, 6.4e6)
    assert cli._bounds("dcqcn", ["kmax"], AT_400G, here)["kmax"] == (1.6e6, 12.8e6)
    for over, other in (("kmin=7MB:9MB", "kmax"), ("kmax=1KB:1MB", "kmin")):
        with pytest.raises(InputError, match=f"tune {other} too"):
            cli._bounds("dcqcn", [over], AT_400G, here)


def test_a_threshold_alone_stops_at_those_of_the_links_between_switches_too() -> None:
    """Uplinks of the sample have a Kmin of 1 MiB, above that to hosts; those of tier 2 here a Kmax of 14 KB."""
    files = [str(EXAMPLES / "fabric-400g" / "config_db.json")]
    sent = contenders(["dcqcn"], "hpcc-eval", None, read(files, None), "4096").options["dcqcn"]
    assert cli._bounds("dcqcn", ["kmax"], AT_400G, [sent])["kmax"][0] == 1048576
    assert cli._bounds("dcqcn", ["kmin"], AT_400G, [sent])["kmin"][1] == 1.6e6
    low = {**sent, "marking": [*sent["marking"], lambda _: RED("13KB", "14KB", 1.0)]}
    assert cli._bounds("dcqcn", ["kmin"], AT_400G, [low])["kmin"] == (3 * (4096 + 62), 14e3)


def test_present_values_are_those_of_links_to_hosts() -> None:
    """A list of files gives the first, a preset its rule for the rate; what has none is refused."""
    sent = contenders(["dcqcn"], "hpcc-eval", None, read(FILES, None), "4096").options["dcqcn"]
    found = cli._present("dcqcn", sent, ["kmin", "kmax", "pmax", "timer"], Rate(12.5e9))
    assert found == pytest.approx({"kmin": 1048576, "kmax": 2097152, "pmax": 0.05, "timer": 300e-6})
    assert cli._present("dcqcn", base(), ["kmin"], Rate(50e9)) == {"kmin": 1.6e6}
    with pytest.raises(InputError, match="kmin has no present value"):
        cli._present("hpcc", contenders(["hpcc"], "hpcc-eval", None, None, None).options["hpcc"], ["kmin"], Rate(50e9))


NONE = {"workload": None, "load": None, "until": None, "collective": None, "bytes": None}


def cases(across: list[str], packet_size: str | None = "4096", **traffic: str) -> list[dict[str, Any]]:
    sent = contenders(["dcqcn"], "hpcc-eval", None, read(FILES[:1], None), packet_size)
    return cli._cases({**NONE, **traffic}, across, named_topology("leaf-spine:8x4x8"), sent)


def test_cases_are_all_combinations() -> None:
    found = cases(["load=30%,60%", "burst=1,4"], workload="hadoop", until="1ms")
    assert [(each["load"], each["burst"]) for each in found] == [("30%", "1"), ("30%", "4"), ("60%", "1"), ("60%", "4")]
    assert all(each["workload"] == "hadoop" and each["until"] == "1ms" for each in found)
    two = cases(["workload=hadoop,web-search"])
    assert [each["workload"] for each in two] == ["hadoop", "web-search"]
    assert len({each["until"] for each in two}) == 1
    both = cases(["burst=1,4"], None, collective="all-reduce", bytes="1MB")
    assert [(each["burst"], each["payload"]) for each in both] == list(itertools.product("14", ("4096", "1024")))
    assert all(each["collective"] == "all-reduce" and "until" not in each for each in both)
    assert [each["payload"] for each in cases(["packet_size=1024,2048"], workload="hadoop")] == ["1024", "2048"]


def test_a_workload_and_a_collective_are_cases_of_one_race() -> None:
    """Each takes the options that it knows: a load has no effect on a collective, nor its size on flows."""
    found = cases(["load=30%,60%", "burst=1,4"], workload="hadoop", until="1ms", collective="all-reduce", bytes="2MB")
    flows, rings = [each for each in found if "workload" in each], [each for each in found if "collective" in each]
    assert [(each["load"], each["burst"]) for each in flows] == list(itertools.product(("30%", "60%"), "14"))
    assert all(each["until"] == "1ms" and "bytes" not in each for each in flows)
    assert rings == [{"collective": "all-reduce", "bytes": "2MB", "burst": burst} for burst in "14"]
    assert len(found) == len(flows) + len(rings)
    two = cases(["collective=all-reduce,all-to-all"], bytes="1MB", until="5ms")
    assert [(each["collective"], each["until"]) for each in two] == [("all-reduce", "5ms"), ("all-to-all", "5ms")]


def test_flows_arrive_for_so_long_that_there_are_enough() -> None:
    """1500 flows of 1.711 MB on 64 hosts of 100 Gb/s at the highest load; of small flows 15 MB a host."""
    rate, hosts = 12.5e9, 64
    (one,) = cases([], workload="web-search", load="80%")
    assert one["until"] == f"{1e3 * 1500 * 1711250 / (0.8 * hosts * rate):.4g}ms"
    two = cases(["load=20%,60%"], workload="web-search")
    assert {each["until"] for each in two} == {f"{1e3 * 1500 * 1711250 / (0.6 * hosts * rate):.4g}ms"}
    (small,) = cases([], workload="alibaba-storage")
    assert small["until"] == "1.2ms"
    assert "until" not in cases([], workload="permutation")[0]


POINT = {"kmin": 2e5, "pmax": 0.15, "g": 1 / 64}


def test_the_printed_command_runs_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """Files, port, --set, packets, rate and case are in it, and the setting as it raced."""
    request = Request(
        "dcqcn", sources=FILES, port="Ethernet0", sets=["rate_ai=10Mbps"], packet_size="4096B", delay="2us"
    )
    case = {"workload": "hadoop", "load": "60%", "until": "0.2ms", "burst": "4"}
    command = cli._again(request, "leaf-spine:2x1x2", POINT, case)
    typed = shlex.split(command)
    options = dict(zip(typed[3::2], typed[4::2], strict=True))
    assert typed[:3] == ["fluidcc", "fabric", "dcqcn"]
    assert options == {
        "--from": FILES[1], "--port": "Ethernet0", "--topology": "leaf-spine:2x1x2", "--packet-size": "4096B",
        "--delay": "2us", "--set": "rate_ai=10Mbps", "--workload": "hadoop", "--load": "60%", "--until": "0.2ms",
        "--burst": "4", "--seeds": "8", "--setting": "new:kmin=200KB,pmax=0.15,g=1/64",
    }  # fmt: skip
    assert run([*typed[1:-4], "--seeds", "2", *typed[-2:]]) == 0
    assert "dcqcn-new against dcqcn" in " ".join(capsys.readouterr().out.split())
    ring_case = {"collective": "all-reduce", "payload": "1024", "delay": "5us"}
    ring = cli._again(request, "leaf-spine:2x1x2", POINT, ring_case)
    assert ring.startswith("fluidcc collective all-reduce --scheme dcqcn ")
    assert "--packet-size 1024 " in ring
    assert ring.count("--delay") == 1
    assert "--delay 5us " in ring


LINKS = [(0, 12.5e9), (1, 12.5e9), (2, 50e9)]  # places and rates of a fabric's links


def test_every_tiers_switch_gets_its_patch() -> None:
    """A ToR's ports to hosts and up, the tier above from its own file, and the NIC once."""
    other = str(EXAMPLES / "fabric-400g" / "config_db.json")
    sources = [FILES[0], other, FILES[1]]
    made = cli._typed(Request("dcqcn", sources=sources), read(sources, None), POINT, LINKS)
    assert set(made) == {"", "tier2"}
    assert made[""].registers.keys() == {"dce_tcp_g"}
    assert made["tier2"].registers == {}
    profile = next(row["value"] for row in made[""].patch if row["path"].startswith("/WRED_PROFILE/"))
    assert (profile["green_min_threshold"], profile["green_drop_probability"]) == ("200000", "15")
    assert "changes 32 ports" in made[""].notes[0]  # 24 to hosts, 8 up
    # Queue 4 has the same profiles, and its traffic is not in the race.
    new = {row["path"]: row["value"] for row in made["tier2"].patch if row["path"].startswith("/WRED_PROFILE/")}
    assert set(new) == {f"/WRED_PROFILE/RDMA_{name}_400G" for name in ("HOST", "SPINE")}
    assert {each["green_min_threshold"] for each in new.values()} == {"200000"}
    assert {each["green_max_threshold"] for each in new.values()} == {"1600000", "2097152"}  # as they were
    assert "changes 24 ports" in made["tier2"].notes[0]
    assert "ecnconfig.txt" not in made["tier2"].files
    nic = cli._typed(Request("dcqcn", sources=FILES[1:]), read(FILES[1:], None), POINT, LINKS)
    assert (nic[""].patch, nic[""].registers.keys()) == ([], {"dce_tcp_g"})
    assert cli._typed(Request("dcqcn", sources=FILES), read(FILES, None), {}, LINKS) == {}


def test_a_step_stays_one() -> None:
    """DCTCP's K alone is tuned: Kmax goes with it, in what runs and in what is typed."""
    steps = contenders(["dctcp"], "hpcc-eval", None, None, None).options["dctcp"]
    bounds = cli._bounds("dctcp", ["kmin=10KB:900KB"], named_topology("leaf-spine:2x1x2"), [steps])
    assert bounds["kmin"] == ("10KB", "900KB")
    assert cli._is_step("dctcp", steps, bounds, Rate(12.5e9))
    assert not cli._is_step("dctcp", steps, {**bounds, "kmax": (1, 2)}, Rate(12.5e9))
    assert not cli._is_step("dcqcn", base(), bounds, Rate(12.5e9))
    assert cli._whole({"kmin": 5e4}, tied=True) == {"kmin": 5e4, "kmax": 5e4}
    assert cli._whole({"kmin": 5e4}, tied=False) == {"kmin": 5e4}
    assert cli._whole(None, tied=True) == {}


def test_cases_are_named_by_what_differs() -> None:
    """Rows that look alike cannot be read; what all cases have is not repeated."""
    same = {"workload": "hadoop", "load": "50%", "burst": "4"}
    found: Any = SimpleNamespace(cases=[{**same, "delay": "1us", "payload": "1024"}, {**same, "delay": "2us"}])
    assert cli._case(found, 0, "hadoop at 50 % load") == "hadoop at 50 % load, delay 1us, packets of 1024 B"
    assert cli._case(found, 1, "hadoop at 50 % load") == "hadoop at 50 % load, delay 2us"


def test_files_of_an_earlier_race_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A patch beside a result that says to type nothing would be applied."""
    (tmp_path / "tier2").mkdir()
    for name in ("patch.json", "tier2/patch.json", "nic.sh", "mine.txt"):
        (tmp_path / name).write_text("")
    output.tell_of_others(str(tmp_path), [str(tmp_path / "nic.sh")], ("patch.json", "nic.sh"))
    assert "patch.json, tier2/patch.json are of an earlier run, not of this setting" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("small", "large", "says"),
    [
        (0.5, 1.2, "nothing to type: what is better than the present setting in one is worse in another"),
        (1.0, 1.2, "nothing to type: no setting is shown to be better than the present one"),
        (1.0, 1.0, "nothing to type: no setting is shown to be better than the present one"),
    ],
)
def test_why_there_is_nothing_to_type(
    small: float, large: float, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trade is one only if something gets better."""
    found = np.ones((1, len(race.MEASURES), 4, 2))
    found[0, 0, :, 0], found[0, 1, :, 0], found[0, 3, :, 0] = small, large, 2.0
    racer = race.Racer("s1", {"kmin": 5e4}, found)
    tuned = fc.studies.FabricTuning(
        space=space_of({"kmin": (1e3, 1e5)}), rule=race.Rule(("slowdown.small.p99", "slowdown.large.p99")),
        topology=AT_400G, cases=[{"workload": "hadoop"}], says=("hadoop at 50 % load",), start={"kmin": 1e4},
        yardsticks={}, racers=[racer], best=None, proofs={"s1": racer}, plateau={}, irrelevant=[], runs=8, flows=[{}],
        notes=[],
    )  # fmt: skip
    cli._print("dcqcn", tuned)
    assert says in " ".join(capsys.readouterr().out.split())
    assert tuned.as_dict()["settings"][0]["ratios"]["goodput"] == pytest.approx(2)  # as it is, not turned round
