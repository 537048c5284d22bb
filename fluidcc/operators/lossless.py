"""What an audit checks of a lossless priority: headroom for its cable, and a watchdog over its PAUSEs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from fluidcc.operators import SwitchPort
from fluidcc.operators.finding import Finding
from fluidcc.operators.headroom import needed
from fluidcc.units import RATE, SIZE, show

_KIB = 1024


def headroom(port: SwitchPort) -> Iterator[Finding]:
    """Whether what still arrives after a PAUSE has room."""
    if not port.lossless:
        return
    if port.headroom is None:
        if port.dynamic_buffers:
            yield Finding(
                "ok",
                "the switch computes its headroom",
                "buffer_model is dynamic: headroom follows cable length, speed and MTU, and is not in the file",
            )
        return
    if port.cable is None:
        yield Finding(
            "warn",
            "headroom not checked",
            f"the file gives no cable length for {port.name}",
            f'add "{port.name}": "5m", or what it is, to CABLE_LENGTH',
        )
        return
    low, high = needed(port.rate, port.cable, port.mtu)
    text = (
        f"{port.cable:g} m at {show(port.rate, RATE)} with packets of up to {port.mtu:g} B need {show(low, SIZE)} "
        f"after a PAUSE, and up to {show(high, SIZE)} if packets are small and each takes a cell (sonic-swss, "
        f"buffer_headroom_mellanox.lua, a first estimate); xoff is {show(port.headroom, SIZE)}"
    )
    if port.headroom >= low:
        yield Finding("ok", "headroom fits the cable", text)
        return
    yield Finding(
        "bad",
        "headroom is too small for the cable",
        f"{text}: packets are lost while PAUSE is on its way",
        f"raise xoff of BUFFER_PROFILE|{port.buffer_profile} to {_KIB * math.ceil(low / _KIB)} or more, or correct the "
        f"length of {port.name} in CABLE_LENGTH",
    )


def watchdog(port: SwitchPort) -> Iterator[Finding]:
    """Whether a storm of PAUSEs would be noticed."""
    if port.lossless and not port.watchdog:
        yield Finding(
            "warn",
            "no PFC watchdog",
            f"one NIC that never stops sending PAUSE stops {port.name}, and from there what feeds it",
            f"add PFC_WD|{port.name} with action drop, detection_time 200 and restoration_time 200",
        )
