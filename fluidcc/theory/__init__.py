"""Theory beside the engines: control theory, the papers' recursions, fairness, queueing."""
