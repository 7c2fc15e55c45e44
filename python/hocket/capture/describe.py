"""Writes what was captured, at one number of processes or several, as a description for `hocket emulate`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hocket.capture import calls as meaning
from hocket.capture.alignment import align, aligned
from hocket.capture.course import Group, Held
from hocket.capture.stages import UNEQUAL, Phase, Run, Stage
from hocket.emulator.keys import CPU_TIME, INPUT_OUTPUT, METHODS

COMPUTING = ("compute", "sleep")
LEAST_JITTER = 0.001  # ranks wait for each other less than a thousandth of their computing
# The bytes of these stages are those of all ranks together; those of the others, what one rank sends (docs/emulate.md).
OF_ALL = ("allgatherv", *INPUT_OUTPUT)
WITH_SHARES = ("allgatherv", "sendrecv", "halo", "isend-irecv", *INPUT_OUTPUT)


def describe(
    name: str, runs: Mapping[int, Run], course: Sequence[Group] = (), cores: int | None = None
) -> tuple[str, list[str]]:
    """Return the text of the description, and notes for the user.

    `runs`: by number of processes. `course`: what a malleable program did before, between and after its resizes.
    `cores`: those that the processes shared. If there were fewer of them, the emulation may share them, too.
    """
    phases = _resized_phases(runs, course) if len(course) > 1 else _phases(align(runs))
    seen = max(phases, key=lambda one: one[0].iterations)[1]
    notes = [
        f"with {size} processes the application has other stages than with {max(seen)}; its times are left out"
        for size in sorted(set(runs) - set(seen))
    ]
    notes += [
        f"the logs had no room for {run.dropped} calls of {size} processes; what came last is missing: capture fewer "
        "iterations"
        for size, run in sorted(runs.items())
        if run.dropped
    ]
    lines = [*_summary(runs), f'name = "{name}"']
    if cores is not None and max(runs) > cores:
        lines.append(f"oversubscribe = true  # it was captured with {max(runs)} processes on {cores} cores")
    lines.append("")
    lines += _data(course)
    if len(course) > 1:
        lines += _groups(course)
    else:
        lines += ["[[group]]", f"processes = {max(runs)}", f"iterations = {sum(one.iterations for one, _ in phases)}"]
    for at, (phase, alike) in enumerate(phases):
        lines += ["", "[[phase]]", f"iterations = {phase.iterations}"]
        for number in range(len(phase.stages)):
            stages = {size: one.stages[number] for size, one in alike.items()}
            lines += ["", *_stage(stages, f"data-{at + 1}-{number + 1}.dat")]
    return "\n".join(lines) + "\n", notes


Phases = list[tuple[Phase, dict[int, Phase]]]  # each with what is alike at several numbers of processes


def _phases(runs: Mapping[int, Run]) -> Phases:
    largest = runs[max(runs)]
    shape = _shape(largest.phases)
    alike = [(size, run) for size, run in sorted(runs.items()) if _shape(run.phases) == shape]
    return [(phase, {size: run.phases[at] for size, run in alike}) for at, phase in enumerate(largest.phases)]


def _resized_phases(runs: Mapping[int, Run], course: Sequence[Group]) -> Phases:
    """Return the phases of a resized program: what precedes and follows its iterations, it did with one size each."""
    sizes = sorted(runs)
    iterated = dict(zip(sizes, aligned([runs[size].repeated for size in sizes]), strict=True))
    longest = iterated[max((group.run for group in course), key=lambda run: run.repeated.iterations).processes]
    alike = {size: phase for size, phase in iterated.items() if _shape([phase]) == _shape([longest])}
    first, last = course[0].run, course[-1].run
    repeated = Phase(sum(group.iterations for group in course), longest.stages)
    return [
        *((one, {first.processes: one}) for one in first.before),
        (repeated, alike),
        *((one, {last.processes: one}) for one in last.after),
    ]


def _shape(phases: Sequence[Phase]) -> list[list[tuple[str, int, str]]]:
    return [[(stage.kind, stage.every, stage.access) for stage in phase.stages] for phase in phases]


def _groups(course: Sequence[Group]) -> list[str]:
    """Return the lines of a group for each number of processes, with the methods of the resize that leads to it."""
    lines: list[str] = []
    for at, group in enumerate(course):
        iterations = group.iterations + len(group.run.before) * (at == 0)
        iterations += len(group.run.after) * (at == len(course) - 1)
        lines += ["[[group]]", f"processes = {group.run.processes}", f"iterations = {iterations}"]
        if at > 0:
            lines += [f'{key.name} = "{name}"' for key in METHODS for name in group.methods if name in key.words]
    return lines


def _data(course: Sequence[Group]) -> list[str]:
    """Return the lines of the data that are redistributed. If their length changed, those of the start count."""
    data = course[0].data if course else None
    if data is None or data == Held():
        return []
    by_size = {one.run.processes: [float(held.constant + held.variable) for held in one.held] for one in course}
    lines = [
        *_held("", data.constant, data.variable),
        *_held("replicated_", data.replicated_constant, data.replicated_variable),
    ]
    return ["[data]", *lines, *_shares(by_size), ""]


def _held(kind: str, constant: int, variable: int) -> list[str]:
    whole = constant + variable
    if whole == 0:
        return []
    return [f"{kind}bytes = {whole}", f"{kind}constant_percent = {_figure(100 * constant / whole)}"]


def _summary(runs: Mapping[int, Run]) -> list[str]:
    lines = ["# Captured by hocket. Means of the ranks, in seconds:"]
    for size, run in sorted(runs.items()):
        lines.append(
            f"#   {size} processes: {run.elapsed_s:.3f} in all, {run.computing_s:.3f} computing, "
            f"{run.communication_s:.3f} communicating, {run.io_s:.3f} reading and writing; {run.cpu_s:.3f} of CPU time"
        )
    return lines


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _figure(value: float) -> str:
    """Return a number of TOML with six digits."""
    text = f"{value:.6g}"
    return text if "." in text or "e" in text else text + ".0"


def _stage(stages: Mapping[int, Stage], file: str) -> list[str]:
    """Return the lines of a stage that was seen with these numbers of processes."""
    size, one = max(stages.items())
    lines = ["[[phase.stage]]", f'kind = "{one.kind}"']
    if one.kind in COMPUTING:
        lines[0] += f"  # of {size} ranks: {_mean(one.cpu_s):.6f} s of CPU time, {_mean(one.elapsed_s):.6f} s elapsed"
        return lines + _times(stages)
    lines[0] += f"  # {_seen(one)}: {_mean(one.elapsed_s):.6f} s elapsed"
    if one.kind == "wait":
        return lines
    if one.kind in INPUT_OUTPUT:
        lines += _io(one, file)
    if one.dimensions > 1:
        lines.append(f"dimensions = {one.dimensions}")
    lines.append(f"bytes = {_bytes(one)}")
    if one.kind in WITH_SHARES:
        lines += _shares({size: stage.bytes for size, stage in stages.items()})
    return lines


def _seen(stage: Stage) -> str:
    base = meaning.collective_of(stage.routine)
    return f"{stage.routine}, for which {stage.kind} stands in" if base in meaning.STAND_INS else stage.routine


def _bytes(stage: Stage) -> int:
    whole = sum(stage.bytes) if stage.kind in OF_ALL else _mean([one for one in stage.bytes if one > 0] or [0.0])
    return max(round(whole), 1 if stage.kind in INPUT_OUTPUT else meaning.LEAST_BYTES)


def _times(stages: Mapping[int, Stage]) -> list[str]:
    """Return time and scaling of a computing stage: the time with one process, as if the smallest size scaled to it."""
    by_size = {size: stage.cpu_s if stage.kind == "compute" else stage.elapsed_s for size, stage in stages.items()}
    means = {size: _mean(values) for size, values in by_size.items()}
    smallest = min(means)
    alone = means[smallest] * smallest
    lines = [f"time_s = {_figure(alone)}"]
    if next(iter(stages.values())).kind == "compute":
        lines.append(f'ends_by = "{CPU_TIME}"')
    jitter = stages[max(stages)].jitter
    if jitter >= LEAST_JITTER:
        lines.append(f"jitter = {jitter:.2g}  # of the iterations of a rank: others wait for it")
    if len(means) > 1 and alone > 0 and all(means.values()):
        lines.append(f"factors = {{ {', '.join(f'{size} = {_figure(m / alone)}' for size, m in means.items())} }}")
    elif next(iter(stages.values())).kind == "sleep":
        lines.append(f"factors = {{ {smallest} = {_figure(1 / smallest)} }}")  # only computing scales by itself
    return lines + _shares(by_size)


def _shares(by_size: Mapping[int, Sequence[float]]) -> list[str]:
    """Return each rank's share, with the sizes at which they differ."""
    unequal = {
        size: [value / sum(values) for value in values]
        for size, values in by_size.items()
        if size > 1 and sum(values) > 0 and max(values) > UNEQUAL * _mean(values)
    }
    if not unequal:
        return []
    return [f"shares = {{ {', '.join(f'{size} = [{_list(shares)}]' for size, shares in unequal.items())} }}"]


def _list(shares: Sequence[float]) -> str:
    rounded = [round(share, 6) for share in shares[:-1]]
    return ", ".join(_figure(share) for share in [*rounded, max(0.0, 1 - sum(rounded))])


def _io(stage: Stage, file: str) -> list[str]:
    lines = [f'file = "{file}"', f'access = "{stage.access}"']
    if stage.request_bytes > 0:
        lines.append(f"request_bytes = {stage.request_bytes}")
    if stage.strided:
        lines.append('pattern = "strided"')
    if stage.append:
        lines.append("append = true")
    if stage.every > 1:
        lines.append(f"every = {stage.every}")
    if stage.repeat > 1:
        lines.append(f"repeat = {stage.repeat}")
    if stage.sync:
        lines.append("sync = true")
    return lines
