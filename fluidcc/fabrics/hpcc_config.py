"""The HPCC authors' simulator's ``config.txt``: which scheme, with which numbers, on which files."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fluidcc.errors import InputError
from fluidcc.fabrics.hpcc_files import FlowList, Lines, read_flows, read_topology
from fluidcc.fabrics.topology import Topology
from fluidcc.scenario.model import RED, Failure, resolve
from fluidcc.schemes.preset import SIMULATOR
from fluidcc.schemes.presets import preset as preset_of
from fluidcc.surface import constructor, public
from fluidcc.units import RATE, parse, quantity

SCHEMES = {1: "dcqcn", 3: "hpcc", 7: "timely", 8: "dctcp"}  # by CC_MODE
# What the simulator has where a file is silent (third.cc), of what is read here.
_DEFAULTS: dict[str, str] = {
    "ENABLE_QCN": "1", "PACKET_PAYLOAD_SIZE": "1000", "SIMULATOR_STOP_TIME": "3.01", "CC_MODE": "1",
    "ALPHA_RESUME_INTERVAL": "55", "RATE_DECREASE_INTERVAL": "4", "CLAMP_TARGET_RATE": "0", "EWMA_GAIN": "0",
    "FAST_RECOVERY_TIMES": "5", "MIN_RATE": "100Mb/s", "DCTCP_RATE_AI": "1000Mb/s", "L2_ACK_INTERVAL": "0",
    "HAS_WIN": "1", "GLOBAL_T": "1", "MI_THRESH": "5", "VAR_WIN": "0", "FAST_REACT": "1", "U_TARGET": "0.95",
    "INT_MULTI": "1", "MULTI_RATE": "1", "SAMPLE_FEEDBACK": "0", "RATE_BOUND": "1", "BUFFER_SIZE": "16",
    "ERROR_RATE_PER_LINK": "0", "LINK_DOWN": "0 0 0", "L2_BACK_TO_ZERO": "0",
}  # fmt: skip
_MAPS = ("KMIN_MAP", "KMAX_MAP", "PMAX_MAP")
# Read and not needed: outputs, what has no effect on results, and what that simulator itself does not read.
_WITHOUT_EFFECT = {
    "TRACE_FILE", "TRACE_OUTPUT_FILE", "FCT_OUTPUT_FILE", "PFC_OUTPUT_FILE", "QLEN_MON_FILE", "QLEN_MON_START",
    "QLEN_MON_END", "ENABLE_TRACE", "USE_DYNAMIC_PFC_THRESHOLD", "PAUSE_TIME", "DATA_RATE", "LINK_DELAY",
    "L2_CHUNK_SIZE", "ACK_HIGH_PRIO", "PINT_LOG_BASE", "PINT_PROB", "RNG_RUN",
}  # fmt: skip
_KNOWN = {*_DEFAULTS, *_MAPS, *_WITHOUT_EFFECT, "RP_TIMER", "RATE_AI", "RATE_HAI", "TOPOLOGY_FILE", "FLOW_FILE"}
# Values with which this engine would do something else than that simulator.
_REFUSED: dict[str, tuple[str, str]] = {
    "RATE_BOUND": ("1", "senders without pacing"),
    "L2_BACK_TO_ZERO": ("0", "receivers that go back to the begin of a chunk"),
    "SAMPLE_FEEDBACK": ("0", "telemetry once a round trip"),
    "GLOBAL_T": ("1", "round trips T of each pair"),
    "CLAMP_TARGET_RATE": ("0", "targets that every cut lowers"),
}
# Where parameters and fields that are refused come from.
_KEY_OF = {
    "eta": "U_TARGET", "max_stage": "MI_THRESH", "int_multi": "INT_MULTI", "g": "EWMA_GAIN", "rate_ai": "RATE_AI",
    "rate_hai": "RATE_HAI", "hai_gain": "RATE_HAI", "min_rate": "MIN_RATE", "timer": "RP_TIMER",
    "alpha_timer": "ALPHA_RESUME_INTERVAL", "rate_decrease_interval": "RATE_DECREASE_INTERVAL",
    "fast_recovery_steps": "FAST_RECOVERY_TIMES", "packet_size": "PACKET_PAYLOAD_SIZE", "buffer": "BUFFER_SIZE",
    "ack_interval": "L2_ACK_INTERVAL",
}  # fmt: skip
_EXPECTED = "the simulator's config.txt: a KEY and its value in each line"


@constructor()
@dataclasses.dataclass(frozen=True, eq=False)
class SimulatorConfig:
    """A study of the HPCC authors' simulator.

    Parameters
    ----------
    scheme : str
    options : dict
        Of `Topology.scenario`: the scheme's parameters, marking and network.
    topology : Topology
    flows : FlowList
    until : float
        When the simulator stops [s], counted from the first flow.
    words : tuple of str
        What is not as in the file.
    """

    scheme: str
    options: dict[str, Any]
    topology: Topology
    flows: FlowList
    until: float
    words: tuple[str, ...]


@public()
def read_config(path: str | os.PathLike[str]) -> SimulatorConfig:
    """Read a ``config.txt``, and the topology and flows that it names.

    These are looked for from the current folder, from the file's own, and from the one above it: the simulator itself
    is called from above ``mix/``.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    SimulatorConfig

    Raises
    ------
    InputError
        If it is none, with the line; a file that it names is missing; or it asks for what is not modelled.
    """
    lines = Lines(path, _EXPECTED)
    found: dict[str, str] = {}
    at: dict[str, int] = {}
    for words in lines.rows():
        if words[0] not in _KNOWN:
            raise lines.wrong(f"{words[0][:40]!r} is no key of that simulator; delete the line")
        if words[0] in found:
            raise lines.wrong(f"{words[0]} is there twice; keep one")
        if len(words) == 1 and not words[0].endswith("_FILE"):
            raise lines.wrong(f"{words[0]} has no value; write one behind it")
        found[words[0]], at[words[0]] = " ".join(words[1:]), lines.at
    reader = _Reader(lines.name, _DEFAULTS | found, at)
    for key, (value, what) in _REFUSED.items():
        if reader.number(key) != float(value):
            raise reader.wrong(key, f"{what} are not modelled; write {key} {value}")
    mode = int(reader.number("CC_MODE"))
    if mode not in SCHEMES:
        known = ", ".join(f"{number} ({name})" for number, name in SCHEMES.items())
        raise reader.wrong("CC_MODE", f"{mode} is not modelled; write one of {known}")
    topology, flows = read_topology(reader.file("TOPOLOGY_FILE")), read_flows(reader.file("FLOW_FILE"))
    loses = reader.number("ERROR_RATE_PER_LINK")
    if loses > 1:
        raise reader.wrong("ERROR_RATE_PER_LINK", f"{loses:g} is no probability; write one from 0 to 1")
    if loses > 0:  # of cables that have none of their own
        cables = tuple(dataclasses.replace(each, loss=each.loss or loses) for each in topology.cables)
        topology = dataclasses.replace(topology, cables=cables)
    rtt, window = largest_round_trip(topology, reader.number("PACKET_PAYLOAD_SIZE"))
    until = reader.number("SIMULATOR_STOP_TIME") - flows.begins
    if until <= 0:
        raise reader.wrong("SIMULATOR_STOP_TIME", "is before the first flow starts; write a later one")
    network, words = _network(reader, topology, flows)
    try:
        scheme = scheme_of(reader, SCHEMES[mode], rtt, window)
        options = {**network, "scheme": scheme, "marking": _marking(reader, mode)}
        resolve(topology.scenario(flows.rows[:1], **options))
    except InputError as error:
        raise reader.placed(error) from None
    return SimulatorConfig(SCHEMES[mode], options, topology, flows, until, tuple(words))


class _Reader(Mapping[str, Any]):
    """Values of a file by key, which says its line when one is wrong."""

    def __init__(self, name: str, values: Mapping[str, str], at: Mapping[str, int]) -> None:
        self.name, self.values_, self.at = name, values, at

    def __getitem__(self, key: str) -> str:
        if key not in self.values_:
            raise InputError(f"{self.name}: has no {key}; write a line with it")
        return self.values_[key]

    def __iter__(self) -> Any:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)

    def wrong(self, key: str, text: str) -> InputError:
        where = f", line {self.at[key]}" if key in self.at else ""
        return InputError(f"{self.name}{where}: {key}: {text}")

    def placed(self, error: InputError) -> InputError:
        """An error that begins with a key, or with a parameter that comes from one, at its line."""
        name, _, text = str(error).partition(": ")
        name = name.removeprefix("flow 0 ")
        key = _KEY_OF.get(name, name)
        key = f"DCTCP_{key}" if f"DCTCP_{key}" in self.at and SCHEMES[int(self.number("CC_MODE"))] == "dctcp" else key
        return self.wrong(key, text) if key in self.values_ else error

    def number(self, key: str) -> float:
        try:
            value = float(self[key])
        except ValueError:
            value = float("nan")
        if not 0 <= value < float("inf"):
            raise self.wrong(key, f"{self[key][:30]!r} is no number; write one")
        return value

    def file(self, key: str) -> Path:
        name, here = self[key], Path(self.name).parent
        tried = [Path(name), here / name, here.parent / name]
        there = next((path for path in tried if path.is_file()), None)
        if there is None:
            raise self.wrong(key, f"{name[:100]!r} is not there; looked for it here, in {here} and in {here.parent}")
        return there


def scheme_of(keys: Mapping[str, Any], scheme: str, base_rtt: float, window: float) -> Any:
    """Parameters of a scheme of that simulator.

    Parameters
    ----------
    keys : mapping
        Its configuration.
    scheme : str
    base_rtt : float
        The simulator's global T [s].
    window : float
        Its first window [bytes].

    Raises
    ------
    InputError
        If a value is none, or asks for what is not modelled.
    """

    def rate(key: str) -> float:
        return parse(str(keys[key]), RATE, key)

    def value(key: str) -> float:
        try:
            return float(keys[key])
        except ValueError:
            raise InputError(f"{key}: {str(keys[key])[:30]!r} is no number; write one") from None

    base = preset_of(scheme, "hpcc-sim").scheme
    if scheme in ("hpcc", "dctcp") and not (int(value("HAS_WIN")) and int(value("VAR_WIN"))):
        missing = "VAR_WIN" if int(value("HAS_WIN")) else "HAS_WIN"
        raise InputError(f"{missing}: {scheme} without a window, or with a fixed one, is not modelled; write 1")
    if scheme == "hpcc":
        return dataclasses.replace(
            base,
            int_multi=value("INT_MULTI"),
            eta=value("U_TARGET"),
            max_stage=value("MI_THRESH"),
            rate_ai=rate("RATE_AI"),
            min_rate=rate("MIN_RATE"),
            base_rtt=base_rtt,
            initial_window=window,
            reaction="combined" if value("FAST_REACT") else "per-rtt",
            registers="per-link" if value("MULTI_RATE") else "one",
        )
    if scheme == "dctcp":
        return dataclasses.replace(
            base,
            g=value("EWMA_GAIN"),
            rate_ai=rate("DCTCP_RATE_AI"),
            min_rate=rate("MIN_RATE"),
            base_rtt=base_rtt,
            initial_window=window,
        )
    win: dict[str, Any] = {}
    if value("HAS_WIN"):
        if not value("VAR_WIN"):
            raise InputError("HAS_WIN: 1 with VAR_WIN 0, a fixed window, is not modelled; write HAS_WIN 0")
        win = {"win": True, "base_rtt": base_rtt}
    if scheme == "timely":
        gain = rate("RATE_HAI") / rate("RATE_AI")
        return dataclasses.replace(base, rate_ai=rate("RATE_AI"), hai_gain=gain, min_rate=rate("MIN_RATE"), **win)
    return dataclasses.replace(
        base,
        g=value("EWMA_GAIN"),
        rate_ai=rate("RATE_AI"),
        rate_hai=rate("RATE_HAI"),
        min_rate=rate("MIN_RATE"),
        # Its timers count whole microseconds.
        timer=int(value("RP_TIMER")) * 1e-6,
        alpha_timer=int(value("ALPHA_RESUME_INTERVAL")) * 1e-6,
        rate_decrease_interval=int(value("RATE_DECREASE_INTERVAL")) * 1e-6,
        fast_recovery_steps=value("FAST_RECOVERY_TIMES"),
        **win,
    )


def thresholds(text: str) -> dict[int, float]:
    """A map of that simulator from rates [bit/s] to thresholds: how many, then pairs.

    Raises
    ------
    ValueError
        If it is none.
    """
    count, *values = text.split()
    if int(count) * 2 != len(values):
        raise ValueError(f"says {count} pairs and has {len(values) / 2:g}")
    return {int(float(rate)): float(value) for rate, value in zip(values[::2], values[1::2], strict=True)}


def _marking(reader: _Reader, mode: int) -> Callable[[Any], RED | None]:
    """Marking of a link by its rate; of schemes that look at marks."""
    if not reader.number("ENABLE_QCN") or SCHEMES[mode] not in ("dcqcn", "dctcp"):
        return lambda rate: None
    maps = {}
    for key in _MAPS:
        try:
            maps[key] = thresholds(reader[key])
        except ValueError as error:
            raise reader.wrong(key, f"is no map ({error}); write how many, then rates and thresholds") from None

    def marking(rate: Any) -> RED:
        bits = round(float(quantity(rate, RATE, "rate")) * 8)
        for key, known in maps.items():
            if bits not in known:
                raise reader.wrong(key, f"has no threshold for links of {bits / 1e9:g} Gb/s; add one")
        kmin, kmax, pmax = (maps[key][bits] for key in _MAPS)
        return RED(kmin * 1e3, kmax * 1e3, pmax, mark_on="departure")

    return marking


def _network(reader: _Reader, topology: Topology, flows: FlowList) -> tuple[dict[str, Any], list[str]]:
    """Fields of the scenario, and what is not as in the file."""
    network: dict[str, Any] = {
        **SIMULATOR,
        "packet_size": reader.number("PACKET_PAYLOAD_SIZE"),
        "buffer": reader.number("BUFFER_SIZE") * 2**20,
        "pfc": SIMULATOR["pfc"],
        "ack_interval": max(1.0, reader.number("L2_ACK_INTERVAL")),
    }
    words = []
    if any(cable.loss > 0 for cable in topology.cables):
        # That simulator goes back on a NACK, which it repeats, and has no timeout.
        network |= {"loss_recovery": "gbn", "nack_interval": "500us"}
        words.append("senders also go back after a timeout, without which a lost last packet is never sent again")
    down = reader["LINK_DOWN"].split()
    if len(down) != 3 or not all(word.replace(".", "", 1).isdigit() for word in down):
        raise reader.wrong("LINK_DOWN", f"{reader['LINK_DOWN'][:30]!r} is no time [us] and two nodes; write 0 0 0")
    if float(down[0]) > 0:
        a, b = int(float(down[1])), int(float(down[2]))
        if not any({a, b} == set(cable.ends) for cable in topology.cables):
            raise reader.wrong("LINK_DOWN", f"no cable is between {a} and {b}; name two nodes that have one")
        at = 2.0 + float(down[0]) * 1e-6 - flows.begins  # counted from 2 s of that simulator's time
        if at < 0:
            raise reader.wrong("LINK_DOWN", "is before the first flow starts; write a later one")
        switches = set(topology.switches)
        network["failures"] = (Failure(f"{a}->{b}" if a in switches else f"{b}->{a}", at),)
    if len(set(flows.priority.tolist())) > 1:
        words.append("all flows are in one class, whatever their priority group")
    return network, words


def largest_round_trip(topology: Topology, payload: float) -> tuple[float, float]:
    """T and the window [s, bytes] of that simulator: the largest of all pairs of hosts.

    A round trip is twice the delays, and a payload once onto each link of the way there, in whole nanoseconds; its
    window is that times the slowest link.
    """
    nodes = [*topology.hosts, *topology.switches]
    place = {node: k for k, node in enumerate(nodes)}
    next_to: list[list[tuple[int, int, int]]] = [[] for _ in nodes]
    for cable in topology.cables:
        a, b = (place[end] for end in cable.ends)
        bits = round(cable.rate * 8)
        trip = 2 * round(cable.delay * 1e9) + round(payload) * 8 * 10**9 // bits
        next_to[a].append((b, trip, bits))
        next_to[b].append((a, trip, bits))
    # Hosts of one ToR with equal cables are alike: two of each stand for them.
    kinds: dict[Any, list[int]] = {}
    for host in range(len(topology.hosts)):
        kinds.setdefault(next_to[host][0], []).append(host)
    ends = [host for each in kinds.values() for host in each[:2]]
    longest = most = 0
    for source in (each[0] for each in kinds.values()):
        trip, slowest = _from_host(source, next_to, len(topology.hosts))
        for other in ends:
            if other in trip and other != source:
                longest = max(longest, trip[other])
                most = max(most, trip[other] * slowest[other] // (8 * 10**9))
    return longest * 1e-9, float(most)


def _from_host(
    source: int, next_to: list[list[tuple[int, int, int]]], hosts: int
) -> tuple[dict[int, int], dict[int, int]]:
    """Round trip [ns] to every node, by the way first found among the shortest, and its slowest link [bit/s]."""
    trip, slowest, waiting = {source: 0}, {source: 1 << 62}, [source]
    for node in waiting:
        if node < hosts and node != source:
            continue
        for other, more, bits in next_to[node]:
            if other not in trip:
                trip[other], slowest[other] = trip[node] + more, min(slowest[node], bits)
                waiting.append(other)
    return trip, slowest
