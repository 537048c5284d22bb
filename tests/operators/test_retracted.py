"""What an audit takes back or does not repeat: figures that no buffer holds, and what packets refute."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import fluidcc as fc
from fluidcc.operators import behaviour, checks, dialect, lossless, missing_parts, thresholds
from fluidcc.operators.behaviour import after_packets
from fluidcc.operators.config_db import Assumed, ConfigDB
from fluidcc.operators.finding import Finding
from fluidcc.operators.ports import read_ports
from fluidcc.operators.sonic import SwitchPort, read_sonic
from fluidcc.operators.switches.description import Words
from fluidcc.units import Rate
from tests.operators.test_checks_by_hand import port, ran

DATA = Path(__file__).parents[1] / "data" / "switches"
RED = fc.RED(100e3, 200e3, 1.0)
LIMIT = 30e6


def judged(figures: dict[str, Any]) -> list[Finding]:
    return [*behaviour.behaviour(figures, 8, RED, LIMIT)]


def whats(found: Any) -> list[str]:
    return [each.what for each in found]


def test_a_queue_that_no_buffer_holds_is_no_figure() -> None:
    """1.4 GB at 30 MB: neither settled, nor repeated; nor of a first look that was enough."""
    runaway = ran(1.0, 0.9e9, 1.9e9, above_xoff=0.6)
    first = ran(1.0, 0.9e9, 1.9e9, window_s=[0.0025, 0.005])
    for figures, what in ((runaway, "the model's queue outgrows the buffer"), (first, "PFC pauses the senders")):
        (found,) = judged(figures)
        assert (found.severity, found.what) == ("warn", what)
        assert "beyond the buffer's 30MB" in found.why
        assert "GB" not in found.why
    assert whats(judged(ran(1.0, 110e3, 30e6))) == ["the flows settle"]
    assert whats(behaviour.behaviour(runaway, 8, RED)) == ["the flows settle", "PFC pauses the senders"]


@pytest.mark.parametrize(
    ("hybrid", "packets", "wanted"),
    [
        # Packets contradict a hybrid that runs away: what it says is gone, and theirs is fine.
        (ran(1.0, 0.9e9, 1.9e9), ran(0.993, 18e3, 137e3), ["packets say otherwise"]),
        # What is wrong by their figures takes its place.
        (ran(1.0, 110e3, 9e6), ran(0.9, 0.0, 50e3), ["the link is left idle", "packets say otherwise"]),
        (ran(1.0, 110e3, 9e6), ran(1.0, 5e3, 170e3), ["the queue keeps oscillating", "packets say otherwise"]),
        # They agree: the hybrid's words stay, its PAUSEs only if there are any.
        (ran(1.0, 110e3, 150e3, above_xoff=0.1), ran(1.0, 110e3, 150e3), ["the flows settle", "packet runs agree"]),
        (
            ran(1.0, 110e3, 150e3, above_xoff=0.1),
            ran(1.0, 110e3, 150e3, pfc_pauses=3.0),
            ["the flows settle", "PFC pauses the senders", "packet runs agree"],
        ),
    ],
)
def test_what_packets_refute_is_taken_back(hybrid: dict[str, Any], packets: dict[str, Any], wanted: list[str]) -> None:
    found = {"drops": 0.0, "pfc_pauses": 0.0} | packets
    said = [*after_packets(judged(hybrid), hybrid, found, 1e3, judged)]
    assert whats(said) == wanted
    assert not any("GB" in each.why for each in said)
    assert ("contradicts" in said[-1].why) == (wanted[-1] == "packets say otherwise")


TWO = [
    {"runs": 5, "utilisation": 0.95, "queue_bytes": {"mean": 15e3, "p5": 10e3, "p95": 20e3}},
    {"runs": 3, "utilisation": 1.0, "queue_bytes": {"mean": 15e6, "p5": 10e6, "p95": 20e6}},
]


def test_two_ways_of_a_system_are_told_apart() -> None:
    """No figure that no run had; packets that go one of both ways agree, those that go a third one do not."""
    hybrid = ran(0.97, 5e6, 9e6, ways=TWO)
    (found,) = judged(hybrid)
    assert (found.severity, found.what) == ("warn", behaviour.TWO_WAYS)
    assert "in 5 of 8 runs" in found.why
    assert "in 3 of 8 runs" in found.why
    assert "9MB" not in found.why
    assert whats(judged(ran(0.97, 5e6, 9e6, ways=[TWO[0], {**TWO[1], "queue_bytes": {"mean": 1.0, "p95": 31e6}}]))) == [
        "the model's queue outgrows the buffer"
    ]
    none = {"drops": 0.0, "pfc_pauses": 0.0}
    for used, high, agrees in ((0.95, 25e3, True), (1.0, 25e6, True), (0.95, 9e6, False), (0.9, 25e3, False)):
        said = [*after_packets([found], hybrid, ran(used, 0.0, high, **none), 1e3, judged)]
        assert (whats(said)[-1] == "packet runs agree") == agrees, (used, high)
    said = [*after_packets([found], hybrid, ran(0.97, 5e6, 9e6, ways=TWO, **none), 1e3, judged)]
    assert whats(said) == [behaviour.TWO_WAYS, "packet runs agree"]
    assert "in 3 of 8 runs" in said[-1].why


def test_packets_that_do_not_run_leave_all_as_it_was() -> None:
    hybrid = ran(1.0, 110e3, 150e3)
    said = [*after_packets(judged(hybrid), hybrid, {"reason": "no"}, 1e3, judged)]
    assert whats(said) == ["the flows settle", "packets were not run"]


@pytest.mark.parametrize(
    ("hybrid", "fluid", "apart"),
    [
        ((2e6, 28e6), (0.0, 1.25e6), True),
        ((0.0, 28e6), (0.0, 1e3), False),
        ((161e3, 9e5), (0.0, 100e3), True),
        ((160e3, 9e5), (0.0, 100e3), False),
        ((0.0, 100e3), (161e3, 9e5), True),
        ((None, 1.0), (1e9, 2e9), False),
    ],
)
def test_engines_whose_queues_never_meet_contradict_each_other(hybrid: Any, fluid: Any, apart: bool) -> None:
    """Half as much again and ten packets of 1 KB apart, either way."""
    first, second = ({"p5": low, "p95": high} for low, high in (hybrid, fluid))
    assert whats(behaviour.apart(first, second, 1e3)) == ["the engines contradict each other"] * apart


def test_a_fixed_point_beyond_the_buffer_is_none() -> None:
    for queue, what in ((30e6, "a fixed point exists"), (31e6, "the fixed point is beyond the buffer")):
        solved = SimpleNamespace(
            as_dict=lambda queue=queue: {"marking_probability": 0.01, "queue_bytes": queue}, exists=True
        )
        made = port(buffer_size=LIMIT, queue_limit=None)
        (found,) = checks.fixed_point(made, RED, cast(Any, solved), fc.incast(1), 8)
        assert found.what == what
    assert "31MB" not in found.why


def test_least_and_largest_thresholds_of_an_advice() -> None:
    """In proportion to the rate, two packets of 4158 B at least, within the buffer; a ramp of as much again."""
    at = lambda rate, **more: thresholds.advice(port(rate=Rate(rate / 8), **more))  # noqa: E731
    none = {"buffer_size": None, "queue_limit": None}
    assert at(100e9, **none) == (12_500, 500_000)
    assert at(1e9, **none) == (8316, 16_632)
    assert at(100e9, buffer_size=300e3, queue_limit=400e3) == (12_500, 300_000)
    assert at(100e9, buffer_size=None, queue_limit=25_000.0) == (12_500, 25_000)
    assert at(100e9, buffer_size=24_999.0, queue_limit=None) is None
    assert thresholds.advice(port(rate=Rate(1e9 / 8), **none), (1086.0,)) == (2172, 5000)


@pytest.mark.parametrize(
    ("what", "buffer", "told"),
    [
        ("ECN is off", None, "12500 500000 1"),  # in proportion to 100 Gb/s
        ("ECN is off", 24_999.0, "KMIN KMAX 1"),  # no ramp fits
        ("marking was not read", None, "z: KMIN KMAX PERCENT"),  # there are some
        ("PFC is off", None, "3"),
        ("another", None, "z"),
    ],
)
def test_what_to_type_has_the_thresholds_to_try(what: str, buffer: float | None, told: str) -> None:
    words = Words("x", lossless="{priority}", marking="{kmin} {kmax} {pmax}")
    made = port(rate=Rate(100e9 / 8), buffer_size=buffer, queue_limit=None, priority=3)
    assert dialect.in_words(Finding("warn", what, "y", "z"), made, words).suggest == told


def test_packets_decide_what_is_a_small_threshold() -> None:
    for kmin, kmax, sizes, wanted in (
        (8315, 9e5, (1086, 4158), (True, False)),
        (8316, 9e5, (1086, 4158), (False, False)),
        (2172, 9e5, (1086,), (False, False)),
        (10e3, 10e3 + 4157, (4158,), (False, True)),
        (10e3, 10e3 + 4158, (4158,), (False, False)),
        (10e3, 10e3, (4158,), (False, False)),  # a step is told as one
    ):
        assert thresholds.grain(kmin, kmax, sizes) == wanted


def test_powers_beyond_what_chips_have_are_not_advised() -> None:
    """Alpha ends at 8: one that would need 16 is not suggested; a Kmin of less than two packets is not either."""
    made = port(buffer_size=12e6, headroom=25e3, ports=4, dynamic_th=1.0)
    for kmin, raised in ((311_111.0, "raise dynamic_th to 3"), (311_112.0, None)):
        (found,) = checks.buffers(dataclasses.replace(made, kmin=kmin))
        assert (raised or "dynamic_th") in found.suggest or raised is None
        assert ("raise dynamic_th" in found.suggest) == (raised is not None)
    tight = dataclasses.replace(made, kmin=9e3, headroom=370e3)  # the bound is 3333 B
    (found,) = checks.buffers(tight)
    assert "lower green_min_threshold" not in found.suggest
    assert found.apply == ()


def foreign(name: str, assumed: Assumed | None = None) -> tuple[SwitchPort, ConfigDB]:
    return read_ports(DATA / name, "all", assumed)[0][0].switch, ConfigDB(DATA / name)


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.iterdir() if path.suffix != ".md"))
def test_suggestions_are_in_the_words_of_the_system(name: str) -> None:
    """No table of SONiC's, no JSON pointer and no blank is left in what is to be typed elsewhere."""
    made, config = foreign(name)
    bare = dataclasses.replace(
        made, lossless=False, lossless_priorities=(), profile="", ecn=False, watchdog=None, watchdog_unsaid=False
    )
    said = [*checks.marking(bare), *checks.buffers(dataclasses.replace(made, kmin=1e5)), *missing_parts.speed(made)]
    said += [*checks.marking(made), *lossless.watchdog(dataclasses.replace(made, watchdog_unsaid=False))]
    assert {"PFC is off", "ECN is off", "PFC before ECN not checked"} <= {*whats(said)}
    for each in said:
        found = dialect.in_words(each, made, config.system)
        words = f"{found.why} {found.suggest}".replace("hset 'WRED_PROFILE|AZURE_LOSSLESS'", "")  # typed on SONiC
        assert not any(table in words for table in ("PORT_QOS_MAP", "WRED_PROFILE", "BUFFER_", "QUEUE|", "PFC_WD|")), (
            found
        )
        assert "{" not in words
        assert found.apply == ()
        assert found.suggest or found.severity == "ok"


def test_a_speed_that_is_not_told_and_shares_of_no_known_buffer() -> None:
    eos = read_sonic(DATA / "nvue_show.txt")
    (found,) = missing_parts.speed(eos)
    assert (found.severity, found.what) == ("warn", "the port's speed is not in the file")
    assert "--rate" in found.suggest
    assert not [*missing_parts.speed(read_sonic(DATA / "eos.txt"))]
    shares = {each.what: each for each in checks.marking(read_sonic(DATA / "junos.conf"))}
    assert [*shares] == ["thresholds are shares of a buffer"]
    assert "from 20 to 60 %" in shares["thresholds are shares of a buffer"].why
    known, _ = foreign("junos.conf", Assumed(Rate(1.0), 10e6))
    assert (known.kmin, known.kmax, known.shares) == (2e6, 6e6, None)
    assert not [*checks.marking(known)]


def test_an_audit_of_a_text_is_json() -> None:
    """Of the public reader through to what is printed, without a run: its shares are of nothing known."""
    found = fc.audit(DATA / "junos.conf", packets=0)
    document = found.as_dict()
    assert document["settings"]["system"] == "Junos"
    assert document["findings"][0]["severity"] == "warn"
    assert document["equilibrium"] is None
    json.dumps(document, allow_nan=False)


def test_packets_with_a_short_queue_contradict_one_that_outgrows_the_buffer() -> None:
    """One of two ways runs away and the packets go the other: catches `so too` beside 30 MB that are never there."""
    hybrid = ran(0.97, 5e6, 9e6, ways=[TWO[0], {**TWO[1], "queue_bytes": {"mean": 1.0, "p5": 1.0, "p95": 31e6}}])
    quiet = {"drops": 0.0, "pfc_pauses": 0.0}
    said = [*after_packets(judged(hybrid), hybrid, ran(0.95, 11e3, 25e3, **quiet), 1e3, judged)]
    assert whats(said)[-1] == "packets say otherwise"
    assert behaviour.OUTGROWN not in whats(said)
    paused = [*after_packets(judged(hybrid), hybrid, ran(0.95, 11e3, 25e3, drops=0.0, pfc_pauses=3.0), 1e3, judged)]
    assert whats(paused) == [behaviour.OUTGROWN, "packet runs agree"]
    assert not [each for each in (*said, *paused) if "--packets 2" in each.suggest]


def test_packets_beyond_the_queues_limit_say_that_they_leave_it_out() -> None:
    """Catches `0 packets lost` of a queue that no switch would hold."""
    hybrid, none = ran(0.69, 5e3, 31e6), {"drops": 0.0, "pfc_pauses": 0.0}
    said = [*after_packets(judged(hybrid), hybrid, ran(0.69, 5e3, 31e6, **none), 1e3, judged)]
    assert whats(said)[-1] == "packets leave out the queue's limit"


def test_packets_of_a_lossy_group_have_no_pfc() -> None:
    assert behaviour.buffer_in_words(port(lossless=True)) == "the switch's buffer and PFC"
    assert "no PFC" in behaviour.buffer_in_words(port(lossless=True, lossy_group=True))
