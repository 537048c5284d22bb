"""Shortest paths, the choice among equals, and paths that do not hold together."""

import dataclasses
from collections import Counter

import pytest

import fluidcc as fc
from fluidcc.scenario.routing import check_paths, ecmp, route, shortest_paths


def wires(*ends: str) -> list[fc.Link]:
    """Links named by their ends, "ab" from a to b."""
    return [fc.Link("40Gbps", source=a, target=b, name=f"{a}->{b}") for a, b in ends]


DIAMOND = wires("ab", "ac", "bd", "cd", "de", "ae")


def test_all_shortest_paths_in_order():
    assert shortest_paths(DIAMOND, "a", "d") == [(0, 2), (1, 3)]
    assert shortest_paths(DIAMOND, "a", "e") == [(5,)]
    assert shortest_paths(DIAMOND, "a", "e", without={5}) == [(0, 2, 4), (1, 3, 4)]
    assert shortest_paths(DIAMOND, "a", "e", without={5, 0}) == [(1, 3, 4)]
    assert shortest_paths(DIAMOND, "e", "a") == []
    assert shortest_paths(DIAMOND, "a", "a") == [()]
    assert shortest_paths([fc.Link("40Gbps")], "a", "b") == []


def test_two_links_between_the_same_nodes_are_two_paths():
    assert shortest_paths(wires("ab", "ab", "bc"), "a", "c") == [(0, 2), (1, 2)]


def test_ecmp_is_a_function_of_the_key_and_spreads():
    paths = [(i,) for i in range(16)]
    assert ecmp(paths, (1, 2)) == ecmp(paths, (1, 2))
    counts = Counter(ecmp(paths, (3, i)) for i in range(16000))
    assert len(counts) == 16
    assert all(850 < n < 1150 for n in counts.values())  # 1000 expected, 31 its standard deviation


def test_seeds_make_other_collisions_not_only_other_paths():
    paths = [(0,), (1,)]
    together = Counter(ecmp(paths, (seed, "H1")) == ecmp(paths, (seed, "H2")) for seed in range(1000))
    assert 400 < together[True] < 600


def test_a_flow_without_a_path_is_refused_by_name():
    assert route(DIAMOND, "a", "e", 0) == (5,)
    with pytest.raises(fc.InputError, match=r"flow 7: no path leads from 'e' to 'a'"):
        route(DIAMOND, "e", "a", 0, name="flow 7")
    with pytest.raises(fc.InputError, match=r"'a' to 'd' without a->b, c->d"):
        route(DIAMOND, "a", "d", 0, without=(0, 3))


def scenario(path: tuple[int, ...], **ends: str) -> fc.Scenario:
    return fc.Scenario(tuple(DIAMOND), (fc.Flow(path, fc.DCQCN(), "40Gbps", **ends),))


@pytest.mark.parametrize(
    ("path", "ends", "says"),
    [
        ((0, 3), {}, "'a->b' ends at 'b', and the next, 'c->d', starts at 'c'"),
        ((0, 2), {"target": "a"}, "comes to 'a' twice"),
        ((0, 2), {"source": "b"}, "comes to 'b' twice"),
        ((4,), {"source": "H", "target": "H"}, "comes to 'H' twice"),
    ],
)
def test_broken_and_cyclic_paths(path, ends, says):
    with pytest.raises(fc.InputError, match=says):
        check_paths(scenario(path, **ends))


def test_a_loop_of_links_is_cyclic():
    loop = fc.Scenario(tuple(wires("ab", "bc", "ca")), (fc.Flow((0, 1, 2), fc.DCQCN(), "40Gbps"),))
    with pytest.raises(fc.InputError, match="comes to 'a' twice"):
        check_paths(loop)


def test_sound_paths_and_unnamed_ends_pass():
    check_paths(scenario((0, 2, 4), source="H", target="e"))
    nameless = fc.Scenario((fc.Link("40Gbps"), fc.Link("40Gbps")), (fc.Flow((1, 0), fc.DCQCN(), "40Gbps"),))
    check_paths(nameless)
    half = dataclasses.replace(DIAMOND[2], source="")
    check_paths(fc.Scenario((DIAMOND[1], half), (fc.Flow((0, 1), fc.DCQCN(), "40Gbps"),)))
