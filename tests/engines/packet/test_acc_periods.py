"""ACC's counts of periods, N_u and N_v, over any sequence of periods: against Algorithm 1 and section 4.4 again.

By hand, with the sender of `test_acc`: T = 10 us, 12.5 GB/s, packets of 1000 B, no halts. Rates are compared to 1e-12.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.packet.test_acc import HIGH, LINE, LOW, PERIOD, started

LEAST = 10e6 / 8
MARKS = {"steadily congested": (10, 0, 0), "some CE": (1, 5, 4), "UE": (0, 1, 9), "unmarked": (0, 0, 10)}


@pytest.mark.parametrize("p_thresh", [1, 2])
def test_a_congested_period_ends_a_row_of_periods_with_ue(p_thresh: int) -> None:
    """ "The number of consecutive periods with UE": after a congested one they are counted from the first again."""
    sender = started(rate=8e9, p_thresh=p_thresh, halt=False)
    for _ in range(p_thresh):
        assert sender.period(ue=1, none=9) == 8e9
    assert sender.period(ce=10, none=0) == pytest.approx(1e9, rel=1e-12)  # ten packets in 10 us
    for _ in range(p_thresh):
        assert sender.period(ue=1, none=9) == pytest.approx(1e9, rel=1e-12)
    assert sender.period(ue=1, none=9) == pytest.approx(0.5e9, rel=1e-12)


def test_a_congested_period_ends_a_row_of_uncongested_ones() -> None:
    """N_u: two more periods of the low increment after it."""
    sender = started(rate=1e9, halt=False)
    for _ in range(3):
        sender.period()
    rate = sender.period(ce=10, none=0)
    assert rate == pytest.approx(1e9, rel=1e-12)
    for increment in (LOW, LOW, HIGH):
        rate += (LINE - rate) / LINE * increment
        assert sender.period() == pytest.approx(rate, rel=1e-12)


@given(st.lists(st.tuples(st.sampled_from(sorted(MARKS)), st.integers(1, 3)), max_size=25), st.integers(0, 3))
def test_any_sequence_of_periods(periods: list[tuple[str, int]], p_thresh: int) -> None:
    """Lines 3 to 4, 14 to 20 and 23 to 24; N_v counts the present period, and some CE holds the rate (`packet`)."""
    sender, rate, n_u, n_v = started(rate=4e9, p_thresh=p_thresh, halt=False), 4e9, 0, 0
    for kind, times in periods:
        ce, ue, none = (times * each for each in MARKS[kind])
        if kind == "steadily congested":
            rate, n_u, n_v = ce * 1000 / PERIOD, 0, 0
        elif kind == "some CE":
            n_u = n_v = 0
        elif kind == "UE":
            n_u, n_v = 0, n_v + 1
            if n_v > p_thresh:
                rate = max(rate / 2, LEAST)
        else:
            rate += (LINE - rate) / LINE * (LOW if n_u < 2 else HIGH)
            n_u, n_v = n_u + 1, 0
        assert sender.period(ce=ce, ue=ue, none=none) == pytest.approx(rate, rel=1e-12)
