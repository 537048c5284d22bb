"""What NVIDIA's NICs do beyond the paper, worked out by hand, in both engines that have the algorithm itself.

The rules run as plain Python on a flow of their own, on each engine's clock, with CNPs, bytes and timers at times that
are written here. Times are microseconds, rates of a line that carries 1000. Both engines follow the same rules, so what
holds them is the number that stands in each case. Tolerance, stated before measuring: rounding, 1e-12.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.hybrid import layout as hybrid_layout
from fluidcc.engines.packet import layout as packet_layout
from fluidcc.engines.packet.calendar import SHIFT, new_calendar, open_slot
from fluidcc.engines.packet.calendar import pop as pop_event
from fluidcc.scenario.parameters import resolve
from fluidcc.schemes.dcqcn import hybrid, packet, reaction_point
from fluidcc.units import Rate
from tests.engines.packet.plain import plain

US, LINE, BYTES = 1e-6, 1000.0, 50_000  # s; bytes/s; of the counter, which nothing but `Sender.count` reaches


class Packets:
    """A flow of the packet engine; its timers are in a calendar of its own."""

    def __init__(self, parameters: fc.DCQCN, rate: float) -> None:
        self.flow = packet_layout.records(packet_layout.FLOW, 1)[0]
        self.me = np.zeros(1, packet.STATE).view(np.recarray)[0]
        self.flow.line_rate, self.flow.rate, self.flow.state = LINE, rate, 1
        packet.init_state(parameters, self.flow, self.me)
        core = packet_layout.records(packet_layout.CORE, 1)
        self.sim = SimpleNamespace(core=core, calendar=new_calendar(core[0], 64, 0.0))
        self._call("begin")

    def _call(self, rule: str, *more: Any) -> None:
        plain(getattr(packet, rule))(self.sim, 0, self.flow, self.me, *more)

    def until(self, time: float) -> None:
        """Timers that run out before a time, and at it."""
        core, calendar = self.sim.core[0], self.sim.calendar
        while core.pending:
            if core.due == 0:
                plain(open_slot)(core, calendar, packet_layout.NEVER)
            if calendar[0].time > round(time * 1e6):
                break
            core.now, event = calendar[0].time, int(calendar[0].event)
            plain(pop_event)(core, calendar)
            self._call("on_timer", event & ((1 << SHIFT) - 1))
        core.now = round(time * 1e6)

    def cnp(self, time: float) -> None:
        """A CNP; timers that run out with it come later, which is the other order than the hybrid's calendar."""
        self.until(time - 1e-6)
        self.sim.core[0].now = round(time * 1e6)
        self._call("on_cnp", SimpleNamespace(undetermined=0))

    def count(self, time: float) -> None:
        """The byte counter comes round."""
        self.until(time)
        plain(packet.on_sent)(self.flow, self.me, self.flow.counter - self.flow.gone)

    @property
    def alpha(self) -> float:
        samples = np.zeros((1, 1, 5))
        plain(packet.observe)(self.sim.core[0], self.flow, self.me, samples, 0, 0)
        return float(samples[0, 0, 4])


class Hybrid:
    """A flow of the hybrid engine."""

    def __init__(self, parameters: fc.DCQCN, rate: float) -> None:
        self.flow = hybrid_layout.records(hybrid_layout.FLOW, 1)[0]
        self.me = np.zeros(1, hybrid.STATE).view(np.recarray)[0]
        self.flow.line_rate, self.flow.rate, self.now = LINE, rate, 0.0
        self.flow.timer = self.flow.counter = math.inf
        hybrid.init_state(parameters, self.flow, self.me)
        plain(hybrid.begin)(self.flow, self.me, 0.0)

    def until(self, time: float) -> None:
        """Timers that run out before a time, and at it."""
        while self.flow.timer <= time * US * (1 + 1e-12):
            self.now = float(self.flow.timer)
            plain(hybrid.on_timer)(self.flow, self.me, self.now)
        self.now = time * US

    def cnp(self, time: float) -> None:
        """A CNP; of what comes at the same time it is the last, as in the calendar."""
        self.until(time)
        plain(hybrid.on_cnp)(self.flow, self.me, self.now)

    def count(self, time: float) -> None:
        """The byte counter comes round."""
        self.until(time)
        self.flow.sent = self.flow.counter
        plain(hybrid.on_bytes)(self.flow, self.me)

    @property
    def alpha(self) -> float:
        samples = np.zeros((1, 1, 4))
        plain(hybrid.observe)(self.me, samples, 0, 0, self.now)
        return float(samples[0, 0, 3])


Sender = Packets | Hybrid


@pytest.fixture(params=[Packets, Hybrid])
def sender(request: pytest.FixtureRequest) -> Any:
    """A flow with these parameters, and the paper's else; alpha stands still unless a case is about it."""

    def make(rate: float = LINE, **given: Any) -> Sender:
        chosen = {"timer": 1.0, "alpha_timer": 1.0, "g": 1e-300, "initial_alpha": 1.0, "byte_counter": BYTES}
        chosen |= {"rate_ai": 0.0, "rate_hai": 0.0, "fast_recovery_steps": 5}
        rates = ("rate_on_first_cnp", "max_rate", "min_rate", "rate_ai", "rate_hai")
        chosen |= {name: Rate(value) if name in rates else value for name, value in given.items()}
        return request.param(resolve(fc.DCQCN(**chosen)), rate)

    return make


def rates(flow: Sender) -> tuple[float, float]:
    """R_C and R_T."""
    return float(flow.flow.rate), float(flow.me.target)


def near(value: float) -> Any:
    return pytest.approx(value, rel=1e-12)


def exactly(*values: float) -> Any:
    return pytest.approx(values, rel=1e-12)


# -- the target ----------------------------------------------------------------------------------------------------


def test_every_cut_lowers_the_target_in_the_paper(sender: Any) -> None:
    flow = sender()
    flow.cnp(10)
    assert rates(flow) == exactly(500, 1000)
    flow.cnp(20)
    assert rates(flow) == exactly(250, 500)


def test_without_the_clamp_only_the_first_cut_after_an_increase_does(sender: Any) -> None:
    flow = sender(clamp_tgt_rate=False, timer=100 * US)
    for time in (10, 20, 30):
        flow.cnp(time)
    assert rates(flow) == exactly(125, 1000)  # the paper's target would be 250
    flow.until(130)
    assert rates(flow) == exactly(562.5, 1000)  # an increase by the timer, half of the gap
    flow.cnp(140)
    assert rates(flow) == exactly(281.25, 562.5)
    flow.cnp(150)
    assert rates(flow) == exactly(140.625, 562.5)
    flow.count(160)
    flow.cnp(170)
    assert rates(flow) == exactly(351.5625 / 2, 351.5625)


@pytest.mark.parametrize(
    ("after_time", "looks_at", "lowered"),
    [(True, "any-increase", "t b bt tb"), (False, "any-increase", "b bt tb"), (False, "last-increase", "b tb")],
)
def test_which_increases_count(sender: Any, after_time: bool, looks_at: str, lowered: str) -> None:
    """By the timer (t) or by bytes (b), one or two since the last cut."""
    when = {"": [], "t": [60], "b": [20], "bt": [20, 60], "tb": [60, 65]}  # the timer runs out at 60
    for increases, times in when.items():
        flow = sender(
            clamp_tgt_rate=False, clamp_tgt_rate_after_time_inc=after_time, clamp_looks_at=looks_at, timer=50 * US
        )
        flow.cnp(10)
        for time, kind in zip(times, increases, strict=True):
            (flow.until if kind == "t" else flow.count)(time)
        before, target = rates(flow)
        assert target == 1000
        flow.cnp(70 if "t" in increases else 30)
        assert rates(flow)[1] == near(before if increases in lowered.split() else 1000), increases


# -- alpha -----------------------------------------------------------------------------------------------------------


def test_alpha_moves_once_a_slot_whatever_comes(sender: Any) -> None:
    """g = 1/4, slots of 1 us from the first CNP at 100 on. That one sets alpha and is not counted again."""
    flow = sender(alpha_update="slotted", alpha_timer=US, g=0.25, initial_alpha=0.8)
    flow.until(99)
    assert flow.alpha == 0.8  # the paper's would have decayed 99 times
    flow.cnp(100)
    assert rates(flow) == exactly(600, 1000)
    assert flow.alpha == 0.8
    flow.until(101)
    assert flow.alpha == near(0.6)
    flow.cnp(102.3)  # two in one slot count once, and none restarts it
    assert flow.alpha == near(0.45)
    flow.cnp(102.7)
    assert rates(flow) == exactly(600 * (1 - 0.225) ** 2, 600 * (1 - 0.225))
    flow.until(103)
    assert flow.alpha == near(0.45 * 0.75 + 0.25)
    flow.until(105.5)
    assert flow.alpha == near(0.5875 * 0.75**2)
    flow.cnp(110)
    assert flow.alpha == near(0.5875 * 0.75**7)


def test_a_slot_ends_before_a_cnp_at_the_same_time(sender: Any) -> None:
    flow = sender(alpha_update="slotted", alpha_timer=US, g=0.25, initial_alpha=1.0)
    flow.cnp(0.5)
    flow.cnp(1.5)
    assert rates(flow) == exactly(500 * (1 - 0.375), 500)  # the slot with nothing but the first has ended: 3/4
    assert flow.alpha == 0.75
    flow.cnp(2.5)
    assert flow.alpha == near(0.75 * 0.75 + 0.25)  # by the CNP at 1.5


def test_cnps_that_come_with_every_fourth_slot(sender: Any) -> None:
    """A CNP each 4 us, slots of 1 us: alpha before a cut is g (1-g)^3/(1 - (1-g)^4) in the end, by hand."""
    g = 5 / 1024
    flow = sender(alpha_update="slotted", alpha_timer=US, g=g, min_rate=1e-3)
    for i in range(4000):
        flow.cnp(4.0 * i + 7)
    before = flow.alpha
    flow.cnp(4.0 * 4000 + 7)
    assert flow.alpha == pytest.approx(g * (1 - g) ** 3 / (1 - (1 - g) ** 4), rel=1e-12)
    assert before == pytest.approx(flow.alpha, rel=1e-12)


def test_cnps_restart_alpha_in_the_paper(sender: Any) -> None:
    flow = sender(alpha_timer=2 * US, g=0.25)
    flow.until(5)
    assert flow.alpha == near(0.75**2)  # from the start on
    flow.cnp(5)
    flow.until(6.9)
    assert flow.alpha == near(0.75**3 + 0.25)
    flow.until(7.1)
    assert flow.alpha == near((0.75**3 + 0.25) * 0.75)


@pytest.mark.parametrize("update", ["restarted", "slotted"])
def test_looks_at_alpha_change_no_digit_of_it(sender: Any, update: str) -> None:
    """And of periods that are multiplied one by one each is counted once, however often alpha is looked at."""
    looked, left = (sender(alpha_update=update, alpha_timer=US, g=1 / 3, initial_alpha=0.9) for _ in range(2))
    for flow in (looked, left):
        flow.cnp(1.5)
    for k in range(200):
        looked.until(5 + 0.3 * k)
        assert 0 < looked.alpha < 0.9
    if update == "restarted":
        assert looked.me.periods == 63  # from 1.5 to 64.7
    for flow in (looked, left):
        flow.until(70)
    assert looked.alpha == left.alpha
    for flow in (looked, left):
        flow.cnp(70.2)
    assert rates(looked) == rates(left)


# -- when ------------------------------------------------------------------------------------------------------------


def test_a_cut_waits_for_the_end_of_the_period(sender: Any) -> None:
    """10 us: one cut in each, and CNPs that wait together cut once."""
    flow = sender(rate_decrease_interval=10 * US)
    flow.cnp(100)
    assert rates(flow) == exactly(500, 1000)
    flow.cnp(104)
    flow.cnp(106)
    flow.until(109.9)
    assert rates(flow) == exactly(500, 1000)
    flow.until(110)
    assert rates(flow) == exactly(250, 500)
    flow.until(200)
    assert rates(flow) == exactly(250, 500)


@pytest.mark.parametrize(("gains", "rate"), [((1.0, 0.5), 250.0), ((0.5, 1.0), 250.0), ((0.5, 0.5), 375.0)])
def test_of_cnps_that_wait_for_one_cut_the_hardest_counts(gains: tuple[float, float], rate: float) -> None:
    """A gain below 1 is of TCD's UE; the cut before was whole, and does not count any more."""
    flow = Hybrid(resolve(fc.DCQCN(rate_decrease_interval=10 * US, timer=1.0, alpha_timer=1.0, g=1e-300)), LINE)
    for time, gain in zip((100.0, 104.0, 106.0), (1.0, *gains), strict=True):
        flow.until(time)
        plain(reaction_point.on_cnp)(flow.flow, flow.me, flow.now, gain)
    assert flow.flow.rate == near(500.0)
    flow.until(110)
    assert flow.flow.rate == near(rate)


def test_a_period_ends_before_a_cnp_at_the_same_time(sender: Any) -> None:
    flow = sender(rate_decrease_interval=10 * US)
    flow.cnp(100)
    flow.cnp(110)  # nothing waits, and the period is over: at once
    assert rates(flow)[0] == 250
    flow.cnp(115)
    flow.cnp(120)  # the cut that waits is made, and this one waits for the end of the next
    assert rates(flow)[0] == 125
    flow.until(129.9)
    assert rates(flow)[0] == 125
    flow.until(130.1)
    assert rates(flow)[0] == 62.5


def test_rounding_of_the_hybrids_times_changes_no_order() -> None:
    """A CNP 0.3 ps before the end of the period comes after it, as with packets, whose times are whole picoseconds."""
    flow = Hybrid(resolve(fc.DCQCN(rate_decrease_interval=10 * US, timer=1.0, alpha_timer=1.0, g=1e-300)), LINE)
    flow.cnp(100)
    flow.cnp(104)
    plain(hybrid.on_cnp)(flow.flow, flow.me, 110 * US - 3e-13)
    assert rates(flow) == exactly(250, 500)
    flow.until(119.9)
    assert rates(flow) == exactly(250, 500)
    flow.until(120.1)
    assert rates(flow) == exactly(125, 250)


@pytest.mark.parametrize("again", [9, 12])
def test_a_cut_that_is_due_takes_the_increase_timers_place(sender: Any, again: float) -> None:
    """Both after 10 us; the cut restarts the timer, so that no increase has come, whichever was planned first."""
    flow = sender(rate_decrease_interval=10 * US, timer=10 * US, clamp_tgt_rate=False)
    flow.cnp(5)
    flow.cnp(again)
    flow.until(15)
    assert rates(flow) == exactly(250, 1000)
    flow.until(24.9)
    assert rates(flow) == exactly(250, 1000)
    flow.until(25)
    assert rates(flow) == exactly(625, 1000)


def test_an_increase_while_a_cut_waits(sender: Any) -> None:
    """Bytes go on being counted; the cut then lowers the target to the rate of that time."""
    flow = sender(rate_decrease_interval=10 * US, clamp_tgt_rate=False)
    flow.cnp(100)
    flow.cnp(102)
    flow.count(105)
    assert rates(flow) == exactly(750, 1000)
    flow.until(110)
    assert rates(flow) == exactly(375, 750)


def test_alpha_of_a_cut_that_waited_is_that_of_the_cut(sender: Any) -> None:
    flow = sender(rate_decrease_interval=4 * US, alpha_update="slotted", alpha_timer=US, g=0.25)
    flow.cnp(10)
    flow.cnp(11.5)
    flow.until(14)
    alpha = (0.75 * 0.75 + 0.25) * 0.75**2  # slots end at 11 (nothing), 12 (the second), 13 and 14 (nothing)
    assert rates(flow) == exactly(500 * (1 - alpha / 2), 500)


# -- how far ---------------------------------------------------------------------------------------------------------


def test_the_first_cnp_sets_the_rate(sender: Any) -> None:
    flow = sender(rate_on_first_cnp=300.0)
    flow.cnp(10)
    assert rates(flow) == exactly(300, 300)
    flow.cnp(20)
    assert rates(flow) == exactly(150, 300)


def test_the_first_cnp_raises_no_rate(sender: Any) -> None:
    flow = sender(rate=200.0, rate_on_first_cnp=300.0)
    flow.cnp(10)
    assert rates(flow) == exactly(200, 200)


def test_the_first_cnp_opens_a_period(sender: Any) -> None:
    flow = sender(rate_on_first_cnp=300.0, rate_decrease_interval=10 * US)
    flow.cnp(10)
    flow.cnp(12)
    assert rates(flow) == exactly(300, 300)
    flow.until(20)
    assert rates(flow) == exactly(150, 300)


def test_a_largest_rate_holds_start_and_increases(sender: Any) -> None:
    flow = sender(max_rate=600.0, timer=10 * US, rate_ai=250.0, fast_recovery_steps=0)
    assert rates(flow) == exactly(600, 600)
    flow.cnp(5)
    flow.until(15)
    assert rates(flow) == exactly(450, 600)  # a target of 850, held at 600
    flow.until(25)
    assert rates(flow) == exactly(525, 600)


def test_a_gain_above_one_is_held_by_the_largest_cut(sender: Any) -> None:
    """rpg_gd 9 cuts by twice alpha, and rpg_min_dec_fac leaves half."""
    flow = sender(decrease_gain=2.0, max_decrease=0.5, initial_alpha=0.2)
    flow.cnp(10)
    assert rates(flow)[0] == near(600)
    flow = sender(decrease_gain=2.0, max_decrease=0.5, initial_alpha=0.3)
    flow.cnp(10)
    assert rates(flow)[0] == near(500)


def test_hyper_increase_begins_once_both_stages_are_through(sender: Any) -> None:
    """F = 1: two by bytes and two by the timer since the last cut, then R_HAI."""
    flow = sender(fast_recovery_steps=1, rate_ai=1.0, rate_hai=100.0, hyper_increase=True, timer=10 * US)
    flow.cnp(10)
    flow.cnp(12)  # R_C 250, R_T 500
    flow.count(13)  # recovery: 375
    flow.count(14)  # additive: R_T 501
    assert rates(flow)[1] == near(501)
    flow.until(22)  # additive: by the timer there was but one
    assert rates(flow)[1] == near(502)
    flow.until(32)
    assert rates(flow)[1] == near(602)


def test_the_least_rate_holds_a_first_rate_too(sender: Any) -> None:
    flow = sender(rate_on_first_cnp=10.0, min_rate=50.0)
    flow.cnp(10)
    assert rates(flow) == exactly(50, 50)
