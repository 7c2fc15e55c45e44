"""Starts and stops this user's I/O servers (hocket-server), and drains them from the server map."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import re
import secrets
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hocket import paths
from hocket.bus import Bus
from hocket.daemon import is_alive, spawn
from hocket.errors import HocketError, UsageError

START_LIMIT_S = 15.0
NAME_ATTEMPTS = 8  # servers of other nodes may take the names meanwhile
STOP_LIMIT_S = 60.0  # longer, because a server first writes out what it holds
# The orders in which a server may carry out accesses: algorithm_names of src/core/request_scheduler/.
SCHEDULERS = (
    "fifo", "sjf", "to-agg", "aioli", "mlf", "hbrr", "twins", "wfq", "job-fair", "user-fair", "size-fair",
    "user-job-fair", "user-size-fair",
)  # fmt: skip
LOCAL_ADDRESS = re.compile(r"unix:(/.*?)(?:#([0-9a-f]{16})@([0-9a-f]{16}))?")  # src/data/transport/address.hpp
POLL_S = 0.05  # polling interval: no event reports the end of a process that is not our child


class NameTakenError(HocketError):
    """A server's name is that of another one, perhaps on another node."""


def log_of(name: str) -> Path:
    return paths.runtime_dir() / "servers" / f"{name}.log"


def running(bus: Bus) -> dict[str, dict[str, Any]]:
    """Return the fields of each IO_SERVER by name, without the lost servers."""
    return {one["server"]: one for one in bus.list().servers if one["state"] != "lost"}


def node_number() -> str:
    """Return the number of this node in addresses of servers (src/core/base/node_number.hpp)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().replace("-", "")[:16]
    except OSError:
        return ""


def local_path(addresses: str) -> str | None:
    """Return the Unix socket in the addresses of a server; None if it is on another node, or there is none."""
    for address in addresses.split():
        if found := LOCAL_ADDRESS.fullmatch(address):
            return found[1] if found[3] in (None, "", node_number()) else None
    return None


def is_here(server: Mapping[str, Any]) -> bool:
    """Return True if the server runs on this node: the lock of its name has its instance."""
    path, instance = local_path(server.get("addresses", "unix:/")), server.get("instance", "")
    try:
        return path is not None and (not instance or Path(path).with_suffix(".lock").read_text() == instance)
    except OSError:
        return False


def servers_text(application: Mapping[str, Any]) -> str:
    """Return the servers that an application has of its own, for people; "" if it uses all."""
    given, names = application.get("given_servers", -1), application.get("servers", "")
    if given == 0:
        names = "no I/O server"
    elif names and application.get("forwards"):
        names = f"{given} {'server' if given == 1 else 'servers'}: {names}"
    expected = application.get("expected_bytes_per_s", 0)
    return names + (f" ({expected / 1e6:.1f} MB/s expected)" if expected else "")


def start(bus: Bus, count: int, options: Sequence[str]) -> list[str]:
    """Start `count` servers and wait until all are in the server map. Return their names.

    `options` go to hocket-server. If a server does not come up, all are stopped, and HocketError reports its last
    message.
    """
    program = paths.hocket_server()
    if not program.exists():
        raise HocketError(f"no hocket-server at {program}; is hocket built and installed? (HOCKET_PREFIX says where)")
    with _one_at_a_time():
        os.environ.update(paths.target_names())  # for the servers
        taken = set(running(bus))
        for _ in range(NAME_ATTEMPTS):
            free = (name for number in itertools.count(1) if (name := f"s{number}") not in taken)
            names = list(itertools.islice(free, count))
            try:
                return _start_these(bus, program, names, options)
            except NameTakenError as error:
                taken |= set(names)  # those that came end now, and have their names until then
                refusal = error
        raise refusal


def _start_these(bus: Bus, program: Path, names: list[str], options: Sequence[str]) -> list[str]:
    come = bus.subscribe("SERVER")
    pids = {name: _start_one(program, name, options) for name in names}
    try:
        _wait_until_come(bus, come, pids)
    except BaseException:
        for pid in pids.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        raise
    finally:
        come.close()
    return names


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Hold a lock, so that two concurrent starts do not choose the same names."""
    directory = paths.make_runtime_dir() / "servers"
    directory.mkdir(mode=0o700, exist_ok=True)
    with (directory / "start.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _start_one(program: Path, name: str, options: Sequence[str]) -> int:
    with log_of(name).open("w") as log:
        command = [str(program), "--name", name, "--runtime-dir", str(paths.runtime_dir()), *options]
        return spawn(command, log.fileno())


def _wait_until_come(bus: Bus, come: Any, pids: dict[str, int]) -> None:
    missing = set(pids)
    deadline = time.monotonic() + START_LIMIT_S
    while missing:
        if come.wait(POLL_S) is not None:
            # One of another node may have taken the name first.
            missing -= {name for name, one in running(bus).items() if is_here(one)}
            continue
        for name in missing:
            if "hocketd refuses: " in (said := _last_words(name)) and "choose another name" in said:
                raise NameTakenError(f"hocket-server {name}: {said.removeprefix('without hocketd: ')}")
            if not is_alive(pids[name]):
                raise HocketError(f"hocket-server {name} did not start: {_last_words(name)}")
        if time.monotonic() > deadline:
            late = ", ".join(sorted(missing))
            raise HocketError(f"{late}: not in the map after {START_LIMIT_S:g} s; see {log_of(min(missing))}")


def start_on(bus: Bus, nodes: Sequence[str], count: int, options: Sequence[str]) -> dict[str, str]:
    """Start `count` servers on each of these nodes, and wait until all are in the server map.

    The daemons of the nodes start them, with `options` of hocket-server. Return the node of each, by name. If a server
    does not come up, all are stopped, and HocketError has its last message.
    """
    token = secrets.token_hex(8)
    answers = bus.subscribe(f"token={token}")
    started: dict[str, tuple[str, int]] = {}
    try:
        for node in nodes:
            for _ in range(count):
                bus.send("START_SERVER", on_node=node, arguments="\n".join(options), token=token)
        bus.list()  # a refusal arrives before this answer
        _await_joined(bus, answers, started, len(nodes) * count)
    except BaseException:
        _stop_started(bus, answers, started)
        raise
    finally:
        answers.close()
    return {name: node for name, (node, _) in sorted(started.items())}


def _await_joined(bus: Bus, answers: Any, started: dict[str, tuple[str, int]], count: int) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        answer = answers.wait(POLL_S)
        if answer is not None and answer.type == "SERVER_FAILED":
            raise HocketError(f"{answer['server']} on {answer['on_node']} did not start: {answer['reason']}")
        if answer is not None:
            started[answer["server"]] = (answer["on_node"], answer["pid"])
        elif len(started) == count and _have_joined(bus, started):
            return
        elif time.monotonic() > deadline:
            late = sorted(set(started) - set(running(bus))) or ["no answer of the nodes' daemons"]
            raise HocketError(f"{', '.join(late)}: not in the map after {START_LIMIT_S:g} s; see servers/*.log there")


def _have_joined(bus: Bus, started: Mapping[str, tuple[str, int]]) -> bool:
    there = running(bus)
    return all(name in there and (there[name]["on_node"], there[name]["pid"]) == one for name, one in started.items())


def _stop_started(bus: Bus, answers: Any, started: dict[str, tuple[str, int]]) -> None:
    """End what was started. Those that are being started now are not waited for longer than a moment."""
    with contextlib.suppress(HocketError):
        while (answer := answers.wait(10 * POLL_S)) is not None:
            if answer.type == "SERVER_STARTED":
                started[answer["server"]] = (answer["on_node"], answer["pid"])
        for name in started:
            bus.send("STOP_SERVER", server=name)
        bus.list()


def _last_words(name: str) -> str:
    lines = log_of(name).read_text(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("hocket-server: ") if lines else f"it said nothing; see {log_of(name)}"


def chosen(bus: Bus, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the running servers of these names, or all if `names` is empty. Raises UsageError for an unknown name."""
    known = running(bus)
    for name in names:
        if name not in known:
            raise UsageError(f"no server is called '{name}'; 'hocket servers' lists them")
    return {name: known[name] for name in dict.fromkeys(names)} or known


def drain(bus: Bus, names: Iterable[str], timeout: float) -> None:
    """Take servers out of the server map, and wait until nothing needs them.

    That is when no running application uses an older map, and the servers keep no data sets: they move them to servers
    that stay. Raises HocketError after `timeout` seconds, and says what is missing. The servers stay out of the map.
    It also raises HocketError if a server ends or is added again meanwhile.
    """
    names = list(names)
    passing = bus.subscribe("")  # from before the change, so that no event of it is missed
    try:
        for name in names:
            bus.send("SET_SERVER", server=name, action="drain")
        deadline = time.monotonic() + timeout
        while missing := _users(bus, names, timeout):
            if not _wait_for_change(passing, deadline):
                raise HocketError(missing)
    finally:
        passing.close()


def _users(bus: Bus, names: list[str], timeout: float) -> str:
    """Return what still needs one of these servers, which are drained; "" if nothing does."""
    listing = bus.list()  # a refusal arrives before this answer
    drained = [one for one in listing.servers if one["server"] in names]
    epoch = max((one["epoch"] for one in drained), default=0)
    if late := [one["application"] for one in listing.applications if 0 < one["map_epoch"] < epoch]:
        they = f"'{late[0]}' has" if len(late) == 1 else ", ".join(f"'{one}'" for one in late) + " have"
        return (
            f"{', '.join(names)}: out of the map since epoch {epoch}, which {they} not adopted within "
            f"{timeout:g} s: an application does so at its next collective access"
        )
    for one in drained:
        if one["state"] in ("up", "slow"):
            raise HocketError(f"{one['server']}: somebody has added it again; 'hocket servers' shows its state")
        if one["state"] == "lost":
            raise HocketError(f"{one['server']}: it has ended before it was drained; data sets that it kept are lost")
        if one.get("moves_data_sets"):
            kept = one["data_sets_text"] or "not known"
            return (
                f"{one['server']}: out of the map, and still keeps data sets after {timeout:g} s: {kept}; readers find "
                "them there, and they are lost if it ends"
            )
    return ""


def _wait_for_change(passing: Any, deadline: float) -> bool:
    """Wait until something has happened that a drain may wait for. Return False at the deadline."""
    awaited = ("MAP_ADOPTED", "DATA_SETS_LEFT", "SET_SERVER", "SERVER_ENDED", "BYE", "LOST")
    while (left := deadline - time.monotonic()) > 0:
        event = passing.wait(left)
        if event is not None and event.type in awaited:
            return True
    return False


def stop(servers: Mapping[str, Mapping[str, Any]], bus: Bus | None = None) -> None:
    """Stop servers in order and wait for their end. Afterwards the files contain what they held.

    Those of other nodes are stopped through `bus`, by the daemons there.
    """
    here = {name: one for name, one in servers.items() if is_here(one) and one["pid"] > 0}
    elsewhere = {name: one for name, one in servers.items() if name not in here}
    if elsewhere and bus is None:
        raise HocketError(f"{min(elsewhere)} runs where its process cannot be seen; end it there")
    for name, one in elsewhere.items():
        bus.send("STOP_SERVER", server=name, instance=one.get("instance", ""))  # type: ignore[union-attr]
    _stop_here(here)
    if elsewhere and bus is not None:
        _await_gone(bus, elsewhere)


def _await_gone(bus: Bus, servers: Mapping[str, Mapping[str, Any]]) -> None:
    deadline = time.monotonic() + STOP_LIMIT_S
    while True:
        now = running(bus)  # a refusal arrives before this answer
        left = [name for name, one in servers.items() if now.get(name, {}).get("instance") == one["instance"]]
        if not left:
            return
        if time.monotonic() > deadline:
            where = servers[left[0]].get("on_node", "its node")
            raise HocketError(f"{', '.join(left)}: not ended {STOP_LIMIT_S:g} s after SIGTERM; see its log on {where}")
        time.sleep(POLL_S)


def _stop_here(servers: Mapping[str, Mapping[str, Any]]) -> None:
    for one in servers.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(one["pid"], signal.SIGTERM)
    deadline = time.monotonic() + STOP_LIMIT_S
    while left := [name for name, one in servers.items() if is_alive(one["pid"])]:
        if time.monotonic() > deadline:
            raise HocketError(
                f"{', '.join(left)}: not ended {STOP_LIMIT_S:g} s after SIGTERM; see {log_of(left[0])}, or kill -9 "
                f"{servers[left[0]]['pid']}"
            )
        time.sleep(POLL_S)
