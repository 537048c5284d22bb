"""Files of jobs: TOML, a table for each, and the files of operations that jobs replay."""

from __future__ import annotations

import dataclasses
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from fluidcc.errors import InputError
from fluidcc.files import read_whole
from fluidcc.surface import nearest, public
from fluidcc.workloads.collectives.chakra import is_chakra, read_chakra
from fluidcc.workloads.collectives.goal import goal_of
from fluidcc.workloads.collectives.jobs import Job, Replay, is_list
from fluidcc.workloads.collectives.schedule import Schedule
from fluidcc.workloads.collectives.simai import is_simai, simai_of
from fluidcc.workloads.fabrics.lines import LARGEST_LIST, Lines

_OPERATIONS = (
    "a GOAL schedule (num_ranks 2, ...), a SimAI workload (HYBRID_TRANSFORMER_FWD_IN_BCKWD ...), "
    "or Chakra execution traces (NAME.0.et)"
)
_EXPECTED = (
    'a TOML file with fluidcc_jobs = 1 and tables such as [[job]], kind = "all-reduce", bytes = "64MB", ranks = 8'
)
_LARGEST = 1 << 24  # bytes
_FIELDS = tuple(field.name for field in dataclasses.fields(Job))
_OF_FILE = ("file", "ranks", "steps", "start", "name", "server", "server_rate")  # of a job that replays a file
_HEADER = re.compile(r"\s*\[\[\s*job\s*\]\]")


def read_schedule(path: str | os.PathLike[str], ranks: int | None = None) -> Schedule:
    """Read a file of operations, of so many ranks if it leaves that open.

    Raises
    ------
    InputError
        If it is none, with the line or node.
    """
    if is_chakra(Path(path)):
        return read_chakra(path)
    lines = Lines(path, _OPERATIONS, LARGEST_LIST)
    return simai_of(lines, ranks) if is_simai(next(iter(lines.peek()), "")) else goal_of(lines)


@public()
def read_jobs(path: str | os.PathLike[str]) -> list[Job | Replay]:
    """Read jobs.

    A line ``fluidcc_jobs = 1``, and for each job a table ``[[job]]`` with fields of `Job`: ``kind``, ``bytes``,
    ``ranks`` (how many, or a list of hosts), ``steps``, ``compute``, ``chunks``, ``algorithm``, ``skew``, ``server``,
    ``server_rate``, ``start``, ``name``. A table with ``file`` replays that file (GOAL, SimAI, Chakra), a path from the
    folder of the TOML; next to it are ``ranks`` (a list of hosts), ``steps``, ``start``, ``name``, ``server`` and
    ``server_rate``.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    list of Job or Replay

    Raises
    ------
    InputError
        If it is none, with the line.
    """
    return [job for job, _ in jobs_and_lines(path)]


def jobs_and_lines(path: str | os.PathLike[str]) -> list[tuple[Job | Replay, int]]:
    """Jobs of a file, each with the line of its ``ranks``."""
    name = str(path)[:200]
    try:
        text = read_whole(path, _LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}, line {line}: is no text (UTF-8); give {_EXPECTED}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{name}: {getattr(error, 'strerror', None) or error}; give {_EXPECTED}") from None
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, or an integer beyond Python's limit
        where = re.search(r"at line (\d+)", str(error))
        line = int(where[1]) if where else text.count("\n") + 1
        reason = re.sub(r"\s*\(at .*", "", str(error).splitlines()[0])[:200]
        raise InputError(f"{name}, line {line}: is not TOML ({reason}); give {_EXPECTED}") from None
    version = document.pop("fluidcc_jobs", None)
    if version != 1 or isinstance(version, bool):
        raise InputError(f"{name}, line 1: has no line fluidcc_jobs = 1; give {_EXPECTED}")
    tables = document.pop("job", None)
    if document or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables) or not tables:
        alien = next(iter(document), "job")
        raise InputError(
            f"{name}, line {_line(text, alien)}: expected tables [[job]] and no {alien[:40]!r} beside them"
        )
    jobs = [_job(table, k, text, name, Path(path).parent) for k, table in enumerate(tables)]
    named: dict[str, int] = {}
    for k, job in enumerate(jobs):
        if job.name and named.setdefault(job.name, k) != k:
            earlier = _line(text, "name", named[job.name])
            raise InputError(
                f"{name}, line {_line(text, 'name', k)}: name: {job.name[:40]!r} is that of line {earlier} too; "
                "give each job its own, or none"
            )
    return [(job, _line(text, "ranks", k)) for k, job in enumerate(jobs)]


def _job(table: dict[str, Any], index: int, text: str, name: str, folder: Path) -> Job | Replay:
    known = _OF_FILE if "file" in table else _FIELDS
    unknown = next((key for key in table if key not in known), None)
    if unknown is not None:
        near = nearest(unknown, known)
        hint = f"did you mean {near}?" if near else f"write one of {', '.join(known)}"
        one = "a job of a file" if "file" in table else "a job"
        raise InputError(f"{name}, line {_line(text, unknown, index)}: {one} has no {unknown[:40]!r}; {hint}")
    for key in () if "file" in table else ("kind", "ranks"):
        if key not in table:
            raise InputError(f"{name}, line {_line(text, '', index)}: the job has no {key}; give {_EXPECTED}")
    if not isinstance(table.get("name", ""), str):
        raise InputError(f"{name}, line {_line(text, 'name', index)}: name: is no text; write it in quotes")
    schedule = None
    if "file" in table:
        if not isinstance(table["file"], str):
            raise InputError(f"{name}, line {_line(text, 'file', index)}: file: is no text; write it in quotes")
        hosts: Any = table.get("ranks")
        schedule = read_schedule(folder / table["file"], len(hosts) if is_list(hosts) else None)
    try:
        if schedule is not None:
            return Replay(schedule, **{key: value for key, value in table.items() if key != "file"})
        return Job(**table)
    except InputError as error:
        key = re.match(r"\w+", str(error))
        raise InputError(f"{name}, line {_line(text, key[0] if key else '', index)}: {error}") from None


def _line(text: str, key: str, table: int | None = None) -> int:
    """Find the line of a key, in a job's table if that is given; the table's, or 1, if there is none."""
    lines = text.splitlines()
    headers = [n for n, line in enumerate(lines) if _HEADER.match(line)]
    first, last = 0, len(lines)
    if table is not None and table < len(headers):
        first = headers[table]
        last = headers[table + 1] if table + 1 < len(headers) else len(lines)
    pattern = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]|\s*\[+\s*{re.escape(key)}\b") if key else None
    found = (n for n in range(first, last) if pattern is not None and pattern.match(lines[n]))
    return next(found, first) + 1
