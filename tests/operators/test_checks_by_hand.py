"""Checks one by one, of a port and a NIC whose numbers are set here, on both sides of each bound."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.cli.audit import print_audit
from fluidcc.operators import checks, lossless
from fluidcc.operators.audit import Audit
from fluidcc.operators.behaviour import _percent, after_packets, behaviour
from fluidcc.operators.config_db import ConfigDB, configurations
from fluidcc.operators.config_files import listing
from fluidcc.operators.finding import Change, Finding
from fluidcc.operators.lossless import needed
from fluidcc.operators.nvidia import NicSettings, off_in_words, switched_off
from fluidcc.operators.port_fields import Watchdog
from fluidcc.operators.ports import unmarked
from fluidcc.operators.roce_queue import TrafficClass
from fluidcc.operators.sonic import SwitchPort, read_sonic
from fluidcc.scenario.parameters import resolve
from fluidcc.schemes.dcqcn import DCQCN, PRESETS

SAMPLE = Path(__file__).parents[2] / "examples" / "leaf-100g" / "config_db.json"
SCHEME: DCQCN = resolve(PRESETS["vendor"].scheme)


def port(**changes: Any) -> SwitchPort:
    return dataclasses.replace(read_sonic(SAMPLE, "Ethernet0"), **changes)


def words(found: Any) -> dict[str, Finding]:
    return {each.what: each for each in found}


@pytest.mark.parametrize(("mask", "off"), [(1 << 3, False), (1 << 5, True), (0, True), (255, False)])
def test_a_mask_is_of_priorities_and_not_of_queues(mask: int, off: bool) -> None:
    made = port(priority=3, queue=5, lossless_priorities=(3,))
    settings = NicSettings({"roce_cc_prio_mask": float(mask)}, "nic.txt")
    found = words(checks.nic(made, settings, resolve(PRESETS["vendor"].scheme)))
    assert ("DCQCN is off for this priority" in found) is off
    if off:
        assert found["DCQCN is off for this priority"].suggest == f"set ROCE_CC_PRIO_MASK_P1 to {mask | 1 << 3}"


@pytest.mark.parametrize(("np", "rp", "said"), [(0, 0, "np rp"), (0, 1, "np"), (1, 0, "rp"), (1, 1, "")])
def test_the_drivers_switches_turn_dcqcn_off_end_by_end(np: int, rp: int, said: str) -> None:
    given = {"roce_np_enable_3": float(np), "roce_rp_enable_3": float(rp), "roce_rp_enable_0": 0.0}
    whys, wanted = switched_off(NicSettings(given, "nic.txt"), 3)
    assert wanted == {f"roce_{side}/enable/3": 1 for side in said.split()}
    assert len(whys) == len(wanted)


def test_a_run_with_a_nic_that_has_dcqcn_off_is_told() -> None:
    """A run of DCQCN says nothing of a NIC by itself; without a switch the usual priority, 3, is meant."""
    off = NicSettings({"roce_rp_enable_3": 0.0}, "nic.txt")
    assert "DCQCN is off at this NIC for priority 3 (roce_rp/enable/3 = 0" in off_in_words(off, 3)
    assert "for priority 3, usually RoCE's" in off_in_words(off)
    assert off_in_words(off, 4) == ""
    assert "ROCE_CC_ALGORITHM = 2" in off_in_words(NicSettings({"roce_cc_algorithm": 2.0}, "nic.txt"), 4)
    assert off_in_words(NicSettings({"roce_cc_algorithm": 0.0, "roce_cc_prio_mask": 8.0}, "nic.txt")) == ""


def test_a_port_without_thresholds_says_which_of_them_are_missing() -> None:
    """Shares of a buffer, and a line that was not read, mark: to turn ECN on helps neither."""
    none = {"kmin": None, "kmax": None, "ecn": True}
    shares = unmarked(port(**none, shares=(0.2, 0.8)))
    assert "marks from 20 to 80 % of a buffer" in shares
    unread = unmarked(port(**none, unread="random-detect ecn 5 percent"))
    assert "marks by `random-detect ecn 5 percent`" in unread
    assert not [text for text in (shares, unread) if "turn ECN on" in text]
    assert "turn ECN on" in unmarked(port(ecn=False))
    assert unmarked(port(ecn=True)) == ""


def test_pfc_before_ecn_is_judged_by_section_4() -> None:
    """beta (B - 8 n t)/(8 n (beta + 1)): B 12 MB, 4 ports, t 25 KB, beta 2 give 2 x 11.2 MB/96 = 233 333 B."""
    made = port(buffer_size=12e6, headroom=25e3, ports=4, dynamic_th=1.0)
    assert words(checks.buffers(dataclasses.replace(made, kmin=233_333.0)))["ECN marks before PFC pauses"]
    found = words(checks.buffers(dataclasses.replace(made, kmin=233_334.0)))["PFC can pause before ECN marks"]
    assert found.severity == "warn"
    assert "lower green_min_threshold to 233333 or less" in found.suggest
    assert "raise dynamic_th to 2" in found.suggest  # beta 4: 4 x 11.2 MB/160 = 280 000 B
    assert [change.value for change in found.apply] == ["233333"]
    two = 2 * (12e6 - 2 * 4 * 25e3) / (2 * 4 * 3)
    assert fc.units.show(two, fc.units.SIZE) in found.why  # of the two priorities in use
    none = words(checks.buffers(dataclasses.replace(made, headroom=375_000.0, kmin=1e5)))
    (said,) = none.values()
    wanted = 32 * (1e5 * 1.5 + 375_000)
    assert f"enlarge the pool to {math.floor(wanted) + 1}" in said.suggest
    assert said.apply == ()
    assert "raise dynamic_th" not in said.suggest


@pytest.mark.parametrize("missing", ["buffer_size", "headroom", "dynamic_th"])
def test_what_section_4_needs_is_named(missing: str) -> None:
    (found,) = checks.buffers(port(**{missing: None}))
    said = {"buffer_size": "BUFFER_POOL", "headroom": "xoff", "dynamic_th": "dynamic_th"}
    assert found.what == "PFC before ECN not checked"
    assert [word in found.why for word in said.values()] == [name == missing for name in said]
    assert found.suggest.startswith("give BUFFER_PG|Ethernet0|3")
    (switched,) = checks.buffers(port(**{missing: None}, dynamic_buffers=True))
    assert "show buffer information" in switched.suggest
    assert not list(checks.buffers(port(lossless=False))) + list(checks.buffers(port(kmin=None)))
    (every,) = checks.buffers(port(buffer_size=None, headroom=None, dynamic_th=None))
    assert every.suggest.startswith("add BUFFER_PG")


def test_thresholds_are_compared_in_proportion_to_speed() -> None:
    """The paper's at 40 Gb/s, 5 and 200 KB, are 12.5 and 500 KB at 100: from a quarter to four times."""
    for kmax, what in ((2_000_001.0, "not scaled"), (2e6, "scaled"), (125e3, "scaled"), (124_999.0, "lower than")):
        found = list(checks.scaling(port(kmin=12.5e3, kmax=kmax), ConfigDB(SAMPLE), 10e-6))
        assert what in found[0].what, kmax
        assert ("not" in found[0].what) == (kmax > 2e6)
    changes = next(checks.scaling(port(), ConfigDB(SAMPLE), 10e-6)).apply
    assert {change.path.rpartition("/")[2]: change.value for change in changes} == {
        "green_min_threshold": "12500",
        "green_max_threshold": "500000",
    }
    found = next(checks.scaling(port(), ConfigDB(SAMPLE), 10e-6))
    assert "250KB to 375KB" in found.why  # 2 and 3 times 100 Gb/s x 10 us
    assert "Kmin 400KB, Kmax 1.6MB, Pmax 20 %" in found.why  # four times Alibaba's at 25 Gb/s


def test_the_nics_times_among_themselves() -> None:
    """Each bound from both sides: alpha's period and the timer against CNPs' 4 us, bytes at 40 Gb/s against it."""
    base = dataclasses.replace(SCHEME, cnp_interval=4e-6, alpha_timer=4e-6, timer=4e-6, byte_counter=20e3)
    slow = port(rate=fc.units.Rate(5e9))
    assert not list(checks.nic(slow, None, base))
    alpha = words(checks.nic(slow, None, dataclasses.replace(base, alpha_timer=3.9e-6)))
    assert [*alpha] == ["alpha's period is shorter than the CNP interval"]
    timer = words(checks.nic(slow, None, dataclasses.replace(base, timer=3e-6)))["rates rise between CNPs"]
    assert timer.suggest == "raise it above 4"
    assert timer.apply == (Change("nic", "RPG_TIME_RESET_P1", 5),)
    odd = dataclasses.replace(base, timer=3e-6, cnp_interval=4.5e-6, alpha_timer=5e-6)
    assert words(checks.nic(slow, None, odd))["rates rise between CNPs"].apply[0].value == 5
    fast = dataclasses.replace(base, byte_counter=19_999.0)
    (found,) = checks.nic(slow, None, fast)
    assert "byte counter dominates" in found.what
    assert found.apply == (Change("nic", "RPG_BYTE_RESET_P1", 20_000),)
    quicker = (Change("nic", "RPG_BYTE_RESET_P1", 0), Change("nic", "RPG_TIME_RESET_P1", 100))
    cases = [(101e-6, 4e-6, 4e-6, 2), (100e-6, 4e-6, 4e-6, 1), (200e-6, 10e-6, 10e-6, 2), (200e-6, 11e-6, 4e-6, 1)]
    for timer, cnp, cuts, wanted in [*cases, (200e-6, 4e-6, 11e-6, 1)]:
        each = dataclasses.replace(base, timer=timer, cnp_interval=cnp, alpha_timer=cnp, rate_decrease_interval=cuts)
        (found,) = checks.nic(slow, None, each)
        assert found.apply == quicker[:wanted]  # half a MB is more than the field holds; ten cuts or more in the timer
        assert (",timer=100us" in found.suggest) is (wanted == 2)
    for timer, counter, wanted in ((300e-6, 1e12, 100), (100e-6, 1e12, None), (300e-6, 1e11, None)):
        found = list(checks.nic(slow, None, dataclasses.replace(base, timer=timer, byte_counter=counter)))
        assert [each.apply[0].value for each in found] == ([] if wanted is None else [wanted])  # 1 TB stands for off
    (found,) = checks.nic(slow, None, dataclasses.replace(base, timer=6.5534e-6))
    assert found.apply == (Change("nic", "RPG_BYTE_RESET_P1", 2**15 - 1),)  # all that it holds


def test_the_nics_switches() -> None:
    """Priority 3 is bit 3; the mask that is missing has those of both lossless ones, 3 and 4, too."""
    quiet = dataclasses.replace(SCHEME, cnp_interval=4e-6, alpha_timer=4e-6, timer=4e-6, byte_counter=1e9)
    for mask, wanted in ((8, None), (255, None), (7, 31), (0, 24), (16, 24)):
        found = words(checks.nic(port(), NicSettings({"roce_cc_prio_mask": mask}, "nic"), quiet))
        assert [each.apply[0].value for each in found.values()] == ([] if wanted is None else [wanted])
    (shared,) = checks.nic(port(), NicSettings({"roce_cc_cnp_moderation": 1}, "nic"), quiet)
    assert "share their CNPs" in shared.what
    assert not list(checks.nic(port(), NicSettings({"roce_cc_cnp_moderation": 0}, "nic"), quiet))
    assert [each.what for each in checks.algorithm(None)] == ["no NIC settings"]
    assert not list(checks.algorithm(NicSettings({}, "nic")))
    (other,) = checks.algorithm(NicSettings({"roce_cc_algorithm": 1}, "nic"))
    assert other.severity == "bad"
    for legacy, programmable, what in ((0, 1, ["the NIC may not run DCQCN"]), (1, 1, []), (0, 0, [])):
        given = {"roce_cc_legacy_dcqcn": legacy, "user_programmable_cc": programmable}
        assert [each.what for each in checks.algorithm(NicSettings(given, "nic"))] == what
        del given["roce_cc_legacy_dcqcn"]
        assert len(list(checks.algorithm(NicSettings(given, "nic")))) == programmable
    assert not list(checks.next_boot(None)) + list(checks.next_boot(NicSettings({}, "nic")))
    (boot,) = checks.next_boot(NicSettings({}, "nic", pending={"rpg_gd": (11.0, 7.0)}))
    assert "rpg_gd 11 -> 7" in boot.why
    for name, most in (("rpg_byte_reset", 2**15 - 1), ("rpg_ai_rate", 2**17 - 1)):
        assert not list(checks.nic(port(), NicSettings({name: float(most)}, "nic"), quiet))
        (wide,) = checks.nic(port(), NicSettings({name: most + 1.0}, "nic"), quiet)
        assert wide.apply == (Change("nic", f"{name.upper()}_P1", 0 if name == "rpg_byte_reset" else most),)


def test_least_rates_that_overload_a_port() -> None:
    """0.999 of 100 Gb/s: 9990 flows at 10 Mb/s fill it, 9989 do not. Then 9 are low enough; of 100 000, none is."""
    slow = dataclasses.replace(SCHEME, min_rate=fc.units.Rate(1.25e6))
    assert not list(checks.least_rates(port(), slow, 9989))
    (found,) = checks.least_rates(port(), slow, 9990)
    assert found.apply == (Change("nic", "RPG_MIN_RATE_P1", 10),)
    (found,) = checks.least_rates(port(), slow, 10_000)
    assert found.apply == (Change("nic", "RPG_MIN_RATE_P1", 9),)
    (found,) = checks.least_rates(port(), slow, 100_000)
    assert found.apply == ()
    assert "99900 flows or fewer" in found.suggest


def ran(used: float | None, low: float, high: float, **more: Any) -> dict[str, Any]:
    queue = {"mean": None if used is None else (low + high) / 2, "p5": low, "p95": high}
    base = {"utilisation": used, "utilisation_se": 0.005, "queue_bytes": queue, "seeds": 8, "above_xoff": 0.0}
    base |= {"engine": "hybrid"}
    return base | {"window_s": [0.05, 0.1]} | more


def test_how_flows_behave() -> None:
    """Less than 0.98 by more than two errors; below Kmin and in the upper half of the ramp in turn; beyond XOFF."""
    red = fc.RED(10e3, 30e3, 0.1)

    def said(found: dict[str, Any]) -> list[str]:
        return [each.what for each in behaviour(found, 8, red)]

    settle, idle, swing = "the flows settle", "the link is left idle", "the queue keeps oscillating"
    pause = "PFC pauses the senders"
    for used, low, high, what in (
        (1.0, 10e3, 40e3, settle), (1.0, 9e3, 20e3, settle), (1.0, 9e3, 20.1e3, swing),
        (0.971, 12e3, 20e3, settle), (0.969, 12e3, 20e3, idle), (0.9, 9e3, 40e3, idle),
    ):  # fmt: skip
        assert said(ran(used, low, high)) == [what]
    assert said(ran(0.979, 12e3, 20e3, utilisation_se=None)) == [idle]
    assert said(ran(0.981, 12e3, 20e3, utilisation_se=None)) == [settle]
    assert said(ran(1.0, 12e3, 20e3, above_xoff=0.0011)) == [settle, pause]
    assert said(ran(1.0, 12e3, 20e3, above_xoff=0.001)) == [settle]
    assert said(ran(1.0, 12e3, 20e3, above_xoff=None)) == [settle]
    assert said(ran(1.0, 12e3, 20e3, window_s=[0.0025, 0.005])) == [pause]
    assert "not stay finite" in said(ran(None, 0, 0))[0]


def test_packets_have_the_last_word() -> None:
    """Utilisation within 0.03 and two errors, high queues within half as much again and ten packets, either way."""
    hybrid = ran(0.95, 5e3, 100e3)

    def said(used: float | None, high: float, drops: float = 0.0) -> list[str]:
        found = ran(used, 5e3, high, drops=drops, pfc_pauses=0.0)
        return [each.what for each in after_packets([], hybrid, found, 1e3, lambda figures: [])]

    agree, differ = ["packet runs agree"], ["packets say otherwise"]
    for used, high, what in (
        (0.989, 100e3, agree), (0.911, 100e3, agree), (0.991, 100e3, differ), (0.909, 100e3, differ),
        (0.95, 160e3, agree), (0.95, 160.1e3, differ), (0.95, 60.1e3, agree), (0.95, 59.9e3, differ),
    ):  # fmt: skip
        assert said(used, high) == what, (used, high)
    assert said(0.95, 100e3, drops=0.1) == ["packets are lost"]
    assert said(None, 100e3) == []
    assert [each.severity for each in after_packets([], hybrid, {"reason": "no"}, 1e3, lambda figures: [])] == ["ok"]


def test_a_watchdogs_times() -> None:
    """From the ends of what SONiC takes, and not below the interval at which it looks."""
    assert Watchdog("drop", "200", "200", "200").faults == ()
    assert len(Watchdog("drop", "199", "200", "200").faults) == 1
    for given in (
        ("drop", "99", "200", ""),
        ("drop", "200", "x", ""),
        ("stop", "200", "200", ""),
        ("drop", "5001", "200", ""),
    ):
        assert len(Watchdog(*given).faults) == 1, given


@pytest.mark.parametrize(
    ("detection", "poll", "faults"),
    [
        ("200", "100", 0),
        ("200", "99", 1),
        ("3000", "3000", 0),
        ("5000", "3001", 1),
        ("200", "200", 0),
        ("199", "200", 1),  # shorter than the interval
        ("200", "x", 1),
        ("200", "-200", 1),
        ("200", "9999999999", 1),  # no number of milliseconds: compared with nothing
        ("200", "999999999", 2),
    ],
)
def test_a_watchdog_looks_often_enough_and_not_too_often(detection: str, poll: str, faults: int) -> None:
    for sonic in (True, False):  # other systems' times have other ranges, and are compared with it too
        assert len(Watchdog("drop", detection, "200", poll, sonic=sonic).faults) == faults


@pytest.mark.parametrize(
    ("detection", "poll", "often"),
    [("6000", "200", False), ("6000", "201", True), ("200", "99", True), ("150", "200", True), ("99", "", False)],
)
def test_an_interval_above_that_of_the_advice_is_set_with_it(detection: str, poll: str, often: bool) -> None:
    """A queue is dealt with after 200 ms: a switch that looks every 200 ms may stay so."""
    watched = port(watchdog=Watchdog("drop", detection, "200", poll), lossless=True, watched_priorities=None)
    found = words(lossless.watchdog(watched))["the switch does not take the PFC watchdog"]
    assert [change.path for change in found.apply[3:]] == ["/PFC_WD/GLOBAL/POLL_INTERVAL"] * often
    assert {change.value for change in found.apply} == {"drop", "200"}
    assert ("POLL_INTERVAL 200 in PFC_WD|GLOBAL" in found.suggest) == often


def test_a_watchdog_that_is_fine_says_what_it_does() -> None:
    def said(**more: Any) -> list[str]:
        return [each.why for each in lossless.watchdog(port(lossless=True, watched_priorities=(3,), **more))]

    (drops,), (forwards,) = (said(watchdog=Watchdog(each, "300", "200")) for each in ("drop", "forward"))
    assert drops == "after 300 ms of PAUSE the switch drops what waits"
    assert "after 300 ms" in forwards
    assert "may lose packets" in forwards
    (alert,) = lossless.watchdog(port(lossless=True, watched_priorities=(3,), watchdog=Watchdog("alert", "200", "200")))
    assert alert.what == "the PFC watchdog only reports"
    assert said(watchdog=None, watchdog_unsaid=True) == []
    assert len(said(watchdog=None)) == 1
    assert not list(lossless.watchdog(port(lossless=False, watchdog=None)))


@pytest.mark.parametrize(
    ("pause", "kmin", "value"), [(33_268.0, 9e3, "8316"), (33_264.0, 9e3, "36001"), (40_000.0, 10e3, "9999")]
)
def test_the_least_kmin_is_still_advised_below_a_fixed_pause(pause: float, kmin: float, value: str) -> None:
    """Over four ports 33 268 B are 8317, below which two packets of 4158 B just fit; else PAUSE has to come later."""
    made = port(kmin=kmin, static_th=pause, dynamic_th=None, ports=4, buffer_size=1e6, lossless=True)
    (found,) = checks.buffers(made)
    assert found.what == "PFC can pause before ECN marks"
    assert [change.value for change in found.apply] == [value]
    assert ("lower green_min_threshold" in found.suggest) == (value != "36001")


@pytest.mark.parametrize(("buffer", "value"), [(1_199_216.0, ["8316"]), (1_199_168.0, [])])
def test_the_least_kmin_is_still_advised_by_section_4(buffer: float, value: list[str]) -> None:
    """Beta 2, 4 ports and 25 KB: 2 (B - 800 KB)/96 is 8317 B, and 8316 with 48 B less."""
    made = port(buffer_size=buffer, headroom=25e3, ports=4, dynamic_th=1.0, kmin=9e3, lossless=True)
    (found,) = checks.buffers(made)
    assert [change.value for change in found.apply if "green_min" in change.path] == value
    assert found.suggest.startswith("raise dynamic_th to ") is not bool(value)  # and no pool before that
    assert ("lower green_min_threshold to 8316 or less" in found.suggest) == bool(value)


def test_traffic_of_a_queue() -> None:
    """DSCP 26 leads to queue 3 and 48 to queue 6; PFC of the queue's priority watches group 3."""
    led = TrafficClass((3,), (26,), (3,), 3, ((26, 3), (48, 6)), "D", "G")

    def said(nic: dict[str, float] | None = None, lossless_: bool = True, **more: Any) -> dict[str, Finding]:
        made = port(queue=3, lossless=lossless_, traffic=dataclasses.replace(led, **more))
        return words(lossless.traffic(made, None if nic is None else NicSettings(nic, "nic")))

    assert [*said()] == ["DSCPs lead to this queue"]
    assert [*said({"cnp_dscp": 48.0})] == [*said({})] == [*said({"cnp_dscp": 7.0})] == ["DSCPs lead to this queue"]
    assert [*said({"cnp_dscp": 26.0})] == ["DSCPs lead to this queue", "CNPs wait behind data"]
    swapped = {"pauses": ((3, 4, (3,)), (4, 3, (4,))), "pfc_queue_map": "P", "wanted_group": 4}
    stray = said(**swapped)["PAUSE stops another queue"]
    assert stray.why.startswith("a PAUSE of priority 3 stops queue 4, but what it is sent for goes to queue 3: ")
    assert stray.suggest == "set 3 to 3 and 4 to 4 in MAP_PFC_PRIORITY_TO_QUEUE|P"
    (other,) = said(groups=(3, 2)).values()
    assert (other.severity, other.what) == ("bad", "PFC watches another priority group")
    assert [(change.path, change.value) for change in other.apply] == [("/TC_TO_PRIORITY_GROUP_MAP/G/3", "3")]
    assert said(groups=(2,), group_map="")["PFC watches another priority group"].apply == ()
    assert [*said(groups=(2,), lossless_=False)] == ["DSCPs lead to this queue"]
    (none,) = said(dscps=(), classes=(4,)).values()
    assert (none.severity, none.what) == ("bad", "no DSCP leads to this queue")
    assert "traffic class 4" in none.suggest
    assert "all go to queue 3, 6" in none.why
    assert "traffic class 3" in said(dscps=(), classes=())["no DSCP leads to this queue"].suggest
    lacking = (("TC_TO_QUEUE_MAP", "Q"),)
    assert [*said(dscps=None)] == ["DSCPs are not checked"]
    assert [*said(dscps=None, lacking=lacking)] == ["maps are named that the file lacks"]
    assert [*said(lacking=lacking)] == ["maps are named that the file lacks", "DSCPs lead to this queue"]
    assert not list(lossless.traffic(port(traffic=None), None))


def test_headroom_that_is_advised_is_whole_kilobytes() -> None:
    """300 m: 1024 + 9100 + 37 879 + 819.2 + 25 216 B are 72.3 KiB, so 73; what is a whole number stays."""
    (found,) = lossless.headroom(port(cable=300.0, mtu=9100.0, headroom=74_037.0, rate=fc.units.Rate(12.5e9)))
    assert found.severity == "bad"
    assert [change.value for change in found.apply] == [str(73 * 1024)]
    (fits,) = lossless.headroom(port(cable=300.0, mtu=9100.0, headroom=74_038.0, rate=fc.units.Rate(12.5e9)))
    assert fits.severity == "ok"
    (unknown,) = lossless.headroom(port(cable=None, headroom=1.0))
    assert unknown.what == "headroom not checked"
    (switched,) = lossless.headroom(port(headroom=None, dynamic_buffers=True))
    assert switched.severity == "ok"
    assert not [*lossless.headroom(port(headroom=None)), *lossless.headroom(port(lossless=False, headroom=1.0))]


@pytest.mark.parametrize(
    ("speed", "quanta"),
    [(10, 67), (17, 67), (18, 80), (32, 80), (33, 118), (50, 147), (300, 453), (301, 905), (800, 905)],
)
def test_pause_is_obeyed_as_at_the_nearest_known_speed(speed: float, quanta: int) -> None:
    assert needed(speed * 0.125e9, 0.0, 0.0)[0] == pytest.approx(1024 + 819.2 + quanta * 64)


def test_headroom_by_hand() -> None:
    """100 Gb/s, 5 m, 9100 B: 1024 B, a packet, 631 B on the cable, 819.2 B in the chip, 394 quanta of 64 B."""
    way = 9100 + 2 * 5 / 1.98e8 * 12.5e9 + 819.2 + 394 * 64
    assert needed(12.5e9, 5.0, 9100.0) == pytest.approx((1024 + way, 1024 + way * 144 / 64))
    assert needed(11e9, 0.0, 0.0)[0] == pytest.approx(1024 + 819.2 + 394 * 64)  # 88 Gb/s: the nearest that is known


def test_headroom_of_just_what_the_cable_needs_fits() -> None:
    made = port(cable=300.0)
    least = needed(made.rate, 300.0, made.mtu)[0]
    for xoff, kind in ((least, "headroom fits the cable"), (least - 1, "headroom is too small for the cable")):
        assert kind in words(lossless.headroom(dataclasses.replace(made, headroom=xoff)))


def test_pause_at_kmin_comes_before_it_at_any_port() -> None:
    for kmin, says in ((299_999.0, False), (300e3, True)):
        (found,) = checks.buffers(port(kmin=kmin, static_th=300e3, dynamic_th=None, ports=4, lossless=True))
        assert ("comes before Kmin" in found.why) == says


def test_a_switch_that_is_not_told_to_mark_green_is_said_to_be_so() -> None:
    """False, or not given; and nothing where it is true, or where the profile does not mark."""
    at = lambda **more: words(checks.marking(port(lossless=True, kmin=10e3, kmax=20e3, **more)))  # noqa: E731
    what = "green packets may go unmarked"
    assert "wred_green_enable is false" in at(wred_green=False)[what].why
    assert "wred_green_enable is not given" in at(wred_green=None)[what].why
    assert not at(wred_green=True)
    assert [*at(wred_green=False, ecn=False)] == ["ECN is off"]


@pytest.mark.parametrize(
    ("kmin", "kmax", "pmax", "whats"),
    [
        (10e3, 20e3, 0.01, []),
        (20e3, 20e3, 0.01, ["marking is a step marking"]),
        (20_001.0, 20e3, 0.01, ["Kmax is below Kmin"]),
        (10e3, 20e3, 0.0, ["Pmax is 0"]),
        (20e3, 20e3, 0.0, ["marking is a step marking", "Pmax is 0"]),
        (None, 20e3, 0.0, []),
    ],
)
def test_thresholds_in_their_order(kmin: float | None, kmax: float, pmax: float, whats: list[str]) -> None:
    assert [*words(checks.marking(port(lossless=True, wred_green=True, kmin=kmin, kmax=kmax, pmax=pmax)))] == whats


def test_a_listing_says_how_many_more() -> None:
    assert (listing(["a", "b"], 2), listing(["a", "b", "c"], 2)) == ("a, b", "a, b and 1 more")


def test_entries_of_a_dump_with_a_field_of_their_own_called_type_stay_whole() -> None:
    """A running database wraps fields in ``type`` and ``value``; an entry may have either by itself."""
    port = {"PORT|Ethernet0": {"type": "hash", "value": {"speed": "1"}}}
    for own in ({"type": "dynamic"}, {"value": "7"}):
        (tables,) = configurations(port | {"POOL|a": own}).values()
        assert (tables["POOL"]["a"], tables["PORT"]["Ethernet0"]) == (own, {"speed": "1"})


@pytest.mark.parametrize(("share", "said"), [(1.0, "100"), (0.996, "100"), (0.5, "50"), (0.0123, "1.2")])
def test_shares_of_time_are_whole_percents(share: float, said: str) -> None:
    """In two digits alone the whole time is 1e+02 %."""
    assert _percent(share) == said


@pytest.mark.parametrize("up", [True, False])
def test_a_port_that_is_down_is_headed_so(up: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """The heading says it, also where all ports of a switch are down."""
    print_audit(Audit(port(up=up), None, SCHEME, [], [], None, 8, names=("Ethernet0",)))
    assert ("down but audited as if up" in " ".join(capsys.readouterr().out.split())) is not up


@pytest.mark.parametrize("changes", [{"ecn": False}, {"pmax": 0.0}])
def test_a_queue_that_does_not_mark_marks_before_no_pause(changes: dict[str, Any]) -> None:
    """Catches `ECN marks before PFC pauses` beside `ECN is off`."""
    fine = {"kmin": 1e3, "kmax": 2e3, "buffer_size": 1e9}
    assert words(checks.buffers(port(**fine)))["ECN marks before PFC pauses"].severity == "ok"
    assert not list(checks.buffers(port(**fine, **changes)))
    assert not list(checks.buffers(port(**fine, static_th=1e6, **changes)))


def test_thresholds_of_nothing_are_not_said_to_be_lower() -> None:
    config = ConfigDB(SAMPLE)
    assert words(checks.scaling(port(kmin=0.0, kmax=1.0), config, 4e-6)).keys() == {"thresholds are lower than others'"}
    assert not list(checks.scaling(port(kmin=0.0, kmax=0.0), config, 4e-6))


def test_advice_for_each_priority_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Queues of which the same is found stand together: catches advice that names the first alone."""
    one, other = (
        Audit(
            port(queue=queue, priority=queue),
            *(None, SCHEME, [], [Finding("bad", "PFC is off", "why", f"add {queue}")], None, 8),
            names=("Ethernet0",),
        )
        for queue in (3, 4)
    )
    print_audit(dataclasses.replace(one, others=(other,)))
    said = capsys.readouterr().out
    assert "-> add 3" in said
    assert "-> add 4" in said


@pytest.mark.parametrize(("ports", "said"), [(4, "raise dynamic_th to "), (40, "enlarge the pool"), (64, "no pool is")])
def test_a_pool_that_no_switch_has_is_not_advised(ports: int, said: str) -> None:
    """Catches `enlarge the pool` before a dynamic_th that would do, and beyond what chips have."""
    made = {"buffer_size": 30e6, "headroom": 190.5e3, "kmin": 200e3, "kmax": 800e3, "lossless": True}
    (found,) = checks.buffers(port(**made, ports=ports, dynamic_th=-7.0 if ports == 4 else 3.0))
    assert found.suggest.startswith(said)
    assert [each.path.rpartition("/")[2] for each in found.apply] == (["dynamic_th"] if ports == 4 else [])


def test_thresholds_that_are_exchanged_get_no_second_advice() -> None:
    assert list(checks.buffers(port(kmin=8e5, lossless=True)))
    assert not list(checks.buffers(port(kmin=8e5, kmax=2e5, lossless=True)))
