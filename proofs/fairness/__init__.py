"""Claims and figures of Fast Convergence to Fairness (Variable AI, Sampling Frequency)."""
