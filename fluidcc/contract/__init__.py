"""Interface between schemes and engines: parameters, models, signals, presets, and the registry."""
