"""What packets and the hybrid have in common as compiled engines: dispatch to schemes, and what a run leaves."""
