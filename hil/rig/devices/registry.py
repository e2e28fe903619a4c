"""The kinds of devices a rig may be made of, and the rig file with the tables of them all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from pydantic import create_model

from torqueloop.hil.common.config_layers import load_config
from torqueloop.hil.common.plugins import DEVICES, PluginError, find, kinds
from torqueloop.hil.rig.devices.device import Device
from torqueloop.hil.rig.schema.rig_file import RigConfig


def device_kinds() -> tuple[type[Device[Any]], ...]:
    """All kinds, in the order in which their signals stand in the table; PluginError for one that is no Device."""
    found = tuple(find(DEVICES, name) for name in kinds(DEVICES))
    for kind in found:
        if not (isinstance(kind.make, type) and issubclass(kind.make, Device)):
            raise PluginError(f"{kind} is no subclass of torqueloop.hil.rig.devices.device.Device")
    return cast(tuple[type[Device[Any]], ...], tuple(kind.make for kind in found))


def rig_model() -> type[RigConfig]:
    """The model of a rig file with the tables of all kinds of devices."""
    return _model(device_kinds())


@cache
def _model(found: tuple[type[Device[Any]], ...]) -> type[RigConfig]:
    bases = tuple(dict.fromkeys((RigConfig, *(kind.TABLES for kind in found))))
    made = create_model("RigConfig", __base__=cast(tuple[type[RigConfig], ...], bases), __doc__=RigConfig.__doc__)
    made.GROUPS = RigConfig.GROUPS.union(*(kind.GROUPS for kind in found))
    return made


def load_rig_config(path: str | Path, overrides: Mapping[str, Any] | None = None) -> RigConfig:
    """Read and check a rig file by itself; overrides: dotted key -> value."""
    return load_config(path, rig_model(), overrides)
