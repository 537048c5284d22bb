"""The mean rate of a flow that ends is its bytes over the window, in every engine, also of one that starts with it."""

from __future__ import annotations

import pytest

import fluidcc as fc


@pytest.mark.parametrize("engine", ["fluid", "hybrid", "packet"])
@pytest.mark.parametrize("size", ["1KB", "200KB"])
def test_bytes_over_the_window(engine: str, size: str) -> None:
    scenario = fc.incast(3, scheme=fc.NoControl(), rate="40Gbps", size=size, marking=None)
    found = fc.simulate(scenario, "200us", engine=engine, window="0:200us").summary
    expected = {"1KB": 1e3, "200KB": 2e5}[size]
    assert [rate * 200e-6 for rate in found["rate_bytes_per_s"]] == pytest.approx([expected] * 3, rel=1e-9)
    assert [rate * 200e-6 for rate in found["goodput_bytes_per_s"]] == pytest.approx([expected] * 3, rel=1e-9)
    assert found["jain"] == pytest.approx(1.0)
    assert found["utilisation"] * 5e9 * 200e-6 == pytest.approx(3 * expected, rel=1e-6)


@pytest.mark.parametrize(
    "scheme",
    [
        fc.DCQCN(),
        *(pytest.param(one, marks=pytest.mark.slow) for one in (fc.TIMELY(), fc.HPCC(), fc.Swift(), fc.DCTCP())),
    ],
)
def test_of_every_scheme_in_the_fluid(scheme: object) -> None:
    scenario = fc.incast(2, scheme=scheme, rate="40Gbps", size="50KB")
    found = fc.simulate(scenario, "400us", window="0:400us", estimate_error=False).summary
    wire = 50 * scenario.wire_packet_of(scenario.flows[0])
    # The window ends on the last step within it; a trapezoid was off by several per cent.
    assert [rate * 400e-6 for rate in found["rate_bytes_per_s"]] == pytest.approx([wire] * 2, rel=2e-4)
