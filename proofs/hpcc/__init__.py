"""Claims of HPCC (SIGCOMM 2019)."""
