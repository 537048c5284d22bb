"""PowerTCP's fluid and packets against its closed form; run it with fluidcc installed and this folder."""

from __future__ import annotations

import numpy as np
import powertcp
import pytest
import sympy

import fluidcc as fc
from fluidcc.contract.bind import bind
from fluidcc.engines.flow_level.run import flow_times
from fluidcc.scenario.model import resolve
from fluidcc.workloads.fabrics import alone, named_topology

PACKET = 1000 + 42 + 62  # bytes, an upper bound


def scenario(flows: int, apart: float = 0.0) -> fc.Scenario:
    fc.register(powertcp)  # an installed package's entry point does it as well
    starts = [f"{k * apart}us" for k in range(flows)]
    return fc.incast(flows, rate="100Gbps", scheme=powertcp.PowerTCP(), start=starts)


def standing(given: fc.Scenario) -> float:
    """N windows w = w/power + beta hold C tau and a queue: power is 1 + q/(C tau), so q = N beta."""
    resolved = resolve(given)
    return sum(float(bind(resolved, flow).beta) for flow in resolved.flows)


@pytest.mark.parametrize(("flows", "apart"), [(2, 0.0), (4, 0.0), (12, 0.7)])
def test_the_fluid_rests_at_n_beta(flows: int, apart: float) -> None:
    """With 6 or more that start at once its flows stay in step, and keep a cycle that packets do not have."""
    given = scenario(flows, apart)
    summary = fc.simulate(given, "2ms", estimate_error=False).summary
    assert summary["queue_bytes"]["mean"] == pytest.approx(standing(given), rel=1e-3)
    assert summary["utilisation"] == pytest.approx(1.0, abs=1e-6)
    # Of flows that start apart the shares still come together at 2 ms.
    assert summary["jain"] == pytest.approx(1.0, abs=1e-5 if apart else 1e-6)


@pytest.mark.parametrize("flows", [2, 4, 8])
def test_packets_rest_there_to_two_packets(flows: int) -> None:
    """A packet is in service, and another may meet it."""
    given = scenario(flows)
    summary = fc.simulate(given, "2ms", engine="packet").summary
    assert summary["queue_bytes"]["mean"] == pytest.approx(standing(given), abs=2 * PACKET)
    assert summary["utilisation"] > 0.999
    assert summary["jain"] > 0.99


@pytest.mark.parametrize("flows", [2, 32])
def test_its_symbols_say_so_too(flows: int) -> None:
    """From the law's own code: windows w = w/power + beta, and power of what they hold; differences shrink by it."""
    given = scenario(flows)
    found = fc.symbolic(powertcp.PowerTCP(), flows=flows, rate="100Gbps")
    window, power = found.unknowns
    assert found.solution is not None
    held = flows * found.number(found.solution[window]).real
    bdp = found.number(sympy.Symbol("C", positive=True) * sympy.Symbol("T", positive=True)).real
    assert held - bdp == pytest.approx(standing(given), rel=1e-9)
    assert found.number(found.solution[power]).real == pytest.approx(1 + standing(given) / bdp, rel=1e-12)
    at_rest = {name.name: found.number(value).real for name, value in found.solution.items()}
    (shrinks,) = sympy.Poly(found.fairness, sympy.Symbol("z")).all_coeffs()[1:]
    # Of n packets in a window all but (1 - gamma)^n of the way to old/power + beta is gone.
    rest = 0.1 ** (held / flows / float(resolve(given).wire_packet_of(resolve(given).flows[0])))
    expected = 1 / at_rest["Gamma"] + rest * (1 - 1 / at_rest["Gamma"])
    assert -found.number(shrinks, at_rest).real == pytest.approx(expected, rel=1e-12)


def test_a_transfer_alone_takes_its_unloaded_time() -> None:
    """At flow level, to a percent: it is never held by its window."""
    fc.register(powertcp)
    topology = named_topology("leaf-spine:2x2x4")
    given = topology.scenario([(0, 5, 0.0, 1e6)], ecmp_seed=1, scheme=powertcp.PowerTCP())
    np.testing.assert_allclose(flow_times(given, model="dynamics").completion, alone(given), rtol=0.01)
