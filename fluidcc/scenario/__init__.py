"""Scenarios: links, flows, marking and flow control, and what follows from them alone."""
