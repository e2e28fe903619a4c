"""JSON schemas of configuration files, for editors: from the models, with the meaning of every key."""

from __future__ import annotations

import json
import math
from typing import Any

from pydantic import BaseModel

from torqueloop.core.describe.reading import KIND_OF_FOLDER
from torqueloop.hil.catalogue import driveline_schema
from torqueloop.hil.catalogue.models import KINDS, FileKind, comments, models_of

DRAFT = "http://json-schema.org/draft-07/schema#"
#: keys that a file of any kind may have beside its own (hil/common/config_layers.py)
LAYERS: dict[str, Any] = {
    "extends": {"type": "string", "description": "File, or bare name of an installed one, that this one builds on: "
                "everything in it holds, unless this file says otherwise."},
    "without": {"type": "array", "items": {"type": "string"},
                "description": "Dotted keys of that file that are to be gone."},
}  # fmt: skip


def schema(kind: FileKind) -> dict[str, Any]:
    """Schema of a file of this kind. What must be there is asked only of a file that extends no other."""
    made = kind.model.model_json_schema(ref_template="#/definitions/{model}")
    tables = made.pop("$defs", {})
    by_title = models_of(kind)
    for name, table in tables.items():
        _describe(table, by_title[name])
    _describe(made, kind.model)
    says = {"const": KIND_OF_FOLDER[kind.model.FOLDER], "description": "Which kind of file this is."}
    made["properties"] = {"kind": says, **LAYERS, **made["properties"]}
    _short_forms([made, tables], by_title)
    needed = {f"Whole{name}": found for name, table in tables.items() if (found := _needed(table))}
    whole = _needed(made)
    for name, table in (("", made), *tables.items()):
        table.pop("required", None)
        if by_title.get(name) in kind.parameters:
            table["properties"] = {key: _or_parameter(value) for key, value in table["properties"].items()}
    whole = _known(whole, needed)
    return {
        "$schema": DRAFT,
        "title": f"torqueloop: {kind.title.lower()}",
        **{key: value for key, value in made.items() if key != "title"},
        "if": {"not": {"required": ["extends"]}},
        "then": whole,
        "definitions": {**tables, **{name: _known(table, needed) for name, table in needed.items()}},
    }


def _describe(table: dict[str, Any], model: type[BaseModel]) -> None:
    """Meanings of the keys; what TOML does not know (null) goes out."""
    found = comments(model)
    table.pop("title", None)
    for key, value in table.get("properties", {}).items():
        plain = _without_null(value)
        plain.pop("title", None)
        default = plain.get("default", 0)
        # no null in TOML, no infinity in JSON
        if default is None or isinstance(default, dict) or isinstance(default, float) and math.isinf(default):
            del plain["default"]
        text = found.get(key) or plain.get("description")
        if text:
            # beside a $ref a reader of draft 7 sees nothing
            plain = {"allOf": [plain], "description": text} if "$ref" in plain else {**plain, "description": text}
        table["properties"][key] = plain


def _without_null(value: dict[str, Any]) -> dict[str, Any]:
    branches = [b for b in value.get("anyOf", ()) if b != {"type": "null"}]
    rest = {k: v for k, v in value.items() if k != "anyOf"}
    if not branches:
        return rest
    return {**branches[0], **rest} if len(branches) == 1 else {"anyOf": branches, **rest}


def _short_forms(value: Any, models: dict[str, type[BaseModel]]) -> None:
    """Where a text or a number may stand for a table: say so instead of the bare $ref."""
    for item in list(value.values()) if isinstance(value, dict) else list(value):
        if isinstance(item, dict | list):
            _short_forms(item, models)
    if isinstance(value, dict) and "$ref" in value:
        model = models.get(value["$ref"].rpartition("/")[2])
        short = getattr(model, "SHORT_FORMS", ())
        if short:
            value["anyOf"] = [{"$ref": value.pop("$ref")}, *({"type": one} for one in short)]


def _or_parameter(value: dict[str, Any]) -> dict[str, Any]:
    """A number, or the name of a parameter in its place."""
    if value.get("type") not in ("number", "integer"):
        return value
    about: dict[str, Any] = {key: value[key] for key in ("description", "default") if key in value}
    number = {key: part for key, part in value.items() if key not in about}
    return {"anyOf": [number, {"type": "string", "pattern": r"^\$[A-Za-z_]\w*$"}], **about}


def _needed(table: dict[str, Any]) -> dict[str, Any]:
    """What must be there, and nothing else: {} where nothing must."""
    found: dict[str, Any] = {"required": table["required"]} if table.get("required") else {}
    inner = {key: _below(value) for key, value in table.get("properties", {}).items()}
    if inner := {key: value for key, value in inner.items() if value}:
        found["properties"] = inner
    return found


def _below(value: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in value:
        return {"$ref": value["$ref"].replace("#/definitions/", "#/definitions/Whole")}
    for one in value.get("allOf", ()):
        return _below(one)
    for key in ("additionalProperties", "items"):
        if isinstance(value.get(key), dict) and (found := _below(value[key])):
            return {key: found}
    return {}


def _known(value: Any, definitions: dict[str, Any]) -> Any:
    """Without references to tables of which nothing is needed."""
    if not isinstance(value, dict):
        return value
    found = {key: _known(item, definitions) for key, item in value.items()}
    if "$ref" in found and found["$ref"].rpartition("/")[2] not in definitions:
        return {}
    return {key: item for key, item in found.items() if item != {} or key == "properties"}


def text(made: dict[str, Any]) -> str:
    """A schema as it is published."""
    return json.dumps(made, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def schemas() -> dict[str, str]:
    """File name -> schema."""
    found = {f"{kind.name}.schema.json": text(schema(kind)) for kind in KINDS}
    # in one line: indented it would be 11 000, with a definition of each kind of component
    whole = json.dumps(driveline_schema.driveline_schema(DRAFT), ensure_ascii=False, allow_nan=False)
    return {f"{driveline_schema.NAME}.schema.json": whole + "\n", **found}


def taplo(folder: str) -> str:
    """`.taplo.toml`: which schema of `folder` (as seen from it) is that of which files."""
    lines = ["# Made by `torqueloop schema --out`; editors with taplo (Even Better TOML) complete and check by it.", ""]
    rules = [(kind.name, kind.files) for kind in KINDS] + [(driveline_schema.NAME, driveline_schema.FILES)]
    for name, files in rules:
        lines += ["[[rule]]", f"include = {json.dumps(list(files))}", "", "[rule.schema]", "enabled = true",
                  f'path = "{folder}/{name}.schema.json"', ""]  # fmt: skip
    return "\n".join(lines)
