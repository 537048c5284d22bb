"""Engines that run a scenario: averaged fluid, and packet by packet."""
