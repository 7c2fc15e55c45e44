"""Draws a random queue of the jobs of a file, as GekkoFWD does (section 5.3). Pure."""

from __future__ import annotations

import random
from dataclasses import replace

from hocket.workload.jobs import Workload, WorkloadJob, queue_of


def drawn(workload: Workload, count: int, seed: int) -> Workload:
    """Return the workload with a queue of `count` jobs in random order, all of which are there from the start.

    Each job appears at least once if there is room, and otherwise no job appears twice.
    """
    generator = random.Random(seed)
    chosen: list[WorkloadJob] = generator.sample(workload.jobs, min(count, len(workload.jobs)))
    chosen += generator.choices(workload.jobs, k=count - len(chosen))
    generator.shuffle(chosen)
    plain = {one.name: _without_times(one) for one in workload.jobs}
    queue = queue_of([(plain[one.name], 0.0) for one in chosen], workload.path)
    content = workload.content | {"queue": [one.kind.name for one in queue]}
    return replace(workload, jobs=list(plain.values()), queue=queue, content=content)


def _without_times(one: WorkloadJob) -> WorkloadJob:
    table = {key: value for key, value in one.table.items() if key not in ("arrival_s", "repeat")}
    return replace(one, arrival_s=0.0, repeat=1, table=table)
