"""Errors for people: one line that says what was wrong, which value, where, and what to do."""


class HocketError(Exception):
    """An error whose text is meant for the person at the terminal. `exit_code` is the command's."""

    exit_code = 1


class UsageError(HocketError):
    """The command was called wrongly."""

    exit_code = 2
