"""One scenario in, one trace out: `simulate` validates, and gives the scenario to an engine; `ensemble` over seeds."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from fluidcc.contract.bind import binder
from fluidcc.engines.run_many import run_all
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results.schema import ENGINES
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.surface import keywords, public
from fluidcc.units import TIME, quantity, show, whole

_MOST_SEEDS = 10_000


def _say_fixed_delay(scenario: Scenario, engine: str) -> None:
    """Warn of a fixed feedback delay that was asked for, which only the fluid has; not of a scheme's own default."""
    fixed = {(type(flow.scheme), flow.scheme.feedback_delay) for flow in scenario.flows}
    for scheme, delay in fixed:
        own = getattr(scheme, "__dataclass_fields__", {}).get("feedback_delay")
        if delay is not None and (own is None or own.default is None or delay != quantity(own.default, TIME)):
            others = _following(scenario, scheme)
            effect = f"sets {', '.join(others)}, and delays nothing" if others else "has no effect"
            text = (
                f"feedback_delay: {show(float(delay), TIME)} {effect} with engine={engine!r}, where feedback "
                "takes as long as the path; give the path's delays, or write engine='fluid'"
            )
            warnings.warn(text, UserWarning, stacklevel=4)
            return


def _following(scenario: Scenario, kind: type) -> list[str]:
    """Return the parameters of a scheme that follow its feedback delay, such as a base RTT that is left to the path."""

    def bound(each: Scenario) -> list[Any]:
        filled = binder(each)
        return [filled(flow) for flow in each.flows if isinstance(flow.scheme, kind)]

    flows = [
        dataclasses.replace(flow, scheme=dataclasses.replace(flow.scheme, feedback_delay=None))
        for flow in scenario.flows
    ]
    pairs = [*zip(bound(scenario), bound(dataclasses.replace(scenario, flows=tuple(flows))), strict=True)]
    names = [field.name for field in dataclasses.fields(kind) if field.name != "feedback_delay"]
    return [name for name in names if any(getattr(one, name) != getattr(other, name) for one, other in pairs)]


_PACKETS_ALONE = ("ack_interval", "ack_queue", "start_policy", "egress_alpha", "trim_above")
_SENDERS = ("burst", "jitter")  # in the hybrid too


def _say_unused(scenario: Scenario, engine: str) -> None:
    """Warn of what differs from the default and is left out by an engine without packets."""
    default = {field.name: field.default for field in dataclasses.fields(Scenario)}
    names = (*_SENDERS, *_PACKETS_ALONE) if engine == "fluid" else _PACKETS_ALONE
    unused = [name for name in names if getattr(scenario, name) != default[name]]
    if engine == "fluid" and any(link.marking is not None and link.marking.counts_sending for link in scenario.links):
        unused.append("counts_sending")
    if unused:
        others = "'packet'" if {*unused} & {*_PACKETS_ALONE} else "'hybrid' or 'packet'"
        text = f"{', '.join(unused)}: without effect in the {engine}, which has no packets; write engine={others}"
        warnings.warn(text, UserWarning, stacklevel=4)


def _say_late(scenario: Scenario, until: float, interval: Any) -> None:
    """Warn of times that a run never sees: a number without a unit is of seconds, and was often meant otherwise."""
    starts = [(flow.start, f"flow {i} start") for i, flow in enumerate(scenario.flows)]
    delays = [(link.delay, f"link {i} delay") for i, link in enumerate(scenario.links)]
    beyond = [(time, name) for time, name in starts + delays if time >= until > 0]
    if interval is not None and (interval := quantity(interval, TIME, "sample_interval")) > until:
        beyond.append((interval, "sample_interval"))
    if beyond:
        time, name = beyond[0]
        others = f", and {len(beyond) - 1} more times are as long" if beyond[1:] else ""
        text = (
            f"{name}: {show(time, TIME)} is not within the run of {show(until, TIME)}{others}; write units, as in 10us"
        )
        warnings.warn(text, UserWarning, stacklevel=4)


@public()
def simulate(
    scenario: Scenario,
    until: Any = "200ms",
    *,
    window: Any = None,
    engine: str = "fluid",
    seed: int | None = None,
    dt: Any = None,
    rtol: Any = None,
    method: str = "heun",
    dtype: str = "float64",
    sample_interval: Any = None,
    estimate_error: bool = True,
    log: bool = False,
) -> Trace:
    """Run a scenario.

    Parameters
    ----------
    scenario : Scenario
    until : quantity
        Horizon [s]; plain numbers up to 10.
    window : pair of quantity, or text "A:B"
        Interval of the summary's metrics [s]; the second half of the run by default.
    engine : {"fluid", "hybrid", "packet"}
        The averaged fluid; the NIC's own algorithm on fluid queues; packets.
    seed : int
        Of random marking (hybrid, packet); the same seed gives the same run, bit for bit. 0 by default.
    dt : quantity
        Step [s] (fluid); chosen from the lags and the scheme's time constants by default.
    rtol : float
        Tolerance of a step, in place of ``dt``: the fluid's steps are then chosen by their error, estimated relative to
        each quantity or a tenth of its largest value. For schemes whose state changes in no jumps (DCQCN), without
        flows that end.
    method : {"heun", "rk4", "euler"}
        Fluid only.
    dtype : {"float64", "float32"}
        Fluid only.
    sample_interval : quantity
        Spacing of the trace [s]; ``until/2000`` by default, or up to twice that in the fluid,
        where it then divides the run. The summary does not depend on it.
    estimate_error : bool
        Whether to run again with half the step and report the difference, ``discretisation_error``, and with a third
        one to say whether that shrinks as it should (fluid). With ``rtol`` these have a tenth and ten times of it.
    log : bool
        Whether to keep every event of every packet, as variables ``event_*`` of the trace (packet).

    Returns
    -------
    Trace

    Raises
    ------
    InputError
        If the scenario or an option makes no sense.

    Examples
    --------
    >>> import fluidcc as fc
    >>> trace = fc.simulate(fc.incast(2), until="5ms")
    >>> trace.summary["queue_bytes"]["mean"] > 0
    True
    """
    for name, value, example in (("engine", engine, "packet"), ("method", method, "heun"), ("dtype", dtype, "float32")):
        if not isinstance(value, str):
            raise InputError(f"{name}: expected text, not {repr(value)[:40]}; write for example {example!r}")
    if engine not in ENGINES:
        raise InputError(f"engine: {str(engine)[:20]!r} is unknown; write fluid, hybrid or packet")
    until = quantity(until, TIME, "until")
    scenario = resolve(scenario)
    _say_late(scenario, until, sample_interval)
    if engine != "fluid":
        _say_fixed_delay(scenario, engine)
    if engine != "fluid" and (dt is not None or rtol is not None or method != "heun" or dtype != "float64"):
        raise InputError(f"dt, rtol, method, dtype: belong to the fluid engine; leave them out with engine={engine!r}")
    if engine != "packet":
        _say_unused(scenario, engine)
    if engine == "hybrid":
        if log:
            raise InputError("log: belongs to the packet engine; leave it out, or write engine='packet'")
        from fluidcc.engines.hybrid import run as hybrid

        return hybrid.simulate(scenario, until, window=window, seed=seed, sample_interval=sample_interval)
    if engine == "packet":
        from fluidcc.engines.packet import run  # Numba takes a second to import

        return run.simulate(scenario, until, window=window, seed=seed, sample_interval=sample_interval, log=log)
    if seed is not None or log:
        raise InputError("seed, log: belong to the other engines; leave them out, or write engine='packet'")
    from fluidcc.engines.fluid import run as fluid  # JAX takes two

    return fluid.simulate(
        scenario,
        until,
        window=window,
        dt=dt,
        rtol=rtol,
        method=method,
        dtype=dtype,
        sample_interval=sample_interval,
        estimate_error=estimate_error,
    )


@public(passes_on=[name for name in keywords(simulate) if name not in ("engine", "seed")])
def ensemble(
    scenario: Scenario, until: Any, seeds: int | Sequence[int] = 8, *, engine: str = "packet", **options: Any
) -> list[Trace]:
    """Run an engine that draws random numbers once per seed.

    Parameters
    ----------
    scenario : Scenario
    until : quantity
        Horizon [s].
    seeds : int or sequence of int
        How many seeds, from 1, or which.
    engine : {"packet", "hybrid"}
    **options
        As of `simulate`.

    Returns
    -------
    list of Trace
        One per seed.

    Raises
    ------
    InputError
        If there is no seed, the engine draws none, or as of `simulate`.
    """
    if np.ndim(seeds) == 0:
        chosen: Sequence[int] = range(1, whole(seeds, 1, _MOST_SEEDS, "seeds", "; give at least 1") + 1)
    else:
        chosen = list(cast(Sequence[int], seeds))
    if not chosen:
        raise InputError("seeds: there are none; give at least 1")
    if engine not in ("packet", "hybrid"):
        raise InputError(f"engine: {str(engine)[:20]!r} draws no random numbers; write packet or hybrid")
    with Bar(f"simulating, {engine}", len(chosen), "seeds") as bar:
        return run_all(
            lambda seed, _: simulate(scenario, until, engine=engine, seed=seed, **options), chosen, report=bar
        )
