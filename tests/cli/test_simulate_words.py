"""Words of `fluidcc simulate` next to its answer."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fluidcc.cli.app import run
from fluidcc.cli.simulate import _badness, _in_short, _say_beyond

LEAF = Path(__file__).parents[2] / "examples" / "leaf-100g"
FILES = ["--from", str(LEAF / "config_db.json"), "--from", str(LEAF / "nic.txt")]


@pytest.mark.parametrize(
    ("longest", "engine", "warns"),
    [
        ([1e5, 2e5], "fluid", False),
        ([1e5, 200_001.0], "fluid", True),
        ([1e5, 200_001.0], "hybrid", True),
        ([1e5, 200_001.0], "packet", False),  # it has the buffer
        ([None, 1.0], "fluid", False),
    ],
)
def test_a_queue_beyond_the_buffer_is_said(longest: list[Any], engine: str, warns: bool) -> None:
    summary = {"links": [{"queue_bytes": {"max_whole_run": each}} for each in longest]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _say_beyond(summary, "200KB", engine)
    told = f"in the {engine} a queue comes to 200KB, beyond the 200KB"
    assert [told in str(each.message) for each in caught] == [True] * warns


def made(utilisation: float, p99: float) -> Any:
    links = [{"queue_bytes": {"max_whole_run": p99}}]
    summary = {"utilisation": utilisation, "queue_bytes": {"p99": p99}, "links": links}
    return SimpleNamespace(summary=summary, dataset=SimpleNamespace(attrs={}))


def test_less_of_the_link_is_worse_and_of_equals_a_longer_queue() -> None:
    worst_first = [made(0.80, 1e3), made(0.97, 9e6), made(0.99, 2e6), made(0.994, 1e6), made(1.0, 0.0)]
    assert sorted(worst_first, key=_badness, reverse=True) == worst_first


@pytest.mark.parametrize(
    ("more", "ran"),
    [([], [4096.0, 1024.0]), (["--packet-size", "2048"], [2048.0]), (["--set", "header_bytes=62"], [None])],
)
def test_both_packets_run_where_the_mtu_is_not_known(
    more: list[str], ran: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The smaller is worse here: it is shown, and kept. A size that is given runs alone."""
    asked: list[float] = []

    def simulate(scenario: Any, *_: Any, **__: Any) -> Any:
        asked.append(float(scenario.packet_size))
        return made(0.9 if asked[-1] == 1024 else 0.99, asked[-1])

    monkeypatch.setattr("fluidcc.engines.run.simulate", simulate)
    saved = tmp_path / "s.toml"
    assert run(["simulate", "dcqcn", *FILES, *more, "--json", "--save-scenario", str(saved)]) == 0
    told = capsys.readouterr()
    assert asked == [each or 1000.0 for each in ran]
    assert json.loads(told.out)["utilisation"] == (0.9 if 1024.0 in ran else 0.99)
    assert ("packets of 1024 B (shown): utilisation 0.9000" in told.err) == (1024.0 in ran)
    assert ("packets of 4096 and 1024 B of payload" in told.err) == (1024.0 in ran)
    assert ("1.024KB" in saved.read_text() or "1024" in saved.read_text()) == (1024.0 in ran)


def test_a_run_without_a_queue_is_told_in_short_too() -> None:
    """A summary has None for both where a window holds nothing."""
    nothing: Any = None
    assert _in_short(made(nothing, nothing)) == "utilisation undefined, p99 of the queue undefined"
