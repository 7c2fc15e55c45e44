"""Runs `hocket workload` in tests."""

from __future__ import annotations

import subprocess
from pathlib import Path


def written(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def ended(process: subprocess.Popen, code: int = 0) -> str:
    out, err = process.communicate(timeout=200)
    assert process.returncode == code, err
    return out
