"""Has I/O servers of other nodes carry out the calls of a program (`hocket forward --on`, src/data/relay)."""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hocket import io_servers, paths
from hocket.bus import Bus
from hocket.errors import HocketError

# File systems on which each node sees at once what another one has written, by their names in /proc/mounts.
COHERENT = ("lustre", "gpfs")
# File systems on which it never does: their clients keep pages and sizes for themselves until the next open.
NOT_COHERENT = ("nfs", "nfs4", "cifs", "smb3")
START_S = 10.0
END_S = 30.0  # for calls under way at the end
TOTALS = ("elsewhere_calls", "elsewhere_bytes", "elsewhere_left", "elsewhere_failed")


def check_coherent(mount: Path, *, vouched: bool) -> None:
    """Raise HocketError unless other nodes see at once what one writes below the directory.

    `vouched`: the user says so.
    """
    kind = file_system_of(mount)
    if kind in NOT_COHERENT:
        raise HocketError(
            f"--on: {mount} is on {kind}, where a node does not see at once what another one writes, so that the "
            "program could not see its own files"
        )
    if kind not in COHERENT and not vouched:
        raise HocketError(
            f"--on: it is not known if a node sees at once what another one writes below {mount} ({kind}); give "
            "--coherent if it does"
        )


def file_system_of(path: Path) -> str:
    """Return the type of the file system on which a path lies, as /proc/mounts has it; "?" if that is not known."""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return "?"
    found, length = "?", -1
    for line in lines:
        before, _, after = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split()[4])
        # The last one of several mounts at one place is seen.
        if Path(point) in (path, *path.parents) and len(point) >= length:
            found, length = after.split()[0], len(point)
    return found


def servers_on(bus: Bus, nodes: Sequence[str], mount: Path) -> dict[str, dict[str, Any]]:
    """Return the servers of these nodes that serve the directory, by name."""
    return {
        name: one
        for name, one in io_servers.running(bus).items()
        if one["state"] == "up" and one.get("on_node") in nodes and _contains(Path(one["directory"]), mount)
    }


def _contains(directory: Path, mount: Path) -> bool:
    return directory == mount or directory in mount.parents


def start_missing(bus: Bus, nodes: Sequence[str], mount: Path) -> dict[str, dict[str, Any]]:
    """Start a server on each node that has none for the directory. Return those that were started, by name."""
    there = {one["on_node"] for one in servers_on(bus, nodes, mount).values()}
    missing = [node for node in nodes if node not in there]
    started = io_servers.start_on(bus, missing, 1, ["--dir", str(mount)]) if missing else {}
    return {name: one for name, one in io_servers.running(bus).items() if name in started}


class Relay:
    """The process that sends the calls of one run to other nodes. It ends with this object, or with this process."""

    def __init__(self, mount: Path, *, fails: bool) -> None:
        program = paths.prefix() / "libexec" / "hocket" / "hocket-forward-relay"
        if not program.exists():
            raise HocketError(f"no hocket-forward-relay at {program}; is hocket built and installed?")
        directory = paths.make_runtime_dir() / "servers"
        directory.mkdir(mode=0o700, exist_ok=True)
        self._base = directory / f"relay-{os.getpid()}-{time.time_ns()}"
        self._log = directory / "relay.log"
        self._sockets: dict[str, str] = {}  # by the server's addresses
        self._lock = threading.Lock()
        command = [str(program), "--mount", str(mount), "--runtime-dir", str(paths.runtime_dir())]
        with self._log.open("a") as log:
            # Signals of the terminal, or to the program's group, do not end it before the program.
            self._process = subprocess.Popen(
                command + ["--fail"] * fails,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def socket_for(self, addresses: str) -> str:
        """Return the socket at which calls for the server with these addresses are taken."""
        with self._lock:
            if addresses not in self._sockets:
                socket = f"{self._base}-{len(self._sockets)}.forward"
                said = self._ask(f"{socket} {addresses}")
                if said != socket:
                    raise HocketError(f"the relay serves nothing: {said.removeprefix(socket).strip()}")
                self._sockets[addresses] = socket
            return self._sockets[addresses]

    def _ask(self, line: str) -> str:
        try:
            self._process.stdin.write(line + "\n")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
            readable, _, _ = select.select([self._process.stdout], [], [], START_S)
            said = self._process.stdout.readline().strip() if readable else ""  # type: ignore[union-attr]
        except (OSError, ValueError) as error:
            raise HocketError(f"the relay has ended: {error}; see {self._log}") from error
        if not said:
            raise HocketError(f"the relay does not answer; see {self._log}")
        return said

    def end(self) -> dict[str, int]:
        """End the process when its calls have ended. Return what it has done, by TOTALS; {} if it was killed."""
        with self._lock:
            try:
                said, _ = self._process.communicate(timeout=END_S)
            except (subprocess.TimeoutExpired, OSError, ValueError):
                self._process.kill()
                said, _ = self._process.communicate()
            for socket in self._sockets.values():
                with contextlib.suppress(OSError):
                    Path(socket).unlink()
        words = said.split()
        if self._process.returncode != 0 or len(words) != len(TOTALS):
            return {}
        return dict(zip(TOTALS, map(int, words), strict=True))


def sentences(totals: Mapping[str, int]) -> list[str]:
    """Return what --check says of other nodes, behind what it says of all calls."""
    from hocket.tables import quantity  # imported here: few runs need it

    if not totals:
        return ["the relay was killed, so it is not known how many calls other nodes have carried out"]
    lines = [
        f"other nodes carried out {totals['elsewhere_calls']} calls, {quantity(totals['elsewhere_bytes'])}; "
        f"{totals['elsewhere_left']} were made on this node, where it was not certain that the result is the same"
    ]
    if totals["elsewhere_failed"]:
        lines.append(f"{totals['elsewhere_failed']} calls failed with EIO, because nobody knew what became of them")
    return lines
