"""The one folder of machine code, Numba's and XLA's: its owner, whether it can be trusted, what is deleted from it.

Loading machine code, or the pickles around it, runs whatever is in them. So nothing is read from a folder that somebody
else owns or may write to; a refused folder is reported in one line, and everything is compiled as if there were none.

Its name is a digest of the files that the machine code depends on, by the imports in their text (`files_behind`).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import stat
import time
import warnings
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

from fluidcc.compiling.settings import SOURCE

_PRIVATE = 0o700
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_OURS = re.compile(r"(numba|jax)-[0-9a-f]{16}|[0-9a-f]{16}")  # the last: of versions before
_UNUSED = 30 * 24 * 3600.0  # s after which what another version compiled is thrown out
_MOST = 2 << 30  # bytes of all versions
_CHECK = 32  # bytes of a file that tell whether the rest is whole
_REFRESH = 24 * 3600.0  # s between notes of use
_UNUSABLE = "the cache: {} cannot be used ({}); everything is compiled again. Give a folder: FLUIDCC_CACHE_DIR=..."
_said: set[str] = set()
_pruned: set[Path] = set()
_IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|.*)|import\s+(.*))", re.MULTILINE)
_NAME = re.compile(r"[\w.]+")


class RefusedError(Exception):
    """Machine code must not be loaded from there."""


def say(text: str) -> None:
    """A warning of one line, once."""
    if text not in _said:
        _said.add(text)
        warnings.warn_explicit(text, UserWarning, SOURCE, 1, module="fluidcc")


def say_unwritten(place: Path, error: OSError) -> None:
    """Say that nothing could be kept, on a full disk for example; not of a folder that another process threw out."""
    if not isinstance(error, FileNotFoundError):
        say(_UNUSABLE.format(repr(str(place)), error.strerror or str(error)))


def root() -> Path:
    """``FLUIDCC_CACHE_DIR``, else ``fluidcc`` in the user's cache folder."""
    own = os.environ.get("FLUIDCC_CACHE_DIR")
    if own:
        return Path(own).expanduser().absolute()
    return (Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "fluidcc").expanduser().absolute()


def folder(kind: str, digest: str) -> Path | None:
    """The private folder of one kind of machine code of one version, made if need be.

    Parameters
    ----------
    kind : {"numba", "jax"}
    digest : str
        Of 16 hexadecimal digits: of all that the machine code depends on.

    Returns
    -------
    Path or None
        None if it cannot be written, or must not be trusted, which is said.
    """
    try:
        top = root()
        place = top / f"{kind}-{digest}"
        for each in (top, place):
            each.mkdir(mode=_PRIVATE, parents=each is top, exist_ok=True)
        require_private(top, "FLUIDCC_CACHE_DIR" if os.environ.get("FLUIDCC_CACHE_DIR") else "the cache")
        require_private(place, "the cache")
        if not os.access(place, os.W_OK | os.X_OK):
            say(_UNUSABLE.format(repr(str(place)), "it cannot be written to"))
            return None
    except RefusedError as error:
        say(f"{error}; everything is compiled again. Give a folder of your own: FLUIDCC_CACHE_DIR=...")
        return None
    except (OSError, RuntimeError, ValueError) as error:  # a read-only or missing home; no such user; no path
        if os.environ.get("FLUIDCC_CACHE_DIR") != os.devnull:  # which says to keep nothing
            where, reason = getattr(error, "filename", None), getattr(error, "strerror", None)
            say(_UNUSABLE.format(repr(where) if where else "its folder", reason or str(error)))
        return None
    _note_use(place)
    return place


def processor() -> tuple[str, ...]:
    """Describe the processor as a compiler sees it: system, machine, model and features."""
    found = [platform.system(), platform.machine()]
    with contextlib.suppress(OSError):
        first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
        found += [line for line in first.splitlines() if line.startswith(("model", "flags", "Features", "CPU part"))]
    return tuple(found)


def require_private(place: Path, what: str) -> None:
    """Refuse a folder that somebody else owns or may write to, also where a link leads to one.

    Raises
    ------
    RefusedError
    OSError
        If it cannot be looked at.
    """
    for each in (place, Path(os.path.realpath(place))):
        state = each.lstat()
        if hasattr(os, "getuid") and state.st_uid != os.getuid():
            raise RefusedError(f"{what}: {str(each)!r} belongs to somebody else, so no machine code is loaded from it")
        if not stat.S_ISLNK(state.st_mode) and state.st_mode & _WRITABLE_BY_OTHERS:
            raise RefusedError(f"{what}: others may write to {str(each)!r}, so no machine code is loaded from it")
    for above in Path(os.path.realpath(place)).parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise RefusedError(f"{what}: others may replace what is in {str(above)!r}, so no machine code is loaded")


def require_own(place: Path, what: str) -> None:
    """Refuse a folder in which, at any depth, there is something of somebody else's, or a link.

    Raises
    ------
    RefusedError
    OSError
        If it cannot be looked at.
    """
    for each in _entries(place):
        state = each.stat(follow_symlinks=False)
        if stat.S_ISLNK(state.st_mode) or (hasattr(os, "getuid") and state.st_uid != os.getuid()):
            raise RefusedError(f"{what}: {each.path!r} is not ours, so no machine code is loaded from its folder")
        if stat.S_ISDIR(state.st_mode) and state.st_mode & _WRITABLE_BY_OTHERS:
            raise RefusedError(f"{what}: others may write to {each.path!r}, so no machine code is loaded from it")


def _entries(place: Path | str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(place) as found:
        for each in found:
            yield each
            if each.is_dir(follow_symlinks=False):
                yield from _entries(each.path)


def sealed(content: bytes) -> bytes:
    """Put a checksum before the content of a file."""
    return hashlib.sha256(content).digest() + content


def unsealed(file: bytes) -> bytes:
    """Return a file's content without its checksum.

    Raises
    ------
    ValueError
        If it is not whole.
    """
    check, content = file[:_CHECK], file[_CHECK:]
    if hashlib.sha256(content).digest() != check:
        raise ValueError("not whole")
    return content


def _note_use(place: Path) -> None:
    """The folder's own time says when it was last used; once a day, and other versions are looked at then."""
    with contextlib.suppress(OSError):
        if time.time() - place.stat().st_mtime > _REFRESH:
            os.utime(place)


def prune(current: Path) -> None:
    """Throw out what other versions compiled and nobody used for a month, then the oldest of what is too much.

    Once in a process, when something is added. Only folders with our names are touched.
    """
    if current in _pruned:
        return
    _pruned.add(current)
    now = time.time()
    with contextlib.suppress(OSError):
        others = [each for each in current.parent.iterdir() if _OURS.fullmatch(each.name) and each != current]
        aged = sorted((each.lstat().st_mtime, each) for each in others if not each.is_symlink())
        sizes = {each: _size(each) for _, each in aged}
        total = _size(current) + sum(sizes.values())
        for used, each in aged:
            if now - used > _UNUSED or total > _MOST:
                shutil.rmtree(each, ignore_errors=True)
                total -= sizes[each]
        if total > _MOST:
            _thin(current, total - _MOST // 2)


def _thin(place: Path, surplus: int) -> None:
    """Remove files, those first that were not used for longest."""
    files = [each for each in _entries(place) if each.is_file(follow_symlinks=False)]
    for each in sorted(files, key=lambda file: file.stat().st_mtime):
        if surplus <= 0:
            return
        surplus -= each.stat().st_size
        Path(each.path).unlink(missing_ok=True)


def _size(place: Path) -> int:
    try:
        return sum(each.stat(follow_symlinks=False).st_size for each in _entries(place))
    except OSError:
        return 0


def files_behind(modules: Iterable[str], roots: Iterable[str]) -> list[Path]:
    """Files of modules and of all that they import, directly or not, of packages.

    Parameters
    ----------
    modules : iterable of str
        Dotted names; one that does not exist is passed over.
    roots : iterable of str
        Packages in which imports are followed.
    """
    inside = tuple(f"{root}." for root in roots)
    found: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        path = None if name in found else file_of(name)
        if path is not None:
            found[name] = path
            waiting += [each for each in _imported(path, name) if each.startswith(inside)]
    return [found[name] for name in sorted(found)]


@functools.cache
def file_of(name: str) -> Path | None:
    """Source of a module; None if there is no such module, or no source of it."""
    spec = _spec_of(name)
    return None if spec is None or spec.origin is None or not spec.has_location else Path(spec.origin)


@functools.cache
def _spec_of(name: str) -> ModuleSpec | None:
    """Find a module without importing more than packages: `find_spec` imports all above it, a fluid side JAX too."""
    above = name.rpartition(".")[0]
    if above and ((parent := _spec_of(above)) is None or parent.submodule_search_locations is None):
        return None
    try:
        return importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError):  # ValueError: `__main__`, where it is a script
        return None


@functools.cache
def _imported(path: Path, name: str) -> tuple[str, ...]:
    """Names of what a module imports, each also with what it takes of it: that may be a module too.

    By their text, as parsing takes ten times as long, which every start would wait for. A line of a docstring that
    looks like an import adds a file at most.
    """
    found = []
    for source, given, plain in _IMPORT.findall(path.read_text(encoding="utf-8")):
        if plain:
            found += _NAME.findall(plain)
            continue
        dots = len(source) - len(source.lstrip("."))
        above = name.rsplit(".", dots)[0] if dots else ""
        base = ".".join(part for part in (above, source[dots:]) if part)
        found += [base, *(f"{base}.{each}" for each in _NAME.findall(given))]
    return tuple(found)
