"""``fluidcc explore``."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from fluidcc.errors import InputError

EXAMPLES = (
    "fluidcc explore",
    "fluidcc explore --port 5006 --no-open",
)
_MOST = 65535


def command(
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; any free one by default.", show_default=False)] = 0,
    opened: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """Move settings in the browser and watch the queue.

    Shows queue, rates, roots and a stability chart. The page is served to this machine only.
    """
    if not 0 <= port <= _MOST:
        raise InputError(f"--port: {port} is none; write one from 1 to {_MOST}, or leave it out")
    from fluidcc.explorer.serve import serve

    before = signal.getsignal(signal.SIGINT)

    def tell(address: str) -> None:
        signal.signal(signal.SIGINT, before)  # Panel's would end the loop as if nothing had happened
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()
        if sys.stderr.isatty():
            sys.stderr.write("Ctrl-C ends it; nothing is sent to other machines\n")

    serve(port, tell, opened=opened)
