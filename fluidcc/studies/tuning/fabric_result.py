"""Result of tuning on a whole fabric."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.builders.names import format_value
from fluidcc.files import write_atomically
from fluidcc.results.display import draw
from fluidcc.results.result import Comparable
from fluidcc.results.schema import plain
from fluidcc.studies.tuning.race import MEASURES, Racer, Rule
from fluidcc.studies.tuning.space import Point, Space
from fluidcc.surface import constructor, public
from fluidcc.workloads.fabrics.topology import Topology

if TYPE_CHECKING:
    from fluidcc.results.display import Picture


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FabricTuning(Comparable):
    """The setting that does best on a fabric, and what it was chosen from.

    Parameters
    ----------
    space : Space
    rule : Rule
        What makes a setting better than another.
    topology : Topology
    cases : list of dict
        What was sent.
    says : tuple of str
        That in words.
    start : dict of float
        The present setting.
    yardsticks : dict of dict
        Others by name.
    racers : list of Racer
        All settings that ran, those with the most seeds first.
    best : str or None
        Name of the one that is recommended; None where none is better than the present one without being more than 5 %
        worse in something.
    proofs : dict of Racer
        The settings that ran with seeds that nothing was chosen by: the yardsticks, and those that were to be
        recommended.
    plateau : dict of (float, float)
        Least and largest value of each variable among the settings within 5 % of the best.
    irrelevant : list of str
        Variables that the plateau covers half the range of, or more.
    runs : int
        In packets.
    flows : list of dict
        In each case, how many ``small`` flows (to 100 KB) and ``large`` ones (beyond 1 MB) the recommended setting was
        proved with; empty of collectives.
    notes : list of str
        What is not as hoped: ends of ranges, intervals that stayed wide.
    """

    space: Space
    rule: Rule
    topology: Topology
    cases: list[dict[str, Any]]
    says: tuple[str, ...]
    start: Point
    yardsticks: dict[str, Point]
    racers: list[Racer]
    best: str | None
    proofs: dict[str, Racer]
    plateau: dict[str, tuple[float, float]]
    irrelevant: list[str]
    runs: int
    flows: list[dict[str, int]]
    notes: list[str]

    @property
    def point(self) -> Point | None:
        """Values of the recommended setting; None if there is none."""
        return None if self.best is None else self.proofs[self.best].point

    def __repr__(self) -> str:
        """The recommended setting, in a line."""
        at = "none better" if self.point is None else told(self.point)
        return f"<FabricTuning {at}: {len(self.racers)} settings, {self.runs} runs>"

    @public()
    def as_dict(self) -> dict[str, Any]:
        """Keys as in the CLI.

        Returns
        -------
        dict
            ``start`` and ``best`` (None where none is better), ``evaluations``, ``runs``, ``pareto``: settings of which
            none is better in every objective; ``plateau``, ``irrelevant``; ``cases``, each with the metrics of
            ``start`` and ``best`` and the ``ratios`` of all that were proved; ``confirmed``, ``notes``.
        """
        proved = None if self.best is None else self.proofs[self.best]
        shown = proved or next(iter(self.proofs.values()), None)
        cases = []
        for i, (case, says, flows) in enumerate(zip(self.cases, self.says, self.flows, strict=True)):
            row: dict[str, Any] = {**{name: str(value) for name, value in case.items()}, "traffic": says}
            row["proved_with"] = flows
            if shown is not None:
                row["start"] = _means(shown.found[i, :, :, 1])
            if proved is not None:
                row["best"] = _means(proved.found[i, :, :, 0])
            row["ratios"] = {
                name: each.ratios(i) | {"seeds": each.seeds, "unfinished": each.lacking, "setting": each.point}
                for name, each in self.proofs.items()
            }
            cases.append(row)
        return plain(
            {
                "objectives": list(self.rule.objectives),
                "worst": self.rule.worst,
                "start": self.start,
                "best": self.point,
                "recommended": self.best,
                "evaluations": len(self.racers),
                "runs": self.runs,
                "pareto": [self._row(each) for each in self.rule.front(self.racers)],
                "settings": [self._row(each) for each in self.racers],
                "yardsticks": self.yardsticks,
                "plateau": {name: list(ends) for name, ends in self.plateau.items()},
                "irrelevant": self.irrelevant,
                "cases": cases,
                "confirmed": self.best is not None,
                "notes": self.notes,
            }
        )

    def _row(self, racer: Racer) -> dict[str, Any]:
        costs = np.exp(self.rule.costs(racer))
        ratios = {
            name: 1 / cost if more else cost
            for (name, more), cost in zip(MEASURES.items(), costs, strict=True)
            if name != "unfinished"
        }
        return {**racer.point, "name": racer.name, "seeds": racer.seeds, "ratios": ratios, "unfinished": racer.lacking}

    @public()
    def plot(self) -> Picture:
        """Draw all settings by two objectives, as ratios to the present one, and what was proved.

        Returns
        -------
        Picture
        """
        return draw("plot_race", self)

    @public()
    def write(self, folder: str | Path) -> list[Path]:
        """Write ``tuning.json`` and ``race.png``.

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
        text = json.dumps(self.as_dict(), indent=2) + "\n"
        written = [write_atomically(target / "tuning.json", text.encode())]
        return [*written, self.plot().write(target / "race.png")]


def told(point: Point) -> str:
    """Say a setting in a line."""
    return ", ".join(f"{name} {format_value(name, value)}" for name, value in point.items())


def _means(values: np.ndarray) -> dict[str, float]:
    """Means over seeds of what was measured."""
    known = {name: row[np.isfinite(row)] for name, row in zip(MEASURES, values, strict=True)}
    return {name: float(row.mean()) for name, row in known.items() if len(row)}
