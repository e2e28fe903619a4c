"""Bodies that carry drivelines, over the vehicle link: their motion comes with each state, moments go with each step.

state   carrier: {NAME: [w_x, w_y, w_z, z_x, z_y, z_z, (a_x, a_y, a_z)]}    rad/s, rad/s2, m/s2, along its own axes
step    carrier: {NAME: [t_x, t_y, t_z]}                                     Nm, at the end of the tick
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torqueloop.hil.link.messages import SchemaError

#: signals vehicle.NAME.* of a carrier, in this order, and their units
MOTION = ("w_x", "w_y", "w_z", "z_x", "z_y", "z_z", "a_x", "a_y", "a_z")
MOTION_UNITS = ("rad/s",) * 3 + ("rad/s2",) * 3 + ("m/s2",) * 3
#: without the acceleration of its origin, which turns no rotor
SHORT = 6
#: outputs NAME.* of a carrier that are told
MOMENT = ("t_x", "t_y", "t_z")
#: key `carrier` of a message holds at most so many
MAX_CARRIERS = 16


@dataclass(frozen=True)
class Carriers:
    """The carriers of a rig whose motion the vehicle model gives, by the names of their components."""

    names: tuple[str, ...] = ()

    @property
    def n_motion(self) -> int:
        """Numbers of all their motions."""
        return len(MOTION) * len(self.names)

    @property
    def n_moment(self) -> int:
        """Numbers of all their moments."""
        return len(MOMENT) * len(self.names)

    def told(self, moments: Sequence[float]) -> dict[str, list[float]]:
        """Key `carrier` of a step: the moments, one after the other, by name."""
        n = len(MOMENT)
        return {name: [float(x) for x in moments[n * k : n * (k + 1)]] for k, name in enumerate(self.names)}

    def motion(self, told: Mapping[str, Sequence[float]]) -> list[float]:
        """Motions of all carriers, one after the other, from key `carrier` of a state. SchemaError for one that is
        missing, that is none of the rig's or has the wrong number of numbers, and for numbers that are not finite."""
        missing, unknown = sorted(set(self.names) - told.keys()), sorted(told.keys() - set(self.names))
        if missing or unknown:
            parts = [f"no {', '.join(missing)}"] if missing else []
            parts += [f"unknown {', '.join(unknown)}"] if unknown else []
            raise SchemaError("keys", f"key carrier: {'; '.join(parts)}; allowed: {', '.join(self.names) or 'none'}")
        found: list[float] = []
        for name in self.names:
            numbers = told[name]
            if len(numbers) not in (SHORT, len(MOTION)):
                allowed = f"{SHORT} or {len(MOTION)} numbers: {', '.join(MOTION)}"
                raise SchemaError("range", f"key carrier.{name}: {len(numbers)} numbers, allowed: {allowed}")
            if not all(map(math.isfinite, numbers)):
                raise SchemaError("not_finite", f"key carrier.{name} = {list(numbers)}, allowed: finite numbers")
            found += [*map(float, numbers), *[0.0] * (len(MOTION) - len(numbers))]
        return found

    def unaccelerated(self, motion: Sequence[float]) -> list[float]:
        """The same motion with nothing that changes it: what is assumed of a vehicle that has not been heard."""
        return [x if k % len(MOTION) < 3 else 0.0 for k, x in enumerate(motion)]
