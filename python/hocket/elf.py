"""Reads from an ELF file (64 bit) if it is linked dynamically, and with which libraries.

The file is mapped: only the pages that are looked at are read.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections import namedtuple
from pathlib import Path

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NULL, DT_NEEDED, DT_STRTAB = 0, 1, 5


# static: bool
# needed: tuple[str, ...], the libraries that the file itself names
Elf = namedtuple("Elf", ("static", "needed"))  # dataclasses and typing are slow to import (cli.py)


def read_elf(path: Path) -> Elf | None:
    """Return None if the file cannot be read, or is no valid 64-bit little-endian ELF file."""
    data = _contents(path)
    if data is None:
        return None
    try:
        return _parse(data)
    except (struct.error, IndexError, ValueError):
        return None


def interpreter_of(path: Path) -> Path | None:
    """Return the interpreter of a script, which the kernel executes for it; None if the file is no script."""
    try:
        with path.open("rb") as file:
            head = file.read(256)  # the kernel takes no more
    except OSError:
        return None
    words = head[2:].split(b"\n")[0].split(b"\0")[0].split() if head[:2] == b"#!" else []
    return Path(os.fsdecode(words[0])) if words else None


def has_text(path: Path, text: str) -> bool:
    """Return True if the file is an ELF program that contains this text."""
    data = _contents(path)
    return data is not None and data.find(text.encode()) >= 0


def _contents(path: Path) -> mmap.mmap | None:
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # ValueError: the file is empty
        return None
    return data if data[:6] == b"\x7fELF\x02\x01" else None  # 64 bit, little endian


def _parse(data: mmap.mmap) -> Elf:
    offset, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    headers = []
    for number in range(count):
        kind, _, at, address, _, length = struct.unpack_from("<IIQQQQ", data, offset + number * size)
        headers.append((kind, at, address, length))
    dynamic = next(((at, length) for kind, at, _, length in headers if kind == PT_DYNAMIC), None)
    if dynamic is None:
        return Elf(static=True, needed=())
    entries = list(struct.iter_unpack("<qQ", data[dynamic[0] : dynamic[0] + dynamic[1] // 16 * 16]))
    strings = _file_offset(headers, next((value for tag, value in entries if tag == DT_STRTAB), 0))
    names = [value for tag, value in entries if tag == DT_NEEDED]
    needed = tuple(_text(data, strings + name) for name in names)
    interpreted = any(kind == PT_INTERP for kind, *_ in headers)
    return Elf(static=not interpreted and not needed, needed=needed)


def _file_offset(headers: list[tuple[int, int, int, int]], address: int) -> int:
    for kind, at, start, length in headers:
        if kind == PT_LOAD and start <= address < start + length:
            return at + address - start
    raise ValueError(f"address {address:#x} is in no segment")


def _text(data: mmap.mmap, at: int) -> str:
    end = data.find(b"\0", at)
    if end < 0:
        raise ValueError(f"no text ends behind {at:#x}")
    return data[at:end].decode(errors="replace")
