"""Switches of a scenario: marking, flow control, traffic classes, and failures."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from typing import Any

from fluidcc.errors import InputError
from fluidcc.scenario.parameters import parameter, register
from fluidcc.scenario.parameters import resolve as resolve_fields
from fluidcc.units import COUNT, RATIO, SIZE, TIME, is_concrete, quantity, show


def _thresholds_in_order(marking: Any) -> None:
    """Refuse thresholds that cross and a pmax above 1 as soon as they are given, where these can be read.

    Raises
    ------
    InputError
    """
    given = marking.kmin, marking.kmax
    if all(isinstance(each, str) or is_concrete(each) for each in given):
        with contextlib.suppress(InputError):  # what cannot be read is refused with its place, once that is known
            given = quantity(given[0], SIZE, "kmin"), quantity(given[1], SIZE, "kmax")
        kmin, kmax = given
        if is_concrete(kmin) and is_concrete(kmax) and kmin > kmax:
            raise InputError(
                f"RED kmin: {show(kmin, SIZE)} exceeds kmax {show(kmax, SIZE)}; "
                f"give kmin <= kmax (equal thresholds make a step marking)"
            )
    if isinstance(marking.pmax, str) or is_concrete(marking.pmax):
        pmax = marking.pmax
        with contextlib.suppress(InputError):
            pmax = quantity(pmax, RATIO, "pmax")
        if not isinstance(pmax, str) and is_concrete(pmax) and pmax > 1:
            raise InputError(f"RED pmax: {float(pmax):g} is too large; it must be at most 1: write 0.05 or 5%")


@register(check=_thresholds_in_order)
class RED:
    """Marking of an egress queue by its instantaneous length (DCQCN, Fig. 5 and eq. (5)).

    Below ``kmin`` nothing is marked, between the thresholds a share that rises to ``pmax``, and everything
    above ``kmax``. ``kmin == kmax`` is DCTCP's step marking. With ``max_on`` this is one part of ternary congestion
    detection (TCD, Zhang et al., SIGCOMM 2021): a port that flow control has stopped within that time is undetermined,
    and marks UE instead of CE; packets are then marked as they leave (`fluidcc.engines.packet.marking`).
    """

    kmin: Any = parameter(SIZE, "queue where marking starts", symbol="Kmin", source="DCQCN Fig. 5", low=0)
    kmax: Any = parameter(SIZE, "queue above which all is marked", symbol="Kmax", source="DCQCN Fig. 5", low=0)
    pmax: Any = parameter(
        RATIO,
        "marking probability at kmax",
        default=1.0,
        symbol="Pmax",
        source="DCQCN Fig. 5",
        low=0,
        high=1,
        open_low=True,
    )
    mark_on: str = parameter(
        "choice",
        "when a packet is marked: as it joins the queue, or as it leaves (packet engine)",
        default="arrival",
        source="DCQCN 3.1",
        choices=("arrival", "departure"),
    )
    counts_sending: bool = parameter(
        "on|off",
        "whether a queue's length includes the packet that is being sent (packet and hybrid engine)",
        default=False,
        source="switches differ",
        choices=(False, True),
    )
    cell: Any = parameter(
        SIZE,
        "size of the cells in which a switch counts its queue: each packet takes whole ones; off: bytes",
        default=None,
        source="switches differ",
        low=1,
        high=65536,
        integer=True,
        none_word="off",
    )
    max_on: Any = parameter(
        TIME,
        "TCD: time after a RESUME in which a port is undetermined; off: no TCD",
        default=None,
        symbol="max(T_on)",
        source="TCD; ACC 6.1",
        low=0,
        none_word="off",
    )


@register()
class PFC:
    """Priority flow control: a switch pauses the neighbour whose packets fill its buffer (packet engine; ACC's fluid).

    Packets are counted by the port that they came in by. A port's count above the threshold sends PAUSE, a count
    ``xon_gap`` below it RESUME. ``headroom`` holds what still arrives after a PAUSE.
    """

    xoff: Any = parameter(
        SIZE,
        "threshold of an ingress port; dynamic: alpha times what is free of the buffer",
        default=None,
        symbol="t_PFC",
        source="DCQCN 4",
        low=0,
        none_word="dynamic",
    )
    alpha: Any = parameter(
        RATIO,
        "share of the free buffer that one ingress port may fill",
        default=1 / 8,
        source="DCQCN 4",
        low=0,
        high=64,
    )
    xon_gap: Any = parameter(SIZE, "how far below the threshold a port resumes", default="3KB", source="DCQCN 4", low=0)
    headroom: Any = parameter(
        SIZE,
        "buffer kept for what arrives after a PAUSE; auto: from the port's rate, delay and packets",
        default=None,
        symbol="t_flight",
        source="DCQCN 4",
        low=0,
        none_word="auto",
    )
    reserve: Any = parameter(SIZE, "bytes of each ingress port that count towards no threshold", default=0.0, low=0)


@register()
class TrafficClass:
    """One egress queue of every port (packet engine): strict by priority, by weight among equal priorities."""

    priority: Any = parameter(COUNT, "larger goes first", default=0.0, low=0, high=6, integer=True)
    weight: Any = parameter(
        COUNT, "share of the link among queues of the same priority", default=1.0, low=0, open_low=True
    )
    lossless: bool = parameter(
        "on|off", "whether PFC, where the scenario has it, pauses this class", default=True, choices=(True, False)
    )


@register(meta=("link",))
class Failure:
    """A link that fails, in both directions, during the run; flows are routed around it (packet engine).

    Parameters
    ----------
    link : str
        Its name, as of `Link`.
    at : quantity
        When it fails [s].
    reroute_after : quantity
        Time until flows take another path [s].
    """

    link: str
    at: Any = parameter(TIME, "when it fails", low=0)
    reroute_after: Any = parameter(TIME, "until flows take another path", default=0.0, low=0)


@register(meta=("link",))
class Storm:
    """A port that is paused for good or for a time, whatever else it receives: its neighbour sends PAUSE without end.

    Li et al. (SIGCOMM 2019, section 1, Case-1) saw a switch that did (packet engine).

    Parameters
    ----------
    link : str
        Name of the port's link, as of `Link`.
    at : quantity
        When the PAUSE frames begin [s].
    duration : quantity
        How long they come [s].
    """

    link: str
    at: Any = parameter(TIME, "when the PAUSE frames begin", low=0)
    duration: Any = parameter(
        TIME, "how long they come", default=math.inf, low=0, open_low=True, unlimited=True, source="HPCC 1, Case-1"
    )


def in_bytes(marking: RED, packet: Any) -> RED:
    """Return the marking of packets of one size [bytes] whose thresholds are bytes, where a switch counts cells.

    The packet engine counts the cells of each packet; others know one size.
    """
    if marking.cell is None:
        return marking
    share = packet / (-(-packet // marking.cell) * marking.cell)
    return dataclasses.replace(marking, kmin=marking.kmin * share, kmax=marking.kmax * share, cell=None)


def unchecked_marking(kmin: Any, kmax: Any, pmax: Any) -> RED:
    """Make a marking whose thresholds may cross, as those of a switch's file may: an audit says so."""
    made = object.__new__(RED)
    made.__dict__.update(dataclasses.asdict(RED(0.0, 0.0)) | {"kmin": kmin, "kmax": kmax, "pmax": pmax})
    return made


def resolve_marking(marking: RED, where: str = "") -> RED:
    """Convert a marking to SI floats and check it.

    Raises
    ------
    InputError
        If it is no RED, a value cannot be read or is out of range, or kmin exceeds kmax.
    """
    if not isinstance(marking, RED):
        raise InputError(f"{where}marking: expected a RED, not {repr(marking)[:40]}; write RED('5KB', '200KB', 0.01)")
    marking = resolve_fields(marking, where)
    if marking.max_on is not None and marking.mark_on != "departure":
        marking = dataclasses.replace(marking, mark_on="departure")
    return marking
