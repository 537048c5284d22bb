"""Rests found on the fluid's own right-hand side, against those solved for scheme by scheme, and by running."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.fluid.network import network_of
from fluidcc.scenario.model import Flow, Link, Scenario, resolve
from fluidcc.theory.control import fixed_point
from fluidcc.theory.control import local as local_equilibria
from fluidcc.theory.control.equilibrium import equilibria
from fluidcc.theory.control.local import Jacobians, local
from fluidcc.theory.control.states import NoEquilibriumError
from fluidcc.units import Rate

PATCHED = fc.TIMELY(patched=True, beta=0.008)


def random_network(seed: int) -> Scenario:
    """Three links and five flow classes of DCQCN on random paths, with parameters of their own."""
    rng = np.random.default_rng(seed)
    rates = rng.uniform(2, 6, 3) * 1e9
    kmax = rng.uniform(100e3, 400e3, 3)
    links = tuple(Link(rate=Rate(rate), marking=fc.RED("5KB", k, 0.2)) for rate, k in zip(rates, kmax, strict=True))
    paths = [(0,), (0, 1), (1, 2), (2,), (0, 1, 2)]
    flows = tuple(
        Flow(
            path=path,
            line_rate=Rate(rates.max()),
            multiplicity=float(rng.integers(1, 4)),
            scheme=fc.DCQCN(rate_ai=f"{rng.uniform(20, 80):.3f}Mbps", timer=f"{rng.uniform(50, 300):.2f}us"),
        )
        for path in paths
    )
    return Scenario(links, flows)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_networks_of_dcqcn_rest_where_their_markings_say(seed: int) -> None:
    """Two solvers without a line in common: queues and rates to 1e-8, from every start that gets there."""
    scenario = random_network(seed)
    solved = fc.equilibrium(scenario)
    (found,) = equilibria(scenario)
    scale = max(row["queue_bytes"] for row in solved.links)
    for key, rows, others in (
        ("queue_bytes", solved.links, found.links),
        ("rate_bytes_per_s", solved.flows, found.flows),
        ("alpha", solved.flows, found.flows),
    ):
        ours, theirs = (np.array([row[key] for row in each]) for each in (rows, others))
        np.testing.assert_allclose(theirs, ours, rtol=1e-8, atol=1e-8 * scale if key == "queue_bytes" else 0)
    assert found.on_ramp == solved.on_ramp


@pytest.mark.slow
def test_rates_of_hpcc_rest_where_filling_says() -> None:
    """A.3 by progressive filling, over a parking lot and with a standing queue: to 1e-9."""
    for scenario in (
        fc.parking_lot(3, rate="100Gbps", scheme=fc.HPCC(form="rate", w_ai="800B")),
        fc.incast(16, rate="100Gbps", scheme=fc.HPCC(form="rate", rate_ai="1Gbps")),
    ):
        solved, (found,) = fc.equilibrium(scenario), equilibria(scenario)
        for key, rows, others in (
            ("rate_bytes_per_s", solved.flows, found.flows),
            ("queue_bytes", solved.links, found.links),
        ):
            ours, theirs = (np.array([row[key] for row in each]) for each in (rows, others))
            np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-3)


@pytest.mark.slow
def test_schemes_that_share_a_link() -> None:
    """DCQCN holds the queue at its marking, and patched TIMELY takes what its delay allows: where the run settles."""
    link = Link(rate="10Gbps", delay="1us", marking=fc.RED("5KB", "400KB", 0.01))
    flows = tuple(
        Flow(path=(0,), line_rate="10Gbps", initial_rate="2.5Gbps", multiplicity=2.0, scheme=scheme)
        for scheme in (fc.DCQCN(feedback_delay=None), PATCHED)
    )
    (found,) = equilibria(Scenario((link,), flows))
    assert found.links[0]["utilisation"] == pytest.approx(1.0, rel=1e-9)
    run = fc.limit_cycle(Scenario((link,), flows), estimate_error=False)
    assert run.kind == "equilibrium"
    assert run.mean == pytest.approx(found.links[0]["queue_bytes"], rel=1e-3)
    assert run.rates == pytest.approx([row["rate_bytes_per_s"] for row in found.flows], rel=1e-3)


def test_a_batch_is_its_points() -> None:
    """Queues of 2 to 40 flows together, as many as a chart of `test_chart.py` has, and some one by one, to rounding."""
    many = np.arange(2.0, 41.0, 2.0)
    one = network_of(resolve(fc.incast(1, multiplicity=2)))
    together = local(dataclasses.replace(one, multiplicity=many[None]), len(many))
    assert together.exists.all()
    for k in (0, 3, 6, 9, 19):
        alone = local(network_of(resolve(fc.incast(1, multiplicity=many[k]))))
        np.testing.assert_allclose(together.slopes.x[k], alone.slopes.x[0], rtol=1e-12)


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(fc.incast(2, marking=fc.RED("40KB", "40KB", 1.0)), marks=pytest.mark.slow),
        fc.incast(1, multiplicity=4, rate="10Gbps", scheme=fc.TIMELY(thresholds="queueing")),
        fc.incast(1, rate="10Gbps", multiplicity=80, scheme=dataclasses.replace(PATCHED, thresholds="queueing")),
        fc.incast(1, rate="10Gbps", multiplicity=73, scheme=dataclasses.replace(PATCHED, thresholds="queueing")),
        fc.incast(1, multiplicity=16, rate="100Gbps", scheme=fc.HPCC(form="rate", rate_ai="1Gbps", u_queue=False)),
    ],
    ids=[
        "step marking",
        "increases at g = 0",
        "another rule above T_high",
        "just above",
        "a queue that grows for ever",
    ],
)
def test_what_looks_like_a_rest_is_none(scenario: Scenario) -> None:
    assert equilibria(scenario) == ()
    with pytest.raises(NoEquilibriumError, match="no fixed point"):
        fc.linearize(scenario)


@pytest.mark.parametrize("scheme", [fc.HPCC(), fc.DCTCP(), fc.Swift()])
def test_windows_have_nothing_to_search(scheme: Any) -> None:
    with pytest.raises(NoEquilibriumError, match="jumps"):
        equilibria(fc.incast(2, rate="100Gbps", scheme=scheme))


@pytest.mark.slow
def test_delays_of_any_ratio_change_no_rest() -> None:
    """From 1 ns to 10 s; a thousandth of the queue's own time is stable."""
    for delay in ("1ns", "10s"):
        (found,) = equilibria(fc.incast(8, scheme=fc.DCQCN(feedback_delay=delay)))
        assert found.links[0]["queue_bytes"] == pytest.approx(93766.17337, rel=1e-9)
    assert fc.stability(fc.incast(8, scheme=fc.DCQCN(feedback_delay="1ns"))).stable


def test_a_published_linearisation_by_name() -> None:
    scenario = fc.incast(8)
    published = fc.linearize(scenario, method="paper")
    assert published.phase_margin() == pytest.approx(-6.4319, abs=0.1)  # as printed
    with pytest.raises(fc.InputError, match="nothing was published"):
        fc.linearize(fc.incast(2, rate="10Gbps", scheme=PATCHED), method="paper")
    with pytest.raises(fc.InputError, match="exact or paper"):
        fc.linearize(scenario, method="pade")  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_each_point_keeps_the_first_start_that_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends are given by hand: the second start finds what the first lost, and loses what that found."""
    ends = iter([[1e-16, np.inf, np.inf], [np.inf, 1e-16, np.inf], [2e-16, 2e-16, 2e-16], [3e-16] * 3])

    def end(*_: Any) -> Jacobians:
        moved = np.array(next(ends))
        x = np.repeat(moved[:, None], 2, axis=1)
        return Jacobians(x, moved, *[moved] * (len(Jacobians._fields) - 2))

    monkeypatch.setattr(local_equilibria, "_from", end)
    found = local(network_of(resolve(random_network(0))), 3)
    np.testing.assert_array_equal(found.slopes.x, [[1e-16] * 2, [1e-16] * 2, [2e-16] * 2])
    assert found.exists.all()
    assert next(ends)[0] == 3e-16  # and no further start is tried


def test_places_that_are_alike_share_a_row() -> None:
    places = [
        {"name": "link 0", "utilisation": 1.0, "queue_bytes": 5e3},
        {"name": "link 1", "utilisation": 0.5, "queue_bytes": 0.0},
        {"name": "link 2", "utilisation": 1.0, "queue_bytes": 5e3},
        {"name": "link 3", "utilisation": 1.0},
    ]
    rows, header = fixed_point._rows(places)
    assert len(header) == 3
    assert header[0] == ""
    assert [row[1] for row in rows] == [rows[0][1], rows[1][1], rows[0][1]]
    assert [row[2] == rows[0][2] for row in rows] == [True, False, False]
    assert "0" in rows[0][0]
    assert "2" in rows[0][0]
    assert "link 1" in rows[1][0]
