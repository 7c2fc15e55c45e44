"""Table 2's scenario on the scale of one machine: for the simulator, and for emulated applications. Pure.

All numbers come from scenarios/table2-*.toml. Times are divided by a factor, and volumes also by that of the bandwidth.
FLOP are divided as times are, so FLOP rates stay those of the scenario. Iterations are merged: all applications have as
many in a period, because each one costs many ranks on few cores a control point.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from hocket.errors import UsageError
from hocket.profile.points import Point
from hocket.toml_checks import Table
from hocket.toml_text import tables_text

SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"
ITERATIONS_A_PERIOD = 8
TARGET_BYTES_PER_S = 52_000_000  # of all applications: 2.6 GB/s in the scenario
HOLD_S = 0.01  # of the target after an access; hocketd's own setting is long beside phases of 0.1 s
PROFILE_SAMPLES = 10


def read(cores: int) -> Table:
    """Return the scenario for a number of cores. Raises UsageError if there is none."""
    path = SCENARIOS / f"table2-{cores}.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}; scenarios/table2-*.toml have the sizes") from error


def scaled(scenario: Table, faster: float, length_s: float) -> Table:
    """Return the scenario with all times divided by `faster`. It ends after `length_s`."""
    (target,) = scenario["targets"]
    volume = TARGET_BYTES_PER_S / target["bandwidth_bytes_per_s"] / faster
    resize_s = scenario["reconfiguration"]["fixed_s"] / faster
    return scenario | {
        "until_s": float(length_s),
        "targets": [target | {"bandwidth_bytes_per_s": float(TARGET_BYTES_PER_S)}],
        "reconfiguration": scenario["reconfiguration"] | {"fixed_s": resize_s},
        "coordinator": scenario["coordinator"] | {"reconfiguration_s": resize_s, "linger_s": HOLD_S},
        "applications": [_application(one, faster, volume) for one in scenario["applications"]],
    }


def _application(one: Table, faster: float, volume: float) -> Table:
    merged = one["iterations_per_phase"] / ITERATIONS_A_PERIOD
    return one | {
        "iterations_per_phase": ITERATIONS_A_PERIOD,
        "curve": [[size, seconds * merged / faster] for size, seconds in one["curve"]],
        "flop_per_iteration": one["flop_per_iteration"] * merged / faster,
        "io_bytes": round(one["io_bytes"] * volume),
        "io_curve": [[size, seconds / faster] for size, seconds in one["io_curve"]],
        "data_bytes": 0,  # the simulated resize has a fixed length, too
    }


def cores_of(scenario: Table) -> int:
    return scenario["platform"]["nodes"] * scenario["platform"]["cores_per_node"]


def bandwidth_of(scenario: Table) -> float:
    return scenario["targets"][0]["bandwidth_bytes_per_s"]


def process_bytes_per_s(application: Table) -> float:
    """Return the rate at which one process writes: I/O is faster with more of them, until the target is saturated."""
    processes, seconds = application["io_curve"][0]
    return application["io_bytes"] / (processes * seconds)


def io_alone_s(application: Table, processes: int, bytes_per_s: float) -> float:
    """Return the seconds of an I/O phase alone on a target of that bandwidth."""
    return application["io_bytes"] / min(processes * process_bytes_per_s(application), bytes_per_s)


def description(application: Table) -> str:
    """Return the application for the emulator: its ranks sleep as long as the curve says, and then write together."""
    first_s = application["curve"][0][1]
    compute = {
        "kind": "sleep",
        "name": "compute",
        "time_s": first_s,
        "factors": {str(size): seconds / first_s for size, seconds in application["curve"]},
    }
    write = {
        "kind": "write",
        "name": "output",
        "file": f"{application['name']}.out",
        "bytes": application["io_bytes"],
        "every": application["iterations_per_phase"],
    }
    group = {"processes": application["processes"], "iterations": application["iterations"]}
    return tables_text({"name": application["name"], "group": [group], "phase": [{"stage": [compute, write]}]})


def profile(application: Table, bytes_per_s: float) -> tuple[Point, ...]:
    """Return what the simulator tells the coordinator of the application when it arrives (`profile = "exact"`)."""
    return tuple(
        Point(
            processes=size,
            iteration_s=seconds,
            iteration_spread_s=seconds * application["jitter"],
            io_s=io_alone_s(application, size, bytes_per_s),
            samples=PROFILE_SAMPLES,
            flop_per_iteration=application["flop_per_iteration"],
        )
        for size, seconds in application["curve"]
    )
