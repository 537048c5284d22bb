"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from fluidcc.errors import InputError


def write_atomically(path: str | Path, write: Any) -> Path:
    """Write a file through a temporary one beside it, so that it appears whole or not at all.

    Raises
    ------
    InputError
        If the folder is missing or cannot be written to.
    """
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    except (OSError, ValueError) as error:  # ValueError: a null byte
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{str(path)!r}: cannot be written ({reason}); give a path in a folder that exists") from None
    os.close(handle)
    try:
        write(name)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}); give another path") from None
    finally:
        Path(name).unlink(missing_ok=True)
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
