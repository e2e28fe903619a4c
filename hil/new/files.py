"""The files of a control unit for a car, or for a gearbox in a car of ours."""

from __future__ import annotations

import tempfile
from pathlib import Path

from torqueloop.core.analyse.gearbox_report import gearbox_report
from torqueloop.core.components.files import load
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.new.car_facts import car_facts, installed_driveline
from torqueloop.hil.new.car_file import car_text
from torqueloop.hil.new.database import database_text
from torqueloop.hil.new.rig_file import pedal_for
from torqueloop.hil.new.shift_plan import engaged_elements, tcu_gears
from torqueloop.hil.new.tcu_file import make_tcu


@dataclass(frozen=True)
class ControlUnit:
    """A control unit's files as text."""

    name: str
    tcu: str
    database: str
    elements: list[str]
    #: for the driver of a first run
    pedal: float


def control_unit(car: str, drive: str) -> ControlUnit:
    """For a car; for a gearbox alone, in a car with the drive `drive`."""
    path = installed_driveline(car)
    driveline = load(path)
    if any(c.kind == "Engine" for c in driveline.components.values()):
        return _of_car(path, path.stem.removeprefix("car_").removesuffix("_rig"))
    if driveline.gearbox is None or not drive:
        raise ConfigError("neither a car nor a gearbox", file=str(path), allowed="a car with an Engine, or a gearbox")
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "car.toml"
        whole.write_text(car_text("car", str(path.resolve()), str(installed_driveline(drive).resolve()), True))
        return _of_car(whole, path.stem)


def _of_car(path: Path, name: str) -> ControlUnit:
    facts = car_facts(path)
    report = gearbox_report(facts.driveline)
    elements = engaged_elements(report)
    gears = list(tcu_gears(report))
    return ControlUnit(name, make_tcu(facts, f"soft_{name}"), database_text(name, elements, gears), elements,
                       pedal_for(facts.mass_kg, facts.torque_Nm))  # fmt: skip
