"""Refusal of losses in a scenario, for engines that have none."""

from __future__ import annotations

from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario
from fluidcc.units import is_concrete


def refuse_losses(scenario: Scenario, engine: str) -> None:
    """Refuse what only packets can lose or recover, by name.

    Raises
    ------
    InputError
    """
    if scenario.loss_recovery != "none":
        raise InputError(
            f"loss_recovery: the {engine} engine loses nothing; write loss_recovery='none', or engine='packet'"
        )
    for i, link in enumerate(scenario.links):
        if not is_concrete(link.loss) or link.loss > 0:
            raise InputError(f"link {i} loss: the {engine} engine's links lose nothing; write 0, or engine='packet'")
    for i, each in enumerate(scenario.classes):
        if scenario.pfc is not None and not each.lossless:
            raise InputError(
                f"class {i} lossless: PFC of the {engine} engine is for all classes; write on, or engine='packet'"
            )
