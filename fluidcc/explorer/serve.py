"""The explorer served: by one process for this machine alone, or to a notebook."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fluidcc.compiling.threads import one_blas_thread
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario

if TYPE_CHECKING:
    from bokeh.server.server import Server

HOST = "127.0.0.1"
_SWITCH = 5e-4  # s
_NAMES = (HOST, "localhost")  # by which a browser on this machine may call it


def require_panel() -> None:
    """Refuse to go on without Panel.

    Raises
    ------
    InputError
        With what to install.
    """
    try:
        import bokeh  # noqa: F401
        import panel  # noqa: F401
    except ImportError:
        raise InputError("explore: needs panel and bokeh; install them with: pip install 'fluidcc[explore]'") from None


def server(port: int = 0) -> Server:
    """Return a server that does not run yet.

    Parameters
    ----------
    port : int
        0: one that is free.

    Returns
    -------
    bokeh.server.server.Server
        ``start()`` begins to serve, its ``io_loop`` runs.

    Raises
    ------
    InputError
        If Panel is not installed, or the port is taken.
    """
    require_panel()
    os.environ["BOKEH_RESOURCES"] = "server"  # scripts and styles from here, and none from other hosts
    import panel as pn

    from fluidcc.explorer.app import load, page

    load()
    for _ in range(20 if port == 0 else 1):
        number = port or _free_port()
        try:
            made = pn.io.server.get_server(
                page, port=number, address=HOST, websocket_origin=[f"{name}:{number}" for name in _NAMES],
                title="fluidcc explorer", show=False, start=False, check_unused_sessions_milliseconds=2000,
                unused_session_lifetime_milliseconds=2000,
            )  # fmt: skip
        except OSError:
            continue
        _refuse_long(made)
        _refuse_forged(made)
        _refuse_others(made, number)
        _stay_here(made, number)
        return made
    raise InputError(f"--port: {port} is taken, or needs rights that you lack; write another, or leave it out")


def _free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind((HOST, 0))
        return found.getsockname()[1]


def _refuse_long(made: Server) -> None:
    """Answer 414 where a value in an address is longer than any: Panel fails on a number of some thousand digits."""
    from urllib.parse import parse_qsl

    from tornado.routing import Matcher

    from fluidcc.explorer.settings import LONGEST

    class Long(Matcher):
        def match(self, request: Any) -> dict[str, Any] | None:
            return {} if any(len(value) > LONGEST for _, value in parse_qsl(request.query)) else None

    _refuse(made, Long(), 414, f"address: has a value of more than {LONGEST} characters; give a shorter one\n")


def _refuse(made: Server, which: Any, code: int, words: str) -> None:
    """Answer some requests with a word, before Bokeh's own handlers see them."""
    from tornado.routing import Rule
    from tornado.web import RequestHandler

    class Refuse(RequestHandler):
        def prepare(self) -> None:
            self.set_status(code)
            self.finish(words)

    router: Any = made._tornado.default_router  # the one place that sees every request
    router.rules.insert(0, router.process_rule(Rule(which, Refuse)))


def _refuse_others(made: Server, port: int) -> None:
    """Answer 403 where a request names another host or comes from a page of another origin.

    A page elsewhere can have its own name lead here (DNS rebinding); Bokeh checks origins of websockets alone.
    """
    from tornado.routing import Matcher

    hosts = {f"{name}:{port}" for name in _NAMES}
    origins = {f"http://{host}" for host in hosts}

    class Foreign(Matcher):
        def match(self, request: Any) -> dict[str, Any] | None:
            origin = request.headers.get("Origin")
            return None if request.host in hosts and origin in (None, *origins) else {}

    _refuse(made, Foreign(), 403, "this is for pages of this machine alone\n")


def _refuse_forged(made: Server) -> None:
    """Answer 403 where a websocket has no token of this server's pages: Bokeh leaves a traceback in the log."""
    from tornado.routing import Matcher

    class Forged(Matcher):
        def match(self, request: Any) -> dict[str, Any] | None:
            if not request.path.endswith("/ws"):
                return None
            protocols = request.headers.get("Sec-WebSocket-Protocol", "").split(",")
            fine = len(protocols) == 2 and protocols[0].strip() == "bokeh" and _is_token(protocols[1].strip())
            return None if fine else {}

    _refuse(made, Forged(), 403, "the page has expired, or is none of this server's; load it again\n")


def _is_token(text: str) -> bool:
    """Check whether a text is a token of Bokeh's that has not expired."""
    from bokeh.util.token import get_session_id, get_token_payload

    try:  # it may be anything at all
        return isinstance(get_session_id(text), str) and time.time() < get_token_payload(text)["session_expiry"]
    except Exception:
        return False


def _stay_here(made: Server, port: int) -> None:
    """Have browsers load nothing from other hosts, whatever Panel writes into a page: it names its CDN now and then."""
    from tornado.web import OutputTransform

    sockets = " ".join(f"ws://{name}:{port}" for name in _NAMES)
    policy = f"default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' blob: {sockets}"

    class Policy(OutputTransform):
        def transform_first_chunk(
            self, status_code: int, headers: Any, chunk: bytes, finishing: bool
        ) -> tuple[int, Any, bytes]:
            headers["Content-Security-Policy"] = policy
            return status_code, headers, chunk

    made._tornado.add_transform(Policy)


def _is_no_visitor_leaving(record: logging.LogRecord) -> bool:
    """Check that a log record is not of an answer that found its page closed, which is normal."""
    from tornado.websocket import WebSocketClosedError

    return not (record.exc_info and isinstance(record.exc_info[1], WebSocketClosedError))


def serve(port: int, told: Callable[[str], None], *, opened: bool = False) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    port : int
    told : callable
        Given the address once it answers.
    opened : bool
        Whether to open it in the system's browser.

    Raises
    ------
    InputError
        As of `server`.
    """
    made = server(port)
    made.start()
    # A thread that works keeps the interpreter for that long, each time the loop wants it: six times for a move.
    sys.setswitchinterval(_SWITCH)
    logging.getLogger("asyncio").addFilter(_is_no_visitor_leaving)
    address = f"http://{HOST}:{made.port}/"
    told(address)
    if opened:
        import webbrowser

        made.io_loop.add_callback(webbrowser.open, address)
    # For good: OpenBLAS may hang if its number of threads changes while another thread is at its algebra.
    with one_blas_thread():
        try:
            made.io_loop.start()
        finally:
            made.stop()


def explore(scenario: Scenario) -> Any:
    """Widgets around a scenario; see `Scenario.explore`.

    Raises
    ------
    InputError
        As of it.
    """
    require_panel()
    from fluidcc.explorer.app import Explorer, load
    from fluidcc.explorer.settings import Setting

    setting = Setting.of(scenario)
    load()
    return Explorer(setting, threaded=False).view
