"""hocket delta: measures or simulates the Δ-graph of two applications."""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import tempfile
import time
from pathlib import Path

from hocket.delta import live, simulated
from hocket.delta.graph import NAMES, Graph, text_of
from hocket.delta.model import FAIR, SHARINGS
from hocket.errors import HocketError, UsageError
from hocket.verbs import help_text, tell

EXAMPLES = """
examples:
  hocket delta --app "mpiexec -n 4 s_ior -o /scratch/a -b 64m -w -p 1" \\
      --app "mpiexec -n 2 s_ior -o /scratch/b -b 8m -w -p 1" --from -4 --to 8 --step 1 --plot delta.png
  hocket delta --limit 40m /scratch --app … --app …              # all writes together limited to 40 MiB/s
  hocket delta --simulate --app processes=744,bytes=5g --app processes=24,bytes=192m --from -4 --to 8 --step 0.5
  hocket delta --simulate --app processes=2048,bytes=32g,files=4 --app processes=2048,bytes=8g --grain file …

B starts its I/O phase dt seconds after A, from --from to --to (less than 0: before A). For each policy and dt: the I/O
times of both, waits included, their interference factors (time / time alone), and what is expected (CALCioM, sections
II-C and IV-D). First each runs alone. All times come from hocketd's trace: the first I/O phase of each application,
from the first START_IO to the last FINISH_IO. The dt in the table is that of the trace, not the requested one.

Real applications are started as 'hocket run' starts them, under a hocketd of their own that ends with the command. They
inherit the environment. Storage that others use too, or that is faster in bursts, distorts the figures: --limit gives
a directory a bandwidth of its own. hocketd receives the times alone, as if 'hocket profile' had measured them, by
program and number of processes: if A and B are one program, give them different numbers of processes, else 'dynamic'
takes them for alike. Ctrl-C summarises what was measured.

With --simulate an application is processes=N,bytes=B[,files=N][,bandwidth=B]: it writes B bytes (k, m, g, t: KiB to
TiB) into N files, at most at the given bytes/s (default: the target's bandwidth).
"""
POLICIES = "interfere,fcfs,interrupt,dynamic"
MOST_POINTS = 2000
PROGRESS_S = 10.0  # interval of progress lines if stderr is no terminal


def add(parsers: argparse._SubParsersAction) -> None:
    words = help_text("measure, or simulate, what two applications that share storage cost each other", EXAMPLES)
    usage = 'hocket delta --app "CMD" --app "CMD" --from S --to S --step S [options]'
    parser = parsers.add_parser("delta", usage=usage, **words)
    parser.add_argument("--app", action="append", default=[], metavar="CMD", help="a launcher and its arguments; twice")
    parser.add_argument("--from", type=float, required=True, dest="first", metavar="S", help="the first dt, seconds")
    parser.add_argument("--to", type=float, required=True, dest="last", metavar="S", help="the last dt")
    parser.add_argument("--step", type=float, required=True, metavar="S", help="seconds from one dt to the next")
    parser.add_argument("--policies", default=POLICIES, metavar="P,P,…", help=f"default: {POLICIES}")
    parser.add_argument("--metric", default="", metavar="M", help="what policies minimise: see 'hocket policy --help'")
    parser.add_argument(
        "--repetitions", type=int, default=1, metavar="N", help="runs of each point; the median counts (default: 1)"
    )
    parser.add_argument("--json", metavar="FILE", help="file for all figures (-: standard output, without the table)")
    parser.add_argument("--plot", metavar="FILE.png", help="file for the plot")
    parser.add_argument(
        "--grain",
        choices=simulated.GRAINS,
        default=simulated.ROUND,
        help="where an application can be preempted: between rounds of a collective access, which hocket performs "
        "('hocket run --io hocket'; the default), between accesses or files, or only between I/O phases (simulated)",
    )
    parser.add_argument(
        "--sharing", choices=SHARINGS, default=FAIR,
        help="how the target is shared: equally, in proportion to processes, or so that overlapping accesses end "
        "together; for real storage, what is expected",
    )  # fmt: skip
    real = parser.add_argument_group("real applications")
    real.add_argument("--limit", nargs=2, metavar=("B", "DIR"), help="all writes below DIR together get B bytes/s")
    real.add_argument("--timeout", type=float, default=600.0, metavar="S", help="time limit of each run (default: 600)")
    real.add_argument("--traces", metavar="DIR", help="keep the trace of each run, for 'hocket explain' and 'report'")
    made_up = parser.add_argument_group("simulated applications")
    made_up.add_argument("--simulate", action="store_true", help="CMD is processes=N,bytes=B[,files=N][,bandwidth=B]")
    made_up.add_argument(
        "--bandwidth", default="1e9", metavar="B", help="bandwidth of the target, bytes/s (default: 1e9)"
    )
    made_up.add_argument("--round", default="0", metavar="B", help="bytes of a round (default: 0, preempted at once)")
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    dts_s, policies = dts_of(arguments.first, arguments.last, arguments.step), policies_of(arguments.policies)
    if len(dts_s) * len(policies) > MOST_POINTS:
        raise UsageError(f"{len(dts_s)} dts under {len(policies)} policies are too many (at most {MOST_POINTS} points)")
    graph = (_simulate if arguments.simulate else _measure)(arguments, policies, dts_s)
    if arguments.json == "-":
        print(json.dumps(graph.as_json(), indent=2))
    else:
        print(text_of(graph))
    if arguments.json and arguments.json != "-":
        _write(Path(arguments.json), json.dumps(graph.as_json(), indent=1) + "\n")
    if arguments.plot:
        from hocket.delta.plot import write_plot  # imported here: matplotlib takes a second to load

        write_plot(graph, Path(arguments.plot))
    return 130 if graph.about.get("interrupted") else 0


def dts_of(first_s: float, last_s: float, step_s: float) -> list[float]:
    """Return the dts from the first to the last. Raises UsageError."""
    for option, value in (("--from", first_s), ("--to", last_s), ("--step", step_s)):
        if not math.isfinite(value):
            raise UsageError(f"{option} {value:g}: give seconds")
    if step_s <= 0:
        raise UsageError(f"--step {step_s:g}: give more than 0")
    if first_s > last_s:
        raise UsageError(f"--from {first_s:g} --to {last_s:g}: the first dt is after the last one")
    if (last_s - first_s) / step_s > MOST_POINTS:
        raise UsageError(f"--step {step_s:g}: that is more than {MOST_POINTS} dts; give a longer step")
    count = math.floor((last_s - first_s) / step_s + 1e-9) + 1
    return [round(first_s + step_s * at, 9) for at in range(count)]


def policies_of(text: str) -> list[str]:
    found = list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not found:
        raise UsageError(f"--policies '{text}': give names, e.g. {POLICIES}")
    return found


def _check(arguments: argparse.Namespace) -> None:
    if len(arguments.app) != len(NAMES):
        raise UsageError(f"--app is given {len(arguments.app)} times: give it twice, for A and for B")
    if arguments.repetitions < 1:
        raise UsageError(f"--repetitions {arguments.repetitions}: give 1 or more")
    if not 0 < arguments.timeout < float("inf"):
        raise UsageError(f"--timeout {arguments.timeout:g}: give more than 0 seconds")
    if arguments.simulate and (arguments.limit or arguments.traces):
        raise UsageError("--limit and --traces are for real applications; --simulate has --bandwidth")
    if not arguments.simulate and arguments.grain == simulated.PHASE:
        raise UsageError("--grain phase is for --simulate; real applications have round or file")
    for path in (arguments.json, arguments.plot):  # checked now, not after an hour of measuring
        if path and path != "-" and not Path(path).absolute().parent.is_dir():
            raise UsageError(f"cannot write {path}: there is no directory {Path(path).absolute().parent}")


def _simulate(arguments: argparse.Namespace, policies: list[str], dts_s: list[float]) -> Graph:
    specs = [simulated.parse_spec(text) for text in arguments.app]
    sizes = {name: _bytes(name, getattr(arguments, name)) for name in ("bandwidth", "round")}
    if sizes["bandwidth"] < 1:
        raise UsageError(f"--bandwidth {arguments.bandwidth}: give 1 byte/s or more")
    machine = simulated.Machine(sizes["bandwidth"], arguments.sharing, arguments.grain, sizes["round"])
    with tempfile.TemporaryDirectory(prefix="hocket-delta-") as directory:
        return simulated.measure(specs, machine, policies, dts_s, arguments.metric, Path(directory))


def _measure(arguments: argparse.Namespace, policies: list[str], dts_s: list[float]) -> Graph:
    programs = [live.program_of(name, command) for name, command in zip(NAMES, arguments.app, strict=True)]
    storage = live.Storage()
    if arguments.limit:
        storage = live.Storage(_bytes("limit", arguments.limit[0]), Path(arguments.limit[1]))
        if storage.bytes_per_s < 1:
            raise UsageError(f"--limit {arguments.limit[0]}: give 1 byte/s or more")
    traces = Path(arguments.traces) if arguments.traces else None
    if traces:
        traces.mkdir(parents=True, exist_ok=True)
    plan = live.Plan(
        policies,
        dts_s,
        arguments.repetitions,
        arguments.metric,
        arguments.grain,
        arguments.sharing,
        arguments.timeout,
        storage,
        traces,
    )
    progress = Progress((len(programs) + len(policies) * len(dts_s)) * arguments.repetitions)
    before = signal.signal(signal.SIGTERM, _end)
    try:
        with live.Live(plan, programs, tell) as measuring:
            return live.measure(measuring, tell, progress.show)
    finally:
        signal.signal(signal.SIGTERM, before)
        progress.end()


def _end(number: int, _: object) -> None:
    """Exit on SIGTERM, so that everything that was started is ended on the way out."""
    raise SystemExit(128 + number)


def _bytes(option: str, text: str) -> float:
    try:
        return simulated.parse_bytes(text)
    except ValueError:
        raise UsageError(f"--{option} '{text}': give a number of bytes, with k, m, g or t for KiB to TiB") from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise HocketError(f"cannot write {path}: {error.strerror}; choose another with --json") from error


class Progress:
    """A progress line on stderr that is overwritten; without a terminal, a line at intervals."""

    def __init__(self, runs: int) -> None:
        self._runs, self._done = runs, 0
        self._start = self._shown = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def show(self, what: str) -> None:
        self._done += 1
        now = time.monotonic()
        if not self._terminal and now - self._shown < PROGRESS_S:
            return
        self._shown = now
        left_s = (now - self._start) / self._done * (self._runs - self._done)
        line = f"{self._done}/{self._runs} runs, {left_s / 60:.1f} min left: {what}"
        if self._terminal:
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        else:
            tell(line)

    def end(self) -> None:
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
