"""A switch's and a NIC's own configuration as a setting, and what the audit says of them."""

from __future__ import annotations

import dataclasses
import html
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import panel as pn

from fluidcc.errors import InputError
from fluidcc.explorer.pieces import SMALL, text, wrapped
from fluidcc.explorer.settings import Setting
from fluidcc.operators import dcqcn_of, read_nic
from fluidcc.operators.ports import unmarked
from fluidcc.scenario.frames import IN_BUFFER, payloads
from fluidcc.scenario.parameters import specs

_LONGEST_NAME = 100  # bytes of a file's name


def setting_of(switch: str | os.PathLike[str] | None, nic: str | os.PathLike[str] | None, port: str | None) -> Setting:
    """The setting of a switch's port and a NIC; what neither says is as NVIDIA's NICs leave the factory.

    Raises
    ------
    InputError
        If there is neither, a file cannot be read, or the port marks nothing.
    """
    if switch is None and nic is None:
        raise InputError("files: none is chosen; choose a config_db.json, a NIC's settings, or both")
    setting = Setting("dcqcn", "vendor")
    settings = None if nic is None else read_nic(nic)
    # Preamble and gap, 20 B of 4178, are left out: a rate is what its slider says.
    values: dict[str, Any] = {"packet_size": max(payloads(settings)), "header_bytes": IN_BUFFER}
    if switch is not None:
        from fluidcc.operators.audit import worst_first

        found = worst_first(switch, nic, port)[0].switch
        if why := unmarked(found):
            raise InputError(why)
        values |= {"rate": found.rate, **{name: getattr(found.red, name) for name in ("kmin", "kmax", "pmax")}}
    if settings is not None:
        scheme, _ = dcqcn_of(settings)
        # The fluid has no first CNP, and neither has the audit's.
        scheme = dataclasses.replace(scheme, rate_on_first_cnp=0.0)
        values |= {name: getattr(scheme, name) for name in specs(scheme)}
    for name, value in values.items():
        setting = setting.moved(name, setting.knobs[name].text(value))
    return setting


class Devices:
    """Two files to choose, and what is found.

    Parameters
    ----------
    take : callable
        ``take(setting)`` shows a setting; raises `InputError`.
    """

    def __init__(self, take: Callable[[Setting], None]) -> None:
        self._take = take
        small: dict[str, Any] = {"margin": (2, 4), "stylesheets": [SMALL]}
        self._switch = pn.widgets.FileInput(
            name="switch: config_db.json", accept=".json", css_classes=["switch-file"], **small
        )
        self._nic = pn.widgets.FileInput(
            name="NIC: its settings as text", accept=".txt,.conf,.log", css_classes=["nic-file"], **small
        )
        self._port = pn.widgets.TextInput(
            name="port", placeholder="the worst that is up", css_classes=["port"], **small
        )
        button = pn.widgets.Button(name="Load", css_classes=["load"], align="end", **small)
        button.on_click(lambda event: self._load())
        self._found = text("")
        for chosen in (self._switch, self._nic):
            chosen.param.watch(lambda *events: self._say_chosen(), ["value", "filename"])
        wide: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": 0}
        self.view = pn.Column(wrapped(self._switch, self._nic, self._port, button), self._found, **wide)

    def _say_chosen(self) -> None:
        """Say which files have arrived."""
        names = [_plain(str(each.filename)) for each in (self._switch, self._nic) if each.filename]
        self._found.object = f'<div class="quiet" id="chosen">chosen: {html.escape(", ".join(names))}</div>'

    def _load(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            try:
                switch, nic = (_written(folder, each) for each in (self._switch, self._nic))
                setting = setting_of(switch, nic, self._port.value.strip() or None)
                self._take(setting)
                found = _findings(switch, nic, self._port.value.strip() or None, setting)
            except InputError as refused:
                found = f'<div class="error" id="devices-error">{html.escape(str(refused))}</div>'
        self._found.object = _without(folder, found)


def _written(folder: str, chosen: Any) -> str | None:
    """Write a chosen file, even an empty one, under its own name, by which errors call it; two may have one."""
    if not chosen.filename:
        return None
    path = Path(tempfile.mkdtemp(dir=folder)) / _plain(chosen.filename)
    path.write_bytes(chosen.value or b"")
    return str(path)


def _plain(name: str) -> str:
    """A name without folders that any system takes, whatever a browser says: no `..`, NUL or half a character."""
    last = re.split(r"[/\\]", name)[-1]
    kept = "".join(each if each.isprintable() else "_" for each in last).strip(". ")
    return kept.encode()[-_LONGEST_NAME:].decode(errors="ignore") or "file"


def _without(folder: str, words: str) -> str:
    """Remove from words the folder, which is none of the user's."""
    return re.sub(rf"{re.escape(folder)}/[^/]*/", "", words)


def _findings(switch: str | None, nic: str | None, port: str | None, setting: Setting) -> str:
    """Render the audit's findings, without packets, the worst first."""
    if switch is None:
        return '<div class="quiet" id="findings">without a switch there is nothing to audit</div>'
    from fluidcc.operators.audit import audit

    found = audit(switch, nic, port=port or "all", flows=int(setting.value("flows")), packets=0)
    lines = [
        f'<div class="finding"><b class="{each.severity}">{each.severity}</b> {html.escape(each.what)}'
        f"{f': {html.escape(each.suggest)}' if each.suggest and each.severity != 'ok' else ''}</div>"
        for each in found.findings
    ]
    return f'<div id="findings"><div class="quiet">{html.escape(", ".join(found.names))}</div>{"".join(lines)}</div>'
