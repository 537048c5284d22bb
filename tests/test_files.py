"""Files: whole or not at all, through links, into devices, never lost; read within bounds of size and time."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc import files
from fluidcc.cli.app import run
from fluidcc.errors import InputError
from fluidcc.files import check_writable, read_bounded, rescuing, write_atomically, write_netcdf
from fluidcc.operators import read_nic, read_sonic
from fluidcc.results.trace import Trace

FULL = Path("/dev/full")
needs_unix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes and devices with names here")
LONG = "n" * 300
SHORT = ["--until", "100us"]


@pytest.fixture
def full_disk() -> Callable[[int], contextlib.AbstractContextManager[None]]:
    """A limit on the size of files, which writing meets as it meets a full disk: with an OSError, half-way."""
    resource = pytest.importorskip("resource")

    @contextlib.contextmanager
    def limited(most: int) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, full_disk) -> None:
    path = tmp_path / "trace.nc"
    path.write_text("what was there")
    with full_disk(1000), pytest.raises(InputError, match=r"trace\.nc'.*File too large"):
        write_atomically(path, b"x" * 2000)
    assert path.read_text() == "what was there"
    assert list(tmp_path.iterdir()) == [path]


def test_netcdf_on_a_full_disk_is_refused(tmp_path: Path, full_disk) -> None:
    """HDF5 writing there itself left an open file behind, whose closing at exit was a segmentation fault."""
    with full_disk(1 << 14), pytest.raises(InputError, match="File too large"):
        write_netcdf(tmp_path / "t.nc", xr.Dataset({"x": ("y", np.ones(10_000))}))
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "trace.nc", b"whole")
    assert list(tmp_path.iterdir()) == []


def test_links_are_followed_and_modes_kept(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link.nc").symlink_to("there/file.nc")  # of nothing yet
    for content in (b"first", b"second"):
        write_atomically(tmp_path / "link.nc", content)
        assert (tmp_path / "link.nc").is_symlink()
        assert (tmp_path / "there" / "file.nc").read_bytes() == content
        (tmp_path / "there" / "file.nc").chmod(0o640)
    assert stat.S_IMODE((tmp_path / "there" / "file.nc").stat().st_mode) == 0o640
    (tmp_path / "round").symlink_to("round")
    for use in (lambda path: write_atomically(path, b""), lambda path: check_writable(path, "--out")):
        with pytest.raises(InputError, match="symbolic links"):
            use(tmp_path / "round")


@needs_unix
def test_what_is_no_file_is_written_into(tmp_path: Path) -> None:
    fifo, got = tmp_path / "fifo", []
    os.mkfifo(fifo)
    with pytest.raises(InputError, match="cannot be written"):  # nobody reads
        write_atomically(fifo, b"lost")
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
    reader.start()
    for _ in range(100):
        with contextlib.suppress(InputError):
            write_atomically(fifo, b"x" * 200_000)
            break
        time.sleep(0.02)
    reader.join(10)
    assert got == [b"x" * 200_000]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


@pytest.mark.skipif(not FULL.is_char_device(), reason="there is no /dev/full")
def test_a_device_stays_one(tmp_path: Path) -> None:
    """Through a link, so that no device is harmed where this fails."""
    null, full = tmp_path / "null.nc", tmp_path / "full.nc"
    null.symlink_to(os.devnull)
    full.symlink_to(FULL)
    write_atomically(null, b"x")
    check_writable(null, "--out", (".csv",))  # a device has no ending
    with pytest.raises(InputError, match="No space left"):
        write_atomically(full, b"x")
    assert null.is_symlink()
    assert full.is_symlink()


def test_what_cannot_be_saved_is_saved_elsewhere(tmp_path: Path, full_disk, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere, told = tmp_path / "elsewhere", []
    elsewhere.mkdir()
    monkeypatch.setattr(files.tempfile, "gettempdir", lambda: str(elsewhere))
    with rescuing(told.append):
        found = write_atomically(tmp_path / "gone" / f"{LONG}.nc", b"result")
    assert found.parent == elsewhere
    assert found.suffix == ".nc"
    assert found.read_bytes() == b"result"
    assert told[0].endswith(f"saved as {found}")
    found.unlink()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with rescuing(told.append), full_disk(100):
        write_atomically(tmp_path / "t.nc", b"x" * 200)
    assert "nor could any other folder" in told[1]
    assert list(tmp_path.iterdir()) == [elsewhere]
    assert list(elsewhere.iterdir()) == []


def test_a_command_tells_where_it_saved_its_result(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder vanishes while it computes: the answer stands, the trace is elsewhere, the status is 2."""
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    monkeypatch.setattr(files.tempfile, "gettempdir", lambda: str(elsewhere))
    save = Trace.save

    def vanished(self: Trace, path: str) -> Path:
        folder.rmdir()
        return save(self, path)

    monkeypatch.setattr(Trace, "save", vanished)
    assert run(["simulate", "dcqcn", *SHORT, "--out", str(folder / "t.nc"), "--json"]) == 2
    out, err = capsys.readouterr()
    (saved,) = elsewhere.iterdir()
    assert out.startswith("{")
    assert err.count("\n") == 1
    assert f"saved as {saved}" in err
    assert fc.load(saved).summary["until_s"] == 1e-4


REFUSED = [
    (["simulate", "dcqcn", "--out", "t.csv"], "--out", ".nc"),
    (["simulate", "dcqcn", "--out", "none/t.nc"], "--out", "No such file"),
    (["simulate", "dcqcn", "--out", "folder.nc"], "--out", "is a folder"),
    (["simulate", "dcqcn", "--out", f"{LONG}.nc"], "--out", "too long"),
    (["simulate", "dcqcn", "--out", "\0.nc"], "--out", "null"),
    (["simulate", "dcqcn", "--plot", "none/t.png"], "--plot", "No such file"),
    (["simulate", "dcqcn", "--plot", "t.gif"], "--plot", ".png"),
    (["simulate", "dcqcn", "--save-scenario", LONG], "--save-scenario", "too long"),
    (["crosscheck", "dcqcn", "--plot", "t"], "--plot", ".png"),
    (["stability", "dcqcn", "--plot", "none/t.png"], "--plot", "No such file"),
    (["sweep", "dcqcn", "--over", "g=1/256", "--out", "t.xls"], "--out", ".csv"),
    (["sweep", "dcqcn", "--over", "g=1/256", "--plot", "none/t.png"], "--plot", "No such file"),
    (["sweep", "dcqcn", "--over", "g=1/256", "--store", "none/s"], "store", "No such file"),
    (["sweep", "dcqcn", "--over", "g=1/256", "--store", LONG], "store", "too long"),
    (["sweep", "dcqcn", "--over", "g=1/256", "--store", "folder.nc"], "store", "exists"),
    (["simulate", "dcqcn", "--topology", LONG], "--topology", "no file"),
    (["simulate", "dcqcn", "--from", LONG], "--from", "too long"),
    (["reproduce", "dcqcn-fig4", "--out", LONG], "--out", "too long"),
    (["simulate", "dcqcn", "--port", "Ethernet0"], "--port", "--from config_db.json"),
    (["equilibrium", "dcqcn", "--port", "Ethernet0"], "--port", "--from config_db.json"),
]


@pytest.mark.parametrize(("arguments", "option", "says"), REFUSED, ids=[f"{r[0][0]} {r[1]} {r[2]}" for r in REFUSED])
def test_places_are_checked_before_anything_is_computed(
    tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch, arguments: list[str], option: str, says: str
) -> None:
    def computed(*_: object, **__: object) -> None:
        pytest.fail("it was computed first")

    for place in ("fluidcc.engines.run.simulate", "fluidcc.theory.control.stability.stability"):
        monkeypatch.setattr(place, computed)
    monkeypatch.setattr("fluidcc.studies.sweeps.run.batch_of", computed)
    monkeypatch.chdir(tmp_path)
    Path("folder.nc").mkdir()
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"fluidcc: {option}: ")
    assert err.count("\n") == 1
    assert says in err
    assert [each.name for each in tmp_path.iterdir()] == ["folder.nc"]


@needs_unix
def test_pipes_are_read_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """A pipe that nobody writes to was waited for without end, and one without end read without end."""
    monkeypatch.setattr(files, "PATIENCE", 0.2)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for read in (read_sonic, read_nic, fc.load_scenario):
        with pytest.raises(InputError, match=r"fifo: cannot be read \(a pipe that did not end within 0.2 s\)"):
            read(fifo)
    for load in (fc.load, Trace.load):
        with pytest.raises(InputError, match="fifo: is a pipe"):
            load(fifo)
    for arguments in (["audit", "--sonic"], ["simulate", "dcqcn", "--from"], ["simulate", "dcqcn", "--topology"]):
        assert run([*arguments, str(fifo)]) == 2
        assert "fifo" in capsys.readouterr().err
    hold = os.open(fifo, os.O_RDWR)  # as a writer that gives some and goes on
    os.write(hold, b"rpg_ai_rate = 5\n")
    with pytest.raises(InputError, match="did not end"):
        read_nic(fifo)
    os.close(hold)
    monkeypatch.setattr(files, "PATIENCE", 10.0)
    writer = threading.Thread(target=lambda: fifo.write_text("rpg_ai_rate = 5\n"))
    writer.start()
    assert read_nic(fifo).given["rpg_ai_rate"] == 5
    writer.join(10)


def test_files_without_end_are_read_to_a_bound(tmp_path: Path) -> None:
    assert read_bounded("/dev/zero", 100) == bytes(101)
    with pytest.raises(OSError, match="does not end"):
        read_bounded("/dev/zero")
    long = tmp_path / "long.toml"
    with long.open("wb") as file:
        file.truncate(1 << 26)  # takes no room on the disk
    with pytest.raises(InputError, match=r"long\.toml: is larger than"):
        fc.load_scenario(long)
