"""Topologies by name: those of the papers, fat trees, leaves and spines."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import Any

from fluidcc.errors import InputError
from fluidcc.files import refuse_special
from fluidcc.surface import nearest, public
from fluidcc.units import RATE, RATIO, quantity, refuse_bare_rate
from fluidcc.workloads.fabrics.hpcc_files import read_topology
from fluidcc.workloads.fabrics.htsim import is_htsim_topology, read_htsim_topology
from fluidcc.workloads.fabrics.lines import Lines
from fluidcc.workloads.fabrics.topology import Cable, Topology

# HPCC 5.1's tree: pods of 4 ToRs with 16 hosts each under 4 Aggs, each plane of Aggs under 4 of the 16 Cores.
_POD = 64
_MOST_HOSTS = 16384
_KNOWN = "fat-tree:320, k-ary:8, leaf-spine:4x2x16, testbed, pod, dcqcn-clos, or a topology.txt or htsim's .topo"


@public()
def named_topology(
    name: str | os.PathLike[str],
    *,
    rate: Any = None,
    fabric_rate: Any = None,
    delay: Any = None,
    oversubscription: Any = None,
) -> Topology:
    """A topology by its name.

    Hosts are numbered from 0, ToR by ToR; switches after them: ToRs, Aggs (leaves), Cores (spines).

    Parameters
    ----------
    name : str or path
        ``fat-tree:N``
            HPCC 5.1's tree, of 320 hosts there: pods of 64, 16 to a ToR, with 4 ToRs and 4 Aggs, under 16 Cores;
            100 Gb/s to hosts, 400 Gb/s between switches.
        ``k-ary:K``
            The classical fat tree of switches with K ports: K^3/4 hosts, 100 Gb/s everywhere.
        ``leaf-spine:LxSxH``
            L leaves with H hosts each under S spines, 100 and 400 Gb/s.
        ``testbed``
            HPCC 5.1's: four ToRs with 16 NICs of 25 Gb/s under one Agg, 100 Gb/s; the base RTTs of its packets are
            5.4 us within a rack and 8.5 us across. A server's two NICs are two hosts here.
        ``pod``
            HPCC 2.3's: 230 servers with two NICs of 25 Gb/s each (460 hosts), 16 ToRs, 8 Aggs, 100 Gb/s. Each ToR is
            linked to every Agg, which the paper does not say.
        ``dcqcn-clos``
            DCQCN's Fig. 2: four ToRs with 5 hosts, four leaves, two spines, 40 Gb/s everywhere.
        a path
            Of the HPCC simulator's ``topology.txt`` (`read_topology`), or of htsim's (`read_htsim_topology`).
    rate, fabric_rate : quantity
        Of the hosts' cables and of those between switches, in place of the shape's own [bytes/s].
    delay : quantity
        One way, of every cable, in place of the shape's own; 1 us in most [s].
    oversubscription : quantity
        What a ToR's hosts may send over what its cables up carry, from which ``fabric_rate`` is taken [1].

    Returns
    -------
    Topology

    Raises
    ------
    InputError
        If there is no such shape or file, or a value cannot be read.
    """
    refuse_bare_rate(rate, "rate")
    refuse_bare_rate(fabric_rate, "fabric_rate")
    given = {"rate": rate, "fabric_rate": fabric_rate, "delay": delay}
    text = os.fspath(name)
    kind, _, size = text.partition(":")
    if is_shape(text):
        made = _SHAPES[kind](size, text)
    elif os.path.exists(text):
        alien = next((name for name, value in {**given, "oversubscription": oversubscription}.items() if value), None)
        if alien is not None:
            raise InputError(f"{alien}: {text[:100]!r} has its own; leave it out, or change it in the file")
        return _of_file(text)
    else:
        near = nearest(kind, _SHAPES)
        hint = f"did you mean {near}? Else " if near else ""
        raise InputError(f"topology: {text[:60]!r} is neither a shape nor a file; {hint}write {_KNOWN}")
    if oversubscription is not None:
        if fabric_rate is not None:
            raise InputError(
                "oversubscription: decides the fabric's rate, which is given too; leave out one of the two"
            )
        given["fabric_rate"] = _rate_of(made, oversubscription, rate)
    return _changed(made, given)


def is_shape(name: str) -> bool:
    """Check whether a topology's name is that of a shape, not of a file."""
    return name.partition(":")[0] in _SHAPES


def _of_file(path: str) -> Topology:
    """Read a file, whichever of the two forms it has."""
    refuse_special(path, f"one of {_KNOWN}")  # it is read twice
    first = Lines(path, f"one of {_KNOWN}").next("its first line")
    return read_htsim_topology(path) if is_htsim_topology(first) else read_topology(path)


def _tree(
    pods: int,
    tors: int,
    leaves: int,
    spines: int,
    hosts: Sequence[int],
    *,
    rates: tuple[str, str],
    delays: tuple[Any, Any] = ("1us", "1us"),
    planes: bool = True,
) -> Topology:
    """Pods of ToRs under leaves, all linked, under spines; ``hosts`` of each ToR, repeated over them.

    With ``planes``, the k-th leaf of each pod is linked to the k-th share of the spines; otherwise each leaf to all.
    """
    counts = [hosts[i % len(hosts)] for i in range(pods * tors)]
    first_tor = sum(counts)
    first_leaf = first_tor + pods * tors
    first_spine = first_leaf + pods * leaves
    cables, host = [], 0
    for tor, count in enumerate(counts):
        cables += [Cable((each, first_tor + tor), rates[0], delays[0]) for each in range(host, host + count)]
        host += count
    for pod in range(pods):
        mine = [first_leaf + pod * leaves + k for k in range(leaves)]
        cables += [Cable((first_tor + pod * tors + t, leaf), rates[1], delays[1]) for t in range(tors) for leaf in mine]
        cables += [
            Cable((leaf, first_spine + s), rates[1], delays[1])
            for k, leaf in enumerate(mine)
            for s in range(spines)
            if not planes or s * leaves // spines == k
        ]
    return Topology(tuple(range(first_tor)), tuple(range(first_tor, first_spine + spines)), tuple(cables))


def _whole(text: str, least: int, most: float, name: str, example: str) -> int:
    number = int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 0
    if not least <= number <= most:
        raise InputError(f"topology: {name[:60]!r} is no shape; write for example {example}")
    return number


def _fat_tree(size: str, name: str) -> Topology:
    hosts = _whole(size, _POD, _MOST_HOSTS, name, "fat-tree:320")
    if hosts % _POD:
        raise InputError(f"topology: {name}: its pods have {_POD} hosts; write fat-tree:{round(hosts / _POD) * _POD}")
    return _tree(hosts // _POD, 4, 4, 16, [16], rates=("100Gbps", "400Gbps"))


def _k_ary(size: str, name: str) -> Topology:
    k = _whole(size, 2, 32, name, "k-ary:8 (128 hosts)")
    if k % 2:
        raise InputError(f"topology: {name}: half of a switch's ports lead up, so K is even; write k-ary:{k + 1}")
    return _tree(k, k // 2, k // 2, k * k // 4, [k // 2], rates=("100Gbps", "100Gbps"))


def _leaf_spine(size: str, name: str) -> Topology:
    parts = [_whole(each, 1, _MOST_HOSTS, name, "leaf-spine:4x2x16 (leaves, spines, hosts of each leaf)")
             for each in (size.split("x") if size.count("x") == 2 else [""])]  # fmt: skip
    leaves, spines, hosts = parts
    if leaves * max(spines, hosts) > _MOST_HOSTS:
        raise InputError(f"topology: {name}: is larger than {_MOST_HOSTS:,} hosts or cables; give fewer")
    return _tree(1, leaves, spines, 0, [hosts], rates=("100Gbps", "400Gbps"))


def _bare(made: Any) -> Any:
    def shape(size: str, name: str) -> Topology:
        if size or ":" in name:
            raise InputError(f"topology: {name[:60]!r}: {name.partition(':')[0]} has one size; write it alone")
        return made()

    return shape


# A packet of 1000 B with 42 B of telemetry and its ACK of 64 B with as much take 0.367 us at 25 Gb/s, so that delays of
# 1.166 us and 0.729 us make the base RTTs of 5.4 us and 8.5 us.
_SHAPES: dict[str, Any] = {
    "fat-tree": _fat_tree,
    "k-ary": _k_ary,
    "leaf-spine": _leaf_spine,
    "testbed": _bare(lambda: _tree(1, 4, 1, 0, [16], rates=("25Gbps", "100Gbps"), delays=("1.166us", "0.729us"))),
    "pod": _bare(lambda: _tree(1, 16, 8, 0, [29, 29, 29, 28], rates=("25Gbps", "100Gbps"))),
    "dcqcn-clos": _bare(lambda: _tree(2, 2, 2, 2, [5], rates=("40Gbps", "40Gbps"), planes=False)),
}


def _changed(made: Topology, given: dict[str, Any]) -> Topology:
    """Return the topology with other rates and delays."""
    hosts = set(made.hosts)
    cables = []
    for cable in made.cables:
        rate = given["rate" if hosts.intersection(cable.ends) else "fabric_rate"]
        cables.append(
            Cable(
                cable.ends,
                cable.rate if rate is None else rate,
                cable.delay if given["delay"] is None else given["delay"],
            )
        )
    return Topology(made.hosts, made.switches, tuple(cables))


def _rate_of(made: Topology, oversubscription: Any, rate: Any) -> float:
    """Return the rate of cables between switches [bytes/s] that gives the first ToR this oversubscription."""
    ratio = quantity(oversubscription, RATIO, "oversubscription")
    if not 0 < ratio < math.inf:
        raise InputError(f"oversubscription: {ratio:g} is no ratio above 0; write for example 4")
    hosts = set(made.hosts)
    below = [cable for cable in made.cables if hosts.intersection(cable.ends)]
    tor = next(end for end in below[0].ends if end not in hosts)
    under = [cable for cable in below if tor in cable.ends]
    up = sum(tor in cable.ends for cable in made.cables) - len(under)
    each = under[0].rate if rate is None else quantity(rate, RATE, "rate")
    return len(under) * each / (up * ratio)
