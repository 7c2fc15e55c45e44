"""The CPU time of an operation on this machine (Proteo's T_op), measured once and stored."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hocket import __version__
from hocket.emulator.plan import Operations
from hocket.errors import HocketError

LIMIT_S = 3.0  # of one calibration, whatever the number of kinds
RUN_LIMIT_S = 120.0  # of the program, on a machine that is busy


def store() -> Path:
    """Return the file of what is known of this machine: a JSON object from "kind:granularity" to seconds."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    machine = hashlib.sha256(f"{_processor()} {__version__}".encode()).hexdigest()[:16]
    return Path(base) / "hocket" / f"operations-{machine}.json"


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def calibrated(wanted: Sequence[tuple[str, int]], program: Path) -> Operations:
    """Return the seconds of each kind of operation, and measure those that are not known.

    `program`: the emulator, for any MPI. Raises HocketError if it cannot be run.
    """
    path = store()
    known = _read(path)
    missing = [f"{kind}:{granularity}" for kind, granularity in wanted if f"{kind}:{granularity}" not in known]
    if missing:
        known |= _measured(missing, program)
        _write(path, known)
    return {(kind, granularity): known[f"{kind}:{granularity}"] for kind, granularity in wanted}


def _measured(missing: list[str], program: Path) -> dict[str, float]:
    command = [str(program), "--calibrate", str(LIMIT_S), *missing]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=RUN_LIMIT_S, check=True)
        found = {name: float(seconds) for name, seconds in (line.split() for line in ran.stdout.splitlines())}
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise HocketError(f"cannot calibrate with {program}: {error}") from error
    if sorted(found) != sorted(missing) or not all(seconds > 0 for seconds in found.values()):
        raise HocketError(f"{program} --calibrate printed {ran.stdout[:80]!r}; is it of this hocket?")
    return found


def _read(path: Path) -> dict[str, float]:
    """Return what is stored. A file that is damaged counts as empty: it is measured again."""
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict):
            return {name: value for name, value in content.items() if isinstance(value, float) and value > 0}
    return {}


def _write(path: Path, known: dict[str, float]) -> None:
    """Store what is known. A directory that cannot be written costs a calibration next time."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        new.replace(path)
