"""Where the values of a run go. A key begins with what it belongs to:

model.components.car.m_kg           the driveline, in keys of its files
scenario.inputs."C12.p_bar".1.0     a scenario of a driveline alone; a number in a list by its place, from 0
parameter.v_kmh                     a parameter of a scenario
rig.clock.tick_s                    the rig file
vehicle.body.cdA_m2                 the file of the rig's vehicle
tcu.schedule.hysteresis_min_rpm     the file of the control unit of this name ([ecu.tcu])
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, UnknownNameError, did_you_mean
from torqueloop.core.describe.reading import read_toml
from torqueloop.core.describe.renamed import file_in, remedy
from torqueloop.hil.common.locate import installed
from torqueloop.hil.results.gates import compute
from torqueloop.hil.rig.devices.registry import load_rig_config
from torqueloop.hil.scenario.scenario_tables import load_scenario
from torqueloop.hil.study.study_tables import StudyConfig

Kind = Literal["driveline scenario", "rig scenario", "rig"]
#: folders of installed files that a study can be of
FOLDERS = ("scenarios", "rigs")


@dataclass(frozen=True)
class Target:
    """What is run."""

    path: Path
    kind: Kind
    #: first parts of keys it knows
    owners: tuple[str, ...]


@dataclass
class Changes:
    """Values of one run, by the reader they go to."""

    scenario: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    rig: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, float] = field(default_factory=dict)


def target_of(near: Path, name: str) -> Target:
    """What `study.of` means where it is written in the file `near`."""
    path, known = Path(near).parent / name, {n: p for folder in FOLDERS for n, p in installed(folder).items()}
    if os.path.isfile(path):
        path = path.resolve()
    elif name in known:
        path = known[name].resolve()
    else:
        bare = not Path(name).suffix and len(Path(name).parts) == 1
        hint = did_you_mean(name, known) if bare else remedy(name, file_in(name))
        raise ConfigError("{key} = {value}: there is no such scenario or rig", file=str(near), table="study", key="of",
                          value=name, hint=hint)  # fmt: skip
    data = read_toml(path)
    if "rig" in data or ("scenario" not in data and "extends" in data and "steps" not in data):
        return Target(path, "rig", ("model", "rig", "vehicle", *load_rig_config(path).ecu))
    made = load_scenario(path)
    if made.rig is not None:
        units = load_rig_config(made.rig, made.overrides).ecu
        return Target(path, "rig scenario", ("model", "rig", "parameter", "vehicle", *units))
    return Target(path, "driveline scenario", ("model", "scenario", "parameter"))


def changes(target: Target, config: StudyConfig, values: Mapping[str, float], seed: int) -> Changes:
    """Where the values of a run go. ConfigError names the key."""
    found = Changes()
    known = {**values, "seed": float(seed)}
    given: dict[str, Any] = {name: value for name, value in values.items() if _owner(name) in target.owners}
    for key, value in config.set.items():
        if key == "source":
            continue
        if key in given:
            raise ConfigError("{key} is set twice", table="set", key=key)
        given[key] = _computed(value, known, key)
    for key, value in given.items():
        _put(found, target, key, value)
    return found


def used_columns(target: Target, config: StudyConfig) -> set[str]:
    """Columns that go anywhere: keys themselves, and the names in expressions."""
    found = {name for name in (*config.vary, *config.scatter) if _owner(name) in target.owners}

    def look(value: Any) -> None:
        if isinstance(value, list):
            for item in value:
                look(item)
        elif isinstance(value, dict):
            look(list(value.values()))
        elif isinstance(value, str) and value.startswith("="):
            found.update(compute(value[1:]).names)

    look(config.set)
    return found


def _owner(key: str) -> str:
    return key.partition(".")[0] if "." in key else ""


def _computed(value: Any, known: Mapping[str, float], key: str) -> Any:
    """A value with its expressions computed, inside lists and tables too."""
    if isinstance(value, list):
        return [_computed(item, known, key) for item in value]
    if isinstance(value, dict):
        return {k: _computed(item, known, key) for k, item in value.items()}
    if isinstance(value, str) and value.startswith("="):
        try:
            return compute(value[1:])(known)
        except ConfigError as error:
            raise error.located(table="set", key=key) from None
    return value


def _put(found: Changes, target: Target, key: str, value: Any) -> None:
    owner, _, rest = key.partition(".")
    if owner not in target.owners or not rest:
        raise UnknownNameError("{value} belongs to nothing that is run", table="set", key=key, value=key,
                               allowed=", ".join(f"{name}.KEY" for name in target.owners),
                               hint=did_you_mean(owner, target.owners))  # fmt: skip
    quoted = json.dumps(rest)
    if owner == "parameter":
        found.parameters[rest] = value
    elif target.kind == "driveline scenario":
        (found.model if owner == "model" else found.scenario)[rest] = value
    else:
        places: dict[str, Callable[[], str]] = {
            "model": lambda: f"plant.set.{quoted}",
            "rig": lambda: rest,
            "vehicle": lambda: f"vehicle.options.set.{quoted}",
        }
        found.rig[places.get(owner, lambda: f"ecu.{owner}.options.set.{quoted}")()] = value
