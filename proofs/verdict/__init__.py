"""The papers' claims: what one is, how its verdict follows, and the runner behind ``fluidcc verify``."""
