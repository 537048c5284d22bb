"""Scenarios: builders, what they refuse and how they say so, pytrees, and the TOML that stores them."""

from __future__ import annotations

import dataclasses
import math
import re
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.builders import toml_file as scenario_file
from fluidcc.engines.fluid.network import REASONS, reason_of
from fluidcc.errors import InputError
from fluidcc.scenario import parameters
from fluidcc.scenario.model import RED, Flow, Link, Scenario, base_rtt, resolve
from fluidcc.scenario.parameters import specs
from fluidcc.schemes.dcqcn import DCQCN, PRESETS
from fluidcc.units import Rate

GBPS = Rate(1e9 / 8)
LINK = Link("40Gbps", marking=RED("5KB", "200KB", 0.01))


def flow(**changes: Any) -> Flow:
    return Flow(**({"path": (0,), "scheme": DCQCN(), "line_rate": "40Gbps"} | changes))


# -- builders -------------------------------------------------------------------------------------------------


def test_incast_defaults_are_the_papers() -> None:
    scenario = fc.incast()
    (link,) = scenario.links
    assert (link.rate, link.delay, link.name) == (5e9, 1e-6, "bottleneck")
    assert link.marking == RED(5e3, 2e5, 0.01)
    assert [f.path for f in scenario.flows] == [(0,), (0,)]
    assert (scenario.packet_size, scenario.header_bytes, scenario.wire_packet) == (1000.0, 0.0, 1000.0)
    for one in scenario.flows:
        assert (one.start, one.size, one.multiplicity) == (0.0, math.inf, 1.0)
        assert one.line_rate == one.initial_rate == 5e9
        assert base_rtt(scenario, one) == pytest.approx(4e-6, rel=1e-12)
        scheme = one.scheme
        assert (scheme.g, scheme.rate_ai, scheme.byte_counter) == (1 / 256, 5e6, 1e7)
        assert (scheme.timer, scheme.cnp_interval, scheme.alpha_timer) == (55e-6, 50e-6, 55e-6)
        assert (scheme.fast_recovery_steps, scheme.initial_alpha, scheme.feedback_delay) == (5.0, 1.0, 50e-6)


def test_parking_lot_paths_and_delays() -> None:
    scenario = fc.parking_lot(4, delay="2us")
    assert [f.path for f in scenario.flows] == [(0, 1, 2), (0,), (1,), (2,)]
    assert len(scenario.links) == 3
    # An access link at each host: flow 0 crosses 5 links, the others 3.
    assert [base_rtt(scenario, f) for f in scenario.flows] == pytest.approx([20e-6, 12e-6, 12e-6, 12e-6], rel=1e-12)


@pytest.mark.parametrize("builder", [fc.incast, fc.parking_lot])
def test_lists_repeat_over_the_flows(builder: Any) -> None:
    scenario = builder(
        5,
        start=["0", "10ms"],
        size=["1MB", math.inf, "2MB"],
        initial_rate=["40Gbps", 0.0],
        multiplicity=(1, 2),
        line_rate=["40Gbps", "100Gbps"],
    )
    assert [f.start for f in scenario.flows] == [0, 0.01, 0, 0.01, 0]
    assert [f.size for f in scenario.flows] == [1e6, math.inf, 2e6, 1e6, math.inf]
    assert [f.initial_rate for f in scenario.flows] == [5e9, 0, 5e9, 0, 5e9]
    assert [f.multiplicity for f in scenario.flows] == [1, 2, 1, 2, 1]
    assert [f.line_rate for f in scenario.flows] == [5e9, 12.5e9, 5e9, 12.5e9, 5e9]


def test_delays_per_sender() -> None:
    scenario = fc.incast(3, delay=["1us", "5us"])
    assert [f.access_delay for f in scenario.flows] == [1e-6, 5e-6, 1e-6]
    assert scenario.links[0].delay == 1e-6


def test_feedback_delay_shorthand_changes_the_scheme_alone() -> None:
    scenario = fc.incast(scheme=DCQCN(feedback_delay=None), feedback_delay="85us")
    assert scenario.flows[0].scheme == resolve(fc.incast(scheme=DCQCN(feedback_delay="85us"))).flows[0].scheme


def test_wire_packet_counts_the_header() -> None:
    assert fc.incast(header_bytes="48B").wire_packet == 1048.0


@pytest.mark.parametrize("name", PRESETS)
def test_presets_resolve(name: str) -> None:
    scheme, marking = PRESETS[name][:2]
    assert resolve(fc.incast(scheme=scheme, marking=marking)).flows[0].scheme.g > 0


# -- what is refused ------------------------------------------------------------------------------------------

# What was given, the field the message must name, and what it must tell the person to do about it.
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"flows": 0}, "flows", "from 1 to 4096"),
    ({"flows": -3}, "flows", "multiplicity="),
    ({"flows": 5000}, "flows", "multiplicity="),
    ({"flows": 2.0}, "flows", "whole number"),
    ({"flows": True}, "flows", "whole number"),
    ({"flows": "2"}, "flows", "whole number"),
    ({"rate": "40"}, "link 0 rate", "40Gbps"),
    ({"rate": "0Gbps"}, "link 0 rate", "above 0"),
    ({"rate": "-1Gbps"}, "link 0 rate", "above 0"),
    ({"rate": math.nan}, "link 0 rate", "40Gbps"),
    ({"rate": None}, "link 0 rate", "40Gbps"),
    ({"delay": "-1us"}, "link 0 delay", "at least 0"),
    ({"delay": []}, "delay", "at least one value"),
    ({"delay": "1 parsec"}, "link 0 delay", "us"),
    ({"start": "-1ms"}, "flow 0 start", "at least 0"),
    ({"start": ["0", "later"]}, "flow 1 start", "50us"),
    ({"start": []}, "start", "at least one value"),
    ({"size": 0}, "flow 0 size", "above 0"),
    ({"size": "1MBit"}, "flow 0 size", "200KB"),
    ({"multiplicity": 0}, "flow 0 multiplicity", "above 0"),
    ({"multiplicity": "5KB"}, "flow 0 multiplicity", "5"),
    ({"initial_rate": "-1Gbps"}, "flow 0 initial_rate", "at least 0"),
    ({"initial_rate": ["1Gbps", "50Gbps"]}, "flow 1 initial_rate", "at most 40Gbps"),
    ({"line_rate": "0Gbps"}, "flow 0 line_rate", "above 0"),
    ({"packet_size": 0}, "packet_size", "above 0"),
    ({"header_bytes": -1}, "header_bytes", "at least 0"),
    ({"feedback_delay": "-50us"}, "flow 0 feedback_delay", "at least 0"),
    ({"marking": RED("-1KB", "5KB", 0.01)}, "link 0 kmin", "at least 0"),
    ({"marking": RED("1KB", "5KB", 0)}, "link 0 pmax", "above 0"),
    ({"marking": RED("1KB", "5KB", "much")}, "link 0 pmax", "1%"),
    ({"scheme": DCQCN(g=0)}, "flow 0 g", "above 0"),
    ({"scheme": DCQCN(g=1.5)}, "flow 0 g", "at most 1"),
    ({"scheme": DCQCN(rate_ai="40")}, "flow 0 rate_ai", "40Gbps"),
    ({"scheme": DCQCN(timer=0)}, "flow 0 timer", "above 0"),
    ({"scheme": DCQCN(byte_counter="0B")}, "flow 0 byte_counter", "above 0"),
    ({"scheme": DCQCN(fast_recovery_steps=2.5)}, "flow 0 fast_recovery_steps", "whole number"),
    ({"scheme": DCQCN(fast_recovery_steps=-1)}, "flow 0 fast_recovery_steps", "at least 0"),
    ({"scheme": DCQCN(initial_alpha="101%")}, "flow 0 initial_alpha", "at most 1"),
    ({"scheme": DCQCN(hyper_increase="maybe")}, "flow 0 hyper_increase", "off or on"),
    ({"scheme": DCQCN(min_rate=None)}, "flow 0 min_rate", "40Gbps"),
]


@pytest.mark.parametrize(("given_", "field", "remedy"), REFUSED, ids=[str(row[0])[:50] for row in REFUSED])
def test_bad_values_name_the_field_and_the_remedy(given_: dict[str, Any], field: str, remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        fc.incast(**given_)
    message = str(caught.value)
    assert message.startswith(field)
    assert remedy in message
    assert "\n" not in message


@pytest.mark.parametrize("path", [(), (1,), (-1,), (0, 0), ("bottleneck",), (0.0,), (None,)])
def test_bad_paths(path: Any) -> None:
    with pytest.raises(InputError, match=r"^flow 1 path: "):
        resolve(Scenario((LINK,), (flow(), flow(path=path))))


def test_no_links_no_flows() -> None:
    with pytest.raises(InputError, match="at least one Link"):
        resolve(Scenario((), (flow(),)))
    with pytest.raises(InputError, match="at least one Flow"):
        resolve(Scenario((LINK,), ()))


def test_parking_lot_needs_two_flows() -> None:
    with pytest.raises(InputError, match="from 2 to"):
        fc.parking_lot(1)


def test_unknown_arguments_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="kmin"):
        fc.incast(kmin="5KB")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "given_",
    [
        {"rate": math.inf},
        {"delay": math.inf},
        {"multiplicity": math.inf},
        {"packet_size": math.inf},
        {"feedback_delay": math.inf},
        {"marking": RED(5e3, math.inf)},
    ],
    ids=str,
)
def test_only_sizes_may_be_unlimited(given_: dict[str, Any]) -> None:
    try:
        fc.incast(**given_)
    except InputError:
        return
    raise AssertionError("accepted")


# -- resolve, pytrees, traced values --------------------------------------------------------------------------

RATES = st.floats(1e6, 1e12).map(Rate)
SIZES = st.floats(1.0, 1e9)
TIMES = st.floats(1e-6, 1.0)
SHARES = st.floats(1e-6, 1.0)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Anything that the builders make."""
    builder = draw(st.sampled_from([fc.incast, fc.parking_lot]))
    few = {"min_size": 1, "max_size": 3}
    kmin = draw(SIZES)
    line = draw(RATES)
    return builder(
        draw(st.integers(2, 5)),
        rate=draw(RATES),
        delay=draw(TIMES),
        scheme=DCQCN(
            g=draw(SHARES),
            rate_ai=draw(RATES),
            byte_counter=draw(SIZES),
            timer=draw(TIMES),
            fast_recovery_steps=draw(st.integers(0, 9)),
            feedback_delay=draw(st.none() | TIMES),
            hyper_increase=draw(st.booleans()),
        ),
        marking=RED(kmin, kmin + draw(SIZES), draw(SHARES)),
        start=draw(st.lists(TIMES, **few)),
        size=draw(st.lists(SIZES | st.just(math.inf), **few)),
        initial_rate=draw(st.lists(st.none() | st.floats(0, line).map(Rate), **few)),
        multiplicity=draw(st.lists(st.floats(0.5, 100), **few)),
        line_rate=line,
        packet_size=draw(SIZES),
        header_bytes=draw(SIZES),
    )


FEWER = settings(max_examples=40)  # a scenario takes hypothesis some 10 ms to draw


@FEWER
@given(scenarios())
def test_resolve_is_idempotent(scenario: Scenario) -> None:
    assert resolve(scenario) == scenario


@FEWER
@given(scenarios())
def test_pytree_round_trip(scenario: Scenario) -> None:
    leaves, treedef = jax.tree.flatten(scenario)
    assert jax.tree.unflatten(treedef, leaves) == scenario
    assert all(isinstance(leaf, float) for leaf in leaves)
    assert jax.tree.map(lambda x: x, scenario) == scenario


def test_switches_and_paths_are_structure_not_leaves() -> None:
    one = jax.tree.structure(fc.incast(2))
    assert one == jax.tree.structure(fc.incast(2, rate="100Gbps", start="1ms"))
    assert one != jax.tree.structure(fc.incast(2, scheme=DCQCN(hyper_increase=True)))
    assert one != jax.tree.structure(fc.incast(3))


def test_traced_values_pass_and_are_not_checked() -> None:
    seen: list[Scenario] = []

    @jax.jit
    def build(kmin: Any, g: Any, flows: Any) -> Any:
        scenario = fc.incast(2, marking=RED(kmin, "200KB", 0.01), scheme=DCQCN(g=g), multiplicity=flows)
        seen.append(resolve(scenario))
        return reason_of(scenario)

    reasons = [int(build(*v)) for v in ((5e3, 0.01, 2.0), (3e5, 0.01, 2.0), (5e3, 2.0, 2.0), (5e3, 0.01, -1.0))]
    assert [REASONS[r] for r in reasons] == ["ok", "kmin exceeds kmax", "out of range", "out of range"]
    assert REASONS[int(build(math.nan, 0.01, 2.0))] == "out of range"
    assert len(seen) == 1  # one trace for all values
    assert isinstance(seen[0].links[0].marking.kmin, jax.core.Tracer)  # type: ignore[union-attr]
    assert seen[0].links[0].rate == 5e9


def test_conversions_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of the fields of marking, whose others are converted each time; what is kept is not converted again."""
    monkeypatch.setattr(parameters, "_MOST_KNOWN", 2)
    known: dict[Any, Any] = {}
    marking = RED("5KB", "200KB", "1%")
    assert parameters.converted(marking, known=known) == parameters.converted(marking)
    assert sorted(key[0] for key in known) == ["kmax", "kmin"]
    known["kmin", str, "5KB"] = 7.0
    assert parameters.converted(marking, known=known)["kmin"] == 7.0


def test_parameters_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        fc.incast().packet_size = 5  # type: ignore[misc]


@pytest.mark.parametrize("part", [RED, Link, Flow, Scenario, DCQCN])
def test_every_parameter_is_documented(part: Any) -> None:
    for name, spec in specs(part).items():
        assert spec.doc, name
        assert spec.dimension, name


# -- files ----------------------------------------------------------------------------------------------------


@FEWER
@given(scenarios())
def test_file_round_trip(scenario: Scenario) -> None:
    assert scenario_file.from_toml(scenario_file.to_toml(scenario)) == scenario


@pytest.mark.parametrize("name", PRESETS)
def test_presets_round_trip(name: str) -> None:
    scheme, marking = PRESETS[name][:2]
    scenario = fc.parking_lot(3, scheme=scheme, marking=marking)
    assert scenario_file.from_toml(scenario_file.to_toml(scenario)) == scenario


def test_several_schemes_and_unmarked_links_round_trip() -> None:
    links = (LINK, Link("100Gbps", "2us"), Link("10Gbps", name="edge"))
    flows = (flow(path=(0, 2)), flow(path=(2, 1), scheme=DCQCN(g=0.1)), flow(path=(1,)))
    scenario = resolve(Scenario(links, flows))
    again = scenario_file.from_toml(scenario_file.to_toml(scenario))
    assert [f.path for f in again.flows] == [(0, 2), (2, 1), (1,)]
    assert [f.scheme.g for f in again.flows] == [1 / 256, 0.1, 1 / 256]
    assert [link.marking for link in again.links] == [link.marking for link in scenario.links]


@pytest.mark.parametrize("names", [("spine", "spine"), ("link 1", "")])
def test_links_must_have_names_of_their_own(names: tuple[str, str]) -> None:
    # Files write paths by link name: two links of one name would read back as one.
    links = tuple(Link(f"{i + 1}0Gbps", name=name) for i, name in enumerate(names))
    with pytest.raises(InputError, match="names two links"):
        resolve(Scenario(links, (flow(path=(1,)),)))


def test_text_with_units_reads() -> None:
    text = """
    fluidcc_scenario = 1
    packet_size = "1KB"
    [[link]]
    name = "a"
    rate = "40Gbps"
    marking = {kmin = "5KB", kmax = "200KB", pmax = "1%"}
    [[scheme]]
    name = "dcqcn"
    g = "1/256"
    [[flow]]
    path = ["a"]
    line_rate = "40Gbps"
    [[flow]]
    path = ["a"]
    line_rate = "40Gbps"
    """
    read = scenario_file.from_toml(text)
    made = fc.incast(2)
    assert read.links[0].marking == made.links[0].marking
    assert jax.tree.leaves(read) == jax.tree.leaves(made)


TEXT = scenario_file.to_toml(fc.parking_lot(3, size=["1MB", math.inf], start=["0", "1ms"]))
LINES = TEXT.splitlines()
TOKENS = ["[", "]", "{", "}", '"', "=", ".", "-", "#", "\n", "\0", "'", "inf", "nan", "true", "1979-05-27", "\\u12"]
VALUES = ["-1", "0", "1e400", '"40Gbps"', '"x"', "[]", "{}", "true", "nan", '""', "[[1]]", "12:00:00", "99", '"path"']


def read_or_refuse(text: str) -> None:
    refusal = None
    try:
        assert isinstance(scenario_file.from_toml(text, "file.toml"), Scenario)
    except InputError as error:
        refusal = str(error)
    if refusal is not None:
        assert refusal.startswith("file.toml: ")
        assert len(refusal) < 1000


@given(st.data())
def test_mutated_values_read_or_are_refused(data: st.DataObject) -> None:
    lines = list(LINES)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        key, equals, _ = lines[at].partition("=")
        change = data.draw(st.sampled_from(["value", "drop", "repeat", "key"]))
        if change == "value" and equals:
            lines[at] = f"{key}= {data.draw(st.sampled_from(VALUES))}"
        elif change == "drop":
            lines[at] = ""
        elif change == "repeat":
            lines.insert(data.draw(st.integers(0, len(lines) - 1)), lines[at])
        else:
            lines[at] = "x" + lines[at]
    read_or_refuse("\n".join(lines))


@given(st.data())
def test_mutated_text_reads_or_is_refused(data: st.DataObject) -> None:
    text = TEXT
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 20))
        text = text[:at] + data.draw(st.sampled_from(TOKENS) | st.text(max_size=5)) + text[at + cut :]
    read_or_refuse(text)


@given(st.text(max_size=100))
def test_any_text_reads_or_is_refused(text: str) -> None:
    read_or_refuse(text)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("fluidcc_scenario = 2", "", "fluidcc_scenario = 2"),
        ('rate = "5000000000.0B/s"', "rate = 5e9", "link 0"),
        ('initial_rate = "5000000000.0B/s"', "initial_rate = 5e9", "flow 0"),
        ("kmin = 5000.0", "kmin = '5KX'", "link 0 kmin"),
        ("kmin = 5000.0", "", "kmin is missing"),
        ("kmin = 5000.0", "kmin = 3e5", "kmin <= kmax"),
        ('name = "dcqcn"', 'name = "tcp"', "dcqcn"),
        ('name = "dcqcn"', "name = 3", "in quotes"),
        ("g = 0.00390625", "gee = 1", "unknown key 'gee'"),
        ("scheme = 0", "scheme = 7", "count from 0"),
        ('path = [\n    "link 1",\n]', 'path = ["link 9"]', "'link 1', 'link 2'"),
        ('path = [\n    "link 1",\n]', "path = 3", "write a list"),
        ("packet_size = 1000.0", "packet_size = 0", "packet_size"),
        ("packet_size = 1000.0", "packet_size = [1]", "packet_size"),
        ("hyper_increase = false", "hyper_increase = 'maybe'", "off or on"),
    ],
)
def test_what_a_bad_file_is_told(old: str, new: str, says: str) -> None:
    assert old in TEXT
    with pytest.raises(InputError) as caught:
        scenario_file.from_toml(TEXT.replace(old, new), "my.toml")
    assert str(caught.value).startswith("my.toml: ")
    assert says in str(caught.value)


@pytest.mark.parametrize("digits", [400, 5000])
def test_huge_integers_are_refused(digits: int) -> None:
    text = TEXT.replace("packet_size = 1000.0", "packet_size = 1" + "0" * digits)
    try:
        scenario_file.from_toml(text)
    except InputError:
        return
    except ValueError as error:  # InputError is a ValueError too
        raise OverflowError(str(error)) from None


def test_files(tmp_path: Path) -> None:
    scenario = fc.incast(3)
    path = tmp_path / "scenario.toml"
    path.write_text(scenario_file.to_toml(scenario), encoding="utf-8")
    assert scenario_file.load_scenario(path) == scenario
    for bad in (tmp_path / "none.toml", tmp_path, "\0"):
        with pytest.raises(InputError, match="--save-scenario"):
            scenario_file.load_scenario(bad)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        scenario_file.load_scenario(path)


def test_keys_of_files_say_which_was_meant() -> None:
    text = scenario_file.to_toml(fc.incast(2))
    for old, wrong in (("rate_ai", "rateai"), ("kmin", "kmn")):
        with pytest.raises(InputError, match=rf"unknown key '{wrong}'; did you mean {old}\?"):
            scenario_file.from_toml(text.replace(old, wrong))


def test_initial_rates_are_shown_with_their_unit() -> None:
    assert repr(fc.incast(2, initial_rate="1Gbps")).endswith("initial rate 1Gbps>")
    assert "initial rate 1Gbps to 2Gbps" in repr(fc.incast(2, initial_rate=["1Gbps", "2Gbps"]))


def test_files_written_before_hold_rates_in_si() -> None:
    """Format 1 is what was written before rates had to have a unit."""
    scenario = fc.incast(2, rate="25Gbps", initial_rate=["10Gbps", "0"])
    written = scenario_file.to_toml(scenario)
    before = re.sub(r'"([\d.e+-]+)B/s"', r"\1", written).replace("fluidcc_scenario = 2", "fluidcc_scenario = 1")
    assert before.count("3125000000.0\n") == 3  # of the link and two NICs
    assert '/s"' not in before
    assert scenario_file.from_toml(before) == scenario_file.from_toml(written) == scenario


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Link(40e9), "Link rate"),
        (lambda: flow(line_rate=40e9), "Flow line_rate"),
        (lambda: flow(initial_rate=1), "Flow initial_rate"),
        (lambda: DCQCN(rate_ai=40e6), "DCQCN rate_ai"),
        (lambda: fc.HPCC(min_rate=1e9), "HPCC min_rate"),
        (lambda: dataclasses.replace(DCQCN(), min_rate=1e9), "DCQCN min_rate"),
        (lambda: fc.incast(2, rate=40e9), "rate"),
        (lambda: fc.incast(2, initial_rate=["1Gbps", 2e9]), "flow 1 initial_rate"),
        (lambda: fc.incast(2, line_rate=2e9), "flow 0 line_rate"),
        (lambda: fc.parking_lot(3, rate=40_000_000_000), "rate"),
        (lambda: fc.chain(rate=1e11), "rate"),
        (lambda: fc.fat_tree([(0, 1)], fabric_rate=1e11), "fabric_rate"),
        (lambda: fc.clos_testbed([(0, 1)], rate=1e11), "rate"),
        (lambda: fc.fabrics.poisson_flows(4, load=0.5, until="1us", rate=1e11), "rate"),
        (lambda: fc.NoControl([(0, 1e9)]), "NoControl schedule rate"),
        (lambda: fc.incast(2, rate=np.linspace(10e9, 40e9, 2)[0]), "rate"),
        (lambda: fc.incast(2, initial_rate=np.array([1e9, 2e9])), "flow 0 initial_rate"),
        (lambda: fc.incast(2, line_rate=[np.float32(1e9)]), "flow 0 line_rate"),
        (lambda: Link(np.int64(40)), "Link rate"),
        (lambda: Link(np.array(40e9)), "Link rate"),
        (lambda: DCQCN(rate_ai=np.float64(40e6)), "DCQCN rate_ai"),
        (lambda: fc.HPCC(rate_ai=np.array([1e6, 2e6])), "HPCC rate_ai"),
        (lambda: fc.NoControl([(0, np.float64(1e9))]), "NoControl schedule rate"),
        (lambda: fc.Preset(fc.DCTCP(), marking_rate=5e9), "Preset marking_rate"),
        (lambda: fc.preset("hpcc").marking_at(5e9), "rate"),
        (lambda: fc.operators.SwitchPort("f", "Ethernet0", 5e9, 1, 3, 3, True), "SwitchPort rate"),
        (lambda: fc.theory.acc_map(["10Gbps"], capacity=5e9), "capacity"),
        (lambda: fc.theory.acc_map([1e9], capacity="40Gbps"), "rates"),
        (lambda: fc.theory.acc_map([1e9], capacity=5e9, period="10us"), "rates"),
    ],
)
def test_plain_rates_are_refused(make: Any, says: str) -> None:
    with pytest.raises(InputError, match=rf"^{says}: .* has no unit"):
        resolve(fc.incast(1, scheme=found)) if hasattr(found := make(), "feedback_delay") else found


def test_rates_of_files_and_maps_are_read() -> None:
    assert fc.operators.SwitchPort("f", "Ethernet0", "40Gbps", 1, 3, 3, True).rate == 5e9
    assert fc.incast(2, rate=b"40Gbps".decode()).links[0].rate == 5e9
    with pytest.raises(InputError, match=r"rate: expected a quantity such as 40Gbps, not b'40Gbps'"):
        fc.incast(2, rate=b"40Gbps")
    mapped = fc.theory.acc_map(["10Gbps", "20Gbps"], capacity="40Gbps", period="10us", steps=3)
    assert fc.theory.acc_map([10, 20], capacity=40, steps=3).utilization == pytest.approx(mapped.utilization)
    assert fc.theory.acc_map([0.25, 0.5], period="10us", steps=3).utilization == pytest.approx(mapped.utilization)


def test_what_is_resolved_can_be_given_again() -> None:
    """...and computed with; so can JAX arrays, and what is traced."""
    scenario = fc.incast(2, rate="40Gbps", scheme=DCQCN(rate_ai="40Mbps"))
    link, one = scenario.links[0], scenario.flows[0]
    assert resolve(dataclasses.replace(scenario, links=(dataclasses.replace(link, delay="2us"),))).links[0].rate == 5e9
    half = fc.incast(2, rate=link.rate / 2, initial_rate=[link.rate / 4, 0], scheme=one.scheme)
    assert [half.links[0].rate, *(each.initial_rate for each in half.flows)] == [2.5e9, 1.25e9, 0]
    rates = [Rate(value) for value in np.array([5e9, 2.5e9])]
    assert fc.incast(2, rate=rates[0], initial_rate=rates) == fc.incast(
        2, rate="40Gbps", initial_rate=["5GB/s", "20Gbps"]
    )
    with jax.enable_x64(True):
        assert float(fc.incast(2, rate="40Gbps", initial_rate=jnp.asarray(rates)).flows[1].initial_rate) == 2.5e9
    assert jax.tree.map(float, scenario) == scenario  # trees are made without the constructor and its checks
    with pytest.raises(InputError, match="has no unit"):
        resolve(jax.tree.map(float, scenario))


def test_numpy_numbers_are_written_as_plain_ones() -> None:
    scenario = fc.incast(2, rate="40Gbps", delay=np.float64(1e-6), start=[np.float32(0), np.int64(1)])
    assert scenario_file.from_toml(scenario_file.to_toml(scenario)) == scenario


@pytest.mark.parametrize("pmax", [5, "120%", np.float64(1.5)])
def test_more_than_all_is_not_marked(pmax: Any) -> None:
    """Before a scenario is made: a percentage without its sign."""
    with pytest.raises(InputError, match=r"RED pmax: [\d.]+ is too large; .* 5%"):
        RED("5KB", "200KB", pmax)


@pytest.mark.parametrize("thresholds", [("200KB", "5KB"), (2e5, 5e3), ("200KB", 5e3), (np.float64(2e5), "5KB")])
def test_thresholds_that_cross_are_refused_as_they_are_given(thresholds: tuple[Any, Any]) -> None:
    with pytest.raises(InputError, match="RED kmin: 200KB exceeds kmax 5KB; give kmin <= kmax"):
        fc.RED(*thresholds)
    assert fc.RED("5KB", "5KB").kmin == "5KB"
    assert fc.RED("many", "5KB").kmin == "many"  # refused with its place, once that is known


def test_a_sweeps_numbers_are_written_in_the_networks_own_fields() -> None:
    """Of a sweep over packet_size or header_bytes they are NumPy's, which compare with an empty list as arrays."""
    scenario = resolve(fc.incast(2))
    for name in ("packet_size", "header_bytes"):
        swept = dataclasses.replace(scenario, **{name: np.float64(1500)})
        assert getattr(scenario_file.from_toml(scenario_file.to_toml(swept)), name) == 1500


@pytest.mark.parametrize(
    ("options", "said"),
    [({}, ""), ({"burst": 4}, "burst:"), ({"jitter": 0.1}, "jitter:"), ({"burst": 4, "jitter": 0.1}, "burst, jitter:")],
)
@pytest.mark.parametrize("counts", [False, True])
def test_senders_that_the_fluid_averages_are_said(options: dict[str, Any], said: str, counts: bool) -> None:
    from fluidcc.engines.run import _say_unused

    scenario = fc.incast(2, marking=fc.RED("5KB", "200KB", 0.01, counts_sending=counts), **options)
    said = f"{said[:-1]}, counts_sending:" if counts and said else "counts_sending:" if counts else said
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _say_unused(resolve(scenario), "fluid")
    assert [str(each.message).split(" without")[0] for each in caught] == ([said] if said else [])


def test_times_beyond_the_run_are_said() -> None:
    """A start of 10 or a delay of 1, meant in microseconds, is of seconds; what ends with the run is as late."""
    from fluidcc.engines.run import _say_late

    for options, interval, said in (
        ({"start": ["0us", 10]}, None, "flow 1 start: 10s is not within the run of 200ms; write"),
        ({"delay": 1}, None, "link 0 delay: 1s is not"),
        ({"start": ["200ms", "1s", "2s"]}, None, "flow 0 start: 200ms .* 2 more times"),
        ({}, 1, "sample_interval: 1s"),
    ):
        with pytest.warns(UserWarning, match=said):
            _say_late(resolve(fc.incast(max(2, len(options.get("start", []))), **options)), 0.2, interval)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _say_late(resolve(fc.incast(2, start=["0us", "199ms"])), 0.2, 0.2)


@pytest.mark.parametrize("engine", ["fluid", "hybrid"])
@pytest.mark.parametrize("options", [{"ack_interval": 8, "trim_above": "5KB"}, {"burst": 4, "ack_queue": "control"}])
def test_what_packets_alone_have_is_said(engine: str, options: dict[str, Any]) -> None:
    """Bursts, which the hybrid has, are named in the fluid alone."""
    from fluidcc.engines.run import _say_unused

    names = [name for name in options if (name, engine) != ("burst", "hybrid")]
    with pytest.warns(
        UserWarning, match=f"{', '.join(names)}: without effect in the {engine}, .* write engine='packet'"
    ):
        _say_unused(resolve(fc.incast(2, **options)), engine)


def test_a_fixed_delay_that_packets_do_not_have_is_said() -> None:
    """What was asked for; of what a scheme has by itself, as DCQCN 50 us, nothing is said."""
    from fluidcc.engines.run import _say_fixed_delay

    for delay in ("10us", "500us"):
        scenario = resolve(fc.incast(2, scheme="dcqcn", preset="vendor", feedback_delay=delay))
        with pytest.warns(UserWarning, match=f"feedback_delay: {delay} has no effect with engine='packet'"):
            _say_fixed_delay(scenario, "packet")
    # Windows are of a base RTT, which a fixed delay replaces in all engines.
    for scheme, follow in (("hpcc", "base_rtt, initial_window"), ("dctcp", "base_rtt, initial_window")):
        scenario = resolve(fc.incast(2, scheme=scheme, feedback_delay="300us"))
        with pytest.warns(UserWarning, match=f"feedback_delay: 300us sets .*{follow}.*, and delays nothing"):
            _say_fixed_delay(scenario, "packet")
    given = fc.DCTCP(base_rtt="20us", initial_window="100KB", feedback_delay="300us")
    with pytest.warns(UserWarning, match="feedback_delay: 300us has no effect"):
        _say_fixed_delay(resolve(fc.incast(2, scheme=given)), "packet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for preset in ("vendor", "paper"):
            _say_fixed_delay(resolve(fc.incast(2, scheme="dcqcn", preset=preset)), "hybrid")
