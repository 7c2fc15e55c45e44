"""Makes logs of calls as libhocket would write them, from scripts of what each rank does."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hocket.capture.log import CALL, COMMUNICATION, COMPLETION, CONTROL_POINT, DATA, METHOD, READ, WRITE, RankLog

KINDS = {
    "communicate": COMMUNICATION,
    "complete": COMPLETION,
    "read": READ,
    "write": WRITE,
    "control point": CONTROL_POINT,
    "data": DATA,
    "method": METHOD,
}


@dataclass(frozen=True)
class Call:
    """A call that takes `takes_s`. It follows computing, sleeping, and waiting for a core that others have."""

    routine: str
    bytes: int = 0
    computes_s: float = 0.0
    takes_s: float = 1e-5
    kind: str = "communicate"
    peer: int = -1
    file: int = 0
    offset: int = -1  # in the file; -1: unknown
    sleeps_s: float = 0.0
    starved_s: float = 0.0
    together: bool = True  # a communicator of all ranks
    processes: int = 0  # of the communicator, or of the distribution; 0: those of the log, if any


def log_of(rank: int, processes: int, script: Sequence[Call], tail_s: float = 0.0) -> RankLog:
    calls = np.zeros(len(script), CALL)
    now = cpu = 0.0
    sleeps = 0
    for at, call in enumerate(script):
        now += call.computes_s + call.sleeps_s + call.starved_s
        cpu += call.computes_s
        sleeps += call.sleeps_s > 0
        calls[at]["sleeps"] = calls[at]["sleeps_end"] = sleeps
        calls[at]["start_ns"], calls[at]["cpu_ns"] = round(now * 1e9), round(cpu * 1e9)
        now += call.takes_s
        calls[at]["end_ns"], calls[at]["cpu_end_ns"] = round(now * 1e9), round(cpu * 1e9)
        calls[at]["bytes"], calls[at]["peer"], calls[at]["file"] = call.bytes, call.peer, call.file
        calls[at]["offset"] = call.offset
        calls[at]["kind"], calls[at]["routine"] = KINDS[call.kind], call.routine
        of_all = processes if call.together and call.kind == "communicate" else 0
        calls[at]["processes"] = call.processes or of_all
    return RankLog(rank, processes, False, 0, round((now + tail_s) * 1e9), round((cpu + tail_s) * 1e9), 0, calls)
