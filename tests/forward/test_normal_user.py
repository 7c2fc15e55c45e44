"""`hocket forward` of a normal user: hocketd, servers, and programs are all of that user, as are the directories.

If root runs the tests, those that are named here run again as a user without any rights of root: common programs,
corners (of which `no-name` shows something only then), fio, rsync, and an MPI program. If a normal user runs the tests,
they run again as that user.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import REPO

LIMIT_S = 400
pytestmark = pytest.mark.timeout(LIMIT_S + 20)

NOBODY = 65534
AS_NOBODY = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups --bounding-set=-all --inh-caps=-all".split()
# By file: the tests, and how many they are at least.
REPEATED = {
    "test_forward.py": ("(common_programs or corners) and synchronous or fio", 46),
    "test_mpi.py": ("mpi_program and alone and not solver", 4),
}


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory of the user that others do not write to."""
    directory = Path(tempfile.mkdtemp(prefix="hocket-test-", dir="/tmp"))
    if os.geteuid() == 0:
        os.chown(directory, NOBODY, NOBODY)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.mark.parametrize("file", REPEATED)
def test_tests_pass_as_a_normal_user(file: str, home: Path, prefix: Path):
    chosen, at_least = REPEATED[file]
    words = f"-m pytest -q -p no:cacheprovider --basetemp={home}/base".split()
    command = [sys.executable, *words, REPO / "tests" / "forward" / file, "-k", chosen]
    if os.geteuid() == 0:
        command = AS_NOBODY + command
    own = ("PYTEST", "TMPDIR")  # what belongs to this run of the tests
    environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    environment |= {"HOME": str(home), "HOCKET_PREFIX": str(prefix), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, env=environment, cwd=REPO, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) >= at_least and "skipped" not in done.stdout, done.stdout
