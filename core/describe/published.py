"""What is published of an engine, a gearbox or a car (`[published]`): figures to compare with, not to compute with.

[published]
displacement_l = 2.788
power_kW = 135
power_rpm = 5800
source = "owner's manual"

`torqueloop check --physics` holds the model against them (core/analyse/physics.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import RangeError, UnknownKeyError, did_you_mean
from torqueloop.core.describe.units import exact, is_number


def _figure(doc: str, low: float, high: float) -> Any:
    return field(default=None, metadata={"doc": doc, "low": low, "high": high})


@dataclass(frozen=True)
class Published:
    """Figures of makers; None where none is known. Units are in the names."""

    displacement_l: float | None = _figure("swept volume of the engine", 0.05, 100.0)
    power_kW: float | None = _figure("rated power of the engine", 1.0, 5000.0)
    power_rpm: float | None = _figure("speed of the rated power", 500.0, 20000.0)
    torque_Nm: float | None = _figure("largest torque of the engine", 1.0, 50000.0)
    torque_rpm: float | None = _figure("speed of the largest torque", 300.0, 20000.0)
    gearbox_torque_Nm: float | None = _figure("torque that the gearbox is rated for", 1.0, 50000.0)
    line_pressure_bar: float | None = _figure("highest line pressure", 1.0, 100.0)
    stall_rpm: float | None = _figure("engine speed at stall, full throttle", 500.0, 6000.0)
    rpm_at_100_kmh: float | None = _figure("engine speed at 100 km/h in the highest gear, locked", 500.0, 10000.0)
    t_0_100_kmh_s: float | None = _figure("time from standstill to 100 km/h", 1.0, 200.0)
    t_0_60_mph_s: float | None = _figure("time from standstill to 60 mph", 1.0, 200.0)
    v_max_kmh: float | None = _figure("top speed", 5.0, 500.0)

    def with_figures(self, figures: Mapping[str, Any]) -> Published:
        """These figures and more, from a table of a file; a later one takes the place of an earlier one."""
        known = {f.name: f.metadata for f in fields(self)}
        made = {}
        for key, value in figures.items():
            if key not in known:
                raise UnknownKeyError(f"unknown key {key!r}", table="published", key=key, hint=did_you_mean(key, known))
            low, high = known[key]["low"], known[key]["high"]
            if not is_number(value) or not low <= exact(value) <= high:
                raise RangeError(
                    "{key} = {value} is out of range",
                    table="published",
                    key=key,
                    value=value,
                    allowed=f"{low:g} .. {high:g}: {known[key]['doc']}",
                )
            made[key] = float(exact(value))
        return replace(self, **made)
