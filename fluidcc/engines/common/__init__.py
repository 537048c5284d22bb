"""Code that compiled engines share: Numba's decorators, the topology, bounds, frames, times, and a run's results."""
