"""Errors for people: one line with what is wrong, the value, the place, and what to do."""


class HocketError(Exception):
    """An error whose text is shown to the user. `exit_code` is the exit code of the command."""

    exit_code = 1


class UsageError(HocketError):
    """The command was called wrongly."""

    exit_code = 2
