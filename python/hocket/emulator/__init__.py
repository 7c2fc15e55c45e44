"""The emulator: an application from a description (docs/emulate.md)."""
