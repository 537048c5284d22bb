"""Claims and figures: results, verdicts, the registry behind ``fluidcc verify`` and ``fluidcc reproduce``."""
