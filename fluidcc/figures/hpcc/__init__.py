"""Figures of HPCC (SIGCOMM 2019)."""
