"""The error that ends the demo with one line."""


class DemoError(Exception):
    """A fault of the demo or its environment; the text says what, where, and what to do."""
