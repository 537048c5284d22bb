"""Entry point: commands, exit codes, and one line for whatever goes wrong with the input."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Annotated, Any

import typer

import fluidcc
from fluidcc.cli import audit, crosscheck, equilibrium, interrupt, reproduce, show, simulate, stability, sweep, verify
from fluidcc.errors import InputError
from fluidcc.files import rescuing

# Typer brings its own copy of click, or uses the installed one, depending on its version; its public
# exceptions lead to the right classes in both.
UsageError: Any
ClickException: Any
UsageError, ClickException = typer.BadParameter.__mro__[1:3]

app = typer.Typer(
    name="fluidcc",
    help="Fluid models of datacenter congestion control: simulate, find fixed points, sweep, audit a switch.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
for command in (simulate, crosscheck, equilibrium, stability, sweep, audit, show, verify, reproduce):
    app.command(name=command.__name__.rpartition(".")[2])(command.command)


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"fluidcc {fluidcc.__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its status."""
    if not _with_streams():
        sys.exit(2)
    interrupt.watch()
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run a command.

    Returns
    -------
    int
        0: done, whatever the answer; 1: `crosscheck` or `reproduce` found something that does not agree; 2: bad
        usage or input, out of memory, or a result that could not be written where it should be, with one line on
        standard error; 130: interrupted, with one line;
        141: nobody reads standard output or error any more.
    """
    try:
        try:
            return _run(arguments)
        except SystemExit as error:  # rich ends the program where it finds a pipe closed
            if isinstance(error.__context__, BrokenPipeError):
                raise error.__context__ from None
            raise
    except BrokenPipeError:
        _drop(sys.stdout)
        return 141
    except OSError as error:  # a full disk, a folder that vanished; or standard error, where nothing can be said
        _drop(sys.stdout)
        where = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else "the answer"
        with contextlib.suppress(OSError):
            _complain(f"{where[:200]}: {error.strerror or error}; give a place that has room and can be written to")
        return 2


def _run(arguments: list[str]) -> int:
    """Run a command, and say what went wrong in one line."""
    command, moved = typer.main.get_command(app), []

    def tell(line: str) -> None:
        moved.append(line)
        _complain(line)

    try:
        # Not `command.main`, which makes statuses of its own of an interruption and of a closed pipe.
        with rescuing(tell), command.make_context("fluidcc", arguments or ["--help"]) as context:
            result = command.invoke(context)
        sys.stdout.flush()
        return 2 if moved else result if isinstance(result, int) else 0
    except typer.Exit as end:
        sys.stdout.flush()
        return end.exit_code
    except InputError as error:
        return _complain(str(error))
    except UsageError as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "fluidcc"
        return _complain(f"{error.format_message()} (see {path} --help)")
    except ClickException as error:
        return _complain(error.format_message())
    except MemoryError:
        return _complain("out of memory; give fewer flows, points or samples")
    except (KeyboardInterrupt, typer.Abort):
        interrupt.say()
        return interrupt.STATUS


def _with_streams() -> bool:
    """Whether there is an output to answer to; without standard error nothing is said.

    Descriptors that are closed are opened on nothing, so that no file gets their numbers, and with them what C code
    prints. Characters that the locale's encoding lacks are written as escapes.
    """
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as the process
    if sys.stdout is None:
        with contextlib.suppress(OSError):
            _complain("standard output is closed; give it a place, such as > answer.txt")
        return False
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    return True


def _drop(stream: Any) -> None:
    """Send what is left in a stream's buffer nowhere, when the interpreter flushes it at exit."""
    with contextlib.suppress(OSError, ValueError):  # ValueError: it has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _complain(message: str) -> int:
    line = " ".join(message.split())
    sys.stderr.write(f"fluidcc: {line}\n")
    return 2
