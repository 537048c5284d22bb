"""How fast fluidcc is, against JiTCDDE and a C kernel of the same integrator: ``python -m benchmarks``."""
