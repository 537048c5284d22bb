"""Packet-level reference model: every packet, queue, mark and timer, in integer picoseconds."""
