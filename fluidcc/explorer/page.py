"""A page for each visitor of the server."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import panel as pn

from fluidcc.errors import InputError
from fluidcc.explorer.app import Explorer
from fluidcc.explorer.settings import Setting


def load() -> None:
    """Set Panel up, once for a process."""
    pn.extension(notifications=False)


def page() -> Any:
    """The page of an address; one that makes no sense shows the default setting, and why."""
    search = (pn.state.location.search if pn.state.location is not None else "").lstrip("?")
    refused, setting, kept = "", Setting(), None
    try:
        beside = parse_qs(search).get("kept")
        own = "&".join(part for part in search.split("&") if part and not part.startswith("kept="))
        found = Setting.of_query(own)
        found.scenario()
        kept = Setting.of_query(beside[0]) if beside else None
        setting = found
    except InputError as problem:
        refused = str(problem)
    return Explorer(setting, kept, refused=refused).view
