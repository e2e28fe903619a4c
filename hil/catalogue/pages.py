"""Pages of the configuration files, docs/NAME_file.md: every table and key, from the models."""

from __future__ import annotations

import functools
import inspect
import json
import math
import re
from typing import Any

from pydantic import BaseModel

from torqueloop.core.describe.reading import KIND_OF_FOLDER
from torqueloop.hil.catalogue.models import KINDS, FileKind, Table, meaning, names_file, tables

HEAD = """# {title}

`python -m torqueloop.hil.catalogue docs` makes this page; do not edit it. Example: `{example}`. Editors use the schema
[schemas/{name}.schema.json](schemas/{name}.schema.json) (`torqueloop schema {name}`).

The line `kind = "{kind}"` says of which kind the file is; `torqueloop check --fix FILE` adds it to an older file.
`torqueloop check FILE` validates the file. A key that is not on this page is an error. The file and every table
may have a key `source`, which says where the values come from. With `extends = "FILE or NAME"` a file begins with all
values of another file of its kind; `without = ["dotted.key", ...]` removes values from it. `--set KEY=VALUE` takes
precedence over the file. A file name is relative to the file that contains it; a bare name may also mean an installed
file. **Bold** keys are required. NAME stands for any name.
"""


def page(kind: FileKind) -> str:
    """The page of one kind of file."""
    found = [*tables(kind.model), *(Table("ecu.NAME.options", model) for model in kind.options)]
    made = "".join(_section(table) for table in found)
    says = KIND_OF_FOLDER[kind.model.FOLDER]
    return HEAD.format(title=kind.title, example=kind.example, name=kind.name, kind=says) + made


def pages() -> dict[str, str]:
    """File name -> page."""
    return {f"{kind.name}_file.md": page(kind) for kind in KINDS}


def _section(table: Table) -> str:
    rows = [row for key in table.model.model_fields if (row := _row(table.model, key)) is not None]
    required = "Required. " if table.required else ""
    text = f"\n## {_title(table.name)}\n\n{required}{_prose(table.model)}\n"
    if rows:
        text += "\n| key | meaning | unit | value | default |\n|---|---|---|---|---|\n" + "".join(rows)
    return text


def _title(name: str) -> str:
    """[bus.NAME], [[faults]], [[shifts.NAME.phases]]; keys of the file itself stand before any table."""
    if not name:
        return "The file"
    return f"`[[{name.removesuffix('[]').replace('[]', '')}]]`" if name.endswith("[]") else f"`[{_flat(name)}]`"


def _flat(name: str) -> str:
    return name.replace("[]", "")


def _prose(model: type[BaseModel]) -> str:
    """The docstring; a list in it stays one."""
    first, _, rest = inspect.cleandoc(model.__doc__ or "").partition("\n\n")
    text = " ".join(first.split())
    # "[clock]: ..." stands under its own heading, "[ecu.NAME.options] of kind ..." says more than it
    text = re.sub(r"^\[\S+\]: ", "", text)
    text = text[:1].upper() + text[1:] if text.split(" ")[0].isalpha() else text
    return f"{text}\n\n```text\n{rest}\n```" if rest else text


def _row(model: type[BaseModel], key: str) -> str | None:
    """None: the key is a table, which has a section of its own; `source` is everywhere."""
    value, field = _properties(model).get(key), model.model_fields[key]
    if key == "source" or value is None:
        return None
    words, text = "file" if names_file(model, key) else _words(value), meaning(model, key)
    if words is None and not text[0]:
        return None
    required = field.is_required()
    name = f"**`{key}`**" if required else f"`{key}`"
    default = "" if required else _default(field.get_default(call_default_factory=True))
    return f"| {name} | {_cell(text[0])} | {text[1]} | {_cell(words or 'table')} | {_cell(default)} |\n"


@functools.cache
def _properties(model: type[BaseModel]) -> dict[str, Any]:
    found: dict[str, Any] = model.model_json_schema()["properties"]
    return found


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _default(value: Any) -> str:
    if value is None or value == {} or value == [] or isinstance(value, BaseModel):
        return ""
    if isinstance(value, float) and math.isinf(value):
        return "none"
    return f"`{json.dumps(value)}`"


_TYPES = {"string": "text", "boolean": "true or false", "object": "table", "array": "list"}
_SIGNS = {"exclusiveMinimum": ">", "minimum": ">=", "exclusiveMaximum": "<", "maximum": "<="}


def _words(value: dict[str, Any]) -> str | None:
    """Type and range of a value in words; None: a table with a section of its own."""
    if "$ref" in value:
        return None
    if branches := [b for b in value.get("anyOf", ()) if b != {"type": "null"}]:
        words = [_words(branch) for branch in branches]
        return None if None in words else " or ".join(dict.fromkeys(w for w in words if w))
    if "enum" in value:
        return ", ".join(f"`{json.dumps(one)}`" for one in value["enum"])
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    kind = value.get("type")
    if kind in ("number", "integer"):
        limits = [f"{sign} {value[word]:.12g}" for word, sign in _SIGNS.items() if word in value]
        return " ".join(["whole number" if kind == "integer" else "number", ", ".join(limits)]).strip()
    if kind == "object" and isinstance(value.get("additionalProperties"), dict):
        inner, names = _words(value["additionalProperties"]), value.get("propertyNames", {}).get("enum")
        name = "NAME" if names is None else f"{', '.join(names)}:"
        return None if inner is None else f"{name} = {inner or 'any'}".replace(": =", ":")
    if kind == "array":
        return _list(value)
    return _TYPES.get(str(kind), "any")


def _list(value: dict[str, Any]) -> str | None:
    if "prefixItems" in value:
        return f"[{', '.join(_words(one) or '' for one in value['prefixItems'])}]"
    inner = _words(value.get("items", {}))
    return None if inner is None else f"list of {inner}"
