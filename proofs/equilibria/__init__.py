"""Equilibria of the schemes, derived by sympy and compared with numbers."""
