"""CLARISSE's machine and applications at the paper's scale, for the simulator (sections V-A to V-C).

What the paper gives: clients and servers (Table II), bytes, 40 drives of 250 MB/s, links of 2 GB/s. What it leaves
open are the requests that a server has to handle. Two assumptions stand for them: a request has at most 16 KiB, and
each client sends one at least to each server. The time of a request follows from one sentence about Fig. 8, at 1,920
clients.
"""

from __future__ import annotations

from math import ceil

from reproduce.scenarios import Scenario

SERVERS = {960: 64, 1920: 128, 3840: 256, 7680: 512, 15360: 1024}  # by clients
ELASTIC_SIZES = (1920, 3840, 7680, 15360)  # Table II, where the last one has a digit wrong
PAIR_SIZES = (960, 1920, 3840, 7680)  # section V-C
OPERATIONS = 10
DISKS_BYTES_PER_S = 40 * 250e6
LINK_BYTES_PER_S = 2e9
REQUEST_BYTES = 16 << 10
# The paper's MB are MiB, and its GB GiB: only so do its products come out.
SIOR_BYTES = 1920 * (16 << 20)  # of an operation, at each size: 30 GB
# A client has in a time step: particles of one variable (5 MB in ten steps), a block of three components (17 MB).
WEAK_BYTES = {"VPIC": 131_032 * 4, "VORPAL": 50 * 50 * 30 * 3 * 8}
# All clients have these in a time step, at each size of section V-C: 150 and 112.5 GB in ten.
STRONG_BYTES = {"VPIC": 960 * 4_194_304 * 4, "VORPAL": 960 * 256 * 64 * 32 * 3 * 8}


def requests(total_bytes: float, clients: int, servers: int) -> int:
    """Return the requests of one operation at each server."""
    return clients * max(1, ceil(total_bytes / clients / servers / REQUEST_BYTES))


# "For values up to 8 µs the impact is not noticeable because the performance is dominated by other I/O operations.
# Starting at 16 µs, the load significantly impacts the performance": in between, a server needs as long as the disks.
NOTICED_S = 12e-6
_SIOR_S = SIOR_BYTES / DISKS_BYTES_PER_S
HANDLING_S = (_SIOR_S - SIOR_BYTES / 128 / LINK_BYTES_PER_S) / requests(SIOR_BYTES, 1920, 128) - NOTICED_S
# The other extreme: the same time at 1,920 clients, but in proportion to the bytes.
SERVER_BYTES_PER_S = SIOR_BYTES / 128 / (_SIOR_S - NOTICED_S * requests(SIOR_BYTES, 1920, 128))


def server_keys(count: int, by_bytes: bool = False) -> dict:
    """Return the [[servers]] table. `by_bytes`: the time of a request is in proportion to its bytes."""
    keys = {"name": "s", "count": count}
    if by_bytes:
        return keys | {"bandwidth_bytes_per_s": SERVER_BYTES_PER_S}
    return keys | {"service_s": HANDLING_S, "bandwidth_bytes_per_s": LINK_BYTES_PER_S}


def writer(name: str, clients: int, io_bytes: float, compute_s: float, through_servers: bool = True) -> dict:
    """Return an application of ten time steps that write `io_bytes` each."""
    keys = {
        "name": name,
        "processes": clients,
        "iterations": OPERATIONS,
        "iterations_per_phase": 1,
        "iteration_s": compute_s,
        "io_bytes": io_bytes,
    }
    return keys | ({"request_bytes": REQUEST_BYTES} if through_servers else {})


def scenario(applications: list[dict], servers: dict | None, **more) -> Scenario:
    target = {"bandwidth_bytes_per_s": DISKS_BYTES_PER_S}
    return Scenario(target, applications, servers=[servers] if servers else [], **more)
