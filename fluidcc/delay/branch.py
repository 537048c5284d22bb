"""The cycles that are born at a Hopf point, followed along its parameter."""
from __future__ import annotations
def from_hopf(equation, near): raise NotImplementedError
