"""The explorer in a browser: moves, two visitors, bad values, and nothing that leaves the machine."""

from __future__ import annotations

import base64
import hashlib
import http.client
import os
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.explorer.settings import Setting
from tests.explorer.browser import ROOT, Page, browsing, load, memory_of, require_browser, serving

pytestmark = pytest.mark.slow  # a browser and a server: a minute and a half of a processor

MOVES = 500


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, int]]:
    require_browser()
    with serving() as found:
        yield found


@pytest.fixture(scope="module")
def address(served: tuple[str, int]) -> str:
    return served[0]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    require_browser()
    with browsing() as found:
        yield found


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Page]:
    found = Page(browser, address)
    yield found
    found.page.close()


def test_moves_are_answered_with_the_librarys_numbers(page: Page) -> None:
    page.type("kmin", "20KB")
    setting = Setting().moved("kmin", "20KB")
    trace = fc.simulate(setting.scenario(), until=setting.until, estimate_error=False)
    assert page.value("fluid-queue_mean") == trace.summary["queue_bytes"]["mean"]
    assert page.value("fluid-utilisation") == trace.summary["utilisation"]
    before = page.value("fluid-queue_mean")
    page.slide("kmin")
    assert page.typed("kmin") != "20KB"
    assert page.value("fluid-queue_mean") != before
    assert page.value("hybrid-queue_mean") > 0
    assert page.error == ""
    assert page.problems == []


def test_bad_values_are_refused_and_the_page_lives_on(page: Page) -> None:
    before = page.value("fluid-queue_mean")
    for name, text, said in (
        ("kmin", "five", "kmin: cannot read 'five'"),
        ("kmax", "1KB", "exceeds kmax"),
        ("rate", "40", "no unit"),
        ("until", "10s", "too many to wait for"),
    ):
        page.type(name, text)
        assert said in page.error
        assert page.value("fluid-queue_mean") == before
    page.type("until", "30ms")
    page.type("flows", "4")
    assert page.error == ""
    assert page.typed("kmax") == "200KB"
    assert page.value("fluid-queue_mean") != before


def test_two_pages_at_once_have_settings_of_their_own(browser: Any, address: str, page: Page) -> None:
    other = Page(browser, address)
    page.type("flows", "4")
    other.type("flows", "16")
    assert (page.typed("flows"), other.typed("flows")) == ("4", "16")
    few, many = page.value("fluid-queue_mean"), other.value("fluid-queue_mean")
    page.slide("g")
    assert few != many == other.value("fluid-queue_mean")
    other.page.close()


def test_an_address_shares_the_setting_and_what_is_beside_it(browser: Any, address: str, page: Page) -> None:
    page.type("g", "1/64")
    page.page.locator(".keep button").click()
    page.page.locator("#kept-fluid-queue_mean").wait_for()
    kept = page.value("fluid-queue_mean")
    page.type("flows", "16")
    assert page.value("kept-fluid-queue_mean") == kept
    page.page.wait_for_url("**flows=16**kept=**")  # as the hand rests
    query = parse_qs(urlsplit(page.page.url).query)
    assert query["g"] == ["1/64"]
    assert query["flows"] == ["16"]
    again = Page(browser, page.page.url)
    again.page.locator("#kept-fluid-queue_mean").wait_for()
    assert again.value("fluid-queue_mean") == page.value("fluid-queue_mean")
    assert again.value("kept-fluid-queue_mean") == kept
    again.after(lambda: again.page.locator(".swap button").click())
    assert again.typed("flows") == "8"
    again.page.close()


def test_a_bad_address_shows_the_default_and_says_why(browser: Any, address: str) -> None:
    bad = Page(browser, f"{address}?kmin=5KB&kmax=1KB")
    assert "exceeds kmax" in bad.error
    assert bad.typed("kmax") == "200KB"
    bad.page.close()


def test_what_an_answer_refuses_leaves_no_trace(page: Page) -> None:
    """Neither in the controls nor in the address, which a reload shows."""
    page.type("kmin", "7KB")
    page.page.wait_for_url("**kmin=7KB**")
    page.type("until", "10s")
    assert "too many to wait for" in page.error
    assert page.typed("until") == "40ms"
    page.type("kmin", "9KB")
    assert page.error == ""
    page.page.wait_for_url("**kmin=9KB**")
    assert "until" not in page.page.url


def test_another_scheme_has_its_own_values(page: Page) -> None:
    page.pick("scheme", "hpcc")
    assert page.typed("w_ai") == "80B"
    assert page.page.locator(".knob-g").count() == 0
    page.whole()
    assert "in jumps" in page.page.locator("#verdict").inner_text()
    page.slide("w_ai")
    assert page.error == ""
    page.pick("topology", "parking-lot")
    assert page.typed("links") == "3"


def test_a_switchs_and_a_nics_configuration(page: Page) -> None:
    page.page.locator(".devices .bk-card-header, .devices .card-header").first.click()
    sample = ROOT / "examples" / "leaf-100g"
    page.page.locator(".switch-file input").set_input_files(sample / "config_db.json")
    page.page.locator(".nic-file input").set_input_files(sample / "nic.txt")
    page.page.locator("#chosen", has_text="config_db.json, nic.txt").wait_for()
    page.after(lambda: page.page.locator(".load button").click())
    page.page.locator("#findings").wait_for(timeout=60_000)
    port = fc.operators.read_sonic(sample / "config_db.json")
    assert page.typed("rate") == "100Gbps"
    assert port.red is not None
    page.page.wait_for_url("**preset=vendor**", timeout=60_000)
    query = parse_qs(urlsplit(page.page.url).query)
    assert query["preset"] == ["vendor"]
    assert Setting.of_query(urlsplit(page.page.url).query).value("kmin") == port.red.kmin
    found = fc.audit(sample / "config_db.json", sample / "nic.txt", flows=8, packets=0).findings
    assert all(finding.what in page.page.locator("#findings").inner_text() for finding in found)


def test_packets_run_on_a_button(page: Page) -> None:
    page.type("until", "2ms")
    page.page.locator("button", has_text="Run packets").click()
    page.page.locator("#packets-queue_mean").wait_for(timeout=120_000)
    assert page.value("packets-queue_max") > 0
    page.slide("g")
    assert page.page.locator("#packets-queue_mean").count() == 0


def test_the_python_is_shown(page: Page) -> None:
    page.type("kmin", "6KB")
    page.page.locator(".code .bk-card-header, .code .card-header").first.click()
    page.page.locator("#python").wait_for()
    assert 'kmin="6KB"' in page.page.locator("#python").inner_text()


# -- this machine alone ------------------------------------------------------------------------------------------------


def test_no_request_leaves_the_machine(page: Page, address: str) -> None:
    page.slide("kmin")
    page.pick("scheme", "swift")
    outside = [url for url in page.requests if not url.startswith((address, "data:", "blob:"))]
    assert page.requests
    assert outside == []


def test_a_slow_browser_loads_nothing_from_elsewhere(browser: Any, address: str) -> None:
    """The server drops its session after 2 s without a visitor, and the next one names Panel's own network."""
    slow = Page(browser, "about:blank", wait=False)

    def later(route: Any) -> None:
        slow.page.wait_for_timeout(6000)
        route.continue_()

    slow.page.route("**/bokeh.min.js*", later)
    slow.page.goto(address)
    slow.page.locator("#status[data-ms]").wait_for(timeout=60_000)
    assert [url for url in slow.requests if not url.startswith((address, "about:", "data:", "blob:"))] == []
    slow.page.close()


def test_the_browser_may_load_nothing_from_other_hosts(page: Page, address: str) -> None:
    """Whatever a page names: a style sheet of another host is not even asked for."""
    page.page.evaluate(
        """() => new Promise(done => {
          const link = Object.assign(document.createElement("link"), {rel: "stylesheet", href: "http://example.com/a.css"})
          link.onerror = link.onload = () => done()
          document.head.append(link)
        })"""
    )
    assert any("Content Security Policy" in said for said in page.problems)
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=10)
    connection.request("GET", "/")
    assert "default-src 'self'" in (connection.getresponse().getheader("Content-Security-Policy") or "")


def test_back_shows_the_setting_before(page: Page) -> None:
    for kmin in ("20KB", "30KB"):
        page.type("kmin", kmin)
        page.page.wait_for_url(f"**kmin={kmin}**")
    page.page.go_back()
    page.page.wait_for_function("() => document.readyState === 'complete'")
    page.page.locator("#status[data-ms]").wait_for(timeout=60_000)
    assert page.typed("kmin") == "20KB"


def status_of(address: str, path: str = "/", **headers: str) -> int:
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    connection.request("GET", path, headers=headers)
    return connection.getresponse().status


def test_other_hosts_and_origins_are_refused(address: str) -> None:
    port = urlsplit(address).port
    assert status_of(address) == 200
    assert status_of(address, Host=f"localhost:{port}") == 200
    for host in ("example.com", f"example.com:{port}", "127.0.0.1:1", f"127.0.0.1.example.com:{port}"):
        assert status_of(address, Host=host) == 403
    assert status_of(address, Origin="http://example.com") == 403
    assert status_of(address, "/static/js/bokeh.min.js", Host="example.com") == 403


def test_a_value_of_thousands_of_digits_is_refused(address: str) -> None:
    """Panel makes numbers of what an address has, and Python makes none of so many digits."""
    assert status_of(address, "/?kmin=" + "9" * 4096) == 200
    assert status_of(address, "/?kmin=" + "9" * 5000) == 414


def test_websockets_of_other_origins_are_refused(address: str) -> None:
    port = urlsplit(address).port
    key = base64.b64encode(os.urandom(16)).decode()
    assert hashlib.sha1(key.encode()).hexdigest()
    headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}
    for origin in ("http://example.com", f"http://127.0.0.1.example.com:{port}", "null"):
        assert status_of(address, "/ws", Origin=origin, **headers) == 403
    for token in ("x", "e30", "eyJhIjoxfQ"):  # no token of a page of ours
        forged = {"Sec-WebSocket-Protocol": f"bokeh, {token}"}
        assert status_of(address, "/ws", Origin=f"http://127.0.0.1:{port}", **headers, **forged) == 403


def test_it_listens_on_loopback_alone(address: str) -> None:
    port = urlsplit(address).port or 0
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    for other in others:
        with socket.socket() as tried:
            tried.settimeout(2)
            if not str(other).startswith("127."):
                assert tried.connect_ex((str(other), port)) != 0


# -- endurance ---------------------------------------------------------------------------------------------------------


def test_it_survives_500_random_moves(browser: Any, served: tuple[str, int], record_property: Any) -> None:
    """No error and less than 200 MB more, by sliders and texts, good and bad.

    How soon answers are painted is reported; 200 ms for half of them is the aim. It is no bound here: it says more of
    the machine, and of what else runs on it, than of the code.
    """
    address, process = served
    page, draw = Page(browser, address), np.random.default_rng(21)
    names = ["kmin", "kmax", "pmax", "g", "rate_ai", "flows", "delay", "feedback_delay", "timer", "alpha_timer", "late"]
    keys = ["ArrowRight", "ArrowLeft", "PageUp", "PageDown"]
    for name in names:  # warm
        page.slide(name)
        page.slide(name, "ArrowLeft")
    page.page.wait_for_timeout(3000)
    before, took, refused = memory_of(process), [], 0
    for move in range(MOVES):
        if move % 100 == 99:
            print(f"{move + 1} moves, median {1e3 * np.median(took):.0f} ms, {memory_of(process) - before:.0f} MB more")
        name = str(draw.choice(names))
        if move % 25 == 24:
            page.type(name, str(draw.choice(["x", "-1", "1e99", "", "1/0"])))
        else:
            took.append(page.slide(name, str(draw.choice(keys))))
        refused += page.error != ""
    page.page.wait_for_timeout(1000)
    grown, median = memory_of(process) - before, float(np.median(took))
    figures = f"median {1e3 * median:.0f} ms, 95 % within {1e3 * np.percentile(took, 95):.0f} ms, {refused} refused, "
    figures += f"{grown:.0f} MB more, load {load():.1f} per core"
    record_property("figures", figures)
    print(figures)
    assert page.problems == []
    assert grown < 200
    assert len(took) > 450
