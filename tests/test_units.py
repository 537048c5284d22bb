"""The closed grammar of quantities: what it reads, what it refuses, and how it shows them."""

from __future__ import annotations

import copy
import doctest
import json
import math
import pickle
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc import units
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve
from fluidcc.units import COUNT, RATE, RATIO, SIZE, TIME, Rate, parse, quantity, scale_of, show

DIMENSIONS = (RATE, SIZE, TIME, RATIO, COUNT)
HALF_DIGIT = 0.5 * (1 + 1e-9)  # a number shown to n digits is off by half a unit of the last one, plus rounding

# The other side of the table of suffixes is exact arithmetic: decimal prefixes times bits or bytes.
GOOD = [
    ("40Gbps", RATE, 5e9),
    ("40 Gb/s", RATE, 5e9),
    ("40Gbit/s", RATE, 5e9),
    ("5GB/s", RATE, 5e9),
    ("40Mbps", RATE, 5e6),
    ("1kbps", RATE, 125.0),
    ("1Kbps", RATE, 125.0),
    ("8bps", RATE, 1.0),
    ("0.4Tbps", RATE, 5e10),
    ("0", RATE, 0.0),
    ("-0", RATE, 0.0),
    ("0Gbps", RATE, 0.0),
    ("5KB", SIZE, 5e3),
    ("5kB", SIZE, 5e3),
    ("10MB", SIZE, 1e7),
    ("32767B", SIZE, 32767.0),
    ("32767", SIZE, 32767.0),
    ("1KiB", SIZE, 1024.0),
    ("2MiB", SIZE, 2.0**21),
    ("1GiB", SIZE, 2.0**30),
    ("50us", TIME, 50e-6),
    ("50µs", TIME, 50e-6),  # micro sign
    ("50μs", TIME, 50e-6),  # Greek letter
    ("1.5ms", TIME, 1.5e-3),
    ("10ns", TIME, 1e-8),
    ("3ps", TIME, 3e-12),
    ("2s", TIME, 2.0),
    ("0.2", TIME, 0.2),
    ("1/256", RATIO, 1 / 256),
    ("1 / 256", RATIO, 1 / 256),
    ("1%", RATIO, 0.01),
    ("0.01", RATIO, 0.01),
    ("1e-2", RATIO, 0.01),
    (".5", RATIO, 0.5),
    ("5.", RATIO, 5.0),
    ("+1E+1", RATIO, 10.0),
    ("-3", COUNT, -3.0),
    ("  7  ", COUNT, 7.0),
    ("1/2Gbps", RATE, 0.0625e9),
]

BAD = [
    ("", TIME),
    (" ", TIME),
    ("us", TIME),
    ("fast", RATE),
    ("40", RATE),
    ("40Gbs", RATE),
    ("40GBps", RATE),
    ("40gbps", RATE),
    ("40 G bps", RATE),
    ("5KB", RATE),
    ("5kb", SIZE),
    ("5Kb", SIZE),
    ("50us", SIZE),
    ("50m", TIME),
    ("50Us", TIME),
    ("1 min", TIME),
    ("5%", COUNT),
    ("5x", COUNT),
    ("nan", RATIO),
    ("inf", SIZE),
    ("infinity", TIME),
    ("1e999", TIME),
    ("1e400/1e400", RATIO),
    ("1/0", RATIO),
    ("0/0", RATIO),
    ("1/1e-999", RATIO),
    ("1//2", RATIO),
    ("1/2/3", RATIO),
    ("9**9**9", COUNT),
    ("1_000", COUNT),
    ("1,5", COUNT),
    ("0x10", COUNT),
    ("٣", COUNT),  # a digit to str.isdigit, but not to the grammar
    ("1\x00", COUNT),
    ("1;2", COUNT),
    ("__import__('os')", COUNT),
    ("1" * 65, COUNT),
]


@pytest.mark.parametrize(("text", "dimension", "value"), GOOD)
def test_reads(text: str, dimension: str, value: float) -> None:
    assert parse(text, dimension) == pytest.approx(value, rel=1e-15, abs=0)


def test_64_characters_are_read_and_one_more_is_shown_cut() -> None:
    """A message says what was given whole as long as it is short, and with dots where it was cut."""
    assert parse("1" + "0" * 63, COUNT) == 1e63
    whole, longer = "x" * 64, "x" * 65
    with pytest.raises(InputError, match=f"cannot read '{whole}';"):
        parse(whole, COUNT)
    with pytest.raises(InputError, match=re.escape(f"cannot read '{whole}...'")):
        parse(longer, COUNT)


@pytest.mark.parametrize(("text", "dimension", "value"), [g for g in GOOD if g[1] == TIME])
def test_times_are_the_nearest_floats(text: str, dimension: str, value: float) -> None:
    assert parse(text, dimension) == value  # 50us is 5e-05, so that lags are whole numbers of steps


@pytest.mark.parametrize(("text", "dimension"), BAD)
def test_refuses_and_says_what_to_write(text: str, dimension: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text, dimension, "flow 3 rate")
    message = str(caught.value)
    assert message.startswith("flow 3 rate: ")
    assert units.EXAMPLE[dimension] in message
    assert "\n" not in message
    assert len(message) < 400


def test_the_examples_in_messages_are_themselves_readable() -> None:
    for dimension, example in units.EXAMPLE.items():
        for text in example.replace(" or ", ", ").split(", "):
            assert math.isfinite(parse(text, dimension))


def test_unknown_unit_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"unknown unit 'KB'.*Gbps"):
        parse("5KB", RATE)


FINITE = st.floats(min_value=1e-290, max_value=1e290).flatmap(lambda x: st.sampled_from([x, -x, 0.0]))


@given(FINITE, st.sampled_from(DIMENSIONS), st.integers(1, 17))
def test_what_is_shown_reads_back_to_the_digits_shown(value: float, dimension: str, digits: int) -> None:
    again = parse(show(value, dimension, digits), dimension)
    assert abs(again - value) <= HALF_DIGIT * 10.0 ** (1 - digits) * abs(value) + 4e-16 * abs(value)


@given(FINITE, st.sampled_from(DIMENSIONS), st.integers(1, 17))
def test_showing_what_was_read_changes_nothing(value: float, dimension: str, digits: int) -> None:
    text = show(value, dimension, digits)
    if digits <= 15:  # beyond, decimal text says more than a double holds
        again = show(parse(text, dimension), dimension, digits)
        assert parse(again, dimension) == pytest.approx(parse(text, dimension), rel=1e-15, abs=0)


@given(FINITE, st.sampled_from(DIMENSIONS))
def test_scale_of_is_a_known_unit(value: float, dimension: str) -> None:
    factor, suffix = scale_of(value, dimension)
    assert factor > 0
    assert suffix == "" or parse("1" + suffix, dimension) == pytest.approx(factor, rel=1e-15)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1 / 1024, "1/1024"), (1 / 16, "1/16"), (1 / 8, "0.125"), (0.05, "0.05"), (-1 / 256, "-0.003906"), (0.0, "0")],
)
def test_gains_are_shown_as_they_are_typed(value: float, shown: str) -> None:
    """Notice a g of 1/1024 that a sweep prints as 0.0009766, which is another value when it is typed again."""
    assert show(value, RATIO) == shown


def test_unlimited_and_undefined_are_shown() -> None:
    assert show(math.inf, SIZE) == "unlimited"
    assert show(math.nan, SIZE) == "nan"
    assert show(-math.inf, SIZE) == "-inf"


PIECES = st.text(st.sampled_from("0123456789.eE+-/ \tGMKTkiBbpsumnµμ%x_,\n"), max_size=80)


@given(st.one_of(st.text(max_size=200), PIECES), st.sampled_from(DIMENSIONS))
def test_any_text_is_a_finite_number_or_bad_input(text: str, dimension: str) -> None:
    try:
        value = parse(text, dimension)
    except InputError:
        return
    assert isinstance(value, float)
    assert math.isfinite(value)


@pytest.mark.parametrize(
    "hostile",
    [
        "9" * 10**6,
        " " * 10**6,
        " " * 63 + "x",
        "1e" + "9" * 61,
        "0." + "0" * 10**6 + "1s",
        "1/" * 10**5,
        "+" * 10**6,
        "1" * 30 + "." * 30,
        "µ" * 10**6,
    ],
)
def test_hostile_text_is_refused_before_it_is_read(hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound on its length comes first, so that no grammar sees a million digits: what is matched is short."""
    seen: list[int] = []
    grammar = units._QUANTITY

    class Watched:
        def fullmatch(self, text: str) -> Any:
            seen.append(len(text))
            return grammar.fullmatch(text)

    monkeypatch.setattr(units, "_QUANTITY", Watched())
    with pytest.raises(InputError) as caught:
        parse(hostile, TIME)
    assert max(seen, default=0) <= 64
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("dimension", [SIZE, TIME, RATIO, COUNT])
@pytest.mark.parametrize("value", [5, 5.0, np.float64(5), np.float32(5), np.int64(5), Fraction(5)])
def test_plain_numbers_are_si_already(value: Any, dimension: str) -> None:
    assert quantity(value, dimension) == 5.0
    assert type(quantity(value, dimension)) is (units.Seconds if dimension == TIME else float)


@pytest.mark.parametrize(
    "value",
    [
        *(40e9, 40_000_000_000, Fraction(40 * 10**9), np.float64(40e9), np.float32(40e9), np.int64(40e9)),
        *(np.array(40e9), np.linspace(10e9, 40e9, 2)[1], "40e9", "40000000000", " 4E10 "),
    ],
)
def test_a_rate_without_a_unit_is_refused_with_both_that_it_may_be(value: Any) -> None:
    with pytest.raises(InputError) as caught:
        quantity(value, RATE, "rate")
    message = str(caught.value)
    assert message.startswith("rate: ")
    assert "40Gbps" in message
    assert "320Gbps if bytes/s were meant" in message
    assert parse(message.rpartition("(")[2].rstrip(")"), RATE) == 40e9


@pytest.mark.parametrize("value", [40, 1.5, "100", np.int64(40), np.float32(1.5)])
def test_a_number_too_small_for_a_rate_is_refused_with_an_example(value: Any) -> None:
    with pytest.raises(InputError, match=r"^rate: .*no unit \(bits or bytes\?\); write for example 40Gbps or 5GB/s$"):
        quantity(value, RATE, "rate")


@pytest.mark.parametrize("value", [0, 0.0, -0.0, "0", np.float64(0), Rate(5e9), "5e9B/s"])
def test_a_rate_that_is_none_or_says_its_unit_passes(value: Any) -> None:
    found = quantity(value, RATE)
    assert type(found) is Rate
    assert found == (parse(value, RATE) if isinstance(value, str) else float(value))


def test_arrays_of_rates_are_in_si() -> None:
    """Of JAX, as sweeps hand them on; NumPy's are what a loop over ``np.linspace`` gives, without a unit."""
    values = jnp.asarray([5e9, 1e9])
    assert quantity(values[0], RATE) == 5e9
    assert quantity(values[0].reshape(()), RATE) == 5e9
    with pytest.raises(InputError, match=r"rate: expected one quantity such as .*shape \(2,\)"):
        quantity(values, RATE, "rate")
    with pytest.raises(InputError, match=r"40000000000 in an array has no unit; write 40Gbps.*one of jax\.numpy"):
        quantity(np.array([0, 40e9]), RATE, "rate")
    assert quantity(np.zeros(()), RATE) == 0
    traced = jax.jit(lambda value: quantity(value, RATE))
    assert float(traced(5e9)) == 5e9


NUMBERS = st.floats(1e-3, 1e12)


@given(NUMBERS, NUMBERS)
def test_a_rate_stays_one_and_computes_as_a_float(rate: float, number: float) -> None:
    marked = Rate(rate)
    for found, plain in (
        (marked * number, rate * number),
        (number * marked, number * rate),
        (marked / number, rate / number),
        (marked + number, rate + number),
        (number + marked, number + rate),
        (marked - number, rate - number),
        (number - marked, number - rate),
        (marked + marked, rate + rate),
        (marked * np.float64(number), rate * number),
        (marked // number, rate // number),
        (marked % number, rate % number),
        (-marked, -rate),
        (abs(-marked), rate),
        (round(marked, 2), round(rate, 2)),
    ):
        assert type(found) is Rate
        assert found == plain
    for plain in (marked / marked, marked * marked, marked // marked):
        assert type(plain) is float
    assert type(round(marked)) is int
    assert type(number / marked) is float
    assert number / marked == number / rate
    assert repr(marked) == repr(rate)
    assert hash(marked) == hash(rate)


def test_a_rate_goes_everywhere_a_float_goes() -> None:
    rate = Rate(5e9)
    assert json.dumps(rate) == json.dumps(5e9)
    assert type(pickle.loads(pickle.dumps(rate))) is Rate
    assert type(copy.deepcopy(rate)) is Rate
    for found in (np.asarray(rate), rate * np.ones(2), np.float64(2) * rate, rate / np.ones(())):
        assert found.dtype == np.float64
    assert jnp.asarray(rate).weak_type
    assert jnp.asarray(rate).dtype == jnp.asarray(5e9).dtype
    with pytest.raises(ZeroDivisionError):
        rate / Rate(0)


@pytest.mark.parametrize("value", [None, True, False, math.nan, np.float64("nan"), [1], ("1s",), {}, b"1s", 1j, object])
def test_other_things_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"^start: .*(expected a quantity such as|NaN is not)"):
        quantity(value, TIME, "start")


@pytest.mark.parametrize("value", [10**400, -(10**400), Fraction(10**400)], ids=["large", "negative", "fraction"])
def test_numbers_beyond_floats_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"^start: "):
        quantity(value, TIME, "start")


def test_an_array_is_one_number_or_none() -> None:
    assert quantity(np.array(2), TIME) == 2.0
    with pytest.raises(InputError, match=r"^start: .* shape \(2,\)"):
        quantity(np.array([1.0, 2.0]), TIME, "start")


def test_doctests() -> None:
    failed, tried = doctest.testmod(units)
    assert tried > 0
    assert failed == 0


@pytest.mark.parametrize("text", ["55", "100", "10.5", "1e3"])
def test_long_times_without_a_unit_are_refused(text: str) -> None:
    """Of timer="55" nobody means 55 s; up to ten seconds they may."""
    with pytest.raises(InputError, match=rf"timer: .* has no unit, and would be seconds; write {float(text):g}us, "):
        parse(text, TIME, "timer")
    assert parse("10", TIME) == 10.0


@pytest.mark.parametrize("value", [55, 55.0, np.float64(55), np.array(55.0), np.array(55)])
def test_long_plain_times_are_refused(value: Any) -> None:
    """timer=55 is no more meant as 55 s than timer="55" is."""
    for refused in (lambda: quantity(value, TIME, "timer"), lambda: units.refuse_bare_time(value, "timer")):
        with pytest.raises(InputError, match="timer: 55 has no unit, and would be seconds; write 55us, 55ms or 55s"):
            refused()


def test_an_integer_that_no_float_holds_is_refused_as_it_is_read() -> None:
    units.refuse_bare_time(10**400, "timer")
    with pytest.raises(InputError, match="timer: the number is too large"):
        quantity(10**400, TIME, "timer")


def test_long_times_that_had_a_unit_can_be_given_again() -> None:
    once = quantity("55s", TIME)
    assert (quantity(once, TIME), quantity(jnp.asarray(55.0), TIME), quantity(units.Seconds(55), TIME)) == (55.0,) * 3
    assert quantity(quantity(jnp.asarray(55.0), TIME), TIME) == 55.0
    assert (quantity(10, TIME), quantity(0.2, TIME), quantity(math.inf, TIME)) == (10.0, 0.2, math.inf)


@pytest.mark.parametrize(
    "make",
    [
        lambda: fc.DCQCN(timer=55),
        lambda: fc.Link("10Gbps", delay=55.0),
        lambda: fc.simulate(fc.incast(2), until=100),
        lambda: fc.sweep(lambda g: fc.incast(2, scheme=fc.DCQCN(g=g)), {"g": [0.1]}, until=100),
    ],
)
def test_long_plain_times_are_refused_where_they_are_given(make: Any) -> None:
    with pytest.raises(InputError, match="has no unit, and would be seconds; write"):
        make()


def test_starts_that_are_worked_out_may_be_long() -> None:
    """A stagger of 6 s, bursts of a host, and a row of a table, which is in SI."""
    assert [flow.start for flow in resolve(fc.incast(3, stagger="6s")).flows] == [0.0, 6.0, 12.0]
    assert fc.clos([(0, 3, 55.0, "1MB")], pods=2, tors=1, leaves=1, spines=1, hosts=2).flows[0].start == 55.0


def test_a_scheme_with_a_long_timer_is_resolved_twice_and_read_again(tmp_path: Path) -> None:
    scenario = resolve(resolve(fc.incast(2, scheme=fc.DCQCN(timer="1000s"))))
    fc.save_scenario(scenario, tmp_path / "long.toml")
    assert fc.load_scenario(tmp_path / "long.toml").flows[0].scheme == scenario.flows[0].scheme
    assert scenario.flows[0].scheme.timer == 1000.0


# -- edges -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (None, None),
        ("1ms:2ms", (1e-3, 2e-3)),
        (("1ms", 2e-3), (1e-3, 2e-3)),
        ([0, 1], (0.0, 1.0)),
        ((-1.0, 1.0), (-1.0, 1.0)),
    ],
)
def test_an_interval_is_a_pair_of_times(given: Any, found: Any) -> None:
    assert units.interval(given, "window") == (None if found is None else pytest.approx(found))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("1ms:1ms", "1ms:1ms does not end after it begins"),
        ("2ms:1ms", "2ms:1ms does not end after it begins"),
        ("1ms", "is no A:B"),
        ("1ms:2ms:3ms", "is no A:B"),
        ((1.0, 2.0, 3.0), "is no A:B"),
        (1.0, "is no A:B"),
        ({1.0, 2.0}, "is no A:B"),
    ],
)
def test_what_is_no_interval_is_refused(given: Any, says: str) -> None:
    with pytest.raises(InputError, match=rf"window: .*{says}"):
        units.interval(given, "window")


@pytest.mark.parametrize("value", [1, 5, np.int64(3), np.array(3), np.uint8(5)])
def test_whole_numbers_are_taken_up_to_both_bounds(value: Any) -> None:
    found = units.whole(value, 1, 5, "seeds")
    assert found == int(value)
    assert type(found) is int


@pytest.mark.parametrize("value", [0, 6, 2.0, True, "3", None, np.array([3]), np.array(2.0), np.bool_(True), [3]])
def test_what_is_no_whole_number_within_bounds_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"seeds: expected a whole number from 1 to 5, not .*; or leave it out"):
        units.whole(value, 1, 5, "seeds", "; or leave it out")


@pytest.mark.parametrize("value", [np.array(2.5), np.float32(2.5), np.array(5, np.int16) / 2, 2.5])
def test_an_array_without_dimensions_becomes_a_plain_number(value: Any) -> None:
    assert type(quantity(value, RATIO)) is float
    assert quantity(value, RATIO) == 2.5


@pytest.mark.parametrize("value", [np.array(True), np.array("1"), np.array(None), np.array(1j), np.zeros(1)])
def test_an_array_of_something_else_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="x: expected one quantity such as"):
        quantity(value, RATIO, "x")


@pytest.mark.parametrize(
    ("text", "value"),
    [("5KB", 5e3), ("40Gbps", 5e9), ("50us", 5e-5), ("5%", 0.05), ("1/4", 0.25), ("2e3", 2e3), ("3", 3.0)],
)
def test_a_suffix_tells_what_is_read(text: str, value: float) -> None:
    assert units.parse_any(text) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("magnitude", "dimension", "scale"),
    [
        (1e6, SIZE, (1e6, "MB")),
        (1e6 * (1 - 5e-13), SIZE, (1e6, "MB")),  # rounding is no smaller unit
        (999e3, SIZE, (1e3, "KB")),
        (-2e3, SIZE, (1e3, "KB")),
        (0.5, SIZE, (1.0, "B")),
        (0.0, SIZE, (1.0, "B")),
        (0.0, RATE, (1.0, "B/s")),
        (0.0, TIME, (1.0, "s")),
        (1e-12, TIME, (1e-9, "ns")),
        (1.0, TIME, (1.0, "s")),
        (0.9, TIME, (1e-3, "ms")),
        (125.0, RATE, (125.0, "Kbps")),
        (5.0, RATIO, (1.0, "")),
    ],
)
def test_a_scale_is_the_largest_that_is_not_above(magnitude: float, dimension: str, scale: tuple[float, str]) -> None:
    assert scale_of(magnitude, dimension) == scale


@pytest.mark.parametrize(("value", "shown"), [(math.inf, "unlimited"), (-math.inf, "-inf"), (math.nan, "nan")])
def test_what_is_not_finite_is_shown_in_words(value: float, shown: str) -> None:
    assert show(value, SIZE) == shown


@pytest.mark.parametrize(("seconds", "long"), [(10.0, False), (10.001, True), (math.inf, False), (-99.0, False)])
def test_ten_seconds_are_not_long_yet(seconds: float, long: bool) -> None:
    assert units.is_long(seconds) is long
    if long:
        with pytest.raises(InputError, match="timer"):
            units.refuse_bare_time(seconds, "timer")
    else:
        units.refuse_bare_time(seconds, "timer")


@pytest.mark.parametrize(
    "value", [None, "55", units.Seconds(55), True, Rate(55), jnp.asarray(55.0), np.array([1.0, 10.0]), object(), 10]
)
def test_times_that_are_marked_or_none_pass(value: Any) -> None:
    units.refuse_bare_time(value, "timer")


@pytest.mark.parametrize("value", [11, np.array([1.0, 10.5]), Fraction(21, 2), np.float32(11)])
def test_times_of_any_kind_above_ten_seconds_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"timer: .* has no unit"):
        units.refuse_bare_time(value, "timer")


@pytest.mark.parametrize(
    ("value", "bare"),
    [(0, False), (0.0, False), (1, True), (-1.0, True), (True, False), (Rate(1), False), (math.inf, False),
     (math.nan, False), ("1", False), (10**400, False), (Fraction(1, 2), True)],
)  # fmt: skip
def test_a_bare_rate_is_a_finite_number_other_than_0(value: Any, bare: bool) -> None:
    assert units._is_bare_rate(value) is bare


def test_what_was_worked_out_is_marked_and_what_has_no_value_is_left() -> None:
    for dimension, kind in ((RATE, Rate), (TIME, units.Seconds), (SIZE, float)):
        assert type(units.marked(5.0, dimension)) is type(units.marked(5, dimension)) is kind
        traced = jnp.asarray(5.0)
        assert units.marked(traced, dimension) is traced


@pytest.mark.parametrize(
    ("text", "dimension", "wanted"),
    [
        ("16kb", units.SIZE, "; write 16KB"),
        ("40gbps", units.RATE, "; write 40Gbps"),
        ("40gb/s", units.RATE, "for example 40Gbps"),
        ("16kb", units.COUNT, "; it has none: write a plain number, for example 5"),
        ("16pound", units.SIZE, r"units known here: B kB KB"),
    ],
)
def test_what_to_write_for_an_unknown_unit(text: str, dimension: str, wanted: str) -> None:
    """A unit in other capitals is named; "units known here: none" says nothing of what to write."""
    with pytest.raises(InputError, match=wanted):
        units.parse(text, dimension, "burst")


def test_a_burst_in_bytes_is_refused_as_a_size() -> None:
    """In small letters it was taken for a number of packets, of which no unit is known."""
    with pytest.raises(InputError, match="burst: unknown unit 'kb' in '16kb'; write 16KB"):
        resolve(fc.incast(2, burst="16kb"))
