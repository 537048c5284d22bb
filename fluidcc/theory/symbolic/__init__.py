"""Schemes' equations by SymPy, got by running the engine's own code on symbols."""
