"""[supply] of a rig file: the voltages of terminals 30 and 15 of the car over time (docs/hydraulics.md)."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from torqueloop.hil.common.config_file import BadValue, ConfigTable, Point
from torqueloop.hil.rig.devices.device import Device

#: battery; battery behind the ignition switch (DIN 72552)
SUPPLIES = TERMINAL_30, TERMINAL_15 = "supply.terminal_30", "supply.terminal_15"
Schedule = Annotated[list[Point], Field(min_length=1, max_length=1000)]


class SupplyTable(ConfigTable):
    """[supply]: the electrical supply of control unit and solenoids."""

    #: Points [t_s, voltage_V] of the battery, linear between them: signal supply.terminal_30.
    battery_V: Schedule = [(0.0, 13.5)]
    #: Points [t_s, 0 or 1] of the ignition switch, which changes in steps. The signal supply.terminal_15 is the voltage
    #: of the battery while it is on.
    ignition: Schedule = [(0.0, 1.0)]

    @field_validator("battery_V", "ignition")
    @classmethod
    def _in_order(cls, points: list[tuple[float, float]], info: ValidationInfo) -> list[tuple[float, float]]:
        for (t0, _), (t1, _) in zip(points, points[1:], strict=False):
            if t1 < t0:
                raise BadValue("{key}: time {value} goes back", key=str(info.field_name), value=t1,
                               allowed=f">= {t0}")  # fmt: skip
        return points

    @field_validator("ignition")
    @classmethod
    def _switched(cls, points: list[tuple[float, float]]) -> list[tuple[float, float]]:
        for _, y in points:
            if y not in (0.0, 1.0):
                raise BadValue("{key}: {value} is no state of a switch", key="ignition", value=y, allowed="0, 1")
        return points

    def terminal_15(self) -> list[tuple[float, float]]:
        """Points of the battery, which are 0 while the ignition is off."""
        times, volts = zip(*self.battery_V, strict=True)
        found: list[tuple[float, float]] = []
        ends = [0.0, *(t for t, _ in self.ignition[1:]), math.inf]
        for (_, on), begin, end in zip(self.ignition, ends, ends[1:], strict=False):
            # at a step of the battery: its value behind `begin`, and before `end`
            inside = [(begin, float(np.interp(begin, times, volts)))]
            inside += [(t, u) for t, u in self.battery_V if begin < t < end]
            if end < math.inf:
                inside.append((end, float(np.interp(math.nextafter(end, -math.inf), times, volts))))
            found += [(t, on * u) for t, u in inside]
        return found


class SupplyTables(ConfigTable):
    """What the rig file has of it."""

    #: Electrical supply, see docs/hydraulics.md.
    supply: SupplyTable | None = None


class Supply(Device[SupplyTables]):
    """Signals supply.terminal_30 and supply.terminal_15."""

    TABLES = SupplyTables
    GROUPS = ("supply",)

    def signals(self) -> None:
        given = self.given.supply
        if given is not None:
            for name, points in zip(SUPPLIES, (given.battery_V, given.terminal_15()), strict=True):
                slot = self.table.add(name, "V", points[0][1])
                self.rig.drivers.append((slot, [t for t, _ in points], [y for _, y in points]))
