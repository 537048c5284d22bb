"""Behaviour of flows that start together at line rate into a port, by the NIC's own algorithm, and of packets."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.builders import incast
from fluidcc.engines.run import simulate
from fluidcc.engines.run_many import Place, run_all
from fluidcc.errors import InputError
from fluidcc.operators import SwitchPort
from fluidcc.operators.finding import Finding
from fluidcc.operators.thresholds import shown
from fluidcc.progress import Bar
from fluidcc.scenario.frames import framed
from fluidcc.scenario.model import PFC, RED, Scenario, resolve
from fluidcc.schemes.dcqcn import DCQCN
from fluidcc.units import SIZE, TIME, parse, show

if TYPE_CHECKING:
    from fluidcc.theory.control.equilibrium import Equilibrium
    from fluidcc.theory.control.stability import Stability

OPENS, CLOSES = "50ms", "100ms"
LOOK = ("2.5ms", "5ms")  # window of a first look
SEEDS = 8
_FAR_BEYOND = 4.0  # times the buffer
MOST_FLOWS = 512  # single ones; more are a class of the fluid's
_USUAL = 32e6  # bytes
_TOGETHER = 20e-6  # s: starts are drawn within it, as equal flows in step have no chance in them
_USED = 0.98  # share of the link below which it is reported
_PAUSED = 1e-3  # share of the time beyond XOFF that is reported
_MOST_ALPHA = 64.0  # of `PFC`
TIMES = 1.5  # as far apart as high queues may be, beyond
FEW = 10  # packets
_PACKET = 4158.0  # bytes, of the largest that RoCE sends
SETTLED, PAUSED = "the flows settle", "PFC pauses the senders"
OUTGROWN = "the model's queue outgrows the buffer"
TWO_WAYS = "the flows settle in two ways"
SEARCH = (
    "tune kmin, kmax, pmax and g: fluidcc tune dcqcn --from ... --over kmin --over kmax --over pmax --over g "
    "--write out/"
)


def late(scenario: Scenario) -> dict[str, Any]:
    """Summarise the fluid late after a start at line rate."""
    return simulate(scenario, CLOSES, window=(OPENS, CLOSES), estimate_error=False).summary


def _percent(share: float) -> str:
    """Return a share in percent, in two digits or whole."""
    return f"{float(f'{100 * share:.2g}'):g}"


def with_buffers(scenario: Scenario, port: SwitchPort | None) -> Scenario:
    """A scenario with the buffer of a port's switch, and its flow control where the port is lossless.

    Parameters
    ----------
    scenario : Scenario
    port : SwitchPort or None
        None, or one whose file gives no buffer, leaves the scenario as it is.

    Returns
    -------
    Scenario
    """
    if port is None or port.buffer_size is None:
        return scenario
    return dataclasses.replace(scenario, **buffers_of(port, scenario.pfc))


def with_usual_buffers(scenario: Scenario, port: SwitchPort | None) -> tuple[Scenario, str]:
    """A scenario with a buffer in any case, and a note where no file gives it: without one a queue grows without end.

    It is that of `fabric` where nothing is known: HPCC's evaluation, 32 MB with PFC.
    """
    if port is None or port.buffer_size is not None or math.isfinite(float(scenario.buffer)):
        return scenario, ""
    note = (
        f"no file says how large the switch's buffer is: packets have {show(_USUAL, SIZE)} with PFC, as in fabric's "
        "preset hpcc-eval; --set buffer=... gives it"
    )
    return dataclasses.replace(scenario, buffer=_USUAL, pfc=scenario.pfc or PFC(alpha=1 / 8)), note


def buffer_in_words(port: SwitchPort) -> str:
    """Tell whose buffer `with_usual_buffers` gives, and whether with PFC."""
    if port.buffer_size is not None:
        return f"the switch's buffer and {'PFC' if port.pauses else 'no PFC, as this queue sends no PAUSE'}"
    return f"{show(_USUAL, SIZE)} of buffer (no file says how large the switch's is) and PFC"


def buffers_of(port: SwitchPort, pfc: PFC | None) -> dict[str, Any]:
    """Fields of `Scenario` for the buffer of a port's switch and its flow control, ``pfc`` where the file has none."""
    if port.buffer_size is None:
        return {}
    if port.pauses and port.buffer_size > 0:
        if port.static_th is not None:
            pfc = PFC(xoff=port.static_th)
        elif port.beta is not None:
            pfc = PFC(alpha=min(port.beta, _MOST_ALPHA))
    return {"buffer": max(port.buffer_size, 1.0), "pfc": pfc}


def together(port: SwitchPort, scheme: DCQCN, flows: int, delay: float, payload: float, seed: int) -> Scenario:
    """Flows into a port that start at line rate, almost together; ``delay`` [s] is of each link."""
    start = np.random.default_rng(seed).uniform(0.0, _TOGETHER, flows).tolist()
    scenario = incast(flows, rate=port.rate, delay=delay, scheme=scheme, marking=port.red, start=start)
    return with_usual_buffers(with_buffers(framed(scenario, payload), port), port)[0]


def measured(scenario: Callable[[int], Scenario], fluid: dict[str, Any], name: str) -> dict[str, Any]:
    """Measure utilisation, queue, fairness, and time of the queue beyond XOFF, late after a start at line rate.

    Parameters
    ----------
    scenario : callable
        Of a seed, as `together` has it.
    fluid : dict
        Summary of `late`, taken for more flows than the hybrid engine runs here.
    name : str
        Of the port.

    Returns
    -------
    dict
        ``engine``, ``seeds``, ``window_s``; ``utilisation``, ``jain``, ``queue_bytes`` and ``above_xoff``, means over
        the seeds, and ``utilisation_se``, ``queue_mean_se``, their standard errors. None for what is not known.
        ``ways`` as `two_ways` has it.
    """
    first = scenario(1)
    if len(first.flows) > MOST_FLOWS:
        runs, engine = [fluid], "fluid"
    else:
        options: dict[str, Any] = {"window": (OPENS, CLOSES), "engine": "hybrid", "sample_interval": CLOSES}
        look = simulate(first, LOOK[1], seed=1, engine="hybrid", window=LOOK, sample_interval=LOOK[1]).summary
        runs, engine = [look], "hybrid"
        if not _runs_away(look, first):
            with Bar(f"auditing {name}", SEEDS, "runs") as bar:
                runs = run_all(
                    lambda seed, _: simulate(scenario(seed), CLOSES, seed=seed, **options).summary,
                    range(1, SEEDS + 1),
                    report=bar,
                )

    def error(values: list[Any]) -> float | None:
        known = len(values) > 1 and all(value is not None for value in values)
        return float(np.std(values, ddof=1) / math.sqrt(len(values))) if known else None

    return {
        "engine": engine,
        "seeds": len(runs) if engine == "hybrid" else None,
        "window_s": runs[0]["window_s"],
        **means(runs, "utilisation", "jain", "above_xoff"),
        "utilisation_se": error([run["utilisation"] for run in runs]),
        "queue_mean_se": error([run["queue_bytes"]["mean"] for run in runs]),
        "ways": two_ways(runs),
    }


def means(runs: Sequence[dict[str, Any]], *names: str) -> dict[str, Any]:
    """Average metrics and ``queue_bytes`` of runs; None where one is not known."""

    def mean(values: list[Any]) -> float | None:
        return None if any(value is None for value in values) else float(np.mean(values))

    queues = [run["queue_bytes"] for run in runs]
    return {
        **{name: mean([run.get(name) for run in runs]) for name in names},
        "queue_bytes": {name: mean([queue[name] for queue in queues]) for name in queues[0]},
    }


def two_ways(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Part runs into those of short and those of long queues that never meet; a mean over both would be of none.

    Parameters
    ----------
    runs : sequence of dict
        Summaries.

    Returns
    -------
    list of dict
        ``runs``, their number, and means of ``utilisation`` and ``queue_bytes``, of either kind; empty where there is
        one kind only.
    """
    if any(run["queue_bytes"][end] is None for run in runs for end in ("mean", "p5", "p95")):
        return []
    ordered = sorted(runs, key=lambda run: run["queue_bytes"]["mean"])
    for count in range(1, len(ordered)):
        short, long = ordered[:count], ordered[count:]
        above = TIMES * max(run["queue_bytes"]["p95"] for run in short) + FEW * _PACKET
        if above < min(run["queue_bytes"]["p5"] for run in long):
            return [{"runs": len(some), **means(some, "utilisation")} for some in (short, long)]
    return []


def _runs_away(summary: dict[str, Any], scenario: Scenario) -> bool:
    """Check whether the queue is soon far beyond the switch's buffer, where PFC decides.

    Feedback then waits behind the queue that it should shorten; without PAUSEs a longer run only adds gigabytes.
    """
    mean = summary["queue_bytes"]["mean"]
    return bool(scenario.pfc is not None and mean is not None and mean > _FAR_BEYOND * float(scenario.buffer))


def apart(hybrid: dict[str, Any], fluid: dict[str, Any], packet: float) -> Iterator[Finding]:
    """Say where the fluid and the hybrid engine, without packets to decide, have queues that never meet.

    Parameters
    ----------
    hybrid, fluid : dict
        Percentiles of the queue.
    packet : float
        On the wire [bytes].
    """
    if any(each[end] is None for each in (hybrid, fluid) for end in ("p5", "p95")):
        return
    if any(low["p95"] * TIMES + FEW * packet < high["p5"] for low, high in ((hybrid, fluid), (fluid, hybrid))):
        yield Finding(
            "warn",
            "the engines contradict each other",
            "late in the same run the queues of the hybrid engine and of the averaged fluid never meet, from the 5th "
            "to the 95th percentile: neither is to be relied on",
            "let packets decide: --packets 2",
        )


def in_words(found: dict[str, Any]) -> str:
    """Say how far the link is used and how long the queue is, of either kind where there are `two_ways`."""

    def said(some: dict[str, Any], sure: float | None) -> str:
        queue, by = some["queue_bytes"], "%" if sure is None else f"+- {100 * sure:.1g} %"
        return (
            f"the link is used to {100 * some['utilisation']:.3g} {by} and the queue is {show(queue['p5'], SIZE)} to "
            f"{show(queue['p95'], SIZE)} (5 to 95 %), mean {show(queue['mean'], SIZE)}"
        )

    if not found.get("ways"):
        return said(found, found.get("utilisation_se"))
    return "; ".join(f"in {way['runs']} of {found['seeds']} runs {said(way, None)}" for way in found["ways"])


def behaviour(found: dict[str, Any], flows: int, red: RED, limit: float | None = None) -> Iterator[Finding]:
    """Judge what flows do late; a fixed point may exist and not be reached.

    A queue that is below Kmin and in the upper half of the ramp in turn, for a twentieth of the time at least, is not
    held on the ramp.

    Parameters
    ----------
    found : dict
        As `measured` has it, or packets.
    flows : int
    red : RED
    limit : float, optional
        What the queue may hold [bytes]; an engine that has more in it is not believed, and its figures not repeated.
    """
    used, queue, sure = found["utilisation"], found["queue_bytes"], found["utilisation_se"]
    if used is None or queue["mean"] is None:
        yield Finding(
            "warn",
            "the simulation does not stay finite",
            "some setting is out of the model's reach",
            "compare the NIC's settings with the defaults: fluidcc show dcqcn --preset vendor",
        )
        return
    by = f"{found['engine']} engine, {found['seeds']} seeds" if found["seeds"] else "the averaged fluid"
    if found["window_s"][1] < parse(CLOSES, TIME):  # a first look was enough
        yield Finding(
            "warn",
            PAUSED,
            f"from {LOOK[0]} to {LOOK[1]} after {flows} flows started at line rate the queue would be "
            f"{shown(queue['mean'], limit)} on average, where there is no PAUSE (hybrid engine): PAUSE holds "
            "them, and feedback waits behind that queue; what PAUSE makes of it is left out",
            SEARCH,
        )
        return
    ways = found.get("ways") or [found]
    longest = max(max(way["queue_bytes"]["mean"], way["queue_bytes"]["p95"]) for way in ways)
    if limit is not None and longest > limit:
        yield Finding(
            "warn",
            OUTGROWN,
            f"from {OPENS} to {CLOSES} after {flows} flows started at line rate the queue would be "
            f"{shown(longest, limit)} ({by}): PAUSE or losses decide, which this engine "
            "leaves out",
            "let packets decide: --packets 2",
        )
        return
    text = f"from {OPENS} to {CLOSES} after {flows} flows started at line rate, {in_words(found)} ({by})"
    if len(ways) > 1:
        yield Finding("warn", TWO_WAYS, f"{text}: which it is, is decided by when each flow starts", SEARCH)
    elif used + 2 * (sure or 0.0) < _USED:
        yield Finding("warn", "the link is left idle", text, SEARCH)
    elif queue["p5"] < red.kmin and queue["p95"] > (red.kmin + red.kmax) / 2:
        yield Finding("warn", "the queue keeps oscillating", text, SEARCH)
    else:
        yield Finding("ok", SETTLED, text)
    beyond = found.get("above_xoff")
    if beyond is not None and beyond > _PAUSED:
        yield Finding(
            "warn",
            PAUSED,
            f"the queue is beyond XOFF for {_percent(beyond)} % of that time (its bytes taken as evenly of {flows} "
            "ports); from there on PAUSE holds them, which the figures above leave out",
            SEARCH,
        )


# -- packets, with the switch's own buffer and PAUSE: the last word of an audit ----------------------------


MOST_PACKET_FLOWS = 64  # beyond, packets take longer than one would wait
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
        yield Finding("ok", "packet runs agree", text)
    else:
        yield Finding(
            "warn",
            "packets say otherwise",
            f"{text}; theirs is the last word, and what the {hybrid['engine']} engine says, which contradicts it, is "
            "left out",
            SEARCH,
        )


# -- stability of the fixed point, and whether a start at line rate settles there --------------------------


_THERE = 0.01  # of the queue at the fixed point: a queue this near counts as there
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
    if queue["p5"] is not None and (1 - _THERE) * at <= queue["p5"] <= queue["p95"] <= (1 + _THERE) * at:
        return Reach(local, True, f"{kind}a start at line rate reaches it")
    try:
        end = limit_cycle(scenario, UNTIL, estimate_error=False)
    except InputError:  # the run is not finite, or too short for its delays
        return Reach(local, None, f"{kind}whether a start at line rate reaches it is not known")
    between = f"between {shown(end.low, limit)} and {shown(end.high, limit)}"
    if end.kind == "equilibrium":
        there = abs(end.mean - at) <= _THERE * at
        ends = (
            "reaches it" if there else f"does not reach it in the averaged fluid: it ends at {shown(end.mean, limit)}"
        )
        return Reach(local, there, f"{kind}a start at line rate {ends}")
    if end.kind in ("cycle", "growing") or (end.kind == "irregular" and end.high - end.low > _FAR * at):
        stays = f"does not reach it in the averaged fluid: the queue stays {between}"
        return Reach(local, False, f"{kind}a start at line rate {stays}")
    moves = f"is still on its way after {UNTIL}, the queue {between}"
    return Reach(local, None, f"{kind}a start at line rate {moves}")
