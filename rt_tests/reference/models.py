"""Equations of reference cases written by hand for independent.py: the published ones, as solved here for comparison.

Every function returns the System of one case; results are named as the columns of its reference.csv. Nothing here uses
torqueloop. The cases of our own are in own_models.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from independent import Array, At, Contact, Friction, Loss, System

PI = math.pi


def sine(amplitude: float, f: float, phase: float = 0.0, offset: float = 0.0) -> Callable[[float], float]:
    return lambda t: offset + amplitude * math.sin(2.0 * PI * f * t + phase)


def step(height: float, at: float, offset: float = 0.0) -> Callable[[float], float]:
    return lambda t: offset + (height if t >= at else 0.0)


def ramp(height: float, duration: float, at: float = 0.0, offset: float = 0.0) -> Callable[[float], float]:
    return lambda t: offset + height * min(max((t - at) / duration, 0.0), 1.0)


def clutch(row: list[float], torque: float, f: Callable[[float], float], peak: float = 1.0) -> Friction:
    """Constant friction coefficient: sliding torque*f(t), breakaway peak times it."""
    return Friction(row, lambda t, w: torque * max(f(t), 0.0), lambda t: peak * torque * f(t))


def phi(k: int, factor: float = 1.0) -> Callable[[At], float]:
    return lambda at: factor * float(at.q[k])


def w(k: int, factor: float = 1.0) -> Callable[[At], float]:
    return lambda at: factor * float(at.u[k])


def phi_rel(a: int, b: int) -> Callable[[At], float]:
    return lambda at: float(at.q[b] - at.q[a])


def w_rel(a: int, b: int) -> Callable[[At], float]:
    return lambda at: float(at.u[b] - at.u[a])


def coupled_clutches() -> System:
    drive, cosine = sine(10.0, 5.0), sine(1.0, 0.2, 1.570796326794897)
    rows = [[-1, 1, 0, 0], [0, -1, 1, 0], [0, 0, -1, 1]]
    press = [cosine, step(1.0, 0.4), step(1.0, 0.9)]
    results = {"J1.phi": phi(0), "J1.w": w(0)}
    for k in range(3):
        results |= {f"clutch{k + 1}.phi_rel": phi_rel(k, k + 1), f"clutch{k + 1}.w_rel": w_rel(k, k + 1)}
    return System(
        np.eye(4), lambda t, q, u, x: np.array([drive(t), 0.0, 0.0, 0.0]), [0.0] * 4, [10.0, 0.0, 0.0, 0.0],
        [clutch(row, 10.0, f, 1.1) for row, f in zip(rows, press, strict=True)], breaks=[0.4, 0.9], results=results,
        mode_results={f"clutch{k + 1}.mode": k for k in range(3)},
    )  # fmt: skip


def simple_gear_shift() -> System:
    """Coordinates sun (engine) and carrier (load); ring = (2.5*carrier - sun)/1.5."""
    up = ramp(1.0, 0.1, 2.0)
    nominal = 10.471975511966
    ring = np.array([-1.0, 2.5]) / 1.5

    def force(t: float, q: Array, u: Array, x: Array) -> Array:
        return np.array([20.0 if t >= 0.5 else 0.0, -20.0 * (u[1] / nominal) ** 2])

    slip = ring - np.array([1.0, 0.0])
    return System(
        np.diag([1.0, 10.0]), force, [0.0, 0.0], [0.0, 0.0],
        [clutch(list(slip), 100.0, up), clutch(list(ring), 100.0, lambda t: 1.0 - up(t))],
        breaks=[0.5, 2.0, 2.1],
        results={
            "clutch.phi_rel": lambda at: float(slip @ at.q), "clutch.w_rel": lambda at: float(slip @ at.u),
            "engine.phi": phi(0), "engine.w": w(0), "load.phi": phi(1), "load.w": w(1),
        },
        mode_results={"brake.mode": 1, "clutch.mode": 0},
    )  # fmt: skip


def friction() -> System:
    """Coordinates inertia3, inertia2, inertia1."""
    drive = sine(200.0, 15.915494309189533)

    def force(t: float, q: Array, u: Array, x: Array) -> Array:
        shaft = 160.0 * (q[2] - q[1]) + (u[2] - u[1])
        return np.array([drive(t) if t < 0.5 else 0.0, shaft, -shaft])

    return System(
        np.diag([1.0, 0.05, 1.0]), force, [0.0] * 3, [100.0, 90.0, 90.0],
        [clutch([-1, 1, 0], 80.0, lambda t: 1.0), clutch([0, 0, 1], 800.0, step(1.0, 0.5))], breaks=[0.5],
        results={
            "clutch.phi_rel": phi_rel(0, 1), "clutch.w_rel": w_rel(0, 1), "inertia3.phi": phi(0), "inertia3.w": w(0),
            "spring.phi_rel": phi_rel(1, 2), "spring.w_rel": w_rel(1, 2),
        },
        mode_results={"brake.mode": 1, "clutch.mode": 0},
    )  # fmt: skip


def one_way_clutch() -> System:
    drive = sine(10.0, 3.0)

    def pressed(t: float) -> float:
        return 1.0 if t >= 0.3 and (t - 0.3) % 1.3 < 0.65 else 0.0

    edges = [0.3, 0.3 + 0.65, 0.3 + 1.3, 0.3 + 1.3 + 0.65]
    hold = lambda t: 25.0 * 1.5 if pressed(t) else 1e-4 * 1.5  # noqa: E731
    return System(
        np.eye(2), lambda t, q, u, x: np.array([drive(t), 0.0]), [0.0, 0.0], [-0.5, 0.0],
        [Friction([-1, 1], lambda t, w: 1.5 * pressed(t), hold, one_way=True)], breaks=edges,
        results={
            "inertiaIn.phi": phi(0), "inertiaIn.w": w(0), "oneWayClutch.phi_rel": phi_rel(0, 1),
            "oneWayClutch.w_rel": w_rel(0, 1),
        },
    )  # fmt: skip


def first() -> System:
    """Coordinates inertia2 (inertia1 turns 10 times as fast) and inertia3."""
    drive = sine(10.0, 5.0)

    def force(t: float, q: Array, u: Array, x: Array) -> Array:
        spring = 1e4 * (q[1] - q[0])
        return np.array([10.0 * drive(t) - 10.0 * u[0] + spring, -spring])

    return System(
        np.diag([2.0 + 0.1 * 100.0, 2.0]), force, [0.0, 0.0], [0.0, 0.0],
        results={"damper.phi_rel": phi(0, -1.0), "damper.w_rel": w(0, -1.0), "inertia3.phi": phi(1),
                 "inertia3.w": w(1)},
    )  # fmt: skip


def elastic_bearing() -> System:
    """Coordinates shaft, housing, load; output of the gear = housing + (shaft - housing)/3."""
    drive = ramp(100.0, 5.0)
    out = np.array([1.0 / 3.0, 2.0 / 3.0, 0.0])

    def force(t: float, q: Array, u: Array, x: Array) -> Array:
        spring = 1000.0 * (q[2] - float(out @ q))
        bearing = 1e5 * q[1] + 5.0 * u[1]
        return np.array([drive(t), 0.0, 0.0]) + spring * out - np.array([0.0, bearing, spring])

    return System(
        np.diag([1.0, 5.0, 50.0]), force, [0.0] * 3, [0.0] * 3, breaks=[5.0],
        results={
            "load.phi": phi(2), "load.w": w(2), "shaft.phi": phi(0), "shaft.w": w(0), "springDamper.phi_rel": phi(1),
            "springDamper.w_rel": w(1),
        },
    )  # fmt: skip


def backlash() -> System:
    gap = 0.7853981633974483

    def force(t: float, q: Array, u: Array, x: Array) -> Array:
        return np.array([-2e4 * q[0] - 50.0 * u[0], 0.0])

    return System(
        5.0 * np.eye(2), force, [1.570796326794897] * 2, [0.0, 0.0],
        [Contact([0, 1], 2e4, 50.0, -gap / 2.0, gap / 2.0)],
        results={
            "elastoBacklash.phi_rel": phi(1), "elastoBacklash.w_rel": w(1), "springDamper.phi_rel": phi(0),
            "springDamper.w_rel": w(0),
        },
    )  # fmt: skip


def lossy_gear_demo1() -> System:
    """Coordinate: input shaft, twice as fast as the output."""
    drive, load = sine(10.0, 1.0), ramp(5.0, 2.0, 0.0, -10.0)
    gear = Loss([1.0], lambda t, q, u, x: drive(t), [-1.0], [[0.0, 0.5, 0.5, 0.0, 0.0]])
    return System(
        np.array([[1.0 + 1.5 / 4.0]]), lambda t, q, u, x: np.array([drive(t) + load(t) / 2.0]), [0.0], [0.0], [gear],
        results={"Inertia2.phi": phi(0, 0.5), "Inertia2.w": w(0, 0.5)}, mode_results={"gear.mode": 0},
    )  # fmt: skip


def lossy_gear_demo3() -> System:
    gear = Loss([1.0], lambda t, q, u, x: 0.0, [-0.001], [[0.0, 0.25, 0.25, 0.625, 2.5]])
    return System(
        np.array([[0.002]]), lambda t, q, u, x: np.array([1.0 if t >= 0.5 else 0.0]), [0.0], [10.0], [gear],
        breaks=[0.5], results={"Inertia2.phi": phi(0), "Inertia2.w": w(0)}, mode_results={"gear.mode": 0},
    )  # fmt: skip


def eddy_current_brake() -> System:
    slope = 0.00392

    def torque(u: float, T: float) -> float:
        x = u / (10.0 * (1.0 + slope * (T - 293.15)))
        return 200.0 * x / (1.0 + x * x)

    def power(at: At) -> float:
        return torque(float(at.u[0]), float(at.x[0])) * float(at.u[0])

    return System(
        np.array([[1.0]]), lambda t, q, u, x: np.array([-torque(u[0], x[0])]), [0.0], [20.0], x0=[293.15],
        rates=lambda at: [power(at)],
        results={"inertia.phi": phi(0), "heatCapacitor.T": lambda at: float(at.x[0]),
                 "eddyCurrentTorque.lossPower": power},
    )  # fmt: skip


def rolling_wheel() -> System:
    def force(t: float, q: Array, u: Array, x: Array) -> Array:
        return np.array([(10.0 if t >= 0.1 else 0.0) - 10.0 * (u[0] / 5.0) * abs(u[0] / 5.0)])

    return System(
        np.array([[2.0]]), force, [0.0], [0.0], breaks=[0.1], results={"inertia.phi": phi(0), "inertia.w": w(0)}
    )  # fmt: skip


#: case -> System; LossyGearDemo2 is left out (its two friction elements on one shaft share the load in no unique way)
PUBLISHED: dict[str, Callable[[], System]] = {
    "CoupledClutches": coupled_clutches, "SimpleGearShift": simple_gear_shift, "Friction": friction,
    "OneWayClutch": one_way_clutch, "First": first, "FirstGrounded": first, "ElasticBearing": elastic_bearing,
    "Backlash": backlash, "LossyGearDemo1": lossy_gear_demo1, "LossyGearDemo3": lossy_gear_demo3,
    "EddyCurrentBrake": eddy_current_brake, "RollingWheel": rolling_wheel,
}  # fmt: skip
