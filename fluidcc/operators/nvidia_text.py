"""Texts in which a NIC's settings stand: names and values in lines, as files and tools print them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator

from fluidcc.errors import InputError
from fluidcc.operators.config_files import clip, label, listing
from fluidcc.operators.nvidia_settings import canonical

Line = tuple[str, ...]  # a name, its value, where it is, and what it will be from the next boot on

_LONGEST = 1000  # characters of a line
_COLUMNS = re.compile(r"Default|Current|Next Boot")
PORT = re.compile(r"(.+)_p(\d{1,2})", re.ASCII)
_DUMP_LINE = re.compile(r"\s*(?:\*\s*|RO\s+)?([A-Z][A-Z0-9_]*)(?:\[[\d.]*\])?\s+([^\s=:].*)", re.ASCII)
# A path before the name may hold colons, as PCI addresses do; `grep -n` has the number of a file's one line behind it.
_TEXT_LINE = re.compile(r"\s*(?:\S*/([\w.\-]+):(?:1:)?\s*|([\w./\-]+?)\s*(?:[=:]\s*|\s))([^\s=:].*?)\s*", re.ASCII)
# What names the file of the value in the next line: `tail` and `head` of several files, `more`, a shell's `cat`.
_HEADING = re.compile(r"\s*(?:==>\s+(\S+)\s+<==|\S*[$#]\s+cat\s+(\S+)|(/\S*/[\w.\-]+):?)\s*", re.ASCII)
# Anywhere in a line: within `sh -c '...'`, several with `;` or `&&` between, before `> /dev/null`.
_WRITES = r"(?:>+|\|?\s*(?:sudo\s+)?\btee(?:\s+-a)?\s)\s*[\"']?([^\s\"';|&>]*[\w\-])"
_ECHO = re.compile(rf"\b(?:echo|printf)\s+(?:-\w\s+)?[\"']?(\d+)(?:\\n)?[\"']?\s*{_WRITES}", re.ASCII)
_WRITTEN = re.compile(_WRITES, re.ASCII)
_SET = re.compile(r"([A-Za-z]\w*)=([^\s\"';]+)", re.ASCII)  # of `mlxconfig set A=1 B=2`
_REGISTRY = re.compile(r'\s*"(\w+)"=dword:([0-9a-f]{1,8})\s*', re.ASCII | re.IGNORECASE)  # of Windows, exported
_ENABLING = re.compile(r"(roce_[nr]p)/enable/([0-7])\b", re.ASCII)  # a folder for each end, a file for each priority
_OF_PACKETS = re.compile(r"\s*(?:active_)?mtu\b")
_JSON_KEY = re.compile(r'"([^"\\\n]{1,100})"\s*:')
_RULE = re.compile(r"\s*[:=*_-]{3,}\s*")


def refuse_json(text: str, name: str, instead: str) -> None:
    """Refuse a NIC's settings as JSON, which would be taken for a switch's configuration.

    Parameters
    ----------
    text : str
    name : str
        Of the file.
    instead : str
        Forms of settings that are read.

    Raises
    ------
    InputError
        If keys of the text are settings of DCQCN.
    """
    keys = dict.fromkeys(_JSON_KEY.findall(text) if text.lstrip().startswith(("{", "[")) else ())
    if found := [key for key in keys if canonical(base_name(key)) is not None]:
        raise InputError(
            f"{label(name)}: has a NIC's settings ({listing(found, 3)}) as JSON, which is not read; give {instead}"
        )


def joined(lines: list[str]) -> list[str]:
    """Return lines with those that a backslash continues in the first of them; the others stay as blank ones."""
    found: list[str] = []
    first: int | None = None
    for line in lines:
        goes_on = line.rstrip().endswith("\\")
        part = line.rstrip().removesuffix("\\")
        if first is None:
            found.append(part)
        else:
            found[first] += f" {part.strip()}"
            found.append("")
        first = (len(found) - 1 if first is None else first) if goes_on else None
    return found


def spelled(text: str) -> str:
    """Return a path, or a line with paths, in which the driver's switches of DCQCN have names of their own."""
    return _ENABLING.sub(r"\1/\1_enable_\2", text)


def text_lines(lines: list[str], name: str) -> Iterator[Line]:
    """Read names and values of text, whoever printed it.

    Raises
    ------
    InputError
        If a line that begins with a setting's name has no value.
    """
    heading = ""
    for i, line in enumerate(lines, 1):
        where, line = f"{name}:{i}", spelled(line)
        if found := _HEADING.fullmatch(line) if len(line) <= _LONGEST else None:
            heading = next(each for each in found.groups() if each)
            continue
        line = line.split("#", 1)[0]
        if not line.strip() or _RULE.fullmatch(line):
            continue
        if heading and len(line.split()) == 1:
            yield heading, line.strip(), where
        else:
            yield from _of_line(line, where)
        heading = ""


def _of_line(line: str, where: str) -> Iterator[Line]:
    if len(line) > _LONGEST:
        raise InputError(f"{where}: cannot read {clip(line.strip())}; write `name = value`, such as rpg_ai_rate = 5")
    written = {path: value for value, path in _ECHO.findall(line)}
    if any(path not in written and canonical(base_name(path)) is not None for path in _WRITTEN.findall(line)):
        raise InputError(f"{where}: cannot read {clip(line.strip())}; write the number, such as echo 5 > rpg_ai_rate")
    if written:
        for path, value in written.items():
            yield path, value, where
        return
    several = _SET.findall(line)
    if len(several) > 1 or (several and "mlxconfig" in line):
        for key, value in several:
            yield key, value, where
        return
    if match := _REGISTRY.fullmatch(line):
        yield match[1], str(int(match[2], 16)), where
        return
    match = _TEXT_LINE.fullmatch(line)
    if match is not None:
        yield match[1] or match[2], match[3], where
        return
    first = re.split(r"[\s=:]", line.strip(), maxsplit=1)[0]
    if canonical(base_name(first)) is not None:
        raise InputError(f"{where}: cannot read {clip(line.strip())}; write `name = value`, such as rpg_ai_rate = 5")
    yield line.strip(), "", where  # a title


def base_name(key: str) -> str:
    """Return a setting's name without folders, a tree of sysctl, and the port."""
    base = re.split(r"[/.]", key)[-1]
    suffix = PORT.fullmatch(base.lower())
    return base[: len(suffix[1])] if suffix else base


def dump_column(lines: list[str]) -> str | None:
    """Return the column of a ``mlxconfig`` dump to use, empty if it has no header; None if the text is no dump."""
    for line in lines:
        if line.strip().startswith("Configurations:"):
            columns = _COLUMNS.findall(line)
            return "Current" if "Current" in columns else "".join(columns[:1])
    known = (_DUMP_LINE.fullmatch(line) for line in lines if len(line) <= _LONGEST)
    # Part of a dump, without its header.
    return "" if any(m and _is_port_setting(m[1]) for m in known) else None


def _is_port_setting(key: str) -> bool:
    suffix = PORT.fullmatch(key.lower())
    return suffix is not None and canonical(suffix[1]) is not None


def dump_lines(lines: list[str], name: str) -> Iterator[Line]:
    """Read names and values of a ``mlxconfig`` dump.

    Raises
    ------
    InputError
        If a line has another number of values than the header announces.
    """
    columns: list[str] = []
    for i, line in enumerate(lines, 1):
        if line.strip().startswith("Configurations:"):
            columns = _COLUMNS.findall(line)
            continue
        match = _DUMP_LINE.fullmatch(line) if len(line) <= _LONGEST else None
        if match is None:
            if _OF_PACKETS.match(line):  # of ibv_devinfo, put beside it: the registers do not say it
                yield from _of_line(line, f"{name}:{i}")
            continue
        values = match[2].split()
        if not _is_port_setting(match[1]) and canonical(match[1]) is None:
            yield match[1], "", ""
            continue
        if not columns and len(values) == 3:
            columns = ["Default", "Current", "Next Boot"]
        announced = max(len(columns), 1)
        if len(values) != announced:
            raise InputError(
                f"{name}:{i}: {match[1]} has {len(values)} values where the header announces {announced}; "
                "give the output of `mlxconfig query` unchanged"
            )
        now = values[columns.index("Current") if "Current" in columns else 0]
        later = values[columns.index("Next Boot")] if {"Current", "Next Boot"} <= set(columns) else ""
        yield match[1], now, f"{name}:{i}", later


# -- a host's own PFC, trust and DSCP, as `mlnx_qos` and `cma_roce_tos` print them -------------------------


_TRUST = re.compile(r"^\s*Priority trust state:\s*(\w+)", re.MULTILINE)
_PFC = re.compile(r"^\s*enabled((?:\s+[01]){8})\s*$", re.MULTILINE)
_PRIORITIES = re.compile(r"^\s*prio:([0-7])\s+dscp:([\d,]+)", re.MULTILINE | re.ASCII)
_TOS = re.compile(
    r"\bcma_roce_tos\b[^\n]*?\s-t\s*(\d{1,3})\b|\bcma_roce_tos\b[^\n]*\n\s*(\d{1,3})\s*$|"
    r"\bGlobal tclass=(\d{1,3})\b|\becho\s+(\d{1,3})\s*>\s*\S*/tc/\d+/traffic_class\b",
    re.MULTILINE | re.ASCII,
)


@dataclasses.dataclass(frozen=True)
class NicQos:
    """Priorities of a host's packets.

    Attributes
    ----------
    pfc : tuple of int or None
        Priorities with PFC; None where the text does not say.
    trust : str
        What chooses a packet's priority, ``dscp`` or ``pcp``; empty where the text does not say.
    tos : tuple of int
        ToS bytes of RoCE's packets.
    priorities : tuple of (int, int)
        Priority of each DSCP; empty where the text does not say.
    """

    pfc: tuple[int, ...] | None = None
    trust: str = ""
    tos: tuple[int, ...] = ()
    priorities: tuple[tuple[int, int], ...] = ()


def read_qos(text: str) -> NicQos:
    """Read what ``mlnx_qos`` and ``cma_roce_tos`` print, of a NIC's text; of several interfaces what all have."""
    rows = [{i for i, on in enumerate(row.split()) if on == "1"} for row in _PFC.findall(text)]
    trusts = sorted({each.lower() for each in _TRUST.findall(text)})
    tos = {int(next(filter(None, found))) for found in _TOS.findall(text)}
    of_dscp = {int(dscp): int(row[0]) for row in _PRIORITIES.findall(text) for dscp in re.findall(r"\d+", row[1])}
    pfc = tuple(sorted(set.intersection(*rows))) if rows else None
    return NicQos(pfc, (trusts or [""])[-1], tuple(sorted(tos)), tuple(sorted(of_dscp.items())))


# -- NICs of other vendors, recognised by the names of their settings, which nothing here reads ------------


# Names that no NVIDIA NIC has, by whose they are: of the drivers' configfs and sysfs files and module parameters.
_NAMES: dict[str, set[str]] = {
    "Broadcom": {
        "cc_mode", "ecn_enable", "ecn_marking", "inact_th", "init_cr", "init_tr", "init_cp", "nph_per_state",
        "time_pph", "pkts_pph", "tcp_cp", "roce_dscp", "roce_prio", "min_time_bet_cnp", "cnp_ecn",
        "disable_prio_vlan_tx",
        "tr_update_mode", "fr_num_rtts", "ai_rate_incr", "red_rel_rtts_th", "cr_min_th", "bw_avg_weight",
        "act_cr_factor", "rtt_jitter_en", "cr_prob_fac", "tr_prob_fac", "cnp_ratio_th",
    },  # bnxt_re/configfs.c
    "Intel": {
        "dcqcn_enable", "dcqcn_cc_cfg_valid", "dcqcn_min_dec_factor", "dcqcn_min_rate", "dcqcn_f", "dcqcn_t", "dcqcn_b",
        "dcqcn_rai_factor", "dcqcn_hai_factor", "dcqcn_rreduce_mperiod",
    },  # irdma/main.c
    "Huawei": {
        "dcqcn_ai", "dcqcn_tkp", "dcqcn_tmp", "dcqcn_alp", "dcqcn_max_speed", "dcqcn_g", "dcqcn_al", "dcqcn_cnp_time",
        "dcqcn_ashift", "dcqcn_lifespan",
    },  # hns_roce/hns_roce_sysfs.c
    "Marvell": {
        "dcqcn_cnp_send_timeout", "dcqcn_cnp_dscp", "dcqcn_cnp_vlan_priority", "dcqcn_notification_point",
        "dcqcn_reaction_point", "dcqcn_rl_bc_rate", "dcqcn_rl_max_rate", "dcqcn_rl_r_ai", "dcqcn_rl_r_hai", "dcqcn_gd",
        "dcqcn_k_us", "dcqcn_timeout_us",
    },  # qed_main.c
}  # fmt: skip


def vendor_of(names: Iterable[str]) -> tuple[str, list[str]] | None:
    """Tell a vendor by the names of settings, with those that say so; None if they say nothing.

    Parameters
    ----------
    names : iterable of str
        In lower case, without folders.
    """
    given = set(names)
    found = max(((len(given & theirs), vendor) for vendor, theirs in _NAMES.items()))
    return (found[1], sorted(given & _NAMES[found[1]])) if found[0] else None
