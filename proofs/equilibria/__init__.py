"""Where the schemes settle, derived by sympy, and the same by numbers."""
