"""Reason why a switch's port has no thresholds to run with."""

from __future__ import annotations

from fluidcc.operators.sonic import SwitchPort


def unmarked(port: SwitchPort) -> str:
    """Say why a port has no thresholds of marking, and what to change in its file; empty if it has them."""
    where = f"queue {port.queue} of {port.name}"
    if port.shares is not None:
        low, high = (f"{100 * share:g}" for share in port.shares)
        return (
            f"{where} marks from {low} to {high} % of a buffer, and the file does not say how large that is; "
            "write both thresholds in bytes there"
        )
    if port.unread:
        return (
            f"{where} marks by `{port.unread}`, of which two thresholds and a whole percent could not be read; write "
            "them there"
        )
    if port.red is None or not port.ecn:
        return f"{where} does not mark (no WRED profile, or ECN off); turn ECN on there"
    return ""
