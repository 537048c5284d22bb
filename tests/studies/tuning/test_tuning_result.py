"""Results of tuning as dictionaries, and where they were run."""

from __future__ import annotations

import json
import math

import numpy as np

from fluidcc.studies.tuning.goal import goal_of
from fluidcc.studies.tuning.packet_check import Packets
from fluidcc.studies.tuning.result import Candidate, Sensitivity, Tuning
from fluidcc.studies.tuning.space import space_of

BEST = Candidate({"eta": 0.5}, {"jain": 0.75, "utilisation": math.nan}, {"jain": 0.01, "utilisation": math.nan}, True)
START = Candidate({"eta": 0.9}, {"jain": 0.5}, {}, False)


def tuning(start: Candidate | None = None, knee: Candidate | None = None, **more: object) -> Tuning:
    """Tuning of one variable; whatever is not given is not there."""
    given = {
        "goal": goal_of("jain", None, "utilisation>=0.9", True, 1.0), "space": space_of({"eta": (0.4, 0.8)}),
        "start": start, "best": BEST, "pareto": [BEST], "knee": knee, "yardsticks": {}, "evaluations": 7,
        "sensitivity": None, "packets": {}, "confirmed": None, "notes": [],
    }  # fmt: skip
    return Tuning(**given | more)  # type: ignore[arg-type]


def test_a_setting_has_its_errors_where_there_are_any() -> None:
    """NaN is an error that there is none of, and a metric without a value is none."""
    assert BEST.as_dict() == {
        "eta": 0.5,
        "metrics": {"jain": 0.75, "utilisation": None, "jain_se": 0.01},
        "kept": True,
    }
    assert START.as_dict() == {"eta": 0.9, "metrics": {"jain": 0.5}, "kept": False}


def test_points_of_packets_are_those_of_the_best_and_the_present() -> None:
    assert tuning().points == {"best": {"eta": 0.5}}
    assert tuning(start=START).points == {"best": {"eta": 0.5}, "start": {"eta": 0.9}}


def test_what_there_is_not_is_none() -> None:
    found = tuning().as_dict()
    assert {name for name, value in found.items() if value is None} == {
        "start", "knee", "sensitivity", "packets", "confirmed", "trial",
    }  # fmt: skip
    assert found["objectives"] == ["largest jain", "largest utilisation"]
    assert found["subject_to"] == ["utilisation>=0.9"]
    assert (found["evaluations"], found["pareto"]) == (7, [BEST.as_dict()])
    json.dumps(found, allow_nan=False)


def test_what_there_is_is_told() -> None:
    each = {name: np.array([0.5, 0.9]) for name in ("utilisation", "jain", "queue_bytes.p99")}
    found = tuning(
        START,
        BEST,
        yardsticks={"paper": START},
        sensitivity=Sensitivity({"eta": {"first": 0.25}}, {}, False, 3),
        packets={"best": Packets(each, {}, {}, [])},
        confirmed=True,
        refused=[{"eta": 0.6}],
    ).as_dict()
    assert found["start"] == START.as_dict()
    assert found["knee"] == BEST.as_dict()
    assert found["yardsticks"] == {"paper": START.as_dict()}
    assert found["sensitivity"] == {"eta": {"first": 0.25}}
    assert found["packets"] == {"best": {"utilisation": 0.5, "jain": 0.5, "queue_bytes.p99": 0.9}}  # the worst of both
    assert (found["confirmed"], found["refused"]) == (True, [{"eta": 0.6}])
