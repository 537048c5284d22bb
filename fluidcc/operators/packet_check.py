"""Packet runs of a port, with its switch's own buffer and PAUSE: the last word of an audit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from fluidcc.engines.run_many import Place, run_all
from fluidcc.errors import InputError
from fluidcc.operators.behaviour import CLOSES, FEW, OPENS, OUTGROWN, PAUSED, SEARCH, TIMES, in_words, means, two_ways
from fluidcc.operators.finding import Finding
from fluidcc.progress import Bar
from fluidcc.scenario.model import Scenario, resolve

MOST_FLOWS = 64  # beyond, packets take longer than one would wait
_NEAR = 0.03  # of the link: as far apart as utilisations may be


def packets(scenario: Callable[[int], Scenario], seeds: int, name: str) -> dict[str, Any]:
    """Run a scenario in packets.

    Parameters
    ----------
    scenario : callable
        Of a seed, with the buffer and the flow control of its switch.
    seeds : int
    name : str
        Of the port.

    Returns
    -------
    dict
        Means over the seeds: ``utilisation``, ``jain``, ``queue_bytes``, ``pfc_pauses`` and ``drops`` of a run;
        ``seeds``, ``window_s``, and ``ways`` as `two_ways` has them. Of what packets refuse, such as a buffer below the
        headroom of its ports, the ``reason`` alone.
    """
    from fluidcc.engines.hybrid.region import by_packets
    from fluidcc.engines.packet import run as packet  # not before it is wanted: it brings the compiler

    try:
        first = by_packets(resolve(scenario(1)))
        times = packet.times_of(first, CLOSES, (OPENS, CLOSES), CLOSES)
        packet.warm_up(packet.prepare(first, times, 0))  # compiled before threads ask for it, each for itself
    except InputError as error:
        return {"reason": str(error)}

    def one(seed: int, place: Place) -> dict[str, Any]:
        drawn = by_packets(resolve(scenario(seed)))
        return packet.traced(drawn, packet.prepare(drawn, times, 0), seed, report=place.look).summary

    with Bar(f"packets of {name}", seeds, "runs") as bar:
        runs = run_all(one, range(1, seeds + 1), report=bar)
    return {
        "seeds": seeds,
        "window_s": runs[0]["window_s"],
        **means(runs, "utilisation", "jain", "pfc_pauses", "drops"),
        "ways": two_ways(runs),
    }


def _count(mean: float) -> str:
    """Show a mean number, in full."""
    return f"{mean:,.1f}".removesuffix(".0")


def _ways(found: dict[str, Any]) -> list[dict[str, Any]]:
    return found.get("ways") or [found]


def after_packets(
    said: Sequence[Finding],
    hybrid: dict[str, Any],
    found: dict[str, Any],
    packet: float,
    judged: Callable[[dict[str, Any]], Iterable[Finding]],
    buffer: str = "the switch's buffer and PFC",
) -> Iterator[Finding]:
    """Yield what was said of the flows as far as packets bear it out, and whether they do.

    Where packets say otherwise, what was said is taken back, and what is wrong by their figures takes its place.

    Parameters
    ----------
    said : sequence of Finding
        Of the hybrid engine or the fluid.
    hybrid : dict
        As `fluidcc.operators.behaviour.measured` has it.
    found : dict
        As `packets` has it.
    packet : float
        On the wire [bytes].
    judged : callable
        Gives findings of such figures.
    buffer : str
        Whose the packets had, in words.
    """
    used, queue = found.get("utilisation"), found.get("queue_bytes", {"p95": None})
    theirs = hybrid["queue_bytes"]
    if used is None or queue["p95"] is None or hybrid["utilisation"] is None or theirs["p95"] is None:
        yield from said
        if "reason" in found:
            yield Finding("ok", "packets were not run", found["reason"])
        return
    text = (
        f"at the same time, with {buffer}, {in_words(found)}; {_count(found['pfc_pauses'])} PAUSEs "
        f"and {_count(found['drops'])} packets lost (packets, {found['seeds']} seeds)"
    )

    def near(mine: dict[str, Any], other: dict[str, Any]) -> bool:
        high, low = sorted((mine["queue_bytes"]["p95"], other["queue_bytes"]["p95"]), reverse=True)
        sure = 2 * (hybrid["utilisation_se"] or 0.0)
        return abs(mine["utilisation"] - other["utilisation"]) <= _NEAR + sure and high <= TIMES * low + FEW * packet

    mine = [*judged({**found, "engine": "packet", "utilisation_se": None})]
    beyond = any(each.what == OUTGROWN for each in mine)
    # A queue that stays in the buffer without PAUSE and loss contradicts one that outgrows it.
    quiet = any(each.what == OUTGROWN for each in said) and not (beyond or found["pfc_pauses"] or found["drops"])
    # Of two ways a few runs may show one alone.
    agrees = not quiet and all(any(near(mine, other) for other in _ways(hybrid)) for mine in _ways(found))
    if agrees:
        # No PAUSE in the whole run: there is nothing to pause for.
        heard = (each for each in said if each.what != PAUSED or found["pfc_pauses"] > 0)
        yield from (dataclasses.replace(each, suggest=SEARCH) if each.what == OUTGROWN else each for each in heard)
    else:
        yield from (each for each in mine if each.severity != "ok" and each.what != OUTGROWN)
    if found["drops"] > 0:
        yield Finding("bad", "packets are lost", text, SEARCH)
    elif beyond:
        yield Finding(
            "warn",
            "packets leave out the queue's limit",
            f"{text}: this queue is longer than the switch lets it be, and what is lost beyond is not counted",
            "give the queue room by its profile of BUFFER_QUEUE, or shorten it: " + SEARCH,
        )
    elif agrees:
        yield Finding("ok", "packets say so too", text)
    else:
        yield Finding(
            "warn",
            "packets say otherwise",
            f"{text}; theirs is the last word, and what the {hybrid['engine']} engine says, which contradicts it, is "
            "left out",
            SEARCH,
        )
