"""Claims and figures of DCQCN (SIGCOMM 2015), and of its stability (CoNEXT 2016)."""
