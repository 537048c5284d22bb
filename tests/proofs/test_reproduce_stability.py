"""Charts of stability and oscillates: their checks hold, and their data say what the pictures show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluidcc.proofs.dcqcn.stability_chart import over_flows
from fluidcc.proofs.delay_based.timely_stability import patched
from fluidcc.proofs.hpcc.stability import critical
from fluidcc.theory.control.stability import stability
from tests.proofs.figures import made


def check_dcqcn(values: dict[str, Any], data: Any) -> None:
    assert values["runs"] > 20
    assert ((data.root < 0) == (data.stable == 1)).all()
    at = data.isel(n=3, tau=5)
    alone = stability(over_flows(float(at.n), float(at.tau))).rightmost_root
    assert alone is not None
    assert float(at.root) == pytest.approx(alone.real, rel=1e-6)
    assert len(np.unique(data.curve)) == 1


def check_hpcc(values: dict[str, Any], data: Any) -> None:
    below = data.sel(share=slice(None, 0.99))
    expected = np.array([critical(share) for share in below.share.values])
    # Storing a packet and its ACK takes 0.046 of T.
    np.testing.assert_array_equal(below.stable == 1, below.delay.values[None] + 0.0459 < expected[:, None])
    assert (data.sel(share=slice(1.01, None)).stable == 0).all()
    assert values["critical_delay_at_the_headroom"] == pytest.approx(1.711269, abs=5e-7)


def check_timely(values: dict[str, Any], data: Any) -> None:
    last = int(values["flows_stable_at_1us"])
    found = [stability(patched(float(n))).stable for n in (last, last + 1)]
    assert found == [True, False]
    assert (data.reason.sel(n=slice(72.5, None)) != "ok").all()
    np.testing.assert_allclose(data.cycle_fluid, data.cycle_packets, rtol=0.1)


def check_dctcp(values: dict[str, Any], data: Any) -> None:
    oscillations = data.amplitude.values
    assert (np.diff(oscillations, axis=0) > 0).all()  # with flows, and with K
    assert (np.diff(oscillations, axis=1) > 0).all()
    assert (data.packets_max <= 300e3 * 1.2).all()


def check_swift(values: dict[str, Any], data: Any) -> None:
    assert (np.diff(data.fluid_mean) > 0).all()  # flow scaling adds to the target of small windows
    assert (data.fluid_max - data.fluid_min < data.packets_max - data.packets_min).all()


FIGURES: dict[str, tuple[tuple[int, int], Callable[[dict[str, Any], Any], None]]] = {
    "dcqcn-stability": ((2640, 720), check_dcqcn),
    "hpcc-stability": ((2640, 1290), check_hpcc),
    "timely-stability": ((2640, 720), check_timely),
    "dctcp-oscillation": ((1650, 660), check_dctcp),
    "swift-oscillation": ((1650, 660), check_swift),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figure(name: str, tmp_path: Path) -> None:
    size, check = FIGURES[name]
    result, data = made(name, tmp_path, size)
    check(result.values, data)
