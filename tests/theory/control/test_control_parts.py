"""States that take part, roots of all modes put together, and margins that are none; what is solved stands in."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from fluidcc.theory.control import linearize, stability, states
from fluidcc.theory.control.linearize import Linearization
from fluidcc.theory.control.local import Local


def network(**changed: Any) -> Local:
    """A queue, and a flow whose rate follows its second state, that its third, and its fourth all; an empty queue.

    The third state hears of the first queue. The second flow has a rate alone, which hears of nothing.
    """
    rows = 7
    present, rates = np.zeros((1, rows, rows)), np.zeros((1, 2, rows))
    present[0, 0, 1] = present[0, 1, 2] = present[0, 2, 3] = -1.0
    present[0, 4, 1:4] = 1.0
    past, observed = np.zeros((1, rows, 2)), np.zeros((1, 2, rows))
    past[0, 3] = [1.0, -1.0]
    observed[0, :, 0] = 1.0
    rates[0, 0, 1] = rates[0, 1, 6] = 1.0
    x = np.array([[5.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]])
    slopes = {"x": x, "held": np.zeros((1, rows), bool), "present": present, "past": past}
    slopes |= {"observed": observed, "rates": rates} | changed
    return Local(cast(Any, SimpleNamespace(flow=[-1, 0, 0, 0, 0, -1, 1])), cast(Any, SimpleNamespace(**slopes)))


def test_what_rates_and_queues_follow_takes_part_however_far_away() -> None:
    """An empty queue, a state that nobody follows and a flow that hears nothing do not; nor does what is held."""
    assert np.flatnonzero(network().moving[0]).tolist() == [0, 1, 2, 3]
    held = np.zeros((1, 7), bool)
    held[0, 2] = True
    assert np.flatnonzero(network(held=held).moving[0]).tolist() == [0, 1]
    held[0, 2:4] = [False, True]  # the flow hears by it alone
    assert np.flatnonzero(network(held=held).moving[0]).tolist() == [0]
    observed = np.zeros((1, 2, 7))
    observed[0, :, 4] = [1.0, -1.0]  # opposite signs do not cancel
    assert np.flatnonzero(network(observed=observed).moving[0]).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("count", "kept"), [(1, [5, 5]), (2, [5, 5]), (3, [5, 5, 3]), (4, [5, 5, 3, 1]), (9, [5, 5, 3, 1])]
)
def test_rightmost_roots_of_all_modes(monkeypatch: pytest.MonkeyPatch, count: int, kept: list[int]) -> None:
    """In order, of a pair both, with their residuals and the first state that is not well."""
    parts = {
        "aggregate": SimpleNamespace(s=np.array([3.0 + 0j, 1.0]), residual=np.array([0.3, 0.1]), state="ok"),
        "fairness": SimpleNamespace(s=np.array([5 - 2j, 5 + 2j]), residual=np.array([0.5, 0.6]), state="unresolved"),
    }
    monkeypatch.setattr(linearize, "roots", lambda system, count: parts[system])
    given = SimpleNamespace(system="aggregate", fairness=[SimpleNamespace(system="fairness")])
    found: Any = Linearization.roots(cast(Any, given), count)
    assert found.s.real.tolist() == kept
    assert found.s.imag[:2].tolist() == [2.0, -2.0]
    assert found.residual[:2].tolist() == [0.6, 0.5]
    assert (int(found.number), str(found.state)) == (len(kept), "unresolved")
    parts["fairness"].state = "ok"
    assert str(Linearization.roots(cast(Any, given), count).state) == "ok"


@pytest.mark.parametrize(("gain", "decibels"), [(10.0, 20.0), (0.1, -20.0), (0.0, None)])
@pytest.mark.parametrize("stable", [True, False])
def test_margins_in_degrees_and_decibels(
    monkeypatch: pytest.MonkeyPatch, gain: float, decibels: float | None, stable: bool
) -> None:
    """A gain of 0 has no decibels; the delay margin is one of a stable loop; a missed root leaves stable open."""
    roots = {"aggregate": -2.0, "one": -1.0, "other": -3.0}
    state = ["ok"]
    margins = SimpleNamespace(
        gain=SimpleNamespace(value=gain), phase=SimpleNamespace(value=np.pi / 6),
        delay=SimpleNamespace(value=0.25), stable=stable,
    )  # fmt: skip
    monkeypatch.setattr(
        stability, "abscissa", lambda name: SimpleNamespace(value=roots[name], frequency=7.0, state=state[0])
    )
    monkeypatch.setattr(stability, "_critical", lambda found: (0.5, 8.0))
    monkeypatch.setattr(stability, "_published", lambda scenario: 55.0)
    given: Any = SimpleNamespace(
        equilibrium=SimpleNamespace(exists=True, on_ramp=False),
        system="aggregate",
        fairness=[SimpleNamespace(system="one"), SimpleNamespace(system="other")],
        loop=lambda: SimpleNamespace(margins=lambda: margins),
    )
    found = stability._of(cast(Any, None), given, 4.0, equal=True)
    assert (found.flows, found.exists, found.on_ramp, found.stable, found.state) == (4.0, True, False, True, "ok")
    assert (found.aggregate_root, found.fairness_root) == (-2 + 7j, -1 + 7j)
    assert found.phase_margin == pytest.approx(30.0)
    assert found.gain_margin == (None if decibels is None else pytest.approx(decibels))
    assert found.delay_margin == (0.25 if stable else None)
    assert (found.critical_feedback_delay, found.crossing_frequency, found.paper_phase_margin) == (0.5, 8.0, 55.0)
    assert "critical feedback delay 500ms" in repr(found)
    assert stability._of(cast(Any, None), given, 4.0, equal=False).paper_phase_margin is None
    state[0] = "unresolved"
    assert stability._of(cast(Any, None), given, 4.0, equal=True).stable is None
    roots["one"] = 0.0  # neither falls nor rises
    found = stability._of(cast(Any, None), given, 4.0, equal=True)
    assert (found.stable, found.state) == (False, "unresolved")
    given.loop = lambda: None
    given.fairness = []
    found = stability._of(cast(Any, None), given, 4.0, equal=True)
    assert (found.fairness_root, found.phase_margin, found.gain_margin, found.delay_margin) == (None,) * 4


@pytest.mark.parametrize(
    ("rows", "given", "equal"), [(1, False, True), (2, False, True), (1, True, True), (2, True, False)]
)
def test_a_published_margin_is_of_equal_shares(
    monkeypatch: pytest.MonkeyPatch, rows: int, given: bool, equal: bool
) -> None:
    """By default shares are equal; what is asked for is so if its flows have one row. All flows are counted."""
    seen: list[Any] = []
    scenario: Any = SimpleNamespace(
        flows=[SimpleNamespace(multiplicity=2.0, scheme=1), SimpleNamespace(multiplicity=1.5, scheme=2)]
    )
    found: Any = SimpleNamespace(equilibrium=SimpleNamespace(flows=[0] * rows))
    at: Any = "at" if given else None
    monkeypatch.setattr(stability, "resolve", lambda scenario: scenario)
    monkeypatch.setattr(stability, "smooth_side", seen.append)
    monkeypatch.setattr(stability, "linearize", lambda scenario, at: found)
    monkeypatch.setattr(stability, "_of", lambda scenario, found, count, equal: (count, equal))
    monkeypatch.setattr(stability, "_with_noise", lambda point, scenario, found, at: (*point, at))
    assert stability.stability(scenario, at=at) == (3.5, equal, at)
    assert seen == [1, 2]


def test_what_cannot_be_linearised_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """It exists at line rate; without one it does not; nothing is known of what jumps."""
    scenario: Any = SimpleNamespace(flows=[SimpleNamespace(multiplicity=2.0, scheme=1)])
    monkeypatch.setattr(stability, "resolve", lambda scenario: scenario)
    monkeypatch.setattr(stability, "smooth_side", lambda parameters: None)
    monkeypatch.setattr(stability, "has_updates", lambda scenario: False)

    def refused(error: Exception) -> Any:
        def raises(*_: Any, **__: Any) -> Any:
            raise error

        return raises

    monkeypatch.setattr(stability, "linearize", refused(states.UnfilledError("linearize: no link is filled")))
    found = stability.stability(scenario)
    assert (found.flows, found.exists, found.on_ramp, found.stable, found.state) == (
        2,
        True,
        False,
        None,
        "no link is filled",
    )
    monkeypatch.setattr(stability, "linearize", refused(states.NoEquilibriumError("linearize: none")))
    found = stability.stability(scenario)
    assert (found.exists, found.on_ramp, found.state) == (False, False, "none")
    monkeypatch.setattr(stability, "smooth_side", refused(states.NoEquilibriumError("linearize: jumps")))
    found = stability.stability(scenario)
    assert (found.exists, found.on_ramp, found.state) == (None, None, "jumps")


@pytest.mark.parametrize(
    ("margin", "queue", "state"),
    [
        (12.0, 40.0, "ok"),
        (None, 40.0, "ok"),
        (11.9, 40.0, "in doubt: less than 12 degrees of phase margin"),
        (-50.0, 40.0, "in doubt: less than 12 degrees of phase margin"),
        (12.0, 39.9, "in doubt: the mean queue is less than 4 standard deviations above empty"),
        (
            11.9,
            39.9,
            "in doubt: less than 12 degrees of phase margin and "
            "the mean queue is less than 4 standard deviations above empty",
        ),
    ],
)
def test_noise_is_in_doubt_near_an_edge(
    monkeypatch: pytest.MonkeyPatch, margin: float | None, queue: float, state: str
) -> None:
    """Describe the longest queue; none is told where the equilibrium is not stable, or is not of the printed model."""
    noise = SimpleNamespace(std_bytes=lambda: 10.0)
    asked: list[Any] = []
    monkeypatch.setattr(stability, "queue_noise", lambda *given: asked.append(given) or noise)
    point = stability.Stability(2.0, True, True, stable=True, phase_margin=margin)
    found: Any = SimpleNamespace(equilibrium=SimpleNamespace(links=[{"queue_bytes": queue}, {"queue_bytes": 1.0}]))
    given: Any = ("scenario", found, "at")
    with_noise = stability._with_noise(point, *given)
    assert (with_noise.queue_std_bytes, with_noise.queue_std_state) == (10.0, state)
    assert asked == [given]
    for change, why in (
        ({"stable": False}, "not stable"),
        ({"stable": None}, "not stable"),
        ({"on_ramp": False}, "not on"),
    ):
        none = stability._with_noise(dataclasses.replace(point, **change), *given)
        assert none.queue_std_bytes is None
        assert why in none.queue_std_state
    assert len(asked) == 1


def critical(*systems: Any, monkeypatch: pytest.MonkeyPatch, delays: dict[str, float]) -> Any:
    made = [SimpleNamespace(tau=np.array(tau), name=name) for name, tau in systems]
    monkeypatch.setattr(
        stability,
        "critical_delay",
        lambda system, at: SimpleNamespace(delay=delays[system.name], frequency=(system.name, at)),
    )
    fairness = [SimpleNamespace(system=each) for each in made[1:]]
    return stability._critical(cast(Any, SimpleNamespace(system=made[0], fairness=fairness)))


def test_the_least_critical_delay_of_all_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the one delay that is not 0; none where a mode has several, or none has any."""
    delays = {"all": 3.0, "one": 2.0, "none": -1.0}
    given: Any = {"monkeypatch": monkeypatch, "delays": delays}
    assert critical(("all", [0.0, 1.0]), **given) == (3.0, ("all", 1))
    assert critical(("all", [1.0]), ("one", [1.0]), **given) == (2.0, ("one", 0))
    assert critical(("all", [1.0]), ("none", [0.0]), ("none", []), **given) == (3.0, ("all", 0))
    assert critical(("none", [0.0]), **given) == (None, None)
    assert critical(("all", [1.0]), ("one", [1.0, 2.0]), **given) == (None, None)
    delays["all"] = np.inf
    assert critical(("all", [1.0]), **given) == (None, ("all", 0))
