"""Variables of TIMELY's fluid that move near an equilibrium.

Patched TIMELY settles where the excess over T_low takes what the increase gives. TIMELY's own rule has no equilibrium:
at a gradient of 0 it increases (docs/theory/equilibria.md).
"""

from __future__ import annotations

from fluidcc.schemes.timely.parameters import TIMELY

MOVES = ("rate", "gradient")


def smooth(parameters: TIMELY) -> bool:
    """Check whether nothing changes in jumps at equilibrium, so that the equations can be linearised."""
    return True
