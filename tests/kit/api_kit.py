"""Build C programs as a user of the public C API does: with the installed headers and libhocket.so."""

from __future__ import annotations

import subprocess
from pathlib import Path

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def dynamic_symbols(library: Path, which: str) -> list[str]:
    listed = subprocess.run(["nm", "-D", which, library], capture_output=True, text=True, check=True).stdout
    return [line.split()[-1].split("@")[0] for line in listed.splitlines()]


def build(prefix: Path, source: Path, program: Path) -> Path:
    """Compile the program as C99, with the sanitizers that libhocket.so was built with."""
    library = prefix / "lib" / "libhocket.so"
    sanitized = any(name.startswith("__asan_init") for name in dynamic_symbols(library, "--undefined-only"))
    sanitizers = ["-fsanitize=address,undefined"] if sanitized else []
    where = [f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib"]
    subprocess.run(["gcc", *STRICT, *sanitizers, source, "-o", program, *where, "-lhocket"], check=True, timeout=60)
    return program
