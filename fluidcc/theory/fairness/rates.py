"""Both rules over time, with the paper's metric and with ratios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import xarray as xr

from fluidcc.errors import InputError
from fluidcc.results.display import draw, label, shown
from fluidcc.results.result import DatasetResult, Row
from fluidcc.surface import public
from fluidcc.theory.fairness.closed import RULES, integrated, solved
from fluidcc.theory.fairness.lead import sampling_lead
from fluidcc.theory.fairness.metrics import METRICS
from fluidcc.theory.fairness.settings import Array, Decrease, grid_of, rates_of, settings_of
from fluidcc.units import RATE, TIME, Rate, show

if TYPE_CHECKING:
    from fluidcc.results.display import Picture

METHODS = {"closed form": solved, "integration": integrated}
SAMPLES = 2001
_FALLEN = 700.0  # x = beta t/r at which exp(-x) is about the smallest float


class DecreaseRates(DatasetResult):
    """Rates of flows that decrease without end, by both rules; made by `decrease_rates`.

    Parameters
    ----------
    dataset : xarray.Dataset
        ``rate`` (rule, time, flow) and ``difference`` (rule, time) [bytes/s], ``ratio`` and ``jain`` (rule, time), and
        ``lead`` (time) [bytes/s], (2): by how much the difference of sampling is the smaller. Rules are "per RTT" and
        "sampling". Attributes: the setting, in SI.
    """

    def __repr__(self) -> str:
        """Flows, horizon and how it was computed."""
        data = self.dataset
        return f"<Decrease of {data.sizes['flow']} flows over {show(float(data.time[-1]), TIME)}, {data.method}>"

    KEPT: ClassVar[tuple[str, ...]] = ("time",)
    WHOLE: ClassVar[tuple[str, ...]] = ("rule", "flow")

    def _rows(self) -> list[Row]:
        return [(label(key), shown(key, value)) for key, value in self.summary().items()]

    def summary(self) -> dict[str, float | bool]:
        """Return the key numbers: when sampling is ahead by the difference (2), and the ratios at the horizon's end.

        Returns
        -------
        dict
            ``ahead_at_first``; ``sign_change_s``, ``peak_s`` and ``peak_bytes_per_s`` as from `sampling_lead` for the
            fastest and the slowest flow (NaN if never ahead); ``ratio_at_start``, ``ratio_per_rtt`` and
            ``ratio_sampling``.
        """
        data = self.dataset
        first = data.rate[0, 0]
        found = lead_of(first.values, Decrease(*(data.attrs[name] for name in ("acks", "mtu", "rtt_s", "beta"))))
        return {
            "ahead_at_first": bool(found.ahead_at_first),
            "sign_change_s": float(found.sign_change),
            "peak_s": float(found.peak_time),
            "peak_bytes_per_s": float(found.peak),
            "ratio_at_start": float(data.ratio[0, 0]),
            "ratio_per_rtt": float(data.ratio[0, -1]),
            "ratio_sampling": float(data.ratio[1, -1]),
        }

    def plot(self, *, title: str | None = None) -> Picture:
        """Rates, the difference metric, its lead (2), and the ratio metric, over time."""
        return draw("plot_decrease", self, title=title)


@public()
def decrease_rates(
    rates: Sequence[Any] | Array,
    *,
    rtt: Any = "30us",
    acks: Any = 30,
    mtu: Any = "1KB",
    beta: Any = 0.5,
    times: Any = None,
    method: str = "closed form",
) -> DecreaseRates:
    """Run a decrease per RTT and one per s ACKs from the same rates, the network being congested throughout.

    Parameters
    ----------
    rates : sequence of quantity
        Two or more rates to start from, not all equal [bytes/s].
    rtt : quantity
        r, fixed [s].
    acks : number
        s, ACKs between decreases of the rule by sampling.
    mtu : quantity
        What an ACK stands for [bytes].
    beta : number
        Between 0 and 1.
    times : array_like of quantity
        When to say the rates, ascending from 0 on [s]. By default evenly up to 1.2 times the time at which the
        difference (2) changes sign, or 10 r/beta if it never does.
    method : {"closed form", "integration"}
        The solution, or the differential equations integrated (to 1e-9), which knows nothing of it.

    Returns
    -------
    DecreaseRates

    Raises
    ------
    InputError
        If a setting is out of range, all rates are equal, the times do not ascend from 0 or more, or reach 700 r/beta,
        where rates are no floats any more.

    Notes
    -----
    Snyder and Lebeck, *Fast Convergence to Fairness*, section IV-B. The paper has two flows and compares S1 - S0; with
    more it is the largest less the smallest, which are the same two flows throughout.

    Examples
    --------
    >>> run = fc.theory.decrease_rates(["100Gbps", "50Gbps"])
    >>> {name: round(value, 3) for name, value in run.summary().items() if name.startswith("ratio")}
    {'ratio_at_start': 2.0, 'ratio_per_rtt': 2.0, 'ratio_sampling': 1.008}
    """
    setting, initial = settings_of(acks, mtu, rtt, beta), rates_of(rates)
    if initial.max() == initial.min():
        raise InputError(f"rates: all are {show(initial[0], RATE)}, as fair as can be; give rates that differ")
    if method not in METHODS:
        raise InputError(f"method: {str(method)[:20]!r} is unknown; write {' or '.join(METHODS)}")
    last = _FALLEN * setting.rtt / setting.beta
    if times is None:
        end = 1.2 * float(lead_of(initial, setting).sign_change)
        at = np.linspace(0.0, min(end, last) if np.isfinite(end) else 10 * setting.rtt / setting.beta, SAMPLES)
    else:
        at = _times(times, last)
    found = METHODS[method](initial, at, setting)
    names = {"acks": setting.acks, "mtu": setting.mtu, "rtt_s": setting.rtt, "beta": setting.beta, "method": method}
    return DecreaseRates(with_metrics(found, at).assign_attrs(names))


def lead_of(initial: Array, setting: Decrease) -> xr.Dataset:
    """`sampling_lead` of the fastest flow over the slowest."""
    acks, mtu, rtt, beta = setting
    return sampling_lead(Rate(initial.max()), Rate(initial.min()), rtt=rtt, acks=acks, mtu=mtu, beta=beta)


def with_metrics(rates: Array, times: Array) -> xr.Dataset:
    """Rates (rule, time, flow) with what `METRICS` makes of them, and the lead (2)."""
    data = xr.Dataset(
        {"rate": (("rule", "time", "flow"), rates, {"units": "bytes/s", "long_name": "sending rate"})},
        {
            "rule": list(RULES),
            "time": ("time", times, {"units": "s", "long_name": "time"}),
            "flow": [f"flow {k}" for k in range(rates.shape[-1])],
        },
    )
    for name, (metric, unit, text) in METRICS.items():
        data[name] = (("rule", "time"), metric(rates), {"units": unit, "long_name": text})
    gap = data["difference"].values
    data["lead"] = ("time", gap[0] - gap[1], {"units": "bytes/s", "long_name": "(2), lead of sampling"})
    return data


def _times(times: Any, last: float) -> Array:
    at = grid_of("times", times, TIME)
    if at.ndim != 1 or at.size < 2 or not (at[0] >= 0 and (np.diff(at) > 0).all() and at[-1] <= last):
        raise InputError(
            f"times: {str(times)[:40]}; give two or more that ascend from 0 or more to at most {show(last, TIME)}, "
            "700 r/beta"
        )
    return at
