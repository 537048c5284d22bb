"""The contract that the parts of a scheme satisfy: all that engines and theory know of it.

A scheme is a package with ``parameters`` and, next to it, the sides that it has: ``law``, ``fluid``, ``packet``,
``hybrid``, ``equilibrium``, ``crosscheck``. Each side is a module, and each protocol here says what such a module
holds. Optional parts are in separate protocols, and `fluidcc.contract.models` fills in what is left out. A ``law`` is
enough: see `examples/own_scheme`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from jax import Array

    from fluidcc.contract.bind import PathInformation
    from fluidcc.contract.preset import Preset
    from fluidcc.contract.signals import Progress, Signals
    from fluidcc.contract.tolerance import Tolerance
    from fluidcc.scenario.model import Flow, Scenario

P_contra = TypeVar("P_contra", contravariant=True)  # a scheme's parameters
S = TypeVar("S")  # the state of its fluid side, a NamedTuple of arrays
F = TypeVar("F")  # what its fluid side makes of the lagged signals
Observables = Mapping[str, tuple[str, str]]  # unit and meaning of what a trace shows, by name


class Parameters(Protocol):
    """Parameters of a scheme: a frozen dataclass made by `fluidcc.scenario.parameters.register`.

    Every number in them may be swept, and so be traced. They neither check nor convert in ``__post_init__``, which runs
    at every unflatten.
    """

    name: ClassVar[str]  # in lower case, words joined by dashes; the folder's name has underscores in their place
    default_marking: ClassVar[Any]  # RED of links that are given none, or None
    default_rate: ClassVar[str]  # of links and NICs on the command line, if none is given

    @property
    def int_bytes(self) -> Any:
        """Bytes that each packet carries for the scheme; 0 without telemetry."""
        ...

    @property
    def feedback_delay(self) -> Any:
        """Control-loop delay of the fluid, instead of the path's [s]; None: that of the path."""
        ...

    @property
    def feedback_pause(self) -> Any:
        """Time for which feedback waits at the receiver, in addition to the path's delays [s]."""
        ...

    def bind(self, path: PathInformation, /) -> Any:
        """The same parameters with all that they leave to the scenario filled in, for every engine.

        Raises
        ------
        InputError
            If they do not go with the path; not of traced values.
        """
        ...


class Modest(Parameters, Protocol):
    """Parameters of a scheme that leaves a part of the link free on purpose; without it, it aims at all of it."""

    @property
    def target_utilisation(self) -> Any:
        """Share of a link that it aims to use."""
        ...


class SchemePackage(Protocol):
    """Contents of a scheme's package itself; its sides are imported when first used."""

    @property
    def Parameters(self) -> type[Any]:
        """The parameters' class."""
        ...

    @property
    def PRESETS(self) -> Mapping[str, Preset]:
        """Named sets of parameters, among them ``"paper"``, the command line's default."""
        ...


# -- the fluid side: schemes/NAME/fluid.py -----------------------------------------------------------------------


class FluidSide(Protocol[P_contra, S, F]):
    """Equations of the flows that run a scheme: arrays are (flows, points), `Signals` what flows observe.

    ``NEEDS`` names what the network must follow for the scheme in addition to marks (`fluidcc.contract.signals`), and
    ``ONLY`` the one value of each switch that the fluid models, where packets have more; both may be left out.
    """

    @property
    def OBSERVABLES(self) -> Observables:
        """Observables that a trace shows in addition to queue and rate."""
        ...

    def start(self, parameters: P_contra, initial_rate: Array, shape: tuple[int, int], hops: int, /) -> S:
        """State at a flow's start; ``hops`` is the length of the longest path."""
        ...

    def rate(self, state: S, /) -> Array:
        """Sending rate, or the rate of the pacer [bytes/s]."""
        ...

    def feedback(self, parameters: P_contra, signals: Signals, /) -> F:
        """Compute all that depends on the lagged signals alone, once for each row of the history."""
        ...

    def derivative(self, parameters: P_contra, state: S, feedback: F, /) -> S:
        """The state's derivative, per second."""
        ...

    def observables(self, state: S, /) -> dict[str, Array]:
        """Return the observables by the names of ``OBSERVABLES``, without those of a mechanism that is off."""
        ...

    def time_scale(self, parameters: P_contra, line_rate: Any, /) -> Any:
        """Shortest time constant [s]; a step is a quarter of it at most."""
        ...


class Projecting(FluidSide[P_contra, S, F], Protocol):
    """A fluid side with limits: after each step its state is put back between them."""

    def project(self, parameters: P_contra, state: S, line_rate: Array, /) -> S:
        """The nearest state within limits."""
        ...


class Comparing(Projecting[P_contra, S, F], Protocol):
    """A fluid side that compares the delays of two packets (``NEEDS`` has ``"delay"``)."""

    def interval(self, parameters: P_contra, state: S, /) -> Array:
        """Time between the two packets [s]."""
        ...

    def longest_interval(self, parameters: P_contra, /) -> Any:
        """Bound on it [s]."""
        ...


class Jumping(FluidSide[P_contra, S, F], Protocol):
    """A fluid side that counts ACKs, and changes its state as they come (``NEEDS`` has ``"inflight"``)."""

    def jump(self, parameters: P_contra, state: S, progress: Progress, feedback: F, /) -> S:
        """The state after a step whose ACKs are these."""
        ...


class Windowed(Jumping[P_contra, S, F], Protocol):
    """A fluid side whose window limits the bytes in flight."""

    def window(self, parameters: P_contra, state: S, /) -> Any:
        """The limit [bytes]."""
        ...

    def largest_window(self, parameters: P_contra, /) -> Any:
        """Bound on it [bytes], from which the length of the history follows."""
        ...


class Halting(Jumping[P_contra, S, F], Protocol):
    """A fluid side whose flows at times send less than their rate."""

    def sending(self, parameters: P_contra, state: S, dt: Array, /) -> Array:
        """Rate of the step ahead [bytes/s]."""
        ...


# -- the packet side: schemes/NAME/packet.py ---------------------------------------------------------------------


class PacketSide(Protocol[P_contra]):
    """A sender in the packet engine: a record of its state, and rules that are called as things happen.

    Rules are decorated with ``kernel`` or ``inlined`` of `fluidcc.engines.common.jit`, and each takes what it names:
    ``sim``, ``core``, ``ports``, ``uniforms``, ``flow``, ``state`` (its row of ``STATE``), ``f`` (its number) and

    - ``begin``: the flow starts;
    - ``on_ack(ack)``: an ACK reaches the sender;
    - ``on_cnp(cnp)``: a CNP does;
    - ``on_timer(which)``: one of its timers runs out;
    - ``on_sent(size)``: a packet of the flow leaves;
    - ``on_loss(size, why, when)``: the sender learns that a packet is lost, of so many bytes as windows count them: why
      is ``LOST_TRIMMED`` (a NACK of its header came; it was sent at ``when`` [ps]), ``LOST_GAP`` (later packets came)
      or ``LOST_TIMEOUT`` of `fluidcc.engines.packet.layout`; without loss recovery it never does;
    - ``observe(samples, row)``: write the ``OBSERVABLES``, in their order, to ``samples[row, f, 3]`` and on;
    - ``on_packet(packet, flows)``: data reaches a receiver that decides when it answers (``flow.notifies``); true to
      answer now;
    - ``on_answer(packet)``: it answers by this packet.

    A rule that is left out does nothing. A module may further have ``BASE``, the name of a scheme whose record and
    rules its own add to, and ``ONLY``, as a fluid side has.
    """

    @property
    def STATE(self) -> np.dtype[Any]:
        """Aligned record of a flow's parameters and state; no field is named like an attribute of NumPy scalars."""
        ...

    @property
    def OBSERVABLES(self) -> Observables:
        """Observables that a trace shows in addition to queue and rate."""
        ...

    def init_state(self, parameters: P_contra, flow: Any, state: Any, /) -> None:
        """Copy bound parameters into a flow's zeroed record; times in the unit that the rules use."""
        ...


class Shown(PacketSide[P_contra], Protocol):
    """A packet side that shows some of its ``OBSERVABLES`` with some parameters only."""

    def shown(self, parameters: P_contra, /) -> int:
        """Return how many of the ``OBSERVABLES`` it shows, from the first on."""
        ...


# -- the hybrid side: schemes/NAME/hybrid.py ---------------------------------------------------------------------


class HybridSide(Protocol[P_contra]):
    """A sender between fluid queues: a record of its state, and rules that are called as things happen.

    Rules are decorated with ``kernel`` of `fluidcc.engines.common.jit`, and each takes what it names: ``flow``,
    ``state`` (its row of ``STATE``), ``f`` (the flow's number), ``now`` [s], and

    - ``begin``: the flow starts, at ``flow.rate``;
    - ``on_cnp``: a CNP reaches the sender;
    - ``on_timer``: the time ``flow.timer`` [s] has come;
    - ``on_bytes``: the packets that have left, ``flow.gone``, have come to ``flow.counter`` [wire bytes];
    - ``observe(samples, row)``: write the ``OBSERVABLES``, in their order, to ``samples[row, f, 2]`` and on.

    They set ``flow.rate`` [bytes/s], and ``flow.timer`` and ``flow.counter``, which are infinite at first and must come
    to lie ahead. ``init_state`` sets ``flow.cnp_interval`` [s] if the receiver is to send CNPs. A rule that is left out
    does nothing; ``ONLY`` is that of a fluid side, and ``PACED_BY`` names the parameters, times or bytes, after which
    again and again something happens: from them follows how many events a run takes.
    """

    @property
    def STATE(self) -> np.dtype[Any]:
        """Aligned record of a flow's parameters and state; no field is named like an attribute of NumPy scalars."""
        ...

    @property
    def OBSERVABLES(self) -> Observables:
        """Observables that a trace shows in addition to queue and rate."""
        ...

    def init_state(self, parameters: P_contra, flow: Any, state: Any, /) -> None:
        """Copy bound parameters into a flow's zeroed record; times in seconds."""
        ...


# -- the law: schemes/NAME/law.py --------------------------------------------------------------------------------


class LawSide(Protocol[P_contra]):
    """A scheme's law, written once for fluid, packets and the flow level: pure functions over a vocabulary ``xp``.

    The module has ``import numpy as xp``; `fluidcc.contract.law` says what else ``xp`` is. ``parameters`` are bound,
    ``state`` is a ``State``, ``progress`` a `fluidcc.contract.signals.Progress`, ``observed`` the probability that a
    packet acknowledged in the step carries a mark; with ``on_hop(parameters, queue, output, arriving, capacity)``, the
    largest of what that makes of the path's links. ``NEEDS`` names what the law uses in addition to marks and bytes:
    ``"telemetry"`` (``on_hop``), ``"delay"`` (``progress.rtt``) or ``"undetermined"`` (marks UE, which the flow level
    does not follow); ``ONLY`` is that of a fluid side. ``SWITCHES`` are the parameters' properties that are true or
    false: a law asks for these, not for words.

    A law without a window is of rates: the fluid follows its slope, which is what ``on_step`` changes in a time over
    that time, as the time goes to 0. It may use ``dt``, ``newly``, the packet and the line rate of ``progress``. A law
    branches (``if``) on its parameters' switches alone; `fluidcc.contract.checks` tries each law once.

    Without a law a scheme runs at flow level on its hybrid side, if it has one.
    """

    @property
    def State(self) -> type[Any]:
        """NamedTuple of floats."""
        ...

    def start(self, parameters: P_contra, initial_rate: Any, /) -> Any:
        """Return the state before the first ACK."""
        ...

    def on_step(self, parameters: P_contra, state: Any, progress: Any, observed: Any, /) -> Any:
        """Return the state after the ACKs of a step."""
        ...

    def rate(self, state: Any, /) -> Any:
        """Sending rate, or the rate of the pacer [bytes/s]."""
        ...


class WindowLaw(LawSide[P_contra], Protocol):
    """A law whose window limits the bytes in flight; it acts as ACKs come."""

    def window(self, parameters: P_contra, state: Any, /) -> Any:
        """Limit of the bytes in flight, as windows count them."""
        ...

    def largest_window(self, parameters: P_contra, /) -> Any:
        """Bound on it [bytes], from which the length of the fluid's history follows."""
        ...


class TelemetryLaw(LawSide[P_contra], Protocol):
    """A law that looks at the links of its path (``NEEDS`` has ``"telemetry"``)."""

    def on_hop(self, parameters: P_contra, queue: Any, output: Any, arriving: Any, capacity: Any, /) -> Any:
        """Return what it observes of a link, by its queue [bytes] and rates [bytes/s]."""
        ...


# -- fixed points: schemes/NAME/equilibrium.py -------------------------------------------------------------------


class FixedPoint(Protocol):
    """State of a flow that does not move."""

    @property
    def rate(self) -> float:
        """[bytes/s]."""
        ...

    def observables(self) -> dict[str, float]:
        """Return what `fluidcc equilibrium` shows of the fixed point, by keys that end in their unit."""
        ...


class EquilibriumSide(Protocol[P_contra]):
    """The part of the fluid side that moves near a fixed point, so that it can be searched for and linearised.

    The optional ``late(state)`` makes a state that has seen ACKs of one at the start, and ``SMOOTH_INSTEAD`` says which
    parameters are smooth if these are not.
    """

    @property
    def MOVES(self) -> tuple[str, ...]:
        """Fields of the fluid state that move by themselves."""
        ...

    def smooth(self, parameters: P_contra, /) -> bool:
        """Check whether these fields move without jumps."""
        ...


class SolvedByMarking(EquilibriumSide[P_contra], Protocol):
    """An equilibrium side that solves for a flow's rate under a constant marking, apart from the fluid side."""

    def solve_equilibrium(self, parameters: P_contra, marking: float, line_rate: float, packet: float, /) -> FixedPoint:
        """A fixed point, if there are several; rates in bytes/s, the packet on the wire in bytes."""
        ...


class SolvedByRate(SolvedByMarking[P_contra], Protocol):
    """Equilibrium side that also solves for the marking under a constant rate, to find all fixed points of a link.

    ``single_marking(parameters)`` may say that for some parameters several markings hold a rate, and
    ``largest_rate(parameters, line_rate)`` that a flow stays below its line rate; all others are then given that rate.
    """

    def marking_at(self, parameters: P_contra, rate: Any, line_rate: float, packet: float, /) -> Any:
        """Probability that holds a flow at each of some rates [bytes/s]; 0 where it falls anyway, 1 where it grows."""
        ...

    def fixed_point(
        self, parameters: P_contra, rate: float, marking: float, line_rate: float, packet: float, /
    ) -> FixedPoint:
        """The state at a rate and the marking that holds it."""
        ...

    def least_rate(self, parameters: P_contra, line_rate: float, /) -> float:
        """Least rate of a flow [bytes/s], held there by any marking that is large enough."""
        ...


class SolvedByUtilisation(EquilibriumSide[P_contra], Protocol):
    """An equilibrium side that solves for rates by the utilisation of their path (`hpcc.equilibrium.Balance`)."""

    def balances(self, scenario: Scenario, /) -> Callable[[Flow], Any]:
        """Return a function from a flow to the conditions that determine its rate."""
        ...

    def observables(self, window: float, utilisation: float, /) -> dict[str, float]:
        """Return what `fluidcc equilibrium` shows of a flow, by keys that end in their unit."""
        ...


class Multipliers(NamedTuple):
    """Factors by which small deviations from an equilibrium are multiplied from one update to the next.

    Parameters
    ----------
    period : float
        Time between updates [s].
    together, apart : complex
        The largest of equal flows that change together, and of differences between them.
    """

    period: float
    together: complex
    apart: complex


class InUpdates(EquilibriumSide[P_contra], Protocol):
    """An equilibrium side of a scheme that changes its state in updates, once in a round trip."""

    def multipliers(self, parameters: P_contra, observed: Mapping[str, float], round_trip: float, /) -> Multipliers:
        """Return the multipliers at an equilibrium, given what `fluidcc equilibrium` shows of a flow.

        Parameters are bound, the round trip is that through empty queues [s].

        Raises
        ------
        NoClosedFormError
            If they are not known there; the message says why, and what to write.
        """
        ...


class Noise(Protocol):
    """Random perturbation of a flow's moving states, as a stationary process."""

    def __call__(self, frequency: np.ndarray[Any, Any], /) -> np.ndarray[Any, Any]:
        """Compute the spectral density at w > 0 [rad/s], (frequencies, m, m) for the m ``MOVES``; two-sided.

        It is that of the process n in x' = A x + n, for a flow alone: its integral over all w, divided by 2 pi, is the
        variance of n.
        """
        ...


class Random(EquilibriumSide[P_contra], Protocol):
    """An equilibrium side of a scheme whose feedback is random, as marks are."""

    def noise(self, parameters: P_contra, state: Mapping[str, float], marking: float, packet: float, /) -> Noise:
        """Noise of a flow at an equilibrium: of ``MOVES`` by name, marked with a probability along its path.

        The packet is that on the wire [bytes].

        Raises
        ------
        NoClosedFormError
            If it is not known for these parameters; the message says why.
        """
        ...


# -- the two engines against each other: schemes/NAME/crosscheck.py ----------------------------------------------


class CrosscheckSide(Protocol):
    """Tolerances of the fluid side against packets, with their reasons."""

    @property
    def UNTIL(self) -> str:
        """Time for which both are run."""
        ...

    def tolerances(self, scenario: Scenario, /) -> dict[str, Tolerance]:
        """Return tolerances by the keys of `Comparison.difference`; none where nothing is claimed."""
        ...
