"""What the soft TCU learns from its shifts up under power: fill time and kiss pressure of the element that comes on.

    flare in the torque phase (turbine faster than the old gear's speed)    -> filled too short: longer
    ratio left before early_share of the torque phase                      -> filled too long: shorter
    slip longer or shorter than wanted by more than time_tolerance         -> kiss pressure up or down

One step per shift, within limits. Nothing is learnt from shifts with a timeout, with several oncoming elements (which
one was it?), while coasting, or when the pedal was pressed or released on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.ecu.gears import gear_number

if TYPE_CHECKING:
    from torqueloop.hil.ecu.tcu_tables import TcuConfig

#: [rad/s per rpm]
RPM = 0.10471975511965977


@dataclass
class Observed:
    """One shift as the speeds showed it."""

    #: largest turbine speed above that of the old gear in the torque phase [rad/s]
    flare: float = 0.0
    torque_s: float = 0.0
    inertia_s: float = 0.0
    #: the pedal was pressed or released in the shift, and another profile went on with it
    changed: bool = False

    def see(self, stage: str, dt: float, above: float) -> None:
        """A control step; above: turbine speed less that of the old gear [rad/s]."""
        if stage == "torque":
            self.torque_s += dt
            self.flare = max(self.flare, above)
        elif stage == "inertia":
            self.inertia_s += dt


@dataclass
class Learnt:
    """Corrections of the calibration, by element."""

    fill_s: dict[str, float] = field(default_factory=dict)
    kiss_bar: dict[str, float] = field(default_factory=dict)

    def save(self) -> dict[str, Any]:
        """What has been learnt."""
        return asdict(self)

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save."""
        self.fill_s, self.kiss_bar = dict(data["fill_s"]), dict(data["kiss_bar"])


def learn(config: TcuConfig, learnt: Learnt, name: str, source: str, target: str, seen: Observed) -> None:
    """Take one step from a shift that has ended without a timeout."""
    c = config.adaptation
    new = [e for e in config.gears[target].elements if e not in config.gears[source].elements]
    if c is None or name.endswith(".coast") or not 0 < gear_number(source) < gear_number(target) or len(new) != 1:
        return
    if seen.changed:
        return
    element, phases = new[0], config.phases(name)
    torque_s = sum(p.duration_s for p in phases if p.stage == "torque")
    wanted_s = sum(p.inertia_s for p in phases if p.stage == "inertia")
    if seen.flare > c.flare_rpm * RPM:
        _step(learnt.fill_s, element, c.fill_step_s, c.fill_limit_s)
    elif seen.torque_s < c.early_share * torque_s:
        _step(learnt.fill_s, element, -c.fill_step_s, c.fill_limit_s)
    if wanted_s > 0.0 and abs(seen.inertia_s / wanted_s - 1.0) > c.time_tolerance:
        slow = seen.inertia_s > wanted_s
        _step(learnt.kiss_bar, element, c.pressure_step_bar if slow else -c.pressure_step_bar, c.pressure_limit_bar)


def _step(values: dict[str, float], element: str, change: float, limit: float) -> None:
    values[element] = min(max(values.get(element, 0.0) + change, -limit), limit)
