"""What is expected of ACC's Figures 16, 18 and 19.

`acc_sensitivity` names a group's values: ``mean_range`` is the largest less the smallest mean slowdown over the
default's, ``first`` and ``last`` are of the variants as listed.
"""

from __future__ import annotations

from fluidcc.figures.result import Check

INSENSITIVE = 0.25  # of the default's mean slowdown: how far "not sensitive" may reach over all values
SIMILAR = 0.15

_ALL_END = {"unfinished": Check(0.0, 0.0, "a flow that is cut short has no completion time; all are run to their ends")}


def _insensitive(group: str, what: str) -> Check:
    why = f"B.1: {group} flows are not sensitive to {what}; read as within a quarter of the default's mean"
    return Check(0.0, INSENSITIVE, why)


def _halt() -> dict[str, Check]:
    similar = "6.4: similar performance without halts; read as 15 % of the mean"
    return _ALL_END | {
        "small_better_with_last": Check(False, 0, "6.4: small flows suffer from larger FCT without halts"),
        "medium_mean_last_over_first": Check(1.0, SIMILAR, similar),
        "large_mean_last_over_first": Check(1.0, SIMILAR, similar),
        "more_pauses_with_last": Check(True, 0, "6.4: halts significantly reduce PAUSEs at each layer"),
    }


def _increments() -> dict[str, Check]:
    return _ALL_END | {
        "large_better_with_last": Check(True, 0, "B.1: a larger RI yields higher throughput for large flows"),
        "small_mean_range": _insensitive("small", "RI"),
        "medium_mean_range": _insensitive("medium", "RI"),
    }


def _thresholds() -> dict[str, Check]:
    better = "B.1: as P_thresh increases, medium and large flows have better slowdowns"
    return _ALL_END | {
        "medium_better_with_last": Check(True, 0, better),
        "large_better_with_last": Check(True, 0, better),
        "large_p99_first_over_second": Check(
            1.22, 0.22, "B.1: 1.22, in another tree; so between none and twice as much"
        ),
        "tiny_mean_range": _insensitive("small (< 10 KB)", "P_thresh"),
        "more_pauses_with_last": Check(True, 0, "B.1: a larger P_thresh may trigger more PAUSEs at each layer"),
    }


EXPECTED = {"acc-fig16": _halt, "acc-fig18": _increments, "acc-fig19": _thresholds}
