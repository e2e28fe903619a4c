"""What a refusal allows is accepted: the numbers of shipped tables are moved, one at a time, until a check between the
numbers of a table refuses one; the same table with a number that the message allows is then a valid one."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from torqueloop.hil.common.config_file import BadValue, ConfigTable
from torqueloop.hil.ecu.interface_tables import InterfaceConfig
from torqueloop.hil.ecu.tcu_tables import TcuConfig
from torqueloop.hil.new.sketch import Sketch
from torqueloop.hil.rig.devices.io import IoOutput
from torqueloop.hil.rig.devices.registry import load_rig_config
from torqueloop.hil.rig.schema.hydraulic_unit import HydraulicsConfig
from torqueloop.hil.scenario.scenario_tables import ScenarioConfig
from torqueloop.hil.study.study_tables import StudyConfig
from torqueloop.hil.vehicle.vehicle_tables import VehicleConfig

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
NUMBER = r"(-?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|inf))"
#: beside a limit that does not belong to the range
NEAR = 1e-3


def tables(value: Any) -> Iterator[ConfigTable]:
    """All tables below one."""
    if isinstance(value, ConfigTable):
        yield value
        for name in type(value).model_fields:
            yield from tables(getattr(value, name))
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tables(item)


@cache
def shipped() -> list[ConfigTable]:
    """Tables of the shipped files, at most three that have the same keys."""
    files: list[Any] = [load_rig_config(path) for path in sorted((CONFIGS / "rigs").glob("*.toml"))]
    for model in (HydraulicsConfig, InterfaceConfig, ScenarioConfig, Sketch, StudyConfig, TcuConfig, VehicleConfig):
        for path in sorted((CONFIGS / model.FOLDER).glob("*.toml")):
            text = path.read_text(encoding="utf-8")
            data = {k: v for k, v in tomllib.loads(text).items() if k != "kind"}
            if "extends" not in data and "$" not in text:
                files.append(model.model_validate(data))
    files.append(IoOutput(signal="pedal", low=-2.0, high=5.0, safe=1.0))
    found: dict[tuple[str, frozenset[str]], list[ConfigTable]] = {}
    for table in tables(files):
        kept = found.setdefault((type(table).__name__, frozenset(table.model_fields_set)), [])
        if len(kept) < 3 and table not in kept:
            kept.append(table)
    return [table for kept in found.values() for table in kept]


def given(table: ConfigTable) -> dict[str, Any]:
    """All that a table holds, defaults too, by the names of its file."""
    return {field.alias or name: getattr(table, name) for name, field in type(table).model_fields.items()}


def refusal(table: ConfigTable, data: dict[str, Any]) -> BadValue | None:
    """By a check that the table makes of its own numbers."""
    try:
        type(table).model_validate(data)
    except ValidationError as error:
        causes = [e.get("ctx", {}).get("error") for e in error.errors(include_url=False)]
        return next((c for c in causes if isinstance(c, BadValue)), None)
    return None


def inside(allowed: str) -> list[float]:
    """Numbers that a message allows; none, where it says so otherwise than by limits."""
    if pair := re.fullmatch(rf"{NUMBER} \.\. {NUMBER}", allowed):
        low, high = float(pair[1]), float(pair[2])
        return [x for x in (low, (low + high) / 2, high) if math.isfinite(x)]
    if pair := re.fullmatch(rf"above \w+ = {NUMBER}, below \w+ = {NUMBER}", allowed):
        return [(float(pair[1]) + float(pair[2])) / 2]
    if one := re.match(rf"(>=|<=|>|<|less than|more than) (?:\w+ = )?{NUMBER}", allowed):
        limit = float(one[2])
        beyond = limit + (NEAR * (abs(limit) or 1.0)) * (1 if one[1] in (">", "more than", ">=") else -1)
        return [limit, beyond] if "=" in one[1] else [beyond]
    return []


def moved(table: ConfigTable) -> Iterator[tuple[str, dict[str, Any]]]:
    """(key, table) with one number that is not as it was, is left out, or is there beside the others."""
    data = given(table)
    numbers = {k: v for k, v in data.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    for key, value in numbers.items():
        others = {type(value)(x) for x in (0, -value, 1000 * value + 1, *numbers.values())}
        yield from ((key, {**data, key: x}) for x in [None, *sorted(others - {value})])
    yield from ((key, {**data, key: 1.0}) for key, value in data.items() if value is None)


def test_what_a_message_allows_is_a_valid_number() -> None:
    asked: set[tuple[str, str]] = set()
    for table in shipped():
        for key, data in moved(table):
            found = refusal(table, data)
            if found is None or found.error.allowed is None:
                continue
            name = found.error.key or key
            for value in inside(found.error.allowed):
                kind = type(data[name]) if isinstance(data.get(name), int | float) else float
                again = refusal(table, {**data, name: kind(value)})
                said = f"{type(table).__name__}: {found.error}, and {value} is refused: {again and again.error}"
                assert again is None or (again.error.key or key) != name, said
                asked.add((type(table).__name__, name))
    assert len(asked) > 8, asked
