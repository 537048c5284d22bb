"""Figures of HPCC++: MultiQ and receiver-based HPCC."""
