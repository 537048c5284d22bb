"""Many runs for one answer: sweeps, charts, tuning and fitting."""
