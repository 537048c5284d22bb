"""Entry point: commands, exit codes, and one line for whatever goes wrong with the input."""

from __future__ import annotations

import contextlib
import copy
import os
import sys
from typing import Annotated, Any

import typer
from typer.completion import shell_complete

from fluidcc.cli import (
    audit,
    collective,
    crosscheck,
    equilibrium,
    explore,
    fabric,
    fit,
    process,
    reproduce,
    show,
    simulate,
    stability,
    sweep,
    tune,
    verify,
)
from fluidcc.errors import InputError
from fluidcc.files import rescuing
from fluidcc.version import VERSION

# Typer brings its own copy of click, or uses the installed one, depending on its version; its public
# exceptions lead to the right classes in both.
UsageError: Any
ClickException: Any
UsageError, ClickException = typer.BadParameter.__mro__[1:3]


def _epilog(*examples: str) -> str:
    """Examples as printed below a command's options; the first character keeps click from filling lines."""
    lines = [line for example in examples for line in example.splitlines()]
    return "\n".join(["\b", "Examples:" if examples[1:] else "Example:", *(f"  {line}" for line in lines)])


app = typer.Typer(
    name="fluidcc",
    help="Fluid models of datacenter congestion control: simulate, find fixed points, sweep, audit a switch.",
    epilog=_epilog("fluidcc simulate dcqcn --flows 2 --plot two.png", "fluidcc simulate --help"),
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
COMMANDS = (
    simulate, crosscheck, equilibrium, stability, sweep, tune, fit, fabric, collective, audit, show, verify, reproduce,
    explore,
)  # fmt: skip
SERVES = "explore"  # until it is interrupted: it is not at work
COMPLETING = "_FLUIDCC_COMPLETE"  # set by the shell's script when Tab is pressed


for command in COMMANDS:
    name = command.__name__.rpartition(".")[2]
    app.command(name=name, epilog=_epilog(*command.EXAMPLES))(command.command)


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"fluidcc {VERSION}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


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
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:
        process.drop_stream(sys.stdout)
        return 141
    except OSError as error:  # a full disk, a folder that vanished; or standard error, where nothing can be said
        process.drop_stream(sys.stdout)
        where = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else "the answer"
        with contextlib.suppress(OSError):
            _complain(f"{where[:200]}: {error.strerror or error}; give a place that has room and can be written to")
        return 2
    except Exception:
        if process.interrupted():  # compiled code made another error of it
            return _interrupted()
        raise


def _interrupted() -> int:
    with contextlib.suppress(OSError):
        process.say_interrupted()
    return process.INTERRUPTED


def _built(arguments: list[str]) -> Any:
    """Build the options of the command that is asked for; of all, a tenth of a refusal's time, where none is named."""
    built = copy.copy(app)
    built.registered_commands = [each for each in app.registered_commands if each.name in arguments[:1]]
    return typer.main.get_command(built if built.registered_commands else app)


def _run(arguments: list[str]) -> int:
    """Run a command, and say what went wrong in one line."""
    command, moved = _built(arguments), []

    def tell(line: str) -> None:
        moved.append(line)
        _complain(line)

    try:
        if asked := os.environ.get(COMPLETING):
            return shell_complete(command, {}, "fluidcc", COMPLETING, asked)
        # Not `command.main`, which makes statuses of its own of an interruption and of a closed pipe.
        context = command.make_context("fluidcc", arguments or ["--help"])
        with (
            rescuing(tell),
            context,
            contextlib.nullcontext() if SERVES in arguments else process.working(arguments[0]),
        ):
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
    except typer.Abort:
        raise KeyboardInterrupt from None


def _complain(message: str) -> int:
    line = " ".join(message.split())
    sys.stderr.write(f"fluidcc: {line}\n")
    return 2
