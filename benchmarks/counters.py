"""Name the fault by counters: twelve faults and none, in packets: ``python -m benchmarks.counters``.

Eight hosts at one switch of 100 Gb/s send to each other at three loads, with sizes of three workloads and incasts. Each
run is written as operators copy it (`show` outputs of SONiC, ethtool, rdma statistic), read again and judged with the
file that the switch should have. Asked for: four of five causes named first, by their host where they
have one, and of twenty healthy runs at most one blamed of anything bad or doubtful. The workload is told; the incasts
are not.

``--write FOLDER``: the counters of the first fault with the sample's own settings, as examples/leaf-100g has them.
``--spread``: marks over those that `fluidcc.operators.counted` expects, of healthy switches and of other thresholds.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import json
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.builders.workloads import incasts
from fluidcc.engines.run import simulate
from fluidcc.operators import counted, dcqcn_of, read_nic, symptoms
from fluidcc.operators.config_db import ConfigDB
from fluidcc.operators.counted import Conditions, Counted, judge
from fluidcc.operators.counters import read_counters
from fluidcc.operators.ports import PortGroup, read_ports
from fluidcc.scenario.frames import IN_BUFFER
from fluidcc.scenario.model import PFC, RED, Flow, Link, Scenario, Storm, TrafficClass
from fluidcc.scenario.model import resolve as resolve_scenario
from fluidcc.scenario.parameters import resolve

SAMPLE = Path(__file__).parents[1] / "examples" / "leaf-100g"
KMIN, KMAX, PERCENT = 100_000, 400_000, 20
XOFF = 150_000  # bytes: incasts of this benchmark pause their senders
HOSTS, UNTIL, FIRST_READ = 8, 8e-3, 2e-3  # s
PAYLOAD, RTT, LINKS = 4096.0, 4e-6, 4
LOADS, WORKLOADS = (0.3, 0.5, 0.8), ("web-search", "hadoop", "alibaba-storage")
_QUANTUM = 65535 * 512 / 8  # bytes' time that a PAUSE frame stops at most
_MTU = PAYLOAD + IN_BUFFER


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault: what it changes, what is to be found, and where.

    Parameters
    ----------
    name : str
    what : str
        The finding.
    who : str
        Host that the finding names; empty if it names none.
    change : callable
        Of a scenario, returns the faulty one.
    deaf, silent, stray : str
        Hosts that ignore CNPs, that send none, that send by priority 0.
    recover : bool
        Whether packets are lost, and sent again.
    """

    name: str
    what: str
    who: str
    change: Callable[[Scenario], Scenario]
    deaf: str = ""
    silent: str = ""
    stray: str = ""


def _marking(change: Callable[[RED], RED | None]) -> Callable[[Scenario], Scenario]:
    def changed(scenario: Scenario) -> Scenario:
        links = [dataclasses.replace(each, marking=change(each.marking)) for each in scenario.links if each.marking]
        return dataclasses.replace(scenario, links=tuple(links))

    return changed


def _scaled(factor: float) -> Callable[[Scenario], Scenario]:
    return _marking(lambda red: RED(factor * red.kmin, factor * red.kmax, red.pmax))


def _flows(which: Callable[[Flow], bool], **scheme: Any) -> Callable[[Scenario], Scenario]:
    """Give flows other parameters; ``min_rate="line"`` keeps them at line rate."""

    def changed(flow: Flow) -> Flow:
        values = {name: flow.line_rate if value == "line" else value for name, value in scheme.items()}
        return dataclasses.replace(flow, scheme=dataclasses.replace(flow.scheme, **values))

    def all_of(scenario: Scenario) -> Scenario:
        return dataclasses.replace(scenario, flows=tuple(changed(f) if which(f) else f for f in scenario.flows))

    return all_of


def _stray(scenario: Scenario) -> Scenario:
    scenario = _flows(lambda flow: flow.source == "H2", min_rate="line")(scenario)
    flows = [dataclasses.replace(f, traffic_class=int(f.source == "H2")) for f in scenario.flows]
    classes = (TrafficClass(), TrafficClass(lossless=False))
    return dataclasses.replace(scenario, flows=tuple(flows), classes=classes, loss_recovery="gbn")


def _slow_receiver(scenario: Scenario) -> Scenario:
    """A NIC whose host takes a fifth of what its link brings, and which pauses the switch."""
    at = next(i for i, link in enumerate(scenario.links) if link.name == "T1->H0")
    nic = dataclasses.replace(scenario.links[at], target="N0")
    bus = Link(rate=nic.rate / 5, delay=nic.delay, name="N0->H0", source="N0", target="H0")
    links = (*scenario.links[:at], nic, *scenario.links[at + 1 :], bus)
    flows = [dataclasses.replace(f, path=(*f.path, len(links) - 1)) if f.path[-1] == at else f for f in scenario.flows]
    return dataclasses.replace(scenario, links=links, flows=tuple(flows))


def _lossy(name: str, loss: float) -> Callable[[Scenario], Scenario]:
    def changed(scenario: Scenario) -> Scenario:
        links = [dataclasses.replace(each, loss=loss if each.name == name else 0.0) for each in scenario.links]
        return dataclasses.replace(scenario, links=tuple(links), loss_recovery="gbn")

    return changed


def _pfc(pfc: PFC | None, buffer: float) -> Callable[[Scenario], Scenario]:
    return lambda scenario: dataclasses.replace(scenario, pfc=pfc, buffer=buffer, loss_recovery="gbn")


FAULTS = (
    Fault("a NIC without reaction point", symptoms.IGNORES, "H1",
          _flows(lambda flow: flow.source == "H1", min_rate="line"), deaf="H1"),
    Fault("a NIC without notification point", symptoms.SILENT, "H4",
          _flows(lambda flow: flow.target == "H4", min_rate="line"), silent="H4"),
    Fault("CNPs every 500 us at one NIC", symptoms.RARE, "H4",
          _flows(lambda flow: flow.target == "H4", cnp_interval=500e-6)),
    Fault("a host with another DSCP", symptoms.PRIORITY, "H2", _stray, stray="H2"),
    Fault("no marking", symptoms.UNMARKED, "", _marking(lambda red: None)),
    Fault("thresholds of 400 Gb/s", symptoms.HIGHER, "", _scaled(4.0)),
    Fault("thresholds of 25 Gb/s", symptoms.SOONER, "", _scaled(0.25)),
    Fault("a PFC storm", symptoms.STORM, "H5",
          lambda scenario: dataclasses.replace(scenario, storms=(Storm("T1->H5", at=0.1 * UNTIL),))),
    Fault("a slow receiver", symptoms.SLOW, "H0", _slow_receiver),
    Fault("no PFC at the switch", symptoms.NOBODY, "", _pfc(None, 500_000)),
    Fault("headroom of a packet", symptoms.HEADROOM, "", _pfc(PFC(xoff=XOFF, headroom=_MTU), 16e6)),
    Fault("a bad cable", symptoms.WIRE, "H3", _lossy("T1->H3", 1e-3)),
)  # fmt: skip
HEALTHY = Fault("none", "", "", lambda scenario: scenario)


def config() -> dict[str, Any]:
    """Return the sample with thresholds that suit it, and PAUSE at 150 KB of a port."""
    made = copy.deepcopy(json.loads((SAMPLE / "config_db.json").read_text()))
    for profile in made["WRED_PROFILE"].values():
        for colour in ("green", "yellow", "red"):
            profile[f"{colour}_min_threshold"], profile[f"{colour}_max_threshold"] = str(KMIN), str(KMAX)
            profile[f"{colour}_drop_probability"] = str(PERCENT)
    for name, profile in made["BUFFER_PROFILE"].items():
        if name.startswith("pg_lossless"):
            profile.pop("dynamic_th")
            profile["static_th"] = str(XOFF)
    return made


def healthy(group: PortGroup, scheme: Any, load: float, workload: str, seed: int, incast: bool) -> Scenario:
    """Make a switch that is set as its file says, with incasts of 6 hosts on top where asked for."""
    made = counted.star(group.switch, scheme, PAYLOAD, RTT / LINKS, load, HOSTS, workload, UNTIL, seed=seed)
    if not incast:
        return made
    rows = incasts(HOSTS, load=0.1, until=UNTIL, senders=6, size="256KB", rate=group.switch.rate, seed=seed)
    like = {(flow.source, flow.target): flow for flow in made.flows}
    extra = [
        dataclasses.replace(like[pair], start=start, size=size)
        for source, target, start, size in rows.tolist()
        if (pair := (f"H{source:.0f}", f"H{target:.0f}")) in like
    ]
    return dataclasses.replace(made, flows=(*made.flows, *extra))


# -- counting a run, and writing it as devices print it ------------------------------------------------------


def count(scenario: Scenario, fault: Fault, seed: int) -> list[dict[str, dict[str, float]]]:
    """Run a scenario in packets and count as devices do, until the first reading and until the end."""
    scenario = resolve_scenario(scenario)
    trace = simulate(scenario, UNTIL, engine="packet", seed=seed, log=True, sample_interval=UNTIL)
    log = {name: trace[f"event_{name}"].values for name in ("time", "what", "port", "flow", "kind", "value", "queue")}
    return [_counts(scenario, log, fault, until) for until in (FIRST_READ, UNTIL)]


def _counts(scenario: Scenario, log: dict[str, Any], fault: Fault, until: float) -> dict[str, dict[str, float]]:
    """Return counters by device: ``T1 H3`` is the switch's port to it, ``H3`` its NIC."""
    early = log["time"] <= until
    what, port, flow, kind = (log[name][early] for name in ("what", "port", "flow", "kind"))
    value = log["value"][early]
    sources = np.array([each.source for each in scenario.flows] + [""])
    targets = np.array([each.target for each in scenario.flows] + [""])
    source, target, data = sources[flow], targets[flow], kind == "data"
    stray = (source == fault.stray) & (fault.stray != "")
    rate = scenario.flows[0].line_rate
    since = 0.0 if until < UNTIL else FIRST_READ  # watermarks are cleared at the first reading
    joined = (what == "enqueue") & (log["time"][early] > since)
    length = log["queue"][early]
    ends = [(link.source, link.target) for link in scenario.links if link.loss > 0]
    lossy = [f"{one} -> {other}" for pair in ends for one, other in (pair, pair[::-1])]
    dropped = (what == "drop") & data & ~np.isin(port, lossy)
    found: dict[str, dict[str, float]] = {}

    def number(chosen: Any) -> float:
        return float(np.count_nonzero(chosen))

    for host in (f"H{k}" for k in range(HOSTS)):
        behind = f"N{host[1:]}" if any(link.target == f"N{host[1:]}" for link in scenario.links) else host
        out, back = port == f"T1 -> {behind}", port == f"{host} -> T1"
        jammed = sum(max(until - storm.at, 0.0) for storm in scenario.storms if storm.link == f"T1->{host}")
        frames = np.ceil(jammed * rate / _QUANTUM)
        pauses = number((what == "pause") & out) + frames  # sent by the NIC
        sent = number((what == "transmit") & out & data & ~stray)
        marked = number((what == "mark") & out & ~stray)
        came = (what == "receive") & data & (target == host)
        told = (what == "cnp") & (target != fault.silent) & ~stray
        found[f"T1 {host}"] = {
            "sent": sent, "marked": marked, "heard": pauses,
            "longest": float(np.max(length[joined & out], initial=0.0)),
            "stray": number((what == "transmit") & out & data & stray),
            "pauses": number((what == "pause") & back),
            "drops": number(dropped & out & ~stray),
            "ingress": number(dropped & (source == host) & ~stray),
        }  # fmt: skip
        left = number((what == "transmit") & (port == f"{host} -> T1") & data) or number(
            (what == "send") & data & (source == host)
        )
        mine = host == fault.stray
        found[host] = {
            "sent": 0.0 if mine else left, "sent_0": left if mine else 0.0,
            "came": number(came & ~stray), "came_0": number(came & stray),
            "marked": number(came & (value > 0) & ~stray),
            "cnps": number(told & (target == host)),
            "handled": 0.0 if host == fault.deaf else number(told & (source == host)),
            "ignored": number(told & (source == host)) if host == fault.deaf else 0.0,
            "gaps": number((what == "drop") & data & (target == host)),  # each loss leaves one
            "errors": number((what == "drop") & data & (target == host) & np.isin(port, lossy) & out),
            "pauses": pauses, "paused": number((what == "pause") & back), "pausing": jammed,
        }  # fmt: skip
    return found


def write(counts: dict[str, dict[str, float]], folder: Path, ports: tuple[str, ...]) -> list[Path]:
    """Write counters as SONiC's `show` commands, ethtool and rdma print them."""
    named = {f"T1 H{k}": name for k, name in zip(range(HOSTS), ports, strict=False)}
    rows = [(name, counts[port]) for port, name in named.items()]

    def table(command: str, title: str, head: list[str], body: list[list[str]]) -> str:
        wide = [max(len(row[i]) for row in [head, *body]) for i in range(len(head))]
        lines = ["  ".join(text.rjust(w) for text, w in zip(row, wide, strict=True)) for row in [head, *body]]
        lines.insert(1, "  ".join("-" * w for w in wide))
        return f"admin@leaf1:~$ {command}\n{title}" + "\n".join(lines) + "\n"

    def each(value: float, at: int = 3) -> list[str]:
        return [f"{value:,.0f}" if i == at else "0" for i in range(8)]

    pfc = [f"PFC{i}" for i in range(8)]
    text = table("show pfc counters", "", ["Port Rx", *pfc], [[n, *each(c["heard"])] for n, c in rows])
    text += "\n" + "\n".join(
        table("", "", ["Port Tx", *pfc], [[n, *each(c["pauses"])] for n, c in rows]).split("\n")[1:]
    )
    body = [
        [name, queue, f"{packets:,.0f}", f"{packets * _MTU:,.0f}", f"{drops:,.0f}", f"{drops * _MTU:,.0f}"]
        for name, c in rows
        for queue, packets, drops in (("UC0", c["stray"], 0.0), ("UC3", c["sent"], c["drops"]))
    ]
    head = ["Port", "TxQ", "Counter/pkts", "Counter/bytes", "Drop/pkts", "Drop/bytes"]
    text += table("show queue counters", "", head, body)
    head = ["Port", "TxQ", "WredDrp/pkts", "WredDrp/bytes", "EcnMarked/pkts", "EcnMarked/bytes"]
    body = [[n, "UC3", "0", "0", f"{c['marked']:,.0f}", f"{c['marked'] * _MTU:,.0f}"] for n, c in rows]
    text += table("show queue wredcounters", "", head, body)
    title = "Egress shared pool occupancy per unicast queue:\n"
    head = ["Port", *(f"UC{i}" for i in range(8))]
    longest = [[n, *each(c["longest"])] for n, c in rows]
    text += table("show queue watermark unicast", title, head, [[v.replace(",", "") for v in row] for row in longest])
    head = ["Port", *(f"PG{i}" for i in range(8))]
    body = [[n, *(v.replace(",", "") for v in each(c["ingress"]))] for n, c in rows]
    text += table("show priority-group drop counters", "Ingress PG dropped packets:\n", head, body)
    files = [folder / "leaf1.txt"]
    files[0].write_text(text)
    for host in (f"H{k}" for k in range(HOSTS)):
        c = counts[host]
        lines = {
            "tx_prio0_packets": c["sent_0"], "tx_prio0_bytes": c["sent_0"] * _MTU, "rx_prio0_bytes": c["came_0"] * _MTU,
            "tx_prio3_packets": c["sent"], "tx_prio3_bytes": c["sent"] * _MTU, "rx_prio3_packets": c["came"],
            "rx_prio3_bytes": c["came"] * _MTU, "tx_prio3_pause": c["pauses"], "rx_prio3_pause": c["paused"],
            "rx_crc_errors_phy": c["errors"],
        }  # fmt: skip
        text = f"root@{host}:~# ethtool -S eth0\nNIC statistics:\n"
        text += "".join(f"     {name}: {value:.0f}\n" for name, value in lines.items())
        rdma = {
            "out_of_sequence": c["gaps"], "rp_cnp_ignored": c["ignored"], "rp_cnp_handled": c["handled"],
            "np_ecn_marked_roce_packets": c["marked"], "np_cnp_sent": c["cnps"],
        }  # fmt: skip
        text += f"root@{host}:~# rdma statistic show link mlx5_0/1\nlink mlx5_0/1 "
        text += " ".join(f"{name} {value:.0f}" for name, value in rdma.items()) + "\n"
        files.append(folder / f"{host}.txt")
        files[-1].write_text(text)
    return files


def _written(scenario: Scenario, fault: Fault, group: PortGroup, folder: Path, seed: int) -> list[Path]:
    """Write both readings of a run, each into a folder of its own."""
    folders = [folder / "before", folder / "after"]
    for made, counts in zip(folders, count(scenario, fault, seed), strict=True):
        made.mkdir(parents=True, exist_ok=True)
        write(counts, made, group.names)
    return folders


# -- judging ------------------------------------------------------------------------------------------------


def judged(
    scenario: Scenario, fault: Fault, group: PortGroup, scheme: Any, folder: Path, seed: int, workload: str
) -> Counted:
    """Run, write, read and judge."""
    before, after = (read_counters([each]) for each in _written(fault.change(scenario), fault, group, folder, seed))
    given = Conditions(scheme, [PAYLOAD], RTT / LINKS, HOSTS, UNTIL - FIRST_READ, workload)
    return judge(after.since(before), [group], ConfigDB.all(group.switch.source), given)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--spread", action="store_true", help="marks per byte of queue instead")
    parser.add_argument("--only", default="", help="faults whose name has this; - for healthy ones alone")
    parser.add_argument("--write", type=Path, default=None, metavar="FOLDER", help="counters of a fault instead")
    options = parser.parse_args()
    nic = SAMPLE / "nic.txt"
    scheme = resolve(dcqcn_of(read_nic(nic))[0])
    if options.write is not None:
        [group, *_] = read_ports(SAMPLE / "config_db.json")[0]
        scenario = FAULTS[0].change(healthy(group, scheme, 0.5, "web-search", 1, True))
        _written(scenario, FAULTS[0], group, options.write, 1)
        return
    with tempfile.TemporaryDirectory() as made:
        file = Path(made) / "config_db.json"
        file.write_text(json.dumps(config()))
        [group, *_] = read_ports(file)[0]
        if options.spread:
            _spread(group, scheme)
        else:
            _all(group, scheme, Path(made), options.only)


def _all(group: PortGroup, scheme: Any, folder: Path, only: str) -> None:
    faults = [fault for fault in FAULTS if only in fault.name]
    jobs = [(fault, load, "web-search", 10 + i, True) for fault in faults for i, load in enumerate(LOADS)]
    workloads = WORKLOADS
    if not only or only == "-":
        jobs += [(HEALTHY, LOADS[i % 3], workloads[i // 3 % 3], 100 + i, i % 2 == 0) for i in range(20)]

    def one(numbered: tuple[int, Any]) -> Counted:
        at, (fault, load, workload, seed, incast) = numbered
        scenario = healthy(group, scheme, load, workload, seed, incast)
        return judged(scenario, fault, group, scheme, folder / str(at), seed, workload)

    began = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(one, enumerate(jobs)))
    print("| fault | load | workload | named first | all findings |\n|---|---|---|---|---|")
    right: dict[str, int] = {}
    blamed = 0
    for (fault, load, workload, _, _), each in zip(jobs, found, strict=True):
        bad = [finding for finding in each.findings if finding.severity != "ok"]
        first = bad[0] if bad else None
        hit = first is not None and first.what == fault.what and (not fault.who or _names(fault, first.why, group))
        if fault is HEALTHY:
            blamed += bool(bad)
        else:
            right[fault.name] = right.get(fault.name, 0) + hit
        said = "; ".join(f"{finding.what}{'' if hit else ': ' + finding.why}" for finding in bad)
        print(f"| {fault.name} | {load:.0%} | {workload} | {'yes' if hit else 'no'} | {said} |")
    print(
        f"named at all loads: {sum(n == len(LOADS) for n in right.values())} of {len(right)}; at two: "
        f"{sum(n == 2 for n in right.values())}; healthy ones blamed: {blamed}; {time.perf_counter() - began:.0f} s"
    )


def _names(fault: Fault, why: str, group: PortGroup) -> bool:
    return fault.who in why or group.names[int(fault.who[1:])] + " " in why


def _spread(group: PortGroup, scheme: Any) -> None:
    """Print marks over what `marks` expects, with incasts, other seeds, twice the time, and other thresholds."""
    port = group.switch
    print("| thresholds | load | marks over the expected: least, median, largest |\n|---|---|---|")
    for scale in (0.25, 1.0, 4.0):
        for load in LOADS:
            found = []
            for workload in WORKLOADS:
                at = counted.model(port, scheme, PAYLOAD, RTT / LINKS, HOSTS, workload, load, 1.0)
                for seed, incast in ((11, False), (12, True), (13, False), (14, True)):
                    made = _scaled(scale)(healthy(group, scheme, load, workload, seed, incast))
                    found.append(counted.share(counted.run(made, UNTIL, HOSTS, seed)) / counted.share(at))
            low, middle, high = np.percentile(found, [0, 50, 100])
            print(f"| {scale:g} | {load:.0%} | {low:.2f}, {middle:.2f}, {high:.2f} |", flush=True)


if __name__ == "__main__":
    main()
