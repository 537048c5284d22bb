"""``python -m fluidcc``: the same as the command ``fluidcc``."""

from fluidcc.cli import main

if __name__ == "__main__":  # a process that is spawned imports this module too
    main()
