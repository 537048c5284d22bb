"""Figures and tables of ACC (NSDI 2024)."""
