"""What the flow level cannot say is refused, with what to write instead; and a run ends when it is told to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.flow_level.layout import layout_of
from fluidcc.engines.flow_level.run import flow_times
from fluidcc.engines.flow_level.transfers import Transfers
from fluidcc.fabrics import named_topology
from fluidcc.scenario.model import resolve

TOPOLOGY = named_topology("leaf-spine:2x1x4")
ROWS = [(source, 4, 0.0, "1MB") for source in (0, 1, 2, 3)]


def scenario(rows: Any = ROWS, scheme: str = "none", **options: Any) -> fc.Scenario:
    return TOPOLOGY.scenario(rows, scheme=scheme, **options)


def test_a_switch_that_would_lose_packets_ends_the_run() -> None:
    """As packets do there; with as much room as all of it takes, or PFC, nothing is lost, and nothing is said."""
    small = scenario(buffer="100KB", pfc=None)
    assert fc.simulate(small, "1ms", engine="packet").summary["drops"] > 0
    with pytest.raises(
        fc.InputError, match=r"buffer: 100KB of '\d+' is full by .*loses nothing; write a larger buffer"
    ):
        flow_times(small, model="dynamics")
    assert np.isfinite(flow_times(scenario(buffer="8MB", pfc=None), model="dynamics").received).all()
    assert np.isfinite(flow_times(scenario(buffer="8MB", pfc=fc.PFC()), model="dynamics").received).all()


def test_a_buffer_that_does_not_hold_the_headroom_is_refused_as_by_packets() -> None:
    tiny = scenario(buffer="10KB", pfc=fc.PFC())
    with pytest.raises(fc.InputError, match="does not hold the headroom") as packets:
        fc.simulate(tiny, "1ms", engine="packet")
    with pytest.raises(fc.InputError, match="does not hold the headroom") as rates:
        flow_times(tiny, model="dynamics")
    assert str(packets.value) == str(rates.value)


@pytest.mark.parametrize("model", ["ideal", "dynamics"])
@pytest.mark.parametrize("until", ["1us", "100us", "200us"])
def test_nothing_ends_after_until(model: str, until: str) -> None:
    """What had ended by then is as without it."""
    rows = [(0, 4, 0.0, "10KB"), *ROWS[1:], (0, 5, "150us", "10KB")]
    whole, cut = flow_times(scenario(rows), model=model), flow_times(scenario(rows), model=model, until=until)
    horizon = float(until[:-2]) * 1e-6
    for name in ("start", "received", "answered", "left"):
        expected = getattr(whole, name)
        expected = np.where(expected <= horizon, expected, np.nan)
        assert getattr(cut, name) == pytest.approx(expected, nan_ok=True)
    assert np.isnan(cut.answered).any()


@pytest.mark.parametrize("scheme", ["none", "hpcc"])
@pytest.mark.parametrize("apart", [None, 0, "20us"])
def test_loads_of_the_ideal_keep_bytes_whatever_shares_the_work(scheme: str, apart: Any) -> None:
    """What every port carried is what crossed it, and never less than nothing; 1e-9 was stated beforehand."""
    rng = np.random.default_rng(5)
    hosts = [rng.choice(8, 2, replace=False) for _ in range(40)]
    rows = [(int(a), int(b), float(rng.uniform(0, 3e-5)), float(10 ** rng.uniform(0, 6))) for a, b in hosts]
    given = resolve(scenario(rows, scheme))
    times = flow_times(given, apart=apart)
    _, ports, paths = layout_of(given)
    crossed = np.zeros(len(ports.rate))
    for row, flow in zip(rows, range(len(rows)), strict=True):
        wire = row[3] + math.ceil(row[3] / 1000) * paths.overhead[flow]
        crossed[paths.there[flow][paths.there[flow] >= 0]] += wire
        crossed[paths.back[flow][paths.back[flow] >= 0]] += wire * paths.ack_share[flow]
    carried = (times.load * ports.rate).sum(axis=0) * times.interval
    assert carried == pytest.approx(crossed, rel=1e-9, abs=1e-6)
    assert times.load.min() > -1e-9


@pytest.mark.parametrize("scheme", ["hpcc", "swift", "dctcp", "dcqcn"])
def test_senders_that_are_told_of_few_packets_are_refused(scheme: str) -> None:
    with pytest.raises(
        fc.InputError, match="ack_interval: 4; senders of the flow-level engine are told of every packet"
    ):
        flow_times(scenario(scheme=scheme, ack_interval=4, pfc=None), model="dynamics")


def test_without_control_it_matters_to_no_sender() -> None:
    """Against packets, 2 %: what ACKs take of the way is a quarter."""
    given = scenario(ack_interval=4, buffer="8MB", pfc=None)
    packets = fc.simulate(given, "1ms", engine="packet").summary["fct_s"]
    assert max(packets) == pytest.approx(flow_times(given, model="dynamics").answered.max(), rel=0.02)


def test_waits_that_send_nothing_are_on_no_host() -> None:
    """What others of the scenario's flows do says nothing of when they know: they do by the answer."""
    for last in (4, 0):
        given = scenario([(0, 4, 0.0, "10KB"), (1, last, 0.0, "10KB")])
        for what, name in (("known", "answered"), ("sent", "received")):
            waits = Transfers([0, -1, 1], ["10000", 1.0, 1e4], 0.0, [(), (0,), (1,)], after_what=what)
            times = flow_times(given, waits)
            assert times.start[1] == getattr(times, name)[0]


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"flow": [0.7]}, "transfers flow: .0.7. are no whole numbers"),
        ({"flow": ["a"]}, "transfers flow: .'a'. are no whole numbers"),
        ({"flow": [[0]]}, "transfers flow: .* are no whole numbers"),
        ({"size": ["1MB"]}, "transfers size: is no number"),
        ({"size": [1.0, 2.0, 3.0]}, "transfers size: is no number, nor one for each of 2"),
        ({"after": (0,)}, "transfers after: gives no list for each transfer"),
        ({"after": [(), (0.9,)]}, "transfers after: .* are no whole numbers"),
        ({"after_what": np.array([7])}, "transfers after_what: is not 0, 1 or 2"),
        ({"after_what": np.array([-1])}, "transfers after_what: is not 0, 1 or 2"),
        ({"after_what": [1.5]}, "transfers after_what: is not 0, 1 or 2"),
    ],
)
def test_columns_that_make_no_sense(given: dict[str, Any], word: str) -> None:
    columns = {"flow": [0, 1], "size": 1e4, "after": [(), (0,)], **given}
    with pytest.raises(fc.InputError, match=word):
        Transfers(**columns)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"transfers": [1, 2]}, "transfers: .1, 2.; give a fluidcc"),
        ({"report": 3}, "report: 3 is no function"),
        ({"until": 0}, "until: 0s is over before anything begins"),
        ({"until": -1.0}, "until"),
        ({"model": "ideal", "dt": math.nan}, "dt"),
        ({"model": "ideal", "dt": "1us"}, "dt: the ideal goes from event to event"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], word: str) -> None:
    with pytest.raises(fc.InputError, match=word):
        flow_times(scenario(), **options)
