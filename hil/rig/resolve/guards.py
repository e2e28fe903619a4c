"""Limits of what is sent: entries of [outputs] -> rows for the tick.

    [outputs]
    "HIL_Speeds.n_engine" = { signal = "engine.w", min = 0, max = 8000, slew = 20000, on_limit = "clamp" }

Limits are in the unit of the database, slew in that unit per second; without min and max the database's range holds.
"""

from __future__ import annotations

import math
from typing import Any

from torqueloop.core.describe.errors import ConfigError, RangeError
from torqueloop.hil.rig.devices.device import PlannedGuard, RigPlan


def plan_guards(plan: RigPlan) -> list[PlannedGuard]:
    """Range and slew of every sent signal; ConfigError with its place."""
    found = []
    for name, entry in plan.config.outputs.items():
        slot = plan.table.slot(name)
        _, info = plan.on_bus(slot) or (None, None)
        assert info is not None, "outputs are signals of a bus"

        def refuse(key: str, value: Any, allowed: str, name: str = name) -> ConfigError:
            where = {"file": str(plan.path), "table": f"outputs.{name}", "key": key, "value": value}
            return RangeError("{key} = {value}", **where, allowed=allowed)

        lo = -math.inf if info.minimum is None else info.minimum
        hi = math.inf if info.maximum is None else info.maximum
        for key, given in (("min", entry.min), ("max", entry.max)):
            if given is None:
                continue
            value = info.in_si(given, with_offset=True)
            if not lo - 1e-9 <= value <= hi + 1e-9:
                raise refuse(key, given, f"the range of the database, {info.range_text(info.minimum, info.maximum)}")
            lo, hi = (value, hi) if key == "min" else (lo, value)
        slew = 0.0 if entry.slew is None else abs(info.in_si(entry.slew, with_offset=False))
        start = plan.table.initial.get(slot, 0.0)
        if entry.value is not None and not lo - 1e-9 <= start <= hi + 1e-9:
            raise refuse("value", entry.value, f"its own limits, {info.range_text(lo, hi)}")
        found.append(PlannedGuard(name, slot, lo, hi, abs(info.scale) / 2.0, slew, entry.on_limit == "safe"))
    return found
