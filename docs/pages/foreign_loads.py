"""Find what a built page loads from other hosts: ``python -m docs.pages.foreign_loads docs/_build/html``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

# Attributes by which a page loads something as it is opened; a link that a reader follows is none.
LOADING = {
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "object": ("data",),
}


class _Loads(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in LOADING.get(tag, ()) and value.strip().startswith(("http:", "https:", "//")):
                self.found.append(value)


def loaded_by(text: str) -> list[str]:
    """Addresses of other hosts that a page of this HTML would load."""
    parser = _Loads()
    parser.feed(text)
    return parser.found


def foreign(folder: Path) -> Iterator[tuple[Path, str]]:
    """Pages and style sheets of a folder, with what they would load from elsewhere."""
    for path in sorted(folder.rglob("*.html")):
        for address in loaded_by(path.read_text(encoding="utf-8")):
            yield path.relative_to(folder), address
    for path in sorted(folder.rglob("*.css")):
        text = path.read_text(encoding="utf-8", errors="replace")
        for mark in ("url(http", "url('http", 'url("http', "url(//", "@import url(http", '@import "http'):
            if mark in text:
                yield path.relative_to(folder), mark


def main() -> int:
    """Run it; exit status 1 if there is one, or no page at all."""
    folder = Path(sys.argv[1])
    if not any(folder.rglob("*.html")):
        print(f"{folder}: no page is there; run: make docs", file=sys.stderr)
        return 1
    found = list(foreign(folder))
    for path, address in found:
        print(f"{path}: loads {address}", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
