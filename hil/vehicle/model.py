"""Vehicle model beside the rig: longitudinal motion, air, grade, rolling resistance, brakes. Kind "road"; its process.

The rig's powertrain contains the mass of the car, and this model the road. It sends the rig the active force F and the
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

from collections.abc import Mapping
from typing import Any

from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.vehicle.road import GRAVITY, RoadMotion
from torqueloop.hil.common.config_file import ConfigTable, read_table
from torqueloop.hil.link.messages import StateMessage, StepMessage
from torqueloop.hil.results.links import ParticipantStats
from torqueloop.hil.vehicle.carrier import TurningBodies
from torqueloop.hil.vehicle.vehicle import VehicleSetup
from torqueloop.hil.vehicle.vehicle_tables import VehicleConfig, load_vehicle_config


class VehicleModel(RoadMotion):
    """The motion along the road (cython_kernels/vehicle/road.pyx) and, where the file has some, the bodies that carry
    drivelines. Pure and deterministic: equal messages give equal states."""

    def __init__(self, config: VehicleConfig) -> None:
        body, road = config.body, config.road
        super().__init__(
            body.mass_kg,
            0.5 * body.air_density_kgpm3 * body.cdA_m2,
            road.head_wind_mps,
            body.rolling * body.mass_kg * GRAVITY,
            config.brakes.force_max_N,
            config.integration.step_s,
            road.grade_percent,
        )
        self.config = config
        self._carriers: TurningBodies | None = (
            TurningBodies(config.carrier, config.integration.step_s) if config.carrier else None
        )
        #: the carriers in the previous message
        self._moments: dict[str, list[float]] = {}

    def asked_by_numbers(self) -> bool:
        """There are no bodies that carry drivelines, and no subclass replaces `step`."""
        return self._carriers is None and type(self).step is VehicleModel.step

    def start(self) -> None:
        """Nothing to start: it runs where it is stepped."""

    def stop(self) -> ParticipantStats:
        """Counts for the report."""
        return ParticipantStats(reported={"restarts": self.restarts})

    @property
    def _last(self) -> StepMessage | None:
        """The message before."""
        return None if self.before is None else StepMessage(*self.before, self._moments)

    def save(self) -> dict[str, Any]:
        """Everything that changes, for `load` of a model of the same configuration."""
        last = None if (message := self._last) is None else vars(message).copy()
        own = {"speed": self.speed, "distance": self.distance, "own_step": self.own_step, "restarts": self.restarts}
        bodies = {} if self._carriers is None else {"carriers": self._carriers.save()}
        return {"last": last, **own, **bodies}

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save; KeyError, TypeError, ValueError or ConfigError when it is none."""
        last = None if data["last"] is None else StepMessage(**data["last"])
        if self._carriers is not None:
            # of a carrier with attitude the force comes with the moment
            told = {} if last is None else last.carrier
            self._carriers.load(data["carriers"], {name for name, numbers in told.items() if len(numbers) > 3})
        try:
            self.before = None if last is None else (
                last.step, last.t, last.F_wheel, last.I_wheel, last.speed, last.s, last.brake
            )  # fmt: skip
            self.speed, self.distance = float(data["speed"]), float(data["distance"])
            self.own_step, self.restarts = int(data["own_step"]), int(data["restarts"])
        except OverflowError as error:
            raise ValueError(f"own_step, restarts: {error}") from None
        self._moments = {} if last is None else last.carrier

    def active_force(self, speed: float, distance: float) -> float:
        """F [N]: air drag and grade, + drives forward."""
        return self._active(speed, self.angle(distance))

    def step(self, message: StepMessage) -> StateMessage:
        """Advance to the time of the message and return the state there. The first message sets the initial state."""
        m, carrier = message, {}
        if self._carriers is not None:
            last = self._last
            if last is not None and m.t < last.t:
                # the rig has begun again
                self._carriers.restart()
                last = None
            carrier = self._carriers.step(last, m)
        numbers = self.answered(m.step, m.t, m.F_wheel, m.I_wheel, m.speed, m.s, m.brake)
        self._moments = m.carrier
        return StateMessage(*numbers, carrier)


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
            hint=f'the rig file sets that of the powertrain with [plant.set] "components.{setup.car}.m_kg" = {mass:g}',
        )  # fmt: skip
    if setup.carriers is not None and set(setup.carriers) != set(config.carrier):
        told = ", ".join(setup.carriers) or "none"
        raise ConfigError(
            f"the carriers of {{value}} are {', '.join(config.carrier) or 'none'}, those of the rig {told}",
            **where, key="start", value=str(setup.file), allowed="a table [carrier.NAME] for each of its carriers",
        )  # fmt: skip
    return VehicleModel(config)
