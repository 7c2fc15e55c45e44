"""Signal handlers that write files: a program may be anywhere when they run, so libhocket must not block in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import runtime_kit as kit

pytestmark = pytest.mark.timeout(240)

SIGNALS = 300


@pytest.mark.parametrize("arenas", ["many", "one"])
def test_a_handler_may_write_wherever_the_program_is(
    mpi: kit.Mpi,
    built: Callable[..., Path],
    start_daemon: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arenas: str,
) -> None:
    # With one arena each thread of libhocket, too, waits for memory while the interrupted thread allocates.
    if arenas == "one":
        monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    daemon = start_daemon("--policy", "fcfs")
    program = [built("signal_writes.c"), tmp_path / "f", SIGNALS]
    run = mpi.run(program, kit.settings(daemon.socket, phase_gap_s=0.005), ranks=1, limit_s=60)
    assert (run.code, run.out, run.warnings) == (0, f"saved {SIGNALS} of {SIGNALS}\n", []), run.err
    asked = [line for line in daemon.trace.read_text().splitlines() if '"START_IO"' in line]
    assert any(f"{tmp_path}/f.0.saved" in line for line in asked), "the handler's writes are coordinated"
