"""Where the schemes rest, derived by sympy, and the same by numbers."""
