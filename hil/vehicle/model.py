"""Vehicle model beside the rig: longitudinal motion, air, grade, rolling resistance, brakes. Kind "road"; its process.

The rig's powertrain holds the car's mass; this model owns the road. It tells the rig the active force F and the
holding capacity F_hold, and integrates the same motion itself from the tractive impulse the rig reports, as a check
on the coupling:

    m dv/dt = F_wheel + F(v, s) - r,   |r| <= F_hold, r opposes the motion and holds the car when it stands
    F       = -rho/2 cdA (v + w)|v + w| - m g sin(alpha(s))   [N], + drives forward; w head wind, alpha > 0 uphill
    F_hold  = c_r m g cos(alpha) + brake F_brake_max                   [N]

Between two messages F_wheel is the mean from the cumulative impulse, (I_k - I_k-1)/(t_k - t_k-1): a lost message
costs nothing but a coarser mean. Midpoint rule; the instant the car stops is located, and a standing car stays at
exactly v = 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.common.config_file import ConfigTable, read_table
from torqueloop.hil.link.messages import StateMessage, StepMessage
from torqueloop.hil.results.links import PeerStats
from torqueloop.hil.vehicle.carrier import TurningBodies
from torqueloop.hil.vehicle.config import VehicleConfig, load_vehicle_config
from torqueloop.hil.vehicle.kinds import VehicleSetup

#: [m/s2]; 9.81 as in the road-load figures of configs/vehicles
GRAVITY = 9.81


class VehicleModel:
    """Pure and deterministic: equal messages give equal states."""

    def __init__(self, config: VehicleConfig) -> None:
        self.config = config
        self._mass = config.body.mass_kg
        self._half_rho_cdA = 0.5 * config.body.air_density_kgpm3 * config.body.cdA_m2
        self._head_wind = config.road.head_wind_mps
        self._rolling = config.body.rolling * self._mass * GRAVITY
        self._brake_max = config.brakes.force_max_N
        self._last: StepMessage | None = None
        self._carriers: TurningBodies | None = (
            TurningBodies(config.carrier, config.integration.step_s) if config.carrier else None
        )
        self.speed: float = 0.0
        self.distance: float = 0.0
        self.own_step: int = 0
        self.restarts: int = 0

    def start(self) -> None:
        """Nothing to start: it runs where it is stepped."""

    def stop(self) -> PeerStats:
        """Counts for the report."""
        return PeerStats(told={"restarts": self.restarts})

    def save(self) -> dict[str, Any]:
        """Everything that changes, for `load` of a model of the same configuration."""
        last = None if self._last is None else vars(self._last).copy()
        own = {"speed": self.speed, "distance": self.distance, "own_step": self.own_step, "restarts": self.restarts}
        bodies = {} if self._carriers is None else {"carriers": self._carriers.save()}
        return {"last": last, **own, **bodies}

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save; KeyError, TypeError or ConfigError when it is none."""
        last = None if data["last"] is None else StepMessage(**data["last"])
        if self._carriers is not None:
            # of a carrier with attitude the force comes with the moment
            told = {} if last is None else last.carrier
            self._carriers.load(data["carriers"], {name for name, numbers in told.items() if len(numbers) > 3})
        self._last = last
        self.speed, self.distance = float(data["speed"]), float(data["distance"])
        self.own_step, self.restarts = int(data["own_step"]), int(data["restarts"])

    # --- forces -----------------------------------------------------------------------------------------------------
    def active_force(self, speed: float, distance: float) -> float:
        """F [N]: air drag and grade, + drives forward."""
        return self._active(speed, self.config.road.angle(distance))

    def _active(self, speed: float, slope: float) -> float:
        air = speed + self._head_wind
        return -self._half_rho_cdA * air * abs(air) - self._mass * GRAVITY * math.sin(slope)

    def holding_force(self, distance: float, brake: float) -> float:
        """F_hold [N] >= 0: rolling resistance and brakes."""
        return self._holding(self.config.road.angle(distance), brake)

    def _holding(self, slope: float, brake: float) -> float:
        return self._rolling * math.cos(slope) + brake * self._brake_max

    # --- motion -----------------------------------------------------------------------------------------------------
    def step(self, message: StepMessage) -> StateMessage:
        """Advance to the time of the message and return the state there. The first message sets the initial state."""
        last = self._last
        if last is None or message.t < last.t:
            # first contact, or the rig has begun again
            self.restarts += last is not None
            self.speed, self.distance = message.speed, message.s
            tractive = message.F_wheel
            if self._carriers is not None and last is not None:
                self._carriers.restart()
                last = None
        elif message.t > last.t:
            duration = message.t - last.t
            tractive = (message.I_wheel - last.I_wheel) / duration
            n = max(1, math.ceil(duration / self.config.integration.step_s - 1e-9))
            for _ in range(n):
                self._advance(tractive, message.brake, duration / n)
        else:
            tractive = message.F_wheel
        carrier = {} if self._carriers is None else self._carriers.step(last, message)
        self._last = message
        self.own_step += 1
        slope = self.config.road.angle(self.distance)
        active, hold = self._active(self.speed, slope), self._holding(slope, message.brake)
        return StateMessage(
            step=message.step,
            own_step=self.own_step,
            t=message.t,
            speed=self.speed,
            a=self._acceleration(tractive + active, hold),
            F=active,
            F_hold=hold,
            grade=slope,
            carrier=carrier,
        )

    def _acceleration(self, force: float, hold: float) -> float:
        if self.speed == 0.0 and abs(force) <= hold:
            return 0.0
        direction = math.copysign(1.0, self.speed if self.speed != 0.0 else force)
        return (force - direction * hold) / self._mass

    def _advance(self, tractive: float, brake: float, duration: float) -> None:
        """One sub-step; split where the car comes to rest. At most three parts: stop, decide, go on."""
        rest = duration
        for _ in range(3):
            v, s = self.speed, self.distance
            slope = self.config.road.angle(s)
            hold, force = self._holding(slope, brake), tractive + self._active(v, slope)
            if v == 0.0 and abs(force) <= hold:
                return  # stands: exactly zero, no creep
            direction = math.copysign(1.0, v if v != 0.0 else force)
            # midpoint rule with the direction of the friction fixed over the part
            v_mid = v + (force - direction * hold) / self._mass * 0.5 * rest
            if v_mid * direction < 0.0:
                v_mid = 0.0
            s_mid = s + 0.5 * (v + v_mid) * 0.5 * rest
            slope = self.config.road.angle(s_mid)
            a = (tractive + self._active(v_mid, slope) - direction * self._holding(slope, brake)) / self._mass
            v_end = v + a * rest
            if v_end * direction >= 0.0:
                self.speed = v_end
                self.distance = s + 0.5 * (v + v_end) * rest
                return
            # crosses zero inside: go to the crossing, decide there whether the car stays
            to_stop = v / -a if a != 0.0 else 0.0
            self.distance = s + 0.5 * v * to_stop
            self.speed = 0.0
            rest -= to_stop
            if rest <= 0.0:
                return


class RoadOptions(ConfigTable):
    """[vehicle.options] of kind road."""

    #: other values than those of its file: dotted key of it -> value, as "body.cd" = 0.35
    set: dict[str, Any] = {}


def make(setup: VehicleSetup) -> VehicleModel:
    """The road model of a rig file: its own file, whose mass is that of the powertrain."""
    where: dict[str, Any] = {"file": setup.rig_file or None, "table": setup.table or None}
    if setup.file is None:
        raise ConfigError("kind road needs its file", **where, key="start", allowed="a file as in configs/vehicles")
    options = read_table(setup.options, RoadOptions, setup.rig_file, f"{setup.table}.options")
    config = load_vehicle_config(setup.file, options.set)
    mass = config.body.mass_kg
    if setup.mass_kg is not None and abs(mass - setup.mass_kg) > 1e-6 * setup.mass_kg:
        raise ConfigError(
            f"{setup.file} has mass_kg = {mass:g}, the powertrain's {setup.car!r} {setup.mass_kg:g} kg",
            **where, key="start", value=str(setup.file), allowed="the same mass on both sides",
        )  # fmt: skip
    if setup.carriers is not None and set(setup.carriers) != set(config.carrier):
        told = ", ".join(setup.carriers) or "none"
        raise ConfigError(
            f"the carriers of {{value}} are {', '.join(config.carrier) or 'none'}, those of the rig {told}",
            **where, key="start", value=str(setup.file), allowed="a table [carrier.NAME] for each of its carriers",
        )  # fmt: skip
    return VehicleModel(config)
