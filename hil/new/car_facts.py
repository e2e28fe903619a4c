"""What a control unit must know of a car: read from its driveline file and the files that are parts of it."""

from __future__ import annotations

import csv
import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torqueloop.core.analyse.sizing import largest_turbine_torque
from torqueloop.core.components import Mass
from torqueloop.core.components.converter import LockUpTC
from torqueloop.core.components.engine import Engine
from torqueloop.core.components.files import load
from torqueloop.core.components.gears import FinalDrive, IdealRollingWheel
from torqueloop.core.components.laminar import Laminar
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError, did_you_mean
from torqueloop.core.describe.find_file import named_file
from torqueloop.hil.common.locate import installed

#: columns of the curves a soft TCU reads -> key of [torque_model]
CURVES = {
    "pump_capacity_Nms2_per_rad2": "converter_csv",
    "turbine_capacity_Nms2_per_rad2": "converter_coast_csv",
    "wot_Nm": "engine_csv",
}
RPM = math.pi / 30.0


@dataclass(frozen=True)
class CarFacts:
    """Engine, converter and road gear of a car."""

    name: str
    driveline: Driveline
    #: key of [torque_model] -> CSV file
    curves: Mapping[str, Path]
    #: speed of the engine's largest power [rpm], largest torque [Nm]
    power_rpm: float
    torque_Nm: float
    #: largest steady turbine torque at full throttle, that of the stalled converter [Nm]
    stall_torque_Nm: float
    #: inertia of what turns with the engine and with the turbine [kg m2]
    engine_side_kgm2: float
    #: output speed per road speed [rpm per km/h]
    rpm_per_kmh: float
    mass_kg: float
    #: the converter's lock-up clutch, if it is a component of its own
    lockup: Laminar | None


def installed_driveline(name: str | Path) -> Path:
    """The driveline file of a path or a bare name."""
    path = Path(name)
    if os.path.isfile(path):
        return path
    known = {**installed("gearboxes"), **installed("powertrains"), **installed("drives")}
    if str(name) not in known:
        raise ConfigError("there is no driveline {value}", value=str(name), hint=did_you_mean(str(name), known))
    return known[str(name)]


def car_facts(name: str | Path) -> CarFacts:
    """Read a car; ConfigError when something a control unit needs is not in it."""
    path = installed_driveline(name)
    driveline = load(path)
    parts = list(driveline.components.values())
    curves = {key: file for file in _csv_files(path) if (key := _kind(file)) is not None}
    if missing := sorted(set(CURVES.values()) - set(curves)):
        problem = f"no file with the curves of {', '.join(missing)} is a table of this car"
        raise ConfigError(problem, file=str(path), allowed=f"CSV files with the columns {', '.join(CURVES)}")
    engine = _columns(curves["engine_csv"], "speed_radps", "wot_Nm")
    converter = _columns(curves["converter_csv"], "pump_capacity_Nms2_per_rad2", "torque_ratio")
    engine_part, _ = _one(parts, Engine, path), _one(parts, LockUpTC, path)
    final, wheel = _one(parts, FinalDrive, path), _one(parts, IdealRollingWheel, path)
    mass = _one(parts, Mass, path)
    lockup = driveline.components.get("lockup")
    return CarFacts(
        name=path.stem,
        driveline=driveline,
        curves=curves,
        power_rpm=max(engine, key=lambda row: row[0] * row[1])[0] / RPM,
        torque_Nm=max(torque for _, torque in engine),
        stall_torque_Nm=largest_turbine_torque(engine, converter),
        engine_side_kgm2=float(engine_part.J) + float(getattr(driveline.components.get("turbine"), "J", 0.0)),
        rpm_per_kmh=float(final.ratio) / float(wheel.radius) / 3.6 / RPM,
        mass_kg=float(mass.m),
        lockup=lockup if isinstance(lockup, Laminar) else None,
    )


def engine_curve(path: Path) -> str:
    """The file of a car's engine torques, by its bare name where it is installed; "": it has none."""
    file = next((f for f in _csv_files(path) if _kind(f) == "engine_csv"), None)
    if file is None:
        return ""
    known = installed("engines").get(file.stem)
    return file.stem if known is not None and known.resolve() == file else str(file)


def _one(parts: list[Component], kind: type[Any], path: Path) -> Any:
    found = [part for part in parts if isinstance(part, kind)]
    if len(found) != 1:
        raise ConfigError(f"this car has {len(found)} components of kind {kind.__name__}", file=str(path), allowed="1")
    return found[0]


def _csv_files(path: Path) -> Iterator[Path]:
    """CSV files of the tables of a driveline file and of its parts."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    inner = list(data.get("include", []))
    if isinstance(data.get("gearbox"), str):
        inner.append(data["gearbox"])
    for name in inner:
        file = path.parent / name
        yield from _csv_files(file if os.path.isfile(file) else installed_driveline(name))
    for table in data.get("tables", {}).values():
        if isinstance(table, dict) and isinstance(table.get("csv"), str):
            yield named_file(path.parent, table["csv"], "engines", "converters").resolve()


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(line for line in stream if not line.startswith("#")))


def _kind(path: Path) -> str | None:
    columns = _rows(path)[0]
    return next((key for column, key in CURVES.items() if column in columns), None)


def _columns(path: Path, x: str, y: str) -> list[tuple[float, float]]:
    return [(float(row[x]), float(row[y])) for row in _rows(path)]
