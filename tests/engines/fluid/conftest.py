"""Fixtures of the fluid engine's tests."""

from tests.engines.fluid.in_numpy import numpy_only

__all__ = ["numpy_only"]
