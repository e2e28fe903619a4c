"""Configuration files that build on each other, and single values set from outside.

    extends = "desk_4hp22.toml"         everything of that file holds, unless this file says otherwise
    without = ["gates.in_time"]         dotted keys of it that are to be gone

Tables are merged key by key, however deep; lists and values replace what was there. Files may extend files that extend
others; a circle is refused. A path stands relative to the file it is written in, so those of the extended file are
rewritten on reading. `overrides` come last: dotted key -> value, None takes the key away; a path in them stands
relative to the working directory.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, did_you_mean
from torqueloop.core.describe.reading import KIND_OF_FOLDER, Family, check_content, parse_toml, read_toml
from torqueloop.hil.common.config_file import InFile, Model, validate
from torqueloop.hil.common.locate import find

#: a key as a path: ("ecu", "tcu", "config")
Place = tuple[str, ...]
#: what errors name as the file of a value that was set from outside, with its key behind it
OUTSIDE = "--set"

#: keys that mean something to one kind of control unit or vehicle: a table of another kind does not inherit them
OF_KIND = ("start", "options", "sensors", "actuators")


@dataclass
class Layers:
    """The merged content of a file, of those it extends and of the overrides."""

    data: dict[str, Any]
    #: every file read, the extending one before the extended
    files: list[Path]
    #: place of a value -> the file it stands in
    origins: dict[Place, str] = field(default_factory=dict)

    def file_of(self, place: Place) -> str:
        """The file a value, or the table it is missing in, comes from."""
        for n in range(len(place), 0, -1):
            if place[:n] in self.origins:
                return self.origins[place[:n]]
        return str(self.files[0])


def load_config(path: str | Path, model: type[Model], overrides: Mapping[str, Any] | None = None) -> Model:
    """Read and check a configuration file with what it extends; overrides: dotted key -> value."""
    layers = read_layers(path, model, overrides)
    return validate(layers.data, model, str(path), layers.file_of)


def read_layers(path: str | Path, model: type[BaseModel], overrides: Mapping[str, Any] | None = None) -> Layers:
    """Read a file of `model` with all that it extends; ConfigError names the file a mistake is in."""
    path = Path(path)
    layers = _read(path, model, [], Family("extends", "the files extend each other in a circle"))
    return with_overrides(layers, model, overrides) if overrides else layers


def with_overrides(read: Layers, model: type[BaseModel], overrides: Mapping[str, Any]) -> Layers:
    """What was read, with other values (dotted key -> value, None takes the key away); `read` itself stays."""
    layers, path = Layers(copy.deepcopy(read.data), read.files, dict(read.origins)), read.files[0]
    for key, value in overrides.items():
        place = split_key(key)
        if value is None:
            _remove(layers, place, f"{OUTSIDE} {key}")
        else:
            given = _nested(place, copy.deepcopy(value))
            _rebase(given, model, Path.cwd(), path.resolve().parent)
            _set(layers, place, _at(given, place), f"{OUTSIDE} {key}")
    return layers


@contextmanager
def blamed_on(overrides: Mapping[str, Any] | None, path: str | Path) -> Iterator[None]:
    """Within this, a mistake that is found where an override of the file at `path` stands is that of the override; one
    in a value that the file sets in another file is that of the file."""
    try:
        yield
    except ConfigError as error:
        at = re.sub(r" \d+", "", ".".join(part.replace(", ", ".") for part in (error.table, error.key) if part)) + "."
        here = error.file in (str(path), str(Path(path).resolve()))
        inner = error.file.removeprefix(OUTSIDE).strip() if error.file and error.file.startswith(OUTSIDE) else ""
        for key in overrides or {}:
            dotted = ".".join(split_key(key)) + "."
            inside = at.startswith(dotted) or (error.key is not None and dotted.startswith(at))
            if (here and inside) or (inner and f".set.{'.'.join(split_key(inner))}." in dotted):
                error.file = f"{OUTSIDE} {key}"
                break
        else:
            if inner and inner not in (overrides or {}):
                error.file, error.table = str(path), ", ".join(filter(None, ("set", error.table)))
        raise


@lru_cache(maxsize=1024)
def split_key(key: str) -> Place:
    """A dotted key as TOML reads it: 'outputs."HIL_Speeds.n_engine".slew' has three parts."""
    try:
        found: Any = parse_toml(f"{key} = 0")
    except ConfigError:
        found = None
    place: list[str] = []
    while isinstance(found, dict) and len(found) == 1:
        [(part, found)] = found.items()
        place.append(part)
    if not place or found != 0:
        allowed = 'parts joined by ".", e.g. clock.tick_s or limits."engine.w".max'
        raise ConfigError("{value} is no dotted key", key="set", value=key, allowed=allowed)
    return tuple(place)


def parse_overrides(texts: list[str]) -> dict[str, Any]:
    """KEY=VALUE of a command line; VALUE as in TOML, and a word that is no TOML value is a text."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError("{value} is not KEY=VALUE", key="set", value=text, allowed="e.g. clock.tick_s=0.002")
        split_key(key.strip())
        try:
            read = parse_toml(f"x = {value.strip()}")["x"]
        except ConfigError:
            read = value.strip()
        check_content({key.strip(): read}, f"{OUTSIDE} {key.strip()}")
        found[key.strip()] = read
    return found


def relative_overrides(path: str | Path, model: type[BaseModel], overrides: Mapping[str, Any] | None) -> dict[str, Any]:
    """The overrides as they may be kept beside the file: paths in them relative to it, not to the working directory."""
    kept = {}
    for key, value in (overrides or {}).items():
        place = split_key(key)
        given = _nested(place, copy.deepcopy(value))
        if value is not None:
            # absolute ones as well: beside the copy of the file is the copy of what they name
            _rebase(given, model, Path.cwd(), Path(path).resolve().parent, absolute=True)
        kept[key] = _at(given, place)
    return kept


def overrides_files(path: str | Path, model: type[BaseModel], overrides: Mapping[str, Any]) -> list[Path]:
    """The files that overrides of the file at `path` name."""
    found = []
    for key, value in overrides.items():
        given = _nested(split_key(key), value)
        found += [find(path, container[k], folder) for container, k, folder in _file_keys(given, model) if folder]
    return found


# --- reading --------------------------------------------------------------------------------------------------------


def _read(path: Path, model: type[BaseModel], chain: list[Path], family: Family) -> Layers:
    real = family.enter(path, chain)
    folder = getattr(model, "FOLDER", "")
    data = read_toml(path, float, *([KIND_OF_FOLDER[folder]] if folder in KIND_OF_FOLDER else []))
    base, gone = data.pop("extends", None), data.pop("without", [])
    layers = Layers(data, [path], {})
    _mark(layers.origins, (), data, str(path))
    if base is None:
        if gone:
            raise ConfigError("without needs extends", file=str(path), key="without", value=gone)
        return layers
    if not isinstance(base, str):
        raise ConfigError(
            "{key} = {value} is not allowed", file=str(path), key="extends", value=base, allowed="the name of a file"
        )
    if not isinstance(gone, list) or not all(isinstance(key, str) for key in gone):
        raise ConfigError(
            "{key} = {value} is not allowed", file=str(path), key="without", value=gone, allowed="a list of dotted keys"
        )
    try:
        lower = _read(find(path, base, folder), model, [*chain, real], family)
    except ConfigError as error:
        raise error.located(file=str(path), key="extends") from None
    _rebase(lower.data, model, lower.files[0].resolve().parent, real.parent)
    for key in gone:
        _remove(lower, split_key(key), str(path))
    _merge(lower.data, data)
    kept = {p: f for p, f in lower.origins.items() if not any(_overlap(p, new) for new in layers.origins)}
    return Layers(lower.data, [path, *lower.files], {**kept, **layers.origins})


def _overlap(a: Place, b: Place) -> bool:
    n = min(len(a), len(b))
    return a[:n] == b[:n]


def _mark(origins: dict[Place, str], place: Place, value: Any, file: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _mark(origins, (*place, key), item, file)
    if not isinstance(value, dict) or not value:
        origins[place] = file


def _merge(lower: dict[str, Any], upper: dict[str, Any]) -> None:
    if "kind" in upper and lower.get("kind", upper["kind"]) != upper["kind"]:
        for key in OF_KIND:
            lower.pop(key, None)
    for key, value in upper.items():
        if isinstance(value, dict) and isinstance(lower.get(key), dict):
            _merge(lower[key], value)
        else:
            lower[key] = value


def _nested(place: Place, value: Any) -> dict[str, Any]:
    for part in reversed(place):
        value = {part: value}
    assert isinstance(value, dict)
    return value


def _at(data: Any, place: Place) -> Any:
    for part in place:
        data = data[part]
    return data


def _set(layers: Layers, place: Place, value: Any, file: str) -> None:
    at: Any = layers.data
    for n, part in enumerate(place[:-1], 1):
        at = _item(at, part, place[:n], file)
    if isinstance(at, list):
        _item(at, place[-1], place, file)
        at[int(place[-1])] = value
    else:
        at[place[-1]] = value
    _mark(layers.origins, place, value, file)


def _item(at: Any, part: str, place: Place, file: str) -> Any:
    """The table or list under a part of a key; made where a table lacks it."""
    inner: Any = None
    if isinstance(at, list) and part.isdigit() and int(part) < len(at):
        inner = at[int(part)]
    elif isinstance(at, dict):
        inner = at.setdefault(part, {})
    if isinstance(inner, dict | list) or isinstance(at, list) and inner is not None:
        return inner
    raise ConfigError(f"{'.'.join(place)} is no table", file=file, key=".".join(place))


def _remove(layers: Layers, place: Place, file: str) -> None:
    at: Any = layers.data
    for part in place[:-1]:
        at = at.get(part) if isinstance(at, dict) else None
    if not isinstance(at, dict) or place[-1] not in at:
        known = list(at) if isinstance(at, dict) else list(layers.data)
        raise ConfigError(
            "there is no {value} to take away",
            file=file,
            key="without",
            value=".".join(place),
            hint=did_you_mean(place[-1], known),
        )
    del at[place[-1]]
    for known_place in [p for p in layers.origins if p[: len(place)] == place]:
        del layers.origins[known_place]


# --- keys that name files -------------------------------------------------------------------------------------------


def _rebase(data: dict[str, Any], model: type[BaseModel], old: Path, new: Path, absolute: bool = False) -> None:
    """Relative paths in `data`, which stands in folder `old`, for a reader in folder `new`; `absolute`: those too."""
    for container, key, _ in _file_keys(data, model):
        path = Path(container[key])
        # a bare name of an installed file stays one
        if (absolute or not path.is_absolute()) and os.path.exists(old / path):
            container[key] = os.path.relpath((old / path).resolve(), new)


def _file_keys(value: Any, annotation: Any, metadata: tuple[Any, ...] = ()) -> Iterator[tuple[Any, Any, str]]:
    """(container, key, kind) of every text in raw data that the models mark as the name of a file."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if isinstance(value, dict):
            for name, f in annotation.model_fields.items():
                key = f.alias or name
                if key in value:
                    yield from _under(value, key, f.annotation, tuple(f.metadata))
        return
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is dict and isinstance(value, dict):
        for key in value:
            yield from _under(value, key, arguments[1], ())
    elif origin in (list, tuple) and isinstance(value, list) and arguments:
        for k in range(len(value)):
            yield from _under(value, k, arguments[0], ())
    elif arguments and origin not in (dict, list, tuple):
        for one in arguments:  # M | None, Annotated[M, ...]
            yield from _file_keys(value, one)


def _under(container: Any, key: Any, annotation: Any, metadata: tuple[Any, ...]) -> Iterator[tuple[Any, Any, str]]:
    mark = _mark_of(annotation, metadata)
    if mark is not None and mark.key is not None:
        if isinstance(container[key], dict) and isinstance(container[key].get(mark.key), str):
            yield container[key], mark.key, mark.folder
    elif mark is not None:
        if isinstance(container[key], str):
            yield container, key, mark.folder
    else:
        yield from _file_keys(container[key], annotation)


def _mark_of(annotation: Any, metadata: tuple[Any, ...]) -> InFile | None:
    """The mark of a field's own annotation: FileName, FileName | None."""
    found = next((m for m in metadata if isinstance(m, InFile)), None)
    if found is None and get_origin(annotation) not in (dict, list, tuple):
        inner = (getattr(a, "__metadata__", ()) for a in (annotation, *get_args(annotation)))
        found = next((m for marks in inner for m in marks if isinstance(m, InFile)), None)
    return found
