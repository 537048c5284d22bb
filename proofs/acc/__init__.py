"""Claims of ACC (NSDI 2024)."""
