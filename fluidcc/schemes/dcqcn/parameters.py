"""DCQCN's parameters and their presets."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fluidcc.contract.fields import bound_win, tcd_switch, ue_gain_field, win_base_rtt, win_switch
from fluidcc.contract.preset import EVALUATION, SIMULATOR, Preset
from fluidcc.scenario.model import RED
from fluidcc.scenario.parameters import parameter, register
from fluidcc.units import COUNT, RATE, RATIO, SIZE, TIME

if TYPE_CHECKING:
    from fluidcc.contract.bind import PathInformation

_TABLE_14 = "DCQCN Table 14"
_NVIDIA = "NVIDIA, DCQCN CC parameters: "
_MOST_GAIN = 1024.0  # rpg_gd = 0


@register()
class DCQCN:
    """Parameters of a DCQCN sender and its receiver (Zhu et al., SIGCOMM 2015).

    The defaults are the paper's Table 14 with F = 5, R_AI = 40 Mb/s, tau = 50 us and tau' = 55 us, and its
    fixed control-loop delay tau* = 50 us; ``feedback_delay=None`` uses the delays of the path instead, with
    the CNP interval and the queueing delay added.

    What NVIDIA's NICs do beyond the paper is off by default: see ``clamp_tgt_rate``, ``alpha_update``,
    ``rate_decrease_interval``, ``rate_on_first_cnp`` and ``max_rate``, and the preset ``vendor``.
    """

    g: Any = parameter(
        RATIO, "gain of alpha", default=1 / 256, symbol="g", source=_TABLE_14, low=0, high=1, open_low=True
    )
    rate_ai: Any = parameter(RATE, "additive increase", default="40Mbps", symbol="R_AI", source="DCQCN Table 2", low=0)
    rate_hai: Any = parameter(
        RATE,
        "hyper increase, used if hyper_increase is on",
        default="400Mbps",
        symbol="R_HAI",
        source="DCQCN Fig. 7",
        low=0,
    )
    byte_counter: Any = parameter(
        SIZE,
        "bytes between rate increases; 1000GB turns it off",
        default="10MB",
        symbol="B",
        source=_TABLE_14,
        low=0,
        open_low=True,
    )
    timer: Any = parameter(
        TIME, "time between rate increases", default="55us", symbol="T", source=_TABLE_14, low=0, open_low=True
    )
    cnp_interval: Any = parameter(
        TIME,
        "least time between CNPs of a flow",
        default="50us",
        symbol="tau",
        source="DCQCN 3.1",
        low=0,
        open_low=True,
    )
    alpha_timer: Any = parameter(
        TIME, "interval of alpha's update", default="55us", symbol="tau'", source="DCQCN 5.2", low=0, open_low=True
    )
    fast_recovery_steps: Any = parameter(
        COUNT, "increases before R_T rises", default=5.0, symbol="F", source="DCQCN Table 2", low=0, integer=True
    )
    alpha_update: str = parameter(
        "choice",
        "restarted: up at a CNP, down where none came for alpha_timer since; slotted: once in each alpha_timer, up if "
        "a CNP came in it, from the flow's first CNP on",
        default="restarted",
        source="DCQCN Fig. 7; slotted: " + _NVIDIA + "dce_tcp_rtt",
        choices=("restarted", "slotted"),
    )
    initial_alpha: Any = parameter(
        RATIO,
        "alpha at start (slotted: and until the first CNP)",
        default=1.0,
        symbol="alpha_0",
        source="DCQCN 3.1",
        low=0,
        high=1,
    )
    decrease_gain: Any = parameter(
        RATIO,
        "cut of the rate per unit of alpha",
        default=0.5,
        symbol="1/2",
        source="DCQCN eq. (1); " + _NVIDIA + "2^(10 - rpg_gd)",
        low=0,
        high=_MOST_GAIN,
    )
    max_decrease: Any = parameter(
        RATIO, "largest cut of the rate by one CNP", default=1.0, source=_NVIDIA + "rpg_min_dec_fac", low=0, high=1
    )
    clamp_tgt_rate: bool = parameter(
        "on|off",
        "every cut sets R_T to R_C; off: only a cut that is the first since an increase",
        default=True,
        source="DCQCN eq. (1); " + _NVIDIA + "clamp_tgt_rate",
        choices=(False, True),
    )
    clamp_tgt_rate_after_time_inc: bool = parameter(
        "on|off",
        "without clamp_tgt_rate: whether an increase by the timer counts, as one by bytes does",
        default=True,
        source=_NVIDIA + "clamp_tgt_rate_after_time_inc",
        choices=(False, True),
    )
    clamp_looks_at: str = parameter(
        "choice",
        "without clamp_tgt_rate and clamp_tgt_rate_after_time_inc: what must have been by bytes since the last cut, "
        "any increase or the last (packets, hybrid)",
        default="any-increase",
        source="sources differ; ours",
        choices=("any-increase", "last-increase"),
    )
    rate_decrease_interval: Any = parameter(
        TIME,
        "least time between cuts: a CNP that comes sooner cuts at its end; variant hpcc-sim: time between looks at "
        "marks (0: 50us)",
        default=0.0,
        source=_NVIDIA + "rate_reduce_monitor_period",
        low=0,
    )
    rate_on_first_cnp: Any = parameter(
        RATE,
        "rate to which a flow's first CNP lowers R_C and R_T, instead of a cut; 0: it cuts (packets, hybrid)",
        default=0.0,
        source=_NVIDIA + "rate_to_set_on_first_cnp",
        low=0,
    )
    min_rate: Any = parameter(RATE, "least rate of a flow", default=0.0, source=_NVIDIA + "rpg_min_rate", low=0)
    max_rate: Any = parameter(
        RATE,
        "largest rate of a flow; line: its line rate",
        default=None,
        source=_NVIDIA + "rpg_max_rate",
        low=0,
        open_low=True,
        none_word="line",
    )
    feedback_delay: Any = parameter(
        TIME,
        "control-loop delay; path: that of the path",
        default="50us",
        symbol="tau*",
        source="DCQCN 5.1",
        low=0,
        none_word="path",
    )
    nic_cnp_interval: Any = parameter(
        TIME,
        "least time between CNPs of a NIC, of all its flows (packets and hybrid)",
        default=0.0,
        source="DCQCN 3.3",
        low=0,
    )
    base_rtt: Any = win_base_rtt()
    win: bool = win_switch()
    tcd: bool = tcd_switch()
    ue_gain: Any = ue_gain_field()
    variant: str = parameter(
        "choice",
        "the paper's reaction point, or that of the HPCC authors' simulator (packet engine)",
        default="paper",
        choices=("paper", "hpcc-sim"),
    )
    hyper_increase: bool = parameter(
        "on|off", "model the hyper-increase phase", default=False, source="DCQCN Fig. 7", choices=(False, True)
    )

    name: ClassVar[str] = "dcqcn"
    int_bytes = 0.0  # collects no telemetry
    default_marking: ClassVar[RED] = RED("5KB", "200KB", "1%")
    default_rate: ClassVar[str] = "40Gbps"

    @property
    def feedback_pause(self) -> Any:
        """Time that feedback waits in addition to the path's delays: one CNP interval, at the receiver [s]."""
        return self.cnp_interval

    def bind(self, path: PathInformation) -> Self:
        """Fill in the base RTT that the window fills, if ``win`` is on."""
        return bound_win(self, path)


# The HPCC authors' public simulator with the paper's parameters: 48 B of headers, marking as packets leave.
_SIMULATOR = DCQCN(
    variant="hpcc-sim", min_rate="100Mbps", rate_hai="40Mbps", feedback_delay=None, rate_decrease_interval="50us"
)

# NVIDIA's default numbers in the paper's algorithm: every cut lowers the target, and CNPs restart alpha's timer.
_VENDOR_NUMBERS = DCQCN(
    g=1 - 1019 / 1024,
    rate_ai="5Mbps",
    rate_hai="50Mbps",
    byte_counter="32767B",
    timer="300us",
    cnp_interval="4us",
    alpha_timer="1us",
    fast_recovery_steps=1.0,
    initial_alpha=1023 / 1024,
    max_decrease=0.5,
    min_rate="1Mbps",
    feedback_delay=None,
    hyper_increase=True,
)

# And their algorithm.
_VENDOR = dataclasses.replace(
    _VENDOR_NUMBERS, clamp_tgt_rate=False, alpha_update="slotted", rate_decrease_interval="4us"
)

PRESETS = {
    "paper": Preset(DCQCN(), DCQCN.default_marking),
    # DCQCN section 5.2: QCN's and DCTCP's recommended values.
    "strawman": Preset(DCQCN(byte_counter="150KB", timer="1.5ms", g=1 / 16), RED("40KB", "40KB", 1.0)),
    # The switch's thresholds are the paper's until a switch's configuration replaces them.
    "vendor": Preset(_VENDOR, DCQCN.default_marking),
    "hpcc-sim": Preset(_SIMULATOR, dataclasses.replace(DCQCN.default_marking, mark_on="departure"), SIMULATOR),
    # HPCC section 5.1: a vendor's parameters; thresholds in proportion to the link. Marks as packets leave, as in the
    # authors' simulator: with marks on arrival the incast of their Fig. 9(d) peaks at five times their 550 KB. Which
    # algorithm the vendor's NIC ran is not said: these are its numbers in the paper's.
    "hpcc-eval": Preset(
        _VENDOR_NUMBERS, RED("100KB", "400KB", 0.2, mark_on="departure"), EVALUATION, marking_rate="25Gbps"
    ),
}
