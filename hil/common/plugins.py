"""Kinds that a package can add: control units, vehicles, gateways to a bus, devices; found by entry points.

    [project.entry-points."torqueloop.ecus"]
    my_unit = "my_package.unit:make"

An entry point names a callable that receives the set-up of a participant and returns the participant, ready to be
started: see hil/ecu/control_unit.py, hil/vehicle/vehicle.py, and open_bus of hil/can/bus.py. The entry point of a
device names a class, see hil/rig/devices/device.py. OWN lists our own kinds, so that a checkout without an installed
package knows them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import TorqueloopError, UnknownKindError, did_you_mean

ECUS, VEHICLES, GATEWAYS = "torqueloop.ecus", "torqueloop.vehicles", "torqueloop.gateways"
DEVICES = "torqueloop.devices"
#: what a kind of a group is called in messages
WORDS = {ECUS: "control unit", VEHICLES: "vehicle", GATEWAYS: "bus gateway", DEVICES: "device"}
#: our own kinds, the same as in pyproject.toml; our own devices stand here alone
OWN: Mapping[str, Mapping[str, str]] = {
    ECUS: {
        "soft_tcu": "torqueloop.hil.ecu.soft_tcu:make",
        "recording": "torqueloop.hil.ecu.recording:make",
        "library": "torqueloop.hil.ecu.shared_library:make",
        "zmq": "torqueloop.hil.ecu.external:make_zmq",
        "multibody": "torqueloop.hil.multibody.unit:make",
    },
    VEHICLES: {"road": "torqueloop.hil.vehicle.model:make"},
    GATEWAYS: {
        "python_can": "torqueloop.hil.can.bus:PythonCanPort",
        "udp_multicast": "torqueloop.hil.can.bus:open_multicast",
    },
    # their signals stand in the signal table in this order
    DEVICES: {
        "steps": "torqueloop.hil.rig.devices.steps:Steps",
        "faults": "torqueloop.hil.rig.devices.faults:FaultInjection",
        "supply": "torqueloop.hil.rig.devices.supply:Supply",
        "hydraulics": "torqueloop.hil.rig.devices.hydraulics:HydraulicUnit",
        "controllers": "torqueloop.hil.rig.devices.controllers:Controllers",
        "engine_control": "torqueloop.hil.rig.devices.engine_control:EngineControl",
        "sensors": "torqueloop.hil.rig.devices.sensors:Sensors",
        "vehicle": "torqueloop.hil.rig.devices.vehicle:VehicleLink",
        "units": "torqueloop.hil.rig.devices.units:ControlUnits",
        "io": "torqueloop.hil.rig.devices.io:IoCards",
    },
}


class PluginError(TorqueloopError):
    """A package that adds a kind is broken: which one, and why."""


@dataclass(frozen=True)
class Kind:
    """One kind: its origin, and the callable that makes a participant of it."""

    group: str
    name: str
    #: "package 1.2 (module:attribute)"
    origin: str
    make: Callable[..., Any]

    def create(self, methods: Iterable[str], *arguments: Any) -> Any:
        """Make a participant and check that it has the methods of its Protocol; PluginError otherwise. A
        TorqueloopError of the kind (its files are wrong) is passed on."""
        try:
            peer = self.make(*arguments)
        except TorqueloopError:
            raise
        except Exception as error:
            raise PluginError(f"{self} failed: {type(error).__name__}: {error}") from error
        lacking = [name for name in methods if not hasattr(peer, name)]
        if lacking:
            raise PluginError(f"{self} made a {type(peer).__name__} that has no {', '.join(lacking)}")
        return peer

    def __str__(self) -> str:
        return f"{WORDS[self.group]} kind {self.name!r} of {self.origin}"


def kinds(group: str) -> list[str]:
    """Names of all kinds of a group, ours first."""
    return list(dict.fromkeys([*OWN[group], *sorted(e.name for e in _found(group, *sys.path))]))


def find(group: str, name: str, *, file: str | None = None, table: str | None = None, key: str = "kind") -> Kind:
    """The kind `name`; UnknownKindError with the choices if there is none, PluginError if its package is broken."""
    own = OWN[group].get(name)
    others = [e for e in _found(group, *sys.path) if e.name == name and e.value != own]
    if len(others) + (own is not None) > 1:
        origins = ["torqueloop", *map(_origin, others)] if own is not None else [_origin(e) for e in others]
        raise PluginError(f"{WORDS[group]} kind {name!r} is offered by {' and by '.join(origins)}: remove one of them")
    if own is not None:
        module, _, attribute = own.partition(":")
        return Kind(group, name, f"torqueloop ({own})", getattr(importlib.import_module(module), attribute))
    if not others:
        choices = kinds(group)
        raise UnknownKindError(
            f"no {WORDS[group]} kind {{value}} is installed", file=file, table=table, key=key, value=name,
            allowed=", ".join(choices), hint=did_you_mean(name, choices),
        )  # fmt: skip
    entry = others[0]
    try:
        make = entry.load()
    except Exception as error:  # whatever the package's import raises
        raise PluginError(
            f"{WORDS[group]} kind {name!r} of {_origin(entry)} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not callable(make):
        raise PluginError(f"{WORDS[group]} kind {name!r} of {_origin(entry)} is a {type(make).__name__}, no callable")
    return Kind(group, name, _origin(entry), make)


@cache
def _found(group: str, *path: str) -> tuple[EntryPoint, ...]:
    """Entry points of a group. The search path is a key of the cache: a package may be put there later."""
    # one place may be found twice (a checkout on the path and its editable installation): the same value counts once
    return tuple({(e.name, e.value): e for e in entry_points(group=group)}.values())


def _origin(entry: EntryPoint) -> str:
    dist = entry.dist
    package = "an unknown package" if dist is None else f"{dist.name} {dist.version}"
    return f"{package} ({entry.value})"
