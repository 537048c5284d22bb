"""Max-min fair rates against linear programs, which know nothing of filling."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from scipy.optimize import linprog

from fluidcc.engines.flow_level import ideal


@njit
def filled(there, room):
    flows, ports = len(there), len(room)
    rate = np.zeros(flows)
    number = np.arange(flows)
    ideal.fill(
        there, number, number, flows, room.copy(), np.zeros(ports, np.int64), np.zeros(ports),
        np.zeros(ports, np.int8), rate,
    )  # fmt: skip
    return rate


@njit
def solved(there, back, ack_share, capacity):
    flows, ports = len(there), len(capacity)
    rate, acks = np.zeros(flows), np.zeros(ports)
    number = np.arange(flows)
    ideal.solve(
        there, back, ack_share, number, capacity, number, flows, acks, np.zeros(ports), np.zeros(ports, np.int64),
        np.zeros(ports), np.zeros(ports, np.int8), rate,
    )  # fmt: skip
    return rate, acks


def by_programs(there: np.ndarray, room: np.ndarray) -> np.ndarray:
    """The largest least rate, then that of those who can have more, and so on (Bertsekas and Gallager, 6.5.2)."""
    flows, ports = len(there), len(room)
    crosses = np.array([[float(p in there[f]) for f in range(flows)] for p in range(ports)])
    fixed: dict[int, float] = {}
    while len(fixed) < flows:
        free = [f for f in range(flows) if f not in fixed]
        # Unknowns: rates, and the least of the free ones.
        level = np.array([[*(-1.0 * (np.arange(flows) == f)), 1.0] for f in free])
        equal = np.array([[*(1.0 * (np.arange(flows) == f)), 0.0] for f in fixed]).reshape(-1, flows + 1)
        given_: dict[str, Any] = dict(
            A_ub=np.vstack([np.column_stack([crosses, np.zeros(ports)]), level]),
            b_ub=np.concatenate([room, np.zeros(len(free))]),
            A_eq=equal if len(fixed) else None,
            b_eq=list(fixed.values()) if len(fixed) else None,
        )
        least = linprog([*[0.0] * flows, -1.0], **given_).x[-1]
        for f in free:  # who cannot have more while the others keep the least
            bounds = [(least if g in free else None, None) for g in range(flows)] + [(None, None)]
            most = -linprog([*(-1.0 * (np.arange(flows) == f)), 0.0], **given_, bounds=bounds).fun
            if most <= least * (1 + 1e-7):
                fixed[f] = least
    return np.array([fixed[f] for f in range(flows)])


@st.composite
def networks(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    ports = draw(st.integers(1, 5))
    flows = draw(st.integers(1, 5))
    paths = [draw(st.lists(st.integers(0, ports - 1), min_size=1, max_size=ports, unique=True)) for _ in range(flows)]
    room = [draw(st.sampled_from([1.0, 1.5, 2.0, 3.0, 10.0])) for _ in range(ports)]
    table = np.array([[*path, *[-1] * (ports - len(path))] for path in paths], np.int32)
    return table, np.array(room)


@settings(max_examples=60)
@given(networks())
def test_filling_agrees_with_linear_programs(network: tuple[np.ndarray, np.ndarray]) -> None:
    there, room = network
    np.testing.assert_allclose(filled(there, room), by_programs(there, room), rtol=1e-6)


@settings(max_examples=60)
@given(networks(), st.integers(0, 1000))
def test_every_transfer_has_a_full_port_on_which_none_has_more(network, seed: int) -> None:
    """Also beside ACKs, which leave less to data."""
    there, room = network
    back = np.random.default_rng(seed).permutation(len(room)).astype(np.int32)[np.maximum(there, 0)]
    back[there < 0] = -1
    rate, acks = solved(there, back, np.full(len(there), 0.06), room)
    crossing = [[f for f in range(len(there)) if p in there[f]] for p in range(len(room))]
    load = np.array([sum(rate[f] for f in each) for each in crossing]) + acks
    assert (load <= room * (1 + 1e-3)).all()  # what the last round of ACKs may still have moved
    for f, path in enumerate(there):
        full = [p for p in path[path >= 0] if load[p] >= room[p] * (1 - 1e-3)]
        assert any(rate[f] >= max(rate[g] for g in crossing[p]) * (1 - 1e-9) for p in full)


def test_a_transfer_without_room_is_set_once() -> None:
    """Notice one that has 0 counted again as more have theirs: then the last of a chain of ports gets none."""
    there = np.array([[0, -1], [1, -1], [1, 2], [2, 3], [3, -1]], np.int32)
    np.testing.assert_allclose(filled(there, np.array([0.0, 10.0, 30.0, 100.0])), [0.0, 5.0, 5.0, 25.0, 75.0])


def test_acks_take_their_share_of_the_way_back() -> None:
    """Two transfers that face each other: each has what the other's ACKs leave, C/(1 + a)."""
    there = np.array([[0], [1]], np.int32)
    rate, _ = solved(there, there[::-1].copy(), np.full(2, 0.1), np.ones(2))
    np.testing.assert_allclose(rate, 1 / 1.1, rtol=1e-3)
