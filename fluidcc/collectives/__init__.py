"""Training traffic: collectives as transfers that wait for each other, jobs side by side on one fabric."""
