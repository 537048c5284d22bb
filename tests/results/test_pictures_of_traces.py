"""What a trace's picture shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidcc as fc

ENGINES: dict[str, dict[str, Any]] = {"fluid": {"estimate_error": False}, "packet": {"seed": 1}}


@pytest.fixture(scope="module")
def trace() -> fc.Trace:
    return fc.simulate(fc.incast(16, rate="100Gbps", scheme=fc.HPCC()), "1ms", engine="packet")


def test_a_start_that_dwarfs_the_rest_is_in_an_inset(trace: fc.Trace) -> None:
    top = trace.plot().axes[0]
    late = trace["queue"].sel(time=slice(5e-4, None)).values.max()
    (inset,) = top.child_axes
    assert float(trace["queue"].max()) > 20 * late
    assert top.get_ylim()[1] * 1e3 == pytest.approx(1.85 * late, rel=1e-6)  # KB
    assert np.nanmax(inset.lines[0].get_ydata()) * 1e3 == pytest.approx(float(trace["queue"].max()))


def test_a_start_that_dwarfs_a_comparison_is_in_an_inset() -> None:
    """Notice a picture of two engines that shows the first burst alone, and of what they settle at a line at 0."""
    scenario = fc.incast(16, rate="100Gbps", scheme=fc.HPCC(w_ai="300B"))
    fluid, packets = (fc.simulate(scenario, "1ms", engine=engine, **more) for engine, more in ENGINES.items())
    found = fc.compare(fluid, packets)
    top, bottom = found.plot().axes[:2]
    late = slice(len(found.dataset.time) // 2, None)
    calm = max(float(found.dataset[f"queue_{name}"].isel(time=late).max()) for name in found.engines)
    (inset,) = top.child_axes
    assert not bottom.child_axes
    assert top.get_ylim() == pytest.approx((0, 1.85 * calm / 1e3))
    assert np.nanmax(inset.lines[1].get_ydata()) == pytest.approx(float(found.dataset.queue_fluid.max()) / 1e3)


def test_many_flows_have_a_legend(trace: fc.Trace) -> None:
    legend = trace.plot().axes[1].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["16 flows: mean, range"]


def test_thresholds_and_the_equilibrium_are_lines() -> None:
    scenario = fc.incast(2)
    trace = fc.simulate(scenario, "40ms", window=("0ms", "40ms"), estimate_error=False)
    found = fc.equilibrium(scenario)
    top, bottom = trace.plot(equilibrium=found).axes[:2]
    assert not top.child_axes
    levels = {line.get_label(): line.get_ydata()[0] for line in top.lines}
    assert levels["Kmin"] == pytest.approx(5.0)
    assert levels["Kmax"] == pytest.approx(200.0)
    assert levels["equilibrium"] == pytest.approx(found.as_dict()["queue_bytes"] / 1e3)
    assert {line.get_label(): line.get_ydata()[0] for line in bottom.lines}["equilibrium"] == pytest.approx(20.0)
    assert {text.get_text() for text in top.get_legend().get_texts()} == {"bottleneck", "Kmin", "Kmax", "equilibrium"}
