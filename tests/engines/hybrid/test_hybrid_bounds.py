"""What the hybrid cannot count to, or nobody would wait for, is refused in words before it is tried."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.engines.hybrid import layout
from fluidcc.engines.hybrid import run as hybrid
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve


def dcqcn(**given: Any) -> fc.Scenario:
    return resolve(fc.incast(2, scheme=dataclasses.replace(fc.DCQCN(), **given)))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"delay": "1e10s"}, r"link 0 delay: .* more than the hybrid engine counts to \(1e\+06s\)"),
        ({"rate": "1e300B/s"}, "link 0 rate: .* more than the hybrid engine counts to"),
        ({"rate": "1e15Gbps"}, "link 0 rate: .* more than the hybrid engine counts to"),
        ({"rate": "1e-300B/s"}, "link 0 rate: .* too slow for the hybrid engine"),
        ({"packet_size": 1e17}, "packet_size: .* is no packet"),
        ({"packet_size": 0.5}, "packet_size: .* is no packet"),
        ({"header_bytes": 1e17}, "header_bytes: .* no header"),
        ({"multiplicity": 1e15}, r"flows: 2e\+15 are more than the hybrid engine takes"),
    ],
)
def test_numbers_of_a_network(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=f"^{says}"):
        fc.simulate(fc.incast(2, **given), "40ms", engine="hybrid")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("timer", 1e-300, "less than a picosecond"),
        ("alpha_timer", 1e-300, "less than a picosecond"),
        ("cnp_interval", 1e-13, "less than a picosecond"),
        ("timer", 1e-12, r"makes more events by 40ms than the 1e\+10 that are waited for"),
        ("byte_counter", 1e-300, "makes more events by 40ms"),
        ("byte_counter", 1e-3, "makes more events by 40ms"),
        ("min_rate", "1e300B/s", "more than the hybrid engine counts to"),
        ("fast_recovery_steps", 1e19, "more than the hybrid engine counts to"),
    ],
)
def test_numbers_of_a_scheme(name: str, value: Any, says: str) -> None:
    with pytest.raises(InputError, match=rf"^flow 0 {name}: .*{says}"):
        fc.simulate(dcqcn(**{name: value}), "40ms", engine="hybrid")


def test_a_schedule_that_repeats_too_often() -> None:
    script = fc.NoControl(schedule="0:1Gbps", repeat="1ps")
    with pytest.raises(InputError, match=r"^flow 0 repeat: 0\.001ns makes more events by 40ms"):
        fc.simulate(fc.incast(2, scheme=script), "40ms", engine="hybrid")


def test_events_are_counted_while_flows_send() -> None:
    """A flow of a kilobyte is over in a microsecond, and one that starts later makes none."""
    short = fc.incast(2, scheme=fc.DCQCN(timer="1ps"), size="1KB", start=[0, 1])
    assert hybrid.prepare(resolve(short), hybrid.unsampled("40ms", None)).times.until == 0.04


def test_what_takes_too_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be it many events, or time that stands still: the explorer's threads would wait for ever."""
    prepared = hybrid.prepare(dcqcn(), hybrid.unsampled("40ms", None))
    monkeypatch.setattr(hybrid, "_AT_ONCE", 500)
    with pytest.raises(InputError, match=r"after 1e\+03 events .* of 40ms, and takes too many to wait for"):
        hybrid.execute(prepared, 1, most=600)

    def stuck(sim: layout.Sim, most: int) -> int:
        sim.core[0].events += 1 << 20
        return layout.RUNNING

    monkeypatch.setattr(hybrid.engine, "run", stuck)
    with pytest.raises(InputError, match="at 0s of 40ms, and stands still"):
        hybrid.execute(prepared, 1)
