"""Answers for a setting: first what needs no compiling, then its runs over time and its roots, then its chart."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fluidcc.dde.delay_system import Array
from fluidcc.errors import InputError
from fluidcc.explorer import views
from fluidcc.explorer.settings import TRAFFIC, Knob, Setting
from fluidcc.explorer.views import no_equilibrium
from fluidcc.studies.sweeps.chart import RootFinder

SIDE = 22  # points along each axis: 484 at once
_KEPT = 6  # compiled charts that are held
_NO_AXES = ("late", "late_start", "until", "links")
_seen: set[Any] = set()  # kinds of settings that have been answered, and so are compiled
_COMPILING = "the hybrid follows; the first of its kind is compiled, some seconds ..."


class Chart(NamedTuple):
    """Rightmost roots over two values.

    Parameters
    ----------
    names : tuple of str
        Of the axes.
    x, y : ndarray
        In SI.
    root : ndarray
        Real part of the rightmost root of all modes [1/s], (len(y), len(x)); NaN where there is no equilibrium.
    why : str
        Why there is no chart; else empty.
    """

    names: tuple[str, ...]
    x: Array
    y: Array
    root: Array
    why: str = ""


def axes_of(setting: Setting) -> list[str]:
    """Names that a chart can have as axes: those with a slider, and an influence on the equilibrium."""
    movable = [name for name, knob in setting.knobs.items() if knob.stops and knob.main and name not in _NO_AXES]
    return [name for name in movable if (setting.value(name) or 0.0) > 0]


def default_axes(setting: Setting) -> tuple[str, ...]:
    """The plane that papers draw: flows and delay; without these the first two that there are, or fewer."""
    names = axes_of(setting)
    wanted = [name for name in ("flows", "feedback_delay", "delay") if name in names]
    chosen = [*wanted[:2], *(name for name in reversed(names) if name not in wanted[:2])]
    return tuple(chosen[:2])


def _axis(knob: Knob, value: float) -> Array:
    """Values along an axis, through the slider's range, and the setting's own."""
    low, high = knob.stops[0], knob.stops[-1]
    low, high = min(low, value), max(high, value)
    if knob.spec.integer:
        return np.unique(np.round(np.linspace(max(low, 1), high, SIDE)))
    even = np.ptp(np.diff(knob.stops)) < 1e-6 * high
    return np.linspace(low or high / 100, high, SIDE) if even else np.geomspace(low, high, SIDE)


class Charts:
    """Makes charts; those of one kind of setting share what was compiled, whatever their values. For one thread."""

    def __init__(self) -> None:
        self._grids: OrderedDict[Any, RootFinder] = OrderedDict()
        self._last: tuple[Any, Chart] | None = None
        self._lock = threading.Lock()

    def of(self, setting: Setting, axes: tuple[str, ...]) -> Chart:
        """A chart about a setting; where the scheme cannot be linearised, or lacks axes, it is empty and says why.

        Raises
        ------
        InputError
            If the setting makes no sense, or an axis is none of its values.
        """
        empty = np.empty(0)
        why = no_equilibrium(setting.scenario())
        if why or len(axes) != 2:
            why = why or "no chart: it has two axes, and fewer values here have a range"
            return Chart(axes, empty, empty, np.empty((0, 0)), why)
        for name in axes:
            if name not in axes_of(setting):
                raise InputError(f"axis: {name[:40]!r} has no range here; write one of {', '.join(axes_of(setting))}")
        if axes[0] == axes[1]:
            raise InputError(f"axis: {axes[0]} is on both; choose another for one of them")
        numbers = setting.numbers() | ({"late": 0.0} if "late" in setting.knobs else {})  # all count as active
        x, y = (_axis(setting.knobs[name], numbers[name]) for name in axes)
        rest = tuple((name, value) for name, value in numbers.items() if name not in (*axes, *_NO_AXES))
        names = (setting.scheme, setting.preset, setting.topology, id(setting.given), *axes)
        key = (names, rest, tuple(x), tuple(y), numbers.get("links"))
        with self._lock:
            if self._last is not None and self._last[0] == key:
                return self._last[1]
            moved = {name: float(value) for name, value in numbers.items() if _traced(setting.knobs[name], value)}
            columns = {name: np.full(x.size * y.size, value) for name, value in moved.items()}
            mesh = np.meshgrid(x, y)
            columns |= {name: values.ravel() for name, values in zip(axes, mesh, strict=True)}
            found = self._grid(setting, numbers, moved)(columns)
            chart = Chart(axes, x, y, found.root.reshape(y.size, x.size))
            self._last = (key, chart)
            return chart

    def _grid(self, setting: Setting, numbers: dict[str, Any], moved: dict[str, float]) -> RootFinder:
        """Return the root finder compiled for a kind of setting: its names, and the values that are not moved."""
        fixed = {name: value for name, value in numbers.items() if name not in moved}
        # The function holds the scenario that was handed in, so that no other can have its id.
        kind = (setting.scheme, setting.preset, setting.topology, id(setting.given), tuple(fixed.items()), tuple(moved))
        if kind not in self._grids:

            def make_scenario(**values: Any) -> Any:
                return setting.scenario({**fixed, **values})

            self._grids[kind] = RootFinder(make_scenario)
        self._grids.move_to_end(kind)
        while len(self._grids) > _KEPT:
            self._grids.popitem(last=False)
        return self._grids[kind]


def _traced(knob: Knob, value: Any) -> bool:
    """Check whether a value is a number that a chart can move: other values may choose equations."""
    shapes = knob.home == TRAFFIC and knob.name in _NO_AXES
    return not shapes and bool(knob.stops) and isinstance(value, float)


_charts = Charts()  # what they compile serves all pages


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
