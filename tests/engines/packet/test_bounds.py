"""What the packet engine cannot count to, or has no room for, is refused before it is tried."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.engines.common import bounds
from fluidcc.engines.packet import run
from fluidcc.errors import InputError
from fluidcc.results.memory_limit import VARIABLE
from fluidcc.units import Seconds


def packets(scenario: fc.Scenario, **options: Any) -> fc.Trace:
    return fc.simulate(scenario, "100us", engine="packet", **options)


@pytest.mark.parametrize(
    "value", [2e6, 9e6, 2e7, 10**30]
)  # sums of the first two would go round, the others do not fit
@pytest.mark.parametrize("name", ["timer", "alpha_timer", "cnp_interval", "rate_decrease_interval"])
def test_times_of_a_scheme(name: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"^flow 0 {name}: .* is more than the packet engine counts to \(1e\+06s\); "):
        packets(fc.incast(2, scheme=dataclasses.replace(fc.DCQCN(), **{name: Seconds(value)})))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"delay": "9e6s"}, "link 0 delay"),
        ({"start": [0, "9e6s"]}, "flow 1 start"),
        ({"size": 1e300}, "flow 0 size"),
        ({"buffer": 1e20}, "buffer"),
        ({"pfc": fc.PFC(xoff=1e20)}, "pfc xoff"),
        ({"scheme": fc.DCQCN(fast_recovery_steps=1e20)}, "flow 0 fast_recovery_steps"),
        ({"scheme": fc.DCQCN(byte_counter=10**30)}, "flow 0 byte_counter"),
        ({"marking": fc.RED(5e3, 1e20, 0.01)}, "link 0 kmax"),
        ({"multiplicity": 1e300}, "flow 0 multiplicity"),
    ],
)
def test_numbers_of_a_network(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=f"^{says}: .* is more than the packet engine counts to"):
        packets(fc.incast(2, **given))


def test_a_link_that_never_sends_a_packet() -> None:
    with pytest.raises(InputError, match=r"^link 0 rate: .* is too slow for the packet engine"):
        packets(fc.incast(2, rate="1e-9B/s"))


def test_flows_are_counted_before_they_are_made() -> None:
    began = time.perf_counter()
    with pytest.raises(InputError, match=r"^flows: 1e\+09 are more than the packet engine takes"):
        packets(fc.incast(1, multiplicity=1e9))
    assert time.perf_counter() - began < 30  # a list of them takes a minute, and 8 GB


@pytest.mark.parametrize(
    ("given", "options", "says"),
    [
        ({"rate": "100Tbps", "delay": "50us"}, {}, "packets under way take"),
        ({}, {"log": True}, "lines of the log take"),
    ],
)
def test_memory(given: dict[str, Any], options: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "300KB")
    monkeypatch.setattr(run, "_LOG", 1000)
    with pytest.raises(InputError, match=rf"^\d+ {says} .* of memory, where 300KB may be taken; .*{VARIABLE}="):
        packets(fc.incast(2, **given), **options)


def test_headers_of_the_largest_packet_are_taken_and_a_byte_more_is_not() -> None:
    bounds.check_packet_size(fc.incast(2, header_bytes=float(bounds.LARGEST_PACKET)))
    with pytest.raises(InputError, match="are no header; write at most 65536 B"):
        bounds.check_packet_size(fc.incast(2, header_bytes=bounds.LARGEST_PACKET + 1.0))
