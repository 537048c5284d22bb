"""Swift (Kumar et al., SIGCOMM 2020), as Snyder and Lebeck's "Fast Convergence to Fairness" uses it."""

from fluidcc.schemes.swift.parameters import PRESETS, Swift

Parameters = Swift

__all__ = ["PRESETS", "Parameters", "Swift"]
