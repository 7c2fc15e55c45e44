"""What an executable says of itself: whether it is linked dynamically, and with which libraries. Reads ELF, 64 bit."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NULL, DT_NEEDED, DT_STRTAB = 0, 1, 5


@dataclass(frozen=True)
class Elf:
    static: bool
    needed: tuple[str, ...]  # names of the libraries that it names itself


def read_elf(path: Path) -> Elf | None:
    """None where the file is no ELF program of this kind of machine, or cannot be read."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if data[:6] != b"\x7fELF\x02\x01":  # 64 bit, little endian
        return None
    try:
        return _parse(data)
    except (struct.error, IndexError, ValueError):
        return None


def _parse(data: bytes) -> Elf:
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


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode(errors="replace")
