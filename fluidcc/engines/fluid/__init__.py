"""The fluid engine: a delay-differential integrator and the network of queues on it."""
