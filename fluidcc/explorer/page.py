"""A page for each visitor of the server."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import panel as pn
from panel.io.resources import LOCAL_DIST

from fluidcc.errors import InputError
from fluidcc.explorer.app import Explorer
from fluidcc.explorer.settings import Setting


def load() -> None:
    """Set Panel up, once for a process."""
    pn.extension(notifications=False)


def page() -> Any:
    """The page of an address; one that makes no sense shows the default setting, and why."""
    if pn.state.curdoc is not None:  # else a session made anew, for a browser that is slow, has Panel's CDN for styles
        pn.state.curdoc.template_variables["dist_url"] = LOCAL_DIST
    search = (pn.state.location.search if pn.state.location is not None else "").lstrip("?")
    beside = parse_qs(search).get("kept")
    own = "&".join(part for part in search.split("&") if part and not part.startswith("kept="))
    setting, refused = _read(own)
    kept, refused_too = _read(beside[0]) if beside else (None, "")
    why = "; ".join([*filter(None, [refused]), *(f"kept: {words}" for words in filter(None, [refused_too]))])
    return Explorer(setting or Setting(), kept, refused=why).view


def _read(query: str) -> tuple[Setting | None, str]:
    """Read the setting of an address, or return why it is invalid."""
    try:
        found = Setting.of_query(query)
        found.scenario()
    except InputError as problem:
        return None, str(problem)
    return found, ""
