"""Shortest paths through small networks that one can draw, and paths that do not hold together."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.scenario.model import Flow, Link, Scenario
from fluidcc.scenario.routing import ShortestPaths, check_paths, ecmp, refuse_spraying, route, shortest_paths


def network(*ends: str) -> tuple[Link, ...]:
    """Links from the first letter to the second."""
    return tuple(Link("1Gbps", source=each[:1].strip(), target=each[1:].strip(), name=f"l{each}") for each in ends)


SQUARE = network("ab", "bd", "ac", "cd", "da", "de")  # 0 to 5


@pytest.mark.parametrize(
    ("source", "target", "without", "paths"),
    [
        ("a", "d", (), [(0, 1), (2, 3)]),
        ("a", "e", (), [(0, 1, 5), (2, 3, 5)]),
        ("a", "d", (0,), [(2, 3)]),
        ("a", "d", (0, 3), []),
        ("d", "b", (), [(4, 0)]),
        ("e", "a", (), []),  # links have a direction
        ("a", "a", (), [()]),
        ("x", "a", (), []),
        ("a", "x", (), []),
    ],
)
def test_shortest_paths_are_all_of_the_fewest_links_in_order(
    source: str, target: str, without: tuple[int, ...], paths: list[tuple[int, ...]]
) -> None:
    assert shortest_paths(SQUARE, source, target, without) == paths
    known = ShortestPaths(SQUARE, without)
    assert known.between(source, target) == paths
    assert known.between(source, target) == paths  # also when it is known already


def test_a_longer_way_is_no_path_and_two_links_between_nodes_are_two() -> None:
    assert shortest_paths(network("ab", "bc", "ac"), "a", "c") == [(2,)]
    assert shortest_paths(network("ab", "ab", "bc"), "a", "c") == [(0, 2), (1, 2)]
    assert shortest_paths(network("ab", "b ", " c"), "a", "c") == []  # a link without an end leads nowhere


def test_equal_paths_are_shared_out_by_a_hash_of_the_key() -> None:
    paths = [(0,), (1,), (2,)]
    chosen = [ecmp(paths, key) for key in range(300)]
    assert chosen == [ecmp(paths, key) for key in range(300)]
    assert all(80 < chosen.count(path) < 120 for path in paths)
    assert route(SQUARE, "a", "d", 1) in [(0, 1), (2, 3)]
    assert route(SQUARE, "a", "d", 1) == ecmp([(0, 1), (2, 3)], 1)


def test_without_a_path_the_links_that_are_missing_are_named() -> None:
    with pytest.raises(InputError, match="f: no path leads from 'e' to 'a'; name the links' source and target"):
        route(SQUARE, "e", "a", 1, name="f")
    with pytest.raises(InputError, match="f: no path leads from 'a' to 'd' without lab, lcd; let another link stand"):
        route(SQUARE, "a", "d", 1, name="f", without={3, 0})


def through(path: tuple[int, ...], links: tuple[Link, ...] = SQUARE, **flow: Any) -> Scenario:
    return Scenario(links, (Flow(path=path, scheme=fc.NoControl(), line_rate="1Gbps", **flow),))


@pytest.mark.parametrize(
    ("path", "links", "flow"),
    [
        ((0, 1), SQUARE, {}),
        ((0, 1, 5), SQUARE, {"source": "h", "target": "e"}),
        ((0, 1), SQUARE, {"target": "d"}),  # the receiver is the last node
        ((0, 1), SQUARE, {"target": "h"}),
        ((0, 1), network("ab", " d"), {}),  # an end without a name fits
        ((0, 1), network("a ", "cd"), {}),
        ((0, 1), network("  ", "  "), {}),
    ],
)
def test_links_that_meet_are_a_path(path: tuple[int, ...], links: tuple[Link, ...], flow: dict[str, Any]) -> None:
    check_paths(through(path, links, **flow))


@pytest.mark.parametrize(
    ("path", "links", "flow", "says"),
    [
        ((0, 3), SQUARE, {}, "flow 0 path: link 'lab' ends at 'b', and the next, 'lcd', starts at 'c'"),
        ((1, 0), SQUARE, {}, "ends at 'd', and the next, 'lab', starts at 'a'"),
        ((0, 1, 4), SQUARE, {}, "flow 0 path: comes to 'a' twice"),
        ((0, 1), SQUARE, {"source": "b"}, "comes to 'b' twice"),
        ((0, 1), SQUARE, {"target": "a"}, "comes to 'a' twice"),
        ((0, 1), SQUARE, {"source": "h", "target": "h"}, "comes to 'h' twice"),
        ((0, 1, 2), network("ab", "b ", "ba"), {}, "twice"),
        ((0, 1), network("a ", "ac"), {}, "comes to 'a' twice"),  # the node between has the name that is known
        ((0, 1), network("ca", " c"), {}, "comes to 'c' twice"),
    ],
)
def test_paths_that_are_broken_or_cyclic_are_refused(
    path: tuple[int, ...], links: tuple[Link, ...], flow: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        check_paths(through(path, links, **flow))


def test_one_path_for_each_flow_is_no_spraying() -> None:
    made = through((0, 1))
    refuse_spraying(made, "fluid")
    with pytest.raises(InputError, match="load_balancing: flows of the fluid engine have one path"):
        refuse_spraying(dataclasses.replace(made, load_balancing="packet"), "fluid")
