"""A driveline read from files, and others that differ from it in single values.

    variants = Variants(driveline, kinds)
    heavier = variants.of({"components.car.m_kg": 1700, "tables.mu_paper.rows.0.1": 0.10})

Keys are those of the files, with their units; a number in a list is named by its place, from 0. What is changed is
read again as if the file said so, everything else is shared with the driveline it came from.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError, RangeError, UnknownNameError, did_you_mean
from torqueloop.core.describe.tables import table_from_config
from torqueloop.core.describe.toml_front import Kinds, parse, read_component, start_value

#: where values of the driveline come from that no file says, in messages
OUTSIDE = "values set from outside"
_GROUPS = ("components", "tables", "initial")


class Variants:
    """Drivelines like one that was read from files, but for some values."""

    def __init__(self, driveline: Driveline, kinds: Kinds) -> None:
        self.driveline = driveline
        self._kinds = kinds
        #: file -> its content, numbers exact
        self._files: dict[str, dict[str, Any]] = {}

    def of(self, values: Mapping[str, Any]) -> Driveline:
        """The driveline with these values (dotted key of the file -> value). ConfigError names the key."""
        made = self.driveline.copy()
        for (group, name), changes in _grouped(values).items():
            place: dict[str, Any] = {"file": OUTSIDE, "table": f"{group}.{name}"}
            try:
                if group == "components":
                    body, folder = self._body(group, name, made.origin, made.components, changes)
                    made.components[name] = read_component(body, folder, self._kinds)
                elif group == "tables":
                    body, folder = self._body(group, name, made.table_origin, made.tables, changes)
                    made.tables[name] = table_from_config(body, folder)
                else:
                    output, si = start_value(name, exact_number(changes[()]), OUTSIDE)
                    made.start[output] = si
            except ConfigError as error:
                error.file = None
                raise error.located(**place) from None
        return made

    def _body(
        self, group: str, name: str, origin: Mapping[str, str], known: Mapping[str, Any], changes: dict[Any, Any]
    ) -> tuple[dict[str, Any], Path]:
        """The table of the file with the changes in it, and the folder that names in it are relative to."""
        if name not in known:
            raise UnknownNameError(f"the driveline has no {group[:-1]} {{value}}", value=name,
                                   hint=did_you_mean(name, known))  # fmt: skip
        if name not in origin:
            raise ConfigError(f"{name!r} was not read from a file: replace the object instead")
        file = origin[name]
        if file not in self._files:
            self._files[file] = parse(Path(file))
        body = copy.deepcopy(self._files[file][group][name])
        for inner, value in changes.items():
            _put(body, inner, exact_number(value))
        return body, Path(file).parent


def exact_number(value: Any) -> Any:
    """A number as the reader of files takes it."""
    return Decimal(repr(value)) if isinstance(value, float) else value


def _grouped(values: Mapping[str, Any]) -> dict[tuple[str, str], dict[tuple[str, ...], Any]]:
    """(group, name) -> {keys inside: value}."""
    found: dict[tuple[str, str], dict[tuple[str, ...], Any]] = {}
    for key, value in values.items():
        group, _, rest = key.partition(".")
        if group not in _GROUPS or not rest:
            allowed = "components.NAME.KEY, tables.NAME.KEY, initial.NAME.QUANTITY_UNIT"
            raise UnknownNameError("{value} is no value of a driveline", file=OUTSIDE, key="set", value=key,
                                   allowed=allowed)  # fmt: skip
        if group == "initial":
            found[group, rest] = {(): value}
            continue
        name, *inner = rest.split(".")
        if not inner:
            raise RangeError("{value} names a whole table", file=OUTSIDE, key="set", value=key,
                             allowed=f"{key}.KEY")  # fmt: skip
        found.setdefault((group, name), {})[tuple(inner)] = value
    return found


def _put(body: dict[str, Any], place: tuple[str, ...], value: Any) -> None:
    at: Any = body
    for k, part in enumerate(place[:-1], 1):
        if isinstance(at, dict) and part in at:
            at = at[part]
        elif isinstance(at, list) and part.isdigit() and int(part) < len(at):
            at = at[int(part)]
        else:
            raise RangeError("there is no {value}", value=".".join(place[:k]), allowed=", ".join(_names(at)) or None)
    last = place[-1]
    if isinstance(at, list):
        if not last.isdigit() or int(last) >= len(at):
            raise RangeError("there is no {value}", value=".".join(place), allowed=f"0 .. {len(at) - 1} at the end")
        at[int(last)] = value
    elif isinstance(at, dict):
        at[last] = value
    else:
        raise RangeError("{value} is no table or list", value=".".join(place[:-1]))


def _names(at: Any) -> Iterator[str]:
    if isinstance(at, dict):
        yield from map(str, at)
    elif isinstance(at, list):
        yield f"0 .. {len(at) - 1}"
