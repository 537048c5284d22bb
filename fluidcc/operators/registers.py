"""From a model's parameters back to the NIC's registers: the inverse of `fluidcc.operators.nvidia_settings.mapped`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from fluidcc.errors import InputError
from fluidcc.operators.nvidia_settings import NEVER, SETTINGS
from fluidcc.units import RATE, RATIO, SIZE, TIME, show

_US, _MBPS = 1e-6, 1e6 / 8
_ROUNDED = 0.01  # of a value: what is rounded by more is said
_NOTHING = 1e-6  # of a unit
# Bits of mlxconfig's fields, where they are narrower than the driver's files (the public register layout).
BITS = {"rpg_byte_reset": 15, "rpg_time_reset": 17, "rpg_ai_rate": 17, "rpg_hai_rate": 17}


def _fraction(value: float) -> float:
    return 1024 * value


# For each parameter its register, its dimension, and the register's value from that in SI.
REGISTERS: dict[str, tuple[str, str, Callable[[float], float]]] = {
    "g": ("dce_tcp_g", RATIO, lambda v: 1024 * (1 - v)),
    "alpha_timer": ("dce_tcp_rtt", TIME, lambda v: v / _US),
    "cnp_interval": ("min_time_between_cnps", TIME, lambda v: v / _US),
    "rate_decrease_interval": ("rate_reduce_monitor_period", TIME, lambda v: v / _US),
    "clamp_tgt_rate": ("clamp_tgt_rate", RATIO, float),
    "clamp_tgt_rate_after_time_inc": ("clamp_tgt_rate_after_time_inc", RATIO, float),
    "timer": ("rpg_time_reset", TIME, lambda v: v / _US),
    "byte_counter": ("rpg_byte_reset", SIZE, lambda v: 0.0 if v >= NEVER else v),
    "fast_recovery_steps": ("rpg_threshold", RATIO, float),
    "rate_ai": ("rpg_ai_rate", RATE, lambda v: v / _MBPS),
    "rate_hai": ("rpg_hai_rate", RATE, lambda v: v / _MBPS),
    "initial_alpha": ("initial_alpha_value", RATIO, _fraction),
    "decrease_gain": ("rpg_gd", RATIO, lambda v: 10 - math.log2(v)),
    "max_decrease": ("rpg_min_dec_fac", RATIO, lambda v: 100 * (1 - v)),
    "min_rate": ("rpg_min_rate", RATE, lambda v: v / _MBPS),
    "rate_on_first_cnp": ("rate_to_set_on_first_cnp", RATE, lambda v: v / _MBPS),
    "max_rate": ("rpg_max_rate", RATE, lambda v: v / _MBPS),
}


def whole_of(name: str, exact: float, notes: list[str], what: str) -> int:
    """Round to the nearest whole number; note a difference of more than a hundredth.

    Raises
    ------
    InputError
        If that is 0 and the value is not.
    """
    raw = round(exact)
    if raw == 0 and abs(exact) > _NOTHING:
        raise InputError(f"{name}: {exact:.3g} {what} would be rounded to 0, which means another thing; give 1 or more")
    if abs(raw - exact) > _ROUNDED * abs(exact):
        notes.append(f"{name}: {exact:.6g} {what} is written as {raw}")
    return raw


def register_of(parameter: str, value: float, notes: list[str] | None = None) -> tuple[str, int]:
    """A NIC's setting and its raw value for a parameter of the model.

    Parameters
    ----------
    parameter : str
        One of `REGISTERS`.
    value : float
        In SI.
    notes : list of str, optional
        Is told what is rounded by more than a hundredth.

    Returns
    -------
    name : str
    raw : int
        The nearest whole number.

    Raises
    ------
    InputError
        If the register does not reach so far, or the nearest whole number is a 0 that means another thing.
    """
    name, dimension, raw_of = REGISTERS[parameter]
    try:
        exact = raw_of(value)
    except ValueError:
        exact = math.nan
    if not math.isfinite(exact):
        raise InputError(f"{parameter}: {value} is no value of {name}; give a finite one above 0")
    raw = whole_of(parameter, exact, notes if notes is not None else [], f"of {name}")
    setting = SETTINGS[name]
    high = min(setting.high, 2.0 ** BITS[name] - 1) if name in BITS else setting.high
    if not setting.low <= raw <= high:
        raise InputError(
            f"{parameter}: {show(value, dimension)} is {name} = {raw}, and mlxconfig takes {setting.low:g} to {high:g}"
            + (f" {setting.unit}" if setting.unit else "")
            + ("; 0 turns it off" if name == "rpg_byte_reset" else "")
        )
    return name, raw


def registers_of(changes: Mapping[str, float], notes: list[str] | None = None) -> dict[str, int]:
    """Raw values by setting, of those changes that are a NIC's.

    Raises
    ------
    InputError
        As `register_of`.
    """
    return dict(register_of(name, value, notes) for name, value in changes.items() if name in REGISTERS)
