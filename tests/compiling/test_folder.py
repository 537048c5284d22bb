"""Machine code is loaded from a folder of our own only, and whole; what is old is thrown out."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numba import njit

from fluidcc.compiling import folder
from fluidcc.compiling.functions import per_shape
from fluidcc.engines.common import jit
from fluidcc.engines.common.jit import keep

ROOT = Path(__file__).parents[2]
DIGEST = "0123456789abcdef"


@pytest.fixture(autouse=True)
def top(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(folder, "_said", set())
    monkeypatch.setattr(folder, "_pruned", set())
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path / "top"))
    return tmp_path / "top"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("umask", [0o002, 0o077, 0o000])
def test_it_is_private_whatever_the_umask(umask: int, top: Path) -> None:
    before = os.umask(umask)
    try:
        found = folder.folder("jax", DIGEST)
    finally:
        os.umask(before)
    assert found == top / f"jax-{DIGEST}"
    assert mode(top) == mode(found) == 0o700
    assert folder.folder("jax", DIGEST) == found  # and is found again


def test_one_place_by_one_rule(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert folder.root() == tmp_path / "top"
    monkeypatch.delenv("FLUIDCC_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert folder.root() == tmp_path / "xdg" / "fluidcc"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert folder.root() == tmp_path / "home" / ".cache" / "fluidcc"


@pytest.mark.parametrize("which", ["top", "inner", "link", "inner link", "above"])
def test_what_others_may_write_to_is_refused(which: str, top: Path, tmp_path: Path, monkeypatch: Any) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    elsewhere.chmod(0o777)
    if which == "top":
        top.mkdir()
        top.chmod(0o770)
    elif which == "inner":
        (top / f"jax-{DIGEST}").mkdir(parents=True)
        (top / f"jax-{DIGEST}").chmod(0o707)
    elif which == "link":
        top.symlink_to(elsewhere)
    elif which == "inner link":
        top.mkdir()
        (top / f"jax-{DIGEST}").symlink_to(elsewhere)
    else:
        monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(elsewhere / "mine"))
    with pytest.warns(UserWarning, match="others may") as said:
        assert folder.folder("jax", DIGEST) is None
    assert len(said) == 1
    assert "FLUIDCC_CACHE_DIR=" in str(said[0].message)
    assert folder.folder("jax", DIGEST) is None  # said once


def test_what_somebody_else_owns_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder.folder("jax", DIGEST) is not None
    monkeypatch.setattr(folder.os, "getuid", lambda: 4321)
    with pytest.warns(UserWarning, match="belongs to somebody else"):
        assert folder.folder("jax", DIGEST) is None


@pytest.mark.parametrize("given", ["file/below", "file", "/proc/nowhere", "~nosuchuser/x", "x" * 300])
def test_a_folder_that_cannot_be_used_is_said_once(
    given: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """Nobody waits 40 s for packets at each start without knowing why."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", given)
    for _ in range(2):
        assert folder.folder("jax", DIGEST) is None
    (said,) = [str(each.message) for each in recwarn]
    assert said.startswith("the cache: ")
    assert said.endswith("; everything is compiled again. Give a folder: FLUIDCC_CACHE_DIR=...")


def test_the_null_device_says_to_keep_nothing(monkeypatch: pytest.MonkeyPatch, recwarn: Any) -> None:
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", os.devnull)
    assert folder.folder("jax", DIGEST) is None
    assert not list(recwarn)


def test_a_user_without_a_home_compiles_anew(monkeypatch: pytest.MonkeyPatch, recwarn: Any) -> None:
    """As with a uid that is in no list of users, and no HOME: there is nothing to expand ``~`` to."""
    for name in ("FLUIDCC_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert folder.folder("jax", DIGEST) is None
    assert "Could not determine home directory" in str(recwarn[0].message)


# -- what is thrown out --------------------------------------------------------------------------------------


def version(top: Path, name: str, days: float, size: int = 10) -> Path:
    place = top / name
    place.mkdir(parents=True)
    (place / "file").write_bytes(bytes(size))
    os.utime(place, (time.time() - days * 86400,) * 2)
    return place


def test_other_versions_go_after_a_month_and_nothing_else_does(top: Path) -> None:
    old, recent = version(top, "jax-" + "a" * 16, 31), version(top, "numba-" + "b" * 16, 29)
    earlier = version(top, "c" * 16, 40)  # the name of versions before
    foreign = [version(top, name, 400) for name in ("thesis", "jax-notes", "C" * 16)]
    current = folder.folder("jax", DIGEST)
    assert current is not None
    os.utime(current, (0, 0))
    folder.prune(current)
    assert not old.exists()
    assert not earlier.exists()
    assert all(each.exists() for each in (recent, current, *foreign))


def test_the_sum_is_bounded_and_the_oldest_go_first(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "_MOST", 250)
    older, newer = version(top, "jax-" + "a" * 16, 3, 100), version(top, "jax-" + "b" * 16, 2, 100)
    current = folder.folder("jax", DIGEST)
    assert current is not None
    (current / "first").write_bytes(bytes(100))
    folder.prune(current)
    assert not older.exists()
    assert newer.exists()
    monkeypatch.setattr(folder, "_pruned", set())
    for number in range(5):
        (current / f"file{number}").write_bytes(bytes(100))
        os.utime(current / f"file{number}", (number, number))
    folder.prune(current)
    assert not newer.exists()
    assert not (current / "file0").exists()
    assert (current / "first").exists()
    assert sum(each.stat().st_size for each in current.iterdir()) <= 250


# -- Numba's files -------------------------------------------------------------------------------------------

NUMBA = """
import numpy as np
from fluidcc.engines.common import jit

@jit.entry
def double(x):
    return 2 * x

@jit.entry
def triple(x):
    return 3 * x

@jit.entry
def fourfold(x):
    return 4 * x

@jit.entry
def fivefold(x):
    return 5 * x

@jit.entry
def sixfold(x):
    return 6 * x

@jit.entry
def sevenfold(x):
    return 7 * x

ALL = double, triple, fourfold, fivefold, sixfold, sevenfold
print(*(each(np.int64(7)) for each in ALL), sum(sum(each.stats.cache_hits.values()) for each in ALL))
"""
ANSWERS = "14 21 28 35 42 49"


def start(script: Path, top: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "FLUIDCC_CACHE_DIR": str(top)}
    command = [sys.executable, str(script)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def ended(running: subprocess.Popen[str]) -> tuple[str, list[str]]:
    out, err = running.communicate()
    assert running.returncode == 0, err
    return out.strip(), err.splitlines()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A script, and the folder as its first run leaves it."""
    place = tmp_path_factory.mktemp("numba")
    script = place / "script.py"
    script.write_text(NUMBA)
    assert ended(start(script, place / "top")) == (f"{ANSWERS} 0", [])
    return script, place / "top"


@pytest.fixture
def kept(made: tuple[Path, Path], top: Path) -> Path:
    """The script; its folder is copied."""
    shutil.copytree(made[1], top)
    return made[0]


@pytest.mark.slow
def test_damaged_files_of_numba_are_made_anew_with_one_line_each(kept: Path, top: Path) -> None:
    """Indices and code: a file that is cut, one that is empty and one that is altered."""
    damages = {
        "cut": lambda content, half: content[:half],
        "empty": lambda content, half: b"",
        "altered": lambda content, half: content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :],
    }
    names = iter(("double", "triple", "fourfold", "fivefold", "sixfold", "sevenfold"))
    for suffix in ("nbi", "nbc"):
        for damaged in damages.values():
            (path,) = top.rglob(f"*.{next(names)}-*.{suffix}")
            content = path.read_bytes()
            path.write_bytes(damaged(content, len(content) // 2))
    found, said = ended(start(kept, top))
    assert found == f"{ANSWERS} 0"
    assert len(said) == 6
    assert all("damaged" in line for line in said)
    assert ended(start(kept, top)) == (f"{ANSWERS} 6", [])


class Planted:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return Path.touch, (self.marker,)


@pytest.mark.parametrize("how", [pytest.param("open folder", marks=pytest.mark.slow), "link within"])
def test_a_planted_index_is_not_executed(how: str, kept: Path, top: Path, tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    (index,) = top.rglob("*.double-*.nbi")
    planted = pickle.dumps(Planted(marker))
    if how == "open folder":
        index.write_bytes(planted)
        top.chmod(0o777)
    else:
        (tmp_path / "theirs").write_bytes(planted)
        index.unlink()
        index.symlink_to(tmp_path / "theirs")
    found, said = ended(start(kept, top))
    assert found == f"{ANSWERS} 0"
    assert len(said) == 1
    assert "no machine code is loaded" in said[0]
    assert not marker.exists()
    pickle.loads(planted)
    assert marker.exists()  # it would have been


@pytest.mark.slow
def test_processes_that_start_with_nothing_at_the_same_time_all_work(made: tuple[Path, Path], top: Path) -> None:
    running = [start(made[0], top) for _ in range(3)]
    for each in running:
        out, err = ended(each)
        assert out.startswith(f"{ANSWERS} ")
        assert err == []
    assert ended(start(made[0], top)) == (f"{ANSWERS} 6", [])


def test_machine_code_is_loaded_but_never_compiled_into_a_caller(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept without its bitcode, of which a caller would be made: one that calls nothing would crash."""

    def plus(x: int) -> int:
        return x + 1

    place = folder.folder("numba", DIGEST)
    assert place is not None
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(place))
    for hits in (0, 1):
        compiled = njit(plus)
        keep(compiled, place)
        assert compiled(2) == 3
        assert sum(compiled.stats.cache_hits.values()) == hits
    assert njit(lambda x: x - 1)(2) == 1  # what is not kept is compiled as ever
    with pytest.raises(RuntimeError, match="unfit for linking"):
        njit(lambda x: compiled(x))(2)


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), FileNotFoundError(2, "gone")], ids=["full", "gone"]
)
@pytest.mark.parametrize("kind", ["numba", "jax"])
def test_a_disk_that_is_full_is_said(kind: str, error: OSError, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, and what was compiled is used all the same; not where another process threw the folder out."""

    def full(*_: Any) -> None:
        raise error

    monkeypatch.setattr(os, "replace", full)
    place = folder.folder(kind, DIGEST)
    assert place is not None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for step in (1, 2):
            if kind == "jax":
                compiled = per_shape()(lambda x, step=step: x + step)
                compiled.function.__name__ = "added"
                assert compiled(1.0) == 1.0 + step
            else:
                monkeypatch.setattr("numba.core.config.CACHE_DIR", str(place))
                added = njit(lambda x, step=step: x + step)
                keep(added, place)
                assert added(1.0) == 1.0 + step
    texts = [str(each.message) for each in said]
    assert len(texts) == (error.errno == 28)
    assert all("cannot be used (No space left on device); everything is compiled again" in text for text in texts)


def test_numba_announces_what_it_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each kind of arguments; a call of what is compiled says nothing."""
    said: list[str] = []

    @contextlib.contextmanager
    def waiting(text: str) -> Iterator[None]:
        said.append(text)
        yield

    monkeypatch.setattr(jit, "waiting", waiting)
    made: Any = njit(lambda x: x + 1)
    jit.announce(made, "a sum (about 1 s, once)")
    assert [made(1), made(2)] == [2, 3]
    assert said == ["compiling a sum (about 1 s, once)"]
