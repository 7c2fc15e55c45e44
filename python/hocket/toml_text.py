"""Writes values and tables as TOML. Python reads TOML only."""

from __future__ import annotations

import json
from typing import Any

from hocket.toml_checks import Table


def value_text(value: Any) -> str:
    """Return a value on one line. Numbers are exact."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {value_text(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(value_text(one) for one in value) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def tables_text(table: Table, path: tuple[str, ...] = ()) -> str:
    """Return a table with its tables: [name] for each, and [[name]] for each of a list of them."""
    lines = [f"{key} = {value_text(value)}" for key, value in table.items() if not _has_header(key, value)]
    text = "".join(f"{line}\n" for line in lines)
    for key, value in table.items():
        if not _has_header(key, value):
            continue
        below = (*path, key)
        header = "[{}]" if isinstance(value, dict) else "[[{}]]"
        for one in [value] if isinstance(value, dict) else value:
            text += f"\n{header.format('.'.join(below))}\n{tables_text(one, below)}"
    return text


def _has_header(key: str, value: Any) -> bool:
    """Tell a table with a header from an inline one: the keys of an inline one are numbers."""
    if isinstance(value, dict):
        return not all(str(one).isdecimal() for one in value)
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)
