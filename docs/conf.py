"""Sphinx configuration; built with warnings as errors by ``make docs``."""

import tomllib
from pathlib import Path

_root = Path(__file__).resolve().parent.parent
_project = tomllib.loads((_root / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = _project["name"]
author = "The fluidcc authors"
project_copyright = author
version = release = _project["version"]

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]

# docs/notebooks is a link to notebooks/. The notebooks are committed with their outputs and run by the tests.
nb_execution_mode = "off"
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

napoleon_google_docstring = False
napoleon_numpy_docstring = True
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"

exclude_patterns = ["_build", "jupyter_execute", "**/.ipynb_checkpoints"]

html_theme = "furo"
html_title = f"{project} {release}"
html_static_path = ["_static"]
html_css_files = ["pictures.css"]
