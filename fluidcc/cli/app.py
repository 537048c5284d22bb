"""Entry point: commands, exit codes, and one line for whatever goes wrong with the input."""

from __future__ import annotations

import os
import sys

import click
import typer

from fluidcc.cli import audit, equilibrium, reproduce, show, simulate, sweep
from fluidcc.errors import InputError

app = typer.Typer(
    name="fluidcc",
    help="Fluid models of datacenter congestion control: simulate, find fixed points, sweep, audit a switch.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
for command in (simulate, equilibrium, sweep, audit, show, reproduce):
    app.command(name=command.__name__.rpartition(".")[2])(command.command)


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit.

    Exit status 0: done, whatever the answer; 1: `reproduce` found a figure that does not agree; 2: bad usage
    or input, with one line on standard error.
    """
    sys.exit(_status(sys.argv[1:] if arguments is None else arguments))


def _status(arguments: list[str]) -> int:
    try:
        result = typer.main.get_command(app).main(arguments, prog_name="fluidcc", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except InputError as error:
        return _complain(str(error))
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx is not None else "fluidcc"
        return _complain(f"{error.format_message()} (see {command} --help)")
    except click.ClickException as error:
        return _complain(error.format_message())
    except MemoryError:
        return _complain("out of memory; give fewer flows, points or samples")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, click.Abort):
        sys.stderr.write("fluidcc: interrupted\n")
        return 130


def _complain(message: str) -> int:
    line = " ".join(message.split())
    sys.stderr.write(f"fluidcc: {line}\n")
    return 2
