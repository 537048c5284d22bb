"""Compiling once: where machine code is kept, under which name, and how much of it a process holds."""
