"""Jobs side by side: where ranks are, who slows whom, what is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.workloads.collectives import CollectiveStudy, Job, placed, read_jobs
from fluidcc.workloads.collectives.engines import ENGINES, packets
from fluidcc.workloads.collectives.mapping import NoRoomError
from fluidcc.workloads.fabrics import Cable, Topology, named_topology
from tests.fuzz import OBJECTS

RACKS = named_topology("leaf-spine:2x1x4")


def test_placements() -> None:
    jobs = [Job("all-reduce", ranks=3), Job("broadcast", ranks=4)]
    assert placed(jobs, RACKS) == [[0, 1, 2], [3, 4, 5, 6]]
    assert placed(jobs, RACKS, "round-robin") == [[0, 4, 1], [5, 2, 6, 3]]
    assert placed(jobs, RACKS, [7, 1, 2, 3, 4, 5, 0]) == [[7, 1, 2], [3, 4, 5, 0]]
    drawn = placed(jobs, RACKS, "random", 3)
    assert drawn == placed(jobs, RACKS, "random", 3) != placed(jobs, RACKS, "random", 4)
    assert len({host for each in drawn for host in each}) == 7
    given = [Job("all-reduce", ranks=(0, 2)), Job("all-reduce", ranks=3)]
    assert placed(given, RACKS) == [[0, 2], [1, 3, 4]]


def test_racks_of_unlike_sizes_are_served_in_turn_until_they_are_full() -> None:
    """Hosts 0, 1 and 2 of one rack, 3 of the next, 4 and 5 of the last."""
    racks = [6, 6, 6, 7, 8, 8]
    cables = [Cable((host, rack), "100Gbps", "1us") for host, rack in enumerate(racks)]
    uneven = Topology(tuple(range(6)), (6, 7, 8, 9), (*cables, *(Cable((k, 9), "100Gbps", "1us") for k in (6, 7, 8))))
    assert placed([Job("broadcast", ranks=6)], uneven, "round-robin") == [[0, 3, 4, 1, 5, 2]]
    listed = [Job("broadcast", ranks=(1, 4)), Job("broadcast", ranks=3)]
    assert placed(listed, uneven, "round-robin") == [[1, 4], [0, 3, 5]]


@pytest.mark.parametrize(("ranks", "lacking"), [((4, 4, 2), 2), ((4, 5), 1), ((9,), 0), ((6, 6, 2), 1)])
def test_the_first_job_without_room_is_named(ranks: tuple[int, ...], lacking: int) -> None:
    """On 8 hosts; jobs behind it have none either."""
    with pytest.raises(NoRoomError, match=f"^ranks: {sum(ranks)} need as many hosts, and there are 8; ") as caught:
        placed([Job("broadcast", ranks=count) for count in ranks], RACKS)
    assert caught.value.job == lacking


@pytest.mark.parametrize(
    ("kind", "options", "parts"),
    [("all-gather", {}, 4), ("all-reduce", {"chunks": 3}, 12), ("all-to-all", {}, 4), ("broadcast", {"chunks": 5}, 5)],
)
def test_a_part_of_one_byte_is_enough(kind: str, options: dict[str, Any], parts: int) -> None:
    assert Job(kind, parts, ranks=4, **options).bytes == parts
    with pytest.raises(InputError, match=f"write {parts}B or more{', or fewer chunks' * bool(options)}$"):
        Job(kind, parts - 0.5, ranks=4, **options)


@pytest.mark.parametrize(
    ("name", "least", "most", "less", "more"),
    [
        ("bytes", 4, 1e15, 0.5, 1.001e15),
        ("steps", 1, 100_000, 0, 100_001),
        ("compute", "0s", "1000s", "-1ns", "1000.1s"),
        ("start", "0s", "1000s", "-1ns", "1000.1s"),
        ("chunks", 1, 4096, 0, 4097),
        ("server", 2, 1024, 0, 1025),
        ("server_rate", "1B/s", "1e15B/s", "0.9B/s", "1.001e15B/s"),
        ("ranks", 2, 16384, 1, 16385),
        ("ranks", (0, 1), (0, 1 << 30), (-1, 0), (0, (1 << 30) + 1)),
    ],
)
def test_fields_have_bounds(name: str, least: Any, most: Any, less: Any, more: Any) -> None:
    """Ends of a range are allowed themselves."""
    others: dict[str, Any] = {"server": {"server_rate": "1GB/s"}, "server_rate": {"server": 2}}.get(name, {})
    kind = "broadcast" if name == "chunks" else "all-to-all"
    for value in (least, most):
        job = Job(kind, **{"bytes": 1e9, **others, name: value})
        assert getattr(job, name) == (float(value.rstrip("B/s")) if isinstance(value, str) else value)
    for value in (less, more):
        with pytest.raises(InputError, match=rf"^{name}: "):
            Job(kind, **{"bytes": 1e9, **others, name: value})


def test_skew_has_bounds() -> None:
    assert [Job("all-to-all", 1e9, skew=skew).skew for skew in (0.0, 10.0)] == [0.0, 10.0]
    for skew in (-0.1, 10.1):
        with pytest.raises(InputError, match=r"^skew: "):
            Job("all-to-all", 1e9, skew=skew)


@pytest.mark.parametrize(
    ("written", "line", "says"),
    [
        (b"\xff = 1\n", 1, "is no text"),
        (b"fluidcc_jobs = 1\n\n# caf\xe9\n\n", 3, "is no text"),
        (b"\xef\xbb\xbffluidcc_jobs = 1\n# caf\xe9\n", 2, "is no text"),
        (b"fluidcc_jobs = 1\na = = 2\n\n", 2, "is not TOML"),
        (b"fluidcc_jobs = 1\n\na = [\n", 4, "is not TOML"),  # to the end of it
        (b"\n\njobs = 1\n", 1, "has no line fluidcc_jobs = 1"),
        (b"fluidcc_jobs = true\n", 1, "has no line fluidcc_jobs = 1"),
    ],
)
def test_a_file_that_is_none_is_refused_by_line(tmp_path: Path, written: bytes, line: int, says: str) -> None:
    path = tmp_path / "jobs.toml"
    path.write_bytes(written)
    with pytest.raises(InputError, match=f"jobs.toml, line {line}: {says}"):
        read_jobs(path)


@pytest.fixture(scope="module")
def crossing() -> CollectiveStudy:
    """Two jobs from rack to rack over the one link, which is as fast as a host's."""
    jobs = [Job("broadcast", "1MB", ranks=(0, 4), name="a"), Job("broadcast", "1MB", ranks=(1, 5), name="b")]
    return fc.collective(jobs, RACKS, "none,dctcp", separately=True, loss=0.0)


def test_two_jobs_share_nothing_where_there_is_room(crossing: CollectiveStudy) -> None:
    """400 Gb/s between switches."""
    for run in crossing.runs:
        for job in run.numbers["jobs"]:
            assert job["slowdown"] == pytest.approx(1, abs=0.01)
        assert run.numbers["jain"] == pytest.approx(1, abs=1e-4)


def test_two_jobs_share_a_link() -> None:
    """Each gets half of it: twice the time, within the start of some packets and the queue."""
    jobs = [Job("broadcast", "1MB", ranks=(0, 4)), Job("broadcast", "1MB", ranks=(1, 5))]
    narrow = named_topology("leaf-spine:2x1x4", fabric_rate="100Gbps")
    found = fc.collective(jobs, narrow, "none", separately=True, pfc=fc.PFC("100KB")).runs[0].numbers
    for job in found["jobs"]:
        assert job["slowdown"] == pytest.approx(2, rel=0.05)
    assert found["jain"] == pytest.approx(1, abs=1e-3)
    assert sum(found["pauses"].values()) == found["pfc_pauses"] > 0
    assert found["paused_s"]["hosts"] > 0 == found["pauses"]["tier 2"]


def test_a_job_alone_takes_the_same_paths_and_has_the_same_experts() -> None:
    """Racks of four under four spines: on other paths, or with another favourite, it would take another time."""
    wide = named_topology("leaf-spine:2x4x4", fabric_rate="50Gbps")
    jobs = [
        Job("all-to-all", "80KB", ranks=(0, 4), start="1ms"),
        Job("all-to-all", "400KB", ranks=(1, 5, 2, 6), skew=1),
    ]
    for seed in (1, 2, 3):
        found = fc.collective(jobs, wide, "none", separately=True, seeds=[seed]).runs[0].numbers
        assert found["jobs"][1]["slowdown"] == pytest.approx(1, abs=1e-3)


def test_load_is_what_was_sent() -> None:
    """The link down to a host carries the megabyte: its load over time is that many seconds at its rate."""
    star = named_topology("leaf-spine:1x1x2")
    run = fc.collective("broadcast", star, "none", bytes="1MB", header_bytes=0).runs[0]
    load = run.load["mean"].sel(tier="tier 1 to hosts").values
    spacing = float(np.diff(run.load["time"].values).mean())
    # Of two links one has data, and the other ACKs of 64 B for each packet of 1000 B.
    assert load.sum() * spacing == pytest.approx(1.064e6 / 12.5e9 / 2, rel=0.03)


def test_transfers_wait_for_each_other() -> None:
    """In a ring each transfer of a rank begins as its neighbour's of the step before has come, and its own has left."""
    table = fc.collective("all-reduce", RACKS, "dctcp", bytes="80KB").runs[0].transfers.to_dataframe()
    for _, row in table[table.step > 0].iterrows():
        before = table[(table.step == row.step - 1) & (table["rank"] == (row["rank"] - 1) % 8)].iloc[0]
        own = table[(table.step == row.step - 1) & (table["rank"] == row["rank"])].iloc[0]
        assert max(before.began, own.began) + 10e3 / 12.5e9 < row.began <= max(before.finished, own.finished)
    assert set(table.step) == set(range(14))


def test_a_ring_keeps_its_paths() -> None:
    """All steps of a connection take one path, of several; rings side by side may take others."""
    wide = named_topology("leaf-spine:2x8x2")
    run = fc.collective("all-reduce", wide, "none", bytes="40KB", chunks=8, placement="round-robin").runs[0]
    assert run.numbers["transfers"] == 8 * 6 * 4
    from fluidcc.contract.registry import preset
    from fluidcc.workloads.collectives.jobs import work_of
    from fluidcc.workloads.collectives.mapping import laid_out

    work = work_of([Job("all-reduce", "40KB", ranks=4, chunks=8)], [[0, 2, 1, 3]])
    laid = laid_out(work.graph, wide, work.hosts, 1, preset("none", "hpcc-eval").options())
    paths: dict[Any, set[Any]] = {}
    for i, size in enumerate(work.graph.size):
        if size:
            flow = laid.scenario.flows[i]
            paths.setdefault((flow.source, flow.target, work.graph.channel[i]), set()).add(flow.path)
    assert all(len(each) == 1 for each in paths.values())
    assert len({path for (source, _, _), each in paths.items() for path in each if source == "0"}) > 2


def test_what_does_not_end_is_said_and_in_no_mean() -> None:
    study = fc.collective("all-reduce", RACKS, "none", bytes="8MB", until="500us", seeds=2)
    found = study.runs[0].numbers
    assert found["unfinished"] > 0
    assert found["time_s"] is None is found["bus_bandwidth_bytes_per_s"] is found["total_s"]
    row = study.summary()[0]
    assert (row["complete"], row["time_s"]["mean"]) == (0, None)
    assert "unfinished" in repr(study.runs[0])


def test_an_engine_is_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another is a line in the table; it gets what is laid out, and says when flows began and ended."""
    seen = []

    def other(laid: Any, until: float, **options: Any) -> Any:
        seen.append(len(laid.graph))
        return packets(laid, until, **options)

    monkeypatch.setitem(ENGINES, "other", other)
    run = fc.collective("all-gather", RACKS, "none", bytes="8KB", engine="other").runs[0]
    assert seen == [7 * 8 + 2 * 8]
    assert run.as_dict()["engine"] == "other"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kinds": "all-redcue"}, "^kind: .*did you mean all-reduce"),
        ({"kinds": "allreduce"}, "^kind: .*did you mean all-reduce"),
        ({"kinds": "All-Gather"}, "^kind: .*did you mean all-gather"),
        ({"bytes": 7}, "^bytes: 7 B are fewer than the 8 parts .* write 8B or more$"),
        ({"bytes": "100B", "chunks": 4096}, "^bytes: .* 32768 parts .* or fewer chunks"),
        ({"kinds": "broadcast", "bytes": "3B", "chunks": 4}, "^bytes: .* 4 parts"),
        ({"algorithm": "tree", "bytes": "3B", "chunks": 2}, "^bytes: .* 4 parts"),
        ({"kinds": "all-to-all", "bytes": "7B"}, "^bytes: .* 8 parts"),
        ({"bytes": "2000TB"}, "^bytes: 2000TB is not between 1B and 1000TB"),
        ({"compute": "1000s", "steps": 1000}, r"^all-reduce: takes more than 1e\+06 s on an idle fabric"),
        ({"engine": "ns3"}, "^engine: .*packet"),
        ({"hosts": 9}, "^hosts: "),
        ({"jobs": 3}, "^jobs: "),
        ({"kinds": "all-to-all", "chunks": 2}, "^chunks: changes nothing"),
        ({"skew": 1}, "^skew: changes nothing"),
        ({"algorithm": "star"}, "^algorithm: .*ring or tree"),
        ({"server": 3, "server_rate": "1GB/s"}, "^server: "),
        ({"server": 2}, "^server_rate: "),
        ({"server_rate": "1GB/s"}, "^server_rate: "),
        ({"placement": "scattered"}, "^placement: "),
        ({"placement": [0, 0]}, "^placement: "),
        ({"placement": [0, 1]}, "^ranks: 8 need"),
        ({"bytes": "0B"}, "^bytes: "),
        ({"steps": 0}, "^steps: "),
        ({"until": "0s"}, "^until: "),
        ({"kinds": "all-reduce,all-reduce"}, "^kinds: "),
        ({"kinds": [Job("all-reduce")]}, "^jobs: "),
        ({"kinds": Job("all-reduce", ranks=4), "bytes": "1MB"}, "^bytes: jobs have their own"),
        ({"kinds": Job("all-reduce", ranks=(0, 99))}, "^ranks: there is no host 99"),
        ({"bites": 3}, "did you mean bytes"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], says: str) -> None:
    kinds = options.pop("kinds", "all-reduce")
    with pytest.raises(InputError, match=says):
        fc.collective(kinds, RACKS, "none", **options)


@pytest.mark.parametrize("name", ["placement", *(field.name for field in dataclasses.fields(Job))])
def test_odd_objects_are_answered(name: str) -> None:
    """A job, or one line."""
    for value in OBJECTS:
        try:
            if name == "placement":
                placed([Job("all-reduce", ranks=2)], RACKS, value)
            else:
                Job(**{"kind": "all-reduce", name: value})
        except InputError as error:
            said = str(error)
            assert "\n" not in said, said


def test_a_tree_is_cut_by_default() -> None:
    assert Job("all-reduce", "64MB", algorithm="tree").chunks == 16
    assert Job("all-reduce", "64KB", algorithm="tree").chunks == 7
    assert Job("all-reduce", "100B", algorithm="tree").chunks == 1
    assert Job("all-reduce", "64MB", algorithm="tree", chunks=1).chunks == 1
    jobs = [Job("all-reduce", "64KB", ranks=4, algorithm="tree", chunks=1)] * 2
    found = fc.collective(jobs, RACKS, "none", separately=True).runs[0].numbers["jobs"]
    assert all(job["slowdown"] == pytest.approx(1, abs=0.01) for job in found)  # alone it is not cut either


def test_no_picture_of_what_was_not_run(tmp_path: Path, crossing: CollectiveStudy) -> None:
    for draw in (crossing.plot, crossing.plot_load):
        with pytest.raises(InputError, match="case: 'nonsense' was not run; write one of broadcast"):
            draw("nonsense")
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below", "/proc", "a\0b"):
        with pytest.raises(InputError, match="give a "):
            crossing.write(place)


def test_pictures_and_files(tmp_path: Path, crossing: CollectiveStudy) -> None:
    names = {path.name for path in crossing.write(tmp_path)}
    assert names == {
        "broadcast-steps.png", "broadcast-load.png", "broadcast-none-transfers.csv", "broadcast-dctcp-transfers.csv",
        "collectives.csv",
    }  # fmt: skip
    assert all((tmp_path / name).stat().st_size > 100 for name in names)
    assert "2 jobs" in repr(crossing)


def test_jobs_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "jobs.toml"
    path.write_text(
        'fluidcc_jobs = 1\n[[job]]\nkind = "all-reduce"\nbytes = "80KB"\nranks = 4\nname = "dense"\n\n'
        '[[job]]\nkind = "all-to-all"\nbytes = "40KB"\nranks = [6, 7]\nsteps = 2\ncompute = "5us"\n'
    )
    jobs = read_jobs(path)
    assert [job.count for job in jobs] == [4, 2]
    found = fc.collective(path, RACKS, "none").runs[0].numbers
    assert [job["name"] for job in found["jobs"]] == ["dense", "job 1"]
    assert [job["kind"] for job in found["jobs"]] == ["all-reduce", "all-to-all"]
