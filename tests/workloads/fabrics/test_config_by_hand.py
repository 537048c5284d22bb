"""Schemes and networks of a config.txt from keys whose values all differ, so that none stands for another."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.scenario.model import RED
from fluidcc.workloads.fabrics import Cable, Topology, hpcc_config
from fluidcc.workloads.fabrics.hpcc_config import (
    _DEFAULTS,
    _from_host,
    _keys,
    _marking,
    _network,
    _not_modelled,
    _of_each_pair,
    _Reader,
    _stop,
    _together,
    _too_many_pairs,
    round_trips,
    scheme_of,
    thresholds,
)
from fluidcc.workloads.fabrics.lines import Lines

KEYS = {
    "INT_MULTI": "3", "U_TARGET": "0.9", "MI_THRESH": "7", "RATE_AI": "70Mb/s", "RATE_HAI": "210Mb/s",
    "MIN_RATE": "90Mb/s", "FAST_REACT": "1", "MULTI_RATE": "1", "EWMA_GAIN": "0.125", "DCTCP_RATE_AI": "800Mb/s",
    "RP_TIMER": "300.7", "ALPHA_RESUME_INTERVAL": "55.5", "RATE_DECREASE_INTERVAL": "6.2", "FAST_RECOVERY_TIMES": "4",
    "HAS_WIN": "1", "VAR_WIN": "1",
}  # fmt: skip
RTT, WINDOW = 7e-6, 81_000.0
MBPS = 1e6 / 8


def scheme(name: str, **changed: str) -> Any:
    return scheme_of({**KEYS, **changed}, name, RTT, WINDOW)


def test_hpcc_from_its_keys() -> None:
    found = scheme("hpcc")
    assert (found.int_multi, found.eta, found.max_stage) == (3, 0.9, 7)
    assert (found.rate_ai, found.min_rate) == (70 * MBPS, 90 * MBPS)
    assert (found.base_rtt, found.initial_window) == (RTT, WINDOW)
    assert (found.reaction, found.registers) == ("combined", "per-link")
    other = scheme("hpcc", FAST_REACT="0", MULTI_RATE="0")
    assert (other.reaction, other.registers) == ("per-rtt", "one")


def test_dctcp_from_its_keys() -> None:
    found = scheme("dctcp")
    assert (found.g, found.rate_ai, found.min_rate) == (0.125, 800 * MBPS, 90 * MBPS)
    assert (found.base_rtt, found.initial_window) == (RTT, WINDOW)


def test_dcqcn_from_its_keys() -> None:
    """Timers count whole microseconds, however they are written."""
    found = scheme("dcqcn")
    assert (found.g, found.rate_ai, found.rate_hai, found.min_rate) == (0.125, 70 * MBPS, 210 * MBPS, 90 * MBPS)
    assert (found.timer, found.alpha_timer) == (pytest.approx(300e-6), pytest.approx(55e-6))
    assert (found.rate_decrease_interval, found.fast_recovery_steps) == (pytest.approx(6e-6), 4)
    assert (found.win, found.base_rtt) == (True, RTT)
    assert not scheme("dcqcn", HAS_WIN="0").win
    assert not scheme("dcqcn", HAS_WIN="0", VAR_WIN="0").win


def test_timely_from_its_keys() -> None:
    """The hyper increase is a multiple of the increase."""
    found = scheme("timely")
    assert (found.rate_ai, found.hai_gain, found.min_rate) == (70 * MBPS, 3.0, 90 * MBPS)
    assert (found.win, found.base_rtt) == (True, RTT)
    assert not scheme("timely", HAS_WIN="0").win


@pytest.mark.parametrize("name", ["hpcc", "dctcp", "dcqcn", "timely"])
def test_windows_that_are_not_modelled(name: str) -> None:
    """A window that stays as it is; and of what has no rate of its own, none."""
    with pytest.raises(InputError, match=r"VAR_WIN 0" if name in ("dcqcn", "timely") else r"^VAR_WIN: "):
        scheme(name, VAR_WIN="0")
    if name in ("hpcc", "dctcp"):
        for var in "01":
            with pytest.raises(InputError, match=r"^HAS_WIN: "):
                scheme(name, HAS_WIN="0", VAR_WIN=var)


# -- keys and lines -----------------------------------------------------------------------------------------------


def lines(folder: Path, text: str) -> Lines:
    path = folder / "config.txt"
    path.write_text(text)
    return Lines(path, "a file")


def reader(at: dict[str, int] | None = None, /, **values: str) -> _Reader:
    return _Reader("config.txt", _DEFAULTS | values, {name: 7 for name in values} if at is None else at)


def test_a_line_is_a_key_and_what_is_before_a_comment(tmp_path: Path) -> None:
    """The first of several counts; files may be named nothing, other keys may not."""
    text = (
        "CC_MODE 3 # mode\nKMAX_MAP 1 2 3 // map\nTRACE_FILE\nMON_START 4\nHAS_WIN // none\nCC_MODE 1\nODD 1\nODD 2\n"
    )
    found, at, wrong = _keys(lines(tmp_path, text))
    assert found == {
        "CC_MODE": "3", "KMAX_MAP": "1 2 3", "TRACE_FILE": "", "MON_START": "4", "HAS_WIN": "", "ODD": "1"
    }  # fmt: skip
    assert at == {"CC_MODE": 1, "KMAX_MAP": 2, "TRACE_FILE": 3, "MON_START": 4, "HAS_WIN": 5, "ODD": 7}
    assert [number for number, _ in wrong] == [5, 6, 7, 8]
    assert [text.split(" ")[0] for _, text in wrong] == ["HAS_WIN", "CC_MODE", "'ODD'", "'ODD'"]
    assert "no value" in wrong[0][1]
    assert "twice" in wrong[1][1]


def test_all_that_is_wrong_is_said_at_once() -> None:
    assert _together("a", [(3, "x")]) == "a, line 3: x"
    assert _together("a", [(0, "x")]) == "a: x"
    assert _together("a", [(3, "x"), (0, "y"), (4, "z")]) == "a: line 3: x; y; line 4: z"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("RATE_BOUND", "0", "not modelled; RATE_BOUND 1 is"),
        ("L2_BACK_TO_ZERO", "1", "go back to the begin of a chunk"),
        ("SAMPLE_FEEDBACK", "2", "SAMPLE_FEEDBACK 0 is"),
        ("CLAMP_TARGET_RATE", "1", "targets that every cut lowers"),
        ("NIC_TOTAL_PAUSE_TIME", "0.5", "stand still"),
        ("CC_MODE", "2", "2 is not modelled; write one of 1 (dcqcn), 3 (hpcc), 7 (timely), 8 (dctcp)"),
        ("LB_MODE", "3", "3 (CONGA) is not modelled"),
        ("LB_MODE", "4", "4 is not modelled"),
        ("LB_MODE", "x", "is no number"),
        ("ENABLE_PFC", "2", "2 is neither on nor off; write 1 or 0"),
        ("EWMA_GAIN", "many", "is no number"),
        ("RP_TIMER", "many", "is no number"),
    ],
)
def test_what_is_not_modelled_is_said_of_its_line(key: str, value: str, said: str) -> None:
    """Defaults are modelled, however they are written; a key that no line has is of line 0."""
    assert _not_modelled(reader()) == []
    assert _not_modelled(reader(RATE_BOUND="1.0", LB_MODE="6", CC_MODE="8", NIC_TOTAL_PAUSE_TIME="0.0")) == []
    ((line, text),) = _not_modelled(reader(**{key: value}))
    assert line == 7
    assert text.startswith(f"{key}: ")
    assert said in text
    ((line, _),) = _not_modelled(reader({}, **{key: value}))
    assert line == 0
    others = reader(EWMA_GAIN="x", BUFFER_SIZE="y", VAR_WIN="3")  # all at once
    assert [text.partition(":")[0] for _, text in _not_modelled(others)] == ["BUFFER_SIZE", "EWMA_GAIN", "VAR_WIN"]


def test_values_that_are_none_and_keys_that_lack() -> None:
    found = reader(EWMA_GAIN="0.5")
    assert (found.number("EWMA_GAIN"), len(found), set(found) == {*_DEFAULTS}) == (0.5, len(_DEFAULTS), True)
    assert found.number("L2_ACK_INTERVAL") == 0.0
    for value in ("-1", "inf", "nan", "many"):
        with pytest.raises(InputError, match=rf"config\.txt, line 7: EWMA_GAIN: '{value}' is no number"):
            reader(EWMA_GAIN=value).number("EWMA_GAIN")
    with pytest.raises(InputError, match=r"config\.txt: EWMA_GAIN: "):
        reader({}, EWMA_GAIN="x").number("EWMA_GAIN")
    with pytest.raises(InputError, match="has no RATE_AI"):
        found.number("RATE_AI")


@pytest.mark.parametrize(
    ("given", "mode", "placed"),
    [
        ("eta: too large", "3", "config.txt, line 7: U_TARGET: too large"),
        ("flow 0 eta: too large", "3", "config.txt, line 7: U_TARGET: too large"),
        ("U_TARGET: too large", "3", "config.txt, line 7: U_TARGET: too large"),
        ("rate_ai: too large", "3", "config.txt, line 7: RATE_AI: too large"),
        ("rate_ai: too large", "8", "config.txt, line 7: DCTCP_RATE_AI: too large"),
        ("timer: a: b", "1", "config.txt, line 7: RP_TIMER: a: b"),
        ("buffers: too small", "3", "buffers: too small"),  # which comes from no key
    ],
)
def test_an_error_is_placed_at_the_key_that_it_comes_from(given: str, mode: str, placed: str) -> None:
    values = {**KEYS, "CC_MODE": mode}
    assert str(reader(None, **values).placed(InputError(given))) == placed


def test_a_simulator_stops_as_its_file_says() -> None:
    """ConWeave's ten seconds after the last flow may start, unless the file has a time of its own."""
    assert _stop(reader(SIMULATOR_STOP_TIME="4.5", FLOWGEN_STOP_TIME="2.5")) == 4.5
    assert _stop(reader({"FLOWGEN_STOP_TIME": 3}, FLOWGEN_STOP_TIME="2.5")) == 12.5
    assert _stop(reader()) == 3.01


def test_pairs_behind_the_last_are_named() -> None:
    found = _too_many_pairs(reader(KMIN_MAP="2 1 5 2 6", KMAX_MAP="1 1 5 2 6 3 7", PMAX_MAP="x 1 2 3"))
    assert found == ["line 7: KMAX_MAP says 1 pairs, and 2 more are left out"]
    assert _too_many_pairs(reader()) == []


@pytest.mark.parametrize(
    ("scheme", "has_win", "trips", "refused"),
    [
        ("hpcc", "0", [(1, 2), (1, 3)], True),
        ("dctcp", "0", [(1, 2), (1, 3)], True),
        ("dcqcn", "1", [(1, 2), (1, 3)], True),
        ("dcqcn", "0", [(1, 2), (1, 3)], False),
        ("hpcc", "1", [(1, 2), (1, 2)], False),
        ("hpcc", "1", [], False),
    ],
)
def test_a_t_of_each_pair_is_refused_where_it_matters(
    scheme: str, has_win: str, trips: list[tuple[int, int]], refused: bool
) -> None:
    assert _of_each_pair(reader(GLOBAL_T="1", HAS_WIN=has_win), scheme, trips) == []
    given = reader(GLOBAL_T="0", HAS_WIN=has_win)
    if refused:
        with pytest.raises(InputError, match="GLOBAL_T 1 is"):
            _of_each_pair(given, scheme, trips)
    else:
        assert _of_each_pair(given, scheme, trips) == []
    simai = reader(GLOBAL_T="0", HAS_WIN=has_win, QP_MON_INTERVAL="100")
    assert _of_each_pair(simai, scheme, trips) == ["line 7: SimAI reads GLOBAL_T and takes 1, and so is it here"]


# -- marking and network ------------------------------------------------------------------------------------------


def test_a_map_is_as_many_pairs_as_it_says() -> None:
    assert thresholds("2 1e9 4 25000000000 8") == {10**9: 4.0, 25 * 10**9: 8.0}
    assert thresholds("1 1e9 4 2e9 8 9") == {10**9: 4.0}
    assert thresholds("0") == {}
    for text in ("2 1e9 4 2e9", "x 1 2", "1 a 2", ""):
        with pytest.raises(ValueError):  # noqa: PT011
            thresholds(text)


@pytest.mark.parametrize(
    ("mode", "enabled", "marks"), [(1, "1", True), (8, "1", True), (3, "1", False), (1, "0", False)]
)
def test_schemes_that_look_at_marks_have_a_map_for_each_rate(mode: int, enabled: str, marks: bool) -> None:
    """In KB, by the rate in bits/s."""
    maps = {"KMIN_MAP": "2 40000000000 4 100000000000 11", "KMAX_MAP": "2 100000000000 50 40000000000 20"}
    marking = _marking(reader(ENABLE_QCN=enabled, PMAX_MAP="2 100000000000 0.3 40000000000 0.2", **maps), mode)
    if not marks:
        assert marking("40Gbps") is None
        return
    assert marking("40Gbps") == RED(4e3, 20e3, 0.2, mark_on="departure")
    assert marking(fc.units.Rate(12.5e9)) == RED(11e3, 50e3, 0.3, mark_on="departure")
    with pytest.raises(InputError, match="KMIN_MAP: has no threshold for links of 10 Gb/s"):
        marking("10Gbps")


LOSSLESS = Topology(
    (0, 1), (2, 3), (Cable((0, 2), "10Gbps", "1us"), Cable((1, 3), "10Gbps", "1us"), Cable((2, 3), "40Gbps", "3us"))
)
LOSSY = Topology((0, 1), (2,), (Cable((0, 2), "10Gbps", "1us"), Cable((1, 2), "10Gbps", "1us", 0.01)))


def flows(begins: float = 2.0, groups: tuple[int, ...] = (3, 3)) -> Any:
    return SimpleNamespace(begins=begins, priority=np.array(groups))


def test_a_network_from_its_keys() -> None:
    """Buffers in MiB; ACKs after a packet at least; what is lost is sent again only where something may be lost."""
    given = {"PACKET_PAYLOAD_SIZE": "900", "BUFFER_SIZE": "12", "L2_ACK_INTERVAL": "4"}
    found, words = _network(reader(**given), LOSSLESS, flows())
    assert (found["packet_size"], found["buffer"], found["ack_interval"]) == (900.0, 12 * 2**20, 4.0)
    assert found["pfc"] is not None
    assert words == []
    assert not {"loss_recovery", "load_balancing", "failures"} & set(found)
    assert _network(reader(), LOSSLESS, flows())[0]["ack_interval"] == 1.0
    for options, topology in (({"ENABLE_PFC": "0"}, LOSSLESS), ({}, LOSSY)):
        lossy, words = _network(reader(**options), topology, flows())
        assert (lossy["loss_recovery"], lossy["nack_interval"], len(words)) == ("gbn", "500us", 1)
        irn, words = _network(reader(ENABLE_IRN="1", **options), topology, flows())
        assert (irn["loss_recovery"], "nack_interval" in irn, words) == ("irn", False, [])
    assert _network(reader(ENABLE_PFC="0"), LOSSLESS, flows())[0]["pfc"] is None
    (word,) = _network(reader(), LOSSLESS, flows(groups=(3, 4)))[1]
    assert "one class" in word


@pytest.mark.parametrize(
    ("down", "begins", "failed"),
    [
        ("0 0 0", 2.0, None),
        ("0.0 3 2", 2.0, None),
        ("5 2 3", 2.0, ("2->3", 5e-6)),
        ("5 3 2", 2.0, ("3->2", 5e-6)),
        ("5.5 0 2", 2.0, ("2->0", 5.5e-6)),  # from the switch, whichever is named first
        ("5 2.0 0.0", 2.0, ("2->0", 5e-6)),
        ("5 2 3", 2.000001, ("2->3", 4e-6)),
        ("1000000 2 3", 2.5, ("2->3", 0.5)),
    ],
)
def test_a_link_goes_down_two_seconds_on(down: str, begins: float, failed: Any) -> None:
    """In microseconds of that simulator's time, of which the first flow's start is taken off."""
    found, _ = _network(reader(LINK_DOWN=down), LOSSLESS, flows(begins))
    told = [(each.link, each.at) for each in found.get("failures", ())]
    assert told == ([] if failed is None else [(failed[0], pytest.approx(failed[1], rel=1e-6))])


def test_the_last_of_several_cables_goes_down() -> None:
    twice = Topology(LOSSLESS.hosts, LOSSLESS.switches, (*LOSSLESS.cables, Cable((3, 2), "40Gbps", "3us")))
    for down, link in (("5 2 3", "2->3#2"), ("5 3 2", "3->2#2")):
        found, _ = _network(reader(LINK_DOWN=down), twice, flows())
        assert [each.link for each in found["failures"]] == [link]
    for down, said in (("5 0 3", "no cable"), ("5 2", "no time"), ("-5 2 3", "no time"), ("1..2 2 3", "no time")):
        with pytest.raises(InputError, match=said):
            _network(reader(LINK_DOWN=down), twice, flows())
    with pytest.raises(InputError, match="before the first flow"):
        _network(reader(LINK_DOWN="5 2 3"), twice, flows(2.1))


# -- round trips --------------------------------------------------------------------------------------------------


def test_a_round_trip_is_delays_twice_and_a_payload_once_a_link() -> None:
    """In whole ns; a window at the slowest link; both ways between each two hosts."""
    slow = Topology(LOSSLESS.hosts, LOSSLESS.switches, (*LOSSLESS.cables[:2], Cable((2, 3), "3Gbps", "3.0006us")))
    for topology, above in ((LOSSLESS, (6000 + 7_200 // 40, 10)), (slow, (6002 + 7_200 // 3, 3))):
        trip = 2 * (2000 + 720) + above[0]
        assert round_trips(topology, 900.2) == [(trip, trip * above[1] * 10**9 // (8 * 10**9))] * 2
    assert round_trips(Topology((), (2,), ()), 900.0) == []


def test_ways_from_a_host_do_not_lead_through_others() -> None:
    """The first found among the shortest; its slowest link, and no way on from a host."""
    tor = [(0, 5, 100), (1, 7, 40), (3, 1, 400), (4, 1, 300)]
    above = [[(2, 1, 400), (5, 1, 30)], [(2, 1, 300), (5, 2, 60)], [(3, 1, 30), (4, 2, 60)]]
    links = [[(2, 5, 100)], [(2, 7, 40)], tor, *above]
    trip, slowest = _from_host(0, links, 2)
    assert trip == {0: 0, 2: 5, 1: 12, 3: 6, 4: 6, 5: 7}
    assert {node: slowest[node] for node in (1, 2, 3, 4, 5)} == {1: 40, 2: 100, 3: 100, 4: 100, 5: 30}
    through = [[(1, 5, 100)], [(0, 5, 100), (2, 1, 100)], [(1, 1, 100)]]
    assert _from_host(0, through, 2)[0] == {0: 0, 1: 5}
    assert hpcc_config.largest([(5, 70), (9, 20)])[1] == 70.0
