"""What a setting comes to, all views of it; and the last of many settings, while a hand moves on."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from fluidcc.errors import InputError
from fluidcc.explorer import views
from fluidcc.explorer.chart import Chart, Charts
from fluidcc.explorer.settings import Setting

_WORKERS = 2
_T = TypeVar("_T")
charts = Charts()  # what they compile serves all pages
_pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="fluidcc-explorer")
_seen: set[Any] = set()  # kinds of settings that have been answered, and so are compiled


@dataclasses.dataclass(frozen=True)
class Answer:
    """All but the chart, which comes after.

    Parameters
    ----------
    setting : Setting
    fluid : Run
    hybrid : Run or None
    hybrid_why : str
        Why there is no hybrid.
    roots : RootMap
    seconds : float
        That it took.
    """

    setting: Setting
    fluid: views.Run
    hybrid: views.Run | None
    hybrid_why: str
    roots: views.RootMap
    seconds: float


def answer(setting: Setting) -> Answer:
    """Work out all views but the chart.

    Raises
    ------
    InputError
        If the setting makes no sense.
    """
    began = time.perf_counter()
    scenario = setting.scenario()
    fluid = views.fluid(scenario, setting.until)
    hybrid, why = None, f"{setting.scheme} has no hybrid side"
    try:
        hybrid = views.hybrid(scenario, setting.until)
    except InputError as error:
        why = str(error)
    roots = views.root_map(scenario)
    _seen.add(_kind(setting))
    return Answer(setting, fluid, hybrid, why if hybrid is None else "", roots, time.perf_counter() - began)


def chart_of(setting: Setting, axes: tuple[str, str]) -> Chart:
    """The chart about a setting; as `Charts.of`."""
    return charts.of(setting, axes)


def is_compiled(setting: Setting) -> bool:
    """Whether one of its kind has been answered, so that this one is likely to take no compiling."""
    return _kind(setting) in _seen


def _kind(setting: Setting) -> Any:
    """What selects compiled code: names, and values that are no plain numbers."""
    knobs = setting.knobs
    fixed = tuple((name, text) for name, text in setting.values if not knobs[name].stops)
    shape = tuple(setting.value(name) == 0 for name in ("late",) if name in knobs)
    return setting.scheme, setting.preset, setting.topology, fixed, shape


class Latest(Generic[_T]):
    """Runs jobs one after another in a thread, and of those that wait only the last.

    Parameters
    ----------
    job : callable
        ``job(what)``, in a thread.
    done : callable
        ``done(what, result, error)``, in that thread; the error is an `InputError`, or the text of any other.
    """

    def __init__(self, job: Callable[[_T], Any], done: Callable[[_T, Any, Exception | None], None]) -> None:
        self._job, self._done = job, done
        self._lock = threading.Lock()
        self._waiting: list[_T] = []
        self._running = False

    def __call__(self, what: _T) -> None:
        """Run the job for this, unless another comes before it begins."""
        with self._lock:
            self._waiting = [what]
            if self._running:
                return
            self._running = True
        _pool.submit(self._work)

    def at_once(self, what: _T) -> None:
        """Run the job here and now."""
        self._waiting, self._running = [what], True
        self._work()

    @property
    def outdated(self) -> bool:
        """Whether something newer waits."""
        return bool(self._waiting)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running = False
                    return
                what = self._waiting.pop()
            try:
                result, failed = self._job(what), None
            except Exception as error:  # a page must outlive whatever a setting does
                result, failed = None, error
            self._done(what, result, failed)
