"""Writes the pictures that commands draw."""

from __future__ import annotations

from pathlib import Path

from matplotlib import pyplot

from hocket.errors import HocketError


def save(figure: pyplot.Figure, path: Path, dpi: int) -> None:
    """Write a picture, and close it. Raises HocketError."""
    try:
        figure.savefig(path, dpi=dpi)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise HocketError(f"cannot write {path}: {why}; choose another with --plot") from error
    finally:
        pyplot.close(figure)
