"""The driver of a rig as its file has it at t = 0, standing still: where tests and random drives begin."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torqueloop.hil.rig.devices.registry import load_rig_config


def standing_driver(rig: Path, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Overrides "driver.NAME" -> the first value of each driver table of a rig file."""
    return {f"driver.{name}": points[0][1] for name, points in load_rig_config(rig, overrides).driver.items()}
