"""The controllers of an automatic car on a drive cycle, wired to configs/examples/drive_cycle_car.toml.

driver -> idle -> fuel -> engine;  driver -> gearbox -> ratio, lock-up;  fan -> radiator
"""

from __future__ import annotations

from pathlib import Path

from torqueloop.core.controls.cooling import CoolingFan
from torqueloop.core.controls.driver import Driver2
from torqueloop.core.controls.fuel_flow import FuelFlowController
from torqueloop.core.controls.gearbox import GearboxController
from torqueloop.core.controls.idle import IdleController
from torqueloop.core.controls.loop import Wired
from torqueloop.core.describe.tables import Table1D, table_from_config
from torqueloop.core.signals import Signal, Table

#: speeds in m/s over the throttle, assumed: economical at light throttle, near the rated speed at full throttle
UP = (
    Table1D((0.0, 0.2, 1.0), (4.5, 6.0, 14.0)),
    Table1D((0.0, 0.2, 1.0), (9.0, 11.0, 25.0)),
    Table1D((0.0, 0.2, 1.0), (14.0, 17.0, 40.0)),
)
DOWN = (
    Table1D((0.0, 0.3, 1.0), (2.5, 3.0, 8.0)),
    Table1D((0.0, 0.3, 1.0), (6.0, 7.5, 18.0)),
    Table1D((0.0, 0.3, 1.0), (11.0, 13.0, 30.0)),
)


def read_cycle(path: str | Path) -> Table:
    """Wanted speed in m/s over time from a CSV with the columns time_s and speed_mps."""
    path = Path(path)
    table = table_from_config({"csv": path.name, "columns": ["time_s", "speed_mps"]}, path.parent)
    assert isinstance(table, Table1D)
    return Table(list(zip(table.x, table.y, strict=True)))


def automatic_car(cycle: Signal) -> list[Wired]:
    """All controllers of the example car, following the cycle."""
    return [
        Wired(
            "driver", Driver2(), {"v_set": cycle, "v": "car.v"}, {"brake": "brake.f_normalized"},
        ),
        Wired(
            "gearbox", GearboxController(UP, DOWN, lockup_gear=3, v_lockup=15.0),
            {"throttle": "driver.accelerator", "v": "car.v"},
            {"gear": "efficiency.gear", "gear_actual": "gearbox.gear", "p_lockup": "converter.p"},
            lines=frozenset({"gear_actual"}),
        ),
        Wired(
            "idle", IdleController(),
            {"w": "engine.w", "accelerator": "driver.accelerator", "T_coolant": "warm_up.T_coolant"},
        ),
        Wired(
            "fuel", FuelFlowController(),
            {"accelerator": "driver.accelerator", "idle": "idle.demand", "w": "engine.w"},
            {"demand": "engine.pedal"},
        ),
        Wired(
            "fan", CoolingFan(), {"v": "car.v", "T_coolant": "warm_up.T_coolant"}, {"air": "warm_up.air"},
        ),
    ]  # fmt: skip
