"""Configurations with a few entries changed: a finding or one line, never a traceback."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fluidcc.cli.app import run
from tests.operators.short_audits import short_audits

EXAMPLES = Path(__file__).parents[2] / "examples"
FABRICS = ("leaf-100g", "fabric-400g")
PORTS = ("Ethernet0", "Ethernet4", "Ethernet96")
VALUES = ["", "0", "-1", "1", "7", "8", "3,4", "3-4", "[X|Y]", "NULL", "true", "ecn_all", "x" * 400, "1e9", "65536"]
VALUES += ["9999999999999", "nan", "inf", "0x10", " 3 ", "5m", "2000m", "AZURE", "Ethernet0", "\u0663", "1.5"]
OTHERS: list[Any] = [None, True, 3, -2.5, [], ["3"], {}, {"3": {}}, 10**400]


def small(fabric: str) -> dict[str, Any]:
    """A sample with three ports."""
    config = json.loads((EXAMPLES / fabric / "config_db.json").read_text())

    def kept(key: str) -> bool:
        ports = [part for part in key.replace(",", "|").split("|") if part.startswith("Ethernet")]
        return not ports or any(port in PORTS for port in ports)

    return {
        table: {key: entry for key, entry in entries.items() if kept(key)} if isinstance(entries, dict) else entries
        for table, entries in config.items()
    }


def mutated(draw: random.Random, config: dict[str, Any]) -> dict[str, Any]:
    """With one to four entries removed, renamed, doubled or given another value."""
    config = copy.deepcopy(config)
    for _ in range(draw.randint(1, 4)):
        place: Any = config
        for _ in range(draw.randint(0, 2)):
            inner = [value for value in place.values() if isinstance(value, dict) and value]
            if not inner:
                break
            place = draw.choice(inner)
        key = draw.choice([*place]) if place else "x"
        kind = draw.randrange(4)
        if kind == 0:
            place.pop(key, None)
        elif kind == 1:
            place[key] = draw.choice(VALUES)
        elif kind == 2:
            place[key] = draw.choice(OTHERS)
        else:
            place[draw.choice([key + "|3", key.lower(), "Ethernet0|3-9", "3", *VALUES])] = place.get(key)
    return config


def mutated_lines(draw: random.Random, text: str) -> str:
    """A NIC's settings with some lines left out, doubled or changed."""
    lines = text.splitlines()
    for _ in range(draw.randint(0, 4)):
        at = draw.randrange(len(lines))
        words = lines[at].split()
        if len(words) > 1:
            words[draw.randrange(len(words))] = draw.choice([*VALUES, "True(1)", "ECN(0)", "Default", "Current"])
        lines[at : at + 1] = draw.choice([[], [" ".join(words)] * 2, [" ".join(words)]])
    return "\n".join(lines)


def audited(seed: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> int:
    """The exit status of the audit of a mutated sample; fails on a traceback, a long answer or a wrong one."""
    draw = random.Random(seed)
    fabric = draw.choice(FABRICS)
    switch, nic = folder / "config_db.json", folder / "nic.txt"
    switch.write_text(json.dumps(mutated(draw, small(fabric))))
    nic.write_text(mutated_lines(draw, (EXAMPLES / fabric / "nic.txt").read_text()))
    status = run(["audit", "--sonic", str(switch), "--nic", str(nic), "--flows", "2", "--packets", "0", "--json"])
    said = capsys.readouterr()
    assert status in (0, 2), (seed, said.err[:300])
    if status == 2:
        assert said.err.startswith("fluidcc: "), (seed, said.err[:300])
        assert said.err.count("\n") == 1, (seed, said.err[:300])
        assert len(said.err) < 700, (seed, said.err[:700])
        assert not said.out, seed
    else:
        findings = json.loads(said.out)["findings"]
        assert findings, seed
        assert all(each["severity"] in ("ok", "warn", "bad") and each["why"] for each in findings), seed
    return status


@pytest.fixture(autouse=True)
def _short() -> Iterator[None]:
    with short_audits(1, "2.5ms", "5ms"):
        yield


def test_six_mutations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = [audited(seed, tmp_path, capsys) for seed in range(6)]
    assert 1 <= sum(status == 0 for status in found) <= 5  # some are answered, some are refused


@pytest.mark.slow
def test_sixty_mutations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = [audited(seed, tmp_path, capsys) for seed in range(1000, 1060)]
    assert 12 <= sum(status == 0 for status in found) <= 57
