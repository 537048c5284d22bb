"""HPCC's parameters and their presets."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fluidcc.contract.fields import base_rtt_field, feedback_delay_field, initial_window_field
from fluidcc.contract.preset import EVALUATION, SIMULATOR, Preset
from fluidcc.errors import InputError
from fluidcc.scenario.model import RED
from fluidcc.scenario.parameters import bound, parameter, register
from fluidcc.scenario.round_trips import larger
from fluidcc.schemes.vai_sf.mechanisms import VaiSf, ai_div_field, token_rule_field, token_thresh_field
from fluidcc.units import COUNT, RATE, RATIO, SIZE, is_concrete, marked, show

if TYPE_CHECKING:
    from fluidcc.contract.bind import PathInformation

_ALGORITHM = "HPCC Algorithm 1"


@register()
class HPCC(VaiSf):
    """Parameters of an HPCC sender (Li et al., SIGCOMM 2019, Algorithm 1 and section 5.1).

    What Algorithm 1 leaves open: U starts at 1, the first ACK only records L, and W stays between one packet
    and W_init.
    """

    eta: Any = parameter(
        RATIO, "target utilisation", default=0.95, symbol="eta", source="HPCC 3.3", low=0, high=1, open_low=True
    )
    max_stage: Any = parameter(
        COUNT,
        "additive increases in a row before a multiplicative one",
        default=5.0,
        symbol="maxStage",
        source="HPCC 3.3",
        low=0,
        integer=True,
    )
    w_ai: Any = parameter(
        SIZE, "additive increase of the window", default="80B", symbol="W_AI", source="HPCC 5.1", low=0
    )
    rate_ai: Any = parameter(
        RATE,
        "additive increase as a rate, w_ai/base_rtt; w_ai: from w_ai",
        default=None,
        symbol="W_AI/T",
        source="HPCC 3.3",
        low=0,
        none_word="w_ai",
    )
    base_rtt: Any = base_rtt_field()
    initial_window: Any = initial_window_field(source="HPCC 3.2")
    min_rate: Any = parameter(RATE, "least rate (variant hpcc-sim)", default=0.0, low=0)
    int_bytes: Any = parameter(
        SIZE, "telemetry in every data packet and ACK", default="42B", source="HPCC 4.1, 5.1", low=0
    )
    int_multi: Any = parameter(
        COUNT,
        "multiplier of the units of quantised telemetry",
        default=1.0,
        source="HPCC 4.1",
        low=1,
        integer=True,
    )
    feedback_delay: Any = feedback_delay_field()
    reaction: str = parameter(
        "choice",
        "reaction to ACKs",
        default="combined",
        source="HPCC 3.2, Fig. 13",
        choices=("combined", "per-ack", "per-rtt"),
    )
    form: str = parameter(
        "choice",
        "windows by Algorithm 1, or appendix A.3's rates without windows (fluid engine)",
        default="window",
        source="HPCC A.3",
        choices=("window", "rate"),
    )
    registers: str = parameter(
        "choice",
        "reference windows: one for the path, or one for each link on it",
        default="one",
        source="HPCC A.3, eq. (7)",
        choices=("one", "per-link"),
    )
    alpha_fair: Any = parameter(
        COUNT,
        "exponent that joins registers per link; inf: their least",
        default=math.inf,
        symbol="alpha",
        source="HPCC A.3, eq. (7)",
        low=0,
        open_low=True,
        unlimited=True,
    )
    multiq: str = parameter(
        "choice",
        "U of the port, or of the class: over the link, by MultiQ's branches, or over what is guaranteed or unused",
        default="off",
        source="HPCC++ MultiQ",
        choices=("off", "class", "slides", "spare"),
    )
    min_backlog: Any = parameter(
        SIZE,
        "queue of a class above which MultiQ takes it for backlogged",
        default="1.5KB",
        source="HPCC++ MultiQ",
        low=0,
    )
    u_rate: str = parameter(
        "choice",
        "rate of a link that U is computed from: sent or arriving",
        default="tx",
        source="HPCC 3.4, Fig. 6",
        choices=("tx", "rx"),
    )
    u_queue: bool = parameter(
        "on|off",
        "whether U counts a link's queue, or its rate alone (then a queue that stands is not observed)",
        default=True,
        source="HPCC 3.2, eq. (2)",
        choices=(False, True),
    )
    int_format: str = parameter(
        "choice",
        "telemetry: exact, or in the fields of HPCC's header, or of IFA's metadata",
        default="exact",
        source="HPCC 4.1, Fig. 7; HPCC++ IFA",
        choices=("exact", "quantised", "ifa"),
    )
    variant: str = parameter(
        "choice",
        "Algorithm 1, or what the authors' public simulator does",
        default="paper",
        source=_ALGORITHM,
        choices=("paper", "hpcc-sim"),
    )

    token_thresh: Any = token_thresh_field(
        SIZE, "queue that makes tokens once a round trip; auto: the least bandwidth-delay product of the scenario"
    )
    ai_div: Any = ai_div_field(SIZE, "queue for a token", "1KB")
    token_rule: str = token_rule_field("measured")

    share: Any = bound("with multiq: of a link, what the class is guaranteed among those of its priority")

    name: ClassVar[str] = "hpcc"
    default_marking: ClassVar[RED | None] = None
    default_rate: ClassVar[str] = "100Gbps"
    feedback_pause = 0.0  # time that feedback waits at the receiver [s]

    @property
    def by_ack(self) -> bool:
        """Check whether W^c changes at every ACK."""
        return self.reaction == "per-ack"

    @property
    def by_rtt(self) -> bool:
        """Check whether W changes together with W^c alone."""
        return self.reaction == "per-rtt"

    @property
    def by_arrivals(self) -> bool:
        """Check whether U is that of the bytes that arrive at a link."""
        return self.u_rate == "rx"

    @property
    def in_classes(self) -> bool:
        """Check whether U is that of a class."""
        return self.multiq != "off"

    @property
    def counts_link(self) -> bool:
        """Check whether a class counts on the whole link."""
        return self.multiq == "class"

    @property
    def counts_spare(self) -> bool:
        """Check whether a class counts on what nobody uses."""
        return self.multiq == "spare"

    @property
    def simulates(self) -> bool:
        """Check whether it is what the authors' public simulator does."""
        return self.variant == "hpcc-sim"

    @property
    def target_utilisation(self) -> Any:
        """Share of a link that is used where nothing stands in its queue."""
        return self.eta

    def bind(self, path: PathInformation) -> Self:
        """T, W_init, W_AI and its rate (HPCC 3.2, 3.3), Variable AI's threshold, and MultiQ's guaranteed share.

        Raises
        ------
        InputError
            If mechanisms do not go with other switches, or W_init is below one packet.
        """
        check_mechanisms(self)
        simulator = self.variant == "hpcc-sim"
        base_rtt, window = self.base_rtt, self.initial_window
        if base_rtt is None:
            base_rtt = path.largest_payload_rtt if simulator else path.largest_base_rtt
        if window is None:
            fastest = path.slowest_rate if simulator else path.line_rate
            window = larger(fastest * base_rtt, path.window_packet)
        elif is_concrete(window) and is_concrete(path.window_packet) and window < path.window_packet:
            raise InputError(
                f"initial_window: {show(window, SIZE)} is below one packet; give at least "
                f"{show(path.window_packet, SIZE)}"
            )
        rate_ai = marked(self.w_ai / base_rtt, RATE) if self.rate_ai is None else self.rate_ai
        return dataclasses.replace(
            self,
            base_rtt=base_rtt,
            initial_window=window,
            rate_ai=rate_ai,
            w_ai=rate_ai * base_rtt,
            token_thresh=path.least_bdp if self.token_thresh is None else self.token_thresh,
            share=None if self.multiq == "off" else path.share,
        )


def check_mechanisms(p: HPCC) -> None:
    """Refuse Variable AI, Sampling Frequency and probabilistic feedback where no sender has one reference window.

    Raises
    ------
    InputError
    """
    needed = {"reaction": "combined", "registers": "one", "form": "window", "name": "hpcc"}
    for field, value in needed.items():
        found = getattr(p, field)
        if p.mechanisms and found != value and not (field == "name" and found == "hpcc-multiq"):
            raise InputError(
                f"{p.mechanisms[0]}: needs {field.replace('name', 'scheme')}={value}, not {found}, because it acts on "
                "one reference window at the sender; change one of them"
            )


_SIM = HPCC(int_format="quantised", variant="hpcc-sim", min_rate="100Mbps")
# "Fast Convergence to Fairness" runs the authors' simulator, with the parameters of its section III-D.
_FAIRNESS = dataclasses.replace(_SIM, rate_ai="50Mbps")
PRESETS = {
    "paper": Preset(HPCC()),
    "hpcc-sim": Preset(_SIM, None, SIMULATOR),
    "hpcc-eval": Preset(HPCC(), None, EVALUATION),
    "fairness": Preset(_FAIRNESS, None, SIMULATOR),
    "vai-sf": Preset(dataclasses.replace(_FAIRNESS, vai=True, sampling=30), None, SIMULATOR),
}
