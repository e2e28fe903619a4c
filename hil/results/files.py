"""Results as JSON and back: run.json, with its version and its schema (docs/schemas/run.schema.json).

Numbers that JSON does not know (NaN, infinities) are written as strings and read back as numbers. Reading checks every
type: a file of another version, or one that is none of ours, is an error that says so. Keys that this program does not
know are passed over, so that a new one needs no new version; one that goes or changes its meaning does.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from pydantic import TypeAdapter, ValidationError

from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.core.describe.reading import read_json
from torqueloop.core.describe.renamed import RESULTS, keys_in
from torqueloop.hil.results.run import RunInfo

#: of run.json and report.json. 1: untyped, until version 0.1.0 of torqueloop; 2: the tree of `results.run` with the
#: names of `core/describe/renamed.py`; 3: with today's
VERSION = 3
RUN_FILE = "run.json"

Kind = TypeVar("Kind")
#: what JSON has as it is
_SIMPLE = frozenset({str, bool, int, type(None)})


class ResultError(TorqueloopError):
    """A file of results that cannot be read."""


class ResultVersionError(ResultError):
    """A file of results in a format of another version."""


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Reader and schema of a dataclass."""
    return TypeAdapter(kind)


def run_dirs(folder: Path) -> list[Path]:
    """All run directories below a folder; not the recordings inside them, nor what lies in their config/."""
    found = [file.parent for file in sorted(folder.rglob(RUN_FILE)) if "config" not in file.parts[-3:-1]]
    return [p for p in found if p.parent.name != "recordings" or not os.path.isfile(p.parent.parent / RUN_FILE)]


def schema(kind: type, title: str) -> dict[str, Any]:
    """JSON schema of a file that holds this dataclass."""
    made = adapter(kind).json_schema(mode="serialization")
    made["title"] = title
    made["properties"] = {"format": {"const": VERSION, "title": "Format"}, **made["properties"]}
    made["required"] = ["format", *made.get("required", [])]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


@cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()


def plain(value: Any) -> Any:
    """Dataclasses, numpy numbers and arrays, paths and tuples as what JSON knows; NaN and infinities as strings."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    # (mypy takes a class for what its instances are)
    if names := _fields(type(value)):  # type: ignore[arg-type]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return list(value) if _SIMPLE.issuperset(map(type, value)) else [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    return str(value)


def _lines(value: Any, levels: int, margin: str = "") -> str:
    """JSON with a line for each key of the outer tables. A table below them has one line: its text comes from the
    encoder in C, which indents nothing and is 20 times as fast as the one that does."""
    if not levels or not isinstance(value, dict) or not value:
        return json.dumps(value, allow_nan=False)
    inner = margin + " "
    items = (f"{inner}{json.dumps(key)}: {_lines(item, levels - 1, inner)}" for key, item in value.items())
    return "{\n" + ",\n".join(items) + f"\n{margin}}}"


def write_json_atomic(path: Path | str, value: Any) -> None:
    """Write JSON so that a reader or a crash sees the old or the new file, never half of one."""
    path = Path(path)
    temporary = path.with_name(path.name + ".new")
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(_lines(plain(value), 3))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        # a full disk: the old file stays as it is, half of the new one helps nobody
        temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


def write_run_info(run_dir: Path | str, info: RunInfo) -> None:
    """run.json"""
    write_json_atomic(Path(run_dir) / RUN_FILE, {"format": VERSION, **vars(info)})


def read_run_info(run_dir: Path | str) -> RunInfo | None:
    """What the run wrote last; None when it left no run.json. ResultError when that is damaged or no such file."""
    path = Path(run_dir) / RUN_FILE
    if not os.path.isfile(path):
        return None
    try:
        value = read_json(path)
    except ConfigError as error:
        raise ResultError(str(error)) from None
    return parse(RunInfo, value, str(path))


def parse(kind: type[Kind], value: Any, source: str) -> Kind:
    """A dataclass from what `plain` made of it, with its "format"."""
    if not isinstance(value, dict):
        raise ResultError(f"{source}: not a table")
    found = value.get("format", 1)
    if found == 2:
        value, found = keys_in(value, RESULTS), VERSION
    if found != VERSION:
        older = isinstance(found, int) and found < VERSION
        remedy = "read it with the version of torqueloop that made it" if older else "a newer torqueloop made it"
        raise ResultVersionError(f"{source}: results of format {found!r}; this program reads {VERSION}: {remedy}")
    try:
        made: Kind = adapter(cast(Any, kind)).validate_python({k: v for k, v in value.items() if k != "format"})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ResultError(f"{source}: {place}: {first['msg']}") from None
    return made
