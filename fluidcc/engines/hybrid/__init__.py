"""The hybrid engine: the NIC's own algorithm and marks drawn packet by packet, on fluid queues, from event to event."""
