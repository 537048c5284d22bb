"""Flow control of the fluid part by part, by hand: marks that go on, waits of last bytes, and what is modelled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.fluid import lossless as module
from fluidcc.engines.fluid.lossless import LosslessNetwork
from fluidcc.engines.fluid.network import network_of
from fluidcc.engines.fluid.queues import QueueNetwork
from fluidcc.scenario.model import resolve


def test_ce_goes_before_ue_and_that_before_no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 bytes leave each of three hops, 20 with CE and 10 with UE; hops 0 and 2 are at queue 0, hop 1 at queue 1.

    Of what has no CE, a quarter gets it at queue 0. Of what has neither then, half gets UE at queue 0, all at queue 1.
    """
    monkeypatch.setattr(module, "jnp", np)
    monkeypatch.setattr(module, "red", lambda *given: "over")
    marks = np.array([[0.25], [0.0]]), np.array([[0.5], [1.0]])
    seen: list[Any] = []
    monkeypatch.setattr(module, "ternary", lambda *given: seen.append(given) or (*marks, "new"))
    gate = SimpleNamespace(max_on="max_on")
    net = SimpleNamespace(kmin=0, kmax=0, pmax=0, packet=np.array([[1000.0], [1062.0]]))
    at = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    made = SimpleNamespace(network=net, _gate=gate, _by_queue=at, _at=np.array([0, 1, 0]))
    leaving = np.repeat([100.0, 20.0, 10.0], 3)[:, None]
    now: Any = SimpleNamespace(left=np.full((9, 1), 1000.0))
    left, port = LosslessNetwork._marked(made, "port", now, leaving, "queue", 0.5)  # pyright: ignore[reportArgumentType]
    ce = 20 + 0.25 * 80
    ue = 0.75 * 10 + 0.5 * (100 - ce - 7.5)
    expected = [100.0] * 3 + [ce, 20.0, ce] + [ue, 80.0, ue]
    np.testing.assert_allclose(np.ravel(left) - 1000.0, expected)
    assert port == "new"
    assert seen[0][:3] == ("port", "over", "queue")
    assert seen[0][3].tolist() == [[True], [True]]
    assert (seen[0][4], seen[0][5].tolist(), seen[0][6]) == ("max_on", [1062.0], 0.5)


@pytest.mark.parametrize(
    ("acked", "newly", "finish", "waited"),
    [
        (1020.0, 40.0, 4.0, 10.0 - 0.25 - 4.0 - 2.0),  # half of the step's bytes came behind the last
        (1000.0, 40.0, 4.0, 4.0),
        (999.0, 40.0, 4.0, np.nan),
        (1080.0, 40.0, 4.0, 3.5),  # a step at most
        (1020.0, 40.0, np.inf, np.nan),
        (1020.0, 40.0, 9.0, 0.0),
    ],
)
def test_the_whole_wait_of_a_last_byte_is_kept_at_its_first_hop(
    acked: float, newly: float, finish: float, waited: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flow of 1000 bytes begins at 10 s; its round trip is 2 s, its second hop has no wait. Known times stay."""
    monkeypatch.setattr(module, "jnp", np)
    net = SimpleNamespace(size=np.array([[1000.0]]), own_lag=np.array([[2.0]]))
    gate = SimpleNamespace(own=(True, False, True))
    made = SimpleNamespace(network=net, _gate=gate, _hop_flows=(0, 0, 1))
    both = lambda one, other: np.array([[one], [other]])  # noqa: E731
    z = SimpleNamespace(
        acked=both(acked, 5000.0), newly=both(newly, 1.0), finish=both(finish, 1.0),
        drain=np.array([[np.nan], [np.nan], [77.0]]), _replace=lambda drain: drain,
    )  # fmt: skip
    clock = SimpleNamespace(time=10.0, dt=0.5)
    found: Any = LosslessNetwork._drained(made, clock, z, None)  # pyright: ignore[reportArgumentType]
    np.testing.assert_allclose(np.ravel(found), [waited, np.nan if np.isnan(waited) else 0.0, 77.0])


@pytest.mark.parametrize(
    ("start", "lag", "on"), [(3.4, 0.0, True), (3.5, 0.0, False), (3.0, 0.4, True), (3.0, 0.5, False)]
)
def test_a_flow_sends_in_a_step_of_which_more_than_half_is_after_its_start(start: float, lag: float, on: bool) -> None:
    """Step 3 of one second."""
    clock = SimpleNamespace(step=3, dt=1.0)
    assert QueueNetwork._began(clock, start, lag) == on  # pyright: ignore[reportArgumentType]


# -- what of flow control is modelled ----------------------------------------------------------------------------------


def gate_of(pfc: Any, **options: Any) -> Any:
    """Two flows: a class of two from host a over both links, and one from host b over the second."""
    links = (fc.Link("100Gbps", "1us"), fc.Link("100Gbps", "2us", marking=fc.RED("10KB", "40KB", 1.0)))
    known = {"line_rate": "100Gbps", "scheme": options.pop("scheme", fc.ACC())}
    flows = (
        fc.Flow(path=(0, 1), multiplicity=2, access_delay="3us", **known),
        fc.Flow(path=(1,), access_delay="4us", **known),
    )
    return network_of(resolve(fc.Scenario(links, flows, pfc=pfc, buffer="9MB", **options))).ingress


def test_ingresses_are_hosts_cables_and_links() -> None:
    """The host of flow 0, then the first link's far end, then the host of flow 1; a class shares its host's."""
    found = gate_of(fc.PFC(xoff="100KB", xon_gap="30KB", reserve="5KB"))
    assert found.hops == (0, 1, 2)
    assert found.count == 3
    assert found.ports == (1, -1)
    assert found.hosts == (0, 2)
    assert found.own == (True, False, True)
    assert np.ravel(found.delay) == pytest.approx([3e-6, 1e-6, 4e-6])
    assert np.ravel(found.share).tolist() == [0.5, 1.0, 1.0]
    stored = 1000 * 8 / 100e9  # of a packet, at its host and at each link
    assert np.ravel(found.hop_lag) == pytest.approx([3e-6 + stored, 1e-6 + stored, 4e-6 + stored], rel=1e-9)
    back = [2e-6 + stored + 6e-6, 2e-6 + stored + 6e-6]  # the last link, and the whole way back
    acks = np.ravel(found.ack_lag) - back
    assert ((acks >= 0) & (acks < 2 * stored)).all()
    assert np.ravel(found.max_on).tolist() == [-1.0, -1.0]
    assert np.ravel(found.xoff).tolist() == [105e3]
    assert np.ravel(found.xon).tolist() == [75e3]


@pytest.mark.parametrize(
    "given", [{"pfc": None}, {"pfc": fc.PFC(alpha=0.5)}, {"pfc": fc.PFC("100KB"), "scheme": fc.DCQCN()}]
)
def test_flow_control_that_no_scheme_looks_at_or_without_a_fixed_threshold_is_left_out(given: dict[str, Any]) -> None:
    assert gate_of(**given) is None
