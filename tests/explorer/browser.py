"""A server of the explorer in a process of its own, and Debian's Chromium driven by Playwright."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = 60.0  # s for the first answer, which compiles
SIZE = {"width": 1280, "height": 800}
# Bokeh draws in the frame after the one in which its data came; looking all the time would take the browser's own.
_WATCH = """([what, patience]) => {
  const search = root => root.querySelector("#status") ??
    Array.from(root.querySelectorAll("*")).reduce((found, e) => found ?? (e.shadowRoot && search(e.shadowRoot)), null)
  const place = search(document).getRootNode()
  const number = () => place.querySelector("#status")?.dataset[what]
  const before = what === "serial" ? number() : undefined  // "whole" is there or is not
  window.painted = new Promise(done => {
    const look = () => {
      if (number() === undefined || number() === before) return
      watch.disconnect()
      requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(true))))
    }
    const watch = new MutationObserver(look)
    watch.observe(place, {subtree: true, childList: true, attributes: true})
    look()
    setTimeout(() => done(false), patience)
  })
}"""


def require_browser() -> None:
    """Skip where there is no browser to drive, with the reason."""
    pytest.importorskip("panel", reason="needs panel: pip install 'fluidcc[explore]'")
    pytest.importorskip("playwright", reason="needs playwright: pip install 'fluidcc[test]'")
    if CHROMIUM is None:
        pytest.skip("needs the system's Chromium; on Debian: apt install chromium")


@contextmanager
def serving() -> Iterator[tuple[str, int]]:
    """Address and process of `fluidcc explore`."""
    command = [sys.executable, "-m", "fluidcc", "explore", "--no-open"]
    log = tempfile.TemporaryFile("w+")  # noqa: SIM115
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            log.seek(0)
            pytest.fail(log.read())
        yield line.strip(), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        log.seek(0)
        sys.stderr.write(log.read())
        log.close()


@contextmanager
def browsing() -> Iterator[Any]:
    """A Chromium without a network of its own accord."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, headless=True, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class Page:
    """One visitor: moves values, and reads back what the page shows.

    Attributes
    ----------
    problems : list of str
        Errors of the console and of scripts.
    requests : list of str
        Addresses that were asked for.
    """

    def __init__(self, browser: Any, address: str, *, wait: bool = True, size: dict[str, int] | None = None) -> None:
        self.page = browser.new_page(viewport=size or SIZE)
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda problem: self.problems.append(str(problem)))
        self.page.on("console", lambda said: said.type == "error" and self.problems.append(said.text))
        self.page.goto(address)
        if wait:
            self.page.locator("#status[data-ms]").wait_for(timeout=1e3 * PATIENCE)

    @property
    def serial(self) -> int:
        """Number of the last move that was answered, or refused."""
        return int(self.page.locator("#status").get_attribute("data-serial"))

    @property
    def error(self) -> str:
        """Why the last was refused; empty if it was not."""
        return self.page.locator("#error").inner_text()

    def value(self, name: str) -> float:
        """A number of the table, such as ``fluid-queue_mean``."""
        return float(self.page.locator(f"#{name}").get_attribute("data-value"))

    def text(self, name: str) -> Any:
        """Box in which a value is typed."""
        return self.page.locator(f".knob-{name} #text-{name}")

    def typed(self, name: str) -> str:
        """Text of a value."""
        return self.text(name).input_value()

    def type(self, name: str, text: str) -> float:
        """Type a value, wait for the answer; the seconds that took."""
        self.text(name).fill(text)
        return self.after(lambda: self.page.keyboard.press("Enter"))

    def slide(self, name: str, key: str = "ArrowRight") -> float:
        """Move a slider by a key, back if it is at that end, wait for the answer; the seconds that took."""
        handle = self.page.locator(f".knob-{name} input[type=range]")
        now, low, high = handle.evaluate("slider => [slider.value, slider.min, slider.max].map(Number)")
        if now == high and key in ("ArrowRight", "PageUp"):
            key = {"ArrowRight": "ArrowLeft", "PageUp": "PageDown"}[key]
        elif now == low and key in ("ArrowLeft", "PageDown"):
            key = {"ArrowLeft": "ArrowRight", "PageDown": "PageUp"}[key]
        handle.focus()
        return self.after(lambda: self.page.keyboard.press(key))

    def pick(self, name: str, option: str) -> float:
        """Choose a scheme, preset or topology, wait for the answer; the seconds that took."""
        return self.after(lambda: self.page.locator(f".pick-{name} select").select_option(option))

    def after(self, act: Any, patience: float = PATIENCE) -> float:
        """Do something, wait until its answer is painted; the seconds that took."""
        began = self._painted("serial", act, patience)
        return time.perf_counter() - began

    def whole(self, patience: float = PATIENCE) -> None:
        """Wait until the roots of the last answer are painted too."""
        if "the rest follows" in self.page.locator("#status").inner_text():
            self._painted("whole", lambda: None, patience)

    def _painted(self, what: str, act: Any, patience: float) -> float:
        """Wait for another number in the status, and the frame with what came with it; when `act` began."""
        self.page.evaluate(_WATCH, [what, 1e3 * patience])
        began = time.perf_counter()
        act()
        if not self.page.evaluate("() => window.painted"):
            shown = self.page.locator("#status").inner_text()
            raise AssertionError(f"no answer within {patience:g} s: {shown}; {self.error}; {self.problems}")
        return began


def memory_of(process: int) -> float:
    """Resident memory of a process [MB]; 0 where the system does not say."""
    status = Path(f"/proc/{process}/status")
    found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) / 1e3 if found else 0.0


def load() -> float:
    """Average number of processes that want the machine's cores, per core."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)
