"""How the command ends: 130 when interrupted, 2 out of memory, 141 where nobody reads; a line at most, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fluidcc.cli.app import app, run

MAIN = "from fluidcc.cli import main; main()"
# A signal while the integration is under way: at its first report of progress.
INTERRUPTED = """
import signal
from fluidcc import progress
progress.BETWEEN_LINES = 1e9
progress.Bar.__call__ = lambda self, share: signal.raise_signal(signal.SIGINT)
"""
# Memory for little more than what is loaded already.
SHORT_OF_MEMORY = """
import resource, jax.numpy, fluidcc
fluidcc.sweep, fluidcc.simulate
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 200_000_000,) * 2)
"""
COMMANDS = [each.name for each in app.registered_commands]


def ended(code: str, *arguments: str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE) -> tuple[int, str]:
    """Exit status and standard error of the command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], stdout=stdout, stderr=stderr, text=True, timeout=300
    )
    return done.returncode, done.stderr or ""


def one_line(text: str) -> bool:
    return text.startswith("fluidcc: ") and text.count("\n") == 1 and "Traceback" not in text


@pytest.fixture
def unread() -> Iterator[int]:
    """The end to write to of a pipe that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


def test_an_interrupted_simulation_says_so() -> None:
    # A second of simulated time is some 10 s of computing: the signal comes in the middle of it.
    status, err = ended(INTERRUPTED + MAIN, "simulate", "dcqcn", "--until", "1s", "--json")
    assert (status, err) == (130, "fluidcc: interrupted\n")


IN_AN_IMPORT = """
import signal, sys
class Finder:
    def find_spec(self, name, *_):
        if name == {name!r}:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""
IN_A_FINALIZER = """
import signal
from fluidcc import progress
progress.BETWEEN_LINES = 1e9
class Dropped:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
progress.Bar.__call__ = lambda self, share: Dropped() and None
"""
AS_ANOTHER_ERROR = """
import signal
from fluidcc import progress
progress.BETWEEN_LINES = 1e9
def call(self, share):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise RuntimeError("INTERNAL: a callback failed") from None
progress.Bar.__call__ = call
"""


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(IN_AN_IMPORT.format(name="typer"), id="in the command's own imports"),
        pytest.param(IN_AN_IMPORT.format(name="jaxlib"), id="in JAX's"),
        pytest.param(IN_A_FINALIZER, id="in a finalizer", marks=pytest.mark.slow),
        pytest.param(AS_ANOTHER_ERROR, id="as another error"),
    ],
)
def test_it_says_so_wherever_the_signal_comes(code: str) -> None:
    """Raised into an import it was a traceback, an ImportError or a crash; in a finalizer it was dropped."""
    # Long, because what is done before the watch ends it, a second later, may be done.
    status, err = ended(code + MAIN, "simulate", "dcqcn", "--until", "20s", "--json")
    assert (status, err) == (130, "fluidcc: interrupted\n")


FULL = pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full")


@pytest.mark.parametrize(
    ("redirected", "status", "lines"),
    [
        pytest.param("show hpcc --json >/dev/full", 2, 1, marks=FULL),
        pytest.param("show dcqcn >/dev/full", 2, 1, marks=[FULL, pytest.mark.slow]),
        pytest.param("--version >/dev/full", 2, 1, marks=FULL),
        pytest.param("walk 2>/dev/full", 2, 0, marks=FULL),
        ("--version >&-", 2, 1),
        ("--version 2>&- >/dev/null", 0, 0),
        ("walk 2>&-", 2, 0),
        ("--version <&- >&- 2>&-", 2, 0),
        ("show hpcc >/dev/null", 0, 0),  # has an ellipsis in its table
    ],
)
def test_streams_that_are_full_or_closed(redirected: str, status: int, lines: int) -> None:
    script = f'LC_ALL=C PYTHONUTF8=0 "$0" -c "$1" {redirected}'
    done = subprocess.run(["bash", "-c", script, sys.executable, MAIN], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", lines)
    assert not lines or one_line(done.stderr)


@pytest.mark.parametrize(
    ("raised", "status", "says"), [(KeyboardInterrupt, 130, "interrupted"), (MemoryError, 2, "out of memory")]
)
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_ends_in_a_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    raised: type[BaseException],
    status: int,
    says: str,
) -> None:
    def command() -> None:
        raise raised

    (registered,) = (each for each in app.registered_commands if each.name == name)
    monkeypatch.setattr(registered, "callback", command)
    assert run([name]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert one_line(err)
    assert says in err


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads its own size from Linux' /proc")
def test_arrays_that_do_not_fit_are_out_of_memory() -> None:
    # 50 million values are 400 MB, twice what is left.
    status, err = ended(SHORT_OF_MEMORY + MAIN, "sweep", "dcqcn", "--over", "g=1/1024:1/16:50000000", "--json")
    assert status == 2
    assert one_line(err)
    assert "out of memory" in err


@pytest.mark.parametrize(
    "arguments",
    [
        # Written when all is done.
        pytest.param(
            ["simulate", "dcqcn", "--until", "1ms", "--json"], marks=pytest.mark.slow, id="simulate dcqcn --json"
        ),
        ["show", "hpcc", "--json"],  # more than a buffer: written while the command runs
        ["show", "dcqcn"],  # a table, by rich
        ["--help"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_where_nobody_reads_it_ends_quietly(unread: int, arguments: list[str]) -> None:
    assert ended(MAIN, *arguments, stdout=unread) == (141, "")


def test_where_nobody_reads_complaints_it_ends_quietly(unread: int) -> None:
    assert ended(MAIN, "walk", stderr=unread)[0] == 141


def test_a_shell_s_pipe() -> None:
    """As it is typed; `true` has ended by the time that anything is written."""
    script = 'set -o pipefail; "$0" -c "$1" simulate --help | true'
    done = subprocess.run(["bash", "-c", script, sys.executable, MAIN], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (141, "", "")


@pytest.mark.parametrize(
    ("before", "begins"),
    [
        ("from fluidcc.cli import process; process.prepare_streams()", "fluidcc: the cache: "),
        ("", "<fluidcc>:1: UserWarning: "),
    ],
    ids=["the command", "the library"],
)
def test_a_warning_is_a_line(before: str, begins: str, tmp_path: Path) -> None:
    """Where the script's name is that of the package, as the installed command's, Python knows its lines."""
    script = tmp_path / "fluidcc"
    script.write_text(
        f"#!/bin/python\n{before}\nfrom fluidcc.compiling import folder\nfolder.folder('jax', '0' * 16)\n"
    )
    settings = {"PYTHONPATH": str(Path(__file__).parents[2]), "FLUIDCC_CACHE_DIR": "/dev/null/none"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=os.environ | settings)
    assert done.stderr.startswith(begins)
    assert done.stderr.count("\n") == 1
    assert "cannot be used" in done.stderr
