"""What a congestion-control scheme is to the engines: parameters, models, signals, presets, and the registry."""
