"""What a trace's picture shows."""

from __future__ import annotations

import numpy as np
import pytest

import fluidcc as fc


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
