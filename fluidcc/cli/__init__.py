"""The command line. Heavy packages are imported by the commands that need them, never here."""

from __future__ import annotations

import sys

from fluidcc.cli import process

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its status; what it is made of is imported once Ctrl-C is watched for."""
    if not process.prepare_streams():
        sys.exit(2)
    process.watch_interrupts()
    from fluidcc.cli.app import run

    sys.exit(run(sys.argv[1:] if arguments is None else arguments))
