"""The HPCC authors' simulator's ``config.txt``: which scheme, with which numbers, on which files."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fluidcc.contract.preset import SIMULATOR
from fluidcc.contract.registry import preset as preset_of
from fluidcc.engines.common.bounds import MOST_TIME
from fluidcc.errors import InputError
from fluidcc.scenario.model import RED, Failure, resolve
from fluidcc.surface import constructor, public
from fluidcc.units import RATE, Rate, Seconds, quantity
from fluidcc.workloads.fabrics.hpcc_files import FlowList, ns3_rate, read_flows, read_topology
from fluidcc.workloads.fabrics.lines import Lines
from fluidcc.workloads.fabrics.topology import Topology, link_names

SCHEMES = {1: "dcqcn", 3: "hpcc", 7: "timely", 8: "dctcp"}  # by CC_MODE
# What the simulator has where a file is silent (third.cc), of what is read here; the last four are ConWeave's.
_DEFAULTS: dict[str, str] = {
    "ENABLE_QCN": "1", "PACKET_PAYLOAD_SIZE": "1000", "SIMULATOR_STOP_TIME": "3.01", "CC_MODE": "1",
    "ALPHA_RESUME_INTERVAL": "55", "RATE_DECREASE_INTERVAL": "4", "CLAMP_TARGET_RATE": "0", "EWMA_GAIN": "0",
    "FAST_RECOVERY_TIMES": "5", "MIN_RATE": "100Mb/s", "DCTCP_RATE_AI": "1000Mb/s", "L2_ACK_INTERVAL": "0",
    "HAS_WIN": "1", "GLOBAL_T": "1", "MI_THRESH": "5", "VAR_WIN": "0", "FAST_REACT": "1", "U_TARGET": "0.95",
    "INT_MULTI": "1", "MULTI_RATE": "1", "SAMPLE_FEEDBACK": "0", "RATE_BOUND": "1", "BUFFER_SIZE": "16",
    "ERROR_RATE_PER_LINK": "0", "LINK_DOWN": "0 0 0", "L2_BACK_TO_ZERO": "0", "NIC_TOTAL_PAUSE_TIME": "0",
    "LB_MODE": "0", "ENABLE_PFC": "1", "ENABLE_IRN": "0",
}  # fmt: skip
_SWITCHES = {
    "ENABLE_QCN", "GLOBAL_T", "HAS_WIN", "VAR_WIN", "FAST_REACT", "MULTI_RATE", "ENABLE_PFC", "ENABLE_IRN",
}  # fmt: skip
_NO_NUMBERS = {"MIN_RATE", "DCTCP_RATE_AI", "LINK_DOWN"}  # of the defaults
_MAPS = ("KMIN_MAP", "KMAX_MAP", "PMAX_MAP")
# Read and not needed: outputs, what has no effect on results, and what these simulators themselves do not read.
_WITHOUT_EFFECT = {
    "TRACE_FILE", "TRACE_NODE", "ENABLE_TRACE", "USE_DYNAMIC_PFC_THRESHOLD", "PAUSE_TIME", "DATA_RATE", "LINK_DELAY",
    "L2_CHUNK_SIZE", "ACK_HIGH_PRIO", "PINT_LOG_BASE", "PINT_PROB", "RNG_RUN", "RANDOM_SEED", "LOAD",
    "FLOWGEN_START_TIME", "FLOW_INPUT_FILE",
}  # fmt: skip
# What is watched and written; and parameters of ConWeave, which LB_MODE 9 alone uses.
_WATCHED = re.compile(r"\w+_OUTPUT_FILE|(\w+_)?MON_\w+|(\w+_)?MONITORING_\w+|CONWEAVE_\w+", re.ASCII)
_KNOWN = {
    *_DEFAULTS, *_MAPS, *_WITHOUT_EFFECT, "RP_TIMER", "RATE_AI", "RATE_HAI", "TOPOLOGY_FILE", "FLOW_FILE",
    "FLOWGEN_STOP_TIME",
}  # fmt: skip
# Values with which this engine would do something else than that simulator.
_REFUSED: dict[str, tuple[str, str]] = {
    "RATE_BOUND": ("1", "senders without pacing"),
    "L2_BACK_TO_ZERO": ("0", "receivers that go back to the begin of a chunk"),
    "SAMPLE_FEEDBACK": ("0", "telemetry once a round trip"),
    "CLAMP_TARGET_RATE": ("0", "targets that every cut lowers"),
    "NIC_TOTAL_PAUSE_TIME": ("0", "NICs that stand still"),
}
# Paths of ConWeave's simulator by LB_MODE, and its name for others.
_PATHS: dict[int, dict[str, Any]] = {0: {}, 6: {"load_balancing": "flowlet", "flowlet_gap": "100us"}}
_OTHER_PATHS = {2: "DRILL", 3: "CONGA", 9: "ConWeave"}
_CONWEAVE_WAITS = 10.0  # s for which that simulator goes on after FLOWGEN_STOP_TIME (network-load-balance.cc)
_MOST_MB = 4095  # that simulator's buffers are 32 bits of bytes (switch-mmu.cc)
_OF_SIMAI = ("RATE_MON_FILE", "QP_MON_INTERVAL")  # keys that no other simulator has
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
def read_config(
    path: str | os.PathLike[str],
    *,
    topology: str | os.PathLike[str] | None = None,
    flows: str | os.PathLike[str] | None = None,
) -> SimulatorConfig:
    """Read a ``config.txt``, and the topology and flows that it names.

    These are looked for from the current folder, from the file's own, and from those above it: the simulator itself
    is called from above ``mix/``. Keys of ConWeave's, SimAI's, astra-sim's and PowerTCP's simulators are read too.

    Parameters
    ----------
    path : str or path
    topology, flows : str or path, optional
        In place of those that the file names; SimAI's names no topology.

    Returns
    -------
    SimulatorConfig

    Raises
    ------
    InputError
        If it is none, with all lines that cannot be used; a file that it names is missing; or it asks for what is not
        modelled.
    """
    lines = Lines(path, _EXPECTED)
    found, at, wrong = _keys(lines)
    reader = _Reader(lines.name, _DEFAULTS | found, at)
    wrong += _not_modelled(reader)
    if wrong:
        raise InputError(_together(lines.name, wrong))
    mode = int(reader.number("CC_MODE"))
    fabric = read_topology(reader.file("TOPOLOGY_FILE") if topology is None else topology)
    sent = read_flows(reader.file("FLOW_FILE") if flows is None else flows)
    if not len(sent):
        raise reader.wrong("FLOW_FILE", "the file has no flows; write some, or name another file")
    hosts = {*fabric.hosts}
    for (source, target), where in zip(sent.rows[:, :2].tolist(), sent.where, strict=False):
        if not {source, target} <= hosts:
            alien = next(int(end) for end in (source, target) if end not in hosts)
            raise InputError(f"{where}: there is no host {alien}; name one of the topology's {len(hosts)} hosts")
    loses = reader.number("ERROR_RATE_PER_LINK")
    if loses > 1:
        raise reader.wrong("ERROR_RATE_PER_LINK", f"{loses:g} is no probability; write one from 0 to 1")
    cables = tuple(dataclasses.replace(each, loss=each.loss or loses) for each in fabric.cables)
    fabric = dataclasses.replace(fabric, cables=cables)
    until = min(_stop(reader) - sent.begins, MOST_TIME)  # SimAI's 4e13 s are for ever
    if until <= 0:
        raise reader.wrong("SIMULATOR_STOP_TIME", "is before the first flow starts; write a later one")
    network, words = _network(reader, fabric, sent)
    words = [*fabric.words, *sent.words, *words, *_too_many_pairs(reader)]
    try:
        trips = round_trips(fabric, reader.number("PACKET_PAYLOAD_SIZE"))
        words += _of_each_pair(reader, SCHEMES[mode], trips)
        scheme = scheme_of(reader, SCHEMES[mode], *largest(trips))
        options = {**network, "scheme": scheme, "marking": _marking(reader, mode)}
        resolve(fabric.scenario(sent.rows[:1], **options))
        words += _never_reached(lines.name, at, fabric, options)
    except InputError as error:
        raise reader.placed(error) from None
    return SimulatorConfig(SCHEMES[mode], options, fabric, sent, until, tuple(words))


Wrong = tuple[int, str]  # a line, and what is wrong with it


def _keys(lines: Lines) -> tuple[dict[str, str], dict[str, int], list[Wrong]]:
    """Read values and lines by key, and say what is wrong with all the others."""
    found: dict[str, str] = {}
    at: dict[str, int] = {}
    wrong: list[Wrong] = []
    for words in lines.rows():
        key = words[0]
        comment = next((k for k, word in enumerate(words) if word.startswith(("#", "//"))), len(words))
        if key not in _KNOWN and not _WATCHED.fullmatch(key):
            what = f"{key[:40]!r} is no key known here; "
            what += f"write {key.upper()}" if key.upper() in _KNOWN else "delete the line if it changes no results"
        elif key in found:
            what = f"{key} is there twice; keep one"
        elif comment == 1 and not key.endswith("_FILE"):
            what = f"{key} has no value; write one behind it"
        else:
            what = ""
        if what:
            wrong.append((lines.at, what))
        if key not in found:
            found[key], at[key] = " ".join(words[1:comment]), lines.at
    return found, at, wrong


def _together(name: str, wrong: list[Wrong]) -> str:
    """Say all that is wrong with a file at once; line 0 is the whole of it."""
    if len(wrong) == 1 and wrong[0][0]:
        return f"{name}, line {wrong[0][0]}: {wrong[0][1]}"
    told = "; ".join(f"line {at}: {text}" if at else text for at, text in wrong)
    return f"{name}: {told}"


def _not_modelled(reader: _Reader) -> list[Wrong]:
    """Find all that this engine would do otherwise than that simulator."""
    wrong: list[Wrong] = []

    def check(key: str, problem: Callable[[float], str]) -> None:
        if key not in reader.values_:
            return
        try:
            text = problem(reader.number(key))
        except InputError as error:
            text = str(error).partition(f"{key}: ")[2]
        if text:
            wrong.append((reader.at.get(key, 0), f"{key}: {text}"))

    for key, (value, what) in _REFUSED.items():
        other = f"{what} are not modelled; {key} {value} is, with other results"
        check(key, lambda given, value=value, other=other: "" if given == float(value) else other)
    known = ", ".join(f"{number} ({name})" for number, name in SCHEMES.items())
    check("CC_MODE", lambda given: "" if given in SCHEMES else f"{given:g} is not modelled; write one of {known}")

    def paths(given: float) -> str:
        name = f" ({_OTHER_PATHS[int(given)]})" if given in _OTHER_PATHS else ""
        return f"{given:g}{name} is not modelled; 0 (ECMP) and 6 (LetFlow) are, with other results"

    check("LB_MODE", lambda given: "" if given in _PATHS else paths(given))
    for key in sorted(_SWITCHES):
        check(key, lambda given: "" if given in (0.0, 1.0) else f"{given:g} is neither on nor off; write 1 or 0")
    for key in sorted({*_DEFAULTS, "RP_TIMER"} - _SWITCHES - _NO_NUMBERS - {*_REFUSED, "CC_MODE", "LB_MODE"}):
        check(key, lambda given: "")
    return sorted(wrong)


def _stop(reader: _Reader) -> float:
    """Time at which the simulator stops [s]; ConWeave's goes on after the last flow may have started."""
    if "SIMULATOR_STOP_TIME" not in reader.at and "FLOWGEN_STOP_TIME" in reader.at:
        return reader.number("FLOWGEN_STOP_TIME") + _CONWEAVE_WAITS
    return reader.number("SIMULATOR_STOP_TIME")


def _too_many_pairs(reader: _Reader) -> list[str]:
    """Name maps with more pairs than they say."""
    words = {key: reader.values_[key].split() for key in _MAPS if reader.values_.get(key)}
    return [
        f"line {reader.at[key]}: {key} says {said} pairs, and {len(pairs) // 2 - int(said)} more are left out"
        for key, (said, *pairs) in words.items()
        if said.isdecimal() and len(pairs) > 2 * int(said)
    ]


def _of_each_pair(reader: _Reader, scheme: str, trips: list[tuple[int, int]]) -> list[str]:
    """Refuse a T of each pair of hosts (GLOBAL_T 0) where it is not the same for all, and is used.

    Raises
    ------
    InputError
    """
    if reader.number("GLOBAL_T") == 1:
        return []
    if any(key in reader.at for key in _OF_SIMAI):
        return [f"line {reader.at['GLOBAL_T']}: SimAI reads GLOBAL_T and takes 1, and so is it here"]
    if len(set(trips)) > 1 and (scheme in ("hpcc", "dctcp") or reader.number("HAS_WIN")):
        raise InputError("GLOBAL_T: round trips T of each pair are not modelled; GLOBAL_T 1 is, with other results")
    return []


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
        """Place an error that begins with a key, or with a parameter that comes from one, at its line."""
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
        name, here = self[key], Path(self.name).absolute().parent
        tried = [Path(name), *(above / name for above in (here, *here.parents))]
        there = next((path for path in tried if path.is_file()), None)
        if there is None:
            raise self.wrong(key, f"{name[:100]!r} is not there; looked for it here, in {here} and in those above")
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
        return ns3_rate(str(keys[key]), key)

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
        timer=Seconds(int(value("RP_TIMER")) * 1e-6),
        alpha_timer=Seconds(int(value("ALPHA_RESUME_INTERVAL")) * 1e-6),
        rate_decrease_interval=Seconds(int(value("RATE_DECREASE_INTERVAL")) * 1e-6),
        fast_recovery_steps=value("FAST_RECOVERY_TIMES"),
        **win,
    )


def thresholds(text: str) -> dict[int, float]:
    """Read a map of that simulator from rates [bit/s] to thresholds: how many, then pairs; more are left out.

    Raises
    ------
    ValueError
        If it is none.
    """
    count, *values = text.split()
    if int(count) * 2 > len(values):
        raise ValueError(f"says {count} pairs and has {len(values) / 2:g}")
    values = values[: int(count) * 2]
    return {int(float(rate)): float(value) for rate, value in zip(values[::2], values[1::2], strict=True)}


def _marking(reader: _Reader, mode: int) -> Callable[[Any], RED | None]:
    """Marking of a link by its rate; of schemes that look at marks."""
    if not reader.number("ENABLE_QCN") or SCHEMES[mode] not in ("dcqcn", "dctcp"):
        return lambda rate: None
    maps = {}
    for key in _MAPS:
        text = reader[key]
        try:
            maps[key] = thresholds(text)
        except ValueError as error:
            raise reader.wrong(key, f"is no map ({error}); write how many, then rates and thresholds") from None

    def marking(rate: Any) -> RED:
        bits = round(float(quantity(rate, RATE, "rate")) * 8)
        for key, known in maps.items():
            if bits not in known:
                raise reader.wrong(key, f"has no threshold for links of {bits / 1e9:g} Gb/s; add one, and count it")
        kmin, kmax, pmax = (maps[key][bits] for key in _MAPS)
        if not 0 <= pmax <= 1:
            raise reader.wrong("PMAX_MAP", f"{pmax:g} for links of {bits / 1e9:g} Gb/s is no share; write 0.2 for 20 %")
        if kmin > kmax:
            raise reader.wrong("KMIN_MAP", f"{kmin:g} KB for links of {bits / 1e9:g} Gb/s exceeds KMAX_MAP's {kmax:g}")
        return RED(kmin * 1e3, kmax * 1e3, pmax, mark_on="departure")

    return marking


def _never_reached(name: str, at: Mapping[str, int], topology: Topology, options: Mapping[str, Any]) -> list[str]:
    """Name thresholds that no queue reaches, as where bytes are written for KB."""
    found = []
    for rate in sorted({float(cable.rate) for cable in topology.cables}):
        red = options["marking"](Rate(rate))
        if red is not None and float(red.kmin) >= float(options["buffer"]):
            found.append(
                f"{name}, line {at['KMIN_MAP']}: KMIN_MAP: {float(red.kmin) / 1e3:g} KB for links of {rate * 8e-9:g} "
                f"Gb/s is more than BUFFER_SIZE, {float(options['buffer']) / 2**20:g} MB: nothing is marked"
            )
    return found


def _network(reader: _Reader, topology: Topology, flows: FlowList) -> tuple[dict[str, Any], list[str]]:
    """Return the fields of the scenario, and what is not as in the file."""
    network: dict[str, Any] = {
        **SIMULATOR,
        "packet_size": reader.number("PACKET_PAYLOAD_SIZE"),
        "buffer": reader.number("BUFFER_SIZE") * 2**20,
        "pfc": SIMULATOR["pfc"] if reader.number("ENABLE_PFC") else None,
        "ack_interval": max(1.0, reader.number("L2_ACK_INTERVAL")),
        **_PATHS[int(reader.number("LB_MODE"))],
    }
    words = []
    if reader.number("BUFFER_SIZE") > _MOST_MB:
        raise reader.wrong(
            "BUFFER_SIZE", f"is in MB, up to the {_MOST_MB} that 32 bits of bytes hold; write 16 for 16 MB"
        )
    if reader.number("ENABLE_IRN"):
        network |= {"loss_recovery": "irn"}
    elif any(cable.loss > 0 for cable in topology.cables) or network["pfc"] is None:
        # That simulator goes back on a NACK, which it repeats, and has no timeout.
        network |= {"loss_recovery": "gbn", "nack_interval": "500us"}
        words.append("senders also go back after a timeout, without which a lost last packet is never sent again")
    down = reader["LINK_DOWN"].split()
    if len(down) != 3 or not all(word.replace(".", "", 1).isdigit() for word in down):
        raise reader.wrong("LINK_DOWN", f"{reader['LINK_DOWN'][:30]!r} is no time [us] and two nodes; write 0 0 0")
    if float(down[0]) > 0:
        a, b = int(float(down[1])), int(float(down[2]))
        ends = f"{a}->{b}", f"{b}->{a}"
        names = [name for name in link_names(topology.cables) if name[0].partition("#")[0] in ends]
        if not names:
            raise reader.wrong("LINK_DOWN", f"no cable is between {a} and {b}; name two nodes that have one")
        at = 2.0 + float(down[0]) * 1e-6 - flows.begins  # counted from 2 s of that simulator's time
        if at < 0:
            raise reader.wrong("LINK_DOWN", "is before the first flow starts; write a later one")
        first = ends[0] if a in set(topology.switches) else ends[1]
        # Of several cables the last is that simulator's only one.
        network["failures"] = (Failure(next(name for name in names[-1] if name.partition("#")[0] == first), at),)
    if len(set(flows.priority.tolist())) > 1:
        words.append("all flows are in one class, whatever their priority group")
    return network, words


def largest(trips: list[tuple[int, int]]) -> tuple[float, float]:
    """Return T and the window [s, bytes] of that simulator: the largest of all pairs of hosts."""
    longest, most = (max(column, default=0) for column in zip(*trips, strict=True)) if trips else (0, 0)
    return longest * 1e-9, float(most)


def round_trips(topology: Topology, payload: float) -> list[tuple[int, int]]:
    """Return round trips [ns] and windows [bytes] between pairs of hosts, two of those that are alike for all.

    A round trip is twice the delays, and a payload once onto each link of the way there, in whole nanoseconds; a
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
    found = []
    for source in (each[0] for each in kinds.values()):
        trip, slowest = _from_host(source, next_to, len(topology.hosts))
        found += [
            (trip[other], trip[other] * slowest[other] // (8 * 10**9))
            for other in ends
            if other in trip and other != source
        ]
    return found


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
