"""Real clock: sensors and actuators of control units, through memory that their processes share with the rig."""

from __future__ import annotations

from dataclasses import replace

from torqueloop.hil.ecu.control_unit import EcuSetup
from torqueloop.hil.rig.devices.device import UnitPlan
from torqueloop.hil.rig.run.live_run import LOOK_S, LiveRun, StartError


def share_pins(run: LiveRun, unit: UnitPlan, setup: EcuSetup) -> tuple[EcuSetup, tuple[int, ...]]:
    """The set-up with the pins of a unit, and the descriptors that its process inherits. Before the loop is started."""
    pins, rig = run.parts.pins.get(unit.name), run.parts.rig
    if pins is None:
        return setup, ()
    if pins.fd is None:
        raise StartError(f"control unit {unit.name} has sensors or actuators, and this system has no memory to share "
                         f"with its process (memfd_create); allowed: --clock virtual; [ecu.{unit.name}] of "
                         f"{run.plan.path}")  # fmt: skip
    if pins.sensors is not None:
        slots = [slot for _, slot, _ in unit.sensors]
        # the process begins before the first tick
        pins.sensors.write(rig.values(slots))
        rig.add_sensed(pins.sensors, slots)
    return replace(setup, pins=pins.fd), (pins.fd,)


class SilentPins:
    """Sees a unit that lives but has given no values at its actuators for `pins_timeout_s`. It counts looks, so a pause
    of the whole computer is one look."""

    def __init__(self, run: LiveRun) -> None:
        self._run = run
        self._units = [unit for unit in run.plan.started_units() if unit.actuators and unit.name in run.participants]
        self._seen = {unit.name: (-1, 0) for unit in self._units}

    def first(self) -> list[str]:
        """Units that have not given any values yet."""
        return [unit.name for unit in self._units if self._version(unit) == 0]

    def look(self) -> None:
        for unit in self._units:
            version, (last, looks) = self._version(unit), self._seen[unit.name]
            looks = looks + 1 if version == last else 0
            self._seen[unit.name] = (version, looks)
            if looks * LOOK_S > unit.config.pins_timeout_s:
                text = f"no new values at its actuators for more than {unit.config.pins_timeout_s:g} s"
                self._run.fail("thread", f"control unit {unit.name}: {text}")

    def _version(self, unit: UnitPlan) -> int:
        slot = self._run.parts.pins[unit.name].actuators
        return slot.version if slot is not None else 0
