"""Where this checkout has what tests use. A test that moves to another folder needs no other path."""

from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
KIT = REPO / "tests" / "kit"  # helpers of several tests, and the stand-ins that run as programs
PROGRAMS = REPO / "tests" / "programs"  # sources that a test compiles, and a program for mpi4py
DATA = REPO / "tests" / "data"  # recorded and made traces

# The options by which a test compiles files of src/, whose includes name the room.
INCLUDES = [f"-I{group}" for group in sorted((REPO / "src").iterdir()) if group.is_dir()]
