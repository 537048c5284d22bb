"""For how long sampling is ahead by the difference metric (2), and by how much: any settings, and arrays of them.

With x = beta t/r, a = C1 r/(s MTU) and b = C0 r/(s MTU) the difference (2) is

    (C1 - C0) (exp(-x) - 1/((1 + a x)(1 + b x))),

which has the sign of h(x) = ln(1 + a x) + ln(1 + b x) - x. h is 0 at 0, strictly concave, and falls below 0 in the end:
it changes sign exactly once if h'(0) = a + b - 1 is positive, and never if not. While h > 0, the logarithm of the
difference is concave, so that there is one peak. Both roots are bracketed below, for all a and b.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from fluidcc.errors import InputError
from fluidcc.surface import public
from fluidcc.theory.fairness.settings import Array, Decrease, grid_of, one, settings_of
from fluidcc.units import COUNT, RATE, RATIO, SIZE, TIME

OK, NO_LEAD, INVALID = 0, 1, 2
_MEANINGS = "ok; never ahead; setting out of range"
_MOST = 1e4  # more than any x = beta t/r at which (2) changes sign, for numbers that floats can hold


@public()
def sampling_lead(
    fast: Any, slow: Any, *, rtt: Any = "30us", acks: Any = 30, mtu: Any = "1KB", beta: Any = 0.5
) -> xr.Dataset:
    """Compute when and how far the decrease per s ACKs is ahead of the one per RTT, by the difference of two rates.

    Parameters
    ----------
    fast, slow : quantity or array_like
        C1 > C0, the rates to start from [bytes/s].
    rtt : quantity or array_like
        r, time between decreases of the rule per RTT [s].
    acks : number or array_like
        s, ACKs between decreases of the rule by sampling; need not be whole.
    mtu : quantity or array_like
        What an ACK stands for [bytes].
    beta : number or array_like
        Between 0 and 1.

    Returns
    -------
    xarray.Dataset
        Of the shape that the settings broadcast to, with dimensions ``dim_0``, ... (none if all are single):
        ``sign_change`` [s], until when the difference (2) is positive; ``peak_time`` [s]; ``peak`` [bytes/s], its
        largest value; ``ahead_at_first``, whether 1/r < (C1 + C0)/(s MTU); ``reason``. Where it is not ahead at first
        it never is, and the three numbers are NaN (``reason`` 1).

    Raises
    ------
    InputError
        If shapes do not broadcast, or a single setting is out of range. In arrays a setting out of range has
        ``reason`` 2 and NaN, and its neighbours are left alone.

    Notes
    -----
    Snyder and Lebeck, *Fast Convergence to Fairness*, section IV-B, (2) and the condition after it. That the sign
    changes exactly once is ours, and proved: ``fluidcc verify sf-once``. Numbers are good to about 12 digits, fewer
    as the condition is nearly an equation: that loses what (C1 + C0) r/(s MTU) - 1 loses.

    Examples
    --------
    Figure 4 of the paper:

    >>> lead = fc.theory.sampling_lead("100Gbps", "50Gbps", rtt="30us", acks=30, mtu="1KB", beta=0.5)
    >>> round(lead.sign_change.item() * 1e6, 3), round(lead.peak_time.item() * 1e6, 3)
    (522.957, 11.893)
    """
    given = {"fast": (fast, RATE), "slow": (slow, RATE), "rtt": (rtt, TIME), "acks": (acks, COUNT)}
    given |= {"mtu": (mtu, SIZE), "beta": (beta, RATIO)}
    values = {name: grid_of(name, value, dimension) for name, (value, dimension) in given.items()}
    try:
        C1, C0, r, s, m, share = np.broadcast_arrays(*values.values())
    except ValueError:
        shapes = ", ".join(f"{name} {value.shape}" for name, value in values.items())
        raise InputError(f"shapes {shapes} do not broadcast; give single values or arrays of equal shape") from None
    if C1.ndim == 0:
        _one(fast, slow, acks, mtu, rtt, beta)
    with np.errstate(all="ignore"):  # what is no number, or out of range, is refused by what comes of it
        a, b = loads(C1, C0, Decrease(s, m, r, share))
        valid = (C1 > C0) & (C0 > 0) & (r > 0) & (s > 0) & (m > 0) & (share > 0) & (share < 1)
        valid = valid & np.isfinite(a * _MOST) & np.isfinite(r / share * _MOST) & (a > b)
    if C1.ndim == 0 and not valid:
        raise InputError("fast, slow: rates, acks or rtt too extreme for floats; give values of a real network")
    ahead = valid & (a + b > 1)
    # A setting of Fig. 4 in place of those without a root, so that all are searched together.
    a, b = np.where(ahead, a, 12.5), np.where(ahead, b, 6.25)
    end, top = roots(a, b)
    per_x = np.where(valid, r, 1.0) / np.where(valid, share, 1.0)
    height = np.where(ahead, C1 - C0, 0.0) * relative_difference(top, a, b)
    dims = tuple(f"dim_{k}" for k in range(C1.ndim))

    def variable(numbers: Array, unit: str, text: str) -> tuple[Any, ...]:
        return dims, np.where(ahead, numbers, np.nan), {"units": unit, "long_name": text}

    why = np.where(ahead, OK, np.where(valid, NO_LEAD, INVALID)).astype(np.int32)
    return xr.Dataset(
        {
            "sign_change": variable(end * per_x, "s", "time until which sampling is ahead"),
            "peak_time": variable(top * per_x, "s", "time of the largest lead"),
            "peak": variable(height, "bytes/s", "largest lead"),
            "ahead_at_first": (dims, ahead, {"units": "1", "long_name": "1/r < (C1 + C0)/(s MTU)"}),
            "reason": (dims, why, {"units": "1", "flag_values": [OK, NO_LEAD, INVALID], "flag_meanings": _MEANINGS}),
        }
    )


def loads(fast: Any, slow: Any, setting: Decrease) -> tuple[Any, Any]:
    """The dimensionless a, b = C r/(s MTU): samples that a flow fills in an RTT at its first rate."""
    return fast / setting.mtu * (setting.rtt / setting.acks), slow / setting.mtu * (setting.rtt / setting.acks)


def relative_difference(x: Any, a: Any, b: Any) -> Any:
    """(2) over C1 - C0 at x = beta t/r, without cancellation near 0: exp(-x) (1 - exp(-h))."""
    return -np.exp(-x) * np.expm1(-_logarithm(x, a, b))


def roots(a: Array, b: Array) -> tuple[Array, Array]:
    """Find where (2) changes sign and where it is largest, in x = beta t/r, for a > b >= 0 with a + b > 1.

    In the logarithm of x, since the root may be of any size. The brackets hold for all a and b: ln(1 + u) >= u - u^2/2
    gives h > 0 below 2 e/(a + b)^2 with e = a + b - 1, and h < 0 at 4 (1 + ln(1 + a)) because x > 2 ln(1 + a x) there.
    The peak is before the change of sign, and after a quarter of the former bound.

    Parameters
    ----------
    a, b : ndarray
        Arrays of one shape.

    Returns
    -------
    tuple of ndarray
        Of the same shape.
    """
    from scipy.optimize import elementwise

    low = np.log((a + b - 1) / (a + b)) - np.log(a + b)  # in logarithms: (a + b)^2 may overflow
    high = np.log(4 * (1 + np.log1p(a)))

    def sign(y: Array, a: Array, b: Array) -> Array:
        x = np.exp(y)
        return _logarithm(x, a, b) / x

    def slope(y: Array, a: Array, b: Array) -> Array:
        """exp(-h) times h' - (exp(h) - 1), which has the sign of the slope of (2)."""
        x = np.exp(y)
        h = _logarithm(x, a, b)
        return (a / (1 + a * x) + b / (1 + b * x) - 1) * np.exp(-h) + np.expm1(-h)

    end = elementwise.find_root(sign, (low, high), args=(a, b)).x
    top = elementwise.find_root(slope, (low - np.log(2), end), args=(a, b)).x
    return np.exp(end), np.exp(top)


def _logarithm(x: Any, a: Any, b: Any) -> Any:
    """h: its sign is that of (2)."""
    return np.log1p(a * x) + np.log1p(b * x) - x


def _one(fast: Any, slow: Any, acks: Any, mtu: Any, rtt: Any, beta: Any) -> None:
    """Refuse a single setting that is out of range."""
    C1, C0 = one("fast", fast, RATE), one("slow", slow, RATE)
    settings_of(acks, mtu, rtt, beta)
    if C1 <= C0:
        raise InputError(f"slow: {str(slow)[:20]} is not below fast: {str(fast)[:20]}; give the larger rate as fast")
