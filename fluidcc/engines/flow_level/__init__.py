"""Flows as numbers: rates of whole fabrics, event by event or step by step, without packets."""
