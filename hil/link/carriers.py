"""Bodies that carry drivelines, over the vehicle link: their motion comes with each state, moments go with each step.

state   carrier: {NAME: [w_x, w_y, w_z, z_x, z_y, z_z, (a_x, a_y, a_z)]}    rad/s, rad/s2, m/s2, along its own axes
step    carrier: {NAME: [t_x, t_y, t_z]}                                     Nm, at the end of the tick

Of one with `attitude = true` the state says sixteen numbers, the nine and its pose, q0 .. q3 (to the axes of the world,
scalar first, length 1) and x, y, z [m], and the step six, with f_x, f_y, f_z [N].
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from torqueloop.core.components.carriers import POSE
from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.link.messages import SchemaError

#: signals vehicle.NAME.* of a carrier, in this order, and their units
MOTION = ("w_x", "w_y", "w_z", "z_x", "z_y", "z_z", "a_x", "a_y", "a_z")
MOTION_UNITS = ("rad/s",) * 3 + ("rad/s2",) * 3 + ("m/s2",) * 3
POSE_UNITS = ("1",) * 4 + ("m",) * 3
#: how far the length of a received quaternion may be from 1
UNIT = 1e-3
#: without the acceleration of its origin, which turns no rotor
SHORT = 6
#: outputs NAME.* of a carrier that are sent
MOMENT = ("t_x", "t_y", "t_z")
FORCE = ("f_x", "f_y", "f_z")
#: key `carrier` of a message holds at most so many
MAX_CARRIERS = 16


@dataclass(frozen=True)
class Carriers:
    """The carriers of a rig whose motion the vehicle model gives, by the names of their components."""

    names: tuple[str, ...] = ()
    #: those whose pose is an input, too
    posed: frozenset[str] = frozenset()

    def motion_of(self, name: str) -> tuple[str, ...]:
        """Names of the numbers of its motion."""
        return MOTION + POSE if name in self.posed else MOTION

    def moment_of(self, name: str) -> tuple[str, ...]:
        """Names of the moments and forces of the driveline on it that are sent."""
        return MOMENT + FORCE if name in self.posed else MOMENT

    @property
    def n_motion(self) -> int:
        """Numbers of all their motions."""
        return sum(len(self.motion_of(name)) for name in self.names)

    @property
    def n_moment(self) -> int:
        """Numbers of all their moments."""
        return sum(len(self.moment_of(name)) for name in self.names)

    def moments(self, moments: Sequence[float]) -> dict[str, list[float]]:
        """Key `carrier` of a step: the moments, one after the other, by name."""
        numbers = iter(moments)
        return {name: [float(next(numbers)) for _ in self.moment_of(name)] for name in self.names}

    def motion(self, carrier: Mapping[str, Sequence[float]]) -> list[float]:
        """Motions of all carriers, one after the other, from key `carrier` of a state. SchemaError for one that is
        missing, that is none of the rig's or has the wrong number of numbers, for numbers that are not finite, and for
        a quaternion whose length is not 1."""
        missing, unknown = sorted(set(self.names) - carrier.keys()), sorted(carrier.keys() - set(self.names))
        if missing or unknown:
            parts = [f"no {', '.join(missing)}"] if missing else []
            parts += [f"unknown {', '.join(unknown)}"] if unknown else []
            raise SchemaError("keys", f"key carrier: {'; '.join(parts)}; allowed: {', '.join(self.names) or 'none'}")
        found: list[float] = []
        for name in self.names:
            numbers = carrier[name]
            names = self.motion_of(name)
            sizes = (len(names),) if name in self.posed else (SHORT, len(names))
            if len(numbers) not in sizes:
                allowed = f"{' or '.join(map(str, sizes))} numbers: {', '.join(names)}"
                raise SchemaError("range", f"key carrier.{name}: {len(numbers)} numbers, allowed: {allowed}")
            if not all(map(math.isfinite, numbers)):
                raise SchemaError("not_finite", f"key carrier.{name} = {list(numbers)}, allowed: finite numbers")
            if name in self.posed and abs(math.hypot(*numbers[len(MOTION) : len(MOTION) + 4]) - 1.0) > UNIT:
                quaternion = list(numbers[len(MOTION) : len(MOTION) + 4])
                raise SchemaError("range", f"key carrier.{name}: quaternion {quaternion}, allowed: length 1")
            found += [*map(float, numbers), *[0.0] * (len(names) - len(numbers))]
        return found

    def unaccelerated(self, motion: Sequence[float]) -> list[float]:
        """The motion with accelerations of 0: it is assumed while nothing is received from the vehicle."""
        kept = [n in MOTION[:3] or n in POSE for name in self.names for n in self.motion_of(name)]
        return [x if keep else 0.0 for keep, x in zip(kept, motion, strict=True)]
