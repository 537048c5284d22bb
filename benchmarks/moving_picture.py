"""The explorer as a moving picture: DCQCN's g through its Hopf point, as docs/pictures/explorer.gif.

    python -m benchmarks.moving_picture [FILE.gif]

Needs the extras `explore` and `test`, and the system's Chromium. The page is driven by its own slider, and every frame
is taken once all of it, chart included, is that of the slider's place.
"""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path
from typing import Any

from tests.explorer.browser import Page, browsing, serving

FILE = Path(__file__).parents[1] / "docs" / "pictures" / "explorer.gif"
QUERY = "?flows=12&kept=flows%3D12"
_LAST = 1 / 16  # of g, which begins at the paper's 1/256
_STEPS = 2  # of the slider for each frame
_WIDTH, _COLOURS = 900, 192
_HEIGHT = 660  # pixels of the page that are taken, of 1280 by 800
_FRAME, _FIRST, _END = 130, 1000, 1800  # ms


def _settle(page: Page) -> None:
    """Wait for the chart of the last move, and its frame."""
    page.whole()
    page.page.wait_for_function(
        """serial => {
          const search = root => root.querySelector("#chart") ?? Array.from(root.querySelectorAll("*")).reduce(
            (found, e) => found ?? (e.shadowRoot && search(e.shadowRoot)), null)
          return search(document)?.dataset.serial === serial
        }""",
        arg=str(page.serial),
        timeout=120_000,
    )
    page.page.wait_for_timeout(150)


def _opened(browser: Any, address: str) -> Page:
    """The page of the setting, once all of it is there."""
    page = Page(browser, f"{address}{QUERY}", wait=False)
    page.page.locator("#kept-fluid-queue_mean").wait_for(timeout=120_000)
    _settle(page)
    return page


def frames(page: Page) -> list[bytes]:
    """Pictures of the page, as PNG, as g moves."""
    taken = []
    while True:
        _settle(page)
        taken.append(page.page.screenshot(clip={"x": 0, "y": 0, "width": 1280, "height": _HEIGHT}))
        if float(page.typed("g")) >= _LAST:
            return taken
        for _ in range(_STEPS):
            page.slide("g")


def write(path: Path, pictures: list[bytes]) -> None:
    """Write them as one GIF, in colours that they share, so that what stands still costs nothing."""
    from PIL import Image

    opened = [Image.open(io.BytesIO(each)).convert("RGB") for each in pictures]
    size = (_WIDTH, round(_HEIGHT * _WIDTH / 1280))
    small = [each.resize(size, Image.Resampling.LANCZOS) for each in opened]
    both: Any = Image.new("RGB", (size[0], 2 * size[1]))  # colours of the first and the last
    both.paste(small[0], (0, 0))
    both.paste(small[-1], (0, size[1]))
    palette = both.quantize(_COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    reduced = [each.quantize(palette=palette, dither=Image.Dither.NONE) for each in small]
    times = [_FIRST, *[_FRAME] * (len(reduced) - 2), _END]
    reduced[0].save(path, save_all=True, append_images=reduced[1:], duration=times, loop=0, optimize=True)


def main() -> None:
    """Drive the page, and write its pictures."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    began = time.perf_counter()
    with serving() as (address, _), browsing() as browser:
        _opened(browser, address)  # compiles: the first picture is of an answer as all others are
        page = _opened(browser, address)
        pictures = frames(page)
        if page.problems:
            raise SystemExit(f"the page reports: {page.problems}")
    write(path, pictures)
    took = time.perf_counter() - began
    print(f"{path}: {len(pictures)} frames, {path.stat().st_size / 1e6:.2f} MB, in {took:.0f} s")


if __name__ == "__main__":
    main()
