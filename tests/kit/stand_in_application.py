"""A stand-in for a process of a malleable application, without MPI, started by a test or, to join, by hocketd.

Arguments: the number of processes that it requests from hocketd, and what these do: "ready", "exit", "signal" or
"silent". It prints what it receives and what it sees as JSON, one object a line. It ends when its stdin ends; a process
that joins ends when the daemon does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from hocket.bus import Bus, ConnectionEndedError

SHOWN = ("PMI", "HYDI", "MPI", "OMPI", "HOCKET_J", "MINE")  # prefixes of the environment variables to print


def say(**what: object) -> None:
    """Print one line in one write, so that a pipe does not mix it with the lines of other processes."""
    os.write(sys.stdout.fileno(), json.dumps(what).encode() + b"\n")


def hello(bus: Bus) -> None:
    me = {"program": sys.executable, "mpi": "mpich", "version": "t", "pid": os.getpid(), "processes": 1}
    bus.send("HELLO", job=os.environ["HOCKET_JOB"], application_asked="app", **me)
    assert bus.answer(20).type == "WELCOME"


def ask(count: int) -> None:
    with Bus.connect() as bus:
        hello(bus)
        bus.send("MALLEABLE", processes=1, iteration=0, sleeping=0, method="merge join")
        # hocketd trusts neither pid nor app here: the agent stamps the sender.
        places = os.environ.get("PLACES", "")
        bus.send("START_PROCESSES", request=7, count=count, port="the port$1 #", pid=1, app=99, places=places)
        answer = bus.answer(30)
        say(told=answer.type if answer else None, **(answer.fields if answer else {}))
        for command in sys.stdin:
            if command == "done\n":
                bus.send("RECONFIGURATION", request=0, done=True, sources=1, targets=1 + count)
            if command == "stop\n":
                bus.send("STOP_PROCESSES", request=7)
            bus.list()
            say(took=command.strip())


def join(kind: str) -> None:
    request, port = os.environ["HOCKET_JOIN"].split(" ", 1)
    if kind == "exit":
        sys.exit(3)
    if kind == "signal":
        os.kill(os.getpid(), signal.SIGKILL)
    mask = os.umask(0)
    seen = {
        "joined": os.getpid(),
        "cores": sorted(os.sched_getaffinity(0)),
        "port": port,
        "cwd": str(Path.cwd()),
        "arguments": sys.argv[1:],
        "umask": mask,
    }
    blocked = [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])]
    descriptors = sorted(int(one.name) for one in Path("/proc/self/fd").iterdir())[:-1]  # the last is iterdir's
    environment = {key: value for key, value in os.environ.items() if key.startswith(SHOWN)}
    say(**seen, session=os.getsid(0), blocked=blocked, descriptors=descriptors, environment=environment)
    with Bus.connect() as bus:
        hello(bus)
        if kind == "ready":
            bus.send("PROCESS_READY", request=int(request))
        try:
            bus.answer(None)
        except ConnectionEndedError:
            sys.stdin.read()  # ends at once: stdin is /dev/null
            say(went_on=os.getpid())


if __name__ == "__main__":
    join(sys.argv[2]) if "HOCKET_JOIN" in os.environ else ask(int(sys.argv[1]))
