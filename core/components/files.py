"""Components and drivelines in files: the readers, with the kinds of components that there are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torqueloop.configs import installed
from torqueloop.core.components.added import kinds
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError, did_you_mean
from torqueloop.core.describe.toml_front import read_component, read_driveline
from torqueloop.core.describe.variants import Variants


def load(path: str | Path, values: Mapping[str, Any] | None = None) -> Driveline:
    """Read a driveline from TOML (format: docs/driveline_format.md): a file, or the bare name of an installed one
    ("car_4hp22", "zf_4hp22"). values: dotted key -> value instead of the file's, as {"components.car.m_kg": 1700}."""
    path = Path(path)
    if not os.path.exists(path) and not path.suffix and len(path.parts) == 1:
        known = {**installed("gearboxes"), **installed("powertrains")}
        if path.name not in known:
            problem = "no driveline named {value} is installed, and there is no such file"
            raise ConfigError(problem, value=path.name, hint=did_you_mean(path.name, known))
        path = known[path.name]
    driveline = read_driveline(path, kinds())
    return variants(driveline).of(values) if values else driveline


def variants(driveline: Driveline) -> Variants:
    """Drivelines like this one but for some values."""
    return Variants(driveline, kinds())


def component_from_config(body: Mapping[str, Any], directory: Path) -> Component:
    """A component from its TOML table: `kind` and parameters with units in their keys."""
    return read_component(body, directory, kinds())
