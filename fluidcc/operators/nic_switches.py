"""Switches of a NIC that turn DCQCN off."""

from __future__ import annotations

from collections.abc import Collection

from fluidcc.operators import NicSettings
from fluidcc.operators.nvidia_settings import SIDES, enabling

_USUAL = 3  # RoCE's priority where no switch's file says it


def switched_off(nic: NicSettings, priority: int, lossless: Collection[int] = ()) -> tuple[list[str], dict[str, int]]:
    """Say what switches DCQCN off for a priority, and which settings of the NIC switch it on.

    Parameters
    ----------
    nic : NicSettings
    priority : int
    lossless : collection of int
        Further priorities to switch on with it.

    Returns
    -------
    list of str
        A reason for each switch that is off.
    dict of str to int
    """
    whys: list[str] = []
    wanted: dict[str, int] = {}
    mask = nic.given.get("roce_cc_prio_mask")
    if mask is not None and not int(mask) >> priority & 1:
        whys.append(f"roce_cc_prio_mask = {int(mask)} leaves out priority {priority}")
        wanted["ROCE_CC_PRIO_MASK"] = int(mask) | sum(1 << each for each in {priority, *lossless})
    for side, effect in SIDES.items():
        if nic.given.get(enabling(side, priority)) == 0:
            name = f"roce_{side}/enable/{priority}"
            whys.append(f"{name} = 0: {effect}")
            wanted[name] = 1
    return whys, wanted


def off_in_words(nic: NicSettings, priority: int | None = None) -> str:
    """Say of a run that the NIC would not send by DCQCN; empty if it would."""
    whys, _ = switched_off(nic, _USUAL if priority is None else priority)
    if algorithm := nic.given.get("roce_cc_algorithm"):
        whys.append(f"ROCE_CC_ALGORITHM = {algorithm:g} is another algorithm")
    if not whys:
        return ""
    which = f"priority {_USUAL}, usually RoCE's" if priority is None else f"priority {priority}"
    return f"{nic.source}: DCQCN is off at this NIC for {which} ({'; '.join(whys)}); runs are as if it were on"
