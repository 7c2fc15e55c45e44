"""Runs I/O servers of a private hocketd, for measurements."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hocket.errors import HocketError
from hocket.private_daemon import Setting, private_daemon

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Make the signals that end a command raise KeyboardInterrupt, once: cleaning up is not interrupted.

    Signals that are ignored, as by nohup, stay so.
    """

    def interrupt(number: int, _: object) -> None:
        for one in before:
            signal.signal(one, signal.SIG_IGN)
        raise KeyboardInterrupt(number)

    heeded = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def private_servers(
    count: int,
    directory: Path,
    options: Sequence[str],
    *,
    injected: Sequence[str] = (),
    coordinator: Mapping[str, Setting] | None = None,
    arbitration: Mapping[str, Setting] | None = None,
    trace: Path | None = None,
) -> Iterator[Mapping[str, str]]:
    """Run a private hocketd with that many servers of a directory. Yields the environment of programs that use them.

    `options` go to 'hocket server start', and one text of `injected` to each of the last servers. `coordinator` and
    `arbitration` have settings of the daemon. Its trace is copied to `trace` at the end. However the context is left,
    no server stays; signals raise KeyboardInterrupt in it.
    """
    with ended_by_signals(), tempfile.TemporaryDirectory(prefix="hocket-", dir="/tmp") as name:
        environment = os.environ | {"HOCKET_DIR": name}
        environment.pop("HOCKET_SOCKET", None)
        with private_daemon(Path(name), coordinator or {}, arbitration) as written:
            try:
                start = ["server", "start", "--dir", str(directory), *options]
                if count > len(injected):
                    _hocket([*start, "-n", str(count - len(injected))], environment)
                for text in injected:
                    _hocket([*start, "--inject", text], environment)
                yield environment
                if count > 0:
                    with contextlib.suppress(HocketError):  # the daemon has ended, as private_daemon reports
                        _hocket(["server", "stop", "--now"], environment)
            finally:
                _kill_servers(name)
        if trace is not None:
            shutil.copyfile(written, trace)


def _hocket(words: Sequence[str], environment: Mapping[str, str]) -> None:
    command = [sys.executable, "-m", "hocket.cli", *words]
    # A session of its own: Ctrl-C is for the command that uses the servers, which ends them.
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, start_new_session=True)
    if done.returncode != 0:
        raise HocketError(done.stderr.strip().removeprefix("hocket: "))


def _kill_servers(runtime_directory: str) -> None:
    """Kill what is left of the servers of a runtime directory: nobody needs what they hold."""
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"hocket-server") and os.fsencode(runtime_directory) in words:
                os.kill(int(process.name), signal.SIGKILL)
