"""Filling in what a scheme's parameters leave to the scenario, once for all engines."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from fluidcc.scenario.model import Flow, Scenario, base_rtt
from fluidcc.scenario.round_trips import (
    base_rtt_with_serialisation,
    largest_base_rtt,
    least_bdp,
    payload_base_rtt,
    serialisation_rtt,
    slowest_rate,
    switches,
)


class _Shared:
    """Quantities that all flows of a scenario share, each computed once and only if a scheme needs it."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario

    @cached_property
    def largest_base_rtt(self) -> Any:
        return largest_base_rtt(self.scenario)

    @cached_property
    def largest_payload_rtt(self) -> Any:
        return largest_base_rtt(self.scenario, payload_base_rtt)

    @cached_property
    def least_bdp(self) -> Any:
        return least_bdp(self.scenario)


class PathInformation:
    """A sender's knowledge of its network, each number computed when it is read; values may be traced.

    Parameters
    ----------
    flow : Flow
        Resolved, of the scenario.
    shared : object
        Quantities that it shares with the scenario's other flows.
    """

    def __init__(self, flow: Flow, shared: _Shared) -> None:
        self.flow = flow
        self._shared = shared

    @property
    def scenario(self) -> Scenario:
        """The scenario itself, resolved."""
        return self._shared.scenario

    @property
    def line_rate(self) -> Any:
        """Rate of the sender's NIC [bytes/s]."""
        return self.flow.line_rate

    @property
    def slowest_rate(self) -> Any:
        """Least rate of the NIC and the links on the path [bytes/s]."""
        return slowest_rate(self.scenario, self.flow)

    @property
    def base_rtt(self) -> Any:
        """Round trip of the empty path with serialisation [s]; a feedback delay replaces its propagation."""
        return base_rtt_with_serialisation(self.scenario, self.flow)

    @property
    def empty_rtt(self) -> Any:
        """The same, whatever the feedback delay: as packets measure it [s]."""
        return base_rtt(self.scenario, self.flow) + serialisation_rtt(self.scenario, self.flow)

    @property
    def largest_base_rtt(self) -> Any:
        """Largest ``base_rtt`` of the scenario's flows [s]."""
        return self._shared.largest_base_rtt

    @property
    def largest_payload_rtt(self) -> Any:
        """The same as the HPCC authors' simulator counts it, which serialises payload alone [s]."""
        return self._shared.largest_payload_rtt

    @property
    def least_bdp(self) -> Any:
        """Least bandwidth-delay product of the scenario's paths [bytes]."""
        return self._shared.least_bdp

    @property
    def packet(self) -> Any:
        """A packet on the wire [bytes]."""
        return self.scenario.wire_packet_of(self.flow)

    @property
    def window_packet(self) -> Any:
        """A packet as windows count it [bytes]."""
        return self.packet if self.scenario.window_unit == "wire" else self.scenario.packet_size

    @property
    def switches(self) -> int:
        """Switches on the path."""
        return switches(self.scenario, self.flow)

    @property
    def trims(self) -> bool:
        """Check whether switches trim packets for which they have no room."""
        return self.scenario.loss_recovery == "trimming"

    @property
    def share(self) -> Any:
        """Share of a link that the flow's traffic class is guaranteed among those of its priority."""
        classes = self.scenario.classes
        mine = classes[round(self.flow.traffic_class)]
        return mine.weight / sum(each.weight for each in classes if each.priority == mine.priority)


def binder(scenario: Scenario) -> Callable[[Flow], Any]:
    """Return a function from a flow of a resolved scenario (values may be traced) to its scheme's bound parameters."""
    shared = _Shared(scenario)
    return lambda flow: flow.scheme.bind(PathInformation(flow, shared))


def bind(scenario: Scenario, flow: Flow) -> Any:
    """A flow's parameters with all that they leave to its resolved scenario filled in.

    Raises
    ------
    InputError
        If they do not go with the path.
    """
    return binder(scenario)(flow)
