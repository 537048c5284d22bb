"""Stability of a fixed point, and whether flows that start at line rate settle there."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from fluidcc.errors import InputError
from fluidcc.operators.capacity import shown
from fluidcc.scenario.model import Scenario

if TYPE_CHECKING:
    from fluidcc.theory.control.equilibrium import Equilibrium
    from fluidcc.theory.control.stability import Stability

_NEAR = 0.01  # of the queue at the fixed point: a queue this near counts as there
_FAR = 0.1  # of it: oscillations of which this is left will not have died out
UNTIL = "500ms"  # when to give up


@dataclasses.dataclass(frozen=True)
class Reach:
    """Stability of a fixed point, and whether a start at line rate reaches it.

    Parameters
    ----------
    stability : Stability
    from_line_rate : bool or None
        Whether a start at line rate reaches it; None if there is no fixed point, or the run was too short to decide.
    words : str
        Both in words.
    """

    stability: Stability
    from_line_rate: bool | None
    words: str


def reach(scenario: Scenario, found: Equilibrium, queue: dict[str, Any], limit: float | None = None) -> Reach:
    """Stability of a fixed point, and where a start at line rate ends.

    Parameters
    ----------
    scenario : Scenario
        Its flows start at line rate.
    found : Equilibrium
        Its fixed point.
    queue : dict
        Percentiles of the queue late in a run of it, as a summary has them: near the fixed point no other is needed.
    limit : float, optional
        What the queue may hold [bytes]; the fluid's may grow beyond.
    """
    from fluidcc.theory.control.limit_cycle import limit_cycle  # and JAX, which reading a file does without
    from fluidcc.theory.control.stability import stability

    local = stability(scenario)
    if local.stable is None:
        kind = ""
    else:
        root = local.rightmost_root
        rate = "" if root is None else f" (rightmost root {root.real:.3g} /s)"
        kind = f"it is {'stable' if local.stable else 'unstable'}{rate}; " if root is not None else ""
    at = found.links[0]["queue_bytes"]
    if not found.exists:
        return Reach(local, None, kind.removesuffix("; "))
    if queue["p5"] is not None and (1 - _NEAR) * at <= queue["p5"] <= queue["p95"] <= (1 + _NEAR) * at:
        return Reach(local, True, f"{kind}a start at line rate reaches it")
    try:
        end = limit_cycle(scenario, UNTIL, estimate_error=False)
    except InputError:  # the run is not finite, or too short for its delays
        return Reach(local, None, f"{kind}whether a start at line rate reaches it is not known")
    between = f"between {shown(end.low, limit)} and {shown(end.high, limit)}"
    if end.kind == "equilibrium":
        there = abs(end.mean - at) <= _NEAR * at
        ends = (
            "reaches it" if there else f"does not reach it in the averaged fluid: it ends at {shown(end.mean, limit)}"
        )
        return Reach(local, there, f"{kind}a start at line rate {ends}")
    if end.kind in ("cycle", "growing") or (end.kind == "irregular" and end.high - end.low > _FAR * at):
        stays = f"does not reach it in the averaged fluid: the queue stays {between}"
        return Reach(local, False, f"{kind}a start at line rate {stays}")
    moves = f"is still on its way after {UNTIL}, the queue {between}"
    return Reach(local, None, f"{kind}a start at line rate {moves}")
