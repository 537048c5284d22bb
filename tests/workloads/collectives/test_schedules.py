"""Files of collectives: GOAL schedules and jobs, what they mean, and that bad ones are refused by their line."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.workloads.collectives import goal, read_goal, read_jobs
from fluidcc.workloads.fabrics import named_topology

STAR = named_topology("leaf-spine:1x1x4")
QUIET: dict[str, Any] = {"packet_size": 1000, "header_bytes": 48, "ack_bytes": "1B", "ack_interval": 100}
PACKET = 1048 / 12.5e9
ARRIVES = 101 * PACKET + 2e-6  # 100 KB over one switch
RING = "num_ranks 4\n" + "".join(
    f"rank {r} {{\nl1: send 100000b to {(r + 1) % 4} tag 1\nl2: recv 100000b from {(r - 1) % 4} tag 1\n"
    f"l3: calc 5000\nl3 requires l2\nl4: send 100000b to {(r + 1) % 4} tag 2 cpu 0 nic 0\nl4 requires l3\n"
    f"l5: recv 100000b from {(r - 1) % 4} tag 2\n}}\n"
    for r in range(4)
)
JOBS = """# two jobs
fluidcc_jobs = 1

[[job]]
name = "dense"
kind = "all-reduce"
bytes = "80KB"
ranks = 2
steps = 2
compute = "5us"

[[job]]
kind = "all-to-all"
bytes = "40KB"
ranks = [2, 3]
skew = 0.5
"""


def circle(count: int) -> str:
    """Calculations of which each requires the next, and the last the first."""
    calculations = "".join(f"l{k}: calc 5\n" for k in range(count))
    requirements = "".join(f"l{k} requires l{(k + 1) % count}\n" for k in range(count))
    return f"num_ranks 2\nrank 0 {{\n{calculations}{requirements}}}"


def took(path: Path) -> float:
    found = fc.collective(path, STAR, "none", **QUIET).runs[0].numbers
    assert found["unfinished"] == 0
    return found["time_s"]


def test_what_of_a_schedule_has_no_effect_is_said(tmp_path: Path) -> None:
    """A second NIC, or processor, of a rank; the first is what there is."""
    path = tmp_path / "nics.goal"
    text = "num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 5 cpu 0 nic 0\n}\nrank 1 {\nl1: recv 8b from 0 tag 5 nic 0\n}\n"
    path.write_text(text)
    assert read_goal(path).words == ()
    path.write_text(text.replace("tag 5 cpu 0 nic 0", "tag 5 cpu 1 nic 1").replace("tag 5 nic 0", "tag 5 nic 1"))
    assert [line.partition("line ")[2] for line in read_goal(path).words] == [
        "3: cpu has no effect: calculations of a rank overlap, whatever their cpu",
        "3: nic has no effect: a rank has one NIC",
    ]


def test_a_ring_in_goal(tmp_path: Path) -> None:
    """Two steps with a calculation of 5 us between, by hand."""
    path = tmp_path / "ring.goal"
    path.write_text(RING)
    schedule = read_goal(path)
    assert (schedule.ranks, len(schedule.operations)) == (4, 20)
    assert took(path) == pytest.approx(2 * ARRIVES + 5e-6, abs=PACKET)
    run = fc.collective(path, STAR, "none", **QUIET).runs[0]
    assert run.numbers["bus_bandwidth_bytes_per_s"] is None
    assert run.numbers["critical_path"]["compute_s"] == pytest.approx(5e-6)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # A send is done as it has arrived: what requires it has waited for that; what irequires it begins with it.
        ("l1: send 100000b to 1\nl2: calc 7000\nl2 requires l1", ARRIVES + 7e-6),
        ("l1: send 100000b to 1\nl2: calc 7000\nl2 irequires l1", ARRIVES),
        ("l0: calc 30000\nl1: send 100000b to 1\nl1 requires l0\nl2: calc 7000\nl2 irequires l1", 30e-6 + ARRIVES),
        ("l0: calc 30000\nl1: send 100000b to 1\nl2: calc 40000\nl2 irequires l1\nl1 requires l0", 70e-6),
        # Calculations that do not require each other overlap.
        ("calc 9000 cpu 0\ncalc 8000 cpu 1\nsend 100000b to 1", ARRIVES),
        ("/* a comment\nover lines */ l1: send 100000b to 1 // and one behind\n", ARRIVES),
    ],
    ids=["requires", "irequires", "irequires later", "irequires before", "overlap", "comments"],
)
def test_what_goal_means(tmp_path: Path, body: str, expected: float) -> None:
    path = tmp_path / "a.goal"
    path.write_text(f"num_ranks 2\nrank 0 {{\n{body}\n}}\nrank 1 {{\nrecv 100000b from 0\n}}\n")
    assert took(path) == pytest.approx(expected, abs=PACKET)


def test_a_recv_that_requires_something_is_done_later(tmp_path: Path) -> None:
    path = tmp_path / "a.goal"
    path.write_text(
        "num_ranks 2\nrank 0 {\nsend 100000b to 1\n}\n"
        "rank 1 {\nl1: calc 100000\nl2: recv 100000b from 0\nl2 requires l1\nl3: calc 10000\nl3 requires l2\n}\n"
    )
    assert took(path) == pytest.approx(110e-6, abs=PACKET)


def test_so_many_operations_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goal, "MOST_FLOWS", 2)
    path = tmp_path / "a.goal"
    text = "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n"
    path.write_text(text)
    read_goal(path)
    path.write_text(text.replace("recv", "calc 5\nrecv"))
    with pytest.raises(InputError, match="line 7: there are more than 2 operations"):
        read_goal(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "bad.goal, line 1: there is no operation"),
        ("num_ranks 5\nrank 0 {\nsend 8b to 1\n}", "bad.goal, line 1: ranks: 5 need as many hosts, and there are 4"),
        (
            "num_ranks 2\nrank 0 {\nl1: calc 999999999999999\nl2: send 8b to 1\nl2 requires l1\n}",
            "bad.goal: takes more than 1e.06 s on an idle fabric",
        ),
        ("rank 0 {\n}", "line 1: rank 0 is there twice, or not below"),
        ("num_ranks 2\nl1: calc 5", "line 2: .*belongs to no rank"),
        ("num_ranks 2\nnum_ranks 2", "line 2: num_ranks is there twice"),
        ("num_ranks 1", "line 1: 1 ranks"),
        ("num_ranks 2\nrank 0 {\nrank 1 {\n", "line 3: rank 0 is not closed"),
        ("num_ranks 2\nrank 0 {\nl1: put 8b to 1\n}", "line 3: 'put 8b to 1' is no operation"),
        ("num_ranks 2\nrank 0 {\nl1: send 8b to 2\n}", "line 3: rank 2 is itself, or none of 2"),
        ("num_ranks 2\nrank 0 {\nl1: recv 8b from -1\n}", "line 3: takes a message from anybody"),
        ("num_ranks 2\nrank 0 {\nl1: calc 5\nl1: calc 6\n}", "line 4: l1 labels two"),
        ("num_ranks 2\nrank 0 {\nl1: calc 5\nl1 requires l2\n}", "line 4: 'l2' labels nothing"),
        ("num_ranks 2\nrank 0 {\nl1: recv 8b from 1\n}", "line 3: rank 1 sends no such message"),
        ("num_ranks 2\nrank 0 {\nrecv 4b from 1\n}\nrank 1 {\nsend 8b to 0\n}", "line 3: 4 B have no room .* line 6"),
        ("num_ranks 2\nrank 0 {\nl1: calc 5\nl2: calc 5\nl1 requires l2\nl2 requires l1\n}", "line 3 waits for line 4"),
        # The circle is named from where it begins, not what is done before it.
        (
            "num_ranks 2\nrank 0 {\nl0: calc 5\nl1: calc 5\nl2: calc 5\n"
            "l1 requires l0\nl1 requires l2\nl2 requires l1\n}",
            "line 4: line 4 waits for line 5 waits for line 4; break",
        ),
        (circle(8), "line 3: line 3 waits for .* line 10 waits for line 3; break"),
        (circle(9), "line 3: line 3 waits for .* line 10 waits for 1 more waits for line 3; break"),
        ("num_ranks 2\nrank 1 {\nsend 8b to 1\n}", "line 3: rank 1 is itself, or none of 2"),
        ("num_ranks 2\nrank 0 {\ncalc 5\n", "ends before a rank is closed"),
        ("num_ranks 2\nrank 0 {\ncalc 5\n}", "line 3: nobody sends, and nothing crosses the fabric"),
    ],
)
def test_bad_schedules_are_refused_by_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "bad.goal"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        fc.collective(path, STAR, "none")


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("fluidcc_jobs = 1", "", "line 1: has no line fluidcc_jobs = 1"),
        ('"80KB"', '"80Kb"', "line 7: bytes: "),
        ("skew = 0.5", "skew = 0.5\nchunks = 3", "line 17: chunks: changes nothing"),
        ("steps", "step", "line 9: a job has no 'step'; did you mean steps"),
        ("[2, 3]", "[2, 2]", "line 15: ranks: "),
        ("ranks = 2\n", "", "line 4: the job has no ranks"),
        ('"all-to-all"', '"all-to-all', "line 13: is not TOML"),
        ('name = "dense"', "name = 3", "line 5: name: is no text"),
        (
            "skew = 0.5",
            'skew = 0.5\nname = "dense"',
            "line 17: name: 'dense' is that of line 5 too; give each job its own",
        ),
        ("[[job]]\nname", "other = 3\n[[job]]\nname", "line 4: expected tables"),
    ],
)
def test_bad_jobs_are_refused_by_line(tmp_path: Path, before: str, after: str, says: str) -> None:
    path = tmp_path / "bad.toml"
    assert before in JOBS
    path.write_text(JOBS.replace(before, after, 1))
    with pytest.raises(InputError, match=rf"bad\.toml, {says}"):
        read_jobs(path)


@pytest.mark.parametrize(("end", "line"), [("ranks = [", 3), ("ranks = [\n2,\n", 5), ("ranks = [2,\n\n3", 5)])
def test_a_file_that_ends_too_early_is_refused_by_its_last_line(tmp_path: Path, end: str, line: int) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(f"fluidcc_jobs = 1\n[[job]]\n{end}")
    with pytest.raises(InputError, match=rf"bad\.toml, line {line}: is not TOML"):
        read_jobs(path)


@pytest.mark.parametrize("fields", ["ranks = 2, step = 3", "bytes = 3", "ranks = [1, 1]", "ranks = 2, name = 5"])
def test_jobs_in_one_line_are_refused_by_the_first(tmp_path: Path, fields: str) -> None:
    """An array of tables without headers, of which no line is known."""
    path = tmp_path / "bad.toml"
    path.write_text(f'fluidcc_jobs = 1\njob = [{{kind = "all-reduce", {fields}}}]')
    with pytest.raises(InputError, match=r"bad\.toml, line 1: "):
        read_jobs(path)


def test_a_long_reason_is_cut(tmp_path: Path) -> None:
    """Of a key of 300 letters 200 characters are shown with the words in front of it."""
    path = tmp_path / "bad.toml"
    path.write_text(f"a = {{{'x' * 300} = 1, {'x' * 300} = 2}}")
    with pytest.raises(InputError, match="is not TOML") as caught:
        read_jobs(path)
    reason = str(caught.value).partition("is not TOML (")[2].partition("); give")[0]
    assert len(reason) == 200


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("ranks = 2", "ranks = 40", "line 8: ranks: 40 need as many hosts"),
        ("[2, 3]", "[2, 99]", "line 15: ranks: there is no host 99"),
    ],
)
def test_jobs_without_room_name_their_file(tmp_path: Path, before: str, after: str, says: str) -> None:
    path = tmp_path / "large.toml"
    path.write_text(JOBS.replace(before, after, 1))
    with pytest.raises(InputError, match=rf"large\.toml, {says}"):
        fc.collective(path, STAR, "none")


def test_a_kind_goes_before_a_file_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a file of any other name is read; so is that one, by its path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "all-gather").mkdir()
    Path("ring").write_text(RING)
    Path("all-reduce").write_text(RING)
    assert fc.collective("all-gather", STAR, "none", bytes="8KB").says == ("all-gather (ring) of 8KB on 4 ranks",)
    assert fc.collective("all-reduce", STAR, "none", bytes="8KB").runs[0].numbers["bytes"] == 8e3
    for what in ("ring", "./all-reduce", Path("all-reduce")):
        assert fc.collective(what, STAR, "none").says[0].endswith("20 operations of 4 ranks")


def test_a_missing_file(tmp_path: Path) -> None:
    for name in ("none.toml", "none.goal"):
        with pytest.raises(InputError, match=f"{name}: No such file"):
            fc.collective(tmp_path / name, STAR, "none")


WORDS = [b"", b"\xff", b"\0", b"-1", b"99999999999999999999", b"nan", b"{", b"}", b"l1", b"requires", b"1e9", b'"',
         b"[", b"\n", b"rank 0 {", b"/*", b"[[job]]", b"true", b"0", b"send", "٣".encode(), b"x" * 99]  # fmt: skip


def mutated(text: bytes, generator: random.Random) -> bytes:
    """A file with a few bytes, words or lines changed, left out or twice there."""
    for _ in range(generator.randint(1, 2)):
        kind = generator.randrange(5)
        at = generator.randrange(len(text) + 1)
        if kind == 0:
            text = text[:at] + generator.choice(WORDS) + text[at + generator.randrange(6) :]
        elif kind == 1:
            parts = text.split(b"\n")
            k = generator.randrange(len(parts))
            parts[k : k + 1] = [parts[k]] * generator.choice([0, 2])
            text = b"\n".join(parts)
        elif kind == 2:
            words = text.split(b" ")
            words[generator.randrange(len(words))] = generator.choice(WORDS)
            text = b" ".join(words)
        elif kind == 3:
            text = text[:at] + bytes([generator.randrange(256)]) + text[at + 1 :]
        else:
            digits = [k for k, byte in enumerate(text) if chr(byte).isdecimal()]
            k = generator.choice(digits)
            text = text[:k] + str(generator.randrange(10)).encode() + text[k + 1 :]
    return text


@pytest.mark.parametrize("name", ["a.goal", "a.toml"])
def test_mutated_files_are_read_or_refused_in_one_line(tmp_path: Path, name: str) -> None:
    path, generator = tmp_path / name, random.Random(20)
    read, said = 0, list[str]()
    for _ in range(300):
        path.write_bytes(mutated((RING if name == "a.goal" else JOBS).encode(), generator))
        try:
            if name == "a.goal":
                read_goal(path).build()
            else:
                read_jobs(path)
            read += 1
        except InputError as error:
            said.append(str(error))
    assert all("\n" not in line and f"{name}, line " in line for line in said)
    assert min(read, len(said)) > 20
