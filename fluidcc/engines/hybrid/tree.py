"""Trees over a row of numbers, whose inner nodes hold the least or the sum of the two below: a change costs a walk up.

A tree with ``leaves``, a power of two, takes ``2 * leaves`` places of a flat array from ``base`` on; its root is at 1.
Sums are formed again from below at each change: differences would drift, and go negative where rates collapse.
"""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import kernel


def leaves(count: int) -> int:
    """Return the least power of two that holds this many, at least two."""
    return max(2, 1 << (count - 1).bit_length())


@kernel
def put_least(tree: Any, base: Any, leaves: Any, i: Any, value: Any) -> None:
    """Set a leaf of a tree of least values."""
    node = leaves + i
    tree[base + node] = value
    while node > 1:
        other = tree[base + (node ^ 1)]
        if other < value:
            value = other
        node >>= 1
        if tree[base + node] == value:
            return
        tree[base + node] = value


@kernel
def least(tree: Any, base: Any, leaves: Any) -> Any:
    """The leaf with the least value, of equals the first."""
    value, node = tree[base + 1], 1
    while node < leaves:
        node *= 2
        if tree[base + node] != value:
            node += 1
    return node - leaves


@kernel
def put_sum(tree: Any, base: Any, leaves: Any, i: Any, value: Any) -> None:
    """Set a leaf of a tree of sums."""
    node = leaves + i
    tree[base + node] = value
    while node > 1:
        node >>= 1
        tree[base + node] = tree[base + 2 * node] + tree[base + 2 * node + 1]
