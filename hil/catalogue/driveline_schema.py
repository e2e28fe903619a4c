"""JSON schema of files that hold a driveline, or a part of one: from the declarations of the components' parameters.

Every parameter may be written under one key for each unit of its dimension; its range is that of the declaration in
this unit. What a file means together (flanges, shafts, gears) only `torqueloop check` decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from torqueloop.core.components import KINDS
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import ORDERS
from torqueloop.core.describe.params import REQUIRED, Param, params_of
from torqueloop.core.describe.published import Published
from torqueloop.core.describe.reading import DRIVELINES
from torqueloop.core.describe.toml_front import FREE_KEYS, LINE_KEYS, START_DIMENSIONS, keys_in_files
from torqueloop.core.describe.units import keys_of

NAME = "driveline"
TITLE = "driveline, gearbox, drive and part"
FILES = ("**/gearboxes/*.toml", "**/powertrains/*.toml", "**/drives/*.toml", "**/examples/*.toml")
TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
TEXTS: dict[str, Any] = {"type": "array", "items": TEXT}
#: `source` may name where each key comes from
FREE: dict[str, Any] = {key: {"anyOf": [TEXT, {"type": "object", "additionalProperties": TEXT}]} for key in FREE_KEYS}
#: a table of rows: in the file, or in another one
ROWS: list[dict[str, Any]] = [TEXT, {"type": "array"}, {"type": "object"}]


def driveline_schema(draft: str, kinds: Mapping[str, type[Component]] = KINDS) -> dict[str, Any]:
    """The schema, with these kinds of components."""
    return {
        "$schema": draft,
        "title": f"torqueloop: {TITLE}",
        "type": "object",
        "properties": _top(list(kinds)),
        "additionalProperties": False,
        "definitions": {word: _component(word, kind) for word, kind in kinds.items()},
    }


def _closed(properties: Mapping[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    """A table with these keys and no others."""
    found = {"type": "object", "properties": {**properties, **FREE}, "additionalProperties": False, **more}
    return {**found, "required": list(required)} if required else found


def _open(item: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A table of entries by name."""
    return {"type": "object", "properties": FREE, "additionalProperties": item, **more}


def _top(words: list[str]) -> dict[str, Any]:
    kinds = []
    for word in words:
        this = {"required": ["kind"], "properties": {"kind": {"const": word}}}
        kinds.append({"if": this, "then": {"$ref": f"#/definitions/{word}"}})
    component = {"type": "object", "required": ["kind"], "properties": {"kind": {"enum": words}}, "allOf": kinds}
    ends = _closed({"input": TEXT, "output": TEXT, **dict.fromkeys(LINE_KEYS, NUMBER)}, "input", "output")
    starts = [key for quantity, dimension in START_DIMENSIONS.items() for key in keys_of(quantity, dimension)]
    figures = {f.name: {"type": "number", "minimum": f.metadata["low"], "maximum": f.metadata["high"],
                        "description": f.metadata["doc"]} for f in fields(Published)}  # fmt: skip
    gear = _closed({"engaged": TEXTS, "ratio": NUMBER}, "engaged")
    return {
        "kind": {"enum": list(DRIVELINES), "description": "Which kind of file this is."},
        "name": TEXT,
        "gearbox": {"anyOf": [TEXT, ends], "description": "Gearbox file to begin with, or the two ends of this one."},
        "include": {**TEXTS, "description": "Files whose components belong to this driveline."},
        "solver": _closed({"order": {"enum": list(ORDERS), "description": "Order of the integration."}}),
        "components": {"type": "object", "additionalProperties": component},
        "tables": {"type": "object", "additionalProperties": {"type": "object"}},
        "disconnect": {**TEXTS, "description": "Flanges that are taken off what an included file joins them to."},
        "connections": {"type": "array", "items": {**TEXTS, "minItems": 2},
                        "description": "Each entry joins its flanges, component.flange."},
        "connect": {"type": "array", "items": _closed({"flanges": TEXTS}, "flanges")},
        "initial": {"type": "object", "properties": FREE, "additionalProperties": False,
                    "patternProperties": {rf"\.({'|'.join(starts)})$": NUMBER},
                    "description": "Start values, component.quantity_unit."},
        "gears": _open(gear, description="What carries torque in each gear, and its published ratio."),
        "display": _closed({"order": TEXTS, "colours": {"type": "object"}, "planets": {"type": "object"}}),
        "published": _closed(figures, description="What makers publish, to compare with."),
        **FREE,
    }  # fmt: skip


def _component(word: str, kind: type[Component]) -> dict[str, Any]:
    """The table of one kind."""
    properties: dict[str, Any] = {"kind": {"const": word}}
    required, one_of = ["kind"], []
    for name, p in params_of(kind).items():
        keys = keys_in_files(name, p)
        properties |= {key: {**_value(p, factor), "description": p.doc} for key, factor in keys.items()}
        if p.default is REQUIRED and len(keys) == 1:
            required += keys
        elif p.default is REQUIRED:
            one_of.append({"anyOf": [{"required": [key]} for key in keys]})
    doc = (kind.__doc__ or "").partition("\n\n")[0]
    return _closed(properties, *required, description=" ".join(doc.split()), **({"allOf": one_of} if one_of else {}))


def _value(p: Param, factor: Any) -> dict[str, Any]:
    """The value under one key; factor: of its unit to SI."""
    words: dict[str, dict[str, Any]] = {
        "flag": {"type": "boolean"}, "choice": {"enum": list(p.choices)}, "names": TEXT,
    }  # fmt: skip
    if p.form in words:
        return words[p.form]
    if p.form in ("map", "columns"):
        return {"anyOf": ROWS}
    number: dict[str, Any] = {"type": "integer" if p.form == "integer" else "number"}
    scale = 1.0 if factor is None else float(factor)
    if p.low is not None:
        number["exclusiveMinimum" if p.above else "minimum"] = p.low / scale
    if p.high is not None:
        number["maximum"] = p.high / scale
    return {"anyOf": [number, *ROWS]} if p.form == "curve" else number
