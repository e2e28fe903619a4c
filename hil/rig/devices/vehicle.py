"""[vehicle] of a rig file: the link to the model that owns the road, and bodies whose motion this model gives."""

from __future__ import annotations

from collections.abc import Sequence

from torqueloop.core.components import MovingCarrier
from torqueloop.core.components.carriers import POSE
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, DuplicateError, RangeError, UnknownNameError
from torqueloop.cython_kernels.can.codec import RxState
from torqueloop.cython_kernels.rings.ring import LatestSlot
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.link.carriers import MOTION, MOTION_UNITS, POSE_UNITS, SHORT, Carriers
from torqueloop.hil.link.messages import RIG_SLOT, VEHICLE_SLOT
from torqueloop.hil.rig.devices.device import Device, VehiclePlan
from torqueloop.hil.rig.devices.signals import DUMMY
from torqueloop.hil.rig.schema.participants import Vehicle
from torqueloop.hil.rig.schema.rig_file import RigConfig

#: units of VEHICLE_SLOT
_UNITS = ("1", "1", "s", "m/s", "m/s2", "N", "N", "rad")


@dataclass(frozen=True)
class VehicleSlots:
    """The ends of the link in memory."""

    #: vehicle -> tick
    received: LatestSlot
    #: tick -> vehicle
    sent: LatestSlot
    #: bodies whose motion the vehicle gives, and where it goes; None: there are none
    carriers: Carriers
    motion: LatestSlot | None


class VehicleLink(Device[RigConfig]):
    """Signals link.F_wheel, link.I_wheel, and vehicle.step ... with vehicle.CARRIER.w_x ... of its bodies."""

    TABLES = RigConfig

    def signals(self) -> None:
        self.table.add("link.F_wheel", "N")
        self.table.add("link.I_wheel", "Ns")
        v = self.given.vehicle
        if v is None:
            return
        self.table.add_all((f"vehicle.{n}", u) for n, u in zip(VEHICLE_SLOT, _UNITS, strict=True))
        for name in dict.fromkeys(v.carriers):
            self.table.add_all((f"vehicle.{name}.{n}", u) for n, u in zip(MOTION, MOTION_UNITS, strict=True))
            if self._has_attitude(name):
                self.table.add_all((f"vehicle.{name}.{n}", u) for n, u in zip(POSE, POSE_UNITS, strict=True))

    def _has_attitude(self, name: str) -> bool:
        return bool(getattr(self.rig.driveline.components.get(name), "attitude", False))

    def moved(self) -> list[str]:
        """Connect the inputs of carriers that [inputs] does not name to the motion that the vehicle sends; all their
        inputs."""
        found: list[str] = []
        components = self.rig.driveline.components
        for name in () if self.given.vehicle is None else self.given.vehicle.carriers:
            component = components.get(name)
            if not isinstance(component, MovingCarrier) or not component.use_z:
                moving = ", ".join(n for n, c in components.items() if isinstance(c, MovingCarrier) and c.use_z)
                raise UnknownNameError(
                    "{key}: {value} is no MovingCarrier with use_z = true", file=self.file, table="vehicle",
                    key="carriers", value=name, allowed=moving or "none: the powertrain has no such component",
                )  # fmt: skip
            if f"{name}.w_x" in found:
                raise DuplicateError("{key}: {value} is there twice", file=self.file, table="vehicle", key="carriers",
                                     value=name)  # fmt: skip
            for n in MOTION[:SHORT] + (POSE if component.attitude else ()):
                if f"{name}.{n}" not in self.given.inputs:
                    source, slot = self.table.slot(f"vehicle.{name}.{n}"), self.table.slot(f"input.{name}.{n}")
                    self.rig.in_copies.append((source, slot, 1.0, 0.0))
                found.append(f"{name}.{n}")
        return found

    def plan(self) -> None:
        v = self.given.vehicle
        if v is None:
            return
        # m*dv/dt = F_wheel + F + F_friction, all positive forward
        mass = self._mass(v)
        forces = tuple((self.read_slot(f"{v.road}.{n}", "vehicle", "road"), DUMMY, -1.0, 0.0)
                       for n in ("F", "F_friction"))  # fmt: skip
        speed = self.read_slot(f"{v.car}.v", "vehicle", "car")
        carriers = Carriers(tuple(v.carriers), frozenset(filter(self._has_attitude, v.carriers)))
        self.rig.vehicle = VehiclePlan(
            first_slot=self.table.slot(f"vehicle.{VEHICLE_SLOT[0]}"),
            ramped=VEHICLE_SLOT.index("F"),
            every=self._ticks(v),
            age_limit_s=v.age_limit_s,
            hold_s=v.hold_s,
            ramp_s=v.ramp_s,
            refuse_limit=v.refuse_limit,
            mass_kg=mass,
            momentum=((speed, DUMMY, mass, 0.0),),
            force=forces,
            impulse_slot=self.table.slot("link.I_wheel"),
            force_slot=self.table.slot("link.F_wheel"),
            speed_slot=speed,
            distance_slot=self.read_slot(f"{v.car}.s", "vehicle", "car"),
            brake_slot=self.read_slot(v.brake, "vehicle", "brake"),
            carriers=carriers,
            motion_slot=self.table.slot(f"vehicle.{v.carriers[0]}.{MOTION[0]}") if v.carriers else 0,
            more=tuple(self.table.slot(f"{name}.{n}") for name in v.carriers for n in carriers.moment_of(name)),
        )

    def _mass(self, v: Vehicle) -> float:
        """Mass of the car [kg]: its momentum gives the tractive force."""
        components = self.rig.driveline.components
        mass = getattr(components.get(v.car), "m", None)
        if mass is None:
            masses = ", ".join(n for n, c in components.items() if hasattr(c, "m"))
            raise UnknownNameError("{key} = {value}: the powertrain has no such mass", file=self.file, table="vehicle",
                                   key="car", value=v.car, allowed=masses)  # fmt: skip
        if not mass > 0.0:
            raise self._wrong("car", f"{{key}} = {{value}}: its mass is {float(mass):g} kg", "> 0 kg")
        return float(mass)

    def _ticks(self, v: Vehicle) -> int:
        """[vehicle] period_s in ticks."""
        every = max(1, round(v.period_s / self.tick_s))
        if v.period_s and abs(every * self.tick_s - v.period_s) > 1e-6 * self.tick_s:
            raise self._wrong("period_s", "{key} = {value} is no whole number of ticks",
                              f"0 or a multiple of {self.tick_s:g} s")  # fmt: skip
        if every > 1 and v.age_limit_s <= v.period_s:
            raise self._wrong("age_limit_s", "{key} = {value}: a value is older than this between two exchanges",
                              f"> period_s = {v.period_s:g}")  # fmt: skip
        if every > 1 and v.carriers:
            raise self._wrong("period_s", "{key} = {value}: moments on carriers are sent in every tick",
                              "0 together with carriers")  # fmt: skip
        return every

    def _wrong(self, key: str, problem: str, allowed: str) -> ConfigError:
        value = getattr(self.given.vehicle, key)
        return RangeError(problem, file=self.file, table="vehicle", key=key, value=value, allowed=allowed)

    def make(self, tick: Rig, received: Sequence[RxState]) -> VehicleSlots:
        plan = self.rig.vehicle
        carriers = Carriers() if plan is None else plan.carriers
        made = VehicleSlots(
            LatestSlot(len(VEHICLE_SLOT)),
            LatestSlot(len(RIG_SLOT) + carriers.n_moment),
            carriers,
            LatestSlot(carriers.n_motion) if carriers.names else None,
        )
        if plan is not None:
            tick.set_vehicle(made.received, made.sent, plan)
            if made.motion is not None:
                tick.add_pins(made.motion, plan.motion_slot)
        return made
