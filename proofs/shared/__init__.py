"""Figures of the papers, one module each: a picture, its data, and whether the numbers are those expected."""
