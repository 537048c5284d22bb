"""Sphinx configuration; built with warnings as errors by ``make docs``, and without a network."""

import sys
import tomllib
from pathlib import Path

_root = Path(__file__).resolve().parent.parent
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # nbformat needs none; it takes 6 s to import
sys.path.insert(0, str(_root))  # docs.pages, which writes pages of results and commands
_project = tomllib.loads((_root / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = _project["name"]
author = "The fluidcc authors"
project_copyright = author
version = release = _project["version"]

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",  # MathJax of this machine, in place of another host's
    "sphinx_design",
    "docs.pages.extension",
]

# docs/notebooks is filled from notebooks/ by the build. They are committed with their outputs, stamped by
# `make results`, and run by the tests. Widgets would need a kernel, and their scripts another host: pages leave them
# out.
nb_execution_mode = "off"
nb_ipywidgets_js = {}
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

napoleon_google_docstring = False
napoleon_numpy_docstring = True
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autosummary_generate = True
autosummary_generate_overwrite = True

templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "results", "jupyter_execute", "**/.ipynb_checkpoints"]

html_theme = "furo"
html_title = f"{project} {release}"
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["pictures.css"]
