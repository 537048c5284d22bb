"""A setting that was found, tried where no search has seen it: incasts, a workload on a fabric, a collective.

Every setting runs on the same flows, paths and seeds as the present one. What is shown are ratios to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fluidcc.results.schema import plain
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.studies.tuning.cases import SIZE, UNTIL
from fluidcc.studies.tuning.evaluate import without_until
from fluidcc.studies.tuning.packet_check import packets
from fluidcc.studies.tuning.space import Point
from fluidcc.workloads.fabrics.study import LARGE, LEAST_SEEDS, NO_QUEUE, SMALL, ratio

PRESENT, RECOMMENDED = "present", "recommended"
COUNT = "count"  # unit of what is added up, of which there is no ratio
_PROVING = 2000  # seeds of incasts come after it, as those that prove a setting: some have run already
_TOGETHER, _MOST = 4, 24  # seeds at a time, and in all
_NARROW = 0.1  # half an interval that is narrow enough, as a share
_SMALL, _LARGE = 2000, 200  # flows to 100 KB and beyond 1 MB that percentiles need
_OF_INCASTS = {"queue_bytes.p99": ("queue p99", "bytes"), "utilisation": ("utilisation", ""), "jain": ("Jain", "")}
_OF_FLOWS = {
    "p99_small": ("slowdown p99 to 100KB", ""),
    "p99_large": ("slowdown p99 beyond 1MB", ""),
    "p50_largest": ("slowdown p50 beyond 10MB", ""),
    "p50": ("median slowdown", ""),
    "goodput": ("goodput", "bytes/s"),
    "queue_p99": ("queue p99", "bytes"),
}
_MORE = ("utilisation", "jain", "goodput")  # is better
_MUST = ("queue_bytes.p99", "p99_small", "p99_large", "time")  # be known within `_NARROW`


@dataclasses.dataclass(frozen=True, eq=False)
class Row:
    """A number of a case, of every setting beside the present one's.

    Parameters
    ----------
    case : str
        What was sent, in a few words.
    measure : str
    title : str
        Of the measure, in words.
    unit : str
        In SI; `COUNT` of what is a number of events.
    pairs : dict of ndarray, shape (seeds, 2)
        By setting: its own value and the present setting's.
    """

    case: str
    measure: str
    title: str
    unit: str
    pairs: dict[str, np.ndarray]

    @property
    def more(self) -> bool:
        """True if more is better."""
        return self.measure in _MORE

    @property
    def present(self) -> float:
        """Mean of the present setting over the seeds, the sum of what is counted."""
        values = next(iter(self.pairs.values()))[:, 1]
        return float(values.sum() if self.unit == COUNT else values.mean())

    def own(self, setting: str) -> float:
        """Sum over the seeds of what is counted."""
        return float(self.pairs[setting][:, 0].sum())

    def ratio(self, setting: str) -> dict[str, float]:
        """Geometric ``mean`` of the ratios to the present setting, ``low`` and ``high`` (95 %)."""
        return ratio(self.pairs[setting])

    def narrow(self, setting: str) -> bool:
        """Check whether half the interval is within 10 %, or nobody asks, or there is no such number."""
        found = self.ratio(setting)
        wide = (found["high"] - found["low"]) / 2 > _NARROW * found["mean"]
        return self.measure not in _MUST or not (wide or (np.isfinite(found["mean"]) and np.isnan(found["low"])))


@dataclasses.dataclass(frozen=True, eq=False)
class Trial:
    """Numbers of settings in each case.

    Parameters
    ----------
    settings : dict of dict
        Values of each, `RECOMMENDED` first.
    rows : list of Row
    says : dict of str
        Each case in full, by its short name.
    flows : tuple of int
        How many to 100 KB, and beyond 1 MB, the percentiles of slowdowns are of.
    """

    settings: dict[str, Point]
    rows: list[Row]
    says: dict[str, str]
    flows: tuple[int, int] = (0, 0)

    @property
    def seeds(self) -> dict[str, int]:
        """Number of seeds of each case."""
        return {row.case: len(next(iter(row.pairs.values()))) for row in self.rows}

    def of(self, case: str) -> list[Row]:
        """Return the rows of a case."""
        return [row for row in self.rows if row.case == case]

    def notes(self) -> list[str]:
        """Say what of the recommended setting stayed unknown."""
        wide = [f"{row.title} with {row.case}" for row in self.rows if not row.narrow(RECOMMENDED)]
        return [f"intervals wider than 10 %: {', '.join(wide)}"] if wide else []

    def as_dict(self) -> dict[str, Any]:
        """Return settings, and of each case and measure the present value and the ratios; None of what is undefined."""
        rows = [
            {
                "case": row.case,
                "measure": row.measure,
                "unit": row.unit,
                "present": row.present,
                "seeds": self.seeds[row.case],
                "settings": {
                    name: {"sum": row.own(name)} if row.unit == COUNT else row.ratio(name) for name in row.pairs
                },
            }
            for row in self.rows
        ]
        small, large = self.flows
        return plain(
            {"settings": self.settings, "cases": self.says, "rows": rows, "flows": {"small": small, "large": large}}
        )


@dataclasses.dataclass(frozen=True)
class Incasts:
    """Incasts into the port that was tuned, of flows that are at their share: what comes after the start.

    Parameters
    ----------
    make : callable
        As of `tune`.
    every : list of dict
        In which packets proved the setting.
    start : dict of float
        The present setting.
    ran : dict of list of list of Trace
        What ran in these with the present and the best setting, which is not repeated.
    window
        As of `tune`.
    """

    make: Callable[..., Scenario]
    every: list[dict[str, Any]]
    start: Point = dataclasses.field(default_factory=dict)
    ran: Mapping[str, list[list[Trace]]] = dataclasses.field(default_factory=dict)
    window: Any = None

    @property
    def cases(self) -> dict[int, dict[str, Any]]:
        """The shortest and plainest case of each number of flows."""
        found: dict[int, dict[str, Any]] = {}
        for case in self.every:
            flows = case.get("flows", 0)
            known = found.setdefault(flows, case)
            if case.get(SIZE) == known.get(SIZE) and _length(case) < _length(known):
                found[flows] = case
        found.pop(0, None)
        return found

    def rows(self, points: Mapping[str, Point], seeds: Sequence[int]) -> list[Row]:
        """Run the present setting and others in every case."""
        cases = self.cases
        each = {name: self._ran(name, point, seeds) for name, point in points.items()} if cases else {}
        rows = []
        for k, flows in enumerate(cases):
            for measure, (title, unit) in (*_OF_INCASTS.items(), ("pfc_pauses", ("PAUSEs", COUNT))):
                values = {name: metrics[measure][k] for name, metrics in each.items()}
                if measure == "queue_bytes.p99":
                    values = {name: np.maximum(of, NO_QUEUE) for name, of in values.items()}
                rows.append(_row(f"{flows} flows", measure, title, unit, values))
        return rows

    def _ran(self, name: str, point: Point, seeds: Sequence[int]) -> dict[str, np.ndarray]:
        from fluidcc.engines.hybrid.region import by_packets

        mine, known = list(self.cases.values()), self.ran.get(name)
        done = {
            (k, trace.summary["seed"]): trace
            for k, case in enumerate(mine)
            for trace in ([] if known is None else known[self.every.index(case)])
        }
        values = {**self.start, **point}
        scenarios = [by_packets(resolve(self.make(**values, **without_until(case)))) for case in mine]
        untils = [float(case[UNTIL]) for case in mine]
        return packets(scenarios, untils, self.window, seeds, label=f"incasts, {name}", done=done).each


@dataclasses.dataclass(frozen=True)
class OnFabric:
    """Traffic on a whole fabric: flows of a workload, and a collective.

    Parameters
    ----------
    options : dict
        Of each setting, as `fluidcc.fabric` takes them; the present one's are `PRESENT`.
    topology : str
    workload, load, until
        Of flows, as of `fluidcc.fabric`.
    collective, total
        Kind and bytes.
    rates : dict
        Of the topology's links.
    """

    options: Mapping[str, Mapping[str, Any]]
    topology: str
    workload: str
    load: float
    until: Any
    collective: str
    total: Any
    rates: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def rows(self, seeds: Sequence[int]) -> tuple[list[Row], dict[str, str], tuple[int, int]]:
        """Run all settings; return the numbers, the cases in words, and how many small and large flows there were."""
        from fluidcc.workloads.collectives.study import collective
        from fluidcc.workloads.fabrics.study import fabric

        others = [name for name in self.options if name != PRESENT]
        sent = fabric(
            self.options, self.topology, workload=self.workload, load=self.load, until=self.until, seeds=list(seeds),
            **self.rates,
        )  # fmt: skip
        pairs = {name: sent.pairs(name, PRESENT) for name in others}
        rows = [
            Row(self.workload, name, title, unit, {each: pairs[each][name] for each in others})
            for name, (title, unit) in _OF_FLOWS.items()
        ]
        lost = {name: np.array([run.slowdown.unfinished for run in sent.of(name)]) for name in self.options}
        rows.append(_row(self.workload, "unfinished", "unfinished flows", COUNT, lost))
        rows.append(_pauses(self.workload, sent, self.options))
        sizes = np.concatenate([run.slowdown["size"].values for run in sent.of(PRESENT)])
        done = collective(
            self.collective, self.topology, self.options, bytes=self.total, seeds=list(seeds), **self.rates
        )
        times = {name: done.pairs(name, PRESENT)[done.cases[0]] for name in others}
        rows.append(Row(self.collective, "time", "time", "s", times))
        rows.append(_pauses(self.collective, done, self.options))
        says = {self.workload: sent.says, self.collective: ", ".join(done.says)}
        return rows, says, (int((sizes <= SMALL).sum()), int((sizes > LARGE).sum()))


def _length(case: Mapping[str, Any]) -> tuple[float, bool]:
    """Order cases by how long they run, those that begin at their share first."""
    return case.get(UNTIL, 0.0), case.get("begin") != "share"


def try_settings(
    points: Mapping[str, Point], fabric: OnFabric, incasts: Incasts | None = None, *, narrow: bool = False
) -> Trial:
    """Run the present setting and others in every case, packet by packet.

    Parameters
    ----------
    points : mapping
        Values of each setting that may differ from the present one's, `PRESENT` and `RECOMMENDED` among them.
    fabric : OnFabric
    incasts : Incasts, optional
    narrow : bool
        Whether more seeds run, 24 at most, until half of each interval that matters is within 10 % and percentiles are
        of 2000 small and 200 large flows; else there are three.

    Raises
    ------
    InputError
        If a setting makes no sense on the fabric.
    """
    rows: list[Row] = []
    says: dict[str, str] = {}
    flows = (0, 0)
    for seeds in _blocks(narrow):
        more, words, sizes = fabric.rows(seeds)
        if incasts is not None:
            more = incasts.rows(points, [_PROVING + seed for seed in seeds]) + more
        rows = [_joined(*pair) for pair in zip(rows, more, strict=True)] if rows else more
        says, flows = words, (flows[0] + sizes[0], flows[1] + sizes[1])
        enough = flows[0] >= _SMALL and flows[1] >= _LARGE
        if enough and all(row.narrow(RECOMMENDED) for row in rows):
            break
    says = {row.case: says.get(row.case, f"{row.case} into the port, at their share") for row in rows}
    return Trial({name: point for name, point in points.items() if name != PRESENT}, rows, says, flows)


def _blocks(narrow: bool) -> Iterator[range]:
    """Seeds of each round."""
    size, last = (_TOGETHER, _MOST) if narrow else (LEAST_SEEDS, LEAST_SEEDS)
    return (range(at + 1, at + size + 1) for at in range(0, last, size))


def _joined(one: Row, other: Row) -> Row:
    """A row with further seeds."""
    pairs = {name: np.concatenate([values, other.pairs[name]]) for name, values in one.pairs.items()}
    return dataclasses.replace(one, pairs=pairs)


def _row(case: str, measure: str, title: str, unit: str, values: Mapping[str, np.ndarray]) -> Row:
    """A row of values of each setting by seed."""
    present = np.asarray(values[PRESENT], float)
    pairs = {
        name: np.stack([np.asarray(own, float), present], axis=1) for name, own in values.items() if name != PRESENT
    }
    return Row(case, measure, title, unit, pairs)


def _pauses(case: str, study: Any, names: Mapping[str, Any]) -> Row:
    counts = {name: np.array([run.numbers["pfc_pauses"] for run in study.of(name)]) for name in names}
    return _row(case, "pfc_pauses", "PAUSEs", COUNT, counts)
