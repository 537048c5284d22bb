"""Claims and figures of HPCC (SIGCOMM 2019)."""
