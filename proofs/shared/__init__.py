"""Helpers of several papers' figures, and claims of several papers on one table."""
