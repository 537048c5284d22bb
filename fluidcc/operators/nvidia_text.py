"""Texts in which NVIDIA's settings stand: names and values in lines, as files and tools print them."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
