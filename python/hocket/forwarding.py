"""Runs a program whose files' data go through I/O servers (src/libhocket/forwarding)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hocket import __version__, daemon, elf, io_servers, paths, relay
from hocket.bus import Bus, BusError
from hocket.errors import HocketError
from hocket.forward_page import ForwardPage, Seen
from hocket.mounts import target_of
from hocket.mpi import ProgramNotFoundError, programs_of
from hocket.supervise import run_child
from hocket.tables import quantity
from hocket.verbs import tell

IDLE_S = 30  # idle time in seconds after which a daemon that was started for a program ends
ANSWER_S = 5.0
MOUNT_END_S = 2.0  # how long the mount of a program may take to end; its children may still use it
MOST_SCRIPTS = 5  # that the kernel follows to an interpreter
SOCKET_SUFFIX = ".forward"  # of the path of a server's socket for this (src/data/server/main.cpp)


@dataclass(frozen=True)
class How:
    """What `hocket forward` was asked for."""

    mount: Path  # canonical
    servers: int | None  # None: all that run, or one
    group: int
    name: str
    fails: bool  # calls fail while no server runs
    nodes: int = 1
    processes: int = 1
    bandwidth: Mapping[int, int] = field(default_factory=dict)  # bytes/s by number of servers; empty: not known
    collects: bool = False  # small writes are collected (close-to-open consistency)
    by: str | None = None  # "preload", "fuse"; None: FUSE for a static program
    on: Sequence[str] = ()  # nodes whose servers carry calls out; (): this one
    coherent: bool = False  # the user says that each node sees at once what another one writes


@dataclass(frozen=True)
class Outcome:
    """What became of a run. `counts` is empty if the program ran directly."""

    code: int  # exit code, or minus the number of the signal
    seconds: float
    counts: Mapping[str, int]
    seen: Mapping[int, Seen]  # by number of servers
    first_static: str = ""  # file name of the first static program that ran directly
    elsewhere: Mapping[str, int] | None = (
        None  # what other nodes have carried out (relay.TOTALS); None: they were not asked
    )


def run(program: str, command: Sequence[str], how: How) -> Outcome:
    """Run the program.

    Without servers it runs directly, as the line on stderr says. Raises ProgramNotFoundError if it cannot be started.
    """
    words, environment = list(command), dict(os.environ)
    started = program
    elsewhere: dict[str, int] = {}
    with contextlib.ExitStack() as stack:
        page: ForwardPage | None = None
        try:
            page = stack.enter_context(_served(program, how, elsewhere))
            mounted = _mounted(program, words, page, how)
            if mounted:
                started, words = mounted[0], mounted
            else:
                environment |= preloading(page.path)
        except HocketError as error:
            tell(f"{error}; the program runs directly")
        except OSError as error:
            tell(f"cannot prepare forwarding: {error.strerror}: {error.filename}; the program runs directly")
        began_s = time.monotonic()
        try:
            # The process that serves the mount is an orphan, and hocketd is to know whose calls it makes.
            code = run_child(started, words, environment, adopts=started != program)
        except OSError as error:
            raise ProgramNotFoundError(f"{program}: cannot be started: {error.strerror}") from error
        seconds = time.monotonic() - began_s
        if page is not None and started != program:
            page.await_mount_end(MOUNT_END_S)
        if page is None:
            return Outcome(code, seconds, {}, {})
        outcome = Outcome(code, seconds, page.counts(), page.seen(), page.first_static())
    return replace(outcome, elsewhere=elsewhere) if how.on else outcome


def _mounted(program: str, command: Sequence[str], page: ForwardPage, how: How) -> list[str]:
    """Return the command that runs the program in a mount namespace; an empty one if it is to be preloaded.

    If FUSE should be used and is not allowed, that is said.
    """
    static = _static_among(program, command)
    if how.on:  # a mount's own process would have to sync on the other nodes, too
        if static:
            tell(f"{static} is statically linked, so its own data go directly; those of its children do not")
        return []
    if not (static is not None if how.by is None else how.by == "fuse"):
        if static:
            tell(f"{static} is statically linked, so its own data go directly; those of its children do not")
        return []
    helper = [str(paths.prefix() / "libexec" / "hocket" / "hocket-forward-fuse"), str(page.path), str(how.mount)]
    try:
        tried = subprocess.run(
            helper, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10, check=False
        )
        reason = "" if tried.returncode == 0 else tried.stderr.strip()
    except subprocess.TimeoutExpired:
        reason = "it does not answer"
    except OSError as error:
        reason = f"{helper[0]}: {error.strerror}"
    if not reason:
        return [*helper, program, *command]
    if static:
        tell(f"{static} is statically linked, and FUSE cannot forward it ({reason}), so its own data go directly")
    else:
        tell(f"FUSE cannot forward {program} ({reason}), so a preloaded library does")
    return []


def _static_among(program: str, command: Sequence[str]) -> str | None:
    """Return the first static program that the command starts, also behind a launcher, a wrapper, or `sh -c`."""
    behind = (shutil.which(word) for word in programs_of(command)[1:])
    return next((one for one in (program, *behind) if one is not None and is_static(one)), None)


def is_static(program: str) -> bool:
    """Return True if no library can be loaded into the program or its interpreter, so that its calls are not seen."""
    path = Path(program)
    for _ in range(MOST_SCRIPTS):
        interpreter = elf.interpreter_of(path)
        if interpreter is None:
            break
        path = interpreter
    found = elf.read_elf(path)
    # The dynamic loader has no loader itself, but loads the program that it is given, with its libraries.
    return found is not None and found.static and not path.name.startswith(("ld-", "ld.so"))


def preloading(page: Path) -> dict[str, str]:
    """Return the variables by which the loader loads the library. Raises HocketError if it could not find it."""
    library = paths.prefix() / "lib" / "hocket" / "libhocket-forward.so"
    if not library.exists():
        raise HocketError(f"no libhocket-forward at {library}; is hocket built and installed?")
    if set(" :") & set(str(library)):
        raise HocketError(f"{library}: the loader takes no library from a path with blanks or colons")
    preloaded = os.environ.get("LD_PRELOAD", "")
    checks = os.environ.get("ASAN_OPTIONS", "")
    return {
        "LD_PRELOAD": f"{library}:{preloaded}" if preloaded else str(library),
        "HOCKET_FORWARD": str(page),
        # A program with AddressSanitizer ends at once if its library is not the first one. It finds libc's functions
        # behind ours as well. The user's own setting comes later, and counts.
        "ASAN_OPTIONS": "verify_asan_link_order=0" + (f":{checks}" if checks else ""),
    }


@contextlib.contextmanager
def _served(program: str, how: How, elsewhere: dict[str, int]) -> Iterator[ForwardPage]:
    """Provide servers and the page, which follows the server map while the program runs.

    `elsewhere` gets what other nodes have carried out.
    """
    if how.on:
        relay.check_coherent(how.mount, vouched=how.coherent)
    try:
        str(how.mount).encode()
    except UnicodeEncodeError as error:
        raise HocketError(f"--mount {how.mount}: servers cannot serve a directory whose name is not UTF-8") from error
    with contextlib.ExitStack() as stack:
        bus, _ = daemon.connect_or_start(["--exit-when-idle", str(IDLE_S)], paths.server_socket_path())
        stack.enter_context(bus)
        shared = stack.enter_context(SharedServers(bus))
        usable: dict[str, Any] = {}
        sockets: Callable[[str], list[str]] = partial(_sockets, mount=how.mount)
        if how.on:
            shared.add(relay.start_missing(bus, how.on, how.mount))
            sockets = stack.enter_context(_relayed(how, elsewhere))
        else:
            usable = {name: one for name, one in io_servers.running(bus).items() if _serves(one, how.mount)}
            missing = max(0, (how.servers or 1) - len(usable))
            if missing > 0:
                started = io_servers.start(bus, missing, ["--dir", str(how.mount)])
                shared.add({name: one for name, one in io_servers.running(bus).items() if name in started})
        path = paths.make_runtime_dir() / f"forward-{os.getpid()}-{time.time_ns()}"
        page = ForwardPage(path, str(how.mount), how.name, how.group, how.fails, how.collects, bool(how.on))
        stack.callback(page.remove)
        member = stack.enter_context(Bus.connect(paths.server_socket_path()))
        name = _join(member, program, how)
        if how.servers is not None and how.servers < len(usable):
            member.send("SET_SERVER", server=str(how.servers), action="assign", for_application=name)
        first = threading.Event()
        # The thread takes no signal, because the main thread waits for those of the program (supervise.py).
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        threading.Thread(target=_follow, args=(member, page, sockets, first), daemon=True).start()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if not first.wait(ANSWER_S):
            raise HocketError("hocketd sent no server map; is it stopped? see 'hocket daemon status'")
        yield page
        with contextlib.suppress(BusError):
            member.send("BYE")


def _serves(server: Mapping[str, Any], mount: Path) -> bool:
    """Return True if the server runs on this node, and its files are on the file system of the directory."""
    socket = forward_socket(server["addresses"])
    try:
        same = Path(server["directory"]).stat().st_dev == mount.stat().st_dev
    except OSError:
        return False
    return server["state"] == "up" and socket is not None and Path(socket).exists() and same


def forward_socket(addresses: str) -> str | None:
    """Return the path at which a server with these addresses takes forwarded calls; None: it has none on this node."""
    path = io_servers.local_path(addresses)
    return path.removesuffix(".sock") + SOCKET_SUFFIX if path and path.endswith(".sock") else None


def _join(member: Bus, program: str, how: How) -> str:
    """Make this run an application of hocketd, which sends it its server map. Return its name there."""
    member.send(
        "HELLO",
        job=f"forward-{os.uname().nodename}-{os.getpid()}-{time.time_ns()}",
        application_asked=how.name,
        program=program,
        mpi="",
        version=__version__,
        pid=os.getpid(),
        processes=how.processes,
        forwards=not how.on,  # else the application has servers of its node only
        compute_nodes=how.nodes,
        curve=" ".join(f"{servers}:{rate}" for servers, rate in sorted(how.bandwidth.items())),
        file_system=target_of(str(how.mount)),
    )
    welcome = member.answer(ANSWER_S)
    if welcome is None or welcome.type != "WELCOME":
        raise HocketError("hocketd did not answer; is it stopped? see 'hocket daemon status'")
    return str(welcome["application_given"])


def _follow(member: Bus, page: ForwardPage, sockets: Callable[[str], list[str]], first: threading.Event) -> None:
    """Write each server map to the page. Processes use it from their next call on, so it is adopted at once."""
    with contextlib.suppress(BusError, OSError, ValueError):  # the connection, or the page, was closed
        while (command := member.answer()) is not None:
            if command.type != "SERVER_MAP":
                continue
            direct = bool(command.get("direct", False))
            page.set_servers([] if direct else sockets(str(command["text"])), direct=direct)
            first.set()
            member.send("MAP_ADOPTED", epoch=command["epoch"])


@contextlib.contextmanager
def _relayed(how: How, elsewhere: dict[str, int]) -> Iterator[Callable[[str], list[str]]]:
    """Provide a function that returns the relay's sockets for the servers of a map that are on the nodes of --on.

    If there are none any more, the former ones stay: the relay leaves calls to the program, and knows what to sync.
    """
    used: list[str] = []
    with Bus.connect(paths.server_socket_path()) as bus:
        sender = relay.Relay(how.mount, fails=how.fails)

        def sockets(text: str) -> list[str]:
            there = relay.servers_on(bus, how.on, how.mount)
            found = []
            for line in text.splitlines():
                name, _directory, addresses = line.split(" ", 2)
                if name not in there or addresses.endswith(" slow:"):
                    continue
                try:
                    found.append(sender.socket_for(addresses))
                except HocketError as error:
                    tell(f"{name} is not used: {error}")
            used[:] = found or used
            return list(used)

        try:
            yield sockets
        finally:
            elsewhere.update(sender.end())


def _sockets(text: str, mount: Path) -> list[str]:
    """Return the sockets of the servers in the text of a map (src/core/event/server_map.hpp) that this run may use."""
    found = []
    for line in text.splitlines():
        _name, directory, addresses = line.split(" ", 2)
        if addresses.endswith(" slow:"):
            continue
        server = {"state": "up", "directory": unquote(directory), "addresses": addresses}
        socket = forward_socket(addresses)
        if socket is not None and _serves(server, mount):
            found.append(socket)
    return found


class SharedServers:
    """The servers that runs have started, in a file of the runtime directory. The last run ends them.

    Each run holds a lock of the file, which ends with its process: a later run ends the servers of one that was killed.
    The daemon is not asked, because it may have ended.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._file = (paths.make_runtime_dir() / "forward.servers").open("a+")

    def __enter__(self) -> SharedServers:
        fcntl.flock(self._file, fcntl.LOCK_SH)
        return self

    def add(self, servers: Mapping[str, Mapping[str, Any]]) -> None:
        for name, one in servers.items():
            here = io_servers.is_here(one)
            self._file.write(f"{one['pid']} {name}\n" if here else f"0 {name} {one['instance']}\n")
        self._file.flush()

    def __exit__(self, *_: object) -> None:
        with self._file, contextlib.suppress(BlockingIOError):  # another run uses them
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for page in paths.runtime_dir().glob("forward-*"):  # of runs that were killed
                page.unlink(missing_ok=True)
            self._file.seek(0)
            lines = self._file.readlines()
            # Servers that do not end, or cannot be reached now, stay in the file: a later run ends them.
            left = self._stop_here([line for line in lines if len(line.split()) == 2])
            left += self._stop_elsewhere([line for line in lines if len(line.split()) == 3])
            self._file.truncate(0)
            self._file.writelines(left)

    def _stop_here(self, lines: list[str]) -> list[str]:
        """Stop the servers of this node. Return the lines that are still needed."""
        named = {words[1]: {"pid": int(words[0])} for words in map(str.split, lines)}
        servers = {name: one for name, one in named.items() if _is_server(one["pid"], name)}
        try:
            io_servers.stop(servers)
        except HocketError:
            return [f"{one['pid']} {name}\n" for name, one in servers.items() if _is_server(one["pid"], name)]
        return []

    def _stop_elsewhere(self, lines: list[str]) -> list[str]:
        """Do the same with those of other nodes."""
        instances = {line.split()[2] for line in lines}
        if not instances:
            return []
        try:
            running = io_servers.running(self._bus)
            io_servers.stop({name: one for name, one in running.items() if one.get("instance") in instances}, self._bus)
        except (HocketError, OSError):
            return lines
        return []


def _is_server(pid: int, name: str) -> bool:
    """Return True if the process is a server of this name and runtime directory, and not a later one of that pid."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[0].endswith(b"hocket-server") and {name.encode(), os.fsencode(paths.runtime_dir())} <= set(words)


def sentences(counts: Mapping[str, int]) -> list[str]:
    """Return what --check says."""
    if not counts:
        return ["nothing was forwarded: the program ran directly"]
    processes = counts["processes"]
    many = "1 process" if processes == 1 else f"{processes} processes"
    lines = [f"forwarded {counts['calls']} calls, {quantity(counts['bytes'])}, of {many}"]
    for key, text in REASONS.items():
        if counts[key] > 0:
            lines.append(f"{counts[key]} {text}")
    return lines


def about_static(outcome: Outcome) -> str:
    """Return what is said of static programs that ran directly; "" if none is known."""
    number = outcome.counts.get("static", 0)
    if number == 0:
        return ""
    name = outcome.first_static or "a program without a name"
    which = f"1 static program ran directly ({name})"
    if number > 1:
        which = f"{number} static programs ran directly (the first: {name})"
    return f"{which}: no library can be loaded there, but --by fuse forwards such programs, too"


REASONS = {
    "too_large": "calls of more than 64 MiB were made directly",
    "limited": "calls were made directly, because the size of files is limited (RLIMIT_FSIZE)",
    "no_slot": "calls were made directly, because their process had no free connection, descriptor, or memory for one",
    "unaligned": "calls of direct I/O (O_DIRECT) were made directly, because their memory is not aligned",
    "unsafe": "calls were made directly, in children of vfork or threads that may be cancelled at any time",
    "no_server": "calls found no server",
    "unserved": "calls were made directly, because the application was given no server",
    "mapped": "mappings of forwarded files: what the program loads and stores there is not forwarded",
    "redone": "calls were made again after a server had ended",
    "lost": "calls failed with EIO, because a server ended and nobody knows if it had made them",
    "unpatched": "processes in which C's streams were not forwarded, because libc's code could not be changed",
    "collected": "of the forwarded calls were writes that were collected first (close-to-open)",
    "sandboxed": "processes limited their system calls (seccomp) and went on directly",
}
