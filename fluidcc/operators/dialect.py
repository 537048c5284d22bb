"""Findings in the words of the system that runs on the switch: what SONiC calls one thing, others call another."""

from __future__ import annotations

import dataclasses
import re

from fluidcc.operators.finding import SWITCH, Finding
from fluidcc.operators.sonic import SwitchPort
from fluidcc.operators.switches import SONIC
from fluidcc.operators.switches.description import Words
from fluidcc.operators.thresholds import advice

# Names of SONiC's fields and tables within sentences.
_FIELDS = {
    r"green_min_threshold": "Kmin",
    r"green_max_threshold": "Kmax",
    r"WRED_PROFILE": "profile",
    r"DSCP_TO_TC_MAP\|\S+(?= and)": "the map of DSCPs",
    r"(?: in)? DSCP_TO_TC_MAP\|\S+": "",
}
# What to do about a kind of finding: a field of `Words`.
_SUGGESTIONS = {
    "PFC is off": "lossless",
    "PFC is on for another queue than ECN": "lossy",
    "ECN is off": "marking",
    "marking was not read": "marking",
    "green packets may go unmarked": "green",
    "no PFC watchdog": "watchdog",
    "the PFC watchdog only reports": "watchdog",
    "the PFC watchdog takes the port down": "watchdog",
    "PFC depends on DCBX": "lossless",
    "PFC before ECN not checked": "buffers",
    "no DSCP leads to this queue": "classify",
}
_UNSAID = "such a file says nothing of buffers and of the thresholds of PAUSE"


def in_words(finding: Finding, port: SwitchPort, words: Words) -> Finding:
    """Return a finding of a switch that is no SONiC, or whose file is none, with what to type there.

    Values are not changed by a JSON pointer in such a file.
    """
    why, suggest = finding.why, finding.suggest
    for pattern, name in _FIELDS.items():
        why, suggest = re.sub(pattern, name, why), re.sub(pattern, name, suggest)
    wanted = _SUGGESTIONS.get(finding.what)
    kmin, kmax = advice(port) or ("KMIN", "KMAX")
    pmax, profile = "1", port.profile if words.system == SONIC.system else port.profile.removesuffix(f"-{port.queue}")
    if finding.what == "DSCPs are not checked":
        suggest = "hand over the whole configuration, with what leads DSCPs to queues"
    elif wanted == "buffers":
        why = f"not read: {', '.join(port.buffer_lines)}" if port.buffer_lines else _UNSAID
        suggest = "compare Kmin with these on the switch: {}"
    elif finding.what == "marking was not read":  # the thresholds are there, and nothing says that others are better
        suggest += ": {}"
        kmin, kmax, pmax = "KMIN", "KMAX", "PERCENT"
    elif wanted is not None:
        suggest = "{}"
    if wanted is not None:
        own = dict(port.typed).get(wanted)
        on = words.ecn and finding.what == "ECN is off"
        text = (words.ecn[not port.profile] if on else getattr(words, wanted)).format(
            port=port.name,
            queue=port.queue,
            priority=port.priority,
            kmin=kmin,
            kmax=kmax,
            pmax=pmax,
            profile=profile or "PROFILE",
        )
        text = text if own is None else own.replace("{port}", port.name)
        suggest = suggest.format(text)
    kept = tuple(change for change in finding.apply if change.file != SWITCH)
    return dataclasses.replace(finding, why=why, suggest=suggest, apply=kept)
