"""Trials of a setting: which incasts, how many seeds, and pairs of the right settings; by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.studies.tuning import trial
from fluidcc.studies.tuning.cases import packet_cases
from fluidcc.studies.tuning.packet_check import Packets
from fluidcc.studies.tuning.trial import COUNT, PRESENT, RECOMMENDED, Incasts, Row, try_settings

LINK, SLOW = (50e9, 4178.0), (12.5e9, 4178.0)  # the slow one's runs are as long from either start
CASES = packet_cases([{"flows": n} for n in (2, 8, 32)], (1024.0, 4096.0), link=LINK)
POINTS: dict[str, dict[str, float]] = {PRESENT: {}, RECOMMENDED: {"kmin": 10e3}, "alibaba": {"kmin": 40e3}}


def test_incasts_are_the_plainest_case_of_each_number_of_flows() -> None:
    """Bursts, further packet sizes, or a start at line rate would compare something else, and take longer."""
    for link, until in ((LINK, 0.02), (SLOW, 0.051)):
        cases = packet_cases([{"flows": n} for n in (2, 8, 32)], (1024.0, 4096.0), link=link)
        found = Incasts(fc.incast, cases).cases
        assert list(found) == [2, 8, 32]
        for flows, case in found.items():
            plain = {"burst": 1, "counts_sending": False, "begin": "share", "packet_size": 4096.0}
            assert case == {"flows": flows, **plain, "until": until}
    assert not Incasts(fc.incast, [{"burst": 1}]).cases


def test_what_has_run_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof's runs of the present and the best setting are those of the case, by their seed."""
    asked: list[dict[tuple[int, int], Any]] = []

    def packets(scenarios: Any, untils: Any, window: Any, seeds: Any, label: str, done: dict[Any, Any]) -> Packets:
        assert label == f"incasts, {list(POINTS)[len(asked)]}"
        assert (list(untils), list(seeds)) == ([0.02] * 3, [2001, 2002, 2003])
        asked.append(done)
        value = [5e3, 30e3, 20e3][len(asked) - 1]
        each = np.full((3, 3), value)
        return Packets({}, {}, {name: each for name in ("queue_bytes.p99", "utilisation", "jain", "pfc_pauses")}, [])

    made: list[Any] = []
    monkeypatch.setattr(trial, "packets", packets)
    monkeypatch.setattr(trial, "resolve", lambda scenario: scenario)
    monkeypatch.setattr("fluidcc.engines.hybrid.region.by_packets", lambda scenario: scenario)
    traces = {
        which: [
            [SimpleNamespace(summary={"seed": seed}, of=(which, k)) for seed in (2001, 2002)] for k in range(len(CASES))
        ]
        for which in (PRESENT, RECOMMENDED)
    }
    make: Any = lambda **values: made.append(values)  # noqa: E731
    of = Incasts(make, CASES, {"kmin": 20e3}, traces)
    rows = of.rows(POINTS, [2001, 2002, 2003])
    places = [CASES.index(case) for case in of.cases.values()]
    for done, which in zip(asked, (PRESENT, RECOMMENDED), strict=False):
        assert {key: trace.of for key, trace in done.items()} == {
            (k, seed): (which, place) for k, place in enumerate(places) for seed in (2001, 2002)
        }
    assert asked[2] == {}
    assert [each["kmin"] for each in made] == [20e3] * 3 + [10e3] * 3 + [40e3] * 3
    assert all("until" not in each for each in made)
    assert [row.case for row in rows] == [f"{n} flows" for n in (2, 8, 32) for _ in range(4)]
    queue = rows[0]
    assert queue.pairs[RECOMMENDED].tolist() == [[30e3, 10e3]] * 3  # a queue of less than 10 KB is none
    assert queue.pairs["alibaba"].tolist() == [[20e3, 10e3]] * 3
    assert rows[3].unit == COUNT


class Sent:
    """Stand-in for what runs on a fabric: the p99 of small flows spreads by chance, its mean ratio is 0.5."""

    def __init__(self, spread: float, small: int = 900, large: int = 90) -> None:
        self.spread, self.sizes, self.asked = spread, (small, large), list[list[int]]()
        self.random = np.random.default_rng(1)

    def rows(self, seeds: Any) -> Any:
        self.asked.append(list(seeds))
        present = np.exp(self.random.normal(0.0, 1.0, len(seeds)))
        own = 0.5 * present * np.exp(self.random.normal(0.0, self.spread, len(seeds)))
        pairs = {RECOMMENDED: np.stack([own, present], axis=1)}
        wild = {RECOMMENDED: np.stack([present**3, present], axis=1)}
        rows = [Row("w", "p99_small", "p99", "", pairs), Row("w", "p50", "median", "", wild)]
        return rows, {"w": "a workload"}, self.sizes


@pytest.mark.parametrize(
    ("sent", "narrow", "seeds"),
    [
        (Sent(1.0), False, 3),
        (Sent(0.01), True, 12),  # 3 blocks until there are 2000 small and 200 large flows
        (Sent(0.01, 1000, 100), True, 8),  # just as many
        (Sent(0.01, 9000, 900), True, 4),
        (Sent(0.15, 9000, 900), True, 8),
        (Sent(1.0, 9000, 900), True, 24),
    ],
)  # fmt: skip
def test_seeds_run_until_intervals_are_narrow(sent: Any, narrow: bool, seeds: int) -> None:
    """Each once, 24 at most, with flows enough; an interval that nobody asks for may stay wide."""
    found = try_settings(POINTS, sent, narrow=narrow)
    assert [seed for each in sent.asked for seed in each] == list(range(1, seeds + 1))
    assert found.seeds == {"w": seeds}
    assert found.flows == (len(sent.asked) * sent.sizes[0], len(sent.asked) * sent.sizes[1])
    narrow_enough = found.rows[0].narrow(RECOMMENDED)
    assert found.notes() == ([] if narrow_enough else ["intervals wider than 10 %: p99 with w"])
    assert narrow_enough is (sent.spread < 1.0)
    assert found.rows[0].ratio(RECOMMENDED)["mean"] == pytest.approx(0.5, rel=0.05 if narrow_enough else 2.0)
    assert PRESENT not in found.settings


def test_numbers_of_a_row_are_the_present_settings_and_ratios_to_it() -> None:
    pairs = {RECOMMENDED: np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])}
    found = trial.Trial({RECOMMENDED: {"kmin": 1e3}}, [Row("8 flows", "utilisation", "u", "", pairs)], {"8 flows": "x"})
    row = found.as_dict()["rows"][0]
    assert (row["present"], row["seeds"], row["settings"][RECOMMENDED]["mean"]) == (4.0, 3, pytest.approx(0.5))
    counted = Row("8 flows", "pfc_pauses", "PAUSEs", COUNT, pairs)
    assert (counted.present, counted.own(RECOMMENDED), counted.more) == (12.0, 6.0, False)
    assert found.rows[0].more
