"""`case.yaml` and `reference.csv` as a Case: checked, in SI, with errors that name file, table and key."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, MissingValueError, UnknownNameError, did_you_mean

SCHEMA = "case/1"
DOMAINS = ("rotational", "translational", "multibody", "signal", "thermal")
#: groups of connections
GROUPS = ("flange", "frame", "heat", "signal")
#: columns that describe friction modes: compared as fractions of equal rows, not as errors
MODE_QUANTITIES = ("mode", "startForward", "startBackward", "stuck")

#: units that are no SI units: factor and offset to SI ("%" stays: the width of a pulse is given in it)
UNITS: dict[str, tuple[float, float]] = {
    "deg": (math.pi / 180.0, 0.0),
    "degC": (1.0, 273.15),
    "rev/min": (math.pi / 30.0, 0.0),
    "rpm": (math.pi / 30.0, 0.0),
    "1/min": (math.pi / 30.0, 0.0),
    "mm": (1e-3, 0.0),
    "ms": (1e-3, 0.0),
    "kN": (1e3, 0.0),
    "kW": (1e3, 0.0),
}


@dataclass(frozen=True)
class Column:
    """One column of reference.csv."""

    #: heading in the CSV file
    name: str
    #: component of the case and quantity ("w", "phi_rel", "mode" ...)
    component: str
    quantity: str
    unit: str
    #: error of the reference itself, relative to the column's range (absolute if constant)
    deviation: float
    #: component of a vector, from 1; 0: a scalar
    index: int = 0


@dataclass(frozen=True)
class Case:
    """A case as read from its directory."""

    name: str
    path: Path
    t_start: float
    t_stop: float
    components: list[dict[str, Any]]
    connections: dict[str, list[list[str]]]
    #: "component.quantity" -> start value; the prescribed and the assumed ones (the others follow from them)
    start: dict[str, Any]
    columns: tuple[Column, ...]
    #: row times, not decreasing; equal times are the two sides of an event
    time: NDArray[np.float64]
    #: (rows, columns) in the order of `columns`
    values: NDArray[np.float64]
    event_times: tuple[float, ...]
    #: rows later than this must not be compared (the solution is too sensitive)
    comparable_until: float
    #: where the trajectories come from
    source: str = ""
    #: quantities of `start` that nothing determines; they start at the value given there
    assumed: frozenset[str] = frozenset()

    def owner(self, path: str) -> tuple[str, str]:
        """ "sine[1].y" -> ("sine[1]", "y"): the part after the longest matching component name."""
        names = [c["name"] for c in self.components if path.startswith(c["name"] + ".")]
        if not names:
            raise UnknownNameError(
                "{value} belongs to no component of the case", file=str(self.path / "case.yaml"), value=path,
                hint=did_you_mean(path.rpartition(".")[0], [c["name"] for c in self.components]),
            )  # fmt: skip
        name = max(names, key=len)
        return name, path[len(name) + 1 :]


def read_case(directory: str | Path) -> Case:
    """Read `case.yaml` and `reference.csv` of one directory."""
    path = Path(directory)
    file = path / "case.yaml"
    document = _document(file)
    experiment = _get(document, "experiment", dict, file)
    reference = _get(document, "reference", dict, file)
    columns = tuple(_column(c, file) for c in _get(reference, "columns", list, file) if c.get("quantity") != "time")
    time, values = _read_trajectories(path / str(_get(reference, "file", str, file)), columns)
    start = document.get("initial_conditions") or {}
    prescribed = {str(e["quantity"]): in_si(e) for e in start.get("prescribed") or ()}
    assumed = {str(e["quantity"]): in_si(e) for e in start.get("assumed") or ()}
    until = reference.get("comparable_until")
    source = document.get("source") or {}
    return Case(
        name=str(_get(document, "case", str, file)),
        path=path,
        t_start=_number(experiment, "start_time", file),
        t_stop=_number(experiment, "stop_time", file),
        components=_components(document, file),
        connections=_connections(document, file),
        start=assumed | prescribed,
        columns=columns,
        time=time,
        values=values,
        event_times=tuple(float(t) for t in reference.get("event_times") or ()),
        comparable_until=math.inf if until is None else float(in_si(until)),
        source=str(source.get("library", "")) if isinstance(source, Mapping) else str(source),
        assumed=frozenset(assumed) - prescribed.keys(),
    )


def _document(file: Path) -> dict[str, Any]:
    try:
        import yaml
    except ImportError:
        raise ConfigError("reading case.yaml needs PyYAML: pip install 'torqueloop[dev]' (or pyyaml)") from None
    if not os.path.isfile(file):
        raise ConfigError("no case.yaml here", file=str(file.parent))
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ConfigError(f"not a YAML file: {error}", file=str(file)) from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else None
        raise ConfigError("unknown schema {value}", file=str(file), key="schema", value=found, allowed=SCHEMA)
    return document


def _get(table: Mapping[str, Any], key: str, kind: type, file: Path) -> Any:
    if key not in table:
        raise MissingValueError("{key} is missing", file=str(file), key=key)
    if not isinstance(table[key], kind):
        raise ConfigError("{key} is not a {kind}".replace("{kind}", kind.__name__), file=str(file), key=key,
                          value=table[key])  # fmt: skip
    return table[key]


def _number(table: Mapping[str, Any], key: str, file: Path) -> float:
    value = in_si(table[key]) if key in table else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigError("{key} = {value} is not a number", file=str(file), key=key, value=value)
    return float(value)


def in_si(entry: Any) -> Any:
    """Value of a {value, unit} entry in SI; plain values, flags, names and tables as they are."""
    if not isinstance(entry, Mapping):
        return entry
    value, unit = entry.get("value"), entry.get("unit")
    return _convert(value, unit)


def _convert(value: Any, unit: Any) -> Any:
    if isinstance(value, list):
        if isinstance(unit, list):
            # a table: a unit per column
            rows = value if value and isinstance(value[0], list) else [value]
            made = [[_convert(v, u) for v, u in zip(row, unit, strict=True)] for row in rows]
            return made if rows is value else made[0]
        return [_convert(v, unit) for v in value]
    if unit in UNITS and isinstance(value, (int, float)) and not isinstance(value, bool):
        factor, offset = UNITS[unit]
        return value * factor + offset
    return value


def _components(document: Mapping[str, Any], file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    for k, entry in enumerate(_get(document, "components", list, file)):
        for key in ("name", "domain", "kind"):
            if not isinstance(entry, Mapping) or not isinstance(entry.get(key), str):
                raise MissingValueError("{key} is missing", file=str(file), table=f"components[{k}]", key=key)
        if entry["domain"] not in DOMAINS:
            raise ConfigError("{key} = {value} is unknown", file=str(file), table=entry["name"], key="domain",
                              value=entry["domain"], allowed=" | ".join(DOMAINS))  # fmt: skip
        if entry["name"] in seen:
            raise ConfigError("component {value} is given twice", file=str(file), value=entry["name"])
        seen.add(entry["name"])
        found.append(dict(entry))
    return found


def _connections(document: Mapping[str, Any], file: Path) -> dict[str, list[list[str]]]:
    given = document.get("connections") or {}
    unknown = sorted(set(given) - set(GROUPS))
    if unknown:
        raise ConfigError("unknown group of connections {value}", file=str(file), table="connections",
                          value=unknown[0], allowed=" | ".join(GROUPS))  # fmt: skip
    for group, pairs in given.items():
        for pair in pairs or ():
            if not isinstance(pair, list) or len(pair) != 2:
                raise ConfigError("{value} is not a pair of connectors", file=str(file), table=f"connections.{group}",
                                  value=pair)  # fmt: skip
    return {group: [[str(a), str(b)] for a, b in given.get(group) or ()] for group in GROUPS}


def _column(entry: Mapping[str, Any], file: Path) -> Column:
    for key in ("name", "quantity"):
        if key not in entry:
            raise MissingValueError("{key} is missing", file=str(file), table="reference.columns", key=key)
    return Column(
        str(entry["name"]), str(entry.get("component", "")), str(entry["quantity"]), str(entry.get("unit", "1")),
        float(entry.get("deviation", 0.0)), int(entry.get("index", 0)),
    )  # fmt: skip


def _read_trajectories(file: Path, columns: tuple[Column, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if not os.path.isfile(file):
        raise ConfigError("there is no {value} beside case.yaml", file=str(file.parent), value=file.name)
    with file.open(newline="", encoding="utf-8") as stream:
        rows = csv.reader(stream)
        heading = next(rows, [])
        try:
            data = np.array([[float(x) for x in row] for row in rows if row])
        except ValueError as error:
            raise ConfigError(f"a row is not of equally many numbers: {error}", file=str(file)) from None
    missing = [c.name for c in columns if c.name not in heading]
    if missing:
        raise ConfigError("reference.csv has no column {value}", file=str(file), value=", ".join(missing))
    if data.ndim != 2 or data.shape[1] != len(heading):
        raise ConfigError("no rows, or rows of another width than the heading", file=str(file))
    time = data[:, heading.index("time")] if "time" in heading else data[:, 0]
    if np.any(np.diff(time) < 0.0):
        raise ConfigError("the times of the rows decrease", file=str(file))
    return time, data[:, [heading.index(c.name) for c in columns]]
