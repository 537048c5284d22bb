"""Fields of a scheme that takes Variable AI, Sampling Frequency and probabilistic feedback."""

from __future__ import annotations

from typing import Any

from fluidcc.scenario.parameters import parameter, register
from fluidcc.units import COUNT

_PAPER = "Fast Convergence to Fairness"
# What of the measured congestion becomes tokens: all of it (Algorithm 1), or what exceeds the threshold (IV-A, text).
TOKEN_RULES = ("measured", "excess")
# What an update that is ignored costs: its ACK, so that the next one draws again, or the period (III-D is silent).
IGNORED_COSTS = ("ack", "period")
# What a trace shows of either engine.
OBSERVABLES = {
    "token_bank": ("1", "tokens in the bank"),
    "dampener": ("1", "dampener"),
    "increase_factor": ("1", "additive increase over its base"),
}


@register()
class VaiSf:
    """Mechanisms of Snyder and Lebeck, "Fast Convergence to Fairness for Reduced Long Flow Tail Latency".

    All are off by default. What becomes of a scheme's own fields, ``token_thresh`` and ``ai_div``, is in its unit of
    congestion: bytes of queue (HPCC) or a round trip (Swift).
    """

    vai: bool = parameter(
        "on|off",
        "Variable AI: additive increases grow by tokens that congestion makes",
        default=False,
        source=f"{_PAPER} IV-A",
        choices=(False, True),
    )
    sampling: Any = parameter(
        COUNT,
        "Sampling Frequency: ACKs between two decreases; rtt: a decrease per round trip",
        default=None,
        symbol="s",
        source=f"{_PAPER} IV-B",
        low=1,
        integer=True,
        none_word="rtt",
    )
    probabilistic: bool = parameter(
        "on|off",
        "ignore an ACK that would decrease, unless the window exceeds a random share of W_init",
        default=False,
        source=f"{_PAPER} III-D",
        choices=(False, True),
    )
    ignored_costs: str = parameter(
        "choice",
        "with probabilistic: an ignored update costs its ACK, and the next one draws again, or the round trip "
        "(with sampling: the s ACKs)",
        default="ack",
        source=f"{_PAPER} III-D",
        choices=IGNORED_COSTS,
    )
    ai_cap: Any = parameter(
        COUNT, "most tokens that an increase uses", default=100.0, symbol="AI_Cap", source=f"{_PAPER} VI-A", low=0
    )
    bank_cap: Any = parameter(
        COUNT, "most tokens in the bank", default=1000.0, symbol="Bank_Cap", source=f"{_PAPER} VI-A", low=0
    )
    dampener_constant: Any = parameter(
        COUNT,
        "dampener at which an increase is halved",
        default=8.0,
        symbol="Dampener_Constant",
        source=f"{_PAPER} VI-A",
        low=0,
        open_low=True,
    )

    @property
    def mechanisms(self) -> list[str]:
        """Names of those that are on."""
        on = {"vai": self.vai, "sampling": self.sampling is not None, "probabilistic": self.probabilistic}
        return [name for name, is_on in on.items() if is_on]


def token_thresh_field(dimension: str, what: str) -> Any:
    """Field ``token_thresh`` in a scheme's unit of congestion."""
    return parameter(
        dimension,
        f"with vai: {what}",
        default=None,
        symbol="Token_Thresh",
        source=f"{_PAPER} V-A",
        low=0,
        open_low=True,
        none_word="auto",
    )


def ai_div_field(dimension: str, what: str, default: str) -> Any:
    """Field ``ai_div`` in a scheme's unit of congestion."""
    return parameter(
        dimension,
        f"with vai: {what}",
        default=default,
        symbol="AI_DIV",
        source=f"{_PAPER} VI-A",
        low=0,
        open_low=True,
    )


def token_rule_field(default: str) -> Any:
    """Field ``token_rule``, whose two readings fit the settings of one scheme each."""
    return parameter(
        "choice",
        "tokens from the congestion measured (Algorithm 1), or from what of it exceeds token_thresh (its text)",
        default=default,
        source=f"{_PAPER} IV-A",
        choices=TOKEN_RULES,
    )
