"""The body of the car as a carrier of drivelines: it turns about its springs by what they do to it, and yaws as given.

    I dw/dt = M - w x (I w) - c theta - d w,    dtheta/dt = w         along the axes of the body, small angles theta

M is the moment of the driveline on the body, which the rig sends at the end of each tick; it is linear between two
messages. I includes the rotors of the driveline at rest on the body. A given yaw rate replaces the equation about z.
Method: classic Runge-Kutta of order 4. At t it sends w and dw/dt, and with attitude = true also the quaternion,
dq/dt = 1/2 q (0, w).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.link.messages import StepMessage
from torqueloop.hil.vehicle.vehicle_tables import CarrierBody

Vector = tuple[float, float, float]
State = tuple[float, ...]
Z = 2


def _rate(points: Sequence[tuple[float, float]], t: float) -> tuple[float, float]:
    """Value and slope at t, linear between the points, constant outside."""
    if t < points[0][0]:
        return points[0][1], 0.0
    for (t0, y0), (t1, y1) in pairwise(points):
        if t < t1:
            slope = (y1 - y0) / (t1 - t0)
            return y0 + slope * (t - t0), slope
    return points[-1][1], 0.0


@dataclass
class TurningBody:
    """One body; equal moments give equal motions."""

    config: CarrierBody
    theta: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    w: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    #: quaternion from its axes to those of the world, scalar first
    q: list[float] = field(default_factory=lambda: [1.0, 0.0, 0.0, 0.0])
    #: acceleration at the last message
    z: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])

    def __post_init__(self) -> None:
        if self.config.yaw_radps:
            self.w[Z], self.z[Z] = _rate(self.config.yaw_radps, 0.0)

    def acceleration(self, t: float, theta: Sequence[float], w: Sequence[float], moment: Sequence[float]) -> Vector:
        """dw/dt [rad/s2]."""
        c = self.config
        h = [i * x for i, x in zip(c.I_kgm2, w, strict=True)]
        cross = (w[1] * h[2] - w[2] * h[1], w[2] * h[0] - w[0] * h[2], w[0] * h[1] - w[1] * h[0])
        x, y, z = ((m - g - k * a - d * v) / i for i, m, g, k, a, d, v in zip(
            c.I_kgm2, moment, cross, c.c_Nm_per_rad, theta, c.d_Nms_per_rad, w, strict=True))  # fmt: skip
        return x, y, _rate(c.yaw_radps, t)[1] if c.yaw_radps else z

    def advance(self, t: float, duration: float, n: int, first: Sequence[float], last: Sequence[float]) -> None:
        """From t on, in n steps; the moment goes from `first` to `last` meanwhile."""
        h = duration / n

        def slope(at: float, y: State) -> State:
            share = (at - t) / duration
            moment = [a + share * (b - a) for a, b in zip(first, last, strict=True)]
            # a given yaw rate as it is: integrated, it would be late behind each of its corners
            w = (*y[3:5], _rate(self.config.yaw_radps, at)[0]) if self.config.yaw_radps else y[3:6]
            return (*w, *self.acceleration(at, y[:3], w, moment), *_turning(y[6:], w))

        y: State = (*self.theta, *self.w, *self.q)
        for k in range(n):
            y = _step(slope, t + k * h, y, h)
        self.theta, self.w = list(y[:3]), list(y[3:6])
        length = math.hypot(*y[6:])
        self.q = [x / length for x in y[6:]]
        if self.config.yaw_radps:
            self.w[Z] = _rate(self.config.yaw_radps, t + duration)[0]

    def motion(self, posed: bool) -> list[float]:
        """The numbers of it that the rig receives; posed: with attitude and position."""
        pose = [0.0, 0.0, 0.0, *self.q, *self.config.at_m] if posed else []
        return [*self.w, *self.z, *pose]


def _turning(q: Sequence[float], w: Sequence[float]) -> State:
    """dq/dt = 1/2 q (0, w)."""
    a, b, c, d = q
    x, y, z = (0.5 * r for r in w)
    return (-b * x - c * y - d * z, a * x + c * z - d * y, a * y + d * x - b * z, a * z + b * y - c * x)


def _step(slope: Callable[[float, State], State], t: float, y: State, h: float) -> State:
    def moved(k: State, by: float) -> State:
        return tuple(a + by * b for a, b in zip(y, k, strict=True))

    k1 = slope(t, y)
    k2 = slope(t + 0.5 * h, moved(k1, 0.5 * h))
    k3 = slope(t + 0.5 * h, moved(k2, 0.5 * h))
    k4 = slope(t + h, moved(k3, h))
    return tuple(a + h / 6.0 * (p + 2.0 * q + 2.0 * r + s) for a, p, q, r, s in zip(y, k1, k2, k3, k4, strict=True))


class TurningBodies:
    """All bodies of a vehicle file."""

    def __init__(self, configs: Mapping[str, CarrierBody], step_s: float) -> None:
        self._step_s = step_s
        self._bodies = {name: TurningBody(config) for name, config in configs.items()}

    def check(self, told: Mapping[str, Sequence[float]]) -> None:
        """ConfigError unless the rig sends the moments on these bodies and no others."""
        if set(told) != set(self._bodies):
            raise ConfigError(
                f"the rig's carriers are {', '.join(sorted(told)) or 'none'}", table="carrier",
                allowed=f"[vehicle] carriers = {sorted(self._bodies)} in the rig file",
            )  # fmt: skip

    def step(self, last: StepMessage | None, message: StepMessage) -> dict[str, list[float]]:
        """Advance all to the time of the message; the numbers that the rig receives."""
        self.check(message.carrier)
        for name, body in self._bodies.items():
            # of a carrier with attitude the force comes with the moment about its origin, which it turns about
            moment = message.carrier[name][:3]
            if last is not None and message.t > last.t:
                duration = message.t - last.t
                n = max(1, round(duration / self._step_s + 0.499))
                body.advance(last.t, duration, n, last.carrier.get(name, moment)[:3], moment)
            body.z = list(body.acceleration(message.t, body.theta, body.w, moment))
        return {name: body.motion(len(message.carrier[name]) > 3) for name, body in self._bodies.items()}

    def restart(self) -> None:
        """As at the beginning: the rig has begun again."""
        self._bodies = {name: TurningBody(body.config) for name, body in self._bodies.items()}

    def save(self) -> dict[str, Any]:
        """Everything that changes."""
        return {name: [*body.theta, *body.w, *body.z, *body.q] for name, body in self._bodies.items()}

    def load(self, data: Mapping[str, Any], posed: Collection[str] = ()) -> None:
        """Inverse of save. posed: bodies whose attitude the rig asks for; of others it may be missing (checkpoints from
        before there were attitudes). ConfigError where a body lacks its state; then nothing has changed."""
        states = {name: _state(name, data, name in posed) for name in self._bodies}
        for name, values in states.items():
            body = self._bodies[name]
            body.theta, body.w, body.z, body.q = values[:3], values[3:6], values[6:9], values[9:]


#: numbers of a body's state without its attitude, and of the attitude
MOTION, ATTITUDE = 9, 4


def _state(name: str, data: Mapping[str, Any], posed: bool) -> list[float]:
    """The numbers of one body."""
    remedy = "take a new checkpoint with this rig"
    if name not in data:
        raise ConfigError(f"the saved state of the vehicle has no carrier {name!r}",
                          allowed=", ".join(sorted(map(str, data))) or "none", hint=remedy)  # fmt: skip
    values = [float(x) for x in data[name]]
    if len(values) == MOTION and not posed:
        return [*values, 1.0, 0.0, 0.0, 0.0]
    if len(values) == MOTION:
        raise ConfigError(f"the saved state of carrier {name!r} is from before there were attitudes: its quaternion is "
                          "missing, and the rig asks for its attitude", hint=remedy)  # fmt: skip
    if len(values) != MOTION + ATTITUDE:
        raise ConfigError(f"the saved state of carrier {name!r} has {len(values)} numbers",
                          allowed=f"{MOTION + ATTITUDE}: angles, speeds, accelerations, quaternion",
                          hint=remedy)  # fmt: skip
    return values
