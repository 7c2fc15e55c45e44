"""What the Slurm job around this process holds, and how it changes while its program runs.

`hocket run --malleable` is the tool of its application: it tells hocketd which nodes the job has (HELD_NODES). If the
user wants that, it also does what hocketd asks (CHANGE_ALLOCATION): it gives nodes back to Slurm that the application
has left, and asks Slurm for more by a second job. Both jobs' nodes are the application's. It has the rights of the
job's user, lives as long as the launcher, and never waits for Slurm or hocketd without a limit.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hocket import mpi
from hocket.bus import Bus, BusError, Event, RefusedError
from hocket.slurm import (
    ANSWER_S,
    Nodes,
    SilentError,
    SlurmError,
    busy_nodes,
    command,
    hocket_srun,
    name_of_further,
    nodes_of,
    request_nodes,
    settings_of,
)

STEPS_END_S = 30.0  # time limit of the end of steps on a node that is given back
GRANT_S = 300.0  # time limit of a request for nodes
POLL_S = 0.5
RECONNECT_S = 2.0
CLOSE_S = 5.0
LONGEST_TEXT = 8000  # bytes that hocketd takes of the nodes
NODES_FILE = "HOCKET_SLURM_NODES"  # of hocket-srun


class Keeper:
    """Keeps hocketd informed about a job, and carries out what hocketd asks, in a thread. Close it at the end."""

    def __init__(self, number: str, job: mpi.Job, limits: tuple[int, int], say: Callable[[str], None]) -> None:
        """Ask Slurm what the job holds. `limits`: fewest and most nodes; 0: it does not change. Raises SlurmError."""
        self._number = number
        self._least, self._most = limits
        self._say = say
        self._held: dict[str, Nodes] = {number: nodes_of(number)}  # by job: this one and those for further nodes
        self._first_node_alone = job.mpi != mpi.MPICH  # Open MPI starts new processes there
        self._is_submitting = False
        self._may_have_more = False  # jobs for further nodes, whose number Slurm has not told
        self._said_once: set[str] = set()
        self._job = ""  # as HELLO names it
        self._directory = tempfile.mkdtemp(prefix="hocket-slurm-")
        self._file = Path(self._directory) / "nodes"
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._write()

    def environment(self) -> dict[str, str]:
        """Return the variables for the launcher."""
        if not self._least:
            return {}
        return {"HYDRA_LAUNCHER_EXEC": str(hocket_srun()), NODES_FILE: str(self._file)}

    def start(self, job: str) -> None:
        """Tell hocketd what the job holds, and begin to listen. `job`: as HELLO names it."""
        self._job = job
        bus: Bus | None = None
        with contextlib.suppress(BusError):
            bus = Bus.connect()
            self._report(bus)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
        try:
            self._thread = threading.Thread(target=self._listen, args=(bus,), daemon=True)
            self._thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def close(self) -> None:
        """End the thread within a time limit, and the jobs for further nodes."""
        self._ended.set()
        if self._thread is not None:
            # A job that is being submitted has no number yet by which it could be cancelled.
            self._thread.join(ANSWER_S + CLOSE_S if self._is_submitting else CLOSE_S)
        for number in [one for one in list(self._held) if one != self._number]:
            self._cancel(number)
        if self._may_have_more or self._is_submitting:
            self._may_have_more = False
            with contextlib.suppress(SlurmError):
                command("scancel", f"--name={name_of_further(self._number)}")
        shutil.rmtree(self._directory, ignore_errors=True)

    # ---- in the thread ----

    def _listen(self, bus: Bus | None) -> None:
        while not self._ended.is_set():
            try:
                if bus is None:
                    bus = Bus.connect()
                    self._report(bus)
                while not self._ended.is_set():
                    asked = bus.answer(POLL_S)
                    if asked is not None and asked.type == "CHANGE_ALLOCATION":
                        self._change(bus, asked)
            except RefusedError as error:
                self._say_once(f"hocketd does not take what job {self._number} holds: {error}")
            except BusError:
                if bus is not None:
                    bus.close()
                bus = None
                self._ended.wait(RECONNECT_S)
        if bus is not None:
            bus.close()

    def _say_once(self, line: str) -> None:
        if line not in self._said_once:
            self._said_once.add(line)
            self._say(line)

    def _nodes(self) -> Nodes:
        return {name: cores for nodes in self._held.values() for name, cores in nodes.items()}

    def _report(self, bus: Bus, refusal: str = "", waited_s: float = 0) -> None:
        """Tell hocketd what the jobs hold. `waited_s`: since it asked for more; 0: it did not."""
        own = os.uname().nodename
        nodes = self._nodes()
        if self._first_node_alone:
            nodes = {own: nodes[own]} if own in nodes else {}
        if os.environ.get("SLURMD_NODENAME", own) != own:  # programs know nodes by other names than Slurm
            nodes = {}
        text = " ".join(f"{name}={cores}" for name, cores in nodes.items())
        if len(text) > LONGEST_TEXT:
            self._say_once(f"job {self._number} has too many nodes to tell hocketd, so policies do not know its cores")
            text, nodes = "", {}
        limits = {"least_nodes": self._least, "most_nodes": self._most} if nodes else {}
        told = {"allocation": self._number, "nodes": text, "text": refusal, "waited_ns": int(waited_s * 1e9)}
        bus.send("HELD_NODES", job=self._job, **told, **limits)

    def _change(self, bus: Bus, asked: Event) -> None:
        refusal, begun = "", time.monotonic()
        release, more = str(asked["release"]).split(), int(asked["cores"])
        if release:
            try:
                self._release(release)
            except SlurmError as error:
                refusal = str(error)
                self._say(f"job {self._number} keeps {' '.join(release)}, which Slurm does not take back: {refusal}")
        if more > 0:
            try:
                self._request(more)
            except SlurmError as error:
                refusal = str(error)
                self._say(f"job {self._number} gets no further nodes from Slurm: {refusal}")
        self._write()
        self._report(bus, refusal, time.monotonic() - begun if more > 0 else 0)

    # ---- fewer nodes ----

    def _release(self, names: Sequence[str]) -> None:
        """Give nodes back on which nothing runs any more. Raises SlurmError; then the others are still held."""
        own = os.uname().nodename
        if own in names:
            raise SlurmError(f"the launcher runs on {own}")
        self._write(without=names)  # before anybody is asked, so that no proxy starts there
        self._ended.wait(POLL_S)  # a proxy that is about to start has become a step then
        self._await_steps(names)
        for number, nodes in list(self._held.items()):
            kept = {name: cores for name, cores in nodes.items() if name not in names}
            if len(kept) == len(nodes):
                continue
            if not kept:
                self._cancel(number)
                continue
            self._keep(number, kept)
            self._held[number] = kept
        self._say(f"job {self._number} has given {' '.join(names)} back to Slurm; it keeps {' '.join(self._nodes())}")

    def _keep(self, number: str, kept: Nodes) -> None:
        """Let a job have these nodes alone. Raises SlurmError if it certainly has others still.

        If Slurm does not answer, the others count as gone: it may still take them, and a program there would be lost.
        """
        try:
            # scontrol leaves files in its working directory.
            command("scontrol", "update", f"JobId={number}", f"NodeList={','.join(kept)}", directory=self._directory)
        except SilentError:
            return
        except SlurmError:
            try:
                has_others = not nodes_of(number).keys() <= kept.keys()
            except SlurmError:
                return
            if has_others:
                raise

    def _await_steps(self, names: Sequence[str]) -> None:
        """Wait until no step runs on these nodes: Slurm would end it. Raises SlurmError."""
        deadline = time.monotonic() + STEPS_END_S
        while busy := {node for number in self._held for node in busy_nodes(number)}.intersection(names):
            if time.monotonic() > deadline or self._ended.wait(POLL_S):
                raise SlurmError(f"a step of the job still runs on {' '.join(sorted(busy))}")
        if self._ended.is_set():
            raise SlurmError("the program has ended")

    def _cancel(self, number: str) -> None:
        """End a job for further nodes. One that does not end now ends when the first job has ended."""
        if number == self._number:
            raise SlurmError("the job needs one node")
        with contextlib.suppress(SlurmError):
            command("scancel", number)
        self._held.pop(number, None)

    # ---- more nodes ----

    def _request(self, cores: int) -> None:
        """Ask Slurm for nodes with that many cores, unless the user permits fewer. Raises SlurmError."""
        held = self._nodes()
        of_a_node = max(held.values())
        count = -(-cores // of_a_node)
        if count > self._most - len(held):  # fewer would be held for nothing: the resize would be refused
            raise SlurmError(
                f"it would take {count} more nodes; the job has {len(held)}, and --slurm-nodes permits {self._most}"
            )
        like = settings_of(self._number)
        self._is_submitting = True
        try:
            if self._ended.is_set():
                raise SlurmError("the program has ended")
            number = request_nodes(self._number, like, count, of_a_node, list(held))
            self._held[number] = {}
        except SilentError:
            self._may_have_more = True
            raise
        finally:
            self._is_submitting = False
        try:
            self._await_grant(number)
            self._held[number] = nodes_of(number)
        except SlurmError:
            self._cancel(number)
            raise
        self._say(f"job {self._number} has got {' '.join(self._held[number])} from Slurm, by job {number}")

    def _await_grant(self, number: str) -> None:
        deadline = time.monotonic() + GRANT_S
        while True:
            state = command("squeue", "--noheader", "--jobs", number, "--format", "%T|%r").strip()
            name, _, reason = state.partition("|")
            if name == "RUNNING":
                return
            if name not in ("PENDING", "CONFIGURING"):
                raise SlurmError(f"job {number} has ended before it began")
            if time.monotonic() > deadline:
                raise SlurmError(f"job {number} has waited for {GRANT_S:g} s ({reason})")
            if self._ended.wait(POLL_S):
                raise SlurmError("the program has ended")

    def _write(self, without: Sequence[str] = ()) -> None:
        """Write the file of hocket-srun: the nodes that may be used, with their jobs."""
        lines = [f"{name} {number}\n" for number, nodes in self._held.items() for name in nodes if name not in without]
        new = self._file.with_suffix(".new")
        with contextlib.suppress(OSError):  # without the file, hocket-srun is srun
            new.write_text("".join(lines), encoding="utf-8")
            new.replace(self._file)
