"""Fabrics of three tiers, with flows routed by ECMP: fat trees, DCQCN's testbed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fluidcc.builders.common import CHAIN_PFC, NETWORK, Marking, assembled, chosen, flow_row, marking_of, per_flow
from fluidcc.errors import InputError
from fluidcc.scenario.model import PFC, Flow, Link, Scenario
from fluidcc.scenario.routing import ShortestPaths, ecmp
from fluidcc.surface import keywords, public
from fluidcc.units import refuse_bare_rate, whole

_MOST_NODES = 65536
_OF_TESTBED: dict[str, Any] = {"pods": 2, "tors": 2, "leaves": 2, "spines": 2, "planes": False}
_OF_UNIT: dict[str, Any] = {"pods": 1, "tors": 4, "leaves": 2, "spines": 0}


@public(passes_on=NETWORK)
def clos(
    flows: Iterable[Sequence[Any]],
    *,
    pods: int,
    tors: int,
    leaves: int,
    spines: int,
    hosts: int,
    planes: bool = True,
    failed: Sequence[str] = (),
    routing: str = "shortest",
    rate: Any = "100Gbps",
    fabric_rate: Any = None,
    delay: Any = "1us",
    scheme: Any = None,
    preset: str | None = None,
    marking: Marking = None,
    initial_rate: Any = None,
    feedback_delay: Any = None,
    ecmp_seed: int = 0,
    **network: Any,
) -> Scenario:
    """Pods of ToR and leaf switches under spines; every ToR is linked to all leaves of its pod.

    Hosts are H0, H1, ..., ToR by ToR, switches T1, ..., L1, ..., S1, ..., pod by pod. Both directions of every
    link between switches are there, named like T1->L1, and each ToR's port to a host, T1->H0. A host's own port
    is its flows' ``line_rate`` and ``access_delay``.

    Parameters
    ----------
    flows : iterable of (source, target[, start[, size[, after[, after_what]]]])
        Hosts' numbers, counted from 0, start [s] and wire bytes; at once and long-lived if
        not given. An array of these columns will do.
    pods, tors, leaves, spines, hosts : int
        Pods; ToRs and leaves of each pod; spines in all; hosts of each ToR.
    planes : bool
        Whether the k-th leaf of every pod is linked to the k-th share of the spines only (a fat tree), or each
        leaf to all spines.
    failed : sequence of str
        Links between switches that are not there, like ``"T1-L2"``.
    routing : {"shortest", "up-down"}
        Whether flows may take any shortest path, or only those that never go up again once they went down: with failed
        links, shortest ones may.
    rate, fabric_rate : quantity
        Rate of the hosts' links and of those between switches; ``rate`` if not given [bytes/s].
    marking : RED, or callable
        Marking of every link, or a function of a link's rate; the scheme's own default if not given.
    initial_rate : quantity or sequence
        Per flow; a sequence repeats over the flows. The line rate if not given [bytes/s].
    ecmp_seed : int
        Selects another outcome of ECMP, which hashes seed, hosts and the flow's index.
    delay, scheme, preset, feedback_delay, **network
        As in `incast`.

    Returns
    -------
    Scenario

    Raises
    ------
    InputError
        If a size makes no fabric, a flow names no host or its own, or a value cannot be read.
    """
    pods, tors, leaves, spines, hosts = (
        whole(value, least, _MOST_NODES, name)
        for value, least, name in (
            (pods, 1, "pods"), (tors, 1, "tors"), (leaves, 1, "leaves"), (spines, 0, "spines"), (hosts, 1, "hosts")
        )
    )  # fmt: skip
    if routing not in ("shortest", "up-down"):
        raise InputError(f"routing: {str(routing)[:20]!r} is unknown; write shortest or up-down")
    if planes and spines % leaves:
        raise InputError(f"spines: {spines} cannot be shared out among {leaves} leaves; give a multiple of {leaves}")
    if pods * tors * hosts > _MOST_NODES:
        raise InputError(
            f"hosts: {pods * tors * hosts:,} are more than {_MOST_NODES:,}; give fewer pods, tors or hosts"
        )
    scheme, marking, network = chosen(scheme, preset, marking, feedback_delay, network)
    refuse_bare_rate(rate, "rate")
    refuse_bare_rate(fabric_rate, "fabric_rate")
    fabric_rate = rate if fabric_rate is None else fabric_rate
    fabric_marks, host_marks = (marking_of(marking, scheme, r) for r in (fabric_rate, rate))
    ends = [
        (f"T{p * tors + t + 1}", f"L{p * leaves + k + 1}")
        for p in range(pods)
        for t in range(tors)
        for k in range(leaves)
    ]
    ends += [
        (f"L{p * leaves + k + 1}", f"S{s + 1}")
        for p in range(pods)
        for k in range(leaves)
        for s in range(spines)
        if not planes or s * leaves // spines == k
    ]
    ends = _standing(ends, failed)
    links = [
        Link(fabric_rate, delay, fabric_marks, name=f"{a}->{b}", source=a, target=b)
        for low, high in ends
        for a, b in ((low, high), (high, low))
    ]
    fabric = tuple(links)
    count = pods * tors * hosts
    for h in range(count):
        tor, host = f"T{h // hosts + 1}", f"H{h}"
        links.append(Link(rate, delay, host_marks, name=f"{tor}->{host}", source=tor, target=host))
    shortest = ShortestPaths(fabric)
    between: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    rows = list(flows)
    initial_rates = per_flow(initial_rate, len(rows), "initial_rate")
    made = []
    for i, row in enumerate(rows):
        source, target, fields = flow_row(row, i, range(count), f"the hosts are 0 to {count - 1}")
        pair = source // hosts, target // hosts
        if pair not in between:
            paths = shortest.between(f"T{pair[0] + 1}", f"T{pair[1] + 1}")
            between[pair] = [path for path in paths if routing == "shortest" or _goes_up_and_down(fabric, path)]
        if not between[pair]:
            kind = "" if routing == "shortest" else "shortest up-down "
            raise InputError(f"flow {i}: no {kind}path leads from H{source} to H{target}; let more links stand")
        made.append(
            Flow(
                path=(*ecmp(between[pair], (ecmp_seed, source, target, i)), len(fabric) + target),
                scheme=scheme,
                line_rate=rate,
                initial_rate=initial_rates[i],
                access_delay=delay,
                name=f"flow {i}",
                source=f"H{source}",
                target=f"H{target}",
                **fields,
            )
        )
    return assembled(links, made, network)


def _standing(ends: list[tuple[str, str]], failed: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of switches, lower first, that are linked."""
    names = {f"{low}-{high}": (low, high) for low, high in ends}
    gone = set()
    for name in failed:
        low, _, high = str(name).partition("-")
        link = name if name in names else f"{high}-{low}"
        if link not in names:
            raise InputError(f"failed: {str(name)[:20]!r} is no link; write one like {ends[0][0]}-{ends[0][1]}")
        gone.add(names[link])
    return [pair for pair in ends if pair not in gone]


def _goes_up_and_down(links: Sequence[Link], path: tuple[int, ...]) -> bool:
    """Check whether a path, once it goes down, never goes up again; a switch's tier is its first letter."""
    ups = ["TLS".index(links[i].source[0]) < "TLS".index(links[i].target[0]) for i in path]
    return ups == sorted(ups, reverse=True)


@public(passes_on=keywords(clos))
def fat_tree(
    flows: Iterable[Sequence[Any]],
    *,
    pods: int = 5,
    tors: int = 4,
    leaves: int = 4,
    spines: int = 16,
    hosts: int = 16,
    rate: Any = "100Gbps",
    fabric_rate: Any = "400Gbps",
    delay: Any = "1us",
    **options: Any,
) -> Scenario:
    """HPCC's fat tree (Li et al., SIGCOMM 2019, section 5.1): 320 hosts, 20 ToRs, 20 leaves, 16 spines.

    Its leaves are the paper's Agg, its spines the paper's Core switches; base RTT between pods: 12 us. Parameters
    as of `clos`. The classical fat tree of degree k has ``pods=k, tors=k//2, leaves=k//2, spines=k*k//4,
    hosts=k//2, fabric_rate=rate``.

    Parameters
    ----------
    flows : iterable of (source, target[, start[, size[, after[, after_what]]]])
        As of `clos`.
    pods, tors, leaves, spines, hosts : int
        Pods; ToRs and leaves of each pod; spines in all; hosts of each ToR.
    rate, fabric_rate : quantity
        Rate of the hosts' links and of those between switches [bytes/s].
    delay : quantity
        One-way delay of each link [s].
    **options
        Further options of `clos`, and fields of `Scenario`.

    Returns
    -------
    Scenario

    Raises
    ------
    InputError
        As `clos`.

    Examples
    --------
    >>> scenario = fat_tree([(0, 319), (1, 16, "10us", "1MB")])
    >>> [scenario.links[i].name for i in scenario.flows[1].path][-1]
    'T2->H16'
    """
    sizes = {"pods": pods, "tors": tors, "leaves": leaves, "spines": spines, "hosts": hosts}
    return clos(flows, **sizes, rate=rate, fabric_rate=fabric_rate, delay=delay, **options)


@public(passes_on=[name for name in keywords(clos) if name not in _OF_TESTBED])
def clos_testbed(flows: Iterable[Sequence[Any]], *, hosts: int = 5, rate: Any = "40Gbps", **options: Any) -> Scenario:
    """DCQCN's testbed (Zhu et al., SIGCOMM 2015, Fig. 2): ToRs T1 to T4, leaves L1 to L4, spines S1 and S2.

    T1 and T2 are under L1 and L2, T3 and T4 under L3 and L4, and each leaf under both spines. Parameters as of
    `clos`; five hosts at each ToR, as in section 6.2: H0 to H4 at T1, H15 to H19 at T4.

    Parameters
    ----------
    flows : iterable of (source, target[, start[, size[, after[, after_what]]]])
        As of `clos`.
    hosts : int
        Of each ToR.
    rate : quantity
        Of all links [bytes/s].
    **options
        Further options of `clos`, and fields of `Scenario`.

    Returns
    -------
    Scenario

    Raises
    ------
    InputError
        As `clos`.
    """
    return clos(flows, **_OF_TESTBED, hosts=hosts, rate=rate, **options)


@public(passes_on=[name for name in keywords(clos) if name not in _OF_UNIT])
def clos_unit(
    flows: Iterable[Sequence[Any]],
    *,
    failed: Sequence[str] = ("T4-L1", "T1-L2"),
    hosts: int = 8,
    rate: Any = "100Gbps",
    fabric_rate: Any = "400Gbps",
    pfc: PFC | None = CHAIN_PFC,
    **options: Any,
) -> Scenario:
    """ACC's Fig. 12 (Zhang et al., NSDI 2024): four ToRs under two leaves, two of whose eight links have failed.

    What the paper calls T0 to T3, L0 and L1 is T1 to T4, L1 and L2 here. Without T4-L1 and T1-L2, flows between T1 and
    T4 go down and up again at T2 or T3, and their buffers can wait in a circle (`fluidcc.fabrics.buffer_cycle`).
    Parameters as of `clos`; the paper gives neither rates nor the threshold: those of its other networks.

    Parameters
    ----------
    flows : iterable of (source, target[, start[, size[, after[, after_what]]]])
        As of `clos`.
    failed : sequence of str
        Links that are not there, like ``"T1-L2"``.
    hosts : int
        Of each ToR.
    rate, fabric_rate : quantity
        Rate of the hosts' links and of those between switches [bytes/s].
    pfc : PFC or None
        Flow control of all switches.
    **options
        Further options of `clos`, and fields of `Scenario`.

    Returns
    -------
    Scenario

    Raises
    ------
    InputError
        As `clos`.
    """
    return clos(flows, **_OF_UNIT, hosts=hosts, failed=failed, rate=rate, fabric_rate=fabric_rate, pfc=pfc, **options)
