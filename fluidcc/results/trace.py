"""Traces, which every engine returns: a labelled, unit-carrying dataset, and the metrics on it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, ClassVar

from fluidcc.errors import InputError
from fluidcc.files import read_netcdf, write_netcdf
from fluidcc.results import metrics
from fluidcc.results.display import draw, label, shown
from fluidcc.results.result import DatasetResult, Parts, Row
from fluidcc.results.schema import problem_of_trace
from fluidcc.surface import constructor, public
from fluidcc.units import TIME, quantity, show


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Trace(DatasetResult):
    """A run of a scenario.

    Its metrics are reached in two ways. `summary` has what the engine reduced over the run's window at full resolution.
    Anything else is a function of `fluidcc.results.metrics` on its variables, on any stretch (`between`) and any choice
    of flows and links (``sel``): ``settling_time(rate_gap(trace["rate"]), band="...")``.

    Parameters
    ----------
    dataset : xarray.Dataset
        As `fluidcc.results.schema` declares it: dimensions ``time`` [s], ``link``, ``flow``; variables ``queue`` (time,
        link) [bytes], ``rate`` (time, flow) [bytes/s], ``sent`` (time, link) [bytes, cumulative], and the scheme's own.
        Units are in ``attrs["units"]`` of each; the scenario, the window and the engine's own metrics in the dataset's.
    """

    KEPT: ClassVar[tuple[str, ...]] = ("time", "link", "flow")

    def __repr__(self) -> str:
        """Engine, horizon and sizes in a line."""
        sizes = ", ".join(f"{size} {name}" for name, size in self.dataset.sizes.items())
        what = [self.dataset.attrs.get("engine", "?"), *self._span()]
        return f"<Trace {', '.join(what)}: {sizes}>"

    def _span(self) -> list[str]:
        """Show what ran, and from when to when."""
        found, time = json.loads(self.dataset.attrs.get("summary", "{}")), self.dataset.time.values
        ends = [show(float(time[at]), TIME) for at in (0, -1)] if len(time) else []
        return [*([f"{found['scheme']}"] if "scheme" in found else []), *([" to ".join(ends)] if ends else [])]

    def _rows(self) -> list[Row]:
        attrs = self.dataset.attrs
        found = json.loads(attrs.get("summary", "{}"))
        keys = ("scheme", "flows", "until_s", "window_s", "utilisation", "jain", "rate_bytes_per_s", "fct_s")
        counts = ("discretisation_error", "packets", "pfc_pauses", "drops", "seed")
        queue = found.get("queue_bytes") or {}
        stands = {"queue": f"mean {shown('_bytes', queue.get('mean'))}, p99 {shown('_bytes', queue.get('p99'))}"}
        rows = [(label(key), shown(key, found[key])) for key in keys if found.get(key) not in (None, [])]
        rows += list(stands.items()) if queue else []
        return rows + [(label(key), shown(key, found[key])) for key in counts if found.get(key) is not None]

    @property
    def summary(self) -> dict[str, Any]:
        """The engine's own metrics over the run's window, reduced at full resolution; keys as in the CLI."""
        return json.loads((vars(self).get("_parts") or self.dataset).attrs["summary"])

    # -- parts -----------------------------------------------------------------------------------------------

    @public()
    def between(self, opens: Any, closes: Any) -> Trace:
        """Samples between two times (text or seconds).

        Parameters
        ----------
        opens, closes : quantity
            Ends of the interval [s].

        Returns
        -------
        Trace

        Raises
        ------
        InputError
            If there are fewer than two samples.
        """
        a, b = quantity(opens, TIME, "between"), quantity(closes, TIME, "between")
        part = self.dataset.sel(time=slice(a - 1e-12, b + 1e-12))
        if part.sizes["time"] < 2:
            end = float(self.dataset.time[-1])
            raise InputError(
                f"between: {show(a, TIME)}:{show(b, TIME)} holds fewer than two samples of a trace of "
                f"{show(end, TIME)}; widen it or sample more finely"
            )
        return Trace(part)

    @public()
    def bottleneck(self) -> str:
        """Name of the link with the largest mean queue."""
        return str(self.dataset.link.values[int(metrics.most_loaded(metrics.time_mean(self["queue"]).values))])

    # -- files and pictures ----------------------------------------------------------------------------------

    @public()
    def save(self, path: str | Path) -> Path:
        """Write NetCDF4; the file appears whole or not at all.

        Parameters
        ----------
        path : str or Path
            A name that ends in ``.nc``.

        Returns
        -------
        Path

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        return write_netcdf(path, self.dataset)

    @staticmethod
    @public()
    def load(path: str | Path) -> Trace:
        """Read what `save` wrote.

        Parameters
        ----------
        path : str or Path
            What `save` wrote.

        Returns
        -------
        Trace

        Raises
        ------
        InputError
            If the file is missing or no trace.
        """
        expected = "a file that Trace.save wrote"
        loaded = read_netcdf(path, expected)
        if (problem := problem_of_trace(loaded)) is not None:
            raise InputError(f"{str(path)[:200]}: holds no run ({problem}); give {expected}")
        return Trace(loaded)

    @public()
    def plot(self, *, title: str | None = None, equilibrium: Any = None) -> Any:
        """Queue and rates over time, with the thresholds of marking.

        Where the start's queue dwarfs what comes later, the axes show the latter, and an inset the whole.

        Parameters
        ----------
        title : str
            The scenario's own if not given.
        equilibrium : fluidcc.theory.Equilibrium, optional
            Drawn as lines.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_trace", self, title=title, equilibrium=equilibrium)


def trace_of(parts: Parts) -> Trace:
    """Make a trace of the parts of its dataset, which is made when it is first asked for."""
    trace = object.__new__(Trace)
    vars(trace)["_parts"] = parts
    return trace
