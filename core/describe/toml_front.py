"""TOML -> Driveline. Every error names file, table, key, value and what is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import ORDERS, Driveline
from torqueloop.core.describe.errors import (
    ConfigError,
    DuplicateError,
    MissingValueError,
    RangeError,
    TableError,
    UnknownKeyError,
    UnknownKindError,
    UnknownNameError,
    did_you_mean,
)
from torqueloop.core.describe.find_file import named_file
from torqueloop.core.describe.params import Param, params_of
from torqueloop.core.describe.reading import DRIVELINES, Family, read_toml
from torqueloop.core.describe.tables import table_from_config
from torqueloop.core.describe.units import keys_of, scaled, to_si

TOP_KEYS = (
    "name", "include", "solver", "components", "tables", "disconnect", "connections", "connect", "initial", "gearbox",
    "gears", "display", "published", "source", "note",
)  # fmt: skip
#: free text that any table may carry
FREE_KEYS = ("source", "note")
#: keys of [gearbox] that are numbers -> parameters of Driveline.set_gearbox
LINE_KEYS = {"line_min_bar": "line_min", "line_max_bar": "line_max"}
#: name of an output quantity -> dimension, for [initial]
START_DIMENSIONS = {
    "w": "angular_velocity", "phi": "angle", "w_rel": "angular_velocity", "phi_rel": "angle",
    "v": "velocity", "s": "length", "p": "pressure",
}  # fmt: skip


#: what is joined, in the order of the files: file, flanges, and whether they are taken apart instead
Sets = list[tuple[str, list[Any], bool]]
#: the word used in files -> the kind of component
Kinds = Mapping[str, type[Component]]


def read_driveline(path: Path, kinds: Kinds) -> Driveline:
    """Read a driveline of these kinds of components, and all files it includes."""
    driveline = Driveline()
    driveline.file = str(path)
    sets: Sets = []
    late: list[tuple[str, Mapping[str, Any]]] = []
    family = Family("include", "include goes in a circle")
    _read_into(driveline, path, kinds, (), sets, late, family)
    ends = _gearbox_ends(late)
    for file, group, apart in sets:
        try:
            if not isinstance(group, list) or not all(isinstance(f, str) for f in group):
                raise RangeError("{value} is not a list of flanges", table="connections", value=group,
                                 allowed='["component.flange", "component.flange", ...]')  # fmt: skip
            flanges = [ends.get(str(flange), str(flange)) for flange in group]
            if apart:
                for flange in flanges:
                    driveline.disconnect(flange)
            else:
                driveline.connect(*flanges)
        except ConfigError as error:
            error.file = file
            if apart:
                error.table, error.key = None, "disconnect"
            raise
    for file, config in late:
        _read_late(driveline, file, config)
    return driveline


def _gearbox_ends(late: list[tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
    """The flanges that "gearbox.input" and "gearbox.output" stand for, so that a car fits any gearbox."""
    for _, config in late:
        body = config.get("gearbox")
        if isinstance(body, dict) and isinstance(body.get("input"), str) and isinstance(body.get("output"), str):
            return {"gearbox.input": f"{body['input']}.flange_a", "gearbox.output": f"{body['output']}.flange_b"}
    return {}


def parse(path: Path) -> dict[str, Any]:
    """The file as nested dicts, decimal numbers kept exact."""
    return read_toml(path, Decimal, *DRIVELINES)


def _read_into(
    driveline: Driveline,
    path: Path,
    kinds: Kinds,
    chain: tuple[Path, ...],
    sets: Sets,
    late: list[tuple[str, Mapping[str, Any]]],
    family: Family,
) -> None:
    """Read one file: its includes first, then its own components and tables; the rest is kept for later."""
    file, where = str(path), family.enter(path, chain)
    config = parse(path)
    for key in config:
        if key not in TOP_KEYS:
            raise UnknownKeyError(f"unknown key {key!r}", file=file, hint=did_you_mean(key, TOP_KEYS))
    if isinstance(config.get("gearbox"), str):  # a part of this driveline, before all else
        try:
            inner = named_file(path.parent, config.pop("gearbox"), "gearboxes")
        except ConfigError as error:
            raise error.located(file=file, key="gearbox") from None
        _read_into(driveline, inner, kinds, (*chain, where), sets, late, family)
    for name in _strings(config.get("include", []), "include", file):
        try:
            inner = named_file(path.parent, name, "gearboxes", "powertrains", "drives")
        except ConfigError as error:
            raise error.located(file=file, key="include") from None
        _read_into(driveline, inner, kinds, (*chain, where), sets, late, family)
    if not chain:
        driveline.name = _text(config.get("name", path.stem), "name", file)
        _read_solver(driveline, _mapping(config.get("solver", {}), "solver", file), file)
    elif "solver" in config:
        raise ConfigError("only the outermost file may choose the solver", file=file, table="solver")
    for name, body in _mapping(config.get("tables", {}), "tables", file).items():
        try:
            driveline.add_table(name, table_from_config(_mapping(body, f"tables.{name}", file), path.parent))
        except ConfigError as error:
            error.file = None
            raise error.located(file=file, table=f"tables.{name}") from None
        driveline.table_origin[name] = file
    for name, body in _mapping(config.get("components", {}), "components", file).items():
        body = _mapping(body, f"components.{name}", file)
        if name in driveline.components:
            raise DuplicateError(
                f"component {name!r} exists already, in {driveline.origin[name]}", file=file, table=f"components.{name}"
            )
        try:
            driveline.add(name, read_component(body, path.parent, kinds))
        except ConfigError as error:
            error.file = None
            raise error.located(file=file, table=f"components.{name}") from None
        driveline.origin[name] = file
    if "disconnect" in config:
        sets.append((file, _strings(config["disconnect"], "disconnect", file), True))
    groups = config.get("connections", [])
    if not isinstance(groups, list):
        raise RangeError("{key} is not a list", file=file, key="connections", value=groups)
    sets.extend((file, group, False) for group in groups)
    entries = config.get("connect", [])
    if not isinstance(entries, list):
        raise RangeError("{key} is not a list of tables", file=file, key="connect", allowed="[[connect]]")
    for entry in entries:
        entry = _mapping(entry, "connect", file)
        _known(entry, ("flanges", *FREE_KEYS), "connect", file)
        sets.append((file, entry.get("flanges", []), False))
    late.append((file, config))


def read_component(body: Mapping[str, Any], directory: Path, kinds: Kinds) -> Component:
    """A component of one of the kinds from its TOML table: `kind` and parameters with units in their keys."""
    if "kind" not in body:
        raise MissingValueError("kind is missing", allowed=", ".join(kinds))
    word = body["kind"]
    if not isinstance(word, str) or word not in kinds:
        raise UnknownKindError(f"unknown component kind {word!r}", key="kind", hint=did_you_mean(str(word), kinds))
    kind = kinds[word]
    params = params_of(kind)
    keys: dict[str, tuple[str, Any]] = {}
    for name, p in params.items():
        for key, factor in keys_in_files(name, p).items():
            keys[key] = (name, factor)
    values: dict[str, Any] = {}
    given: dict[str, str] = {}
    for key, value in body.items():
        if key == "kind" or key in FREE_KEYS:
            continue
        if key not in keys:
            raise _unknown(key, value, params, keys)
        name, factor = keys[key]
        if name in values:
            raise DuplicateError(f"{name} is given twice, as {given[name]!r} and {key!r}", key=key)
        try:
            values[name], given[name] = _convert(key, value, params[name], factor, directory), key
        except ConfigError as error:
            raise error.located(key=key) from None
    for name, p in params.items():
        if name not in values and repr(p.default) == "REQUIRED":
            key = next(iter(keys_in_files(name, p)))
            raise MissingValueError(f"{key} is missing", key=key)
    try:
        return kind(**values)
    except ConfigError as error:
        if error.key in given:
            error.key = given[error.key]
            if error.key in body:
                error.value = body[error.key] if isinstance(body[error.key], (int, str, Decimal)) else error.value
        elif error.key in params:
            error.key = next(iter(keys_in_files(error.key, params[error.key])))
        raise


def keys_in_files(name: str, p: Param) -> dict[str, Any]:
    """The keys of a parameter; a curve given as a name or rows has no unit, one given as a number has."""
    if p.form in ("curve", "map", "columns"):
        return {name: None} if p.dimension == "1" or p.form != "curve" else {name: None, **keys_of(name, p.dimension)}
    if p.form in ("flag", "choice", "integer", "names"):
        return {name: None}
    return dict(keys_of(name, p.dimension))


def _unknown(key: str, value: Any, params: Mapping[str, Param], keys: Mapping[str, Any]) -> ConfigError:
    """An unknown key: either a parameter without its unit, or a misspelling."""
    if key in params:
        fitting = list(keys_in_files(key, params[key]))
        more = f" (or {', '.join(fitting[1:])})" if len(fitting) > 1 else ""
        return UnknownKeyError(f"{key} = {value} has no unit", key=key, value=value, hint=f"write {fitting[0]}{more}")
    return UnknownKeyError(f"unknown key {key!r}", key=key, value=value,
                           hint=did_you_mean(key, ["kind", *keys, *FREE_KEYS]))  # fmt: skip


def _convert(key: str, value: Any, p: Param, factor: Any, directory: Path) -> Any:
    """A TOML value in SI."""
    if p.form in ("curve", "map", "columns") and isinstance(value, dict):
        return table_from_config(value, directory)
    if p.form == "curve" and isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        if factor is None and p.dimension != "1":
            raise _unknown_curve_unit(key, value, p)
        return float(scaled(value, factor if factor is not None else Fraction(1)))
    if p.form in ("curve", "columns") and isinstance(value, list):
        if set(p.columns) == {"1"}:
            return value
        hint = 'write { columns = ["speed_radps", "..."], rows = [...] } with units in the column names'
        raise TableError("{key}: rows without units", key=key, value=value, hint=hint)
    number = isinstance(value, (int, Decimal)) and not isinstance(value, bool)
    return scaled(value, factor) if number and factor is not None and _finite(value) else value


def _finite(value: Any) -> bool:
    return not isinstance(value, Decimal) or value.is_finite()


def _unknown_curve_unit(key: str, value: Any, p: Param) -> ConfigError:
    fitting = list(keys_of(key, p.dimension))
    return UnknownKeyError(f"{key} = {value} has no unit", key=key, value=value, hint=f"write {fitting[0]}")


def _read_solver(driveline: Driveline, body: Mapping[str, Any], file: str) -> None:
    _known(body, ("order", *FREE_KEYS), "solver", file)
    order = body.get("order", "auto")
    if order not in ORDERS or isinstance(order, bool):
        raise RangeError("{key} = {value} is unknown", file=file, table="solver", key="order", value=order,
                         allowed='2 | 4 | "auto"')  # fmt: skip
    driveline.order = order


def _read_late(driveline: Driveline, file: str, config: Mapping[str, Any]) -> None:
    """Start values, gearbox and gears: they refer to components that must all be there."""
    for key, value in _mapping(config.get("initial", {}), "initial", file).items():
        if key in FREE_KEYS:
            continue
        output, si = start_value(key, value, file)
        if output in driveline.start:
            raise DuplicateError(f"start value of {output} is given twice", file=file, table="initial", key=key)
        driveline.set_start(output, si)
    if "gearbox" in config:
        body = _mapping(config["gearbox"], "gearbox", file)
        _known(body, ("input", "output", *LINE_KEYS, *FREE_KEYS), "gearbox", file)
        for key in ("input", "output"):
            if key not in body:
                raise MissingValueError(f"{key} is missing", file=file, table="gearbox", key=key)
        if driveline.gearbox is not None:
            raise DuplicateError("there is a [gearbox] already in an included file", file=file, table="gearbox")
        driveline.file, kept = file, driveline.file
        line = {to: _pressure(body[key], key, file) for key, to in LINE_KEYS.items() if key in body}
        driveline.set_gearbox(_text(body["input"], "input", file), _text(body["output"], "output", file), **line)
        driveline.file = kept
    if "display" in config:
        _read_display(driveline, file, _mapping(config["display"], "display", file))
    if "published" in config:
        figures = _mapping(config["published"], "published", file)
        try:
            driveline.published = driveline.published.with_figures(
                {key: value for key, value in figures.items() if key not in FREE_KEYS}
            )
        except ConfigError as error:
            raise error.located(file=file) from None
    for name, entry in _mapping(config.get("gears", {}), "gears", file).items():
        body = _mapping(entry, f"gears.{name}", file)
        _known(body, ("engaged", "ratio", *FREE_KEYS), f"gears.{name}", file)
        if "engaged" not in body:
            raise MissingValueError("engaged is missing", file=file, table=f"gears.{name}", key="engaged")
        ratio = body.get("ratio")
        if ratio is not None and (isinstance(ratio, bool) or not isinstance(ratio, (int, Decimal))):
            place = f"gears.{name}"
            raise RangeError("{key} = {value} is not a number", file=file, table=place, key="ratio", value=ratio)
        try:
            driveline.add_gear(name, _strings(body["engaged"], "engaged", file), ratio)
        except ConfigError as error:
            error.file = file
            raise


def _pressure(value: Any, key: str, file: str) -> float:
    """A pressure in bar, in Pa."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or not _finite(value):
        raise RangeError("{key} = {value} is not a number", file=file, table="gearbox", key=key, value=value)
    return to_si(float(value), "bar")


def _read_display(driveline: Driveline, file: str, body: Mapping[str, Any]) -> None:
    """How it is drawn; a file that includes this one may say more."""
    _known(body, ("order", "colours", "planets", *FREE_KEYS), "display", file)
    try:
        driveline.set_display(
            _strings(body.get("order", []), "order", file),
            _mapping(body.get("colours", {}), "display.colours", file),
            _mapping(body.get("planets", {}), "display.planets", file),
        )
    except ConfigError as error:
        error.file, error.table = file, error.table or "display"
        raise


def start_value(key: str, value: Any, file: str) -> tuple[str, float]:
    """ "J1.w_radps" -> ("J1.w", value in SI)."""
    place = {"file": file, "table": "initial", "key": key, "value": value}
    owner, _, last = key.rpartition(".")
    for quantity, dimension in START_DIMENSIONS.items():
        if last == quantity:
            raise UnknownKeyError(f"{key} = {value} has no unit", hint=f"write {next(iter(keys_of(key, dimension)))}",
                                  **place)  # fmt: skip
        factor = keys_of(quantity, dimension).get(last)
        if factor is not None:
            if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or not _finite(value):
                raise RangeError("{key} = {value} is not a number", **place)
            try:
                return f"{owner}.{quantity}", float(scaled(value, factor))
            except RangeError as error:
                raise error.located(file=file, table="initial", key=key) from None
    known = [k for q, d in START_DIMENSIONS.items() for k in keys_of(q, d)]
    raise UnknownNameError(f"unknown start value {key!r}", hint=did_you_mean(last, [*known, *FREE_KEYS]), **place)


def _known(body: Mapping[str, Any], allowed: Iterable[str], table: str, file: str) -> None:
    for key in body:
        if key not in allowed:
            hint = did_you_mean(key, allowed)
            raise UnknownKeyError(f"unknown key {key!r}", file=file, table=table, key=key, hint=hint)


def _mapping(value: Any, table: str, file: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RangeError("{key} is not a table", file=file, key=table, value=value, allowed=f"[{table}]")
    return value


def _strings(value: Any, key: str, file: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise RangeError("{key} = {value} is not a list of names", file=file, key=key, value=value)
    return value


def _text(value: Any, key: str, file: str) -> str:
    if not isinstance(value, str):
        raise RangeError("{key} = {value} is not a text", file=file, key=key, value=value)
    return value
