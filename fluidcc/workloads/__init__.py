"""Traffic of whole fabrics: flows between hosts, and collective operations of training jobs."""
