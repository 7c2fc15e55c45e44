"""Writes the wrappers of libhocket for one MPI: every routine of mpi_routines.txt, as that MPI's own mpi.h declares it.

    generate_wrappers.py TABLE COMPILER INCLUDE_DIRECTORY OUTPUT

Each routine is wrapped under its MPI_ and its PMPI_ name: Fortran layers and tools above us call PMPI_ (README.md).
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Routines that look whether something has arrived. A program may call them at any rate, so they are not logged.
POLLS = re.compile(r"MPI_(Iprobe|Improbe|Request_get_status|Parrived|Win_test)")


@dataclass
class Parameter:
    declaration: str  # "const int sendcounts[]"
    name: str
    type: str  # "const int[]"

    @property
    def is_scalar(self) -> bool:
        return "*" not in self.type and "[" not in self.type


@dataclass
class Routine:
    name: str  # with MPI_
    parameters: list[Parameter]

    def of_type(self, *types: str) -> list[str]:
        return [parameter.name for parameter in self.parameters if parameter.type in types]

    def counts(self) -> list[str]:
        """Its scalar element counts: of one datatype each, if there are as many datatypes."""
        return [p.name for p in self.parameters if p.is_scalar and re.fullmatch(r"(recv)?count", p.name)]


def read_table(text: str) -> dict[str, list[str]]:
    """Routine → words of its kind."""
    rows = (line.split("#")[0].split() for line in text.splitlines())
    return {f"MPI_{row[0]}": row[1:] for row in rows if row}


def parse_parameter(text: str) -> Parameter:
    text = " ".join(text.split())
    match = re.fullmatch(r"(?P<type>.*?)(?P<name>\w+)(?P<array>(\[\d*\])*)", text)
    assert match, f"mpi.h declares a parameter that is not understood: '{text}'"
    return Parameter(text, match["name"], match["type"].replace(" *", "*").strip() + match["array"])


def prototypes(header: str, wanted: set[str]) -> dict[str, Routine]:
    """Of the wanted functions those that a preprocessed mpi.h declares."""
    found = {}
    for name, parameters in re.findall(r"\bint\s+(MPI_\w+)\s*\(([^()]*)\)", header):
        if name not in wanted:
            continue
        words = [] if parameters.strip() == "void" else parameters.split(",")
        found[name] = Routine(name, [parse_parameter(word) for word in words])
    return found


def body(routine: Routine, kind: list[str], symbol: str) -> str:
    """The expression that hands the call to hooks.hpp. `call` is the next MPI_ or PMPI_ function of that name."""
    arguments = ", ".join(parameter.name for parameter in routine.parameters)
    plain = f"[&] {{ return next_{symbol}()({arguments}); }}"
    if kind[0] in ("file", "read", "write") and kind[-1] not in ("own", "served") and "fh" in arguments.split(", "):
        writes = "true" if kind[0] == "write" else "false"
        plain = f"[&] {{ return unless_data_set(fh, {writes}, {plain}); }}"
    name = f'"{routine.name}"'
    place = ", offset" if "_at" in routine.name and routine.of_type("MPI_Offset") else ""
    asked = f"{{{name}, count, datatype{place}}}" if routine.counts() else f"{{{name}}}"
    # A data access gets a status of libhocket's own if the caller ignores the status: its bytes are counted from it.
    with_status = re.sub(r"\bstatus\b", "filled", plain).replace("[&]", "[&](MPI_Status* filled)", 1)
    match kind:
        case ["init" | "finalize" | "abort" as what]:
            return f"watch_{what}({plain})"
        case ["file"]:
            return f"watch_file({name}, {plain})"
        case ["open"]:
            renamed = plain.replace("[&]", "[&](const char* other_name, int other_mode)")
            renamed = renamed.replace("filename", "other_name").replace("amode", "other_mode")
            return f"watch_open({renamed}, comm, filename, amode, info, fh)"
        case ["close"]:
            return f"watch_close({plain}, fh)"
        case ["hint"]:
            return f"watch_hint({name}, {plain}, fh, info)"
        case ["view"]:
            return f"watch_view({name}, {plain}, fh, disp, etype, filetype, datarep, info)"
        case ["size"]:
            return f"watch_size({plain}, fh, size)"
        case ["seek"]:
            moved = plain.replace("[&]", "[&](MPI_Offset other_offset, int other_whence)")
            moved = re.sub(r"\b(offset|whence)\b", r"other_\1", moved)
            return f"watch_seek({moved}, fh, offset, whence)"
        case ["sync"]:
            return f"watch_sync({name}, {plain}, fh)"
        case ["complete"]:
            requests = routine.of_type("MPI_Request*", "MPI_Request[]")[0]
            count = routine.parameters[0].name if routine.parameters[0].type == "int" else "1"
            return f"watch_completion({name}, {plain}, {count}, {requests})"
        case ["comm"]:
            return f"watch_communication({name}, {plain}, {logged(routine)}{payload(routine)})"
        case ["read" | "write" as direction]:
            return f"watch_independent(AccessDirection::{direction}, {asked}, {with_status}, fh, status)"
        case ["read" | "write" as direction, "collective"]:
            return f"watch_collective(AccessDirection::{direction}, {asked}, {with_status}, fh, status)"
        case ["read" | "write" as direction, "served" | "own" as way]:
            offset = "offset" if routine.of_type("MPI_Offset") else "std::nullopt"
            access = f"{{AccessDirection::{direction}, fh, {offset}, buf, count, datatype}}"
            return f"watch_{way}({name}, {with_status}, {access}, status)"
        case ["read" | "write" as direction, "begin"]:
            return f"watch_begin(AccessDirection::{direction}, {asked}, {plain}, fh)"
        case ["read" | "write" as direction, "end"]:
            return f"watch_end({name}, AccessDirection::{direction}, {with_status}, fh, status)"
        case ["read" | "write" as direction, "start"]:
            return f"watch_start(AccessDirection::{direction}, {asked}, {plain}, fh, request)"
        case ["read" | "write" as direction, "start", "collective"]:
            return f"watch_collective_start(AccessDirection::{direction}, {asked}, {plain}, fh, request)"
    raise SystemExit(f"mpi_routines.txt: {symbol} is of the unknown kind '{' '.join(kind)}'")


def counted(routine: Routine, kind: list[str], symbol: str) -> str | None:
    """The expression that only counts a blocking data access, or None for routines of another kind."""
    if kind[0] not in ("read", "write") or kind[1:] not in ([], ["collective"], ["served"], ["own"]):
        return None
    arguments = ", ".join(
        "filled" if parameter.name == "status" else parameter.name for parameter in routine.parameters
    )
    call = f"[&](MPI_Status* filled) HOCKET_INLINE {{ return next_{symbol}()({arguments}); }}"
    return f"count_only(AccessDirection::{kind[0]}, {call}, status)"


def payload(routine: Routine) -> str:
    """Count and datatype, for routines where they are significant in every rank: one of each, no send-receive pairs."""
    counts = routine.counts()
    types = [p.name for p in routine.parameters if p.type == "MPI_Datatype"]
    return f", {counts[0]}, {types[0]}" if len(counts) == len(types) == 1 else ""


def bytes_of(routine: Routine) -> str:
    """The bytes that this process contributes: what it sends, or what it receives where only that is significant."""
    names = {parameter.name: parameter for parameter in routine.parameters}

    def scalar(count: str, type_: str) -> str | None:
        known = count in names and type_ in names and names[count].is_scalar and names[type_].is_scalar
        return f"mpi::bytes_of({count}, {type_})" if known else None

    def several(counts: str, type_: str) -> str | None:
        known = {counts, type_, "comm"} <= names.keys() and "eighbor" not in routine.name
        return f"bytes_of_all({counts}, {type_}, comm)" if known and names[type_].is_scalar else None

    sent = scalar("sendcount", "sendtype") or several("sendcounts", "sendtype")
    received = scalar("recvcount", "recvtype") or own_part("recvcounts", names)
    if "catter" in routine.name and received:  # what it receives, as only the root sends
        sent, received = received, None
    if sent and received and {"sendbuf", "recvbuf"} <= names.keys():
        return f"sendbuf == MPI_IN_PLACE ? {received} : {sent}"
    return (
        sent
        or scalar("count", "datatype")
        or several("recvcounts", "datatype")
        or scalar("origin_count", "origin_datatype")
        or "0"
    )


def own_part(counts: str, names: dict[str, Parameter]) -> str | None:
    """The bytes of this process's own part, where each has a count for all of them (Allgatherv in place)."""
    known = {counts, "recvtype", "comm"} <= names.keys() and names["recvtype"].is_scalar
    return f"bytes_of_own({counts}, recvtype, comm)" if known else None


def logged(routine: Routine) -> str:
    """A lambda that returns what the log of calls has of the routine. It runs after the call, if there is a log."""
    if POLLS.match(routine.name):
        return "skip_log"
    peers = [p.name for p in routine.parameters if p.name in ("dest", "source", "root") and p.type == "int"]
    comms = routine.of_type("MPI_Comm")
    words = [bytes_of(routine), peers[0] if peers else "-1", comms[0] if comms else "mpi::no_comm()"]
    return f"[&] {{ return logged_communication({', '.join(words)}); }}"


def large_counts(routine: Routine, plain: Routine) -> str | None:
    """What becomes of each argument where the routine without `_c` takes its place, or None if it cannot."""
    kinds = {("int", large): "count" for large in ("MPI_Count", "MPI_Aint")}
    if "eighbor" not in routine.name:  # its arrays have other lengths
        kinds |= {("const int[]", f"const {large}[]"): "counts" for large in ("MPI_Count", "MPI_Aint")}
    pairs = [(a.type, b.type) for a, b in zip(plain.parameters, routine.parameters, strict=True)]
    if any(a != b and (a, b) not in kinds for a, b in pairs):
        return None
    comm = next((at for at, (a, _) in enumerate(pairs) if a == "MPI_Comm"), 0)
    lasting = plain.name.startswith("MPI_I") or plain.name.endswith("_init")
    words = ", ".join(f"LargeArgument::{kinds.get(pair, 'same')}" for pair in pairs)
    return f"LargeRoutine<{words}>::pass<{comm}, {str(lasting).lower()}>"


def wrapper(routine: Routine, kind: list[str], plain: Routine | None) -> str:
    """The wrapper under both names: `enter_` is what the program calls, with words in place of this MPI's types.

    A data access that is only counted takes a path of its own, which is kept small (count_only in hooks.hpp).
    """
    declarations = ", ".join(parameter.declaration for parameter in routine.parameters)
    types = [re.sub(r"\[\]$", "*", parameter.type) for parameter in routine.parameters]
    names = [parameter.name for parameter in routine.parameters]
    words = ", ".join(f"Word {name}" for name in names)
    typed = ", ".join(f"from_word<{type_}>({name})" for type_, name in zip(types, names, strict=True))
    large = large_counts(routine, plain) if plain else None

    def passed(symbol: str) -> str:
        called = ", ".join([f'"{symbol}"', f'"{symbol[:-2]}"'] if large else [f"next_{symbol}()"])
        return f"{large or 'pass_words'}({', '.join([called, *names])})"

    def both(symbol: str) -> str:
        watch = (
            f'static constinit NextFunction<int({", ".join(types)})> next_{symbol}{{"{symbol}"}};\n'
            f"static int watch_{symbol}({declarations}) {{\n"
            f"  return {body(routine, kind, symbol)};\n"
            f"}}\n"
        )
        enter = f'HOCKET_EXPORT int enter_{symbol}({words}) __asm__("{symbol}");\nint enter_{symbol}({words}) {{\n'
        either = f"  return may_watch() ? watch_{symbol}({typed}) : {passed(symbol)};\n}}\n"
        count = counted(routine, kind, symbol)
        if not count:
            return watch + enter + either
        return (
            f"{watch}[[gnu::noinline]] static int pass_{symbol}({words}) {{\n{either}"
            f"HOCKET_INLINE static inline int count_{symbol}({declarations}) {{ return {count}; }}\n"
            f"{enter}  return only_counts() ? count_{symbol}({typed}) : pass_{symbol}({', '.join(names)});\n}}\n"
        )

    return both(routine.name) + both(f"P{routine.name}")


def generate(table: str, header: str) -> str:
    kinds = {name: kind for routine, kind in read_table(table).items() for name in (routine, f"{routine}_c")}
    declared = prototypes(header, set(kinds))
    wrappers = [
        wrapper(declared[name], kind, declared.get(name.removesuffix("_c")) if name.endswith("_c") else None)
        for name, kind in kinds.items()
        if name in declared
    ]
    return (
        "// Written by generate_wrappers.py from mpi_routines.txt and mpi.h; not to be edited.\n"
        '#include "intercept/hooks.hpp"\n'
        '#include "intercept/words.hpp"\n\n'
        "using namespace hocket::runtime;\n\n"
        'extern "C" {\n' + "".join(wrappers) + "}\n"
    )


def main() -> None:
    table, compiler, include, output = sys.argv[1:]
    header = subprocess.run(
        [compiler, "-E", "-P", "-I", include, "-"], input="#include <mpi.h>", capture_output=True, text=True, check=True
    ).stdout
    Path(output).write_text(generate(Path(table).read_text(), header))


if __name__ == "__main__":
    main()
