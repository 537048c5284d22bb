"""Placement of jobs' ranks: hosts in order, rack by rack, at random, or as listed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidcc.errors import InputError
from fluidcc.surface import public
from fluidcc.units import whole
from fluidcc.workloads.collectives.jobs import Job, Replay, is_list
from fluidcc.workloads.fabrics.topology import Topology

PLACEMENTS = ("block", "round-robin", "random")


class NoRoomError(InputError):
    """A job has no hosts; its place tells a file's reader the line."""

    def __init__(self, message: str, job: int) -> None:
        super().__init__(message)
        self.job = job


@public()
def placed(
    jobs: Sequence[Job | Replay], topology: Topology, placement: Any = "block", seed: int = 0
) -> list[list[int]]:
    """Hosts of every job's ranks.

    Parameters
    ----------
    jobs : sequence of Job or Replay
    topology : Topology
    placement : {"block", "round-robin", "random"} or sequence of int
        Hosts in order, one of each rack in turn, at random by the seed, or as listed; jobs take them one after the
        other. Jobs whose ranks are listed have theirs.
    seed : int

    Returns
    -------
    list of list of int

    Raises
    ------
    InputError
        If there are too few, or no such hosts.
    """
    given = {host: j for j, job in enumerate(jobs) if isinstance(job.ranks, tuple) for host in job.ranks}
    known = set(topology.hosts)
    alien = next((host for host in sorted(given) if host not in known), None)
    if alien is not None:
        raise NoRoomError(f"ranks: there is no host {alien}; the topology has {len(known)}", given[alien])
    order = [host for host in _order(topology, placement, seed) if host not in given]
    found: list[list[int]] = []
    taken, last = 0, 0
    for j, job in enumerate(jobs):
        if isinstance(job.ranks, tuple):
            found.append(list(job.ranks))
            continue
        found.append(order[taken : taken + job.count])
        if taken <= len(order):
            last = j
        taken += job.count
    if taken > len(order):
        raise NoRoomError(
            f"ranks: {taken} need as many hosts, and there are {len(order)}; give fewer, or a larger topology", last
        )
    return found


def _order(topology: Topology, placement: Any, seed: int) -> list[int]:
    hosts = list(topology.hosts)
    if not isinstance(placement, str):
        if not is_list(placement):
            raise InputError(
                f"placement: {repr(placement)[:40]} is none; write one of {', '.join(PLACEMENTS)}, or hosts"
            )
        listed = [whole(each, 0, 1 << 30, "placement") for each in placement]
        alien = next((host for host in listed if host not in set(hosts)), None)
        if alien is not None or len(set(listed)) < len(listed):
            why = "a host is there twice" if alien is None else f"there is no host {alien}"
            raise InputError(f"placement: {why}; name hosts of the topology, each once")
        return listed
    if placement not in PLACEMENTS:
        raise InputError(f"placement: {placement[:40]!r} is unknown; write one of {', '.join(PLACEMENTS)}, or hosts")
    if placement == "random":
        return [hosts[k] for k in np.random.default_rng(seed).permutation(len(hosts))]
    if placement == "block":
        return hosts
    racks: dict[int, list[int]] = defaultdict(list)
    above = {end: other for cable in topology.cables for end, other in (cable.ends, cable.ends[::-1])}
    for host in hosts:
        racks[above[host]].append(host)
    longest = max(map(len, racks.values()))
    return [rack[k] for k in range(longest) for rack in racks.values() if k < len(rack)]
