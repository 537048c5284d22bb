"""The Sphinx extension: refuses stale results, and writes the pages that are made of results and of commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docs.pages import found, gallery, results

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HEAD = """# Every command and option

What `fluidcc COMMAND --help` prints, made of the commands by the build. What the words mean, and what comes out: \
[the command line](../cli.md).

"""
DOCS = Path(__file__).resolve().parents[1]
GENERATED, NOTEBOOKS, REFERENCE = DOCS / "generated", DOCS / "notebooks", DOCS / "reference"


def reference() -> str:
    """The reference of the command line, in Markdown."""
    import typer
    from typer.cli import get_docs_for_click
    from typer.main import get_command

    from fluidcc.cli.app import app

    command = get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command, info_name="fluidcc"), name="fluidcc")
    text = re.sub(r"^# `fluidcc`\n+.*?(?=^## )", "", text, flags=re.DOTALL | re.MULTILINE)
    return HEAD + re.sub(r"^## `fluidcc ([a-z-]+)`$", r"## \1", text, flags=re.MULTILINE)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx; ``-D refuse_stale=0`` is for a look while one writes."""
    app.add_config_value("refuse_stale", True, "", bool)  # "": no page is read again for it
    app.connect("builder-inited", write_pages)
    app.connect("html-page-context", mend_back_links)
    # It copies files and sets an address, and does not say that pages may be read by several processes.
    app.extensions["sphinx-mathjax-offline"].parallel_read_safe = True
    return {"version": "1", "parallel_read_safe": True}


def write_pages(app: Sphinx) -> None:
    """Write all generated pages.

    Raises
    ------
    sphinx.errors.ExtensionError
        If a result is missing or older than its sources.
    """
    from sphinx.errors import ExtensionError

    old = [f"{kind} {name}" for kind, name in results.stale()]
    if old and app.config.refuse_stale not in (False, "0"):
        raise ExtensionError(f"made of older sources, or missing: {', '.join(old)}; run: make results")
    claims, figures = results.load(results.CLAIMS), results.load(results.FIGURES)
    pages = {"commands": reference(), "gallery": gallery.page(figures), **found.pages(claims, figures)}
    GENERATED.mkdir(exist_ok=True)
    for path in GENERATED.glob("*.md"):
        if path.stem not in pages:
            path.unlink()
    for name, text in pages.items():
        _put(GENERATED / f"{name}.md", text)
    drop_stubs(REFERENCE, (DOCS / "api.md").read_text(encoding="utf-8"))
    # Copies, not a link to their folder: what a link leads to lies outside of the documentation for Sphinx, and
    # notebooks could not refer to each other.
    NOTEBOOKS.mkdir(exist_ok=True)
    for path in NOTEBOOKS.glob("*.ipynb"):
        if not (results.NOTEBOOKS / path.name).exists():
            path.unlink()
    for path in results.NOTEBOOKS.glob("*.ipynb"):
        _put(NOTEBOOKS / path.name, path.read_text(encoding="utf-8"))


def drop_stubs(folder: Path, listed: str) -> None:
    """Remove pages of names that the page of the API lists no more: Sphinx would still read them, and warn."""
    names = set(re.findall(r"^   (fluidcc\.[\w.]+)$", listed, re.MULTILINE))
    for path in folder.glob("*.rst"):
        if path.stem not in names:
            path.unlink()


def _put(path: Path, text: str) -> None:
    """Write it where it differs: else Sphinx would read it again for nothing."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def mend_back_links(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Mend the links ``[docs]`` of a module's source: Sphinx takes all its names for those of one public package."""
    if page.startswith("_modules/"):
        places = {name: (entry.docname, entry.node_id) for name, entry in app.env.domains["py"].data["objects"].items()}
        context["body"] = mended(context["body"], places)


def mended(body: str, places: Mapping[str, tuple[str, str]]) -> str:
    """Return a page of source whose links ``[docs]`` lead to the object that they are of.

    Parameters
    ----------
    body : str
    places : mapping
        Page and anchor of each documented name.
    """

    def link(match: re.Match[str]) -> str:
        before, page, name, after = match.groups()
        here = {f".{known}": at for known, (where, at) in places.items() if page.endswith(f"/{where}")}
        # The longest common end: of `fluidcc.Symbolic.latex` that is `.Symbolic.latex`.
        parts = name.split(".")
        ends = ["." + ".".join(parts[k:]) for k in range(len(parts))]
        found = next((at for end in ends for known, at in here.items() if known.endswith(end)), None)
        return match[0] if found is None else f"{before}{page}.html#{found}{after}"

    return re.sub(r'(class="viewcode-back" href=")([^"#]*)\.html#([^"]+)(")', link, body)
