"""Congestion-control schemes, one folder each: parameters and presets, fluid side, equilibrium."""
