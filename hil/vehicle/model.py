"""Vehicle model beside the rig: longitudinal motion, air, grade, rolling resistance, brakes; and its process.

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
import time
from collections.abc import Callable, Mapping
from typing import Any

from torqueloop.hil.link.messages import ByeMessage, StateMessage, StepMessage
from torqueloop.hil.link.sockets import CurveKeys, LockstepServer, VehicleEnd
from torqueloop.hil.stop_flag import Stop, StopFlag
from torqueloop.hil.vehicle.config import VehicleConfig

#: [m/s2]; 9.81 as in the road-load figures of configs/vehicles
GRAVITY = 9.81


class VehicleModel:
    """Pure and deterministic: equal messages give equal states."""

    def __init__(self, config: VehicleConfig) -> None:
        self.config = config
        self._mass = config.body.mass_kg
        self._half_rho_cdA = 0.5 * config.body.air_density_kgpm3 * config.body.cdA_m2
        self._last: StepMessage | None = None
        self.speed = 0.0
        self.distance = 0.0
        self.own_step = 0
        self.restarts = 0

    def save(self) -> dict[str, Any]:
        """Everything that changes, for `load` of a model of the same configuration."""
        last = None if self._last is None else vars(self._last).copy()
        own = {"speed": self.speed, "distance": self.distance, "own_step": self.own_step, "restarts": self.restarts}
        return {"last": last, **own}

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save; KeyError or TypeError when it is none."""
        self._last = None if data["last"] is None else StepMessage(**data["last"])
        self.speed, self.distance = float(data["speed"]), float(data["distance"])
        self.own_step, self.restarts = int(data["own_step"]), int(data["restarts"])

    # --- forces -----------------------------------------------------------------------------------------------------
    def active_force(self, speed: float, distance: float) -> float:
        """F [N]: air drag and grade, + drives forward."""
        air = speed + self.config.road.head_wind_mps
        slope = self.config.road.angle(distance)
        return -self._half_rho_cdA * air * abs(air) - self._mass * GRAVITY * math.sin(slope)

    def holding_force(self, distance: float, brake: float) -> float:
        """F_hold [N] >= 0: rolling resistance and brakes."""
        slope = self.config.road.angle(distance)
        return (
            self.config.body.rolling * self._mass * GRAVITY * math.cos(slope) + brake * self.config.brakes.force_max_N
        )

    # --- motion -----------------------------------------------------------------------------------------------------
    def step(self, message: StepMessage) -> StateMessage:
        """Advance to the time of the message and return the state there. The first message sets the initial state."""
        last = self._last
        if last is None or message.t < last.t:
            # first contact, or the rig has begun again
            self.restarts += last is not None
            self.speed, self.distance = message.speed, message.s
            tractive = message.F_wheel
        elif message.t > last.t:
            duration = message.t - last.t
            tractive = (message.I_wheel - last.I_wheel) / duration
            n = max(1, math.ceil(duration / self.config.integration.step_s - 1e-9))
            for _ in range(n):
                self._advance(tractive, message.brake, duration / n)
        else:
            tractive = message.F_wheel
        self._last = message
        self.own_step += 1
        active = self.active_force(self.speed, self.distance)
        hold = self.holding_force(self.distance, message.brake)
        return StateMessage(
            step=message.step,
            own_step=self.own_step,
            t=message.t,
            speed=self.speed,
            a=self._acceleration(tractive + active, hold),
            F=active,
            F_hold=hold,
            grade=self.config.road.angle(self.distance),
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
            hold = self.holding_force(s, brake)
            force = tractive + self.active_force(v, s)
            if v == 0.0 and abs(force) <= hold:
                return  # stands: exactly zero, no creep
            direction = math.copysign(1.0, v if v != 0.0 else force)
            # midpoint rule with the direction of the friction fixed over the part
            v_mid = v + (force - direction * hold) / self._mass * 0.5 * rest
            if v_mid * direction < 0.0:
                v_mid = 0.0
            s_mid = s + 0.5 * (v + v_mid) * 0.5 * rest
            hold = self.holding_force(s_mid, brake)
            a = (tractive + self.active_force(v_mid, s_mid) - direction * hold) / self._mass
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


def main_loop(
    config: VehicleConfig,
    endpoint: str | None = None,
    lockstep: bool = False,
    stop: Stop | None = None,
    log: Callable[[str], None] = print,
    curve: CurveKeys | None = None,
) -> dict[str, Any]:
    """The vehicle process: serve the rig until it says bye, is silent for give_up_s, or told to stop."""
    stop = StopFlag(stop)
    address = endpoint or config.link.endpoint
    model = VehicleModel(config)
    if lockstep:
        return _serve_lockstep(config, model, LockstepServer(address, curve), stop, log)
    return _serve_latest(config, model, VehicleEnd(address, curve), stop, log)


def _serve_lockstep(
    config: VehicleConfig,
    model: VehicleModel,
    server: LockstepServer,
    stop: Stop,
    log: Callable[[str], None],
) -> dict[str, Any]:
    log(f"vehicle {config.name}: lockstep with the rig at {server.endpoint}")
    last_contact = time.monotonic()
    try:
        while not stop.is_set():
            if server.serve_one(model.step):
                last_contact = time.monotonic()
            elif time.monotonic() - last_contact > config.link.give_up_s:
                log(f"vehicle {config.name}: the rig has been silent for {config.link.give_up_s:g} s, leaving")
                break
    finally:
        server.close()
    return {"exchanges": server.exchanges, "restarts": model.restarts, "rejected": server.rejected}


def _serve_latest(
    config: VehicleConfig, model: VehicleModel, end: VehicleEnd, stop: Stop, log: Callable[[str], None]
) -> dict[str, Any]:
    log(f"vehicle {config.name}: latest value with the rig at {end.endpoint}")
    last_contact, answered = time.monotonic(), 0
    try:
        while not stop.is_set() and end.bye is None:
            message = end.receive(20)
            if message is not None:
                last_contact = time.monotonic()
                answered += end.send(model.step(message))
            elif time.monotonic() - last_contact > config.link.give_up_s:
                log(f"vehicle {config.name}: the rig has been silent for {config.link.give_up_s:g} s, leaving")
                break
        if stop.is_set():
            end.send(ByeMessage("the vehicle process was stopped"))
    finally:
        end.close()
    return {"answered": answered, "restarts": model.restarts, "rejected": end.rejected, **end.stamps.counters()}
