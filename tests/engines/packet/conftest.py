"""Fixtures of several files."""

from tests.shapes import full_columns

__all__ = ["full_columns"]
