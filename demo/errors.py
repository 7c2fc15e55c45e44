"""What ends the demo with one line."""


class DemoError(Exception):
    """Something is wrong; the text says what, where, and what to do."""
