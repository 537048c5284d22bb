"""Checks of PFC and ECN that are on for different queues of a port, of which RoCE's traffic has one."""

from __future__ import annotations

from collections.abc import Iterator

from fluidcc.operators import SwitchPort
from fluidcc.operators.finding import Finding
from fluidcc.operators.sonic import USUAL_DSCP
from fluidcc.operators.switches import SONIC


def marked_in_vain(port: SwitchPort) -> Iterator[Finding]:
    """Say that ECN is on for a queue that is not RoCE's."""
    if port.marked_in_vain:
        there = f": wred_profile {port.profile} in QUEUE|{port.name}|{port.usual_queue}"
        yield Finding(
            "warn",
            "ECN is on for another queue than PFC",
            f"queue {port.queue} of {port.name} marks and is not lossless; RoCE's usual DSCP {USUAL_DSCP} goes to "
            f"queue {port.usual_queue}, which is lossless and has no WRED profile",
            f"give queue {port.usual_queue} the marking of queue {port.queue}"
            + (there if port.system == SONIC.system else ""),
        )


def paused_in_vain(port: SwitchPort) -> Iterator[Finding]:
    """Say that PFC is on for a queue that is not RoCE's."""
    yield Finding(
        "warn",
        "PFC is on for another queue than ECN",
        f"queue {port.queue} of {port.name} is lossless and has no WRED profile; RoCE's usual DSCP {USUAL_DSCP} goes "
        f"to queue {port.usual_queue}, which marks and is not lossless",
        f"take priority {port.priority} out of pfc_enable of PORT_QOS_MAP|{port.name}, unless other traffic needs it",
    )
