"""Fixtures of several files."""

from tests.shapes import full_columns, same_depth

__all__ = ["full_columns", "same_depth"]
