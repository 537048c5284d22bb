"""The built documentation, every page of it, opened by Chromium without a network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.explorer.browser import CHROMIUM

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built() -> Path:
    """The documentation where ``make docs`` builds it, what is old built anew; stale results are its own matter."""
    folder = ROOT / "docs" / "_build" / "html"
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--quiet", "-D", "refuse_stale=0", "docs"]
    subprocess.run([*command, str(folder)], cwd=ROOT, check=True)
    return folder


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_every_page_is_whole_without_a_network(built: Path) -> None:
    """No error, no request but to its own files, every picture there, every formula set."""
    from playwright.sync_api import sync_playwright

    pages = [path for path in sorted(built.rglob("*.html")) if "_modules" not in path.parts]
    assert len(pages) > 100
    wrong: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context(offline=True).new_page()
        page.on("request", lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else wrong.append(r.url))
        page.on("pageerror", lambda error: wrong.append(f"{page.url}: {error}"))
        for path in pages:
            page.goto(path.as_uri())
            if page.locator(".math").count():
                page.wait_for_function(
                    "() => [...document.querySelectorAll('.math')].every(m => m.querySelector('mjx-container'))"
                )
            if page.locator("mjx-merror").count():
                wrong.append(f"{path.name}: a formula is not understood")
            missing = page.evaluate("() => [...document.images].filter(i => !i.naturalWidth).map(i => i.src)")
            wrong += [f"{path.name}: {each} is no picture" for each in missing]
            if path.parent == built and not page.locator("h1").count() and path.stem not in ("genindex", "search"):
                wrong.append(f"{path.name}: has no heading")
        browser.close()
    assert not wrong
