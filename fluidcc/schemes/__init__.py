"""Congestion-control schemes, one folder each: `parameters.py`, a law or sides of engines, `__init__.py`.

A folder with `parameters.py` is enough: it is found, not registered.
"""
