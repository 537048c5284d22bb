"""Checks of a file for missing parts: text that is cut, a speed that it does not give, ports that it leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fluidcc.operators import SwitchPort
from fluidcc.operators.config_files import listing
from fluidcc.operators.finding import Finding
from fluidcc.units import RATE, Rate, show

_SLOW = Rate(1e9 / 8)


def whole(port: SwitchPort) -> Iterator[Finding]:
    """Say why the file may be cut."""
    if port.doubts:
        yield Finding(
            "warn",
            "the text may be cut",
            f"{listing([*port.doubts], 2)}: what is left out counts as absent",
            "give all of the text, if it is not all",
        )


def speed(port: SwitchPort) -> Iterator[Finding]:
    """Say where a speed was taken that the file does not give."""
    if port.assumed_rate:
        yield Finding(
            "warn",
            "the port's speed is not in the file",
            f"{port.name} is taken as {show(port.rate, RATE)}; what follows depends on it",
            "give --rate 400Gbps, for example, or the speed in the file",
        )
    elif port.rate < _SLOW:
        yield Finding(
            "warn",
            "the port is slower than 1 Gb/s",
            f"{port.name} has {show(port.rate, RATE)}: speeds are in Mb/s",
            "write 100000 for 100 Gb/s, if that is meant",
        )


def strays(port: SwitchPort) -> Iterator[Finding]:
    """Name rows whose port the file does not have."""
    if port.strays:
        yield Finding(
            "warn",
            "rows name ports that PORT lacks",
            f"{listing([*port.strays], 4)}: the switch ignores them",
            "write names of table PORT in place of aliases and ranges, or delete the rows",
        )


def forgotten(port: SwitchPort, others: Sequence[str]) -> Iterator[Finding]:
    """Name ports that are as fast as a lossless one, and carry RoCE without marks and PAUSEs if they carry any."""
    if others:
        yield Finding(
            "warn",
            "equal ports are left out",
            f"{listing([*others])}: up and as fast as {port.name}, with neither PFC nor a WRED profile: RoCE there is "
            "neither marked nor paused",
            "set the same there, if they carry RoCE",
        )
