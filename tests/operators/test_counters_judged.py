"""What counters show: each rule by hand, on both sides of its bound, and what must not be blamed."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fluidcc.operators import dcqcn_of, marks, read_nic, symptoms
from fluidcc.operators.counted import judge
from fluidcc.operators.counters.model import Counters, NicCounters, PortCounters
from fluidcc.operators.finding import Finding
from fluidcc.operators.marks import Marked
from fluidcc.operators.ports import PortGroup, read_ports
from fluidcc.operators.symptoms import Nics, Queue
from fluidcc.scenario.parameters import resolve

SAMPLE = Path(__file__).parents[2] / "examples" / "leaf-100g"
PACKET, INTERVAL, RATE = 4158.0, 4e-6, 12.5e9
PORT = dataclasses.replace(
    read_ports(SAMPLE / "config_db.json")[0][0].switch, kmin=100e3, kmax=400e3, pmax=0.2, mtu=PACKET
)
HEALTHY = {
    "sent_packets": 1e6, "sent_bytes": 4e9, "marked_packets": 2e4, "watermark_bytes": 300e3, "dropped_packets": 0.0,
    "pauses_sent": 0.0, "pauses_received": 0.0,
}  # fmt: skip
TALKS = {"cnps_sent": 5e3, "cnps_handled": 5e3, "cnps_ignored": 0.0, "marked_packets": 2e4, "out_of_sequence": 0.0}
OF_PRIORITY = {"sent_bytes": 4e9, "received_bytes": 4e9, "pauses_sent": 0.0, "pauses_received": 0.0}


def queues(*changes: Mapping[str, float | None], others: int = 3, port: Any = PORT) -> list[Queue]:
    """Ports of which the first ones count otherwise; None: not read."""
    found = []
    for i, change in enumerate([*changes, *[{}] * others]):
        values = {name: value for name, value in {**HEALTHY, **change}.items() if value is not None}
        found.append(Queue(f"Ethernet{4 * i}", port, PortCounters("leaf1", f"Ethernet{4 * i}", {}, {3: values})))
    return found


def nics(*changes: Mapping[str, float | None], others: int = 3, **more: Mapping[int, Mapping[str, float]]) -> Nics:
    found = []
    for i, change in enumerate([*changes, *[{}] * others]):
        values: dict[str, float] = {**TALKS, **{k: v for k, v in change.items() if k in TALKS and v is not None}}
        of = {**OF_PRIORITY, **{k: v for k, v in change.items() if k not in TALKS and v is not None}}
        priorities = {3: of, **(more.get(f"h{i}") or {})}
        gone = [name for name, value in change.items() if value is None]
        kept = {name: value for name, value in values.items() if name not in gone}
        found.append(NicCounters(f"h{i}", kept, priorities))
    return Nics(tuple(found), (3,), INTERVAL, RATE, PACKET)


def whats(found: list[Finding]) -> list[str]:
    return [each.what for each in found]


def test_a_healthy_fabric_is_not_blamed() -> None:
    assert symptoms.symptoms(queues(), nics(), 60.0) == []


@pytest.mark.parametrize(
    ("port", "host", "seconds", "expected", "who"),
    [
        # A port that is paused and sends next to nothing; the limit is a tenth of what the others send.
        ({"pauses_received": 9.0, "sent_bytes": 3e8}, {"pauses_sent": 9.0}, None, symptoms.STORM, "h0"),
        ({"pauses_received": 9.0, "sent_bytes": 5e8}, {"pauses_sent": 9.0}, None, symptoms.SLOW, "h0"),
        # A NIC that counts the time in which it pauses.
        ({"pauses_received": 9.0}, {"pauses_sent": 9.0, "pausing_s": 55.0}, 60.0, symptoms.STORM, "h0"),
        ({"pauses_received": 9.0}, {"pauses_sent": 9.0, "pausing_s": 50.0}, 60.0, symptoms.SLOW, "h0"),
        # Without NICs' counters the port is named.
        ({"pauses_received": 9.0}, {}, None, symptoms.SLOW, "Ethernet0"),
        # Losses: without any PAUSE, with PAUSEs that NICs do not count, with PAUSEs that they count.
        ({"dropped_packets": 5.0}, {}, None, symptoms.NOBODY, "Ethernet0"),
        ({"ingress_dropped_packets": 5.0}, {}, None, symptoms.NOBODY, "Ethernet0"),
        ({"dropped_packets": 5.0, "pauses_sent": 7.0}, {}, None, symptoms.UNHEEDED, "Ethernet0"),
        ({"dropped_packets": 5.0, "pauses_sent": 7.0}, {"pauses_received": 7.0}, None, symptoms.HEADROOM, "49.15KB"),
        # 5 packets in the ramp's square and 24 beyond Kmax are marked at least: (400-100)/2 * 0.2 = 30 KB of 130 KB.
        ({"watermark_bytes": 500e3, "marked_packets": 0.0}, {}, None, symptoms.HIGHER, "Ethernet0"),
        # With a queue that never reached Kmin nothing can be marked.
        ({"watermark_bytes": 90e3, "marked_packets": 50.0}, {}, None, symptoms.SOONER, "Ethernet0"),
        # A NIC that ignores CNPs, by its own word or by its share of the bytes.
        ({}, {"cnps_ignored": 5001.0}, None, symptoms.IGNORES, "h0"),
        ({}, {"cnps_handled": 99.0}, None, symptoms.IGNORES, "h0"),
        ({}, {"cnps_sent": 0.0}, None, symptoms.SILENT, "h0"),
        # 12.5 GB/s for 4 us are 12 packets: of 20 000 marked ones 1/13 need CNPs of their own.
        ({}, {"cnps_sent": 1300.0}, None, symptoms.RARE, "h0"),
        ({}, {"cnps_sent": 100.0, "marked_packets": 200.0}, None, "", ""),
        ({}, {"out_of_sequence": 3.0}, None, symptoms.WIRE, "h0"),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_place(
    port: dict[str, float], host: dict[str, float], seconds: float | None, expected: str, who: str
) -> None:
    found = symptoms.symptoms(queues(port), nics(host), seconds)
    if not expected:
        assert [each for each in whats(found) if each in (symptoms.RARE, symptoms.SILENT)] == []
        return
    assert whats(found)[0] == expected
    assert who in found[0].why
    assert found[0].suggest


@pytest.mark.parametrize(
    ("port", "host"),
    [
        ({"watermark_bytes": 500e3, "marked_packets": 15.0}, {}),  # 30 at least on average, less 4 deviations
        ({"watermark_bytes": 500e3, "marked_packets": 0.0, "pauses_received": 0.0, "sent_packets": None}, None),
        ({}, {"cnps_handled": 101.0}),
        ({}, {"cnps_sent": 1500.0}),
        ({}, {"cnps_sent": 0.0, "marked_packets": 99.0}),  # too few to say
    ],
)
def test_what_chance_may_do_is_not_blamed(port: dict[str, float | None], host: dict[str, float] | None) -> None:
    found = whats(symptoms.symptoms(queues(port), nics(host or {}), None))
    rules = {symptoms.IGNORES, symptoms.RARE, symptoms.SILENT}
    if host is None:  # marks and queue are enough, packets sent are not asked for
        assert found == [symptoms.HIGHER]
    else:
        assert not rules & {*found}
        assert symptoms.HIGHER not in found


def test_of_a_queue_that_was_paused_marks_say_nothing() -> None:
    long = {"watermark_bytes": 5e6, "marked_packets": 0.0, "pauses_received": 9.0, "sent_bytes": 1e8}
    assert whats(symptoms.symptoms(queues(long), nics({"pauses_sent": 9.0}))) == [symptoms.STORM]


def test_without_any_mark_ecn_is_off() -> None:
    unmarked = {"watermark_bytes": 2e6, "marked_packets": 0.0}
    found = symptoms.symptoms(queues(unmarked, unmarked, others=0), nics({"marked_packets": 0.0, "cnps_sent": 0.0}))
    assert whats(found)[0] == symptoms.UNMARKED
    off = dataclasses.replace(PORT, ecn=False)
    assert symptoms.UNMARKED not in whats(symptoms.symptoms(queues(unmarked, port=off), nics()))


def test_lossy_queues_may_lose() -> None:
    lossy = dataclasses.replace(PORT, lossless=False)
    assert symptoms.symptoms(queues({"dropped_packets": 5.0}, port=lossy), nics()) == []


@pytest.mark.parametrize(("share", "blamed"), [(0.49, True), (0.51, False)])
def test_a_host_that_sends_by_another_priority(share: float, blamed: bool) -> None:
    elsewhere = {"sent_bytes": share * 4e9}
    found = symptoms.symptoms(queues(), nics(elsewhere, h0={0: {"sent_bytes": (1 - share) * 4e9}}))
    assert (symptoms.PRIORITY in whats(found)) is blamed
    if blamed:
        assert "h0 sends 49% of its bytes by priority 3, most by 0" in found[0].why
        assert found[0].severity == "warn"  # it may be no RoCE


def test_an_idle_host_is_not_blamed_for_its_priority() -> None:
    assert symptoms.PRIORITY not in whats(
        symptoms.symptoms(queues(), nics({"sent_bytes": 0.0}, h0={0: {"sent_bytes": 1e6}}))
    )


def test_a_switch_alone_shows_that_roce_goes_elsewhere() -> None:
    port = PortCounters("leaf1", "Ethernet0", {}, {3: {"sent_bytes": 0.0}, 1: {"sent_bytes": 5e9}})
    none = Nics((), (3,), INTERVAL, RATE, PACKET)
    assert whats(symptoms.symptoms([Queue("Ethernet0", PORT, port)], none)) == [symptoms.PRIORITY]


def test_cnps_are_missed_only_where_all_nics_are_there() -> None:
    fewer = [{"cnps_handled": 2e3}] * 4
    assert symptoms.LOST in whats(symptoms.symptoms([], nics(*fewer, others=0)))
    away = [*fewer[1:], {"cnps_handled": 2e3, "received_bytes": 2e9}]
    assert symptoms.LOST not in whats(symptoms.symptoms([], nics(*away, others=0)))


def test_losses_that_a_switch_counts_are_not_a_wires() -> None:
    found = whats(symptoms.symptoms(queues({"dropped_packets": 3.0}), nics({"out_of_sequence": 3.0})))
    assert found == [symptoms.NOBODY]


def test_the_bounds_of_marks_hold_for_queues_that_are_drawn() -> None:
    """An M/D/1-like queue with RED, packet by packet, in plain Python: neither bound is passed beyond chance."""
    kmin, kmax, pmax, packet = 20e3, 60e3, 0.3, 1000.0
    for seed in range(30):
        draw = random.Random(seed)
        queue = longest = 0.0
        sent = marked = 0
        for _ in range(4000):
            queue = max(queue - draw.expovariate(1.0) * packet * draw.choice((0.5, 1.5)), 0.0)
            if queue > kmax or (queue > kmin and draw.random() < pmax * (queue - kmin) / (kmax - kmin)):
                marked += 1
            queue += packet
            sent += 1
            longest = max(longest, queue)
        least = symptoms.ramp_bound(longest, kmin, kmax, pmax, packet)
        most = sent * symptoms.highest_share(longest, kmin, kmax, pmax)
        assert least - 4 * least**0.5 <= marked <= most + 4 * most**0.5 + 4
    assert symptoms.ramp_bound(80e3, kmin, kmax, pmax, packet) == pytest.approx(6 + 20 - 1)
    assert symptoms.ramp_bound(40e3, kmin, kmax, pmax, packet) == pytest.approx(1.5 - 1)
    assert symptoms.highest_share(40e3, kmin, kmax, pmax) == pytest.approx(0.15)
    assert symptoms.highest_share(60001.0, kmin, kmax, pmax) == 1.0
    assert symptoms.highest_share(19e3, kmin, kmax, pmax) == 0.0


# -- marks and queues together -----------------------------------------------------------------------------------

MODEL = [Marked(1e4, 1e2, 2e5), Marked(1e4, 1e3, 1e6), Marked(1e5, 1e2, 2e5)]


def test_the_share_is_that_of_ports_with_such_queues() -> None:
    assert marks.expected_share(2e5, MODEL) == pytest.approx(2e2 / 1.1e5, rel=1e-3)
    assert marks.expected_share(5e7, MODEL) == pytest.approx(0.1, rel=1e-3)  # the longest is the nearest
    assert marks.ratio([Marked(5e3, 1e3, 1e6)], MODEL) == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize(
    ("ratios", "scale"),
    [({1.0: 0.04, 4.0: 1.0, 16.0: 20.0}, 4.0), ({1.0: 0.1, 4.0: 10.0}, 2.0), ({1.0: 9.0, 0.25: 3.0}, 0.25)],
)
def test_the_thresholds_are_between_those_that_were_run(ratios: dict[float, float], scale: float) -> None:
    assert marks._scale(ratios) == pytest.approx(scale)


@pytest.mark.parametrize(
    ("shift", "what"),
    [(1.0, "marks and queues fit the thresholds"), (0.05, symptoms.HIGHER), (8.0, marks.LOWER)],
)
def test_thresholds_in_force(monkeypatch: pytest.MonkeyPatch, shift: float, what: str) -> None:
    """A model whose marks fall by 16 for thresholds four times as high."""

    def model(port: Any, scheme: Any, payload: Any, delay: Any, hosts: int, scale: float) -> list[Marked]:
        assert hosts == 4  # as many as there are ports
        return [Marked(1e6, 2e4 / shift / scale**2, 300e3)]

    monkeypatch.setattr(marks, "model", model)
    [found] = marks.thresholds_in_force(queues(), resolve(dcqcn_of(read_nic(SAMPLE / "nic.txt"))[0]), 4096, 1e-6)
    assert found.what == what
    if what == symptoms.HIGHER:  # sqrt(20) times: 447 KB and 1.8 MB, of a digit
        assert "about 400KB and 2MB" in found.why


def test_counts_that_are_too_few_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "model", None)  # would raise
    scheme = resolve(dcqcn_of(read_nic(SAMPLE / "nic.txt"))[0])
    assert not list(marks.thresholds_in_force(queues({"marked_packets": 99.0}, others=0), scheme, 4096, 1e-6))
    assert not list(marks.thresholds_in_force(queues({"watermark_bytes": None}, others=0), scheme, 4096, 1e-6))


def test_the_flows_that_marks_tell_are_those_of_the_fixed_point() -> None:
    """Against the equilibrium of the whole scenario: its marks with 16 flows are told as 16, or up to a step less."""
    import fluidcc as fc
    from fluidcc.scenario.frames import framed
    from fluidcc.theory.control.equilibrium import equilibrium

    scheme = resolve(dcqcn_of(read_nic(SAMPLE / "nic.txt"))[0])
    red = fc.RED(100e3, 400e3, 0.2)
    whole = framed(fc.incast(1, multiplicity=16.0, rate="100Gbps", scheme=scheme, marking=red), 4096.0)
    share = equilibrium(whole).as_dict()["marking_probability"]
    [found] = marks.flows_told(queues({"marked_packets": 1.001 * share * 1e6}, others=0), scheme, 4096.0, 8)
    assert "no more than 16 flows" in found.why


# -- all together ------------------------------------------------------------------------------------------------


def judged(counters: Counters, groups: list[PortGroup] | None = None) -> Any:
    scheme = resolve(dcqcn_of(read_nic(SAMPLE / "nic.txt"))[0])
    groups = groups or read_ports(SAMPLE / "config_db.json")[0]
    return judge(counters, groups, scheme, [4096.0], rtt=4e-6, flows=8, links=4)


def test_each_lossless_priority_of_a_port_is_judged() -> None:
    of = {3: {"dropped_packets": 0.0, "pauses_sent": 0.0}, 4: {"dropped_packets": 7.0, "pauses_sent": 0.0}}
    found = judged(Counters((PortCounters("leaf1", "Ethernet0", {}, of),)))
    assert whats(found.findings) == [symptoms.NOBODY]
    assert "7 packets of priority 4" in found.findings[0].why
    assert found.ports == ("Ethernet0",)


def test_ports_that_the_file_lacks_are_named_and_not_judged() -> None:
    of = {3: {"dropped_packets": 7.0, "pauses_sent": 0.0}}
    two = (PortCounters("leaf1", "Ethernet0", {}, of), PortCounters("leaf2", "Ethernet999", {}, of))
    found = judged(Counters(two, left_out=("host7",)))
    assert found.ports == ("leaf1 Ethernet0",)
    assert found.left_out == ("leaf2 Ethernet999", "host7")
    assert "leaf2" not in found.findings[0].why


def test_json_has_what_was_read_and_found() -> None:
    found = judged(Counters((PortCounters("leaf1", "Ethernet0", {}, {3: HEALTHY | {"dropped_packets": 1.0}}),)))
    document = json.loads(json.dumps(found.as_dict()))
    assert document["ports"] == ["Ethernet0"]
    assert document["findings"][0]["what"] == symptoms.NOBODY
    assert document["seconds"] is None
