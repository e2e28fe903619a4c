"""The models of configuration files as they are to be read: which files, and what their keys mean.

The meaning of a key is the `#:` comment above it in the model. It is read from the source when a page or schema is
made, so that starting a rig costs nothing for it.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.common.config_file import ConfigTable, InFile
from torqueloop.hil.ecu.external import ZmqOptions
from torqueloop.hil.ecu.interface_tables import InterfaceConfig
from torqueloop.hil.ecu.shared_library import LibraryOptions
from torqueloop.hil.ecu.soft_tcu import SoftTcuOptions
from torqueloop.hil.ecu.tcu_tables import TcuConfig
from torqueloop.hil.multibody.tree_tables import TreeConfig
from torqueloop.hil.multibody.unit import MultibodyOptions
from torqueloop.hil.new.sketch import Sketch
from torqueloop.hil.rig.devices.registry import rig_model
from torqueloop.hil.rig.devices.steps import Move, Step
from torqueloop.hil.rig.schema.hydraulic_unit import HydraulicsConfig
from torqueloop.hil.scenario.scenario_tables import Check, ScenarioConfig
from torqueloop.hil.study.study_tables import StudyConfig
from torqueloop.hil.vehicle.vehicle_tables import VehicleConfig


@dataclass(frozen=True)
class FileKind:
    """One kind of configuration file."""

    #: "rig": its schema is rig.schema.json, its page rig_file.md
    name: str
    title: str
    model: type[ConfigTable]
    #: a file of this kind that comes with the package
    example: str
    #: patterns of the files in this repository
    files: tuple[str, ...]
    #: what [ecu.NAME.options], which the model leaves open, is for our own kinds
    options: tuple[type[ConfigTable], ...] = ()
    #: tables in which a number may be written "$NAME": a parameter of the file
    parameters: tuple[type[ConfigTable], ...] = ()


KINDS = (
    FileKind("rig", "Rig file", rig_model(), "configs/rigs/desk_4hp22.toml",
             ("**/rigs/*.toml", "**/examples/external/*.toml"),
             (SoftTcuOptions, LibraryOptions, ZmqOptions, MultibodyOptions)),
    FileKind("tcu", "TCU file", TcuConfig, "configs/tcu/soft_4hp22.toml", ("**/tcu/*.toml",)),
    FileKind("vehicle", "Vehicle file", VehicleConfig, "configs/vehicles/bmw_528i_e28.toml", ("**/vehicles/*.toml",)),
    FileKind("hydraulics", "Hydraulic unit", HydraulicsConfig, "configs/hydraulics/zf_4hp22_direct.toml",
             ("**/hydraulics/*.toml",)),
    FileKind("scenario", "Scenario file", ScenarioConfig, "configs/scenarios/kick_down.toml", ("**/scenarios/*.toml",),
             parameters=(Step, Move, Check)),
    FileKind("study", "Study file", StudyConfig, "configs/studies/shift_3_4.toml", ("**/studies/*.toml",)),
    FileKind("tree", "Tree of bodies", TreeConfig, "configs/trees/body_mounted_actuator.toml", ("**/trees/*.toml",)),
    FileKind("sketch", "Gearbox sketch", Sketch, "configs/sketches/zf_8hp45.toml", ("**/sketches/*.toml",)),
    FileKind("interface", "Interface of a maker's bus", InterfaceConfig, "configs/interfaces/egs_bmw_e9x.toml",
             ("**/interfaces/*.toml",)),
)  # fmt: skip
#: endings of keys that are their unit
UNITS = {
    "s": "s", "us": "us", "ns": "ns", "bytes": "bytes", "percent": "%", "rpm": "rpm", "bar": "bar", "Nm": "Nm",
    "N": "N", "kg": "kg", "m2": "m2", "kgpm3": "kg/m3", "mps": "m/s", "kmh": "km/h", "bar_per_Nm": "bar/Nm",
    "bar_per_s": "bar/s", "cm3": "cm3", "mm2": "mm2", "m": "m", "Hz": "Hz", "degC": "degC", "deg": "deg",
    "cm3pbar": "cm3/bar", "cm3psbar": "cm3/s/bar",
    "rpm_per_s": "rpm/s", "bar_per_100rpm": "bar per 100 rpm", "bar_per_100rpm_s": "bar/s per 100 rpm",
    "rad": "rad", "radps": "rad/s", "mps2": "m/s2", "kgm2": "kg.m2", "Nms_per_rad": "Nms/rad",
    "Nm_per_radps": "Nm/(rad/s)", "Nm_per_rad": "Nm/rad", "rpm_per_kmh": "rpm/(km/h)",
}  # fmt: skip
_SYMBOLS = sorted({*UNITS.values(), "1", "bit/s", "Nm/bar", "rpm per km/h"})
_IN_TEXT = re.compile(rf"\s*\[({'|'.join(map(re.escape, _SYMBOLS))})\]")


@cache
def comments(model: type[BaseModel]) -> dict[str, str]:
    """Key -> the `#:` comment above it, of the model itself and those it inherits from."""
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if isinstance(kind, type) and issubclass(kind, ConfigTable):
            found |= _own_comments(kind)
    return found


def _own_comments(kind: type[BaseModel]) -> dict[str, str]:
    lines = inspect.getsource(sys.modules[kind.__module__]).splitlines()
    tree = ast.parse("\n".join(lines))
    # the model of the rig file is made of others and stands in no source
    nodes = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == kind.__name__]
    found = {}
    for item in (item for node in nodes for item in node.body):
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            above, k = [], item.lineno - 2
            while k >= 0 and lines[k].strip().startswith("#:"):
                above.append(lines[k].strip().removeprefix("#:").strip())
                k -= 1
            found[item.target.id] = " ".join(reversed(above))
    return found


def meaning(model: type[BaseModel], key: str) -> tuple[str, str]:
    """(meaning, unit) of a key; the unit stands in brackets in the comment, or at the end of the key."""
    text = comments(model).get(key, "")
    told = _IN_TEXT.search(text)
    if told is not None:
        return _IN_TEXT.sub("", text, count=1).strip(), told.group(1)
    parts = key.split("_")
    endings = ("_".join(parts[k:]) for k in range(1, len(parts)))
    return text, next((UNITS[ending] for ending in endings if ending in UNITS), "")


@dataclass(frozen=True)
class Table:
    """One table of a file."""

    #: its keys, joined: "bus.NAME", "faults[]"; "" for the file itself
    name: str
    model: type[BaseModel]
    required: bool = False


def tables(model: type[BaseModel], name: str = "", required: bool = False) -> Iterator[Table]:
    """All tables of a file, each before those inside it; the file itself has no name."""
    yield Table(name, model, required)
    for key, field in model.model_fields.items():
        for inner, suffix in _inside(field.annotation):
            must = field.is_required() and not suffix
            yield from tables(inner, (f"{name}.{key}" if name else key) + suffix, must)


def _inside(annotation: Any, suffix: str = "") -> Iterator[tuple[type[BaseModel], str]]:
    """Models in an annotation: M, M | None, dict[str, M] (".NAME"), list[M] ("[]")."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, suffix
        return
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is dict:
        yield from _inside(arguments[1], suffix + ".NAME")
    elif origin in (list, tuple):
        yield from _inside(arguments[0], suffix + "[]")
    else:
        for one in arguments:
            yield from _inside(one, suffix)


def models_of(kind: FileKind) -> dict[str, type[BaseModel]]:
    """Class name -> model of all tables of a file."""
    return {model.__name__: model for model in (*(t.model for t in tables(kind.model)), *kind.options)}


def names_file(model: type[BaseModel], key: str) -> bool:
    """The value is the name of a file."""
    field = model.model_fields[key]
    inner = (getattr(a, "__metadata__", ()) for a in get_args(field.annotation))
    return any(isinstance(mark, InFile) for marks in (field.metadata, *inner) for mark in marks)
