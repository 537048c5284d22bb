"""An NVIDIA NIC's DCQCN settings: as ``key = value`` text, ``mlxconfig`` output, or the driver's folder."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fluidcc.errors import InputError
from fluidcc.operators.config_files import clip, label, listing, number, read_text
from fluidcc.operators.nvidia_settings import SETTINGS, SIDES, UNUSED, canonical, enabling
from fluidcc.operators.nvidia_text import (
    PORT,
    NicQos,
    base_name,
    dump_column,
    dump_lines,
    joined,
    read_qos,
    refuse_json,
    spelled,
    text_lines,
    vendor_of,
)
from fluidcc.scenario.frames import MTUS, active_mtu
from fluidcc.surface import constructor, public

if TYPE_CHECKING:
    from fluidcc.schemes.dcqcn import DCQCN

EXPECTED_NIC = "`key = value` text, the output of `mlxconfig query`, or the driver's folder of settings"
# First words of lines of mlnx_qos, which prints PFC, trust and classes; and how many of them tell it.
_OF_MLNX_QOS, _ENOUGH = {"DCBX", "Priority", "dscp2prio", "PFC", "enabled", "tc"}, 3
_NAMED = re.compile(r"[\w/.+-]+\((-?\d{1,20})\)", re.ASCII)  # True(1), ECN(0)
_HEX = re.compile(r"0x[0-9a-fA-F]{1,8}", re.ASCII)
_MOST_LISTED, _MOST_FILES = 20, 10_000
_MTUS = ("active_mtu", "mtu")


@constructor()
@dataclasses.dataclass(frozen=True)
class NicSettings:
    """DCQCN settings of one port of a NIC, in the NIC's own units.

    Attributes
    ----------
    given : mapping of str to float
        What the source gave, by canonical lower-case name, such as ``rpg_ai_rate``; also settings that the
        model does not use, such as ``roce_cc_prio_mask``.
    source : str
        Where from: the file or folder, with the port and the column of a ``mlxconfig`` dump.
    ignored : tuple of str
        What was read but is not used, and why.
    pending : mapping of str to (float, float)
        Settings of ``mlxconfig`` that are another from the next boot on: as they are, and as they will be.
    mtu : float or None
        Payload of its packets, from ``active_mtu`` of ``ibv_devinfo`` or the Ethernet ``mtu`` [bytes].
    qos : NicQos
        PFC, trust and DSCP of its host, where ``mlnx_qos`` and ``cma_roce_tos`` stand beside the settings.
    other_ports : mapping of int to mapping
        Settings of its other ports, as ``given``.
    """

    given: Mapping[str, float]
    source: str
    ignored: tuple[str, ...] = ()
    pending: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    mtu: float | None = None
    qos: NicQos = dataclasses.field(default_factory=NicQos)
    other_ports: Mapping[int, Mapping[str, float]] = dataclasses.field(default_factory=dict)

    @property
    def assumed(self) -> str:
        """Settings of the model that the source did not give, in words; empty if it gave all."""
        missing = [name for name in SETTINGS if name not in self.given]
        if not missing:
            return ""
        return (
            f"{self.source}: NVIDIA's defaults stand in for {len(missing)} of {len(SETTINGS)} settings: "
            f"{listing(missing, len(SETTINGS))}"
        )


@constructor()
@dataclasses.dataclass(frozen=True)
class MappedSetting:
    """A model parameter and the NIC setting that it comes from.

    Attributes
    ----------
    nic : str
        Canonical name of the setting.
    raw : str
        Its value in the NIC's unit, marked as default if the source did not give it.
    parameter : str
        Name of the field of `fluidcc.schemes.dcqcn.DCQCN`.
    value : float or bool
        Value of that field in SI; of a switch, whether it is on.
    note : str
        How it was converted, where that is not just a unit.
    """

    nic: str
    raw: str
    parameter: str
    value: float
    note: str = ""


@public()
def read_nic(path: str | os.PathLike[str], port: int = 1) -> NicSettings:
    """Read a NIC's DCQCN settings.

    Parameters
    ----------
    path : str or path
        One of: text with lines ``name = value``, ``name: value`` or ``name value`` and ``#`` comments, as ``grep``,
        ``tail`` or ``cat`` print of the driver's files, of commands that set them, or of WinOF-2's ``Mlx5Cmd``; the
        output of ``mlxconfig -d DEVICE [-e] query`` (of several columns, the current values are used); a
        folder with one file per setting, in the layout of the driver's ``ecn/roce_rp`` and ``ecn/roce_np``
        or of its ``cc_params``.
    port : int
        Which port's settings to use, where names end in ``_P1`` or ``_P2``.

    Returns
    -------
    NicSettings

    Raises
    ------
    InputError
        If nothing can be read, a line is malformed, a value is out of range, a setting is given twice with
        different values, there is no DCQCN setting for that port at all, or they are another vendor's.
    """
    name = label(os.fspath(path))
    if isinstance(port, bool) or not isinstance(port, int) or port < 1:
        raise InputError(f"port: {clip(port)} is no port of a NIC; write 1 or 2")
    try:
        folder = Path(path).is_dir()
    except ValueError:  # a null character; read_text says so
        folder = False
    if folder:
        return _settings(_Found(name, port), _folder_lines(Path(path), name), name, unknown_listed=False)
    text = read_text(path, EXPECTED_NIC)
    refuse_json(text, name, EXPECTED_NIC)
    plain = joined(text.splitlines())
    lines = [re.sub(r"^(>\s?)+", "", line) for line in plain]  # quoted in mail
    column, qos = dump_column(lines), read_qos("\n".join(lines))
    if column is None:
        return _settings(_Found(name, port, qos=qos), text_lines(lines, name), name, unknown_listed=True)
    source = f"{name} (port {port}{f', column {column}' if column else ''})"
    return _settings(_Found(name, port, qos=qos), dump_lines(lines, name), source, unknown_listed=False)


@public()
def dcqcn_of(nic: NicSettings) -> tuple[DCQCN, list[MappedSetting]]:
    """Translate a NIC's settings to the model's parameters.

    What the source did not give has NVIDIA's default, as in the preset ``vendor``. Delays are those of the
    path (``feedback_delay`` unset), hyper increase is on and alpha moves once a slot, as in the NIC.

    Parameters
    ----------
    nic : NicSettings

    Returns
    -------
    DCQCN
        In SI floats.
    list of MappedSetting
        One row per parameter that a setting determines, for display.

    Raises
    ------
    InputError
        If two settings together leave no valid parameter.
    """
    from fluidcc.operators.nvidia_settings import mapped  # with the scheme, imports JAX
    from fluidcc.scenario.parameters import resolve
    from fluidcc.schemes.dcqcn import PRESETS

    rows: list[MappedSetting] = []
    for parameter, names, value, note in mapped(nic.given, nic.source):
        raws = []
        for name in names:
            raw = nic.given.get(name, SETTINGS[name].default)
            unit = f" {SETTINGS[name].unit}" if SETTINGS[name].unit else ""
            raws.append(f"{raw:.15g}{unit}{'' if name in nic.given else ' (default)'}")
        rows.append(MappedSetting(", ".join(names), ", ".join(raws), parameter, value, note))
    vendor = PRESETS["vendor"].scheme
    return resolve(dataclasses.replace(vendor, **{row.parameter: row.value for row in rows})), rows


@dataclasses.dataclass
class _Found:
    """Settings found so far, and what else was found."""

    file: str
    port: int
    given: dict[str, float] = dataclasses.field(default_factory=dict)
    unset: list[str] = dataclasses.field(default_factory=list)
    unknown: list[str] = dataclasses.field(default_factory=list)
    others: dict[int, dict[str, float]] = dataclasses.field(default_factory=dict)  # settings of other ports
    pending: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    mtu: float | None = None
    qos: NicQos = dataclasses.field(default_factory=NicQos)

    def add(self, key: str, text: str, where: str, later: str = "") -> None:
        """Take in a setting, and what it will be from the next boot on if the source says so."""
        base = base_name(key).lower()
        if base in _MTUS and text:
            self._add_mtu(base, text, where)
            return
        suffix = PORT.fullmatch(key.lower())
        name = canonical(base_name(key))
        if name is None:
            self.unknown.append(key)
            return
        if suffix and int(suffix[2]) != self.port:
            self.others.setdefault(int(suffix[2]), {})[name] = _value(name, text, f"{where}: {key}")
            return
        if text.upper() == "N/A":
            self.unset.append(name)
            return
        value = _value(name, text, f"{where}: {name}")
        if self.given.setdefault(name, value) != value:
            raise InputError(
                f"{where}: {name} is {value:.15g} here but {self.given[name]:.15g} before; "
                "keep one, or give the settings of one NIC only"
            )
        if later and later.upper() != "N/A":
            then = _value(name, later, f"{where}: {name} (Next Boot)")
            if then != value:
                self.pending[name] = value, then

    def _add_mtu(self, name: str, text: str, where: str) -> None:
        """Take in the size of packets: ``active_mtu: 4096 (5)``, or the Ethernet ``mtu``."""
        size = number(text.split()[0], f"{where}: {name}", "bytes", 256, 65536, integer=True)
        payload = size if name == "active_mtu" else active_mtu(size)
        if payload not in MTUS or (self.mtu is not None and self.mtu != payload):
            raise InputError(
                f"{where}: {name} {clip(text)} is no MTU of RoCE's, or another than before; keep one, such as "
                "active_mtu = 4096"
            )
        self.mtu = float(payload)


def _value(name: str, text: str, where: str) -> float:
    """Parse one setting's value in the NIC's unit; registers hold whole numbers."""
    text = text.strip("\"'")
    named = _NAMED.fullmatch(text)
    text = str(int(text, 16)) if _HEX.fullmatch(text) else named[1] if named else text
    setting = SETTINGS.get(name)
    if setting is None:
        low, high, what = 0.0, 2.0**32 - 1, "the register's value"
    else:
        low, high = setting.low, setting.high
        what = f"{setting.what} in {setting.unit}, without the unit" if setting.unit else setting.what
    try:
        return number(text, where, what, low, high, integer=True)
    except InputError as error:
        hint = SETTINGS[name].hint if name in SETTINGS else ""
        raise InputError(f"{error}{' (' + hint + ')' if hint else ''}") from None


def _settings(found: _Found, lines: Iterator[tuple[str, ...]], source: str, *, unknown_listed: bool) -> NicSettings:
    rows = [*lines]
    _refuse_vendors(found.file, [base_name(row[0]).lower() for row in rows])
    for row in rows:
        found.add(*row)
    given = dict(found.given)
    _refuse_others(found)
    if not given:
        others = " and ".join(str(p) for p in sorted(found.others))
        have = f" for port {found.port} (it has port {others})" if others else ""
        named = "rpg_ai_rate" + (f" or RPG_AI_RATE_P{found.port}" if others else "")
        raise InputError(f"{found.file}: has no DCQCN setting{have}; give {EXPECTED_NIC}, with names such as {named}")
    ignored = [f"{name} = {given[name]:.15g}: {UNUSED[name](given[name])}" for name in given if name in UNUSED]
    ignored += [f"{name}: the source says N/A" for name in found.unset]
    ignored += [
        f"{len(theirs)} settings of port {p}{_other(theirs, given)}" for p, theirs in sorted(found.others.items())
    ]
    if unknown_listed:
        ignored += [f"{label(key)}: not a DCQCN setting known here" for key in found.unknown[:_MOST_LISTED]]
        left = len(found.unknown) - _MOST_LISTED
        ignored += [f"{left} more lines with unknown names"] if left > 0 else []
    elif found.unknown:
        ignored.append(f"{len(found.unknown)} other settings or files, which are none of DCQCN's numbers")
    return NicSettings(given, source, tuple(ignored), found.pending, found.mtu, found.qos, found.others)


def _other(theirs: Mapping[str, float], given: Mapping[str, float]) -> str:
    """Say in which settings another port differs."""
    names = [name for name in theirs if given.get(name, theirs[name]) != theirs[name]]
    return f", which differ in {listing(names)}" if names else ""


def _refuse_vendors(file: str, names: Sequence[str]) -> None:
    """Refuse another vendor's settings by their names, before their values, which may be none of NVIDIA's.

    Raises
    ------
    InputError
    """
    vendor = None if SETTINGS.keys() & {canonical(name) for name in names} else vendor_of(names)
    if vendor is not None:
        raise InputError(
            f"{file}: has settings of {vendor[0]}'s NICs ({listing(vendor[1], 4)}), which are not read; give those of "
            "an NVIDIA NIC, or none, for NVIDIA's defaults"
        )


def _refuse_others(found: _Found) -> None:
    """Refuse the output of mlnx_qos, which has no setting of DCQCN.

    Raises
    ------
    InputError
    """
    if not found.given and len(_OF_MLNX_QOS.intersection(found.unknown)) >= _ENOUGH:
        raise InputError(f"{found.file}: is the output of mlnx_qos, which has no DCQCN setting; give {EXPECTED_NIC}")


def _folder_lines(folder: Path, name: str) -> Iterator[tuple[str, str, str]]:
    seen = 0

    def unreadable(error: OSError) -> None:
        raise InputError(f"{name}: cannot be read ({error.strerror}); give {EXPECTED_NIC}")

    for parent, folders, files in os.walk(folder, onerror=unreadable):
        folders.sort()
        for file in sorted(files):
            seen += 1
            if seen > _MOST_FILES:
                raise InputError(f"{name}: has more than {_MOST_FILES} files; give the folder that holds roce_rp")
            path = Path(parent, file)
            file = spelled(path.absolute().as_posix()).rpartition("/")[2]
            known = canonical(file.lower()) is not None or file.lower() in _MTUS
            if not known or not path.is_file():  # a pipe would block
                yield file, "", ""
                continue
            yield file, read_text(path, "one number per file").strip(), label(path)


# -- switches that turn DCQCN off --------------------------------------------------------------------------


_USUAL = 3  # RoCE's priority where no switch's file says it


def switched_off(nic: NicSettings, priority: int, lossless: Collection[int] = ()) -> tuple[list[str], dict[str, int]]:
    """Say what switches DCQCN off for a priority, and which settings of the NIC switch it on.

    Parameters
    ----------
    nic : NicSettings
    priority : int
    lossless : collection of int
        Further priorities to switch on with it.

    Returns
    -------
    list of str
        A reason for each switch that is off.
    dict of str to int
    """
    whys: list[str] = []
    wanted: dict[str, int] = {}
    mask = nic.given.get("roce_cc_prio_mask")
    if mask is not None and not int(mask) >> priority & 1:
        whys.append(f"roce_cc_prio_mask = {int(mask)} leaves out priority {priority}")
        wanted["ROCE_CC_PRIO_MASK"] = int(mask) | sum(1 << each for each in {priority, *lossless})
    for side, effect in SIDES.items():
        if nic.given.get(enabling(side, priority)) == 0:
            name = f"roce_{side}/enable/{priority}"
            whys.append(f"{name} = 0: {effect}")
            wanted[name] = 1
    return whys, wanted


def off_in_words(nic: NicSettings, priority: int | None = None) -> str:
    """Say of a run that the NIC would not send by DCQCN; empty if it would."""
    whys, _ = switched_off(nic, _USUAL if priority is None else priority)
    if algorithm := nic.given.get("roce_cc_algorithm"):
        whys.append(f"ROCE_CC_ALGORITHM = {algorithm:g} is another algorithm")
    if not whys:
        return ""
    which = f"priority {_USUAL}, usually RoCE's" if priority is None else f"priority {priority}"
    return f"{nic.source}: DCQCN is off at this NIC for {which} ({'; '.join(whys)}); runs are as if it were on"
