"""Paths through named nodes: shortest ones, the choice among equals, and whether a scenario's paths hold together."""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Collection, Sequence
from typing import Any

from fluidcc.errors import InputError
from fluidcc.scenario.model import Link, Scenario

Path = tuple[int, ...]


class ShortestPaths:
    """Shortest paths between nodes, by the number of links; work that several pairs of nodes share is done once.

    Parameters
    ----------
    links : sequence of Link
        Directed; those without a named source and target belong to no path.
    without : collection of int
        Indices of links not to use, for example failed ones.
    """

    def __init__(self, links: Sequence[Link], without: Collection[int] = ()) -> None:
        self._leaving = defaultdict[str, list[tuple[int, str]]](list)  # links and where they lead
        self._entering = defaultdict[str, list[str]](list)
        for i, link in enumerate(links):
            if link.source and link.target and i not in without:
                self._leaving[link.source].append((i, link.target))
                self._entering[link.target].append(link.source)
        self._left: dict[str, dict[str, int]] = {}

    def _links_left(self, target: str) -> dict[str, int]:
        """Links that are left to cross to a target, by node."""
        if target not in self._left:
            left, waiting = {target: 0}, deque([target])
            while waiting:
                node = waiting.popleft()
                for before in self._entering[node]:
                    if before not in left:
                        left[before] = left[node] + 1
                        waiting.append(before)
            self._left[target] = left
        return self._left[target]

    def between(self, source: str, target: str) -> list[Path]:
        """Link indices of each path, in lexicographic order; empty if there is none."""
        left = self._links_left(target)
        if source not in left:
            return []
        paths: list[tuple[str, Path]] = [(source, ())]
        for remaining in range(left[source] - 1, -1, -1):
            paths = [
                (onward, (*path, i))
                for node, path in paths
                for i, onward in self._leaving[node]
                if left.get(onward) == remaining
            ]
        return [path for _, path in paths]


def shortest_paths(links: Sequence[Link], source: str, target: str, without: Collection[int] = ()) -> list[Path]:
    """Return all shortest paths between two nodes, as of `ShortestPaths`."""
    return ShortestPaths(links, without).between(source, target)


def ecmp(paths: Sequence[Path], key: Any) -> Path:
    """Choose one of several equal paths by a hash of ``repr(key)``: the same key, the same path.

    A cryptographic hash, because a CRC is linear: two keys that collide under one seed would do so under all.
    """
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return paths[int.from_bytes(digest, "big") % len(paths)]


def route(
    links: Sequence[Link], source: str, target: str, key: Any, *, name: str = "flow", without: Collection[int] = ()
) -> Path:
    """Path of one flow: `ecmp` among the `shortest_paths`.

    Parameters
    ----------
    links, source, target, without
        As of `shortest_paths`.
    key : object
        As of `ecmp`.
    name : str
        The flow's, for the error message.

    Raises
    ------
    InputError
        If no path leads from source to target.
    """
    paths = shortest_paths(links, source, target, without)
    if not paths:
        lost = ", ".join(links[i].name or f"link {i}" for i in sorted(without)[:8])
        raise InputError(
            f"{name}: no path leads from {source[:60]!r} to {target[:60]!r}"
            + (
                f" without {lost}; let another link stand"
                if lost
                else "; name the links' source and target to make one"
            )
        )
    return ecmp(paths, key)


def check_paths(scenario: Scenario) -> None:
    """Check that every flow's path is one: each link starts where the last one ended, and no node comes twice.

    Ends without names are taken to fit.

    Raises
    ------
    InputError
        If a path is broken or cyclic.
    """
    links = scenario.links
    for i, flow in enumerate(scenario.flows):
        where = f"flow {i} path"
        visited = [links[flow.path[0]].source]
        for before, after in zip(flow.path, flow.path[1:], strict=False):
            left, entered = links[before].target, links[after].source
            if left and entered and left != entered:
                names = [text[:60] for text in (links[before].name, left, links[after].name, entered)]
                raise InputError(
                    "{}: link {!r} ends at {!r}, and the next, {!r}, starts at {!r}; write links that meet".format(
                        where, *names
                    )
                )
            visited.append(left or entered)
        visited = [node for node in (flow.source, *visited, links[flow.path[-1]].target) if node]
        if flow.target and visited[-1:] != [flow.target]:
            visited.append(flow.target)
        twice = next((node for k, node in enumerate(visited) if node in visited[:k]), None)
        if twice is not None:
            raise InputError(f"{where}: comes to {twice[:60]!r} twice; routes must be free of loops")


def refuse_spraying(scenario: Scenario, engine: str) -> None:
    """Refuse packets of one flow over several paths, for an engine whose flows have one.

    Raises
    ------
    InputError
    """
    if scenario.load_balancing != "flow":
        raise InputError(
            f"load_balancing: flows of the {engine} engine have one path; write load_balancing='flow', or "
            "engine='packet'"
        )
