"""Shares that `fit` takes, of counters as devices print them, and the command that reads them."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import Any

import pytest

from fluidcc.cli.app import run
from fluidcc.errors import InputError
from fluidcc.operators.config_db import ConfigDB
from fluidcc.operators.counted import shares_of
from fluidcc.operators.counters import Counters, NicCounters, PortCounters, read_growth
from fluidcc.operators.ports import PortGroup, read_ports
from fluidcc.studies.fitting import Shares

fitting = importlib.import_module("fluidcc.studies.fitting.fit")
SAMPLE = Path(__file__).parents[2] / "examples" / "leaf-100g"
BEFORE, AFTER = (str(SAMPLE / "counters" / each) for each in ("before", "after"))
FILES = ["--from", str(SAMPLE / "config_db.json"), "--from", str(SAMPLE / "nic.txt")]
OVER = ["--over", "cnp_interval=1us:200us"]


def of(counters: Counters, **change: Any) -> Shares:
    """Shares of the sample's ports, with packets of 4096 B."""
    groups = read_ports(SAMPLE / "config_db.json")[0]
    configs = [*ConfigDB.all(SAMPLE / "config_db.json")]
    return Shares(**shares_of(counters, groups, configs, 4096.0, **{"seconds": 1.0, "workload": "hadoop", **change}))


def port(name: str, **values: float) -> PortCounters:
    return PortCounters("leaf1", name, {}, {3: values})


def test_ports_set_alike_and_all_nics_are_pooled() -> None:
    """Marks count where what was sent is known too, loads are a mean, and packets fill 4158 of 4178 bytes of a wire."""
    counters = Counters(
        (
            port("Ethernet0", sent_packets=1e6, marked_packets=3e4, sent_bytes=5e9),
            port("Ethernet4", sent_packets=3e6, marked_packets=1e4, sent_bytes=10e9),
            port("Ethernet8", sent_packets=5e6, sent_bytes=7.5e9),  # a line card that counts no marks
            port("Ethernet12", marked_packets=7e5),
        ),
        (
            NicCounters("H0", {"marked_packets": 1e4, "cnps_sent": 4e3}),
            NicCounters("H1", {"marked_packets": 2e4, "cnps_sent": 5e3}),
            NicCounters("H2", {"marked_packets": 9e9}),
        ),
    )
    found = of(counters)
    assert dataclasses.replace(found, load=0.6) == Shares(4e6, 4e4, 3e4, 9e3, 0.6, "hadoop", 4)
    assert found.load == pytest.approx(0.6 * 4178 / 4158)
    assert of(counters, seconds=None, workload=None).load is None
    with pytest.raises(InputError, match="give --interval"):
        of(counters, seconds=None)


def test_ports_of_another_profile_are_left_out() -> None:
    groups = read_ports(SAMPLE / "config_db.json")[0]
    other = PortGroup(("Ethernet4",), dataclasses.replace(groups[0].switch, profile="ELSE"))
    first = PortGroup(("Ethernet0",), groups[0].switch)
    counters = Counters(
        (
            port("Ethernet0", sent_packets=1e6, marked_packets=3e4),
            port("Ethernet4", sent_packets=3e6, marked_packets=1e4),
        )
    )
    found = shares_of(counters, [first, other], [*ConfigDB.all(SAMPLE / "config_db.json")], 4096.0)
    assert (found["sent"], found["marked"], found["cnps"]) == (1e6, 3e4, None)


def test_counters_of_another_switch_are_refused() -> None:
    with pytest.raises(InputError, match=r"no port of .* is among those that counted \(leaf1 Ethernet999"):
        of(Counters((port("Ethernet999", sent_packets=1e6, marked_packets=3e4),)))


def test_growth_is_between_readings_or_all() -> None:
    both, all_of_it = read_growth([AFTER], [BEFORE]), read_growth([AFTER])
    assert both.nics[0].values["cnps_sent"] < all_of_it.nics[0].values["cnps_sent"]


def test_the_command_reads_counters_as_audit_does(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def fit(*given: Any, **options: Any) -> Any:
        asked.append(given)
        raise InputError("stopped")

    monkeypatch.setattr(fitting, "fit", fit)
    counters = ["--counters", AFTER, "--before", BEFORE, "--interval", "6ms", "--workload", "web-search"]
    assert run(["fit", "dcqcn", *FILES, *counters, *OVER]) == 2
    [(shares, make, over)] = asked
    read = read_growth([AFTER], [BEFORE])
    queues = [each.queues[3] for each in read.ports]
    assert shares.sent == sum(each["sent_packets"] for each in queues)
    assert shares.marked == sum(each["marked_packets"] for each in queues)
    assert shares.cnps == sum(each.values["cnps_sent"] for each in read.nics)
    assert shares.load == pytest.approx(sum(each["sent_bytes"] for each in queues) / 8 / 6e-3 / 12.5e9 * 4178 / 4158)
    assert (shares.workload, shares.hosts) == ("web-search", 8)
    assert over == {"cnp_interval": (1e-6, 200e-6)}
    assert make(cnp_interval=7e-6).flows[0].scheme.cnp_interval == 7e-6


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "--trace, --counters: give what was measured as one of the two"),
        ([*FILES, "--trace", "a.nc", "--counters", AFTER, "--flows", "8"], "as one of the two"),
        (["--counters", AFTER], "write --from config_db.json"),
        (["--trace", "a.nc", "--workload", "hadoop"], "--workload: it is of counters, and none are given"),
        (["--trace", "a.nc", "--interval", "1s"], "--interval: it is of counters"),
        (["--before", BEFORE], "--before: it is of counters"),
        ([*FILES, "--counters", AFTER, "--workload", "hadoop"], "give --interval"),
        ([*FILES, "--counters", AFTER, "--interval", "8ms"], "flows without end fill"),
        ([*FILES, "--counters", "gone.txt"], "gone.txt"),
    ],
)
def test_the_command_refuses_in_a_line(arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", "dcqcn", *arguments, *OVER]) == 2
    said = capsys.readouterr()
    assert word in said.err
    assert said.err.count("\n") == 1
