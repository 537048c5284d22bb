"""Scenarios at values of the unknowns, the link that was measured, and runs with the columns that were measured."""

from __future__ import annotations

import dataclasses
import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve
from fluidcc.studies.fitting.measured import Measured
from fluidcc.studies.fitting.model import draws_chance, fluid_run, link_of, maker_of, random_run

fitted_model = importlib.import_module("fluidcc.studies.fitting.model")
TIMES = np.arange(5.0)


def like(queue: bool = True, rates: int | None = None, paced: bool = False) -> Measured:
    """Measured columns, of which only their number counts."""
    return Measured(TIMES, np.ones(5) if queue else None, None if rates is None else np.ones((5, rates)), paced=paced)


# -- parameters --------------------------------------------------------------------------------------------------


def test_a_name_changes_schemes_first_then_marking_and_delays_of_all_links() -> None:
    two = fc.parking_lot(2, marking=fc.RED("5KB", "200KB", "1%"))
    make = maker_of(two, ["g", "kmin", "delay"])
    found = make(g=0.25, kmin=7e3, delay=3e-6)
    assert [flow.scheme.g for flow in found.flows] == [0.25] * len(two.flows)
    assert [link.delay for link in found.links] == [3e-6] * len(two.links)
    assert {link.marking.kmin for link in found.links if link.marking is not None} == {7e3}
    assert {link.marking.kmax for link in found.links if link.marking is not None} == {200e3}
    assert make() == two
    bare = dataclasses.replace(two, links=tuple(dataclasses.replace(link, marking=None) for link in two.links))
    assert all(link.marking is None for link in maker_of(bare, ["kmin"])(kmin=7e3).links)


def test_each_flow_takes_what_its_own_scheme_has() -> None:
    two = fc.incast(2)
    mixed = dataclasses.replace(two, flows=(two.flows[0], dataclasses.replace(two.flows[1], scheme=fc.HPCC(eta=0.9))))
    found = maker_of(mixed, ["g", "eta"])(g=0.25, eta=0.8)
    assert found.flows[0].scheme.g == 0.25
    assert found.flows[1].scheme.eta == 0.8


@pytest.mark.parametrize(
    ("scenario", "names", "says"),
    [
        (fc.incast(2), ["gg"], "the scenario has no parameter 'gg'; did you mean g"),
        (fc.incast(2), ["xyzzy"], r"no parameter 'xyzzy'; give a function"),
        (fc.incast(2), ["eta"], "no parameter 'eta'"),  # of another scheme
        (3, ["g"], "3 is neither a Scenario nor a function"),
        (lambda k: None, ["g"], "cannot be called with g"),
    ],
)
def test_what_a_scenario_does_not_have_is_refused(scenario: Any, names: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        maker_of(scenario, names)


def test_a_function_is_taken_as_it_is() -> None:
    make = lambda g: fc.incast(2)  # noqa: E731
    assert maker_of(make, ["g"]) is make


@pytest.mark.parametrize(
    ("scenario", "chance"),
    [
        (fc.incast(2, marking=fc.RED("5KB", "200KB", "1%")), True),
        (fc.incast(2, scheme=fc.HPCC()), False),
        (fc.incast(2, scheme=fc.HPCC(), marking=fc.RED("5KB", "200KB", "1%")), False),
    ],
)
def test_chance_is_in_marks_that_all_flows_react_to(scenario: fc.Scenario, chance: bool) -> None:
    assert draws_chance(resolve(scenario)) is chance
    unmarked = dataclasses.replace(
        scenario, links=tuple(dataclasses.replace(link, marking=None) for link in scenario.links)
    )
    assert draws_chance(unmarked) is False
    mixed = dataclasses.replace(
        scenario, flows=(scenario.flows[0], dataclasses.replace(scenario.flows[1], scheme=fc.HPCC()))
    )
    assert draws_chance(mixed) is False


@pytest.mark.parametrize(
    ("paths", "rates", "link"),
    [
        ([(0, 1), (1,), (2,)], [1.0, 1.0, 1.0], 1),  # two flows
        ([(0, 1), (1,), (2,)], [1.0, 4.0, 1.0], 0),  # for its rate
        ([(0, 1), (1,), (2,)], [1.0, 4.0, 0.5], 2),
        ([(0,), (1,), (2,)], [1.0, 1.0, 1.0], 0),
    ],
)
def test_the_link_with_most_flows_for_its_rate_was_measured(
    monkeypatch: pytest.MonkeyPatch, paths: list[tuple[int, ...]], rates: list[float], link: int
) -> None:
    monkeypatch.setattr(fitted_model, "link_names", lambda scenario: ["a", "b", "c"])
    scenario: Any = SimpleNamespace(
        flows=[SimpleNamespace(path=path) for path in paths], links=[SimpleNamespace(rate=rate) for rate in rates]
    )
    assert link_of(scenario, None) == link
    assert [link_of(scenario, name) for name in "abc"] == [0, 1, 2]
    with pytest.raises(InputError, match="link: the scenario has none named 'd'; write one of a, b, c"):
        link_of(scenario, "d")


# -- columns -----------------------------------------------------------------------------------------------------


def test_a_single_rate_of_several_classes_is_their_sum() -> None:
    """Three flows of the first and one of the second."""
    scenario = fc.incast(2, multiplicity=[3.0, 1.0])
    rates = np.array([[1.0, 10.0], [2.0, 20.0], [0.0, 5.0], [4.0, 0.0], [1.0, 1.0]])
    queue = np.arange(5.0)
    both = fitted_model._like(TIMES, queue, rates, scenario, like(rates=2))
    assert both.rates is rates
    assert both.queue is queue
    one: Any = fitted_model._like(TIMES, queue, rates, scenario, like(rates=1, paced=True))
    assert one.rates.tolist() == [[13.0], [26.0], [5.0], [12.0], [4.0]]
    assert one.paced is True
    assert fitted_model._like(TIMES, queue, rates, scenario, like(queue=False, rates=2)).queue is None
    assert fitted_model._like(TIMES, queue, rates, scenario, like()).rates is None
    with pytest.raises(InputError, match="trace: has 3 rates of 2 flows"):
        fitted_model._like(TIMES, queue, rates, scenario, like(rates=3))
    alone: Any = fitted_model._like(TIMES, queue, rates[:, :1], fc.incast(1, multiplicity=[3.0]), like(rates=1))
    assert alone.rates.tolist() == rates[:, :1].tolist()  # of one class it is that of each flow


class Trace(dict[str, Any]):
    """Variables by name."""


def traced(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    asked: list[Any] = []

    def simulate(scenario: Any, until: float, **options: Any) -> Any:
        asked.append((until, options))
        return Trace(
            time=xr.DataArray(TIMES),
            queue=xr.DataArray(np.stack([TIMES, 10 * TIMES], axis=1)),
            rate=xr.DataArray(np.full((5, 2), 3.0)),
            pacing_rate=xr.DataArray(np.full((5, 2), 4.0)),
        )

    monkeypatch.setattr(fitted_model, "simulate", simulate)
    return asked


@pytest.mark.parametrize(("paced", "rate"), [(False, 3.0), (True, 4.0)])
def test_the_fluid_runs_as_long_and_has_its_links_queue(
    monkeypatch: pytest.MonkeyPatch, paced: bool, rate: float
) -> None:
    asked = traced(monkeypatch)
    found: Any = fluid_run(fc.incast(2), 7.0, 0.5, 1, like(rates=2, paced=paced))
    assert asked == [(7.0, {"sample_interval": 0.5, "estimate_error": False})]
    assert found.queue.tolist() == [0.0, 10.0, 20.0, 30.0, 40.0]
    assert (found.rates == rate).all()


def test_packets_run_half_an_interval_beyond_the_last_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = traced(monkeypatch)
    time = 1e-5 * np.arange(4)
    found: Any = random_run(fc.incast(2), "packet", 9, time, 0, like(rates=1))
    ((until, options),) = asked
    assert until == pytest.approx(3.5e-5)
    assert options == {"engine": "packet", "seed": 9, "sample_interval": pytest.approx(1e-5)}
    assert found.queue.tolist() == TIMES.tolist()
    assert found.rates[:, 0].tolist() == [6.0] * 5


class Hybrid:
    """Stand-in for the hybrid: two flows of one class and one of another, sampled four times."""

    sent = np.array([[0.0, 0.0, 0.0], [999.0, 2001.0, 1000.0], [2500.0, 2999.0, 1000.0], [3000.0, 4000.0, 5000.0]])

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times: Any = None
        sim = SimpleNamespace(
            flow_samples=np.stack([self.sent, 7 * np.ones((4, 3))], axis=-1),
            link_samples=np.arange(16.0).reshape(4, 2, 2),
        )

        def prepare(scenario: Any, times: Any) -> None:
            self.times = times

        by_class = lambda values: np.stack([values[:, :2].mean(axis=1), values[:, 2]], axis=1)  # noqa: E731
        monkeypatch.setattr(fitted_model, "prepare", prepare)
        monkeypatch.setattr(fitted_model.hybrid, "execute", lambda prepared, seed: (sim, seed))
        monkeypatch.setattr(fitted_model.hybrid, "outcome_of", lambda prepared, sim: SimpleNamespace(by_class=by_class))


def test_the_hybrids_rates_are_of_whole_packets_of_each_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packets of 1000 bytes: 0 and 2, then 2 and 2, then 3 and 4 of the first class, and 1, 1 and 5 of the second."""
    ran = Hybrid(monkeypatch)
    scenario = fc.incast(2, packet_size=952, header_bytes=48)
    found: Any = random_run(scenario, "hybrid", 5, 0.5 * np.arange(4), 1, like(rates=2))
    assert found.time.tolist() == [0.0, 0.5, 1.0, 1.5]
    assert found.queue.tolist() == [2.0, 6.0, 10.0, 14.0]
    assert found.rates.tolist() == [[0.0, 0.0], [2000.0, 2000.0], [2000.0, 0.0], [3000.0, 8000.0]]
    assert (ran.times.until, ran.times.opens, ran.times.closes) == pytest.approx((1.75, 0.875, 1.75))
    assert ran.times.interval == 0.5


def test_the_hybrids_pacing_rates_are_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    Hybrid(monkeypatch)
    found: Any = random_run(fc.incast(2), "hybrid", 5, 0.5 * np.arange(4), 0, like(rates=2, paced=True))
    assert found.rates.tolist() == [[7.0, 7.0]] * 4
    assert found.queue.tolist() == [0.0, 4.0, 8.0, 12.0]
