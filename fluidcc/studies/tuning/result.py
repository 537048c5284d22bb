"""Result of tuning, and the sensitivity to each variable: Sobol's indices, and the objective along each axis.

First-order indices give the share of the objective's variance that a variable explains alone, total ones the share in
which it takes part; estimators and intervals are SALib's (A. Saltelli et al., Comput. Phys. Commun. 181, 2010). The
logarithm is used for objectives that spread over a factor of ten.
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.errors import InputError
from fluidcc.files import write_atomically
from fluidcc.results.display import draw
from fluidcc.results.result import Comparable
from fluidcc.results.schema import plain
from fluidcc.studies.tuning.evaluate import Evaluator
from fluidcc.studies.tuning.goal import Goal
from fluidcc.studies.tuning.packet_check import Packets
from fluidcc.studies.tuning.space import Point, Space
from fluidcc.surface import constructor, public

if TYPE_CHECKING:
    from fluidcc.results.display import Picture
    from fluidcc.studies.tuning.trial import Trial

_ALONG = 7  # values of a variable on its axis
_SPREAD = 10.0  # largest over smallest objective from which on logarithms are taken
_SURE = 0.95


@dataclasses.dataclass(frozen=True)
class Sensitivity:
    """Sensitivity of the first objective, over the range that was tuned.

    Parameters
    ----------
    indices : dict
        For each name ``first`` and ``total``, and ``first_conf`` and ``total_conf``, half widths of their 95 %
        intervals.
    along : dict
        For each name its ``values`` and the objective at them, the others held at the best point; NaN where there is
        none.
    logarithmic : bool
        Whether the indices are those of the logarithm.
    points : int
        Number of points that the indices are from.
    """

    indices: dict[str, dict[str, float]]
    along: dict[str, dict[str, list[float]]]
    logarithmic: bool
    points: int


def sensitivity(space: Space, goal: Goal, evaluator: Evaluator, best: Point, size: int, seed: int) -> Sensitivity:
    """Indices from ``size`` times (variables + 2) points, ``size`` a power of 2, and the axes through the best point.

    Raises
    ------
    InputError
        If some of the points make no sense.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from SALib.analyze import sobol as analysis
        from SALib.sample import sobol as sampling

    names = space.names
    problem = {"num_vars": len(names), "names": names, "bounds": [[0.0, 1.0]] * len(names)}
    places = sampling.sample(problem, size, calc_second_order=False, seed=seed)

    def objective(points: list[Point]) -> np.ndarray:
        rows = [row.metrics for row in evaluator(points, label="running points for Sobol's indices")]
        first = goal.objectives[0]
        return np.array([goal.reduced(row, first.metric, maximise=first.maximise) for row in rows])

    values = objective([space.point(row) for row in places])
    if np.isnan(values).any():
        bad = int(np.isnan(values).sum())
        raise InputError(f"sensitivity: {bad} of {len(values)} points have no value; narrow the range, or leave it out")
    logarithmic = bool(values.min() > 0 and values.max() > _SPREAD * values.min())
    taken = np.log(values) if logarithmic else values
    indices: dict[str, dict[str, float]]
    if np.ptp(taken) == 0:
        indices = {name: dict.fromkeys(("first", "total", "first_conf", "total_conf"), 0.0) for name in names}
    else:
        found: Any = analysis.analyze(problem, taken, calc_second_order=False, conf_level=_SURE, seed=seed)
        keys = {"first": "S1", "total": "ST", "first_conf": "S1_conf", "total_conf": "ST_conf"}
        indices = {name: {k: float(found[v][i]) for k, v in keys.items()} for i, name in enumerate(names)}
    along = {}
    for each in space.variables:
        tried = each.axis(_ALONG)
        along[each.name] = {"values": tried, "objective": objective([best | {each.name: v} for v in tried]).tolist()}
    return Sensitivity(indices, along, logarithmic, len(values))


@constructor()
@dataclasses.dataclass(frozen=True)
class Candidate:
    """A setting and what it does.

    Parameters
    ----------
    point : dict of float
        Values by name, in SI.
    metrics : dict of float
        Over the cases, as the goal counts them; NaN where undefined.
    errors : dict of float
        Standard errors, of the case that counts; NaN for the fluid.
    kept : bool
        Whether it keeps all constraints.
    """

    point: Point
    metrics: dict[str, float]
    errors: dict[str, float]
    kept: bool

    @public()
    def as_dict(self) -> dict[str, Any]:
        """Values, ``metrics`` with ``_se``, and whether the constraints are kept.

        Returns
        -------
        dict
            None for what is undefined.
        """
        errors = {f"{name}_se": value for name, value in self.errors.items() if value == value}
        return plain({**self.point, "metrics": self.metrics | errors, "kept": self.kept})


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Tuning(Comparable):
    """The best setting that was found, and what it was chosen from.

    Parameters
    ----------
    goal : Goal
    space : Space
    start : Candidate or None
        The present setting.
    best : Candidate
        Metrics from seeds that it was not chosen by.
    pareto : list of Candidate
        Of all points that keep the constraints, those that none is better than; by the first objective.
    knee : Candidate or None
        Of the front.
    yardsticks : dict of Candidate
        By name.
    evaluations : int
        Points that were run in the search.
    sensitivity : Sensitivity or None
    packets : dict of Packets
        Of ``start`` and ``best``; empty where no packets ran.
    confirmed : bool or None
        Whether packets say nothing against the best setting; None where none ran.
    notes : list of str
        What was not as hoped: candidates that packets refused, ends of ranges, bounds that nothing keeps.
    packet_cases : list of dict
        In which packets ran, in the order of their metrics.
    refused : list of dict
        Points with which packets miss a bound.
    packet_guards : list of dict
        In which packets must do no worse than the present setting.
    plateau : dict of (float, float)
        Least and largest value of each variable among settings that packets ran and that are within 5 % of the best.
    irrelevant : list of str
        Variables that the plateau covers half the range of, or more.
    trial : Trial or None
        The best beside the present setting and public ones, in incasts, a workload and a collective.
    """

    goal: Goal
    space: Space
    start: Candidate | None
    best: Candidate
    pareto: list[Candidate]
    knee: Candidate | None
    yardsticks: dict[str, Candidate]
    evaluations: int
    sensitivity: Sensitivity | None
    packets: dict[str, Packets]
    confirmed: bool | None
    notes: list[str]
    packet_cases: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    refused: list[Point] = dataclasses.field(default_factory=list)
    packet_guards: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    plateau: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    irrelevant: list[str] = dataclasses.field(default_factory=list)
    trial: Trial | None = None

    @property
    def points(self) -> dict[str, Point]:
        """Settings that packets ran, by the names of ``packets``."""
        return {"best": self.best.point} | ({"start": self.start.point} if self.start else {})

    def __repr__(self) -> str:
        """The best, in a line."""
        from fluidcc.builders.names import format_value

        at = ", ".join(f"{name} {format_value(name, value)}" for name, value in self.best.point.items())
        return f"<Tuning {at}: {self.evaluations} evaluations, confirmed {self.confirmed}>"

    @public()
    def as_dict(self) -> dict[str, Any]:
        """Keys as in the CLI.

        Returns
        -------
        dict
            None for what is undefined.
        """
        goal = self.goal
        found = self.sensitivity
        proof = {
            name: {
                metric: goal.reduced(each.metrics, metric, maximise=metric in ("utilisation", "jain"))
                for metric in each.metrics
            }
            for name, each in self.packets.items()
        }
        return plain(
            {
                "objectives": [str(each) for each in goal.objectives],
                "subject_to": [str(each) for each in goal.constraints],
                "start": self.start.as_dict() if self.start else None,
                "best": self.best.as_dict(),
                "evaluations": self.evaluations,
                "pareto": [each.as_dict() for each in self.pareto],
                "knee": self.knee.as_dict() if self.knee else None,
                "yardsticks": {name: each.as_dict() for name, each in self.yardsticks.items()},
                "sensitivity": found.indices if found else None,
                "packets": proof or None,
                "confirmed": self.confirmed,
                "packet_cases": self.packet_cases,
                "packet_guards": self.packet_guards,
                "refused": self.refused,
                "plateau": {name: list(ends) for name, ends in self.plateau.items()},
                "irrelevant": self.irrelevant,
                "trial": self.trial.as_dict() if self.trial else None,
                "notes": self.notes,
            }
        )

    @public()
    def plot_front(self) -> Picture:
        """The front of the two objectives, with the knee, the present setting and the yardsticks.

        Returns
        -------
        Picture
        """
        return draw("plot_front", self)

    @public()
    def plot_sensitivity(self) -> Picture:
        """The objective along each variable through the best setting, and Sobol's indices.

        Returns
        -------
        Picture

        Raises
        ------
        InputError
            If sensitivities were not asked for.
        """
        return draw("plot_sensitivity", self)

    @public()
    def plot_packets(self) -> Picture:
        """Present against best in packets: queue and rates over time, bands over the seeds.

        Returns
        -------
        Picture

        Raises
        ------
        InputError
            If no packets ran.
        """
        return draw("plot_packets", self)

    @public()
    def plot_trial(self) -> Picture:
        """Draw each number of the trial as a ratio to the present setting's, with 95 % intervals over the seeds.

        Returns
        -------
        Picture

        Raises
        ------
        InputError
            If there was no trial.
        """
        return draw("plot_trial", self)

    @public()
    def write(self, folder: str | Path) -> list[Path]:
        """Write ``tuning.json`` and the pictures that there are.

        Parameters
        ----------
        folder : str or Path
            Made if it is not there.

        Returns
        -------
        list of Path

        Raises
        ------
        InputError
            If the folder or a file cannot be written.
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        written = [write_atomically(target / "tuning.json", (json.dumps(self.as_dict(), indent=2) + "\n").encode())]
        written.append(self.plot_front().write(target / "front.png"))
        if self.sensitivity is not None:
            written.append(self.plot_sensitivity().write(target / "sensitivity.png"))
        if self.packets:
            written.append(self.plot_packets().write(target / "packets.png"))
        if self.trial is not None:
            written.append(self.plot_trial().write(target / "trial.png"))
        return written
