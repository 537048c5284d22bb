"""Files that appear whole or not at all, and that are read within bounds of size and time.

Links are followed, and what is no regular file (a device, a pipe) is written into, never replaced.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from fluidcc.errors import InputError

LARGEST = 64 * 2**20  # bytes that are read at most
_OF_A_DEVICE = 2**20
PATIENCE = 20.0  # s in which a pipe must have given all that it holds
_LARGEST_RATIO = 2000  # of the numbers in a dataset to its file: deflate makes a thousandth at best
_TEMPORARY = ".fluidcc-"  # next to a file of any length of name

# What to do with a line that says where something was saved instead of where it should be.
_tell: ContextVar[Callable[[str], None] | None] = ContextVar("tell", default=None)


def write_atomically(path: str | Path, content: bytes) -> Path:
    """Write a file through a temporary one next to it, so that it appears whole or not at all.

    Returns
    -------
    Path
        Where it is: elsewhere if it could not be written within `rescuing`.

    Raises
    ------
    InputError
        If the folder is missing or cannot be written to, or the disk is full.
    """
    path = Path(path)
    try:
        _write(path, content)
    except (OSError, ValueError) as error:
        problem = f"{str(path)!r}: cannot be written ({_reason(error)})"
        if (tell := _tell.get()) is not None:
            return _save_elsewhere(path, content, problem, tell)
        raise InputError(f"{problem}; give a path in a folder that exists and has room") from None
    return path


def write_netcdf(path: str | Path, dataset: Any) -> Path:
    """Write a dataset as NetCDF4, as `write_atomically`; by way of memory, because HDF5 crashes on a full disk.

    Numbers have checksums, so that a damaged file is refused when it is read.
    """
    from xarray.backends import H5NetCDFStore
    from xarray.backends.locks import HDF5_LOCK

    arrays = [name for name, array in dataset.variables.items() if array.ndim and array.dtype.kind in "fiub"]
    buffer = io.BytesIO()
    # Where a client of Dask is open, `to_netcdf` asks its scheduler for a lock of a file's name, which memory has not.
    with contextlib.closing(H5NetCDFStore.open(buffer, mode="w", lock=HDF5_LOCK)) as store:
        dataset.dump_to_store(store, encoding={name: {"fletcher32": True} for name in arrays})
    return write_atomically(path, buffer.getvalue())


def read_netcdf(path: str | os.PathLike[str], expected: str) -> Any:
    """Read a dataset whole.

    Parameters
    ----------
    path : str or Path
    expected : str
        What to give instead, for the error message.

    Returns
    -------
    xarray.Dataset

    Raises
    ------
    InputError
        If it cannot be read, is damaged, or declares more numbers than can be in a file of its size.
    """
    import h5py
    import xarray as xr

    refuse_special(path, expected)
    try:
        with open(path, "rb"):  # h5py's words for a file that is missing are for its developers
            pass
        with h5py.File(path, "r") as file:  # h5netcdf leaves a traceback on standard error where this cannot be read
            dict(file.attrs)
            declared = sum(each.nbytes for each in file.values() if isinstance(each, h5py.Dataset))
        if declared > _LARGEST_RATIO * os.path.getsize(path):
            raise ValueError(f"declares {declared:.3g} bytes of numbers, more than can be in it")
        with xr.open_dataset(path, engine="h5netcdf") as dataset:
            return dataset.load()
    except Exception as error:  # a file may be damaged in any way
        reason = " ".join((_reason(error) or type(error).__name__).split())[:200]
        raise InputError(f"{str(path)[:200]}: cannot be read ({reason}); give {expected}") from None


def check_writable(path: str | Path, option: str, endings: Sequence[str] = ()) -> None:
    """Refuse a path that a result could not be written to, before it is computed.

    Parameters
    ----------
    path : str or Path
    option : str
        What names it, for the error message.
    endings : sequence of str
        That a regular file's name may have.

    Raises
    ------
    InputError
        If its folder is missing or takes no files, it is a folder, may not be written to, or has another ending.
    """
    path = Path(path)
    if endings and path.suffix.lower() not in endings and not is_special(path):
        known = ", ".join(endings)
        raise InputError(f"{option}: {str(path)!r}: unknown ending {path.suffix!r}; write a name that ends in {known}")
    try:
        if path.exists():
            if path.is_dir():
                raise IsADirectoryError(21, "is a folder")
            if not os.access(path, os.W_OK):
                raise PermissionError(13, "no permission to write to it")
        if not is_special(path):
            handle, name = tempfile.mkstemp(dir=_target(path).parent, prefix=_TEMPORARY)
            os.close(handle)
            os.unlink(name)
    except (OSError, ValueError) as error:
        problem = f"{option}: {str(path)[:200]!r}: cannot be written ({_reason(error)})"
        raise InputError(f"{problem}; give a path in a folder that exists and can be written to") from None


def is_special(path: str | os.PathLike[str]) -> bool:
    """Check whether a path leads to a device, a pipe or a socket, which is written into as it is."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextlib.contextmanager
def rescuing(tell: Callable[[str], None]) -> Iterator[None]:
    """Save files that cannot be written in another folder, within the block; ``tell`` gets a line that says where."""
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)


def read_bounded(path: str | os.PathLike[str], most: int = LARGEST) -> bytes:
    """Read a file: no more than ``most`` bytes and one, and of a pipe what it gives within `PATIENCE`.

    Raises
    ------
    OSError
        If it cannot be read, or is a device that does not end; TimeoutError if a pipe did not end in time.
    ValueError
        If its name has a null byte.
    """
    # Opening a pipe that nobody writes to waits forever otherwise.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(handle, "rb", buffering=0) as file:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(21, "is a directory")
        waited = not stat.S_ISREG(mode)
        deadline, parts, size = time.monotonic() + PATIENCE, [], 0
        while size <= most:
            if waited:
                _await_data(handle, deadline)
            part = file.read(min(1 << 20, most + 1 - size))
            if not part:
                if part is None:  # another reader took it
                    continue
                break
            parts.append(part)
            size += len(part)
            if stat.S_ISCHR(mode) and size > _OF_A_DEVICE:
                raise OSError(27, "a device that does not end")
    return b"".join(parts)


def read_whole(path: str | os.PathLike[str], most: int) -> bytes:
    """Read a file whole, as `read_bounded`.

    Raises
    ------
    OSError
        Also if it has more than ``most`` bytes.
    """
    raw = read_bounded(path, most)
    if len(raw) > most:
        raise OSError(27, f"is larger than {most // 2**20} MiB")
    return raw


def refuse_special(path: str | os.PathLike[str], expected: str) -> None:
    """Refuse a path that leads to a device or a pipe, where a file must be read that can be read again."""
    if is_special(path):
        raise InputError(f"{str(path)[:200]}: is a pipe or a device; write it into a file first, and give {expected}")


def _await_data(handle: int, deadline: float) -> None:
    """Wait until there is something to read, or the end; a pipe that nobody has opened yet has none."""
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    if not waiting.poll(max(0.0, deadline - time.monotonic()) * 1e3):
        raise TimeoutError(110, f"a pipe that did not end within {PATIENCE:g} s")


def _write(path: Path, content: bytes) -> None:
    if is_special(path):
        # Not to wait for a pipe's reader, which may never come.
        handle = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
        os.set_blocking(handle, True)
        with open(handle, "wb") as file:
            file.write(content)
        return
    target = _target(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=_TEMPORARY)
    try:
        with open(handle, "wb") as file:
            file.write(content)
        os.chmod(name, stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask())
        os.replace(name, target)
    finally:
        Path(name).unlink(missing_ok=True)


def _target(path: Path) -> Path:
    """Return the real path of a file, present or not: the end of its links.

    Raises
    ------
    OSError
        If the links form a loop, or a name is too long.
    """
    with contextlib.suppress(FileNotFoundError):
        os.stat(path)
    return Path(os.path.realpath(path))


def _save_elsewhere(path: Path, content: bytes, problem: str, tell: Callable[[str], None]) -> Path:
    """Save what has been computed where there is room; say so either way."""
    for place in (tempfile.gettempdir, Path.cwd, Path.home):
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: no home
            handle, name = tempfile.mkstemp(dir=place(), prefix=f"fluidcc-{path.stem[:40]}-", suffix=path.suffix[:8])
            try:
                with open(handle, "wb") as file:
                    file.write(content)
            except OSError:
                os.unlink(name)
                raise
            tell(f"{problem}; saved as {name}")
            return Path(name)
    tell(f"{problem}, nor could any other folder; run again where there is room")
    return path


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
