"""Configuration files made of the JSON schema of their kind: tables and keys that no seed has, with values of their
type, of their range and at its borders."""

from __future__ import annotations

import json
import random
import re
from functools import cache
from typing import Any

import mutate

from torqueloop.hil.catalogue.schema import schemas


@cache
def _schema(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(schemas()[f"{kind}.schema.json"])
    return found


def extended(kind: str, base: str, words: bytes, rng: random.Random) -> bytes:
    """A file of a kind that extends or includes another one, and adds one to three of the tables that the kind knows.
    words: a text whose words stand for names."""
    schema = _schema(kind)
    keys = [key for key in schema["properties"] if key not in ("kind", "extends", "without", "include", "gearbox")]
    names = re.findall(r"[A-Za-z_][\w.]{2,}", words.decode("utf-8", "replace"))
    made = {
        key: _value(schema["properties"][key], schema, names, rng) for key in rng.sample(keys, rng.choice((1, 1, 2, 3)))
    }
    lines = [
        f"kind = {json.dumps(kind)}",
        f"extends = {_toml(base)}" if "extends" in schema["properties"] else f"include = {_toml([base])}",
    ]
    if rng.random() < 0.05:
        lines.append(f"without = {_toml(rng.sample(names, 2))}")
    return "\n".join([*lines, *(f"{key} = {_toml(value)}" for key, value in made.items())]).encode()


def _value(part: dict[str, Any], schema: dict[str, Any], names: list[str], rng: random.Random) -> Any:
    """A value of a part of a schema, now and then one that it does not allow."""
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        # what a table must have stands beside it (hil/catalogue/schema.py)
        part = {**schema["definitions"].get(f"Whole{name}", {}), **schema["definitions"][name]}
    for key in ("anyOf", "oneOf", "allOf"):
        if key in part:
            return _value(rng.choice(part[key]), schema, names, rng)
    if "then" in part:
        return _value(part["then"], schema, names, rng)
    if rng.random() < 0.03:
        return rng.choice((True, -1, 2**70, 1.5, "", [], {}, "x" * 300))
    if "const" in part:
        return part["const"]
    if "enum" in part:
        return rng.choice(part["enum"])
    kind = part.get("type")
    if isinstance(kind, list):
        kind = rng.choice(kind)
    if kind == "object" or "properties" in part:
        return _table(part, schema, names, rng)
    if kind == "array":
        items = part.get("prefixItems") or [part.get("items") or {}] * rng.randint(
            low := part.get("minItems", 0), low + 3
        )
        return [_value(item, schema, names, rng) for item in items]
    if kind in ("number", "integer"):
        return _number(part, kind == "integer", rng)
    if kind == "boolean":
        return rng.random() < 0.5
    return rng.choice(names) if rng.random() < 0.8 else rng.choice(("1 < 2", "car.v > 3", "zf_4hp22", "a b", "../x"))


def _table(part: dict[str, Any], schema: dict[str, Any], names: list[str], rng: random.Random) -> dict[str, Any]:
    known, needed = part.get("properties", {}), part.get("required", [])
    chance = rng.choice((0.1, 0.4, 0.8))
    made = {
        key: _value(inner, schema, names, rng) for key, inner in known.items() if key in needed or rng.random() < chance
    }
    if isinstance(others := part.get("additionalProperties"), dict):
        made |= {rng.choice(names): _value(others, schema, names, rng) for _ in range(rng.choice((1, 1, 2)))}
    return made


def _number(part: dict[str, Any], whole: bool, rng: random.Random) -> float:
    low = part.get("minimum", part.get("exclusiveMinimum", -10.0))
    high = part.get("maximum", part.get("exclusiveMaximum", max(10.0, low + 10.0)))
    value = rng.choice((low, high, 0, 1, 2, rng.uniform(low, high), rng.uniform(low, min(high, low + 10.0))))
    return int(value) if whole or rng.random() < 0.2 else float(value)


def _toml(value: Any) -> str:
    """As an inline value of TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def mutator(kind: str, base: str, share: float = 0.6) -> Any:
    """Text as somebody wrote it, mutated; or a file of the schema."""

    def change(data: bytes, rng: random.Random) -> bytes:
        if rng.random() < share:
            return extended(kind, base, data, rng)
        return mutate.text(data, rng)

    return change
