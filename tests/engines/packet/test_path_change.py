"""HPCC's records when a flow's path changes (section 4.1: pathID), and what a 12-bit XOR of switch ids cannot see.

``python -m tests.engines.packet.test_path_change`` prints what is measured here.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.common.topology import Topology, topology_of
from fluidcc.engines.packet.telemetry import SWITCH_IDS
from fluidcc.scenario.model import resolve
from fluidcc.scenario.round_trips import largest_base_rtt
from fluidcc.scenario.routing import shortest_paths
from fluidcc.units import Rate

LINE = Rate(12.5e9)
FAILS, REROUTED = 300e-6, 301e-6  # s; within a round trip: who loses a whole window waits for ever (no loss recovery)
# Switches are numbered in the order in which links name them. The flow changes from the first to the second branch:
# (switches in the order of their ids, first branch, second).
WAYS = {
    "other switches": ("axyb", "x", "y"),
    "XOR collides": ("auvxyb", "uv", "xy"),  # 2 ^ 3 = 4 ^ 5
    "parallel links": ("axb", "x", "x"),
}


def scenario(way: str, scheme: Any, elsewhere: str = "40Gbps") -> fc.Scenario:
    """A flow whose branch fails; another has sent over the second one at a rate of its own."""
    order, *branches = WAYS[way]
    links = []
    for number, branch in enumerate(branches):
        for here, there in itertools.pairwise(f"a{branch}b"):
            name = f"{here}>{there} {number}"
            links.append(fc.Link("100Gbps", name=name, source=here, target=there))
    links.sort(key=lambda link: order.index(link.target))  # the nodes are numbered as links name them
    links.append(fc.Link("400Gbps", name="out", source="b", target="sink"))
    paths = [
        (*(i for i, link in enumerate(links) if link.name.endswith(str(number))), len(links) - 1) for number in range(2)
    ]
    flows = (
        fc.Flow(paths[0], scheme, "100Gbps", source="host", target="sink"),
        fc.Flow(paths[1], fc.NoControl(), "100Gbps", initial_rate=elsewhere, source="other", target="sink"),
    )
    return fc.Scenario(tuple(links), flows, failures=(fc.Failure(f"a>{branches[0][0]} 0", FAILS, REROUTED - FAILS),))


def after_change(way: str, elsewhere: str = "40Gbps", until: str = "600us", **options: Any) -> tuple[float, float]:
    """Largest U once the path has changed, and bytes acknowledged from then to the end."""
    scheme = fc.HPCC(**options)
    trace = fc.simulate(scenario(way, scheme, elsewhere), until, engine="packet", sample_interval="100ns")
    since = trace.dataset.sel(time=slice(REROUTED, None))
    delivered = since.delivered.values[:, 0]
    return float(since.utilisation_estimate.values[:, 0].max()), float(delivered[-1] - delivered[0])


def test_a_new_path_begins_new_records() -> None:
    """Nothing that the new path is not loaded with: U stays at that, 1 within the 5 % that a burst of one RTT adds.

    The flow comes at its window of eta B T to a branch that carries 40 % of it already: U up to 0.4 + 0.95 and its
    queue, which is what could not be sent; all of it is below 2.
    """
    for form in ("exact", "quantised", "ifa"):
        assert after_change("other switches", int_format=form)[0] < 2.0


@pytest.mark.parametrize("way", ["XOR collides", "parallel links"])
def test_what_path_id_cannot_see(way: str) -> None:
    """txBytes of two ports are subtracted: U jumps by their difference over B T (lines 4, 5 and 9, tau < T).

    The old branch has sent more, at 95 % of the line against 40 %: the difference wraps at 20 bits of 128 B, 134 MB.
    2 % for what the start and the failure add to it. IFA tells the ports apart.
    """
    u, sent = after_change(way, int_format="quantised")
    T = largest_base_rtt(resolve(scenario(way, fc.HPCC())))
    assert u == pytest.approx((128 * 2**20 - (0.95 - 0.40) * LINE * FAILS) / (LINE * T), rel=0.02)
    seen, more = after_change(way, int_format="ifa")
    assert seen < 2.0
    assert sent < more


def test_an_unseen_change_costs_windows_not_the_flow() -> None:
    """U falls back as telemetry of the new path comes in; the window has been cut to a packet and grows by eta/U.

    Each round trip it grows by a factor of at least eta/0.6: from one packet to 120 in 11 round trips of some 12 us.
    """
    scheme = fc.HPCC(int_format="quantised")
    trace = fc.simulate(scenario("XOR collides", scheme), "1ms", engine="packet", sample_interval="1us")
    window = trace["window"].values[:, 0]
    assert window[330:420].min() == pytest.approx(1042)
    assert trace["rate"].values[-200:, 0].mean() * 8e-9 == pytest.approx(55, rel=0.05)


def ids_of(topology: Topology) -> dict[str, int]:
    switches = [name for name in topology.nodes if name not in topology.hosts]
    return {name: i for i, name in enumerate(switches, 1)}


def collisions(k: int, ids: dict[str, int], links: Any) -> tuple[int, int]:
    """Pairs of equally long paths between the ToRs of one pod and all others of a fat tree, with the same XOR."""
    same = pairs = 0
    tors = [f"T{i + 1}" for i in range(k * k // 2)]
    for a, b in itertools.product(tors[: k // 2], tors[k // 2 :]):
        xors = [
            np.bitwise_xor.reduce([ids[a], *(ids[links[hop].target] for hop in path)])
            for path in shortest_paths(links, a, b)
        ]
        pairs += len(xors) * (len(xors) - 1) // 2
        same += sum(x == y for x, y in itertools.combinations(xors, 2))
    return same, pairs


def tree(k: int) -> tuple[fc.Scenario, dict[str, int]]:
    half = k // 2
    shape = fc.fat_tree([(0, k * half * half - 1)], pods=k, tors=half, leaves=half, spines=half * half, hosts=half)
    shape = resolve(shape)
    return shape, ids_of(topology_of(shape))


def test_random_ids_collide_at_one_in_4096() -> None:
    """A fat tree of degree 4, 400 draws of distinct ids. Pairs of one draw are dependent, as they share switches.

    72 pairs in each of 400 draws: 7 expected; dependent ones come in groups of 4 at most, so 5 sigma is 7 + 27.
    """
    shape, ids = tree(4)
    random = np.random.default_rng(1)
    same = pairs = 0
    for _ in range(400):
        drawn = random.permutation(SWITCH_IDS)[: len(ids)].tolist()
        found = collisions(4, dict(zip(ids, drawn, strict=True)), shape.links)
        same, pairs = same + found[0], pairs + found[1]
    assert 0 < same < pairs / SWITCH_IDS + 27


def test_switches_numbered_in_order_do_not_collide_in_a_fat_tree() -> None:
    shape, ids = tree(4)
    assert collisions(4, ids, shape.links) == (0, 72)


if __name__ == "__main__":
    for way in WAYS:
        for form in ("exact", "quantised", "ifa"):
            for elsewhere in ("40Gbps", "99Gbps"):
                u, sent = after_change(way, elsewhere, int_format=form)
                print(f"{way}, {form}, {elsewhere} on the new path: largest U {u:.3g}, {sent / 1e6:.3g} MB after it")
