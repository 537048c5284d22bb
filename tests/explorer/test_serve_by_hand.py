"""Requests that the explorer's server refuses, judged without a browser."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fluidcc.explorer import serve

PORT = 5006


def refused(protect: Any, request: Any) -> bool:
    """Judge a request by the one rule that is put before Bokeh's own."""
    rules: list[Any] = []
    router = SimpleNamespace(rules=rules, process_rule=lambda rule: rule)
    protect(SimpleNamespace(_tornado=SimpleNamespace(default_router=router)))
    (rule,) = rules
    return rule.matcher.match(request) is not None


@pytest.mark.parametrize(
    ("host", "origin", "no"),
    [
        (f"127.0.0.1:{PORT}", None, False),
        (f"localhost:{PORT}", f"http://localhost:{PORT}", False),
        (f"localhost:{PORT}", f"http://127.0.0.1:{PORT}", False),
        ("127.0.0.1", None, True),
        ("127.0.0.1:1", None, True),
        ("example.com", None, True),
        (f"example.com:{PORT}", None, True),
        (f"127.0.0.1.example.com:{PORT}", None, True),
        (f"localhost:{PORT}", "http://example.com", True),
        (f"localhost:{PORT}", f"https://localhost:{PORT}", True),
        (f"localhost:{PORT}", "null", True),
    ],
)
def test_other_hosts_and_origins(host: str, origin: str | None, no: bool) -> None:
    """See a page elsewhere whose name leads here, and one that calls from another origin."""
    headers = {} if origin is None else {"Origin": origin}
    assert refused(lambda made: serve._refuse_others(made, PORT), SimpleNamespace(host=host, headers=headers)) == no
