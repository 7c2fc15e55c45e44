"""Δ-graphs: the I/O times of two applications by how much later one begins (CALCioM, section II-C)."""
