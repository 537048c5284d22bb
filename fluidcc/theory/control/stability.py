"""Stability of a scenario's equilibrium, and how robust it is: roots of every mode, margins, critical delay."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from fluidcc.dde.characteristic import Abscissa, abscissa
from fluidcc.dde.response import critical_delay
from fluidcc.errors import InputError, NoClosedFormError
from fluidcc.results.text import label, shown
from fluidcc.scenario import html
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.surface import constructor, public
from fluidcc.theory.control.fixed_point import Equilibrium
from fluidcc.theory.control.linearize import Linearization, NoEquilibriumError, linearize
from fluidcc.theory.control.noise import QueueNoise, queue_noise
from fluidcc.theory.control.states import UnfilledError, smooth_side
from fluidcc.theory.control.updates import has_updates, roots_of_updates

# Where the hybrid was within 25 % of the predicted deviation, in nine of ten random settings: benchmarks/noise.py.
_MARGIN, _CLEAR = 12.0, 4.0  # degrees, deviations


@constructor()
@dataclasses.dataclass(frozen=True, repr=False)
class Stability:
    """Stability of a scenario's equilibrium; numbers that there are none of are None.

    Parameters
    ----------
    flows : float
    exists, on_ramp : bool or None
        As in `Equilibrium`. Where ``on_ramp`` is false it is of the RED line extended beyond kmax. None where a
        scheme changes its state in jumps: whether that settles is for `equilibrium` to say.
    stable : bool or None
        Whether all roots of all modes lie left of the axis.
    aggregate_root, fairness_root : complex or None
        Rightmost root of the merged flows, and of differences between equal flows [1/s]; log(z)/D for a multiplier z
        of updates a round trip D apart.
    phase_margin, paper_phase_margin : float or None
        Of the loop cut at the most loaded queue [degrees]: exact, and of the scheme's published linearisation.
    gain_margin : float or None
        [dB]
    delay_margin : float or None
        Least delay [s] that, added at the cut, makes a stable loop oscillate without decay.
    critical_feedback_delay : float or None
        Where all that is observed is equally old, as with one feedback delay: the age at which the rightmost root
        crosses the axis, the equilibrium being stable without delay [s]. HPCC's includes a packet's time on the link.
    crossing_frequency : float or None
        Of that root [rad/s].
    state : str
        "ok", or why there are no numbers.
    queue_std_bytes : float or None
        Standard deviation of the most loaded queue that random feedback keeps up, to first order [bytes]
        (`control.noise`).
    queue_std_state : str
        "ok", why there is none, or why it is in doubt: less than 12 degrees of phase margin, or an empty queue less
        than four deviations away.
    noise : QueueNoise or None
        What it is worked out from, with the queue's spectrum.
    """

    flows: float
    exists: bool | None
    on_ramp: bool | None
    stable: bool | None = None
    aggregate_root: complex | None = None
    fairness_root: complex | None = None
    phase_margin: float | None = None
    paper_phase_margin: float | None = None
    gain_margin: float | None = None
    delay_margin: float | None = None
    critical_feedback_delay: float | None = None
    crossing_frequency: float | None = None
    state: str = "ok"
    queue_std_bytes: float | None = None
    queue_std_state: str = "there is no equilibrium"
    noise: QueueNoise | None = dataclasses.field(default=None, compare=False)

    def __repr__(self) -> str:
        """Show the verdict and the numbers that exist."""
        told = [f"{name} {text}" for name, text in self._rows() if text != "none"]
        return f"<Stability of {self.flows:g} flow{'s' * (self.flows != 1)}: {', '.join([self._verdict(), *told])}>"

    def _repr_html_(self) -> str:
        return html.table(f"Stability of {self.flows:g} flows: {self._verdict()}", self._rows())

    def _verdict(self) -> str:
        if self.stable is None:
            return self.state
        beyond = "" if self.on_ramp is not False else ", RED extended beyond kmax"
        return ("stable" if self.stable else "unstable") + beyond

    def _rows(self) -> list[tuple[str, str]]:
        values = {
            "rightmost_root_per_s": self.rightmost_root,
            "phase_margin_deg": self.phase_margin,
            "gain_margin_db": self.gain_margin,
            "delay_margin_s": self.delay_margin,
            "critical_feedback_delay_s": self.critical_feedback_delay,
            "queue_std_bytes": self.queue_std_bytes,
        }
        return [(label(key), shown(key, value)) for key, value in values.items()]

    @property
    def rightmost_root(self) -> complex | None:
        """Rightmost root of all modes [1/s]."""
        found = [root for root in (self.aggregate_root, self.fairness_root) if root is not None]
        return max(found, key=lambda root: root.real, default=None)

    @public()
    def as_dict(self) -> dict[str, Any]:
        """A point of the CLI's ``stability``."""
        pair = {name: _pair(getattr(self, name)) for name in ("rightmost_root", "aggregate_root", "fairness_root")}
        return {
            "flows": int(self.flows) if self.flows == int(self.flows) else self.flows,
            "exists": self.exists,
            "on_ramp": self.on_ramp,
            "stable": self.stable,
            **{f"{name}_per_s": value for name, value in pair.items()},
            "phase_margin_deg": {"exact": self.phase_margin, "paper": self.paper_phase_margin},
            "gain_margin_db": self.gain_margin,
            "delay_margin_s": self.delay_margin,
            "critical_feedback_delay_s": self.critical_feedback_delay,
            "crossing_frequency_rad_per_s": self.crossing_frequency,
            "queue_std_bytes": self.queue_std_bytes,
            "queue_std_state": self.queue_std_state,
            "state": self.state,
        }


def _pair(root: complex | None) -> list[float] | None:
    return None if root is None else [root.real, root.imag]


@public()
def stability(scenario: Scenario, *, at: Equilibrium | None = None) -> Stability:
    """Stability of a scenario's equilibrium, exact: no Padé approximation, no grid.

    Parameters
    ----------
    scenario : Scenario
        Of any schemes and links; all flows count as active and long-lived.
    at : Equilibrium
        Which of several, as `equilibrium` found it (one of its ``others``); that of equal shares if not given.

    Returns
    -------
    Stability
        With ``state`` other than "ok" where nothing settles, or nothing can be linearised: an oscillation, a queue
        that grows, windows that change in jumps. `limit_cycle` shows what a run does then.

    Raises
    ------
    InputError
        If the scenario itself makes no sense.

    Examples
    --------
    >>> round(stability(fluidcc.incast(8, scheme=fluidcc.DCQCN())).aggregate_root.real, 2)
    -47.73
    """
    scenario = resolve(scenario)
    count = float(sum(flow.multiplicity for flow in scenario.flows))
    there: bool | None = None
    try:
        for flow in scenario.flows:
            smooth_side(flow.scheme)
        there = False
        found = linearize(scenario, at=at)
    except UnfilledError as error:
        return Stability(count, True, False, state=str(error).removeprefix("linearize: "))
    except NoEquilibriumError as error:
        if there is None and has_updates(scenario):
            return _of_updates(scenario, count)
        return Stability(count, there, there, state=str(error).removeprefix("linearize: "))
    point = _of(scenario, found, count, at is None or len(found.equilibrium.flows) == 1)
    return _with_noise(point, scenario, found, at)


def _with_noise(point: Stability, scenario: Scenario, found: Linearization, at: Equilibrium | None) -> Stability:
    """Add the queue's standard deviation, near a stable equilibrium of the model as printed, where noise is small."""
    if not point.stable:
        return dataclasses.replace(point, queue_std_state="the equilibrium is not stable")
    if not point.on_ramp:
        return dataclasses.replace(point, queue_std_state="the equilibrium is not on the RED ramp")
    try:
        noise = queue_noise(scenario, found, at)
        std = noise.std_bytes()
    except NoClosedFormError as error:
        return dataclasses.replace(point, queue_std_state=str(error))
    margin, queue = point.phase_margin, max(link["queue_bytes"] for link in found.equilibrium.links)
    doubts = [
        text
        for text, there in (
            (f"less than {_MARGIN:g} degrees of phase margin", margin is not None and margin < _MARGIN),
            (f"an empty queue is less than {_CLEAR:g} deviations away", queue < _CLEAR * std),
        )
        if there
    ]
    state = f"in doubt: {', and '.join(doubts)}" if doubts else "ok"
    return dataclasses.replace(point, noise=noise, queue_std_bytes=std, queue_std_state=state)


def _of_updates(scenario: Scenario, count: float) -> Stability:
    """Stability of windows that change in updates, once in a round trip."""
    try:
        roots = roots_of_updates(scenario)
    except NoClosedFormError as error:
        return Stability(count, None, None, state=str(error))
    point = Stability(count, True, True, aggregate_root=roots.together, fairness_root=roots.apart)
    assert point.rightmost_root is not None
    why = "windows that change in updates have no loop to cut, and no noise is known of them"
    return dataclasses.replace(point, stable=point.rightmost_root.real < 0, queue_std_state=why)


def _of(scenario: Scenario, found: Linearization, count: float, equal: bool) -> Stability:
    fixed_point: Equilibrium = found.equilibrium
    aggregate = abscissa(found.system)
    fairness = [abscissa(each.system) for each in found.fairness]
    worst = max(fairness, key=lambda each: float(each.value), default=None)
    highest = max(float(each.value) for each in (aggregate, *fairness))
    # Where roots may be missed, the highest that was found is a lower bound: it can say unstable, not stable.
    states = {str(each.state) for each in (aggregate, *fairness)} - {"ok"}
    loop = found.loop()
    resolved = "ok"
    try:
        margins = None if loop is None else loop.margins()
    except ArithmeticError:  # after so long a delay the response turns faster than can be sampled
        margins, resolved = None, "unresolved: no margins, because the response turns too fast after so long a delay"
    gain = 0.0 if margins is None else margins.gain.value
    critical, crossing = _critical(found)
    return Stability(
        flows=count,
        exists=fixed_point.exists,
        on_ramp=fixed_point.on_ramp,
        stable=None if states and highest < 0 else highest < 0,
        aggregate_root=_root(aggregate),
        fairness_root=None if worst is None else _root(worst),
        phase_margin=None if margins is None else _finite(math.degrees(margins.phase.value)),
        paper_phase_margin=_published(scenario) if equal else None,
        gain_margin=_finite(20 * math.log10(gain)) if gain > 0 else None,
        delay_margin=None if margins is None or not margins.stable else _finite(margins.delay.value),
        critical_feedback_delay=critical,
        crossing_frequency=crossing,
        state=next(iter(states), resolved),
    )


def _critical(found: Linearization) -> tuple[float | None, float | None]:
    """Least critical value of the one delay over all modes, and its frequency; None if there are several."""
    late = [
        (system, np.flatnonzero(system.tau)) for system in (found.system, *(each.system for each in found.fairness))
    ]
    late = [(system, at) for system, at in late if len(at)]
    if not late or any(len(at) > 1 for _, at in late):
        return None, None
    least = min((critical_delay(system, int(at[0])) for system, at in late), key=lambda one: one.delay)
    return _finite(least.delay), least.frequency


def _published(scenario: Scenario) -> float | None:
    """Phase margin of the scheme's published linearisation [degrees], if it has one for this scenario."""
    try:
        return _finite(linearize(scenario, method="paper").phase_margin())
    except InputError:
        return None


def _root(found: Abscissa) -> complex | None:
    """None where not one root was found."""
    return complex(float(found.value), float(found.frequency)) if np.isfinite(found.value) else None


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
