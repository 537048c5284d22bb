"""W_AI in closed form against the fluid model."""

from __future__ import annotations

import pytest

import fluidcc as fc
from fluidcc.schemes.hpcc.increase import solve_equilibrium


@pytest.mark.parametrize("flows", [1, 4, 16])
def test_the_boundary_is_where_u_reaches_one(flows: int) -> None:
    boundary = solve_equilibrium(fc.incast(flows, rate="100Gbps", scheme=fc.HPCC())).boundary
    at = solve_equilibrium(fc.incast(flows, rate="100Gbps", scheme=fc.HPCC(w_ai=boundary)))
    assert at.utilisation == pytest.approx(1, abs=1e-12)
    assert at.queue == pytest.approx(0, abs=1e-6)
    twice = solve_equilibrium(fc.incast(flows, rate="100Gbps", scheme=fc.HPCC(w_ai=2 * boundary)))
    assert twice.queue == pytest.approx(flows * boundary)


@pytest.mark.slow
@pytest.mark.parametrize("increase", [80, 600])
def test_the_fluid_rests_there(increase: float) -> None:
    """U within 1e-3, queue within a tenth of a packet, window within 1 %."""
    scenario = fc.incast(16, rate="100Gbps", scheme=fc.HPCC(w_ai=increase))
    trace, at = fc.simulate(scenario, "5ms", estimate_error=False), solve_equilibrium(scenario)
    assert trace["utilisation_estimate"].values[-1].mean() == pytest.approx(at.utilisation, abs=1e-3)
    assert trace.summary["queue_bytes"]["mean"] == pytest.approx(at.queue, abs=104)
    assert trace["window"].values[-1].mean() == pytest.approx(at.window, rel=0.01)


def test_what_it_does_not_cover_is_refused() -> None:
    for scenario in (fc.parking_lot(3, scheme=fc.HPCC()), fc.incast(2)):
        with pytest.raises(fc.InputError, match="closed form"):
            solve_equilibrium(scenario)
    with pytest.raises(fc.InputError, match="ratio"):
        solve_equilibrium(fc.incast(2, scheme=fc.HPCC())).fairness_time(2.0)


@pytest.mark.slow
def test_with_a_t_that_is_not_the_paths() -> None:
    """T of 4 us on a path of 4.18 us: the queue that the fluid keeps, and the boundary from which one stands."""
    at = solve_equilibrium(fc.incast(16, rate="100Gbps", scheme=fc.HPCC(w_ai="300B", base_rtt="4us")))
    same = fc.incast(1, multiplicity=16, rate="100Gbps", scheme=fc.HPCC(w_ai="300B", base_rtt="4us"))
    run = fc.simulate(same, "5ms", estimate_error=False).summary
    assert run["queue_bytes"]["mean"] == pytest.approx(at.queue, abs=1.0)
    assert at.queue == pytest.approx(2097, abs=1)
    there = solve_equilibrium(fc.incast(16, rate="100Gbps", scheme=fc.HPCC(w_ai=at.boundary, base_rtt="4us")))
    assert there.utilisation == pytest.approx(1, abs=1e-12)


def test_windows_of_one_packet() -> None:
    """100 of them hold more than the path does, whatever W_AI is."""
    at = solve_equilibrium(fc.incast(100, rate="100Gbps", scheme=fc.HPCC(w_ai="1B")))
    assert at.window == 1042
    assert at.queue > 50e3
    with pytest.raises(fc.InputError, match="registers"):
        solve_equilibrium(fc.incast(2, scheme=fc.HPCC(registers="per-link")))
    with pytest.raises(fc.InputError, match="form=window"):
        solve_equilibrium(fc.incast(2, scheme=fc.HPCC(form="rate")))
