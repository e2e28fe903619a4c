"""Torque the soft TCU asks of the engine while a shift up under power is in its inertia phase, and the way back.

    T_limit = (1 - reduction) T_driver     in the inertia phase; T_driver: engine torque of pedal and speed
    T_limit' = T_driver / return_s         afterwards, until T_limit >= T_driver: then the request ends

Pure and deterministic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from torqueloop.hil.common.config_file import ConfigTable
from torqueloop.hil.ecu.laws import Positive


class TorqueReduction(ConfigTable):
    """[torque_reduction]: engine torque that the TCU asks for in power-on upshifts. Without this table it asks for
    none."""

    #: Share of the driver's torque by which the engine torque is reduced in the inertia phase.
    reduction: Annotated[float, Field(gt=0, le=1)] = 0.4
    #: Time in which the full torque returns after the inertia phase [s].
    return_s: Annotated[float, Field(gt=0, le=2)] = 0.15
    #: The TCU asks for no reduction when the driver asks for less torque than this [Nm].
    least_Nm: Positive = 40.0


class TorqueRequest:
    """The request over time: `active` and `limit` [Nm]."""

    def __init__(self, config: TorqueReduction | None, period_s: float) -> None:
        self._config, self._dt = config, period_s
        self.active: bool = False
        self.limit: float = 0.0

    def step(self, upshift: bool, stage: str | None, driver: float) -> None:
        """One control period. upshift: a shift up is running, stage: of it; driver: engine torque he asks for [Nm]."""
        c = self._config
        if c is None:
            return
        if upshift and stage == "inertia" and driver > c.least_Nm:
            self.active, self.limit = True, (1.0 - c.reduction) * driver
        elif self.active:
            self.limit += max(driver, c.least_Nm) * self._dt / c.return_s
            self.active = self.limit < driver

    def save(self) -> dict[str, Any]:
        """What changes."""
        return {"active": self.active, "limit": self.limit}

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save."""
        self.active = bool(data["active"])
        self.limit = float(data["limit"])
