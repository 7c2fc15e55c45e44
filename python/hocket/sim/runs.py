"""Runs hocket-sim: one run for each policy and seed, several at once."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hocket import paths
from hocket.errors import HocketError, UsageError

VERSION = 1
MISUSED = 2  # exit code of hocket-sim for a wrong scenario or call


@dataclass(frozen=True)
class Wanted:
    """One run to be done. "" and None: as the scenario says. A trace is written only if a path is given."""

    scenario: Path
    policy: str = ""
    seed: int | None = None
    policy_file: Path | None = None
    trace: Path | None = None
    best: bool = False  # instead of a policy: the best schedule with perfect knowledge

    def command(self, program: Path) -> list[str]:
        words = [str(program), str(self.scenario)]
        options = {"--policy": self.policy or None, "--seed": self.seed}
        options |= {"--policy-file": self.policy_file, "--trace": self.trace}
        for option, value in options.items():
            words += [option, str(value)] if value is not None else []
        return words + (["--best"] if self.best else [])


Result = dict[str, Any]  # output of hocket-sim; times are seconds


def simulate(wanted: Sequence[Wanted], done: Callable[[Result], None] = lambda _: None) -> list[Result]:
    """Return the results in the order of `wanted`. `done` receives each as it comes.

    Raises HocketError with the message of hocket-sim if a run fails.
    """
    program = paths.simulator()
    if not program.exists():
        raise HocketError(f"no hocket-sim at {program}; is hocket built and installed? (HOCKET_PREFIX says where)")

    def one(run: Wanted) -> Result:
        result = _run(run.command(program))
        done(result)
        return result

    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        runs = [pool.submit(one, run) for run in wanted]
        try:
            return [run.result() for run in runs]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _run(command: list[str]) -> Result:
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except OSError as error:
        raise HocketError(f"cannot run {command[0]}: {error.strerror}") from error
    if ended.returncode != 0:
        lines = [line for line in ended.stderr.splitlines() if line.strip()]
        told = lines[-1].removeprefix("hocket-sim: ") if lines else f"hocket-sim ended with code {ended.returncode}"
        raise (UsageError if ended.returncode == MISUSED else HocketError)(told)
    try:
        result = json.loads(ended.stdout)
        version = result["hocket_sim"]
    except (ValueError, KeyError, TypeError) as error:
        raise HocketError(f"{command[0]} printed no result; is it another version?") from error
    if version != VERSION:
        raise HocketError(f"{command[0]} prints results of version {version}; this hocket reads version {VERSION}")
    return result
