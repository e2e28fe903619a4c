"""A vehicle file and the drive that belongs to it: an installed car with the numbers of another one.

Mass, air and rolling resistance stand in the vehicle file, mass, axle ratio and tyre radius in the drive. What is not
given keeps the value of the installed files, with its source.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from torqueloop.configs import installed
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.common.locate import locate
from torqueloop.hil.new.car_facts import installed_driveline
from torqueloop.hil.vehicle.vehicle_tables import load_vehicle_config

GIVEN = "given to `torqueloop new vehicle`"
#: standard acceleration of gravity: brakes that hold 1 g are at the limit of tyres on a dry road [m/s2]
G_MPS2 = 9.80665


@dataclass(frozen=True)
class Car:
    """Numbers of a car; None: those of the installed files."""

    mass_kg: float | None = None
    cdA_m2: float | None = None
    rolling: float | None = None
    tyre_radius_m: float | None = None
    axle_ratio: float | None = None


def vehicle_text(name: str, like: str, car: Car) -> str:
    """The vehicle file. like: file or bare name of the vehicle that it extends."""
    base = load_vehicle_config(locate(like, "vehicles")).body
    given = {k: v for k in ("mass_kg", "cdA_m2", "rolling") if (v := getattr(car, k)) is not None}
    kept = ", ".join(f"{k} = {getattr(base, k):g}" for k in ("mass_kg", "cdA_m2", "rolling") if k not in given)
    lines = [
        f"# Vehicle {name}. Written by `torqueloop new vehicle`; everything may be changed.",
        f"# From {like}: brakes, road, link" + (f", {kept}." if kept else "."),
        'kind = "vehicle"', f'extends = "{like}"', f'name = "{name}"',
    ]  # fmt: skip
    if given:
        lines += ["", "[body]", *(f"{key} = {value!r}" for key, value in given.items())]
        lines += ["[body.source]", *(f'{key} = "{GIVEN}"' for key in given)]
    if "mass_kg" in given:
        force_N = round(G_MPS2 * given["mass_kg"], -1)
        lines += ["", "[brakes]", f"force_max_N = {force_N}",
                  f'source = "assumed: 1 g for {given["mass_kg"]:g} kg, tyre limit on dry road"']  # fmt: skip
    return "\n".join(lines) + "\n"


def drive_text(name: str, drive: str, like: str, car: Car, folder: Path) -> str:
    """The drive: `drive` (file or bare name) with the mass of the vehicle and the given axle and tyre; it is written to
    `folder`."""
    path = installed_driveline(drive)
    mass_kg = load_vehicle_config(locate(like, "vehicles")).body.mass_kg if car.mass_kg is None else car.mass_kg
    text = path.read_text(encoding="utf-8")
    source = GIVEN if car.mass_kg is not None else f"the mass of {like}, which the vehicle process has"
    text = _replaced(text, path, "car", "m_kg", mass_kg, source)
    if car.axle_ratio is not None:
        text = _replaced(text, path, "final_drive", "ratio", car.axle_ratio, GIVEN)
    if car.tyre_radius_m is not None:
        text = _replaced(text, path, "wheel", "radius_m", car.tyre_radius_m, GIVEN)
    text = re.sub(
        r'^csv = "(.*)"$', lambda m: f'csv = "{_table(path.parent / m[1], folder)}"', text, flags=re.MULTILINE
    )
    text = re.sub(r'^name = ".*"$', f'name = "{name}"', text, count=1, flags=re.MULTILINE)
    return f"# Written by `torqueloop new vehicle`, from {drive}; everything may be changed.\n{text}"


def _replaced(text: str, path: Path, component: str, key: str, value: float, source: str) -> str:
    """A drive with another value, and its source, in [components.COMPONENT]."""
    form = rf'(^\[components\.{component}\]\n(?:(?!\[).*\n)*?{key} = )\S+((?:\n(?!\[).*)*?\nsource = )".*"$'
    made, found = re.subn(form, lambda m: f'{m[1]}{value!r}{m[2]}"{source}"', text, flags=re.MULTILINE)
    if not found:
        raise ConfigError("there is no {key} with its source to be replaced", file=str(path),
                          table=f"components.{component}", key=key)  # fmt: skip
    return made


def _table(path: Path, folder: Path) -> str:
    """How a file in `folder` names a table: an installed one by its bare name."""
    known = [name for kind in ("engines", "converters") for name, file in installed(kind).items()
             if file.resolve() == path.resolve()]  # fmt: skip
    return known[0] if known else Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
