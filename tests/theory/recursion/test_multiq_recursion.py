"""MultiQ's rate map: its settles and cycles in closed form, and a rule that has one equilibrium for each service."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.theory.recursion import multiq

ETA = 0.95
shares = st.floats(0.05, 0.85)


@pytest.mark.slow
@given(shares)
def test_a_class_alone_is_locked_in_below_and_rests_short_of_eta_above(share: float) -> None:
    assert multiq.orbit(0.5 * share, share=share).rates == pytest.approx([ETA * share])
    assert multiq.orbit(1.0, share=share).rates == pytest.approx([ETA / (2 - ETA)])
    assert multiq.orbit(1.0, share=share, rule="spare").rates == pytest.approx([ETA])
    assert multiq.orbit(0.5 * share, share=share, rule="spare").rates == pytest.approx([ETA])


@given(shares, st.floats(0.0, 1.0))
@pytest.mark.slow
def test_between_the_guarantee_and_the_second_rest_it_cycles(share: float, place: float) -> None:
    """Served at A, w B/eta < A < eta B/(2 - eta^2): eta A, then eta (eta A + B)/2, which is backlogged, and again."""
    low, high = share / ETA, ETA / (2 - ETA**2)
    served = low + (0.01 + 0.98 * place) * (high - low)
    if low >= high:
        return
    assert sorted(multiq.orbit(served, share=share, served=served).rates) == pytest.approx(
        [ETA * served, ETA * (ETA * served + 1) / 2]
    )
    assert multiq.orbit(served, share=share, served=served, rule="spare").rates == pytest.approx([ETA * served])


@given(st.floats(0.05, 0.8), st.floats(0.0, 0.9))
@pytest.mark.slow
def test_just_below_the_second_rest_cycles_are_longer(share: float, place: float) -> None:
    """For eta B/(2 - eta^2) < A < eta B/(2 - eta) the rate climbs for several round trips until it is backlogged."""
    low, high = ETA / (2 - ETA**2), ETA / (2 - ETA)
    served = low + (0.01 + 0.98 * place) * (high - low)
    cycle = multiq.orbit(served, share=share, served=served, longest=64)
    assert cycle.period >= 3
    assert min(cycle.rates) == pytest.approx(ETA * served)
    assert max(cycle.rates) > served


def test_u_is_continuous_where_backlogged_and_jumps_where_not() -> None:
    """At tx = w B: 1 on both sides with a backlog; without one, 1 below and 2 w/(1 + w) above."""
    w, step = 0.4, 1e-9
    backlogged = multiq.utilisation(np.array([w + step]), share=w, served=w)
    assert backlogged == pytest.approx(1, abs=1e-8)
    below, above = multiq.utilisation(np.array([w - step, w + step]), share=w)
    assert (below, above) == pytest.approx((1, 2 * w / (1 + w)), abs=1e-8)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"share": 0.0}, "share"),
        ({"share": 1.5}, "share"),
        ({"share": 0.5, "served": 2.0}, "served"),
        ({"share": 0.5, "rule": "none"}, "rule"),
    ],
)
def test_bad_links_are_refused(options: dict[str, object], reason: str) -> None:
    with pytest.raises(fc.InputError, match=reason):
        multiq.orbit(0.5, **options)
    with pytest.raises(fc.InputError, match="start"):
        multiq.orbit(0.0, share=0.5)


@pytest.mark.parametrize(
    ("sent", "backlog", "rules"),
    [
        (0.2, 0.0, (0.2 / 4, 0.2 / 1.5, 0.2)),
        (1.0, 0.5, (1.5 / 4, 1.5 / 2, 1.5)),  # at the guarantee, still by it
        (2.0, 0.0, (0.5, 2 / 3, 2 / 3)),  # half the line and half of what was sent
        (2.0, 0.1, (2.1 / 4, 2.1 / 3, 2 / 3)),  # at the threshold the queue is empty
        (2.0, 0.5, (2.5 / 4, 2.5 / 3, 1.25)),
    ],
)
def test_u_of_each_rule_by_hand(sent: float, backlog: float, rules: tuple[float, ...]) -> None:
    """A line of 4, of which 1 is guaranteed and up to 1 more was unused: catches terms, bounds and branches swapped."""
    unused = 1.0 if sent > 0.2 else 1.3
    link = {"guaranteed": 1.0, "line": 4.0, "unused": unused, "threshold": 0.1}
    found = [float(multiq.of_class(sent, backlog, rule, **link)) for rule in ("class", "spare", "slides")]
    assert found == pytest.approx(list(rules))


def test_a_step_in_plain_numbers() -> None:
    """R eta / U + a at a line of 4, in each branch and by each rule: catches a term, a bound or the line left out."""
    for rate in (0.5, 1.0, 1.5, 2.0, 3.0, 3.5):
        sent, backlog = min(rate, 2.5), max(rate - 2.5, 0.0)
        slides = rate if rate <= 1.0 else backlog / sent + 1 if backlog else sent / ((sent + 4) / 2)
        loads = {"slides": slides, "spare": (sent + backlog) / max(1.0, 2.5), "class": rate / 4}
        for rule, U in loads.items():
            link: dict[str, Any] = {"share": 0.25, "line": 4.0, "served": 2.5, "rule": rule}
            assert float(multiq.utilisation(rate, **link)) == pytest.approx(U, rel=1e-14)
            found = float(multiq.step(rate, eta=0.9, increase=0.125, **link))
            assert found == pytest.approx(rate * 0.9 / U + 0.125, rel=1e-14)
    assert float(multiq.step(0.5, share=0.5)) == pytest.approx(0.5 * 0.95, rel=1e-14)
    assert float(multiq.utilisation(2.0, share=0.25, line=4.0)) == pytest.approx(2 / 3)  # served by all of the line


def test_orbits_in_exact_numbers() -> None:
    """A rate that repeats to the bit is found where nothing is tolerated; cycles follow the step, from the last on."""
    assert multiq.orbit(3.0, share=0.5, eta=0.5, tolerance=0.0) == multiq.Orbit((0.25,))
    for served in (0.7, 0.875):  # periods of 2 and more, as above
        link: dict[str, Any] = {"share": 0.2, "served": served}
        rate, rates = 0.9, []
        for _ in range(100):
            rates.append(rate)
            rate = float(multiq.step(rate, **link))
        cycle = multiq.orbit(0.9, steps=80, **link).rates
        assert cycle == tuple(rates[80 : 80 + len(cycle)])
        assert cycle[0] == pytest.approx(rates[80 + len(cycle)], rel=1e-9)
        assert all(each != pytest.approx(cycle[0], rel=1e-9) for each in cycle[1:])
        assert multiq.orbit(0.9, steps=80, longest=len(cycle), **link).rates == cycle
        with pytest.raises(fc.InputError, match="no cycle"):
            multiq.orbit(0.9, steps=80, longest=len(cycle) - 1, **link)
        early = multiq.orbit(0.9, steps=0, tolerance=1.0, **link).rates
        assert early == (0.9,)


def test_links_at_their_bounds_are_allowed() -> None:
    assert float(multiq.utilisation(1.0, share=1.0, served=1.0)) == 1.0
    for name, bad in (("line", 0.0), ("line", -1.0), ("served", 0.0), ("share", -0.5)):
        link: dict[str, Any] = {"share": 0.5, name: bad}
        with pytest.raises(fc.InputError, match=name):
            multiq.utilisation(1.0, **link)
    with pytest.raises(fc.InputError, match="start"):
        multiq.orbit(float("inf"), share=0.5)
