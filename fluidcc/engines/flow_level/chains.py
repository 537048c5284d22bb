"""Start times of operations that wait for each other, each for a known time."""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import entry


@entry
def begin_after(after: Any, after_at: Any, behind: Any, delay: Any, left: Any, arrived: Any, begins: Any) -> None:
    """Fill in ``begins``: ``delay`` after the last operation that is waited for has left or arrived.

    Operation i waits for ``after[after_at[i] : after_at[i + 1]]``, all of them before i; ``behind`` says of each
    whether its departure is waited for.
    """
    for i in range(len(begins)):
        released = 0.0
        for j in range(after_at[i], after_at[i + 1]):
            k = after[j]
            released = max(released, begins[k] + (left[k] if behind[j] else arrived[k]))
        begins[i] = delay[i] + released
