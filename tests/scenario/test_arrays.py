"""Arrays and classes where one number or an object belongs: one refusal that names the parameter, or it works."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve
from fluidcc.units import RATE, Rate, quantity

SWITCHES: Any = np.array([True, False])
LINK, FLOW = fc.Link("40Gbps"), fc.Flow((0,), fc.DCQCN(), "40Gbps")


def red(*values: Any) -> dict[str, Any]:
    return {"marking": fc.RED(*values)}


REFUSED = [
    (red("5KB", "200KB", np.array(2.0)), "link 0 pmax", "at most 1"),
    (red(np.array(2e5), np.array(1e5)), "RED kmin", "exceeds kmax"),
    (red(jnp.array(2e5), jnp.array(1e5)), "RED kmin", "exceeds kmax"),
    ({"scheme": fc.DCQCN(g=np.array(np.nan))}, "flow 0 g", "NaN"),
    ({"scheme": fc.DCQCN(g=np.True_)}, "flow 0 g", "of type bool"),
    ({"scheme": fc.DCQCN(g=jnp.array(True))}, "flow 0 g", "of type bool"),
    ({"scheme": fc.DCQCN(fast_recovery_steps=np.array(2.5))}, "flow 0 fast_recovery_steps", "whole number"),
    ({"scheme": fc.DCQCN(hyper_increase=SWITCHES)}, "flow 0 hyper_increase", "off or on"),
    ({"scheme": fc.NoControl(repeat=np.array([1.0, 2.0]))}, "flow 0 repeat", "never"),
    ({"rate": jnp.array([5e9])}, "link 0 rate", "shape (1,)"),
    ({"rate": jnp.array([5e9, 5e9])}, "link 0 rate", "shape (2,)"),
    ({"initial_rate": jnp.array(1e10)}, "flow 0 initial_rate", "exceeds the line rate"),
    ({"start": np.zeros((2, 2))}, "flow 0 start", "shape (2, 2)"),
    ({"stagger": np.array([1e-6, 2e-6])}, "stagger", "shape (2,)"),
    ({"delay": np.array("1us")}, "link 0 delay", "of type <U3"),
    ({"delay": np.array(1j)}, "link 0 delay", "of type complex128"),
    ({"delay": np.array(None)}, "link 0 delay", "of type object"),
    ({"scheme": fc.DCQCN}, "scheme", "write DCQCN()"),
    ({"marking": fc.RED}, "marking", "write RED("),
    ({"pfc": fc.PFC}, "pfc", "write PFC()"),
    ({"classes": fc.TrafficClass}, "classes", "TrafficClass"),
    ({"classes": (fc.TrafficClass,)}, "classes", "TrafficClass"),
    ({"failures": 5}, "failures", "Failure"),
    ({"failures": (fc.Failure,)}, "failures", "Failure"),
    ({"storms": (fc.Storm,)}, "storms", "Storm"),
]


@pytest.mark.parametrize(("given_", "field", "says"), REFUSED, ids=[f"{row[1]}, {row[2]}" for row in REFUSED])
def test_what_is_no_number_is_refused_by_name(given_: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        fc.incast(**given_)
    message = str(caught.value)
    assert message.startswith(f"{field}: ")
    assert says in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        (np.array([1.0, 2.0]), "schedule: .*0:10Gbps"),
        (np.array(3.0), "schedule: .*0:10Gbps"),
        (np.array([[0.0, 5e9]]), "schedule rate: 5000000000 has no unit"),
    ],
)
def test_an_array_is_no_schedule(schedule: Any, says: str) -> None:
    with pytest.raises(InputError, match=f"^NoControl {says}"):
        fc.NoControl(schedule=schedule)


@pytest.mark.parametrize(
    ("scenario", "field"),
    [
        (fc.Scenario((LINK,), (fc.Flow((0,), fc.DCQCN, "40Gbps"),)), "flow 0 scheme"),
        (fc.Scenario((fc.Link(jnp.array([5e9])),), (FLOW,)), "link 0 rate"),
        (fc.Scenario((fc.Link,), (FLOW,)), "links"),  # type: ignore[arg-type]
        (fc.Scenario(LINK, (FLOW,)), "links"),  # type: ignore[arg-type]
        (fc.Scenario((LINK,), (fc.Flow,)), "flows"),  # type: ignore[arg-type]
        (fc.Scenario((LINK,), (fc.Flow((False,), fc.DCQCN(), "40Gbps"),)), "flow 0 path"),
    ],
    ids=["scheme class", "rate of shape (1,)", "link class", "one link", "flow class", "path of bools"],
)
def test_written_out_scenarios_too(scenario: Any, field: str) -> None:
    with pytest.raises(InputError, match=rf"^{field}: "):
        fc.simulate(scenario, "100us")


@pytest.mark.parametrize("until", [np.array([1e-4, 2e-4]), np.True_, np.array(np.inf)])
def test_the_horizon(until: Any) -> None:
    with pytest.raises(InputError, match=r"^until: "):
        fc.simulate(fc.incast(2), until)


def test_arrays_of_one_number_are_that_number() -> None:
    """The same scenario, number for number; before, they were unchecked, and some engines failed on them."""
    plain = fc.incast(2, rate="40Gbps", scheme=fc.DCQCN(g=1 / 256, timer=55e-6), multiplicity=[2, 3], **red(5e3, 2e5))
    arrays = fc.incast(
        2,
        rate=jnp.array(5e9, dtype=jnp.float32),
        scheme=fc.DCQCN(g=jnp.array(1 / 256), timer=np.array(55e-6), hyper_increase=SWITCHES[1]),
        multiplicity=np.array([2, 3]),
        packet_size=np.array(1000),
        **red(np.array(5e3), jnp.array(2e5)),
    )
    assert arrays == plain
    assert repr(arrays) == repr(plain)
    assert type(arrays.flows[0].scheme.hyper_increase) is bool
    assert type(quantity(jnp.array(5e9), RATE)) is Rate
    hop = fc.Flow((np.int64(0),), fc.DCQCN(), "40Gbps")  # type: ignore[arg-type]
    assert resolve(fc.Scenario((LINK,), (hop,))).flows[0].path == (0,)
    runs = [fc.simulate(each, until, engine="packet") for each, until in ((plain, 1e-4), (arrays, np.array(1e-4)))]
    assert runs[0].dataset.equals(runs[1].dataset)


def test_traced_numbers_still_pass_and_are_numbers() -> None:
    def gain(g: Any) -> Any:
        return fc.incast(2, scheme=fc.DCQCN(g=g)).flows[0].scheme.g ** 2

    assert jax.grad(gain)(0.5) == 1.0
    assert jax.vmap(gain)(np.array([0.5, 1.0])).tolist() == [0.25, 1.0]
    with pytest.raises(InputError, match=r"^flow 0 g: .* shape \(2,\)"):
        jax.vmap(gain)(np.ones((3, 2)))
    with pytest.raises(InputError, match=r"^NoControl schedule: .* cannot be traced"):
        jax.jit(lambda r: fc.incast(2, scheme=fc.NoControl(schedule=[(0, r)])).flows[0].scheme.schedule)(5e9)


@pytest.mark.parametrize(
    ("make", "over", "field"),
    [
        (fc.incast(2), {"g": [0.5]}, "make_scenario"),
        (lambda g: None, {"g": [0.5]}, "scenario"),
        (lambda g: fc.incast(2), ["g"], "over"),
        (lambda g: fc.incast(2), {"g": np.ones((2, 2))}, "over g"),
    ],
    ids=["a scenario", "None", "a list", "two dimensions"],
)
def test_sweeps(make: Any, over: Any, field: str) -> None:
    for run in (fc.sweep, fc.studies.stability_chart):
        with pytest.raises(InputError, match=rf"^{field}: "):
            run(make, over)


@pytest.mark.parametrize("two", [np.array(2), np.int64(2), jnp.array(2)])
def test_whole_numbers_without_dimensions_just_work(two: Any) -> None:
    scenario = fc.incast(two)
    assert len(scenario.flows) == 2
    run = fc.simulate(scenario, "100us", engine="packet", seed=two)
    assert run.identical(fc.simulate(fc.incast(2), "100us", engine="packet", seed=2))
    assert [run.summary["seed"] for run in fc.ensemble(scenario, "100us", two)] == [1, 2]


@pytest.mark.parametrize("none", [np.array(2.5), np.array([2]), np.True_, "2", 0])
def test_what_is_no_whole_number_is_refused_by_name(none: Any) -> None:
    with pytest.raises(InputError, match=r"^flows: expected a whole number from 1"):
        fc.incast(none)


@pytest.mark.parametrize("at", [1, np.array(1), "unequal"])
def test_no_equilibrium_is_refused_by_name(at: Any) -> None:
    with pytest.raises(InputError, match=r"^at: .* is no equilibrium"):
        fc.stability(fc.incast(2), at=at)
