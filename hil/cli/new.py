"""`torqueloop new`: commented starting files for a gearbox, a car, its vehicle, its control unit, its CAN database and
its rig, and code for the messages of a control unit."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.cli.common import command, out_console
from torqueloop.hil.common.locate import locate

new_app: typer.Typer = typer.Typer(
    help="Write starting files: gearbox, car, vehicle, tcu, rig, ecu.", no_args_is_help=True, add_completion=False
)


class UnitChoice(StrEnum):
    """The form of the control unit of a database."""

    HARDWARE = "hardware"
    LIBRARY = "library"
    ZMQ = "zmq"


OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="File to write; default: NAME.toml here.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")]


def _write(text: str, path: Path, force: bool) -> Path:
    if os.path.exists(path) and not force:
        raise ConfigError("the file {value} is there already", key="out", value=path, allowed="--force to overwrite it")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    out_console.print(f"written: {path}", soft_wrap=True, highlight=False)
    return path


def _named(target: Path, name: str) -> str:
    """How a file in the folder of `target` names a configuration: a file relative to it, or the bare name."""
    path = Path(name)
    return Path(os.path.relpath(path.resolve(), target.resolve().parent)).as_posix() if os.path.isfile(path) else name


@new_app.command("gearbox")
@command
def gearbox(
    name: Annotated[
        str, typer.Argument(help="A sketch (file or bare name), or a new name for a sketch to begin with.")
    ],
    out: OutOption = None,
    force: ForceOption = False,
) -> None:
    """Write a gearbox file from a sketch of tooth numbers; without a sketch of this name, write a sketch to change."""
    from torqueloop.hil.new.gearbox_file import gearbox_text
    from torqueloop.hil.new.sketch import SKETCH_TO_BEGIN_WITH, load_sketch

    known = locate_or_none(name)
    if known is None and Path(name).suffix:
        raise ConfigError("no such sketch: {value}", key="name", value=name)
    if known is None:
        path = _write(SKETCH_TO_BEGIN_WITH.replace("NAME", name), out or Path(f"{name}.sketch.toml"), force)
        out_console.print(f"change it, then: torqueloop new gearbox {path}", soft_wrap=True, highlight=False)
        return
    sketch = load_sketch(known)
    _write(gearbox_text(sketch), out or Path(f"{sketch.name}.toml"), force)


def locate_or_none(name: str) -> Path | None:
    """The sketch of this name, if there is one."""
    try:
        return locate(name, "sketches")
    except ConfigError:
        return None


@new_app.command("car")
@command
def car(
    gearbox: Annotated[str, typer.Argument(help="Gearbox file, or the bare name of an installed one.")],
    drive: Annotated[str, typer.Option(help="Drive around it: file or bare name.")] = "drive_545i",
    road: Annotated[bool, typer.Option("--road/--rig", help="With a road of its own, or for a rig's vehicle.")] = False,
    out: OutOption = None,
    force: ForceOption = False,
) -> None:
    """Write a car with this gearbox: engine, converter, axle, wheels and mass of a drive."""
    from torqueloop.core.components.files import load
    from torqueloop.hil.new.car_file import car_text

    name = f"car_{Path(gearbox).stem}" + ("" if road else "_rig")
    target = out or Path(f"{name}.toml")
    path = _write(car_text(name, _named(target, gearbox), _named(target, drive), road), target, force)
    load(path)


def _number(unit: str, text: str) -> Any:
    return typer.Option(metavar=unit, help=text)


@new_app.command("vehicle")
@command
def vehicle(
    name: Annotated[str, typer.Argument(help="Name of the vehicle.")],
    mass: Annotated[float | None, _number("KG", "Mass with its load.")] = None,
    cda: Annotated[float | None, _number("M2", "Drag coefficient times frontal area.")] = None,
    rolling: Annotated[float | None, _number("X", "Rolling resistance divided by the normal force.")] = None,
    tyre_radius: Annotated[float | None, _number("M", "Dynamic radius of the driven wheels.")] = None,
    axle_ratio: Annotated[float | None, _number("X", "Ratio of the final drive.")] = None,
    like: Annotated[
        str, typer.Option(metavar="VEHICLE", help="Published car with all other numbers: file or bare name.")
    ] = "bmw_545i_e60",
    drive: Annotated[
        str, typer.Option(help="Drive with engine, converter and shafts: file or bare name.")
    ] = "drive_545i",
    out: OutOption = None,
    force: ForceOption = False,
) -> None:
    """Write a vehicle file, and the drive with the same mass, from the numbers of a car. What is not given is that of a
    published car, with its source."""
    from torqueloop.hil.cli.file_check import check_file
    from torqueloop.hil.new.vehicle_file import Car, drive_text, vehicle_text

    target = out or Path(f"{name}.toml")
    around = target.with_name(f"drive_{target.name}")
    car = Car(mass, cda, rolling, tyre_radius, axle_ratio)
    texts = vehicle_text(name, _named(target, like), car), drive_text(around.stem, drive, like, car, around.parent)
    for text, path in zip(texts, (target, around), strict=True):
        if error := check_file(_write(text, path, force)).error:
            raise error
    then = f"torqueloop new car GEARBOX --drive {around}; torqueloop new rig CAR --vehicle {target}"
    out_console.print(f"put a gearbox in it: {then}", soft_wrap=True, highlight=False)


@new_app.command("tcu")
@command
def tcu(
    car: Annotated[
        str, typer.Argument(help="A car with its gearbox, or a gearbox, which is put into the car of --drive.")
    ],
    drive: Annotated[str, typer.Option(help="Drive around a gearbox: file or bare name.")] = "drive_545i",
    out: OutOption = None,
    database: Annotated[
        Path | None, typer.Option("--database", metavar="FILE", help="File of the CAN database.")
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write a soft control unit and its CAN database: gears, torques, shifts and shift map from statics and car."""
    from torqueloop.hil.new.files import control_unit

    made = control_unit(car, drive)
    _write(made.tcu, out or Path(f"soft_{made.name}.toml"), force)
    _write(made.database, database or Path(f"tcu_{made.name}.dbc"), force)


@new_app.command("rig")
@command
def rig(
    car: Annotated[str | None, typer.Argument(help="A car for a rig (with RoadLoad): file or bare name.")] = None,
    gearbox: Annotated[
        str | None, typer.Option(help="A gearbox instead of a car, in the car of --drive, whose file is written, too.")
    ] = None,
    drive: Annotated[str, typer.Option(help="Drive around the gearbox: file or bare name.")] = "drive_545i",
    vehicle: Annotated[str, typer.Option(help="Vehicle file: file or bare name.")] = "bmw_545i_e60",
    dbc: Annotated[
        str | None, typer.Option("--dbc", metavar="FILE", help="For the control unit of this CAN database.")
    ] = None,
    node: Annotated[str | None, typer.Option(help="With --dbc: the control unit's node.")] = None,
    unit: Annotated[
        UnitChoice, typer.Option(help="With --dbc: on a real bus; a shared library or its C source; over ZeroMQ.")
    ] = UnitChoice.HARDWARE,
    start: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --unit library: the library or its C source.")
    ] = None,
    interface: Annotated[str, typer.Option(help="With --dbc: socketcan, or any of python-can.")] = "socketcan",
    channel: Annotated[str, typer.Option(help="With --dbc: network device, channel of the adapter.")] = "can0",
    out: OutOption = None,
    force: ForceOption = False,
) -> None:
    """Write a rig of a car. At a desk, it has a soft control unit with its CAN database: three files in one folder.
    With --dbc, it is for the control unit of a database. Signals are connected by their names, units and value tables,
    and the others are marked. If the control unit drives solenoids, a hydraulic unit is written, too."""
    if (car is None) == (gearbox is None):
        raise ConfigError("needs either a car or --gearbox", key="gearbox", value=gearbox)
    if (dbc is None) != (node is None):
        raise ConfigError("--dbc and --node belong together", key="node" if node is None else "dbc", value=node or dbc)
    if start is not None and unit is not UnitChoice.LIBRARY:
        raise ConfigError("--start names the file of --unit library", key="start", value=str(start))
    if (unit is UnitChoice.LIBRARY) != (start is not None) or (dbc is None and unit is not UnitChoice.HARDWARE):
        raise ConfigError(
            "--unit library needs --start and --dbc, --unit zmq needs --dbc", key="unit", value=unit.value
        )
    if gearbox is not None:
        from torqueloop.core.components.files import load
        from torqueloop.hil.new.car_file import car_text

        name = f"car_{Path(gearbox).stem}_rig"
        target = (out or Path(f"{name}.toml")).parent / f"{name}.toml"
        _write(car_text(name, _named(target, gearbox), _named(target, drive), False), target, force)
        load(target)
        car = str(target)
    assert car is not None
    if dbc is not None and node is not None:
        _rig_of_database(car, vehicle, dbc, node, (unit.value, start, interface, channel), out, force)
    else:
        _desk_rig(car, vehicle, out, force)


@new_app.command("ecu")
@command
def ecu(
    database: Annotated[str, typer.Argument(help="CAN database, or interface file of a maker: file or bare name.")],
    node: Annotated[str | None, typer.Option(help="Node of the control unit; default: that of the interface.")] = None,
    c: Annotated[bool, typer.Option("--c", help="C99: pack, unpack, counter, checksum.")] = False,
    python: Annotated[bool, typer.Option("--python", help="A Python module with a class for each message.")] = False,
    simulink: Annotated[
        str | None, typer.Option(metavar="MODEL", help="C, and an adapter for code generated from this model.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Folder to write to.")] = Path(),
    force: ForceOption = False,
) -> None:
    """Write code for the messages of a control unit, from its CAN database."""
    from torqueloop.hil.can.c_code import c_code
    from torqueloop.hil.can.database import CanDatabase
    from torqueloop.hil.can.python_code import python_code
    from torqueloop.hil.new.ecu_database import database_of
    from torqueloop.hil.new.simulink_file import simulink_text

    path, node = database_of(database, node)
    if not (c or python or simulink):
        raise ConfigError("no output is selected", key="ecu", value=database, allowed="--c, --python, --simulink MODEL")
    if c or simulink:
        code = c_code(path, node)
        _write(code.header, out / f"{code.stem}.h", force)
        _write(code.source, out / f"{code.stem}.c", force)
        for name, lacks in code.unprotected.items():
            out_console.print(f"{path.name} declares no {lacks} for {name}", soft_wrap=True, highlight=False)
        if simulink:
            described = CanDatabase.load(path, node, timeouts_s={"*": 0.0}, units="database", whole=True)
            _write(simulink_text(described, simulink, code.prefix), out / f"{simulink}_ecu.c", force)
    if python:
        _write(python_code(path, node), out / f"{path.stem}_can.py", force)


def _desk_rig(car: str, vehicle: str, out: Path | None, force: bool) -> None:
    from torqueloop.hil.new.files import control_unit
    from torqueloop.hil.new.rig_file import rig_text

    made = control_unit(car, "")
    target = out or Path(f"desk_{made.name}.toml")
    folder = target.parent
    unit = _write(made.tcu, folder / f"soft_{made.name}.toml", force)
    base = _write(made.database, folder / f"tcu_{made.name}.dbc", force)
    names = (_named(target, car), unit.name, base.name, _named(target, vehicle))
    path = _write(rig_text(target.stem, *names, made.elements, made.pedal), target, force)
    out_console.print(f"run it: torqueloop run {path} --clock virtual", soft_wrap=True, highlight=False)


def _rig_of_database(
    car: str, vehicle: str, dbc: str, node: str, unit: tuple[str, Path | None, str, str], out: Path | None, force: bool
) -> None:
    from torqueloop.core.compile.compiler import compile_driveline
    from torqueloop.core.components.files import load
    from torqueloop.hil.new.car_facts import engine_curve
    from torqueloop.hil.new.dbc_rig import MARK, UnitKind, draft, drive_pins, rig_from_database
    from torqueloop.hil.new.hydraulic_file import hydraulic_text, pistons

    path = locate(car, "powertrains")
    driveline = load(path)
    model = compile_driveline(driveline)
    made = draft(locate(dbc, "can"), node, model)
    target = out or Path(f"rig_{Path(dbc).stem}.toml")
    kind, start, interface, channel = unit
    there = UnitKind(kind, "" if start is None else _named(target, str(start)), interface, channel)
    found = pistons(driveline, model.input_names)
    pins = drive_pins(made, there, found)
    solenoids = [p for p in found if p.component in made.currents]
    oil = target.with_name(f"{target.stem}_hydraulics.toml")
    if solenoids:
        _write(hydraulic_text(oil.stem, driveline.name, solenoids), oil, force)
    curve = engine_curve(path)
    names = (_named(target, car), _named(target, vehicle), _named(target, dbc))
    text = rig_from_database(target.stem, *names, made, model, there, found, oil.name,
                             _named(target, curve), pins)  # fmt: skip
    path = _write(text, target, force)
    bound = len(made.outputs) + len(made.words), len(made.inputs) + len(made.currents)
    out_console.print(
        f"bound: {bound[0]} signals sent, {bound[1]} received; not found: {len(made.no_input)} inputs,"
        f" {len(made.constant)} signals have their start value; look at the lines with '{MARK}', then: torqueloop check"
        f" {path}", soft_wrap=True, highlight=False,
    )  # fmt: skip
