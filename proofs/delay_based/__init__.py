"""Figures of TIMELY, Swift and DCTCP."""
