"""The explorer's page on a phone, a tablet and a notebook: nothing sticks out, and every control says what it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.explorer.browser import Page, browsing, require_browser, serving

pytestmark = pytest.mark.slow  # a browser and a server: a minute and a half of a processor

SIZES = {390: 844, 768: 1024, 1280: 800}
THUMB = 36  # px that a control is tall on a narrow page; WCAG 2.2 asks for 24
# Elements behind any number of shadow roots, in the order in which they are drawn.
_ALL = """const all = root => Array.from(root.querySelectorAll("*")).flatMap(
  e => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])])
"""
_STICKING_OUT = f"""() => {{ {_ALL}
  return all(document).filter(e => ["INPUT", "SELECT", "BUTTON", "CANVAS", "TD", "TH", "LABEL"].includes(e.tagName))
    .filter(e => {{ const box = e.getBoundingClientRect()
      return box.width && (box.left < 0 || box.right > document.documentElement.clientWidth + 1) }})
    .map(e => `${{e.tagName}} ${{e.textContent || e.id}}`) }}"""
_CONTROLS = f"""() => {{ {_ALL}
  const reached = e => e.matches("input, select, button") && !e.disabled && e.checkVisibility()
  return all(document).filter(reached).length }}"""
_FOCUSED = f"""() => {{ {_ALL}
  let e = document.activeElement
  while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement
  const box = e.getBoundingClientRect(), look = getComputedStyle(e)
  const words = e.matches("button") ? [e, ...all(e)].map(part => part.textContent).join(" ") : ""
  const label = e.labels?.[0]?.textContent ?? words
  return {{tag: e.localName, id: e.id, tall: box.height, name: (e.getAttribute("aria-label") ?? label).trim(),
    outline: look.outlineStyle !== "none" && look.outlineWidth !== "0px",
    tip: e.getAttribute("aria-description") ?? e.getAttribute("aria-label") ?? ""}} }}"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    require_browser()
    with serving() as (found, _):
        yield found


@pytest.fixture(scope="module", params=SIZES)
def page(request: pytest.FixtureRequest, address: str) -> Iterator[Page]:
    """The page at one width, once its first answer is there."""
    with browsing() as browser:
        found = Page(browser, address, size={"width": request.param, "height": SIZES[request.param]})
        found.page.locator("#status[data-whole]").wait_for(timeout=60_000)
        yield found


def width(page: Page) -> int:
    return page.page.viewport_size["width"]


def tip(page: Page) -> str:
    """Words of the tooltip that is seen; empty if there is none."""
    found = page.page.locator(".tip")
    return found.inner_text() if found.is_visible() else ""


def controls_by_tab(page: Page) -> list[dict[str, Any]]:
    """List what Tab reaches from the top of the page on, as the browser sees it."""
    found: list[dict[str, Any]] = []
    page.page.mouse.move(0, 0)  # a mouse on a picture shows its tools, which Tab would reach too
    page.page.locator(".pick-scheme select").focus()
    page.page.keyboard.press("Shift+Tab")
    while len(found) < 200:
        page.page.keyboard.press("Tab")
        at = page.page.evaluate(_FOCUSED)
        if at["tag"] == "body" or (found and at["name"] == found[0]["name"]):
            return found
        at["shown"] = tip(page)
        found.append(at)
    raise AssertionError("Tab does not come to an end")


def test_nothing_sticks_out_of_the_page(page: Page) -> None:
    """A fixed width somewhere would have a phone scroll sideways."""
    assert page.page.evaluate("() => document.documentElement.scrollWidth") == width(page)
    assert page.page.evaluate(_STICKING_OUT) == []


def test_the_first_screen_answers(page: Page) -> None:
    """Verdict, numbers and the queue are seen without scrolling, also where sliders come below them."""
    page.page.evaluate("() => window.scrollTo(0, 0)")
    tall = SIZES[width(page)]
    for what in ("#verdict", "#fluid-queue_mean", ".view-queue canvas"):
        box = page.page.locator(what).first.bounding_box()
        assert box["y"] + box["height"] <= tall
    assert page.page.locator("#verdict").inner_text().startswith("stable")
    assert page.value("fluid-queue_mean") > 0


def test_pictures_are_wide_enough_to_be_read(page: Page) -> None:
    """Side by side on a narrow page, five pictures had 60 px each."""
    for name in ("queue", "rates", "share", "roots", "chart"):
        box = page.page.locator(f".view-{name} canvas").first.bounding_box()
        assert box["width"] >= 280


def test_tab_reaches_every_control_and_each_says_what_it_is(page: Page) -> None:
    """With a name, a visible focus and a tooltip that opens; a slider's is the parameter's own words and unit."""
    for fold in ("more", "devices", "code"):
        if page.page.locator(f".{fold} .card-header").first.get_attribute("aria-expanded") != "true":
            page.page.locator(f".{fold} .card-header").first.click()
    page.page.locator("#text-header_bytes").wait_for()
    page.page.locator(".load button").wait_for()
    found = controls_by_tab(page)
    native = [at for at in found if at["tag"] in ("input", "select", "button")]
    assert len(native) == page.page.evaluate(_CONTROLS) > 40
    assert [at for at in found if not at["name"]] == []
    assert [at for at in found if not at["tip"] or at["shown"] != at["tip"]] == []
    assert [at for at in found if not at["outline"]] == []
    kmin = next(at["tip"] for at in found if at["id"] == "slider-kmin")
    assert kmin == "Queue where marking starts. Bytes, such as 200KB; default: 5KB. Source: DCQCN Fig. 5."
    if width(page) < 700:
        assert [at for at in native if at["tall"] < THUMB] == []


def test_keys_move_a_value(page: Page) -> None:
    """The text follows the slider, and the slider the text."""
    before = page.value("fluid-queue_mean")
    page.slide("kmin")
    assert page.typed("kmin") != "5KB"
    assert page.value("fluid-queue_mean") != before
    page.type("kmin", "5KB")
    slider = page.page.locator("#slider-kmin")
    assert slider.get_attribute("aria-valuetext") == "5KB"
    assert 2 * int(slider.input_value()) == pytest.approx(int(slider.get_attribute("max")), abs=1)  # 5KB is amidst
    assert page.value("fluid-queue_mean") == before
    assert page.problems == []


def test_escape_hides_a_tooltip(page: Page) -> None:
    """It covers what is below."""
    page.page.locator("#slider-delay").focus()
    page.page.keyboard.press("Tab")
    assert "propagation delay" in tip(page)
    page.page.keyboard.press("Escape")
    assert tip(page) == ""


def test_the_mouse_opens_a_tooltip(page: Page) -> None:
    page.page.locator(".pick-topology select").hover()
    page.page.locator(".tip", has_text="Links and paths").wait_for(timeout=5000)
