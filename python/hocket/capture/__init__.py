"""Watches a real application through libhocket, and describes it for the emulator (Proteo, section 5.2)."""
