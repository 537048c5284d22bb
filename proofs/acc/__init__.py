"""Claims and figures of ACC (NSDI 2024)."""
