"""`./dev bench forward`: programs under `hocket forward`, beside the same programs without it, in turn.

The servers run on the same machine and file system as the clients, so a forwarded byte is copied twice.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from figures import report

PROBE = Path(__file__).resolve().parent.parent / "build" / "release" / "bench" / "forward_probe"
ROUNDS = 11
LEAST_IN_MEMORY, LEAST_ON_DISK = 0.45, 0.95  # of the direct rate
LEAST_OF_FUSE, LEAST_LATE = 1.0, 3.0  # of the rate through libfuse's passthrough_ll: synchronous, close-to-open
PASSTHROUGH = Path("/usr/share/doc/libfuse3-dev/examples/passthrough_ll.c")  # with writes that are not cached
MOST_CALL_NS = 100.0  # more for a call that is not forwarded
CLIENTS, MIB = 4, 1 << 20
# The command that runs the probe on a directory: its second argument is an empty directory, for a mount.
Way = Callable[[Path, Path, list[str]], list[str]]


def measured(words: Sequence[str], directory: Path, way: Way) -> float:
    """Run the probe in a way, and return what it prints."""
    with tempfile.TemporaryDirectory(prefix="hocket-bench-") as mount:
        command = way(directory, Path(mount), [str(PROBE), *words])
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return float(done.stdout)


def directly(directory: Path, _mount: Path, probe: list[str]) -> list[str]:
    return [*probe, str(directory)]


def through(servers: int, *options: str) -> Way:
    def command(directory: Path, _mount: Path, probe: list[str]) -> list[str]:
        forward = ["forward", "--servers", str(servers), "--mount", str(directory), *options, "--"]
        return [sys.executable, "-m", "hocket.cli", *forward, *probe, str(directory)]

    return command


def through_passthrough(program: Path) -> Way:
    """Return the way through a mount by libfuse's example, in a mount namespace of its own."""
    script = '"$1" -o source="$2" "$3" && { mount=$3; shift 3; "$@" "$mount"; code=$?; umount "$mount"; exit $code; }'

    def command(directory: Path, mount: Path, probe: list[str]) -> list[str]:
        namespace = ["unshare", "-m" if os.geteuid() == 0 else "-rm"]
        return [*namespace, "sh", "-c", script, "sh", str(program), str(directory), str(mount), *probe]

    return command


def built_passthrough(directory: Path) -> Path:
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=True)
    target = directory / "passthrough_ll"
    subprocess.run(["cc", "-O2", "-w", "-o", target, PASSTHROUGH, *flags.stdout.split()], check=True)
    return target


def pairs(words: Sequence[str], directory: Path, one: Way, other: Way) -> tuple[list[float], list[float]]:
    """Return what the probe says in both ways, in pairs. The first pair does not count."""
    both = [(measured(words, directory, one), measured(words, directory, other)) for _ in range(ROUNDS + 1)][1:]
    return [first for first, _ in both], [second for _, second in both]


def rate(
    case: str, words: Sequence[str], directory: Path, reference: Way, way: Way, bound: float | None, moved: int
) -> bool:
    """Report the rate in MB/s beside that of the reference. The bound is for the median of the pairs' ratios."""
    reference_s, way_s = pairs(words, directory, reference, way)
    ratios = sorted(one / other for one, other in zip(reference_s, way_s, strict=True))
    share = median(ratios)
    value, other = moved / median(way_s) / 1e6, moved / median(reference_s) / 1e6
    spread = {"share": share, "share_low": ratios[1], "share_high": ratios[-2]}
    return report("forward", case, value, "MB/s", other, bound, bound is None or share >= bound, **spread)


def difference(case: str, words: Sequence[str], directory: Path, bound: float | None, *options: str) -> bool:
    """Report how many nanoseconds more a call takes that is not forwarded."""
    direct_ns, with_ns = pairs(words, directory, directly, through(1, *options))
    more = median(one - other for one, other in zip(with_ns, direct_ns, strict=True))
    return report("forward", case, more, "ns", median(direct_ns), bound, bound is None or more <= bound)


def calls_of_open(case: str, words: Sequence[str], directory: Path, *options: str) -> bool:
    """Report how many system calls more the probe makes for each open. `words`: its words, but for the number of opens.

    The difference of two numbers of opens leaves out what a process does once.
    """

    def calls(way: Way) -> float:
        many, few = (counted([words[0], str(opens), *words[1:]], directory, way) for opens in (3000, 1000))
        return (many - few) / 2000

    direct = calls(directly)
    more = calls(through(1, *options)) - direct
    return report("forward", f"{case}, system calls more", more, "calls", direct, 1, more <= 1)


def elsewhere(memory: Path, others: dict[str, Path]) -> list[bool]:
    """Report what a file that is not below the prefix costs more: its first read, and open, read, and close.

    `others`: files on the file system of the prefix, and on another one.
    """
    ok = []
    late = ("--consistency", "close-to-open")
    for options, how in (((), ""), (late, ", close-to-open")):
        for where, directory in others.items():
            file = directory / "file"
            file.write_bytes(b"byte")
            case = f"open, read and close on {where}{how}"
            first = f"the first read on {where}{how}, more by"
            ok += [
                difference(first, ["first", "20000", str(file)], memory, MOST_CALL_NS, *options),
                difference(f"{case}, more by", ["reopen", "20000", str(file)], memory, None, *options),
                calls_of_open(case, ["reopen", str(file)], memory, *options),
            ]
    return ok


def counted(words: Sequence[str], directory: Path, way: Way) -> int:
    """Return how many system calls the probe makes in a way."""
    with tempfile.NamedTemporaryFile("r") as table:
        command = way(
            directory, directory, ["strace", "-f", "-c", "-U", "calls,name", "-o", table.name, str(PROBE), *words]
        )
        subprocess.run(command, capture_output=True, check=True, timeout=300)
        return int(table.read().split("\n")[-2].split()[0])


def cases(memory: Path, disk: Path, programs: Path) -> list[bool]:
    large = ["write", str(CLIENTS), str(MIB), "64"]
    small = ["write", "1", "4096", "20000"]
    all_large, all_small = CLIENTS * 64 * MIB, 20000 * 4096
    two, one, mounted = through(2), through(1), through(1, "--by", "fuse")
    late = through(1, "--consistency", "close-to-open")
    passthrough = through_passthrough(built_passthrough(programs))
    return [
        rate("1 MiB, 4 clients, memory", [*large, "0", "0"], memory, directly, two, LEAST_IN_MEMORY, all_large),
        rate("1 MiB, 4 clients, disk, O_DIRECT", [*large, "1", "0"], disk, directly, two, LEAST_ON_DISK, all_large),
        rate("1 MiB, 4 clients, disk, fsync", [*large, "0", "1"], disk, directly, two, LEAST_ON_DISK, all_large),
        rate("4 KiB, 1 client, memory", [*small, "0", "0"], memory, directly, one, None, all_small),
        rate("4 KiB, beside passthrough_ll", [*small, "0", "0"], memory, passthrough, one, LEAST_OF_FUSE, all_small),
        rate("4 KiB, close-to-open, beside it", [*small, "0", "0"], memory, passthrough, late, LEAST_LATE, all_small),
        rate("4 KiB, memory, close-to-open beside synchronous", [*small, "0", "0"], memory, one, late, None, all_small),
        rate("4 KiB, disk, close-to-open beside synchronous", [*small, "0", "0"], disk, one, late, None, all_small),
        rate("4 KiB, by FUSE, beside it", [*small, "0", "0"], memory, passthrough, mounted, None, all_small),
        rate(
            "1 MiB, by FUSE, beside it",
            [*large, "0", "0"],
            memory,
            passthrough,
            through(2, "--by", "fuse"),
            None,
            all_large,
        ),
        difference("a write elsewhere, more by", ["null", "2000000"], memory, MOST_CALL_NS),
        difference("open and close, more by", ["open", "50000"], memory, None),
        calls_of_open("open and close", ["open"], memory),
    ]


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="hocket-bench-", dir="/dev/shm") as memory,
        tempfile.TemporaryDirectory(prefix="hocket-bench-", dir="/var/tmp") as disk,
        tempfile.TemporaryDirectory(prefix="hocket-bench-", dir="/dev/shm") as beside,
        tempfile.TemporaryDirectory(prefix="hocket-bench-", dir="/tmp") as runtime,
    ):
        os.environ |= {"HOCKET_DIR": runtime, "XDG_DATA_HOME": runtime}  # curves of benchmarks are of no use later
        try:
            ok = cases(Path(memory), Path(disk), Path(runtime))
            ok += elsewhere(Path(memory), {"the same file system": Path(beside), "another one": Path(disk)})
            return 0 if all(ok) else 1
        finally:
            subprocess.run([sys.executable, "-m", "hocket.cli", "daemon", "stop"], capture_output=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
