"""Measured samples: a queue, rates, or both, over time; a run of ours, its file, or a table (CSV)."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc import units
from fluidcc.errors import InputError
from fluidcc.files import LARGEST, read_bounded
from fluidcc.results.trace import Trace

_EXPECTED = "NetCDF (.nc) that Trace.save wrote, or CSV with a line of names such as time_us,queue_bytes,rate_Gbps"
_HEADER = re.compile(r"(?P<name>.*?)(?:[ _]*\[(?P<unit>[^\]]*)\]|_(?P<suffix>[A-Za-z/]+))?")
_ROLES = {
    "time": (re.compile(r"t|time", re.IGNORECASE), units.TIME),
    "queue": (re.compile(r"q|queue|q_bytes.*|queue_bytes.*", re.IGNORECASE), units.SIZE),
    "rate": (re.compile(r"f\d+|rate.*", re.IGNORECASE), units.RATE),
    "pacing": (re.compile(r"pacing_rate.*", re.IGNORECASE), units.RATE),
}
_LEAST = 50  # samples
_WORDS = {"bytes": 1.0, "byte": 1.0, "bytes/s": 1.0, "seconds": 1.0, "s": 1.0}


@dataclasses.dataclass(frozen=True)
class Measured:
    """Samples over time.

    Parameters
    ----------
    time : ndarray
        [s], growing; a rate is the mean of the interval before its sample.
    queue : ndarray or None
        Of one link [bytes].
    rates : ndarray or None
        (time, flow) [bytes/s]; NaN where nothing was measured.
    link : str or None
        Name of the queue's link, where it is known.
    paced : bool
        Whether the rates are those at which senders pace themselves at each time, not what they sent.
    """

    time: np.ndarray
    queue: np.ndarray | None
    rates: np.ndarray | None
    link: str | None = None
    paced: bool = False

    @property
    def interval(self) -> float:
        """Usual spacing of the samples [s]."""
        return float(np.median(np.diff(self.time)))

    def between(self, opens: float, closes: float) -> Measured:
        """Samples of an interval [s]."""
        kept = (self.time >= opens - 1e-12) & (self.time <= closes + 1e-12)
        queue, rates = (None if values is None else values[kept] for values in (self.queue, self.rates))
        return dataclasses.replace(self, time=self.time[kept], queue=queue, rates=rates)

    def at(self, time: np.ndarray) -> Measured:
        """The same at other times: rates keep the bytes sent between them, the queue is interpolated."""
        queue = None if self.queue is None else np.interp(time, self.time, self.queue)
        rates = None
        if self.rates is not None:
            steps = np.diff(self.time, prepend=self.time[0] - self.interval)
            sent = np.cumsum(np.nan_to_num(self.rates) * steps[:, None], axis=0)
            total = np.stack([np.interp(time, self.time, column) for column in sent.T], axis=1)
            rates = np.diff(total, axis=0) / np.diff(time)[:, None]
            rates = np.concatenate([rates[:1], rates])
        return dataclasses.replace(self, time=time, queue=queue, rates=rates)


def measured_of(trace: Any, link: str | None = None) -> Measured:
    """Read what was measured.

    Parameters
    ----------
    trace : Trace, Measured, or path
        A table (``.csv``, ``.csv.gz``) has a line of names: ``time`` or ``t``, ``queue...`` or ``q...``, and
        ``rate...`` or ``f0``, ``f1`` and so on (what was sent since the sample before) or ``pacing_rate...`` (at which
        a sender paces itself then), each with its unit in brackets or behind an underscore (``time_us``,
        ``rate [Gbps]``); without one they are in s, bytes and bytes/s.
    link : str, optional
        Whose queue of a trace with several; the most loaded by default.

    Raises
    ------
    InputError
        If there is no such file, or it holds neither a queue nor rates over time.
    """
    if isinstance(trace, Measured):
        return checked(trace, "trace")
    if isinstance(trace, (str, Path)):
        if str(trace).lower().endswith((".csv", ".csv.gz")):
            return checked(_read_table(Path(trace)), str(trace)[:200])
        if not str(trace).lower().endswith(".nc"):
            raise InputError(f"{str(trace)[:200]}: unknown ending; give {_EXPECTED}")
        trace = Trace.load(trace)
    if not isinstance(trace, Trace):
        raise InputError(f"trace: expected a Trace or a path, not {repr(trace)[:40]}; give {_EXPECTED}")
    name = link or trace.bottleneck()
    if name not in trace["link"].values:
        known = ", ".join(map(str, trace["link"].values[:8]))
        raise InputError(f"link: the trace has none named {name[:40]!r}; write one of {known}")
    rates = trace["rate"].values if "rate" in trace else None
    return checked(Measured(trace["time"].values, trace["queue"].sel(link=name).values, rates, name), "trace")


def checked(found: Measured, where: str) -> Measured:
    """Refuse what holds too little.

    Raises
    ------
    InputError
    """
    if found.queue is None and found.rates is None:
        raise InputError(f"{where}: holds neither a queue nor rates; name a column queue_bytes or rate_Gbps")
    if len(found.time) < _LEAST:
        raise InputError(f"{where}: {len(found.time)} samples are too few; give {_LEAST} or more")
    if not np.isfinite(found.time).all() or (np.diff(found.time) <= 0).any():
        raise InputError(f"{where}: times do not grow; sort the samples by time")
    if found.queue is not None and not (np.isfinite(found.queue).all() and (found.queue >= 0).all()):
        raise InputError(f"{where}: a queue is negative or no number; leave out such samples")
    if found.queue is not None and found.rates is None and not found.queue.any():
        raise InputError(
            f"{where}: the queue is empty throughout, which nothing can be told by; add a rate, or more load"
        )
    if found.rates is not None and (np.isinf(found.rates).any() or (found.rates < 0).any()):
        raise InputError(f"{where}: a rate is negative or infinite; leave out such samples")
    return found


def _read_table(path: Path) -> Measured:
    try:
        content = read_bounded(path)
        if path.suffix.lower() == ".gz":
            with gzip.open(io.BytesIO(content)) as handle:
                content = handle.read(LARGEST + 1)
            if len(content) > LARGEST:
                raise InputError(f"{str(path)[:200]}: more than {LARGEST:,} bytes; give fewer samples")
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or "no table"
        raise InputError(f"{str(path)[:200]}: {reason}; give {_EXPECTED}") from None
    rows = [row for row in rows if row and not row[0].lstrip().startswith("#")]
    if len(rows) < 2:
        raise InputError(f"{str(path)[:200]}: holds no samples; give {_EXPECTED}")
    columns = [_column(text, path) for text in rows[0]]
    roles = [role for role, _ in columns]
    for role in ("time", "queue"):
        if roles.count(role) > 1 or (role == "time" and role not in roles):
            raise InputError(f"{str(path)[:200]}: {roles.count(role)} columns of {role}; give {_EXPECTED}")
    values = np.full((len(rows) - 1, len(columns)), np.nan)
    for at, row in enumerate(rows[1:]):
        if len(row) != len(columns):
            raise InputError(f"{str(path)[:200]}: line {at + 2} has {len(row)} entries, not {len(columns)}")
        for column, text in enumerate(row):
            try:
                values[at, column] = float(text) * columns[column][1] if text.strip() else np.nan
            except ValueError:
                raise InputError(f"{str(path)[:200]}: line {at + 2}: {text[:20]!r} is no number") from None
    picked = {role: values[:, [at for at, each in enumerate(roles) if each == role]] for role in set(roles)}
    if "rate" in picked and "pacing" in picked:
        raise InputError(f"{str(path)[:200]}: has both rates and pacing rates; leave out one of the two")
    queue, rates = picked.get("queue"), picked.get("rate", picked.get("pacing"))
    queue = None if queue is None else queue[:, 0]
    return Measured(picked["time"][:, 0], queue, rates, paced="pacing" in picked)


def _column(text: str, path: Path) -> tuple[str, float]:
    """Return the role of a column, and its unit in SI."""
    match = _HEADER.fullmatch(text.strip())
    name, unit = (match["name"].strip(" _"), match["unit"] or match["suffix"]) if match else (text, None)
    for role, (pattern, dimension) in _ROLES.items():
        if pattern.fullmatch(name) or pattern.fullmatch(text.strip()):
            known = unit if pattern.fullmatch(name) else None
            if known is None or known in _WORDS:
                return role, 1.0
            return role, units.parse(f"1{known}", dimension, f"{str(path)[:200]}: column {text[:30]!r}")
    raise InputError(f"{str(path)[:200]}: cannot tell what column {text[:30]!r} holds; give {_EXPECTED}")
