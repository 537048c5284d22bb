"""The DCQCN settings of NVIDIA NICs: names, units, ranges, defaults, what the model makes of them, and back."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Mapping

from fluidcc.errors import InputError
from fluidcc.units import RATE, RATIO, SIZE, TIME, Rate, Seconds, show

_US, _MBPS, _REGISTER = 1e-6, Rate(1e6 / 8), 2.0**32 - 1
_FIXED_POINT = 2**10  # alpha and its gain are fractions of ten bits
NEVER = 1e12  # bytes; 80 s at 100 Gb/s: the counter plays no part
_FIRST = "rate_to_set_on_first_cnp"
_EACH = 1e-9  # s; below the time of any packet: a CNP for each that is marked


@dataclasses.dataclass(frozen=True)
class Setting:
    """Setting that the model uses, in the NIC's unit."""

    default: float
    unit: str
    what: str
    low: float
    high: float
    hint: str = ""


SETTINGS: dict[str, Setting] = {
    "dce_tcp_g": Setting(
        1019,
        "",
        "alpha's 10-bit gain",
        0,
        _FIXED_POINT - 1,
        "g = 1 - G/1024, so that 1024 would freeze alpha",
    ),
    "dce_tcp_rtt": Setting(1, "us", "alpha's update period", 1, 131071, "the model divides by it"),
    "initial_alpha_value": Setting(1023, "", "the first alpha as a 10-bit fraction", 0, _FIXED_POINT - 1),
    "rate_reduce_monitor_period": Setting(4, "us", "the least time between rate cuts", 0, _REGISTER),
    "clamp_tgt_rate": Setting(0, "", "1 if every cut lowers the target rate, else 0", 0, 1),
    "clamp_tgt_rate_after_time_inc": Setting(1, "", "1 if a cut after an increase by the timer does too", 0, 1),
    "rate_to_set_on_first_cnp": Setting(0, "Mb/s", "the rate on a flow's first CNP", 0, _REGISTER),
    "min_time_between_cnps": Setting(4, "us", "the least time between CNPs", 0, _REGISTER),
    "rpg_time_reset": Setting(300, "us", "the rate-increase timer", 1, _REGISTER, "the model divides by it"),
    "rpg_byte_reset": Setting(32767, "bytes", "the byte counter", 0, _REGISTER),
    "rpg_threshold": Setting(1, "", "the steps of fast recovery", 0, 31),
    "rpg_ai_rate": Setting(5, "Mb/s", "the additive increase", 0, _REGISTER),
    "rpg_hai_rate": Setting(50, "Mb/s", "the hyper increase", 0, _REGISTER),
    "rpg_gd": Setting(11, "", "the binary logarithm of the cut's divisor", 0, 15, "11 cuts the rate by alpha/2"),
    "rpg_min_dec_fac": Setting(50, "percent", "the least share of the rate that a cut leaves", 0, 100),
    "rpg_min_rate": Setting(1, "Mb/s", "the least rate", 0, _REGISTER),
    "rpg_max_rate": Setting(0, "Mb/s", "the largest rate", 0, _REGISTER),
}


def _always(reason: str) -> Callable[[float], str]:
    return lambda value: reason


_LATE = (
    "CNPs are neither lost nor kept waiting in the model; on the sample switch (8 flows, NVIDIA's defaults) feedback "
    "that comes 20 us later raises the mean queue by a fifth, 3.6 to 4.3 MB, and utilisation from 0.783 to 0.794"
)

# Settings that belong to DCQCN but have no counterpart in the model, with the reason for a value.
UNUSED: dict[str, Callable[[float], str]] = {
    "cnp_dscp": _always(_LATE),
    "cnp_802p_prio": _always(_LATE),
    "cnp_prio_mode": _always(_LATE),
    "cnp_res_prio_mode": _always(_LATE),
    "cnp_dscp_mode": _always(_LATE),
    "roce_cc_prio_mask": _always("DCQCN is taken as on for the traffic modelled"),
    "roce_cc_algorithm": lambda v: (
        "the NIC does NOT run DCQCN with this choice; the model does" if v else "DCQCN, as modelled"
    ),
    "roce_cc_cnp_moderation": _always("CNPs are spaced by flow in the model; see the findings of an audit"),
    "user_programmable_cc": _always("which algorithm runs; see the findings of an audit"),
    "roce_cc_legacy_dcqcn": _always("which algorithm runs; see the findings of an audit"),
    "roce_cc_dcqcn_compatibility_mode": _always("which algorithm runs; see the findings of an audit"),
    "roce_cc_steering_ext": _always("where flows go, not how fast: no part of DCQCN"),
}


# The driver's switches of DCQCN, one for each end and priority: ecn/roce_np/enable/3 (notification point).
SIDES = {"np": "no CNP is sent for what is marked", "rp": "no CNP lowers a rate"}


def enabling(side: str, priority: int) -> str:
    """Return the name under which the driver's switch of an end, ``np`` or ``rp``, and a priority is kept."""
    return f"roce_{side}_enable_{priority}"


SWITCHES = frozenset(enabling(side, priority) for side in SIDES for priority in range(8))

_ALIASES = {f"enableprio{priority}": enabling("rp", priority) for priority in range(8)}  # of WinOF-2
_ALIASES |= {
    "clamptgtrateati": "clamp_tgt_rate_after_time_inc",
    "cnpprio": "cnp_802p_prio",
    # WinOF-2's; NVIDIA, "DCQCN CC parameters".
    "dcealphag": "dce_tcp_g",
    "dcealphaupdateperiod": "dce_tcp_rtt",
    "alphatorateshift": "rpg_gd",
}


def _squashed(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


_KNOWN = {_squashed(name): name for name in (*SETTINGS, *UNUSED, *SWITCHES)} | _ALIASES


def canonical(name: str) -> str | None:
    """Return the canonical name of a setting (lower case, no port), or None if it is none of DCQCN's.

    The driver's ``cc_params`` say ``rp_ai_rate`` and ``np_cnp_prio`` for ``rpg_ai_rate`` and ``cnp_802p_prio``, and
    WinOF-2 ``DcQcnRpgAiRate``.
    """
    bare = name[3:] if name.lower().startswith(("rp_", "np_")) else name
    if "_" not in name:  # other vendors' drivers have an underscore behind it
        bare = re.sub("^(dcqcn|ecn)", "", bare, flags=re.IGNORECASE)
    squashed = _squashed(bare)
    return _KNOWN.get(squashed) or _KNOWN.get(f"rpg{squashed}")


def mapped(given: Mapping[str, float], source: str) -> Iterator[tuple[str, tuple[str, ...], float, str]]:
    """Yield name, settings, SI value and a note of each parameter of the model that a setting determines.

    Parameters
    ----------
    given : mapping of str to float
        Settings in the NIC's units; defaults are used for the others.
    source : str
        Where they are from, for the error message.

    Raises
    ------
    InputError
        If the CNP interval would be zero.
    """
    raw = {name: given.get(name, setting.default) for name, setting in SETTINGS.items()}
    between, period = raw["min_time_between_cnps"], raw["rate_reduce_monitor_period"]
    if between <= 0 and period <= 0:
        raise InputError(
            f"{source}: min_time_between_cnps and rate_reduce_monitor_period are both 0; "
            "the model needs one of them at least 1 (us)"
        )
    yield "g", ("dce_tcp_g",), 1 - raw["dce_tcp_g"] / _FIXED_POINT, "g = 1 - G/1024"
    yield "alpha_timer", ("dce_tcp_rtt",), Seconds(raw["dce_tcp_rtt"] * _US), ""
    note = "" if between > 0 else "0 sends one for each marked packet: modelled as 1 ns"
    yield "cnp_interval", ("min_time_between_cnps",), Seconds(between * _US) if between > 0 else _EACH, note
    yield "rate_decrease_interval", ("rate_reduce_monitor_period",), Seconds(period * _US), ""
    yield "clamp_tgt_rate", ("clamp_tgt_rate",), bool(raw["clamp_tgt_rate"]), ""
    name = "clamp_tgt_rate_after_time_inc"
    yield name, (name,), bool(raw[name]), "plays no part if clamp_tgt_rate is on" if raw["clamp_tgt_rate"] else ""
    yield "timer", ("rpg_time_reset",), Seconds(raw["rpg_time_reset"] * _US), ""
    off = raw["rpg_byte_reset"] == 0
    note = "0 turns the byte counter off: modelled as 1 TB" if off else ""
    yield "byte_counter", ("rpg_byte_reset",), NEVER if off else raw["rpg_byte_reset"], note
    yield "fast_recovery_steps", ("rpg_threshold",), raw["rpg_threshold"], ""
    yield "rate_ai", ("rpg_ai_rate",), raw["rpg_ai_rate"] * _MBPS, ""
    yield "rate_hai", ("rpg_hai_rate",), raw["rpg_hai_rate"] * _MBPS, ""
    alpha = raw["initial_alpha_value"] / _FIXED_POINT
    yield "initial_alpha", ("initial_alpha_value",), alpha, "a 10-bit fraction"
    gain = 2.0 ** (10 - raw["rpg_gd"])
    yield "decrease_gain", ("rpg_gd",), gain, "a cut is by alpha 2^(10 - gd)"
    cut = 1 - raw["rpg_min_dec_fac"] / 100
    note = "100% leaves the rate uncut by any CNP" if cut == 0 else "a cut leaves at least this share of the rate"
    yield "max_decrease", ("rpg_min_dec_fac",), cut, note
    yield "min_rate", ("rpg_min_rate",), raw["rpg_min_rate"] * _MBPS, ""
    note = "of starts alone: equilibrium, stability and the averaged fluid leave it out" if raw[_FIRST] else "off"
    yield "rate_on_first_cnp", (_FIRST,), raw[_FIRST] * _MBPS, note
    if raw["rpg_max_rate"] > 0:  # 0: no limit but the line rate
        yield "max_rate", ("rpg_max_rate",), raw["rpg_max_rate"] * _MBPS, ""


# -- back to registers: the inverse of `mapped` ------------------------------------------------------------


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
