"""DCQCN's theorems on fixed points (section 5.1), evaluated on those of the fluid model and of `fluidcc.equilibrium`.

At rest is where the fluid model's own slopes are 0. Rates are in packets/s as in Coq, queues in bytes; all are floats.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from fractions import Fraction
from typing import Any, NamedTuple

import jax.numpy as jnp
import pytest

import fluidcc as fc
from fluidcc.compiling.settings import our_settings
from fluidcc.contract.red import red
from fluidcc.contract.signals import Signals
from fluidcc.scenario.parameters import resolve
from fluidcc.schemes.dcqcn import PRESETS, fluid
from fluidcc.schemes.dcqcn.equilibrium import fixed_point, marking_at
from fluidcc.units import Rate
from tests.proofs.coq_statements import Example, defined, verdicts, within

Change = tuple[str, str] | None
SOLVED = within(1e-7)  # sides of an equation for p, whose root is good to about 1e-12
ROUNDED = within(1e-10)
RESTS = 1e-9  # of a rate, in its own time
UNIT = 1000.0  # bytes that stand for a packet in the fluid model here, whatever its size
LINE_RATE = 5e9  # bytes/s
KMIN, KMAX, PMAX = 5e3, 200e3, 0.01


class Settings(NamedTuple):
    """Settings in the order of Coq's record; data in packets."""

    line_rate: float
    cnp_interval: float
    alpha_interval: float
    timer: float
    byte_counter: float
    stages: float
    increase: float
    gain: float


def settings(packet: float, **changed: Any) -> Settings:
    """Return the settings of the preset ``paper``, that is of Table 14, for packets of so many bytes."""
    p: Any = resolve(dataclasses.replace(PRESETS["paper"][0], **changed))
    return Settings(
        LINE_RATE / packet,
        p.cnp_interval,
        p.alpha_timer,
        p.timer,
        p.byte_counter / packet,
        p.fast_recovery_steps,
        p.rate_ai / packet,
        p.g,
    )


def parameters(s: Settings) -> Any:
    """Make the scheme's parameters of settings."""
    return dataclasses.replace(
        resolve(PRESETS["paper"][0]),
        cnp_interval=s.cnp_interval,
        alpha_timer=s.alpha_interval,
        timer=s.timer,
        byte_counter=s.byte_counter * UNIT,
        fast_recovery_steps=s.stages,
        rate_ai=Rate(s.increase * UNIT),
        g=s.gain,
    )


@functools.cache
def slopes(s: Settings, p: float, alpha: float, R_T: float, R_C: float, r: float) -> tuple[float, float, float]:
    """Slopes of R_C, R_T and alpha by the fluid model, where the marks are of packets that were sent at r."""
    one = parameters(s)
    with our_settings():
        column = lambda value: jnp.full((1, 1), value)  # noqa: E731
        observed = fluid.feedback(one, Signals(column(p), column(r * UNIT), column(UNIT)))
        found = fluid.derivative(one, fluid.State(column(R_C * UNIT), column(R_T * UNIT), column(alpha)), observed)
    return float(found.rate[0, 0]) / UNIT, float(found.target_rate[0, 0]) / UNIT, float(found.alpha[0, 0])


def at_rest(s: Settings, N: float, p: float, alpha: float, R_T: float, R_C: float) -> bool:
    s = Settings(*map(float, s))
    if not (0 < p < 1 and math.isclose(N * R_C, s.line_rate, rel_tol=RESTS)):
        return False
    rate, target, slope = slopes(s, float(p), float(alpha), float(R_T), float(R_C), float(R_C))
    bounds = R_C / s.cnp_interval, R_C / s.cnp_interval, 1 / s.alpha_interval
    return all(abs(each) <= RESTS * bound for each, bound in zip((rate, target, slope), bounds, strict=True))


class Rest(NamedTuple):
    """A fixed point: settings, flows and what Coq's `at_rest` takes further."""

    s: Settings
    N: float
    p: float
    alpha: float
    R_T: float
    R_C: float


@functools.cache
def rest(s: Settings, N: float, *, beyond: float = 1.0) -> Rest:
    """Find where senders rest that share the line equally, by `marking_at`; no NIC bounds their targets.

    With so many times the marking alpha and targets rest, and the rate falls.
    """
    one, rate, free = parameters(s), s.line_rate / N * UNIT, 100 * s.line_rate * UNIT
    p = beyond * float(marking_at(one, rate, free, UNIT))
    found = fixed_point(one, rate, p, free, UNIT)
    return Rest(s, N, p, found.alpha, found.target_rate / UNIT, s.line_rate / N)


@functools.cache
def in_network(flows: int, packet: float, pmax: float = PMAX) -> Any:
    marking = fc.RED(KMIN, KMAX, pmax)
    return fc.equilibrium(fc.incast(flows, packet_size=packet, scheme=PRESETS["paper"][0], marking=marking))


FEW_BYTES = {"byte_counter": "150KB", "timer": "300us"}  # both counters matter
LITTLE = {"byte_counter": "150KB", "rate_ai": "40bps"}  # p is small


@functools.cache
def rests() -> list[Rest]:
    few, little = settings(1000.0, **FEW_BYTES), settings(1000.0, **LITTLE)
    some = [rest(settings(packet), n) for packet, n in ((1000.0, 1.0), (1000.0, 2.0), (1000.0, 15.0), (1500.0, 10.0))]
    return [*some, rest(few, 4.0), rest(little, 2.0)]


def cube_root(of: Rest) -> float:
    """Return ECN or Delay's p for small ones."""
    s, N = of.s, of.N
    cube = s.increase * N**2 / (s.alpha_interval * s.line_rate**2)
    return (cube * (1 / s.byte_counter + N / (s.timer * s.line_rate)) ** 2) ** (1 / 3)


def example(of: Rest, *, pmax: float = PMAX) -> Example:
    """Give the names of Coq's files their meaning at one fixed point, and beside it."""
    names = of._asdict()
    known = names | {
        "kmin": KMIN,
        "kmax": KMAX,
        "pmax": pmax,
        "p0": cube_root(of),
        "at_rest": at_rest,
        "red": lambda kmin, kmax, pmax, q: float(red(q, kmin, kmax, pmax)),
        "power": lambda x, y: x**y,
        "log": lambda x: math.log(x),
    }
    beside = {name: [names[name], 1.01 * names[name]] for name in ("p", "alpha", "R_T", "R_C")}
    queues = [KMIN + p / pmax * (KMAX - KMIN) for p in beside["p"]]  # on the ramp, or on its extension
    domains = {
        **beside,
        **{f"{name}'": values for name, values in beside.items()},
        "bound": [k * of.p for k in (0.5, 0.99, 1.01, 2.0)],
        "s": [of.s],
        "N": [of.N],
        **dict.fromkeys(("q", "q'"), (0.0, KMIN, *queues, 0.5 * (KMIN + KMAX), KMAX, 2 * KMAX)),
        "M": [max(of.s.byte_counter, of.s.timer * of.s.line_rate / of.N)],
        "rest": [of[2:], (of.p, of.alpha, of.R_T, 1.01 * of.R_C), (1.01 * of.p, *of[3:])],
    }
    return Example(defined("dcqcn.table14", known, domains, SOLVED), domains, SOLVED)


TOO_MUCH = {
    "fixed_point.rate_at_rest_is_fair_share": ("at_rest s N p alpha R_T R_C ->", ""),
    "fixed_point.alpha_at_rest": ("alpha_interval", "cnp_interval"),
    "fixed_point.target_at_rest": ("(c s p + e s p R_C)", "(e s p R_C)"),
    "fixed_point.marking_equation": ("cnp_interval s ^ 2", "cnp_interval s"),
    "fixed_point.one_fixed_point": ("exists! rest", "forall rest"),
    "fixed_point.marking_equation_has_one_root": ("exists! p", "forall p"),
    "fixed_point.marking_at_rest_is_unique": ("at_rest s N p' alpha' R_T' R_C' ->", ""),
    "fixed_point.marking_is_above_iff": ("cuts s bound R_C <", "2 * cuts s bound R_C <"),
    "fixed_point.target_is_above_rate": ("R_C < R_T", "R_C + 10 * increase s < R_T"),
    "fixed_point.target_is_near_rate": ("< increase s * R_C", "< 1 / 20 * increase s * R_C"),
    "fixed_point.one_flow_aims_above_the_line": ("line_rate s <", "2 * line_rate s <"),
    "fixed_point.several_flows_aim_below_the_line": ("2 <= N ->", ""),
    "ramp.partial_marking_is_on_the_ramp": ("< 1 ->", "<= 1 ->"),
    "ramp.ramp_marks_at_most_pmax": ("kmin < q <= kmax", "kmin < q"),
    "ramp.some_queue_marks_iff": ("<-> p <= pmax", "<-> p <= 1 / 2 * pmax"),
    "ramp.queue_of_a_marking": ("red kmin kmax pmax q = p ->", ""),
    "ramp.queue_at_rest_is_on_the_ramp": ("<= kmax", "<= 10 * kmin"),
    "ramp.fixed_point_exists_iff": ("p <= pmax", "p <= 1 / 2 * pmax"),
    "ramp.queue_at_rest_is_unique": ("fixed_point s N q' alpha' R_T' R_C' ->", ""),
    "ramp.fixed_point_exists_by_sign": ("<= cuts", "<= 1 / 2 * cuts"),
    "ramp.fixed_point_exists_if_pmax_is_one": ("pmax = 1 ->", ""),
    "cube_root.cube_root_is_above": ("p < p0", "2 * p < p0"),
    "cube_root.cube_root_is_near": ("(5 +", "(-5 + 0 *"),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_theorem_holds_at_fixed_points(name: str) -> None:
    """Notice slopes, a ramp or an equation for p in Coq that are not the fluid model's."""
    examples = [*map(example, rests()), *(example(each, pmax=1.0) for each in rests()[:3])]
    assert verdicts(f"dcqcn.{name}", TOO_MUCH[name], examples) == (True, False)


# -- Table 14 --

FLOWS = 1, 2, 3, 9, 10, 11, 12, 13, 14, 15, 16
TABLE_14 = {
    "up_to_14_flows": ("<= 14", "<= 15"),
    "up_to_10_flows_of_full_packets": ("<= 10", "<= 11"),
    "marking_up_to_one_percent": ("<= 14", "<= 15"),
    "marking_up_to_one_percent_of_full_packets": ("<= 10", "<= 11"),
    "target_is_below_the_line": ("(2 <= n)", "(1 <= n)"),
    "cube_root_is_above_with_table14": ("p < p0", "2 * p < p0"),
}


def with_table_14(packet: float, flows: int) -> Example:
    """Give the names their meaning; whether flows have a fixed point in a network, `fluidcc.equilibrium` says."""
    known, domains, equal = example(rest(settings(packet), float(flows)))
    own = {name: [known[name]] for name in ("p", "alpha", "R_T", "R_C", "p0")} | {"packet": [packet], "n": [flows]}
    has = {"has_fixed_point": lambda packet, n: in_network(n, float(packet)).exists}
    return Example({**known, **has}, {**domains, **own}, equal)


@pytest.mark.parametrize("name", TABLE_14)
def test_a_theorem_holds_with_table_14(name: str) -> None:
    """Notice a setting of Table 14 in Coq that is not the preset's, or a number of flows that is off by one."""
    examples = [with_table_14(packet, flows) for packet in (1000.0, 1500.0) for flows in FLOWS]
    assert verdicts(f"dcqcn.table14.{name}", TABLE_14[name], examples) == (True, False)


def test_settings_in_coq_are_the_preset_s() -> None:
    """Notice a value of Table 14 that was typed wrong."""
    coq = defined("dcqcn.table14", {})
    for packet in (1000.0, 1500.0):
        assert all(map(ROUNDED, coq["table14"](packet), settings(packet)))
    marking: Any = resolve(PRESETS["paper"][1])
    assert [coq[name]() for name in ("kmin", "kmax", "pmax")] == [KMIN, KMAX, Fraction(1, 100)]
    assert (marking.kmin, marking.kmax, marking.pmax) == (KMIN, KMAX, PMAX)


def test_fixed_points_are_those_of_a_network_but_for_one_flow() -> None:
    """Notice a target that the line rate bounds: one flow alone rests unmarked, where Coq's aims above the line."""
    for flows in (2, 7, 14):
        of, found = rest(settings(1000.0), float(flows)), in_network(flows, 1000.0).as_dict()
        own = [of.p, of.alpha, of.R_T * 1000, of.R_C * 1000]
        names = "marking_probability", "alpha", "target_rate_bytes_per_s", "rate_bytes_per_s"
        assert own == pytest.approx([found[name] for name in names], rel=1e-9)
    alone = in_network(1, 1000.0).as_dict()
    assert (alone["marking_probability"], alone["queue_bytes"], alone["exists"]) == (0, 0, True)
    assert rest(settings(1000.0), 1.0).R_T * 1000 > LINE_RATE == alone["target_rate_bytes_per_s"]


# -- definitions --

SLIPS = [
    None,
    ("- (R_C * alpha / (2 * cnp_interval s))", "- (R_C * alpha / cnp_interval s)"),
    ("(stages s * timer s * r) * p /", "(timer s * r) * p /"),
    ("gain s / alpha_interval s", "gain s / cnp_interval s"),
]


@pytest.mark.parametrize("change", SLIPS)
def test_slopes_in_coq_are_the_fluid_model_s(change: Change) -> None:
    """Notice another equation than (7) to (9), away from a fixed point, where the rate now and then differ."""
    coq, same = defined("dcqcn.fixed_point", {"power": lambda x, y: x**y}, change=change), True
    few = settings(1500.0, **FEW_BYTES)
    for s, share, p in ((settings(1000.0), 0.3, 1e-3), (few, 0.05, 0.02), (settings(1000.0), 0.5, 1e-2)):
        R_C, R_T, r, alpha = share * s.line_rate, 0.6 * s.line_rate, 0.4 * s.line_rate, 0.2
        printed = [
            coq["rate_slope"](s, alpha, R_T, R_C, p, r),
            coq["target_slope"](s, R_T, R_C, p, r),
            coq["alpha_slope"](s, alpha, p, r),
        ]
        same &= all(map(ROUNDED, printed, slopes(s, p, alpha, R_T, R_C, r)))
    assert same is (change is None)


def test_coq_has_alpha_as_printed_where_it_is_faster_than_cnps() -> None:
    """Notice (7) in alpha's periods of less than a CNP interval: the fluid model counts no CNP twice, Coq does."""
    coq = defined("dcqcn.fixed_point", {"power": lambda x, y: x**y})
    for alpha_interval, same in ((60e-6, True), (50e-6, True), (40e-6, False)):
        s = settings(1000.0)._replace(alpha_interval=alpha_interval)
        p, alpha, R_C = 1e-3, 0.2, 0.3 * s.line_rate
        assert ROUNDED(coq["alpha_slope"](s, alpha, p, R_C), slopes(s, p, alpha, 2 * R_C, R_C, R_C)[2]) is same


@pytest.mark.parametrize(
    "change", [None, ("N * R_C - line_rate s", "R_C - line_rate s"), ("rate_slope s alpha R_T R_C p R_C = 0", "0 = 0")]
)
def test_rest_in_coq_is_that_of_the_fluid_model(change: Change) -> None:
    """Notice a slope that need not be 0 at rest; in CNP intervals, so that all slopes are of one size."""
    s = Settings(250.0, 1.0, 1.1, 1.1, 10_000.0, 5.0, 1.25e-5, 1 / 256)
    coq, same = defined("dcqcn.fixed_point", {"power": lambda x, y: x**y}, equal=within(0.0, 1e-7), change=change), True
    for N in (2.0, 8.0):
        at = rest(s, N)[2:]
        moved = [[k * each for k, each in zip(by, at, strict=True)] for by in itertools.product((1.0, 1.01), repeat=4)]
        for state in (*moved, rest(s, N, beyond=1.01)[2:]):
            assert at_rest(s, N, *state) is (tuple(state) == at)
            same &= bool(coq["at_rest"](s, N, *state)) is at_rest(s, N, *state)
    assert same is (change is None)


@pytest.mark.parametrize("change", [None, ("if Rle_dec q kmax", "if Rlt_dec q kmax")])
def test_the_ramp_in_coq_is_red_s(change: Change) -> None:
    """Notice a ramp that ends elsewhere, or jumps at Kmax itself."""
    coq = defined("dcqcn.fixed_point", {}, change=change)["red"]
    queues = 0.0, KMIN, 6e3, 1e5, KMAX, 201e3
    assert all(ROUNDED(coq(KMIN, KMAX, PMAX, q), float(red(q, KMIN, KMAX, PMAX))) for q in queues) is (change is None)
