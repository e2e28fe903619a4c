"""Equations of our own reference cases, by hand for independent.py; make_cases.py writes the cases they belong to.

They cover what the published cases leave out: damping that jumps at contact, speed-dependent mesh losses with reversal,
a worm gear that holds its load, stops and brakes of sliding parts, driven motions, heat, a free wheel, signal blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from independent import Array, At, Contact, Friction, Loss, System
from models import phi, phi_rel, ramp, sine, step, w, w_rel


def own_backlash() -> System:
    """Oscillator on ElastoBacklash2 (torque jumps at contact); driven pair joined by ElastoBacklash."""
    drive = sine(20.0, 3.0)

    def force(t: float, q: Array, u: Array, x: Array) -> Array:
        return np.array([0.0, drive(t), -0.5 * u[2]])

    elements = [
        Contact([1, 0, 0], 2e4, 50.0, -0.25, 0.25, kind=1),
        Contact([0, -1, 1], 5e3, 5.0, -0.01, 0.01),
    ]
    return System(
        np.diag([5.0, 0.5, 1.0]), force, [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], elements,
        results={
            "elastoBacklash2.phi_rel": phi(0), "elastoBacklash2.w_rel": w(0), "inertia2.phi": phi(1),
            "inertia2.w": w(1), "inertia3.w": w(2), "elastoBacklash.phi_rel": phi_rel(1, 2),
            "elastoBacklash.tau": lambda at: -float(at.F[1]),
        },
    )  # fmt: skip


LOSSES = [[0.0, 0.9, 0.8, 0.5, 0.6], [5.0, 0.85, 0.75, 1.0, 1.2], [20.0, 0.8, 0.7, 2.0, 2.2]]


def own_lossy_gear() -> System:
    """Coordinate: input shaft, three times as fast as the output; drive and load reverse, with stuck phases."""
    drive, load = sine(12.0, 1.5), ramp(30.0, 2.0, 0.0, -15.0)
    gear = Loss([1.0], lambda t, q, u, x: drive(t), [-0.4], LOSSES)
    return System(
        np.array([[0.4 + 2.0 / 9.0]]), lambda t, q, u, x: np.array([drive(t) + load(t) / 3.0]), [0.0], [0.0], [gear],
        results={"inertia1.phi": phi(0), "inertia1.w": w(0), "inertia2.w": w(0, 1.0 / 3.0)},
        mode_results={"gear.mode": 0},
    )  # fmt: skip


#: drive of the worm gear over time
WORM = [[0.0, 0.0], [0.2, 0.0], [0.3, 9.0], [0.8, 9.0], [0.9, 0.0], [1.4, 0.0], [1.5, -6.0], [1.9, -6.0], [2.0, 0.0],
        [2.5, 0.0]]  # fmt: skip


def table(rows: list[list[float]]) -> Callable[[float], float]:
    """Lines through the rows, continued at the ends."""
    x, y = np.array(rows).T

    def value(t: float) -> float:
        k = int(np.clip(np.searchsorted(x, t, side="right") - 1, 0, len(x) - 2))
        return float(y[k] + (y[k + 1] - y[k]) * (t - x[k]) / (x[k + 1] - x[k]))

    return value


def own_self_locking() -> System:
    """Worm gear 30:1 with a hanging load of 60 Nm; its friction at standstill holds the load without drive."""
    drive = table(WORM)
    gear = Loss([1.0], lambda t, q, u, x: drive(t), [-0.01], [[0.0, 0.45, 0.4, 2.5, 2.5]])
    return System(
        np.array([[0.01 + 5.0 / 900.0]]), lambda t, q, u, x: np.array([drive(t) - 60.0 / 30.0]), [0.0], [0.0], [gear],
        breaks=[row[0] for row in WORM],
        results={"worm.phi": phi(0), "worm.w": w(0), "load.phi": phi(0, 1.0 / 30.0)}, mode_results={"gear.mode": 0},
    )  # fmt: skip


def own_stops_and_brake() -> System:
    """Two sliding masses with a spring between them, stops on both sides; brake on the first, friction on the other."""
    drive = sine(60.0, 0.8)

    def pressed(t: float) -> float:
        return 1.0 if t >= 0.5 and (t - 0.5) % 0.9 < 0.9 * 0.3 else 0.0

    edges = [0.5 + 0.9 * k + e for k in range(4) for e in (0.0, 0.9 * 0.3)]

    def force(t: float, q: Array, u: Array, x: Array) -> Array:
        # s_rel of the spring: left end of mass2 minus right end of mass1
        spring = 200.0 * ((q[1] - 0.05) - (q[0] + 0.1) - 0.3) + 4.0 * (u[1] - u[0])
        return np.array([drive(t) + spring, -spring])

    def sliding(t: float, v: float) -> float:
        return 30.0 * pressed(t) * (0.5 - 0.1 * v)

    elements = [
        # left stop: mass1.flange_a - wall at -0.5, touching below 0.1
        Contact([1, 0], 5e3, 60.0, 0.1, math.inf, shift=-0.1 + 0.5),
        # right stop: end of the rod at 0.95 - mass2.flange_b, touching below 0.02
        Contact([0, -1], 5e3, 60.0, 0.02, math.inf, shift=0.95 - 0.05),
        Friction([1, 0], sliding, lambda t: 1.2 * 15.0 * pressed(t)),
        Friction([0, 1], lambda t, v: 1.0 + v, lambda t: 1.0),
    ]
    return System(
        np.diag([2.0, 1.0]), force, [0.0, 0.45], [0.0, 0.0], elements, breaks=edges,
        results={
            "mass1.s": phi(0), "mass1.v": w(0), "mass2.s": phi(1), "mass2.v": w(1),
            "stopRight.f": lambda at: -float(at.F[1]),
        },
        mode_results={"brake.mode": 2, "supportFriction.mode": 3},
    )  # fmt: skip


def movement(distance: float, speed: float, acceleration: float, start: float) -> list[tuple[float, float]]:
    """Times and accelerations of the fastest movement (it reaches full speed)."""
    ramp_time, full = speed / acceleration, distance / speed
    assert full > ramp_time
    return [
        (start, acceleration),
        (start + ramp_time, 0.0),
        (start + full, -acceleration),
        (start + full + ramp_time, 0.0),
    ]


PTP = movement(3.0, 4.0, 20.0, 0.1)


def own_driven() -> System:
    """Exact speed and position drive two shafts, filtered ones two more, a movement of given acceleration the last."""
    wave, rise, turn = sine(2.0, 1.5), ramp(5.0, 0.6, 0.2), sine(0.2, 3.0)
    jump, stairs = step(4.0, 0.25), ramp(0.5, 0.1, 0.3)
    wc, af, bf = 2.0 * math.pi * 20.0, 1.3617, 0.6180

    def speed_angle(t: float) -> float:
        """Integral of wave + rise."""
        area = 0.0 if t < 0.2 else 5.0 / 1.2 * min(t - 0.2, 0.6) ** 2 + 5.0 * max(t - 0.8, 0.0)
        return 2.0 * (1.0 - math.cos(3.0 * math.pi * t)) / (3.0 * math.pi) + area

    def acceleration(t: float) -> float:
        return next((a for at, a in reversed(PTP) if t >= at), 0.0)

    # coordinates: inertia1 ... inertia4; extra states: phi, w of the filtered position, w of the filtered speed and its
    # angle, w of the movement
    def force(t: float, q: Array, u: Array, x: Array) -> Array:
        shaft1 = 500.0 * (q[0] - speed_angle(t)) + 3.0 * (u[0] - wave(t) - rise(t))
        shaft2 = 800.0 * (q[1] - turn(t)) + 1.0 * u[1]
        shaft3 = 300.0 * (q[2] - x[0]) + 2.0 * (u[2] - x[1])
        return np.array([-shaft1, -shaft2, -shaft3, -0.7 * (u[3] - x[4])])

    def rates(at: At) -> list[float]:
        x = at.x
        follow = ((stairs(at.t) - x[0]) * wc - af * x[1]) * wc / bf
        return [x[1], follow, 2.0 * math.pi * 10.0 * (jump(at.t) - x[2]), x[2], acceleration(at.t)]

    def bearing(t: float, speed: float) -> float:
        return 0.3 + 0.05 * speed

    return System(
        np.diag([0.2, 0.3, 0.1, 0.5]), force, [0.0] * 4, [0.0] * 4,
        [Friction([1, 0, 0, 0], bearing, lambda t: 0.33)], x0=[0.0] * 5, rates=rates,
        breaks=[0.2, 0.8, 0.25, 0.3, 0.4, *(t for t, _ in PTP)],
        results={
            "inertia1.phi": phi(0), "inertia1.w": w(0), "inertia2.phi": phi(1), "inertia2.w": w(1),
            "inertia3.phi": phi(2), "inertia3.w": w(2), "inertia4.w": w(3), "position2.phi": lambda at: float(at.x[0]),
            "speed2.phi": lambda at: float(at.x[3]), "inertia5.w": lambda at: float(at.x[2]),
            "accelerate.w": lambda at: float(at.x[4]), "speed.w": lambda at: wave(at.t) + rise(at.t),
            "position.w": lambda at: 1.2 * math.pi * math.cos(6.0 * math.pi * at.t),
        },
        mode_results={"bearingFriction.mode": 0},
    )  # fmt: skip


def own_heat_losses() -> System:
    """Driven chain with losses of every kind, which warm a thermal mass that is cooled by convection."""
    drive = sine(20.0, 5.0)

    def torques(q: Array, u: Array) -> tuple[float, float]:
        return 10.0 * u[0], 1e4 * (q[1] - q[0]) + 20.0 * (u[1] - u[0])

    def force(t: float, q: Array, u: Array, x: Array) -> Array:
        damper, shaft = torques(q, u)
        return np.array([drive(t) - damper + shaft, -shaft, 0.0])

    def contact_loss(at: At) -> float:
        x, tau = float(at.q[2] - at.q[1]), -float(at.F[0])
        spring = 1e5 * (max(x - 0.0005, 0.0) + min(x + 0.0005, 0.0))
        return (tau - spring) * float(at.u[2] - at.u[1])

    def damper_loss(at: At) -> float:
        return 10.0 * float(at.u[0]) ** 2

    def rates(at: At) -> list[float]:
        bearing = -float(at.F[1] * at.u[2])
        shaft = 20.0 * float(at.u[1] - at.u[0]) ** 2
        heat = damper_loss(at) + shaft + contact_loss(at) + bearing
        return [(heat - 2.0 * (at.x[0] - 298.15)) / 5.0]

    elements = [Contact([0, -1, 1], 1e5, 100.0, -0.0005, 0.0005), Friction([0, 0, 1], lambda t, v: 1.0, lambda t: 1.0)]
    return System(
        2.0 * np.eye(3), force, [0.0] * 3, [0.0] * 3, elements, x0=[300.0], rates=rates,
        results={
            "inertia1.phi": phi(0), "inertia1.w": w(0), "inertia2.w": w(1), "inertia3.phi": phi(2), "inertia3.w": w(2),
            "heatCapacitor.T": lambda at: float(at.x[0]), "damper.lossPower": damper_loss,
        },
        mode_results={"bearingFriction.mode": 1},
    )  # fmt: skip


def own_free_wheel() -> System:
    """A free wheel that is never pressed, with a constant load (as OneWayClutchDisengaged of the library)."""
    drive = sine(10.0, 2.0, 0.0, 0.3)
    return System(
        np.eye(2), lambda t, q, u, x: np.array([drive(t), -0.3]), [0.0, 0.0], [-0.5, 0.0],
        [Friction([-1, 1], lambda t, w: 0.0, lambda t: 1e-4 * 0.5 * 3.0, one_way=True)],
        results={
            "inertiaIn.phi": phi(0), "inertiaIn.w": w(0), "inertiaOut.w": w(1), "oneWayClutch.phi_rel": phi_rel(0, 1),
            "oneWayClutch.w_rel": w_rel(0, 1),
        },
    )  # fmt: skip


PRESSURE = [[0.0, 0.2], [0.3, 1.0], [0.3, 0.4], [0.8, 0.9]]


def own_blocks() -> System:
    """Two shafts with a clutch, driven by what many signal blocks make."""

    def trapezoid(t: float) -> float:
        x = (t - 0.1) % 0.5
        if t < 0.1:
            return 0.0
        return 8.0 * (x / 0.1 if x < 0.1 else 1.0 if x < 0.25 else max(0.0, 1.0 - (x - 0.25) / 0.05))

    def decaying(t: float) -> float:
        return 6.0 * math.exp(-1.5 * t) * math.sin(2.0 * math.pi * 2.0 * t)

    def saw(t: float) -> float:
        return 3.0 * (t / 0.4 - math.floor(t / 0.4))

    def exponentials(t: float) -> float:
        top = 2.0 * (1.0 - math.exp(-0.5 / 0.15))
        return 2.0 * (1.0 - math.exp(-t / 0.15)) if t < 0.5 else top * math.exp(-(t - 0.5) / 0.2)

    def total(t: float) -> float:
        return trapezoid(t) - 2.0 * decaying(t) + saw(t) * exponentials(t)

    def second(t: float) -> float:
        """Limited magnitude of a cosine, plus the integral of a sine."""
        wave = abs(5.0 * math.cos(2.0 * math.pi * 1.3 * t))
        return min(wave, 3.5) - 0.4 * (1.0 - math.cos(2.0 * math.pi * 1.1 * t)) / (2.0 * math.pi * 1.1) * 5.0

    def pressed(t: float) -> float:
        rows = np.array(PRESSURE)
        if t < 0.3:
            return 0.2 + 0.8 / 0.3 * t
        return float(0.4 + 0.5 / 0.5 * (t - 0.3)) if len(rows) else 0.0

    edges = [0.1 + 0.5 * k + e for k in range(3) for e in (0.0, 0.1, 0.25, 0.3)] + [0.4, 0.8, 1.2, 0.5, 0.3]
    f, arc = 1.3, math.asin(3.5 / 5.0) / (2.0 * math.pi)
    # cosine: zeros at (k + 1/2)/(2f), crossings of +-3.5 around them
    edges += [(k + 0.5) / (2.0 * f) + e for k in range(4) for e in (-arc / f, 0.0, arc / f)]

    def force(t: float, q: Array, u: Array, x: Array) -> Array:
        return np.array([total(t) - 0.3 * u[0], second(t) - 0.8 * u[1]])

    return System(
        np.diag([0.5, 0.8]), force, [0.0, 0.0], [5.0, 0.0],
        [Friction([-1, 1], lambda t, w: 0.3 * 20.0 * pressed(t), lambda t: 0.3 * 20.0 * pressed(t))],
        breaks=edges,
        results={
            "inertia1.phi": phi(0), "inertia1.w": w(0), "inertia2.w": w(1), "clutch.w_rel": w_rel(0, 1),
            "add3.y": lambda at: total(at.t), "sum.y": lambda at: second(at.t),
        },
        mode_results={"clutch.mode": 0},
    )  # fmt: skip


#: slope (tangent) of the road over time, and torque at the wheels
ROAD = [[0.0, 0.0], [4.0, 0.0], [6.0, 0.12], [12.0, 0.12], [14.0, -0.05], [20.0, -0.05]]
WHEELS = [[0.0, 0.0], [1.0, 900.0], [8.0, 900.0], [8.5, 0.0], [20.0, 0.0]]


def own_vehicle() -> System:
    """Car on a hilly road: drives up, rolls out, comes to a stop and rolls back, all over tan(slope) as an input."""
    slope, drive = table(ROAD), table(WHEELS)
    weight = 1200.0 * 9.80665

    def force(t: float, q: Array, u: Array, x: Array) -> Array:
        angle, v = math.atan(slope(t)), float(u[0])
        rolling = 0.015 * weight * math.cos(angle) * min(max(v / 0.05, -1.0), 1.0)
        drag = 0.5 * 0.35 * 2.2 * 1.2 * v * abs(v)
        return np.array([drive(t) / 0.3 - drag - rolling - weight * math.sin(angle)])

    return System(
        np.array([[1200.0 + 4.0 / 0.09]]), force, [0.0], [0.0], [], breaks=[row[0] for row in (*ROAD, *WHEELS)],
        results={"vehicle.s": phi(0), "vehicle.v": w(0)},
    )  # fmt: skip


#: gear number over time; ratio over the gear number; radius of the wheel over the speed
GEARS = [[0.0, 1.0], [0.3, 1.0], [0.9, 2.5], [1.5, 2.5], [2.0, 1.2], [3.0, 1.2]]
RATIOS = [[1.0, 3.0], [1.6, 2.0], [2.5, 1.2], [3.0, 1.2]]
RADIUS = [[0.0, 0.3], [3.0, 0.31], [8.0, 0.33], [20.0, 0.34]]


def slope_of(rows: list[list[float]], x: float) -> float:
    """Slope of the lines through the rows to the right of x."""
    k = next((k for k in range(len(rows) - 1) if x < rows[k + 1][0]), len(rows) - 2)
    return (rows[k + 1][1] - rows[k][1]) / (rows[k + 1][0] - rows[k][0])


def own_changing_ratio() -> System:
    """Motor, gear whose ratio follows a curve, shaft, wheel that grows with the speed, car. Coordinates: side b of the
    gear, the car; an extra state: the angle of the wheel. The knee of the ratio is at the gear number 1.6."""
    drive, gear, ratio, radius = sine(40.0, 0.7, 0.0, 60.0), table(GEARS), table(RATIOS), table(RADIUS)

    def rolling(u: Array) -> tuple[float, float]:
        """Speed of the wheel and its derivative with respect to that of the car."""
        v, r = float(u[1]), radius(float(u[1]))
        return v / r, 1.0 / r - v * slope_of(RADIUS, v) / r**2

    def force(t: float, q: Array, u: Array, x: Array) -> Array:
        i, (speed, grows) = ratio(gear(t)), rolling(u)
        change = slope_of(RATIOS, gear(t)) * slope_of(GEARS, t)
        shaft = 900.0 * (q[0] - x[0]) + 6.0 * (u[0] - speed)
        a = (i * drive(t) - 0.2 * i * change * u[0] - shaft) / (0.2 * i * i + 0.5)
        return np.array([a, shaft / (80.0 * radius(float(u[1])) + 1.5 * grows)])

    return System(
        np.eye(2), force, [0.0, 0.0], [0.0, 0.0], x0=[0.0], rates=lambda at: [rolling(at.u)[0]],
        breaks=[*(row[0] for row in GEARS), 0.3 + 0.6 * 0.6 / 1.5, 1.5 + 0.5 * 0.9 / 1.3],
        results={
            "inertia1.w": lambda at: ratio(gear(at.t)) * float(at.u[0]), "inertia2.phi": phi(0), "inertia2.w": w(0),
            "mass.s": phi(1), "mass.v": w(1),
        },
    )  # fmt: skip


OWN: dict[str, Callable[[], System]] = {
    "OwnBacklash": own_backlash, "OwnLossyGear": own_lossy_gear, "OwnSelfLocking": own_self_locking,
    "OwnStopsAndBrake": own_stops_and_brake, "OwnDriven": own_driven, "OwnHeatLosses": own_heat_losses,
    "OwnFreeWheel": own_free_wheel, "OwnBlocks": own_blocks, "OwnVehicle": own_vehicle,
    "OwnChangingRatio": own_changing_ratio,
}  # fmt: skip
