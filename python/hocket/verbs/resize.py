"""hocket resize: changes the number of processes of a running application."""

from __future__ import annotations

import argparse
import re
import select
import signal
import socket
from types import TracebackType

from hocket.bus import Bus, Event
from hocket.errors import HocketError, UsageError
from hocket.reconfigurations import Reconfiguration, seconds_of
from hocket.reconfigure.methods import check_names
from hocket.tables import printable
from hocket.verbs import help_text, print_json

EXAMPLES = """
examples:
  hocket resize jacobi 4                        # become 4 processes at the next control point
  hocket resize jacobi +2                       # two more than it has
  hocket resize jacobi -1 --at 500              # one fewer, when 500 iterations are done
  hocket resize jacobi 4 --on "node1:2 node1:3" # places of its two new processes
  hocket resize jacobi -2 --leave node2         # two fewer, on that node if MPI permits it
  hocket resize jacobi 4 --methods baseline/p2p # how: see docs/malleable.md, "Which method"
  hocket resize jacobi 4 --json                 # all figures, times in nanoseconds

The command waits until the application has been resized. It reports for how long the application was stopped, and in
brackets for how much of a step it continued to compute. If the resize is impossible, nothing is changed, one line gives
the reason, and the exit code is 1. Ctrl-C, SIGTERM or --timeout withdraw the resize if the application has not begun; a
resize that has begun continues. The time limit is ten minutes; --timeout changes it, and with --at there is none.
'hocket ls' shows which applications are malleable, and how many processes they have.
"""
MIB = 1 << 20
PATIENCE_S = 600.0  # default time limit in seconds for the next control point
WITHDRAW_S = 5.0  # time limit in seconds for the answer to a withdrawal


def add(parsers: argparse._SubParsersAction) -> None:
    words = help_text("change the number of processes of a running, malleable application", EXAMPLES)
    parser = parsers.add_parser("resize", usage="hocket resize [options] APP N|+N|-N", **words)
    parser.add_argument("application", metavar="APP", help="its name, as 'hocket ls' shows it")
    parser.add_argument("size", metavar="N|+N|-N", help="new number of processes; with a sign: how many more or fewer")
    parser.add_argument(
        "--at", type=int, default=0, metavar="ITERATION", help="resize when this many iterations are done"
    )
    parser.add_argument(
        "--on", default="", metavar="PLACES", help="NODE or NODE:CORE for each new process, separated by spaces"
    )
    parser.add_argument(
        "--leave",
        default="",
        metavar="NODES",
        help="when it shrinks: NODE or NODE=PROCESSES for each node to leave first, separated by spaces",
    )
    parser.add_argument(
        "--methods",
        default="",
        metavar="NAME/NAME",
        help="how this resize is made, e.g. merge/single/collective; the job's settings decide what is not named",
    )
    parser.add_argument("--json", action="store_true", help="print the record of the reconfiguration as JSON")
    how_long = f"withdraw it if it has not begun within S seconds (default: {PATIENCE_S:g}; with --at: never)"
    parser.add_argument("--timeout", type=float, metavar="S", help=how_long)
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    name = arguments.application
    processes, relative = size_of(arguments.size)
    if arguments.at < 0:
        raise UsageError(f"--at {arguments.at}: iterations are counted from 1")
    if arguments.timeout is not None and not arguments.timeout > 0:
        raise UsageError(f"--timeout {arguments.timeout:g}: give more than 0 seconds")
    timeout = arguments.timeout or (None if arguments.at else PATIENCE_S)
    if arguments.methods:
        check_names(arguments.methods)
    wish = {"processes": processes, "relative": relative, "at_iteration": arguments.at, "places": arguments.on}
    wish |= {"methods": arguments.methods, "leave": arguments.leave}
    code, within = 1, ""
    with Bus.connect() as bus, Interrupts() as interrupts:
        bus.send("RESIZE", application_asked=name, **wish)
        answer = interrupts.answer(bus, timeout)
        if answer is None:
            code = interrupts.exit_code()
            within = "" if interrupts.caught else f" within {timeout:g} s"
            answer = withdraw(bus, interrupts, f"'{printable(name)}'", code)
    if arguments.json:
        print_json({"application": name, **answer.fields})
    if not answer.get("done", False):
        reason = printable(str(answer.get("reason", ""))) or "no reason was given"
        text = f"'{printable(name)}' was not resized{within} and continues with {answer['sources']} processes: {reason}"
        raise failure(text, code)
    if not arguments.json:
        print(text_of(answer, name))
    return 0


class Interrupts:
    """SIGINT and SIGTERM as events beside the bus: they do not interrupt the operation under way. Main thread only."""

    def __enter__(self) -> Interrupts:
        self.caught = 0  # number of the first signal
        self._read, self._write = socket.socketpair()
        self._write.setblocking(False)
        self._fd = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, self._catch) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._fd)
        self._read.close()
        self._write.close()

    def _catch(self, number: int, _: object) -> None:
        self.caught = self.caught or number

    def answer(self, bus: Bus, timeout: float | None) -> Event | None:
        """Return the daemon's answer, or None after `timeout` seconds or a signal since the last call."""
        answer = bus.answer(0)
        if answer is None:
            ready = select.select([bus, self._read], [], [], timeout)[0]
            if self._read in ready:
                self._read.recv(64)
            answer = bus.answer(0)
            if answer is None and ready == [bus]:  # a part of a frame: the rest follows at once
                answer = bus.answer(timeout)
        return answer

    def exit_code(self) -> int:
        return 128 + self.caught if self.caught else 1


def withdraw(bus: Bus, interrupts: Interrupts, name: str, code: int) -> Event:
    """Withdraw the resize and return its result. Raises HocketError if it cannot be withdrawn, or not yet."""
    bus.send("WITHDRAW_RESIZE")
    answer = interrupts.answer(bus, WITHDRAW_S)
    if answer is None:
        raise failure(f"{name} will withdraw the resize at its next control point", code)
    if answer.type == "WITHDRAW_RESIZE":
        raise failure(
            f"{name} has begun to resize: that continues, and cannot be withdrawn ('hocket ls' shows it)", code
        )
    return answer


def failure(text: str, code: int) -> HocketError:
    error = HocketError(text)
    error.exit_code = code
    return error


def size_of(text: str) -> tuple[int, bool]:
    """Return the number, and True if it is relative. Raises UsageError for any other text."""
    if not re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII):
        raise UsageError(f"'{text}' is no number of processes; write N, +N or -N")
    return int(text), text[0] in "+-"


def text_of(event: Event, name: str) -> str:
    """Return what the resize took, in three lines."""
    one = Reconfiguration.of(event, name)
    change = f"{one.sources} → {one.targets} processes at iteration {one.iteration}"
    parts = [
        f"spawn {seconds_of(one.spawning_ns, one.spawning_stopped_ns)}",
        f"constant data {seconds_of(one.constant_ns, one.constant_stopped_ns)}",
        f"variable data {one.variable_ns / 1e9:.3f}",
        f"resume {one.resuming_ns / 1e9:.3f}",
    ]
    counts = (("started", one.started), ("woken", one.woken), ("ended", one.ended), ("put to sleep", one.put_to_sleep))
    moved = [f"{mebibytes(one.bytes_moved)} moved", f"{mebibytes(one.bytes_kept)} kept"]
    moved += [f"{count} {what}" for what, count in counts if count]
    if len(one.nodes.split()) > 1 or (one.left and not set(one.left.split()) <= {one.nodes.split("=")[0]}):
        moved.append(f"runs on {printable(one.nodes)}")
    stopped = f"stopped for {one.stopped_ns / 1e9:.3f} s, {one.wait_ns / 1e9:.3f} s after the request"
    return f"{printable(name)}: {change}: {stopped}\n  {one.method}: {', '.join(parts)} s\n  {', '.join(moved)}"


def mebibytes(count: int) -> str:
    return f"{count / MIB:.0f} MiB" if count >= 10 * MIB or not count else f"{count / MIB:.2f} MiB"
