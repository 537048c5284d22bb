"""Claims and figures of HPCC++ (IETF slides)."""
