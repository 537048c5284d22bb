"""Packet runs of a port, with its switch's own buffer and PAUSE: the last word of an audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from fluidcc.engines.run_many import Place, run_all
from fluidcc.errors import InputError
from fluidcc.operators.behaviour import CLOSES, FEW, OPENS, PAUSED, SEARCH, TIMES
from fluidcc.operators.finding import Finding
from fluidcc.progress import Bar
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.units import SIZE, show

MOST_FLOWS = 64  # beyond, packets take longer than one would wait
_NEAR = 0.03  # of the link: as far apart as utilisations may be


def packets(scenario: Scenario, seeds: int, name: str) -> dict[str, Any]:
    """Run a scenario in packets.

    Parameters
    ----------
    scenario : Scenario
        With the buffer and the flow control of its switch.
    seeds : int
    name : str
        Of the port.

    Returns
    -------
    dict
        Means over the seeds: ``utilisation``, ``jain``, ``queue_bytes``, ``pfc_pauses`` and ``drops`` of a run;
        ``seeds``, ``window_s``. Of what packets refuse, such as a buffer below the headroom of its ports, the
        ``reason`` alone.
    """
    from fluidcc.engines.packet import run as packet  # not before it is wanted: it brings the compiler

    try:
        scenario = resolve(scenario)
        times = packet.times_of(scenario, CLOSES, (OPENS, CLOSES), CLOSES)
        packet.warm_up(packet.prepare(scenario, times, 0))  # compiled before threads ask for it, each for itself
    except InputError as error:
        return {"reason": str(error)}

    def one(seed: int, place: Place) -> dict[str, Any]:
        plan = packet.prepare(scenario, times, 0)  # is used up by its run
        return packet.traced(scenario, plan, seed, report=place.look).summary

    with Bar(f"packets of {name}", seeds, "runs") as bar:
        runs = run_all(one, range(1, seeds + 1), report=bar)
    return {
        "seeds": seeds,
        "window_s": runs[0]["window_s"],
        **{key: _mean([run[key] for run in runs]) for key in ("utilisation", "jain", "pfc_pauses", "drops")},
        "queue_bytes": {key: _mean([run["queue_bytes"][key] for run in runs]) for key in runs[0]["queue_bytes"]},
    }


def _count(mean: float) -> str:
    """Show a mean number, in full."""
    return f"{mean:,.1f}".removesuffix(".0")


def _mean(values: Sequence[Any]) -> float | None:
    return None if any(value is None for value in values) else float(np.mean(values))


def after_packets(
    said: Sequence[Finding],
    hybrid: dict[str, Any],
    found: dict[str, Any],
    packet: float,
    judged: Callable[[dict[str, Any]], Iterable[Finding]],
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
    """
    used, queue = found.get("utilisation"), found.get("queue_bytes", {"p95": None})
    theirs = hybrid["queue_bytes"]
    if used is None or queue["p95"] is None or hybrid["utilisation"] is None or theirs["p95"] is None:
        yield from said
        if "reason" in found:
            yield Finding("ok", "packets were not run", found["reason"])
        return
    text = (
        f"at the same time, with the switch's buffer and PFC, the link is used to {100 * used:.3g} % and the "
        f"queue is {show(queue['p5'], SIZE)} to {show(queue['p95'], SIZE)} (5 to 95 %), mean "
        f"{show(queue['mean'], SIZE)}; {_count(found['pfc_pauses'])} PAUSEs and {_count(found['drops'])} packets lost "
        f"(packets, {found['seeds']} seeds)"
    )
    high, low = sorted((queue["p95"], theirs["p95"]), reverse=True)
    near = abs(used - hybrid["utilisation"]) <= _NEAR + 2 * (hybrid["utilisation_se"] or 0.0)
    agrees = near and high <= TIMES * low + FEW * packet
    if agrees:
        # No PAUSE in the whole run: there is nothing to pause for.
        yield from (each for each in said if each.what != PAUSED or found["pfc_pauses"] > 0)
    else:
        mine = {**found, "engine": "packet", "utilisation_se": None}
        yield from (each for each in judged(mine) if each.severity != "ok")
    if found["drops"] > 0:
        yield Finding("bad", "packets are lost", text, SEARCH)
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
