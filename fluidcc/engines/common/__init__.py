"""Code shared by packets and the hybrid as compiled engines: dispatch to schemes, and the results of a run."""
