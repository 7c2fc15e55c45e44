"""Δ-graphs: the I/O times of two applications against the delay between their I/O phases (CALCioM, section II-C)."""
