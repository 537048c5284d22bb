"""Rules about counters, by hand, on both sides of each bound; and ordinary counts, which must not be blamed."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fluidcc.errors import InputError
from fluidcc.operators import counted, dcqcn_of, read_nic, symptoms
from fluidcc.operators.config_db import ConfigDB
from fluidcc.operators.counted import Conditions, Marked, judge
from fluidcc.operators.counters.model import Counters, NicCounters, PortCounters
from fluidcc.operators.finding import Finding
from fluidcc.operators.ports import PortGroup, read_ports
from fluidcc.operators.symptoms import Nics, Queue
from fluidcc.scenario.parameters import resolve

SAMPLE = Path(__file__).parents[2] / "examples" / "leaf-100g"
PACKET, INTERVAL, RATE = 4158.0, 4e-6, 12.5e9
PORT = dataclasses.replace(
    read_ports(SAMPLE / "config_db.json")[0][0].switch, kmin=100e3, kmax=400e3, pmax=0.2, mtu=PACKET
)
HEALTHY = {
    "sent_packets": 1e6, "sent_bytes": 4e9, "marked_packets": 2e4, "watermark_bytes": 300e3,
    "watermark_before_bytes": 50e3, "dropped_packets": 0.0, "ingress_dropped_packets": 0.0, "pauses_sent": 0.0,
    "pauses_received": 0.0,
}  # fmt: skip
TALKS = {"cnps_sent": 5e3, "cnps_handled": 5e3, "cnps_ignored": 0.0, "marked_packets": 2e4, "out_of_sequence": 0.0}
OF_PRIORITY = {
    "sent_bytes": 4e9, "received_bytes": 4.158e9, "received_packets": 1e6, "pauses_sent": 0.0, "pauses_received": 0.0,
}  # fmt: skip
SCHEME = resolve(dcqcn_of(read_nic(SAMPLE / "nic.txt"))[0])


LOST_AND_PAUSED = {"ingress_dropped_packets": 5.0, "pauses_sent": 7.0}


def queues(*changes: Mapping[str, float | None], others: int = 3, port: Any = PORT) -> list[Queue]:
    """Ports of which the first ones count otherwise; None: not read."""
    found = []
    for i, change in enumerate([*changes, *[{}] * others]):
        values = {name: value for name, value in {**HEALTHY, **change}.items() if value is not None}
        found.append(Queue(f"Ethernet{4 * i}", port, PortCounters("leaf1", f"Ethernet{4 * i}", {}, {3: values})))
    return found


def nics(*changes: Mapping[str, float | None], others: int = 3, **more: Mapping[int, Mapping[str, float]]) -> Nics:
    """NICs of hosts h0, h1, ... of which the first ones count otherwise; ``h0`` adds priorities."""
    found = []
    for i, change in enumerate([*changes, *[{}] * others]):
        of = {name: value for name, value in change.items() if name in {*OF_PRIORITY, "discards"} or name[-2:] == "_s"}
        values = {name: value for name, value in {**TALKS, **change}.items() if value is not None and name not in of}
        priority = {name: value for name, value in {**OF_PRIORITY, **of}.items() if value is not None}
        found.append(NicCounters(f"h{i}", values, {3: priority, **(more.get(f"h{i}") or {})}))
    return Nics(tuple(found), (3,), INTERVAL, RATE, PACKET)


def whats(found: list[Finding]) -> list[str]:
    return [each.what for each in found]


def test_every_kind_of_finding_is_expected_somewhere() -> None:
    """A rule that is added comes with a case."""
    here = Path(__file__).read_text(encoding="utf-8")
    kinds = {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in (symptoms, counted)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str) and " " in value and not (module is counted and name == "HIGHER")
    }
    assert len(kinds) > 15  # the names were found
    assert [kind for kind in kinds if kind not in here] == []


def test_a_healthy_fabric_is_not_blamed() -> None:
    assert symptoms.symptoms(queues(), nics(), 60.0) == []


@pytest.mark.parametrize(
    ("port", "host", "seconds", "expected", "who"),
    [
        # A PAUSE stops 100 Gb/s for 336 us at most: 90 000 of them half a minute. The port sends a tenth of the others.
        ({"pauses_received": 9e4, "sent_bytes": 3.9e8}, {}, 60.0, symptoms.STORM, "Ethernet0"),
        ({"pauses_received": 9e4, "sent_bytes": 4.1e8}, {"pauses_sent": 9e4}, 60.0, symptoms.SLOW, "h0"),
        ({"pauses_received": 8.9e4, "sent_bytes": 3e8}, {"pauses_sent": 8.9e4}, 60.0, symptoms.SLOW, "h0"),
        ({"pauses_received": 9e4, "sent_bytes": 3e8}, {"pauses_sent": 9e4}, None, symptoms.SLOW, "--interval"),
        # A NIC that counts the time in which it pauses.
        ({"pauses_received": 90.0}, {"pauses_sent": 90.0, "pausing_s": 54.1}, 60.0, symptoms.STORM, "h0"),
        ({"pauses_received": 90.0}, {"pauses_sent": 90.0, "pausing_s": 53.9}, 60.0, symptoms.SLOW, "h0"),
        # Between switches: not of a NIC, where NICs say that they sent none.
        ({"pauses_received": 90.0}, {}, 60.0, symptoms.NEIGHBOUR, "Ethernet0"),
        # Losses: without any PAUSE, and with; at the egress they have other causes.
        ({"ingress_dropped_packets": 5.0}, {}, None, symptoms.NOBODY, "Ethernet0"),
        (LOST_AND_PAUSED, {"pauses_received": 7.0}, None, symptoms.HEADROOM, "49.15KB"),
        (LOST_AND_PAUSED, {}, None, symptoms.HEADROOM, "No NIC"),
        ({"dropped_packets": 5.0, "pauses_sent": 7.0}, {}, None, symptoms.EGRESS, "Ethernet0"),
        ({}, {"received_discards": 5.0, "out_of_sequence": 5.0}, None, symptoms.DISCARDS, "h0"),
        ({}, {"discards": 5.0, "out_of_sequence": 5.0}, None, symptoms.DISCARDS, "h0"),
        ({}, {"paused_s": 6.1}, 60.0, symptoms.PAUSED, "10%"),
        # Of 130 KB of marks (30 KB on the ramp) come 31 packets, less one: with 4 deviations some 8 at least.
        ({"watermark_bytes": 500e3, "marked_packets": 7.0}, {}, None, symptoms.HIGHER, "Ethernet0"),
        # With a queue that never reached Kmin nothing can be marked.
        ({"watermark_bytes": 70e3, "marked_packets": 101.0}, {}, None, symptoms.SOONER, "Ethernet0"),
        ({}, {"cnps_ignored": 5001.0}, None, symptoms.IGNORES, "h0"),
        ({}, {"cnps_sent": 0.0}, None, symptoms.SILENT, "h0"),
        # 12.5 GB/s for 4 us are 12 packets: of 20 000 marked ones 1/13 need CNPs of their own.
        ({}, {"cnps_sent": 1300.0}, None, symptoms.RARE, "h0"),
        ({}, {"out_of_sequence": 3.0}, None, symptoms.WIRE, "h0"),
        ({}, {"out_of_sequence": 1.0}, None, symptoms.WIRE, "h0"),  # one of a million packets
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_place(
    port: dict[str, float], host: dict[str, float], seconds: float | None, expected: str, who: str
) -> None:
    found = symptoms.symptoms(queues(port), nics(host), seconds)
    assert whats(found) == [expected]
    assert who in found[0].why
    assert found[0].at == (("h0",) if host and (not port or "h0" in found[0].why) else ("Ethernet0",))
    assert found[0].suggest or found[0].severity == "ok"


@pytest.mark.parametrize(
    ("port", "host"),
    [
        ({"pauses_received": 9.0, "sent_bytes": 0.0}, {"pauses_sent": 9.0}),  # some PAUSEs since boot, and an idle port
        ({"pauses_received": 99.0, "sent_packets": 1e7}, {}),
        ({"pauses_received": 999.0, "sent_packets": None}, {}),
        ({"ingress_dropped_packets": 0.9}, {}),  # in a million
        ({"watermark_bytes": 500e3, "marked_packets": 9.0}, {}),
        ({"watermark_bytes": 500e3, "marked_packets": 0.0, "watermark_before_bytes": None}, {}),  # of another time
        ({"watermark_bytes": 500e3, "marked_packets": 0.0, "watermark_before_bytes": 480e3}, {}),  # was as long before
        ({"watermark_bytes": 500e3, "marked_packets": 0.0, "watermark_before_bytes": 600e3}, {}),  # cleared while long
        ({"watermark_bytes": 500e3, "marked_packets": 0.0, "pauses_received": 1.0}, {}),
        ({"watermark_bytes": 500e3, "marked_packets": 0.0, "sent_packets": 9999.0}, {}),
        ({"watermark_bytes": 70e3, "marked_packets": 5e3, "watermark_before_bytes": 80e3}, {}),  # cleared in between
        ({"watermark_bytes": 70e3, "marked_packets": 5e3, "watermark_before_bytes": None}, {}),
        ({}, {"cnps_handled": 0.0, "cnps_sent": 1e4}),  # nobody was in its way
        ({}, {"cnps_ignored": 100.0, "cnps_handled": 0.0}),
        ({}, {"cnps_sent": 0.0, "marked_packets": 99.0}),
        ({}, {"cnps_sent": 1500.0}),
        ({}, {"cnps_sent": 160.0, "received_packets": 1e7}),  # short messages: 120 of them in 4 us
        ({}, {"out_of_sequence": 0.9}),
        ({}, {"out_of_sequence": 99.0, "received_packets": None}),
        ({}, {"received_discards": 5.0, "discards": 0.0}),  # of TCP
        ({}, {"paused_s": 5.9}),
    ],
)
def test_what_is_ordinary_is_not_blamed(port: dict[str, float | None], host: dict[str, float]) -> None:
    assert symptoms.symptoms(queues(port), nics(host, others=3), 60.0) == []


def test_of_a_queue_that_was_paused_marks_say_nothing() -> None:
    long = {"watermark_bytes": 5e6, "marked_packets": 0.0, "pauses_received": 9e5, "sent_bytes": 1e8}
    assert whats(symptoms.symptoms(queues(long), nics({"pauses_sent": 9e5}), 60.0)) == [symptoms.STORM]


def test_a_queue_is_compared_with_those_of_its_number() -> None:
    """A tenth of what others with its number sent is standing still; what other queues send says nothing."""

    def one(number: int, sent: float) -> Any:
        return SimpleNamespace(port=SimpleNamespace(queue=number), get=lambda _: sent)

    mine, same, other = one(3, 1e6), one(3, 2e6), one(4, 4e9)
    assert not symptoms._stands_still(mine, [mine, same, other, one(4, 4e9)])
    assert symptoms._stands_still(mine, [mine, one(3, 1.1e7), other])
    assert not symptoms._stands_still(mine, [mine, other])


def test_a_port_without_a_count_of_bytes_does_not_stand_still() -> None:
    """A counter that was not read is not taken as 0."""
    port = {"sent_packets": 1e6}
    first, *rest = queues({"pauses_received": 9e5, "sent_bytes": None})
    others = [dataclasses.replace(each, counted=dataclasses.replace(each.counted, values=port)) for each in rest]
    for beside in (rest, others):
        found = symptoms.symptoms([first, *beside], nics({"pauses_sent": 9e5}), 60.0)
        assert whats(found) == [symptoms.SLOW]


def test_without_any_mark_ecn_is_off() -> None:
    unmarked = {"watermark_bytes": 2e6, "marked_packets": 0.0}
    quiet = {"marked_packets": 0.0, "cnps_sent": 0.0, "cnps_handled": 0.0}
    off = [quiet] * 2
    assert whats(symptoms.symptoms(queues(unmarked, others=0), nics(*off, others=0))) == [symptoms.UNMARKED]
    # A switch that does not count its marks: the NICs received some.
    assert symptoms.symptoms(queues(unmarked, others=0), nics()) == []
    without = dataclasses.replace(PORT, ecn=False)
    assert symptoms.symptoms(queues(unmarked, others=0, port=without), nics(*off, others=0)) == []


def test_queues_cleared_while_long_are_two_at_least() -> None:
    cleared = {"watermark_bytes": 500e3, "marked_packets": 0.0, "watermark_before_bytes": 600e3}
    assert whats(symptoms.symptoms(queues(cleared, cleared), nics())) == [symptoms.HIGHER]


def test_lossy_queues_may_lose() -> None:
    lossy = dataclasses.replace(PORT, lossless=False)
    assert symptoms.symptoms(queues({"ingress_dropped_packets": 5.0}, port=lossy), nics()) == []


def test_a_headroom_that_is_large_enough_is_not_what_lacks() -> None:
    [small] = symptoms.symptoms(queues(LOST_AND_PAUSED, port=dataclasses.replace(PORT, headroom=10e3)), nics())
    [large] = symptoms.symptoms(queues(LOST_AND_PAUSED), nics())
    assert "give the priority group a headroom" in small.suggest
    assert "show buffer configuration" in large.suggest


@pytest.mark.parametrize(
    ("mine", "other", "blamed"),
    [
        (0.0, 4e9, True),
        (1e8, 3.9e9, False),  # RoCE and TCP
        (0.0, 1.9e9, False),  # an idle host
    ],
)
def test_a_host_that_sends_by_another_priority(mine: float, other: float, blamed: bool) -> None:
    found = symptoms.symptoms(queues(), nics({"sent_bytes": mine}, h0={0: {"sent_bytes": other}}))
    assert (symptoms.PRIORITY in whats(found)) is blamed
    if blamed:
        assert "h0 sent 0B by priority 3, 4GB by 0" in found[0].why
        assert found[0].severity == "warn"  # it may be no RoCE


def test_hosts_of_which_most_send_tcp_are_not_blamed() -> None:
    tcp = {0: {"sent_bytes": 1e11}}
    assert symptoms.symptoms(queues(), nics(others=4, h0=tcp, h1=tcp, h2=tcp)) == []


def test_a_second_interface_of_a_host_may_be_for_other_traffic() -> None:
    sends = nics(others=3)
    other = NicCounters("h0 eth1", {}, {0: {"sent_bytes": 4e9}})
    mine = dataclasses.replace(sends.counted[0], name="h0 eth0")
    both = dataclasses.replace(sends, counted=(mine, other, *sends.counted[1:]))
    assert symptoms.symptoms(queues(), both) == []


def test_empty_queues_are_said_and_not_blamed() -> None:
    empty = {"sent_packets": 0.0, "sent_bytes": 0.0, "marked_packets": 0.0}
    [found] = symptoms.symptoms(queues(empty, empty, others=0), nics(others=0))
    assert (found.what, found.severity) == (symptoms.EMPTY, "ok")


def test_cnps_are_missed_only_where_all_nics_are_there() -> None:
    whole = {"received_bytes": 4e9}
    lost = [{"cnps_handled": 2e3, **whole}, {"cnps_handled": 0.0, **whole}]
    [found] = symptoms.symptoms([], nics(*lost, others=0))
    assert found.what == symptoms.LOST
    assert "h1 handled none" in found.why
    away = [lost[0], {**lost[1], "received_bytes": 2e9}]
    assert symptoms.symptoms([], nics(*away, others=0)) == []
    assert (
        symptoms.symptoms([], nics({"cnps_handled": 4.3e3, **whole}, {"cnps_handled": 4.9e3, **whole}, others=0)) == []
    )


def test_marks_that_do_not_arrive() -> None:
    whole = {"received_bytes": 4e9, "cnps_sent": 0.0, "cnps_handled": 0.0}
    none = [{**whole, "marked_packets": 0.0}] * 2
    assert whats(symptoms.symptoms(queues(), nics(*none, others=0))) == [symptoms.ERASED]
    for marks_sent, few in ((1e4, True), (10_001.0, False)):
        found = symptoms.symptoms(queues({"marked_packets": marks_sent}, others=0), nics(*none, others=0))
        assert (symptoms.ERASED not in whats(found)) is few
    some = [{**whole, "marked_packets": 500.0, "cnps_sent": 400.0, "cnps_handled": 400.0}] * 2
    assert symptoms.ERASED not in whats(symptoms.symptoms(queues(), nics(*some, others=0)))
    unread = [*none[1:], {"marked_packets": None}]  # a NIC whose marks were not read may have seen them all
    assert symptoms.ERASED not in whats(symptoms.symptoms(queues(), nics(*unread, others=0)))


def test_losses_that_a_switch_counts_are_not_a_wires() -> None:
    found = whats(symptoms.symptoms(queues({"ingress_dropped_packets": 3.0}), nics({"out_of_sequence": 3.0})))
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
    assert symptoms.ramp_bound(80e3, kmin, kmax, pmax, packet, 40e3) == pytest.approx(6 + 20 - 1.5 - 1)
    assert symptoms.highest_share(40e3, kmin, kmax, pmax) == pytest.approx(0.15)
    assert symptoms.highest_share(60001.0, kmin, kmax, pmax) == 1.0
    assert symptoms.highest_share(19e3, kmin, kmax, pmax) == 0.0


# -- marks and a model of the traffic ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shares", "scale"),
    [
        ({1.0: 0.5, 4.0: 0.02, 16.0: 0.001}, 4.0),
        ({1.0: 0.2, 4.0: 0.002}, 2.0),
        ({1.0: 0.5, 4.0: 0.08, 16.0: 0.04}, 16.0),  # none has as few: the nearest
    ],
)
def test_the_thresholds_are_between_those_that_were_run(shares: dict[float, float], scale: float) -> None:
    assert counted._scale(0.02, shares) == pytest.approx(scale)


@pytest.mark.parametrize(
    ("expected", "what"),
    [(0.02, counted.FIT), (0.059, counted.FIT), (0.061, symptoms.HIGHER), (0.0067, counted.FIT)],  # incasts add marks
)
def test_thresholds_in_force(monkeypatch: pytest.MonkeyPatch, expected: float, what: str) -> None:
    """Ports that marked 2 % of 32 GB in a second, and a model whose marks fall with the square of its thresholds."""

    def model(
        port: Any, scheme: Any, payload: Any, delay: Any, hosts: int, workload: str, load: float, scale: float
    ) -> list[Marked]:
        assert (hosts, workload) == (4, "hadoop")  # as many as there are ports
        assert load == pytest.approx(0.32)
        return [Marked(1e6, 1e6 * expected / scale**2)]

    monkeypatch.setattr(counted, "model", model)
    [found] = counted.thresholds_in_force(queues(), SCHEME, 4096, 1e-6, "hadoop", 1.0)
    assert found.what == what
    if what == symptoms.HIGHER:  # sqrt(3.05) times
        assert "about 200KB and 700KB" in found.why


def test_counts_of_which_the_model_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "model", None)  # would raise
    few = queues({"sent_packets": 9999.0}, others=0)
    for ports in (few, queues({"marked_packets": None}, others=0)):
        assert not list(counted.thresholds_in_force(ports, SCHEME, 4096, 1e-6, "hadoop", 1.0))
    for seconds, load in ((100.0, "0%"), (0.3, "107%")):
        [found] = counted.thresholds_in_force(queues(), SCHEME, 4096, 1e-6, "hadoop", seconds)
        assert found.severity == "ok"
        assert f"sent {load} of their rate" in found.why
    with pytest.raises(InputError, match="--interval"):
        list(counted.thresholds_in_force(queues(), SCHEME, 4096, 1e-6, "hadoop", None))


def test_the_flows_that_marks_tell_are_those_of_the_fixed_point() -> None:
    """Against the equilibrium of the whole scenario: half of what 16 flows need excludes 16."""
    import fluidcc as fc
    from fluidcc.scenario.frames import framed
    from fluidcc.theory.control.equilibrium import equilibrium

    red = fc.RED(100e3, 400e3, 0.2)
    whole = framed(fc.incast(1, multiplicity=16.0, rate="100Gbps", scheme=SCHEME, marking=red), 4096.0)
    share = equilibrium(whole).as_dict()["marking_probability"]
    for times, words in ((0.499, "16 or more such flows are excluded"), (0.501, "19 or more")):
        [found] = counted.flows_told(
            queues({"marked_packets": times * share * 1e6}, others=0), SCHEME, 4096.0, 8, 4e9 / 12.5e9
        )
        assert found.what == counted.FLOWS
        assert words in found.why
    assert not list(counted.flows_told(queues(), SCHEME, 4096.0, 8, 0.36))  # not full
    assert not list(counted.flows_told(queues(), SCHEME, 4096.0, 8, None))


# -- all together ------------------------------------------------------------------------------------------------


def judged(counters: Counters, **given: Any) -> Any:
    file = SAMPLE / "config_db.json"
    return judge(counters, read_ports(file)[0], ConfigDB.all(file), Conditions(SCHEME, [4096.0], 1e-6, **given))


def losing(switch: str, name: str, of: int = 3) -> PortCounters:
    """A port whose other lossless priority, 3 or 4, sends PAUSEs and loses nothing."""
    lost = {of: {"ingress_dropped_packets": 7.0, "pauses_sent": 0.0}}
    return PortCounters(switch, name, {}, {7 - of: {"ingress_dropped_packets": 0.0, "pauses_sent": 9.0}, **lost})


def test_each_lossless_priority_of_a_port_is_judged() -> None:
    found = judged(Counters((losing("leaf1", "Ethernet0", 4),)))
    assert whats(found.findings) == [symptoms.NOBODY]
    assert "7 packets of priority 4" in found.findings[0].why


def test_ports_have_the_names_of_the_file_and_what_is_behind_them() -> None:
    """A switch that names its ports by their aliases."""
    found = judged(Counters((losing("other", "Eth1"),)))
    assert found.ports == ("Ethernet0 (server-01)",)


def test_ports_that_the_file_lacks_are_named_and_not_judged() -> None:
    host = ConfigDB.all(SAMPLE / "config_db.json")[0].table("DEVICE_METADATA")["localhost"]["hostname"]
    ports = (losing(host, "Ethernet0"), losing(host, "Ethernet999"), losing("spine-1", "Ethernet4"))
    found = judged(Counters(ports, left_out=("host7",)))
    assert found.ports == ("Ethernet0 (server-01)",)
    assert found.left_out == (f"{host} Ethernet999", "spine-1 Ethernet4", "host7")
    with pytest.raises(InputError, match="is among those that counted"):
        judged(Counters(ports[1:2]))


def test_ports_are_listed_as_one_counts() -> None:
    found = judged(Counters(tuple(losing("x", f"Ethernet{k}") for k in (100, 12, 4))))
    assert [name.split()[0] for name in found.ports] == ["Ethernet4", "Ethernet12", "Ethernet100"]


def test_json_has_what_was_read_and_found() -> None:
    document = json.loads(json.dumps(judged(Counters((losing("x", "Ethernet0"),)), seconds=60.0).as_dict()))
    assert document["ports"] == ["Ethernet0 (server-01)"]
    assert document["findings"][0]["what"] == symptoms.NOBODY
    assert document["seconds"] == 60.0


def test_a_workload_is_compared_at_the_slowest_ports_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faster ones lead to other switches: their queues are not those of hosts that send to each other."""
    asked = []

    def compared(members: Any, *given: Any) -> list[Finding]:
        asked.append((members[0].port.rate, len(members), *given[3:]))
        return []

    monkeypatch.setattr(counted, "thresholds_in_force", compared)
    group = read_ports(SAMPLE / "config_db.json")[0][0]
    fast = PortGroup(("Ethernet4", "Ethernet8"), dataclasses.replace(group.switch, rate=4 * group.switch.rate))
    slow = dataclasses.replace(group, names=("Ethernet0",))
    ports = tuple(PortCounters("x", f"Ethernet{k}", {}, {3: HEALTHY}) for k in (0, 4, 8))
    given = Conditions(SCHEME, [4096.0], 1e-6, seconds=60.0, workload="hadoop")
    judge(Counters(ports), [fast, slow], ConfigDB.all(SAMPLE / "config_db.json"), given)
    assert asked == [(12.5e9, 1, "hadoop", 60.0)]


def test_counters_that_cannot_be_judged_are_refused_before_any_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of the ports take minutes; a workload whose load is not known is refused at once."""
    from fluidcc.operators import audit as module

    def run(*given: Any) -> None:
        raise AssertionError("ports were run before the counters were judged")

    monkeypatch.setattr(module, "_run", run)
    rows = [f"leaf,Ethernet0,3,{name},{value:.0f}" for name, value in (("sent_packets", 2e4), ("marked_packets", 9))]
    (tmp_path / "a.csv").write_text("\n".join(["device,port,queue,counter,value", *rows]))
    with pytest.raises(InputError, match="--interval"):
        module.audit(SAMPLE / "config_db.json", counters=tmp_path / "a.csv", workload="hadoop")


def test_counters_of_nics_alone_are_judged() -> None:
    """Notice NICs that are refused because no queue of the switch was counted with them."""
    file = SAMPLE / "config_db.json"
    counters = Counters((), nics({"out_of_sequence": 3.0}).counted)
    found = judge(counters, read_ports(file)[0], ConfigDB.all(file), Conditions(SCHEME, [4096.0], 1e-6))
    assert symptoms.NOBODY not in whats(list(found.findings))
    with pytest.raises(InputError):
        judge(Counters(()), read_ports(file)[0], ConfigDB.all(file), Conditions(SCHEME, [4096.0], 1e-6))


def of_port(sent: float, pauses: float = 0.0) -> Queue:
    """A port that counted packets, and PAUSEs by priority, but no queue."""
    return Queue("p", PORT, PortCounters("leaf1", f"{sent}", {"sent_packets": sent}, {3: {"pauses_received": pauses}}))


def test_a_storm_is_seen_by_the_ports_packets_where_no_queue_is_read() -> None:
    """2 000 000 PAUSEs in 10 s and a thousandth of what others send: catches `a receiver pauses the switch`."""
    others = [of_port(1e7), of_port(1e7)]
    assert whats(symptoms.symptoms([of_port(1e4, 2e6), *others], nics(others=0), 10.0)) == [symptoms.STORM]
    assert whats(symptoms.symptoms([of_port(9e6, 2e6), *others], nics(others=0), 10.0)) == [symptoms.SLOW]


def test_pauses_that_nobody_counted_are_not_said_to_be_none() -> None:
    (found,) = symptoms._lost(queues({"ingress_dropped_packets": 5e4, "pauses_sent": None}, others=0), nics(others=0))
    assert found.what == symptoms.INGRESS
    assert "no counter of PAUSEs was read" in found.why
    assert "0 PAUSEs" not in found.why
    assert found.suggest.startswith("read show pfc counters too")


@pytest.mark.parametrize(("elsewhere", "severity"), [(1e7, "warn"), (9e3, "ok")])
def test_traffic_of_another_queue_is_named_where_roces_is_empty(elsewhere: float, severity: str) -> None:
    """Some ports were not read: that the others' queues are empty is said all the same."""
    counts = {0: {"sent_packets": elsewhere}, 3: {"sent_packets": 0.0}}
    read = Queue("p", PORT, PortCounters("leaf1", "p", {}, counts))
    unread = Queue("q", PORT, PortCounters("leaf1", "q", {}, {}))
    (found,) = symptoms._other_priority([read, unread], nics(others=0))
    assert (found.what, found.severity) == (symptoms.EMPTY, severity)
    assert ("queue 0 10,000,000" in found.why) is (severity == "warn")


def test_a_nic_that_pauses_is_not_told_to_turn_pfc_on() -> None:
    """Catches advice against what the NIC's own PAUSEs show."""
    (found,) = symptoms._discards(nics({"received_discards": 5e5, "pauses_sent": 3e6}, others=0))
    assert "turn PFC" not in found.suggest
    (found,) = symptoms._discards(nics({"received_discards": 5e5}, others=0))
    assert found.suggest.startswith("turn PFC of priority 3 on")
