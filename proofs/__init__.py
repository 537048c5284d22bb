"""The papers' claims, each checked by a function of its own; one folder per paper."""
