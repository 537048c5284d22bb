"""Engines that draw random numbers over several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from fluidcc.engines.run import simulate
from fluidcc.engines.run_many import run_all
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario
from fluidcc.surface import keywords, public
from fluidcc.units import whole

_MOST_SEEDS = 10_000


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
