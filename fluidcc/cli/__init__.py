"""The command line. Heavy packages are imported by the commands that need them, never here."""

from fluidcc.cli.app import main

__all__ = ["main"]
