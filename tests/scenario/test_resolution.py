"""Edges of what a scenario may hold: classes, rates, paths, names, losses and thresholds."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.scenario.model import PFC, Failure, Flow, Link, Scenario, Storm, TrafficClass, refuse_losses, resolve
from fluidcc.scenario.switches import resolve_marking, unchecked_marking
from fluidcc.units import Rate

LINKS = (Link("10Gbps", name="up"), Link("10Gbps"))


def made(links: Any = LINKS, flows: Any = None, scenario: dict[str, Any] | None = None, **flow: Any) -> Scenario:
    given: dict[str, Any] = {"path": (0,), "scheme": fc.NoControl(), "line_rate": "10Gbps"} | flow
    return resolve(Scenario(links, (Flow(**given),) if flows is None else flows, **(scenario or {})))


@pytest.mark.parametrize(("classes", "chosen", "refused"), [(1, 0, False), (1, 1, True), (2, 1, False), (2, 2, True)])
def test_a_flow_has_one_of_the_classes_that_there_are(classes: int, chosen: int, refused: bool) -> None:
    given = {"classes": (TrafficClass(),) * classes}
    if refused:
        with pytest.raises(
            InputError, match=rf"flow 0 traffic_class: there is no class {chosen}; .* {classes}, counted"
        ):
            made(scenario=given, traffic_class=chosen)
    else:
        assert made(scenario=given, traffic_class=chosen).flows[0].traffic_class == chosen


@pytest.mark.parametrize(
    ("burst", "packets"), [(1, 1), ("3", 3), ("16KB", 4), ("16384B", 4), ("16385 B", 5), ("1B", 1), (512, 512)]
)
def test_a_burst_in_bytes_is_as_many_packets_as_hold_it(burst: Any, packets: int) -> None:
    """Without a unit it counts packets already, as results say it."""
    assert made(scenario={"burst": burst, "packet_size": 4096}).burst == packets


@pytest.mark.parametrize(("burst", "says"), [("0B", "at least 1"), (0, "at least 1"), (1500, "or bytes: 64KB")])
def test_bursts_that_are_none(burst: Any, says: str) -> None:
    """A number of bytes without a unit is refused, not taken as packets."""
    with pytest.raises(InputError, match=f"burst: .*{says}"):
        made(scenario={"burst": burst})


@pytest.mark.parametrize(
    ("start", "found"), [(None, 1.25e9), ("10Gbps", 1.25e9), ("5Gbps", 6.25e8), (Rate(1.25e9 + 1), None)]
)
def test_a_flow_starts_no_faster_than_its_nic(start: Any, found: float | None) -> None:
    if found is None:
        with pytest.raises(InputError, match=r"flow 0 initial_rate: .* exceeds the line rate"):
            made(initial_rate=start)
    else:
        assert made(initial_rate=start).flows[0].initial_rate == found


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ((), "crosses no link"),
        ((2,), "2 names no link; the links are 0 to 1"),
        ((-1,), "-1 names no link"),
        ((True,), "True names no link"),
        ((0.0,), "0.0 names no link"),
        ((0, 1, 0), "crosses a link twice"),
        (0, "expected link indices"),
        ("01", "expected link indices"),
    ],
)
def test_a_path_is_of_links_that_there_are(path: Any, says: str) -> None:
    with pytest.raises(InputError, match=rf"flow 0 path: .*{says}"):
        made(path=path)


def test_a_path_may_be_a_list_of_any_whole_numbers() -> None:
    found = made(path=[np.int64(1), 0]).flows[0].path
    assert found == (1, 0)
    assert all(type(hop) is int for hop in found)


@pytest.mark.parametrize("scheme", [fc.DCQCN, "dcqcn", None, 3])
def test_a_scheme_is_an_object_with_its_parameters(scheme: Any) -> None:
    with pytest.raises(InputError, match="flow 0 scheme: expected a scheme's parameters"):
        made(scheme=scheme)


@pytest.mark.parametrize(
    ("links", "says"),
    [
        ((Link("1Gbps", name="a"), Link("1Gbps", name="a")), "link 0 name: 'a' names two links"),
        ((Link("1Gbps", name="link 1"), Link("1Gbps")), "link 0 name: 'link 1' names two links"),
        ((Link("1Gbps"), Link("1Gbps", name="link 0")), "'link 0' names two links"),
        ((), "it has no links"),
        (Link("1Gbps"), "links: expected a tuple of Link"),
        ((Link("1Gbps"), 3), "links: expected a tuple of Link, not 3"),
    ],
)
def test_links_have_a_name_each(links: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        made(links=links)


@pytest.mark.parametrize("field", ["name", "source", "target"])
@pytest.mark.parametrize("text", [3, None, "\ud800"])
def test_names_are_text(field: str, text: Any) -> None:
    with pytest.raises(InputError, match=rf"link 1 {field}: .* is no text"):
        made(links=(LINKS[0], dataclasses.replace(LINKS[1], **{field: text})))
    with pytest.raises(InputError, match=rf"flow 0 {field}: .* is no text"):
        made(**{field: text})


@pytest.mark.parametrize("kind", [Failure, Storm])
def test_failures_and_storms_are_of_links_by_name(kind: Any) -> None:
    place = "failures" if kind is Failure else "storms"
    for link in ("up", "link 1"):
        found = made(scenario={place: (kind(link, at="1ms"),), "pfc": PFC()})
        assert getattr(found, place)[0].link == link
    names: list[Any] = ["link 0", 1, "down"]
    for link in names:
        with pytest.raises(InputError, match=rf"{place[:-1]} 0 link: .* names no link; write one of up, link 1"):
            made(scenario={place: (kind(link, at="1ms"),), "pfc": PFC()})


def test_a_storm_needs_flow_control() -> None:
    with pytest.raises(InputError, match="storms: without flow control no port can be paused"):
        made(scenario={"storms": (Storm("up", at=0),)})


def test_flows_share_what_they_run_and_a_resolved_scenario_stays() -> None:
    scheme = fc.DCQCN()
    flow = Flow(path=(0,), scheme=scheme, line_rate="10Gbps")
    found = made(flows=(flow, dataclasses.replace(flow, start="1ms")))
    assert found.flows[0].scheme is found.flows[1].scheme
    assert resolve(found) is found
    again = dataclasses.replace(found, packet_size="2KB")
    assert resolve(again).packet_size == 2e3


# -- losses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("links", "scenario", "says"),
    [
        (LINKS, {}, None),
        (LINKS, {"loss_recovery": "gbn"}, "loss_recovery: the fluid engine loses nothing"),
        ((LINKS[0], Link("10Gbps", loss=1e-9)), {}, "link 1 loss: the fluid engine's links lose nothing"),
        (LINKS, {"classes": (TrafficClass(), TrafficClass(lossless=False))}, None),  # nothing is lossless without PFC
        (LINKS, {"pfc": PFC()}, None),
        (LINKS, {"classes": (TrafficClass(), TrafficClass(lossless=False)), "pfc": PFC()}, "class 1 lossless"),
    ],
)
def test_what_only_packets_lose_is_refused(links: Any, scenario: dict[str, Any], says: str | None) -> None:
    found = made(links=links, scenario=scenario)
    if says is None:
        refuse_losses(found, "fluid")
    else:
        with pytest.raises(InputError, match=says):
            refuse_losses(found, "fluid")


# -- marking -----------------------------------------------------------------------------------------------------


def test_equal_thresholds_are_a_step_and_crossed_ones_are_refused() -> None:
    assert fc.RED("5KB", "5KB").kmin == "5KB"
    for crossed in (("6KB", "5KB"), (6e3, 5e3), ("6KB", 5e3)):
        with pytest.raises(InputError, match="RED kmin: 6KB exceeds kmax 5KB"):
            fc.RED(*crossed)
    fc.RED("what", "5KB")  # is refused with its place, later
    with pytest.raises(InputError, match="link 1 kmin"):
        made(links=(LINKS[0], Link("10Gbps", marking=fc.RED("what", "5KB"))))
    odd = unchecked_marking(6e3, 5e3, 0.5)
    assert (odd.kmin, odd.kmax, odd.pmax, odd.mark_on) == (6e3, 5e3, 0.5, "arrival")
    with pytest.raises(InputError, match="RED kmin: 6KB exceeds kmax 5KB"):
        resolve_marking(odd, "x ")
    with pytest.raises(InputError, match="x marking: expected a RED, not 3"):
        resolve_marking(3, "x ")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("max_on", "given", "found"),
    [(None, "arrival", "arrival"), (None, "departure", "departure"), ("1us", "arrival", "departure"),
     ("1us", "departure", "departure"), ("off", "arrival", "arrival")],
)  # fmt: skip
def test_congestion_that_is_told_in_three_ways_is_marked_as_packets_leave(max_on: Any, given: str, found: str) -> None:
    assert resolve_marking(fc.RED("5KB", "9KB", mark_on=given, max_on=max_on)).mark_on == found


@pytest.mark.parametrize(("pmax", "fine"), [(1.0, True), (1e-9, True), (0.0, False), (1.001, False), (math.nan, False)])
def test_a_marking_probability_is_above_0_and_at_most_1(pmax: float, fine: bool) -> None:
    if fine:
        assert resolve_marking(fc.RED(0, 0, pmax)).pmax == pmax
    else:
        with pytest.raises(InputError, match="pmax"):
            resolve_marking(fc.RED(0, 0, pmax))
