"""The DCQCN settings of NVIDIA NICs: names, units, ranges, defaults, and what the model makes of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping

from fluidcc.errors import InputError
from fluidcc.units import Rate

_US, _MBPS, _REGISTER = 1e-6, Rate(1e6 / 8), 2.0**32 - 1
_FIXED_POINT = 2**10  # alpha and its gain are fractions of ten bits
_NEVER = 1e12  # bytes; 80 s at 100 Gb/s: the counter plays no part


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting that the model uses, in the NIC's unit."""

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
    "min_time_between_cnps": Setting(4, "us", "the least time between CNPs", 0, _REGISTER),
    "rpg_time_reset": Setting(300, "us", "the rate-increase timer", 1, _REGISTER, "the model divides by it"),
    "rpg_byte_reset": Setting(32767, "bytes", "the byte counter", 0, _REGISTER),
    "rpg_threshold": Setting(1, "", "the steps of fast recovery", 0, 31),
    "rpg_ai_rate": Setting(5, "Mb/s", "the additive increase", 0, _REGISTER),
    "rpg_hai_rate": Setting(50, "Mb/s", "the hyper increase", 0, _REGISTER),
    "rpg_gd": Setting(11, "", "the binary logarithm of the cut's divisor", 0, 15, "11 cuts the rate by alpha/2"),
    "rpg_min_dec_fac": Setting(50, "percent", "the least share of the rate that a cut leaves", 0, 100),
    "rpg_min_rate": Setting(1, "Mb/s", "the least rate", 0, _REGISTER),
}


def _always(reason: str) -> Callable[[float], str]:
    return lambda value: reason


# Settings that belong to DCQCN but have no counterpart in the model, with the reason for a value.
UNUSED: dict[str, Callable[[float], str]] = {
    "clamp_tgt_rate": lambda v: (
        "as in the model: the target rate follows the rate at every CNP, eq. (8)"
        if v
        else "the NIC lowers its target rate only at the first cut after an increase, the model at every cut, eq. (8)"
    ),
    "clamp_tgt_rate_after_time_inc": _always("the target rate follows the rate at every CNP in the model, eq. (8)"),
    "rpg_max_rate": lambda v: (
        "flows are limited by the line rate only" if v else "no limit but the line rate, as in the model"
    ),
    "rate_to_set_on_first_cnp": lambda v: (
        "the model's first cut is by alpha, not to a set rate"
        if v
        else "off: the first cut is by alpha, as in the model"
    ),
    "cnp_dscp": _always("CNPs are never lost nor delayed by a queue in the model"),
    "cnp_802p_prio": _always("CNPs are never lost nor delayed by a queue in the model"),
    "cnp_prio_mode": _always("CNPs are never lost nor delayed by a queue in the model"),
    "roce_cc_prio_mask": _always("DCQCN is taken as on for the traffic modelled"),
    "roce_cc_algorithm": lambda v: (
        "the NIC does NOT run DCQCN with this choice; the model does" if v else "DCQCN, as modelled"
    ),
    "roce_cc_cnp_moderation": _always("CNPs are spaced per flow in the model"),
    "roce_cc_steering_ext": _always("DCQCN is modelled"),
}


def canonical(name: str) -> str | None:
    """Return the canonical name of a setting (lower case, no port), or None if it is none of DCQCN's.

    The driver's ``cc_params`` say ``rp_ai_rate`` and ``np_cnp_prio`` for ``rpg_ai_rate`` and
    ``cnp_802p_prio``.
    """
    aliases = {"clamp_tgt_rate_ati": "clamp_tgt_rate_after_time_inc", "cnp_prio": "cnp_802p_prio"}
    bare = name[3:] if name.startswith(("rp_", "np_")) else name
    for known in (bare, f"rpg_{bare}", aliases.get(bare, "")):
        if known in SETTINGS or known in UNUSED:
            return known
    return None


def mapped(given: Mapping[str, float], source: str) -> Iterator[tuple[str, tuple[str, ...], float, str]]:
    """For each parameter of the model that a setting determines: name, settings, SI value and a note.

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
    interval = max(raw["min_time_between_cnps"], raw["rate_reduce_monitor_period"])
    if interval <= 0:
        raise InputError(
            f"{source}: min_time_between_cnps and rate_reduce_monitor_period are both 0; "
            "the model needs one of them at least 1 (us)"
        )
    yield "g", ("dce_tcp_g",), 1 - raw["dce_tcp_g"] / _FIXED_POINT, "g = 1 - G/1024"
    yield "alpha_timer", ("dce_tcp_rtt",), raw["dce_tcp_rtt"] * _US, ""
    names = ("min_time_between_cnps", "rate_reduce_monitor_period")
    yield "cnp_interval", names, interval * _US, "the longer of the two spaces the rate cuts"
    yield "timer", ("rpg_time_reset",), raw["rpg_time_reset"] * _US, ""
    off = raw["rpg_byte_reset"] == 0
    note = "0 turns the byte counter off: modelled as 1 TB" if off else ""
    yield "byte_counter", ("rpg_byte_reset",), _NEVER if off else raw["rpg_byte_reset"], note
    yield "fast_recovery_steps", ("rpg_threshold",), raw["rpg_threshold"], ""
    yield "rate_ai", ("rpg_ai_rate",), raw["rpg_ai_rate"] * _MBPS, ""
    yield "rate_hai", ("rpg_hai_rate",), raw["rpg_hai_rate"] * _MBPS, ""
    alpha = raw["initial_alpha_value"] / _FIXED_POINT
    yield "initial_alpha", ("initial_alpha_value",), alpha, "a 10-bit fraction"
    gain = 2.0 ** (10 - raw["rpg_gd"])
    note = "a cut is by alpha 2^(10 - gd)" + (", limited to alpha" if gain > 1 else "")
    yield "decrease_gain", ("rpg_gd",), min(gain, 1.0), note
    cut = 1 - raw["rpg_min_dec_fac"] / 100
    note = "100% leaves the rate uncut by any CNP" if cut == 0 else "a cut leaves at least this share of the rate"
    yield "max_decrease", ("rpg_min_dec_fac",), cut, note
    yield "min_rate", ("rpg_min_rate",), raw["rpg_min_rate"] * _MBPS, ""
