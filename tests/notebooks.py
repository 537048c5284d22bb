"""nbformat without the parser of addresses that its schemas never need: to build it takes 6 s at import."""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # jsonschema does without it

import nbformat  # noqa: E402

__all__ = ["nbformat"]
