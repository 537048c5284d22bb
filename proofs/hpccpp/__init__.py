"""Claims of HPCC++ (IETF slides)."""
