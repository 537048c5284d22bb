"""Answers for a setting: first what needs no compiling, then its runs over time and its roots, then its chart."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import Any

from fluidcc.errors import InputError
from fluidcc.explorer import views
from fluidcc.explorer.chart import Chart, Charts
from fluidcc.explorer.settings import Setting

_charts = Charts()  # what they compile serves all pages
_seen: set[Any] = set()  # kinds of settings that have been answered, and so are compiled
_COMPILING = "the hybrid follows; the first of its kind is compiled, some seconds ..."


@dataclasses.dataclass(frozen=True)
class Answer:
    """Answer for a setting, without the chart, which follows later.

    Parameters
    ----------
    setting : Setting
    fluid : Run
    hybrid : Run or None
    hybrid_why : str
        Why there is no hybrid.
    roots : RootMap or None
        None while they are worked out.
    seconds : float
        That it took so far.
    whole : bool
        Whether nothing follows but the chart.
    """

    setting: Setting
    fluid: views.Run
    hybrid: views.Run | None
    hybrid_why: str
    roots: views.RootMap | None
    seconds: float
    whole: bool = False

    def has_runs_of(self, before: Answer | None) -> bool:
        """Check whether another answer drew the same runs."""
        if before is None or self.hybrid_why != before.hybrid_why:
            return False
        return self.fluid is before.fluid and self.hybrid is before.hybrid


def answers(setting: Setting) -> Iterator[Answer]:
    """Yield the runs as soon as they are there, then the same with the roots, which take as long again.

    The hybrid takes longer to compile than all else: before it is compiled, fluid and roots do not wait for it.

    Raises
    ------
    InputError
        If the setting makes no sense.
    """
    began = time.perf_counter()
    scenario = setting.scenario()
    fluid = views.fluid(scenario, setting.until)
    roots = None
    if not is_compiled(setting) and views.has_hybrid(scenario):
        yield Answer(setting, fluid, None, _COMPILING, None, time.perf_counter() - began)
        roots = views.root_map(scenario)
        yield Answer(setting, fluid, None, _COMPILING, roots, time.perf_counter() - began)
    hybrid, why = None, f"{setting.scheme} has no hybrid side"
    try:
        hybrid = views.hybrid(scenario, setting.until)
    except InputError as error:
        why = str(error)
    runs = Answer(setting, fluid, hybrid, why if hybrid is None else "", roots, time.perf_counter() - began)
    yield runs
    if roots is None:
        roots = views.root_map(scenario)
    _seen.add(_kind(setting))
    yield dataclasses.replace(runs, roots=roots, seconds=time.perf_counter() - began, whole=True)


def chart_of(setting: Setting, axes: tuple[str, ...]) -> Chart:
    """The chart about a setting; as `Charts.of`."""
    return _charts.of(setting, axes)


def is_compiled(setting: Setting) -> bool:
    """Check whether a setting of the same kind has been answered, so that this one likely needs no compiling."""
    return _kind(setting) in _seen


def _kind(setting: Setting) -> Any:
    """Return the part of a setting that selects compiled code: names, and values that are not plain numbers."""
    knobs = setting.knobs
    fixed = tuple((name, text) for name, text in setting.values if not knobs[name].stops)
    shape = tuple(setting.value(name) == 0 for name in ("late",) if name in knobs)
    return setting.scheme, setting.preset, setting.topology, fixed, shape
