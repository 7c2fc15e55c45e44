"""The JSON schema of a description, from the declared keys."""

from __future__ import annotations

from typing import Any

from hocket.emulator.keys import DATA, GROUP, METHODS, PHASE, STAGE, STAGES, TOP, Key
from hocket.toml_checks import MUST


def schema() -> dict[str, Any]:
    """Return the schema. What contradicts itself although each key is right, only the reader finds."""
    stage = _table(STAGE)
    stage["allOf"] = [_of_kind(kind) for kind in STAGES]
    phase = _table(PHASE)
    phase["properties"]["stage"] = _tables(stage)
    phase["required"] = ["stage"]
    top = _table(TOP)
    top["properties"] |= {"data": _table(DATA), "group": _tables(_table((*GROUP, *METHODS))), "phase": _tables(phase)}
    top["required"] += ["group", "phase"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "hocket emulate", **top}


def _table(keys: tuple[Key, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [key.name for key in keys if key.default is MUST and set(key.stages) == set(STAGES)],
        "properties": {key.name: _value(key) for key in keys},
    }


def _tables(one: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": one}


def _of_kind(kind: str) -> dict[str, Any]:
    """Return which keys a stage of this kind must and must not have."""
    other = [key.name for key in STAGE if kind not in key.stages]
    required = [key.name for key in STAGE if kind in key.stages and key.default is MUST]
    rules: dict[str, Any] = {"properties": dict.fromkeys(other, False), "required": required}
    return {"if": {"properties": {"kind": {"const": kind}}}, "then": rules}


def _value(key: Key) -> dict[str, Any]:
    about: dict[str, Any] = {"description": key.meaning}
    if key.default is not MUST and key.default is not None:
        about["default"] = key.default
    if key.kind == "whole":
        return about | {"type": "integer", "minimum": int(key.least), "maximum": int(key.most)}
    if key.kind == "number":
        return about | {"type": "number", "minimum": key.least, "maximum": key.most}
    if key.kind == "truth":
        return about | {"type": "boolean"}
    if key.kind == "word":
        return about | {"enum": list(key.words)}
    if key.kind == "size":
        whole = {"type": "integer", "minimum": 1, "maximum": int(key.most)}
        return about | {"anyOf": [whole, {"type": "string", "pattern": "^[0-9]{1,15}[kmg]?$"}]}
    if key.kind in ("factors", "shares"):
        number = {"type": "number", "minimum": 0}
        item = number if key.kind == "factors" else {"type": "array", "items": number}
        return about | {"type": "object", "minProperties": 1, "patternProperties": {"^[0-9]+$": item}}
    return about | {"type": "string", "minLength": 1}
