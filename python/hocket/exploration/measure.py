"""Measures patterns and programs through I/O servers that an exploration starts for itself."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hocket import paths
from hocket.errors import HocketError
from hocket.exploration.patterns import Pattern
from hocket.private_daemon import private_daemon


@contextlib.contextmanager
def own_servers(count: int, directory: Path, options: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """Run a private hocketd with that many servers. Yields the environment of programs that use them."""
    with tempfile.TemporaryDirectory(prefix="hocket-", dir="/tmp") as name:
        environment = os.environ | {"HOCKET_DIR": name}
        environment.pop("HOCKET_SOCKET", None)
        with private_daemon(Path(name), {}):
            if count > 0:
                _hocket(["server", "start", "-n", str(count), "--dir", str(directory), *options], environment)
            yield environment
            if count > 0:
                _hocket(["server", "stop", "--now"], environment)


def measure_pattern(
    pattern: Pattern, servers: int, directory: Path, environment: Mapping[str, str]
) -> tuple[int, float]:
    """Return the bytes that the pattern moved, and its makespan in seconds. Raises HocketError if it fails."""
    program = paths.prefix() / "libexec" / "hocket" / "hocket-replay"
    if not program.exists():
        raise HocketError(f"no hocket-replay at {program}; is hocket built and installed? (HOCKET_PREFIX says where)")
    words = [program, pattern.processes, pattern.layout, pattern.request_bytes, pattern.total_bytes, pattern.seconds]
    words += [pattern.operation, int(pattern.direct), directory]
    out, _ = _run([str(word) for word in words], servers, pattern.processes_per_node, directory, environment)
    try:
        told = json.loads(out)
        return int(told["bytes"]), float(told["seconds"])
    except (ValueError, KeyError) as error:
        raise HocketError(f"hocket-replay printed {out[:80]!r} for the pattern '{pattern.name}'") from error


def measure_program(
    command: Sequence[str], servers: int, group: int, directory: Path, environment: Mapping[str, str]
) -> tuple[int, float]:
    """Return the bytes that the program moved through servers (0 without), and its makespan in seconds."""
    began_s = time.monotonic()
    _, moved = _run(command, servers, group, directory, environment)
    return moved, time.monotonic() - began_s


def _run(
    command: Sequence[str], servers: int, group: int, directory: Path, environment: Mapping[str, str]
) -> tuple[str, int]:
    """Run the command, and return what it printed, and the bytes that were forwarded."""
    with tempfile.TemporaryDirectory(prefix="hocket-") as name:
        counts = Path(name) / "counts.json"
        words = list(command)
        if servers > 0:
            how = ["--mount", str(directory), "--servers", str(servers), "--group", str(group), "--counts", str(counts)]
            words = [sys.executable, "-m", "hocket.cli", "forward", *how, "--", *words]
        done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()[-1:]
            raise HocketError(f"{command[0]} failed with exit code {done.returncode}: {' '.join(said)}")
        if servers == 0:
            return done.stdout, 0
        told = json.loads(counts.read_text(encoding="utf-8"))
    if not told:
        raise HocketError(f"{command[0]} ran directly: {done.stderr.strip()}")
    return done.stdout, told["bytes"]


def _hocket(words: Sequence[str], environment: Mapping[str, str]) -> None:
    command = [sys.executable, "-m", "hocket.cli", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise HocketError(done.stderr.strip().removeprefix("hocket: "))
