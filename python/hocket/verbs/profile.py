"""hocket profile: measures an application at several sizes, and keeps the results."""

from __future__ import annotations

import argparse
import os
import shutil
import time
from pathlib import Path

from hocket import mpi
from hocket.errors import HocketError, UsageError
from hocket.profile import exchange
from hocket.profile.measure import Plan, count_of, measure, with_count
from hocket.profile.points import MOST_PROCESSES, Point, rises
from hocket.profile.store import SHORT, Profile, Store, default_path
from hocket.tables import columns, printable
from hocket.verbs import help_text, print_json, tell

EXAMPLES = """
examples:
  hocket profile -- mpiexec -n 8 ./jacobi --system a.bin      # at 1, 2, 4 and 8 processes
  hocket profile --sizes 2,4,6 --phases 10 -- mpiexec ./app
  hocket profile ls
  hocket profile show jacobi --plot jacobi.png
  hocket profile export profiles.json                         # all; for another machine: hocket profile import
  hocket profile rm jacobi@3f2a                               # one of several programs of this name

The program runs alone: a malleable one once, resized through the sizes, any other once for each size. A run ends as
soon as enough I/O phases were seen, or enough iterations if a malleable program has fewer than two I/O phases in ten
seconds. hocketd takes the profile from the store when a program of the same name and content connects.
"""
PHASES = 5
MOST_SIZES = 64


def add(parsers: argparse._SubParsersAction) -> None:
    words = help_text("measure an application at several sizes; list, show, export the results", EXAMPLES)
    usage = (
        "hocket profile [--sizes N,N,…] [--phases K] [--store FILE] -- mpiexec -n N ./app [arguments]\n"
        "       hocket profile ls | show NAME [--plot FILE] | rm NAME | export FILE [NAME] | import FILE"
    )
    parser = parsers.add_parser("profile", usage=usage, **words)
    parser.add_argument(
        "--sizes", metavar="N,N,…", help="default: powers of two up to -n of mpiexec, else to the cores"
    )
    parser.add_argument(
        "--phases",
        type=int,
        default=PHASES,
        metavar="K",
        help=f"I/O phases that count at each size (default: {PHASES})",
    )
    parser.add_argument("--store", metavar="FILE", help="default: $XDG_DATA_HOME/hocket/profiles.db")
    parser.add_argument("--json", action="store_true", help="with ls and show: as JSON")
    parser.add_argument("--plot", metavar="FILE", help="with show: file for the picture (default: NAME.png)")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="ACTION or command", help="see above")
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    words = arguments.words
    path = Path(arguments.store) if arguments.store else default_path()
    if words[:1] == ["--"]:
        return _measure(arguments, words[1:], path)
    actions = {"ls": (_ls, 0, 0), "show": (_show, 1, 1), "rm": (_rm, 1, 1), "export": (_export, 1, 2)}
    actions["import"] = (_import, 1, 1)
    if words and words[0] not in actions and shutil.which(words[0]):
        return _measure(arguments, words, path)
    if not words or words[0] not in actions:
        given = f"'{words[0]}' is none of {', '.join(actions)}; " if words else ""
        raise UsageError(f"{given}write 'hocket profile -- mpiexec -n 4 ./app', or see 'hocket profile --help'")
    function, least, most = actions[words[0]]
    options, words = _trailing(arguments, words[1:])
    if not least <= len(words) <= most:
        raise UsageError(f"hocket profile {arguments.words[0]}: {len(words)} names given; see 'hocket profile --help'")
    return function(options, words, path)


def _trailing(arguments: argparse.Namespace, words: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Parse the options after the action. Return them, and the other words."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--json", action="store_true", default=arguments.json)
    parser.add_argument("--plot", default=arguments.plot)
    try:
        options, left = parser.parse_known_args(words)
    except argparse.ArgumentError as error:
        raise UsageError(f"{error}; see 'hocket profile --help'") from error
    if unknown := [word for word in left if word.startswith("-")]:
        raise UsageError(f"'{unknown[0]}' is no option here; see 'hocket profile --help'")
    return options, left


# ---- measuring ----------------------------------------------------------------------------------------------------


def _measure(arguments: argparse.Namespace, command: list[str], path: Path) -> int:
    if not command:
        raise UsageError("no command given; write 'hocket profile -- mpiexec -n 4 ./app'")
    if arguments.phases < 2:
        raise UsageError(f"--phases {arguments.phases}: give 2 or more")
    job = mpi.examine(command)
    with_count(job, 1)  # raises UsageError if the command cannot be started with a number of processes
    if Path(job.application).name.startswith("python"):
        raise UsageError(f"{job.application} is an interpreter: all its scripts would get the profile of this one")
    sizes = sizes_of(arguments.sizes, count_of(job))
    store = Store(path, write=True)  # opened before minutes of measuring
    for warning in job.warnings:
        tell(warning)
    how = "one run, resized" if job.malleable else "a run for each size"
    tell(f"measures {job.name} at {', '.join(map(str, sizes))} processes, {arguments.phases} phases each: {how}")
    profile = measure(Plan(job, sizes, arguments.phases), tell)
    _note_rises(f"{profile.program}", profile)
    _note_others(f"{path}", store, profile)
    store.put(profile)
    print(table(profile))
    return 0


def sizes_of(given: str | None, count: int | None) -> list[int]:
    """Return the requested sizes, else powers of two up to `count`, and `count` itself.

    Without `count` the number of cores takes its place.
    """
    if given is None:
        most = count or len(os.sched_getaffinity(0))
        powers = [1 << exponent for exponent in range(most.bit_length()) if 1 << exponent <= most]
        return powers if powers[-1] == most else [*powers, most]
    try:
        sizes = sorted({int(word) for word in given.split(",")})
    except ValueError:
        raise UsageError(f"--sizes '{given}': give numbers of processes, e.g. 1,2,4") from None
    if sizes[0] < 1 or sizes[-1] > MOST_PROCESSES or len(sizes) > MOST_SIZES:
        raise UsageError(f"--sizes '{given}': give at most {MOST_SIZES} numbers, each 1 or more")
    return sizes


def _note_rises(where: str, profile: Profile) -> None:
    for words in rises(profile.points):
        tell(f"{where}: {words}: more processes take longer there")


def _note_others(where: str, store: Store, profile: Profile) -> None:
    for other in store.profiles(profile.program):
        if other.fingerprint != profile.fingerprint:
            tell(
                f"{where}: program = '{other.program}' is stored with another content too (fingerprint "
                f"{other.fingerprint[:SHORT]}, measured {_day(other)}): both are kept, each for its own program"
            )


# ---- what is kept -------------------------------------------------------------------------------------------------


def _ls(options: argparse.Namespace, _: list[str], path: Path) -> int:
    profiles = Store(path).profiles()
    if options.json:
        print_json([_summary(profile) for profile in profiles])
    elif profiles:
        rows = [
            (
                one.program,
                one.fingerprint[:SHORT],
                one.mpi,
                ", ".join(str(point.processes) for point in one.points),
                _day(one),
                one.arguments,
            )
            for one in profiles
        ]
        print(columns(("PROGRAM", "FINGERPRINT", "MPI", "PROCESSES", "MEASURED", "ARGUMENTS"), rows))
    else:
        print(f"no profile in {path}")
    return 0


def _show(options: argparse.Namespace, words: list[str], path: Path) -> int:
    profile = _one(Store(path), words[0])
    if options.json:
        print_json(_summary(profile) | {"points": [vars(point) for point in profile.points]})
        if not options.plot:
            return 0
    picture = Path(options.plot or f"{profile.program}.png")
    from hocket.profile.plot import write_curve  # imported here: matplotlib takes a second to load

    write_curve(profile, picture)
    if not options.json:
        print(f"{table(profile)}\npicture: {picture}")
    return 0


def _rm(_: argparse.Namespace, words: list[str], path: Path) -> int:
    store = Store(path)
    profile = _one(store, words[0])
    store.remove(profile)
    tell(f"{profile.program} ({profile.fingerprint[:SHORT]}, {len(profile.points)} sizes) is removed from {path}")
    return 0


def _export(_: argparse.Namespace, words: list[str], path: Path) -> int:
    store = Store(path)
    profiles = [_one(store, words[1])] if len(words) > 1 else store.profiles()
    if not profiles:
        raise HocketError(f"no profile in {path}: nothing to export")
    try:
        Path(words[0]).write_text(exchange.text_of(profiles), encoding="utf-8")
    except OSError as error:
        raise HocketError(f"cannot write {words[0]}: {error.strerror}") from error
    tell(f"{len(profiles)} profile{'' if len(profiles) == 1 else 's'} written to {words[0]}")
    return 0


def _import(_: argparse.Namespace, words: list[str], path: Path) -> int:
    """Import all profiles of a file, or none if it is invalid.

    A stored point of the same program and size stays if it was measured later.
    """
    profiles = exchange.read(Path(words[0]))
    store = Store(path, write=True)
    for at, profile in enumerate(profiles):
        where = f"{words[0]}: profiles[{at}]"
        _note_others(where, store, profile)
        _note_rises(f"{where} ({profile.program})", profile)
        kept = {point.processes: point for one in _same(store, profile) for point in one.points}
        new = [point for point in profile.points if not _is_later(kept.get(point.processes), point, where, profile)]
        store.put(Profile(profile.program, profile.fingerprint, profile.mpi, profile.arguments, tuple(new)))
    tell(f"{len(profiles)} profile{'' if len(profiles) == 1 else 's'} imported into {path}")
    return 0


def _same(store: Store, profile: Profile) -> list[Profile]:
    return [one for one in store.profiles(profile.program) if one.fingerprint == profile.fingerprint]


def _is_later(kept: Point | None, point: Point, where: str, profile: Profile) -> bool:
    """Return True if the stored point stays because it was measured later."""
    if kept is None or kept.measured_unix_s <= point.measured_unix_s:
        return False
    tell(
        f"{where} ({profile.program}): processes = {point.processes}: iteration_s = {point.iteration_s:.4g} is older "
        f"than the store's {kept.iteration_s:.4g}, which is kept"
    )
    return True


def _one(store: Store, name: str) -> Profile:
    """Return the profile of NAME, or of NAME@BEGIN if several programs have this name (BEGIN of the fingerprint)."""
    program, _, begin = name.partition("@")
    profiles = store.profiles()
    found = [one for one in profiles if one.program == program and one.fingerprint.startswith(begin)]
    if len(found) == 1:
        return found[0]
    if found:
        which = ", ".join(f"{one.program}@{one.fingerprint[:SHORT]} ({_day(one)})" for one in found)
        raise UsageError(f"'{name}' is not one program: name one of {which}")
    known = ", ".join(dict.fromkeys(one.program for one in profiles)) or "none"
    raise HocketError(f"no profile of '{printable(name)}' in {store.path}; there are: {known}")


def _day(profile: Profile) -> str:
    if not profile.measured_unix_s:
        return "unknown when"
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(profile.measured_unix_s))


def _summary(profile: Profile) -> dict[str, object]:
    keys = ("program", "fingerprint", "mpi", "arguments", "measured_unix_s")
    return {key: getattr(profile, key) for key in keys} | {"processes": [point.processes for point in profile.points]}


def table(profile: Profile) -> str:
    """Return the points of a profile as a table, with the speedup against the smallest size."""
    first = profile.points[0]
    rows = [
        (
            str(point.processes),
            f"{point.iteration_s:.4g} ± {point.iteration_spread_s:.2g}",
            f"{point.cpu_s:.4g}" if point.cpu_s is not None else "not known",
            f"{point.comm_s:.4g}" if point.cpu_s is not None else "not known",
            f"{first.iteration_s / point.iteration_s:.2f}",
            f"{point.io_s:.4g} ± {point.io_spread_s:.2g}" if point.io_s else "none",
            str(point.samples),
            f"{point.flop_per_iteration:.3g}" if point.flop_per_iteration else "not known",
        )
        for point in profile.points
    ]
    heading = ("PROCESSES", "ITERATION, S", "CPU, S", "COMM, S", "SPEEDUP", "I/O PHASE, S", "PHASES", "FLOP/ITERATION")
    title = f"{profile.program}  {profile.fingerprint[:SHORT]}  {profile.mpi}  measured {_day(profile)}"
    return f"{title}\n{columns(heading, rows, right=range(len(heading)))}"
