"""The explorer in a notebook: the same widgets, answered where they are moved."""

from __future__ import annotations

from typing import Any

from fluidcc.explorer.serve import require_panel
from fluidcc.scenario.model import Scenario


def explore(scenario: Scenario) -> Any:
    """Widgets around a scenario; see `Scenario.explore`.

    Raises
    ------
    InputError
        As of it.
    """
    require_panel()
    from fluidcc.explorer.app import Explorer, load
    from fluidcc.explorer.settings import Setting

    setting = Setting.of(scenario)
    load()
    return Explorer(setting, threaded=False).view
