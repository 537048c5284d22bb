"""Readers of switches' own configurations that are no SONiC ``config_db.json``, behind one contract.

A reader is a module with ``WORDS``, ``recognises`` and ``read`` (`description.Reader`); to add one is to name it here.
"""

from __future__ import annotations

from fluidcc.operators.switches import eos, junos, nvue, nxos, sonic_show
from fluidcc.operators.switches.description import Reader, Words
from fluidcc.operators.switches.unread_systems import UNREAD

SONIC = Words("SONiC")
# NX-OS shares commands with those before it.
READERS: tuple[Reader, ...] = (*UNREAD, sonic_show, nvue, junos, eos, nxos)


def reader_of(text: str) -> Reader | None:
    """Return the reader of a text; None where it is none's, as of JSON and of a NIC's settings."""
    return next((reader for reader in READERS if reader.recognises(text)), None)
