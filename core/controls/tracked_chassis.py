"""Chassis steered by the difference of its two driven wheels (tracked vehicle on wheels): Maegi, Jacobson, Resev 1998.

Three degrees of freedom in the plane, in axes that move with it (x forward, y and yaw to the right; tables 2, 3):

    m*(dVx/dt - Vy*r) = FxL + FxR - Resist          Resist = RollCoeff*m*g + AirCoeff*Vx*|Vx|
    m*(dVy/dt + Vx*r) = Fyf + FyL + FyR             Fyf = 2*Calphaf*arctan((-r*L/2 - Vy)/Vx): the fixed soft front wheel
    J*dr/dt = (Fyf - FyL - FyR)*L/2 + (FxL - FxR)*B/2
    J_wheel*dw/dt = T - Fx*R                        for each rear wheel; T: torque of its shaft
    slip_x = (R*w - Vx')/|Vx'|, slip_y = -Vy'/|Vx'|, F = muPeak*N*(2/pi)*arctan(k*|slip|) along the slip

Vx', Vy': the chassis' velocity at the wheel. k: see `Tyre`. The paper divides by |Vx'|, which ends at a wheel
that stands still; here |Vx'| is held above `standstill`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.controls.base import positive
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import RangeError

Array = NDArray[np.float64]

GRAVITY = 9.81
#: L-stable for this gamma; of second order with any Jacobian (Verwer, Spee, Blom, Hundsdorfer 1999)
_GAMMA = 1.0 + math.sqrt(0.5)


@dataclass(frozen=True)
class Tyre:
    """Friction force over slip, the same in all directions of the plane (table 3)."""

    #: largest coefficient of friction
    mue_peak: float = 1.0
    #: slip at which 90 % of it is reached
    slip_90: float = 0.1
    #: "meant": k = tan(0.9*pi/2)/slip_90, which is what slip_90 says; "printed": k = slip_90*tan(0.9*pi/2), as the
    #: listing of the paper has it: a tyre a hundred times as soft
    form: Literal["meant", "printed"] = "meant"

    def __post_init__(self) -> None:
        positive(self, "mue_peak", "slip_90")
        if self.form not in ("meant", "printed"):
            raise RangeError("Tyre: {key} = {value} is out of range", key="form", value=self.form,
                             allowed='"meant", "printed"')  # fmt: skip

    @property
    def k(self) -> float:
        """Factor of the slip."""
        ninety = math.tan(0.45 * math.pi)
        return ninety / self.slip_90 if self.form == "meant" else ninety * self.slip_90


@dataclass(frozen=True)
class TrackedVehicle:
    """Numbers of the chassis (tables 2 and 3), SI."""

    m: float = 1000.0
    #: about the vertical axis
    J: float = 1000.0
    track: float = 2.0
    wheel_base: float = 3.0
    #: share of the weight on the rear wheels
    share_rear: float = 0.75
    roll_coefficient: float = 0.02
    #: N/(m/s)^2
    air_coefficient: float = 0.5
    #: of the front wheel, N/rad (two of them in the paper's sum)
    c_alpha_front: float = 1e3
    wheel_radius: float = 0.3
    #: of each rear wheel
    J_wheel: float = 0.5
    #: m/s at the start
    vx_start: float = 0.01
    #: the speed at a wheel counts as no less than this, m/s
    standstill: float = 0.005
    tyre: Tyre = field(default_factory=Tyre)

    def __post_init__(self) -> None:
        positive(self, "m", "J", "track", "wheel_base", "share_rear", "c_alpha_front", "wheel_radius", "J_wheel",
                 "vx_start", "standstill")  # fmt: skip


class TrackedChassis:
    """A controller (core/controls/loop.py) that is a vehicle: shaft torques in, speeds of the wheels out.

    `step(t, ...)` integrates from t on over one period and commands the speeds at the period's end: join them by lines
    and driveline and chassis meet at each period's end, with an error of second order in the period. The torques are
    means over the period that has passed (`Wired.means`); their means over the coming one are continued from the last
    two, so that what the chassis has got is the impulse of the shafts but for the change of the mean in one period.
    Rosenbrock method of second order, L-stable: for tyres of any stiffness.
    """

    reads: ClassVar[tuple[str, ...]] = ("torque_L", "torque_R")
    writes: ClassVar[tuple[str, ...]] = ("w_L", "w_R", "vx", "vy", "yaw_rate", "heading", "x", "y", "loss_tyres")

    def __init__(self, vehicle: TrackedVehicle, period: float) -> None:
        if not period > 0.0:
            raise RangeError("TrackedChassis: {key} = {value} is out of range", key="period", value=period,
                             allowed="> 0")  # fmt: skip
        self.vehicle: TrackedVehicle = vehicle
        self.period: float = period
        w0 = vehicle.vx_start / vehicle.wheel_radius
        #: w_L, w_R, Vx, Vy, yaw rate, heading, x, y, work lost in the tyres
        self.state: Array = np.array([w0, w0, vehicle.vx_start, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        self._last: tuple[float, float] | None = None

    def step(self, t: float, measured: Mapping[str, float]) -> dict[str, float]:
        """State at t + period from the mean torques of the shafts over the period before t [Nm]."""
        now = measured["torque_L"], measured["torque_R"]
        last = now if self._last is None else self._last
        self._last = now
        # means of three periods in a row on a straight line
        self._advance(2.0 * now[0] - last[0], 2.0 * now[1] - last[1])
        return dict(zip(self.writes, self.state.tolist(), strict=True))

    def _advance(self, torque_L: float, torque_R: float) -> None:
        h, y = self.period, self.state
        f0 = self.slopes(y, torque_L, torque_R)
        # heading, position and energy sums do not act back
        J = np.zeros((9, 9))
        for k in range(6):
            step = 1e-7 * max(abs(y[k]), 1e-3)
            moved = y.copy()
            moved[k] += step
            J[:, k] = (self.slopes(moved, torque_L, torque_R) - f0) / step
        A = np.eye(9) - (_GAMMA * h) * J
        k1 = np.linalg.solve(A, f0)
        k2 = np.linalg.solve(A, self.slopes(y + h * k1, torque_L, torque_R) - 2.0 * k1)
        self.state = y + h * (1.5 * k1 + 0.5 * k2)

    def slopes(self, y: Array, torque_L: float, torque_R: float) -> Array:
        """Time derivative of the state."""
        v = self.vehicle
        w_L, w_R, vx, vy, r, heading = y[:6].tolist()
        rear, half = 0.5 * v.wheel_base, 0.5 * v.track
        load = v.share_rear * v.m * GRAVITY / 2.0
        vy_rear = vy - r * rear
        fx_L, fy_L, lost_L = self._tyre(w_L, vx + r * half, vy_rear, load)
        fx_R, fy_R, lost_R = self._tyre(w_R, vx - r * half, vy_rear, load)
        front = 2.0 * v.c_alpha_front * math.atan((-r * rear - vy) / vx)
        resist = v.roll_coefficient * v.m * GRAVITY + v.air_coefficient * vx * abs(vx)
        fy = fy_L + fy_R
        c, s = math.cos(heading), math.sin(heading)
        return np.array([
            (torque_L - fx_L * v.wheel_radius) / v.J_wheel,
            (torque_R - fx_R * v.wheel_radius) / v.J_wheel,
            (fx_L + fx_R - resist) / v.m + vy * r,
            (front + fy) / v.m - vx * r,
            ((front - fy) * rear + (fx_L - fx_R) * half) / v.J,
            r,
            vx * c - vy * s,
            vx * s + vy * c,
            lost_L + lost_R,
        ])  # fmt: skip

    def _tyre(self, w: float, vx: float, vy: float, load: float) -> tuple[float, float, float]:
        """Forces on the chassis forward and to the right, power lost in the contact."""
        v = self.vehicle
        over = 1.0 / max(abs(vx), v.standstill)
        across, along = -vy, v.wheel_radius * w - vx
        slip = math.hypot(along, across) * over
        k = v.tyre.k
        # F/slip; at slip 0 its limit
        per_slip = math.atan(k * slip) / slip if slip > 1e-12 else k
        factor = v.tyre.mue_peak * load * (2.0 / math.pi) * per_slip * over
        return factor * along, factor * across, factor * (along * along + across * across)

    def kinetic_energy(self) -> float:
        """Of chassis and wheels about their axes, J."""
        v = self.vehicle
        w_L, w_R, vx, vy, r = self.state[:5].tolist()
        turning = v.J_wheel * (w_L * w_L + w_R * w_R) + v.J * r * r
        return 0.5 * float(turning + v.m * (vx * vx + vy * vy))
