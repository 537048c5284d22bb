"""Systems that are recognised only to be refused, so that nobody is advised in another system's words."""

from __future__ import annotations

import dataclasses
import re

from fluidcc.errors import InputError
from fluidcc.operators.switches.description import Description, Words


@dataclasses.dataclass
class UnreadSystem:
    """A reader that refuses: its system, a pattern of lines that only this system has, and what to give instead."""

    WORDS: Words
    signs: str
    instead: str = "SONiC's config_db.json, or a configuration of Arista EOS, Cisco NX-OS, NVUE or Junos"

    def recognises(self, text: str, /) -> bool:
        """Tell whether a text is of this system."""
        return re.search(self.signs, text, re.MULTILINE) is not None

    def read(self, text: str, /) -> Description:
        """Refuse it.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError(f"looks like {self.WORDS.system}, which is not read; give {self.instead}")


DELL_OS10 = UnreadSystem(Words("Dell OS10"), r"^\s*(random-detect color (green|yellow|red)\b|wred \S+\s*$)")
# Its first line, or DCB and WRED by maps and profiles of these names.
DELL_OS9 = UnreadSystem(
    Words("Dell OS9"),
    r"^(! Version 9\.\d.*|\s*(dcb-map|wred-profile) \S+|\s*qos-policy-(in|out)put \S+.*|"
    r"\s*priority-group \d+ bandwidth \d+ pfc (on|off)|service-class (dynamic dot1p|wred ecn).*)\s*$",
)
# Ports of four numbers, and thresholds without their names: NX-OS, whose other lines it shares, has neither.
IOS_XR = UnreadSystem(
    Words("Cisco IOS-XR"),
    r"^(!! IOS XR Configuration\b|interface (\w+GigE|Bundle-Ether)\d+(/\d+){3}\b|"
    r"\s*random-detect \d+ \w+ \d+ \w+\s*$|\s*end-(class|policy)-map\s*$)",
)
# Thresholds by DSCP or precedence in packets, or the first lines of a running-config.
IOS_XE = UnreadSystem(
    Words("Cisco IOS or IOS-XE"),
    r"^(\s*random-detect (dscp|prec(edence)?)(-based\s*$| \w+ (percent )?\d+ )|Current configuration : \d+ bytes)",
)
HUAWEI_VRP = UnreadSystem(
    Words("Huawei VRP"),
    r"^\s*(dcb pfc( enable mode \w+| \S+)?|qos queue \d ecn|dcb ai-ecn\b.*)\s*$|^drop-profile [^\s;{]+\s*$",
)
COMWARE = UnreadSystem(
    Words("HPE or H3C Comware"),
    r"^\s*(qos wred (queue table|apply) \S+|qos wred queue \d.*|priority-flow-control no-drop dot1p .*)\s*$",
)
SR_LINUX = UnreadSystem(
    Words("Nokia SR Linux"),
    r"^(--\{.*\}--.*|\s*interface ethernet-\d+/\d+ \{|\s*(ecn|wred)-slope \S+.*|\s*queue-management-profile \S+.*|"
    r"set / (qos|interface) .*)$",
)
# In lines and in braces; SR Linux has neither TiMOS nor slope-policy.
SR_OS = UnreadSystem(
    Words("Nokia SR OS"),
    r"^(# TiMOS-.*|exit all\s*$|\s*/?configure qos .*|\s*slope-policy \S+.*|\s*(high|low|exceed)-slope( \{)?\s*$)",
)
EXTREME_XOS = UnreadSystem(
    Words("ExtremeXOS"),
    r"^(# Module \w+ configuration\.?\s*$|\s*(create|configure|enable|disable) (qosprofile|dot1p|diffserv|wred) .*|"
    r"\s*(enable|disable) flow-control (rx|tx)-pause .*)",
)
# Its version, or names that only its ports and its shared buffer have.
RUIJIE_RGOS = UnreadSystem(
    Words("Ruijie RGOS"),
    r"^(version .*\bRGOS\b.*|version \w+_RGOS .*|\s*interface TFGigabitEthernet .*|"
    r"\s*mmu (queue-(guarantee|threshold)|fc-threshold|usage-warn-limit)\b.*)",
)
ONYX = UnreadSystem(
    Words("NVIDIA Onyx"),
    r"^\s*(interface ethernet \S+ )?(traffic-class \d congestion-control|dcb priority-flow-control) .*$",
)
ARUBA_CX = UnreadSystem(Words("Aruba AOS-CX"), r"^\s*(apply )?qos threshold-profile \S+\s*$")
SONIC_CLI = UnreadSystem(
    Words("SONiC's sonic-cli"), r"^.*\bqos wred-policy \S+\s*$", "the same switch's config_db.json"
)
TRAFFIC_CONF = UnreadSystem(
    Words("Cumulus Linux's traffic.conf"),
    r"^\s*(ecn_red|pfc)\.\S+ = ",
    "what `nv config show` prints of the same switch, or its settings as `nv set` lines",
)
EOS_JSON = UnreadSystem(Words("EOS's JSON"), r"^\s*\{\s*\"(cmds|header)\": ", "`show running-config` as text")
JUNOS_JSON = UnreadSystem(
    Words("Junos's XML or JSON"),
    r"^\s*(<(rpc-reply|configuration)\b|\{\s*\"configuration\"\s*:)",
    "`show configuration | display set`",
)
UNREAD = (
    DELL_OS10,
    DELL_OS9,
    IOS_XR,
    IOS_XE,
    HUAWEI_VRP,
    COMWARE,
    SR_LINUX,
    SR_OS,
    EXTREME_XOS,
    RUIJIE_RGOS,
    ONYX,
    ARUBA_CX,
    SONIC_CLI,
    TRAFFIC_CONF,
    EOS_JSON,
    JUNOS_JSON,
)
