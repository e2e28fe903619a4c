"""Friction that an exactly driven flange drives loose: break-away is located, and the step keeps its order across it.

References are closed forms or DOP853 with the break-away located by its own event; they share nothing with the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

pytest.importorskip("torqueloop.cython_kernels.kernel.kernel", reason="the kernels are not built: scripts/run")

from torqueloop.core.components import (
    Accelerate,
    BearingFriction,
    Brake,
    Clutch,
    Fixed,
    FreeWheel,
    IdealPlanetary,
    Inertia,
    Position,
    Speed,
    Torque,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Ramp, Sine
from torqueloop.core.simulate.offline import Simulation

Array = NDArray[np.float64]
#: friction coefficient over the slip
SLIPS, COEFFICIENTS = (0.0, 50.0, 200.0), (0.12, 0.09, 0.07)
MUE = tuple(zip(SLIPS, COEFFICIENTS, strict=True))
#: N.m per unit of the coefficient; breakaway over sliding
PRESSED, PEAK = 500.0, 1.1
J1, J2 = 0.1, 0.5
STEPS = (4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4)
#: s; rad/s and rad/s of the driven speed A (sin(wt) - sin(2wt)/2), which begins at rest and without acceleration
T, A, OMEGA = 0.08, 100.0, 4.0 * math.pi
#: corner frequency of filters, rad/s, and the coefficients of the Bessel filter as Modelica has them
CORNER, BESSEL = 2.0 * math.pi * 50.0, (1.3617, 0.6180)


def sliding(slip: float) -> float:
    """Torque against the slip."""
    return float(PRESSED * np.interp(abs(slip), SLIPS, COEFFICIENTS) * np.sign(slip))


LIMIT = PEAK * PRESSED * COEFFICIENTS[0]
#: acceleration of the driven shaft after (time, its speed, its angle)
Motion = Callable[[float, float, float], float]


@dataclass(frozen=True)
class Drive:
    """A source of motion, its reference, and the acceleration it prescribes."""

    source: Any
    inputs: Mapping[str, Any]
    motion: Motion


def wanted_speed(t: float) -> float:
    return A * (math.sin(OMEGA * t) - 0.5 * math.sin(2.0 * OMEGA * t))


def wanted_acceleration(t: float, w: float = 0.0, phi: float = 0.0) -> float:
    return A * OMEGA * (math.cos(OMEGA * t) - math.cos(2.0 * OMEGA * t))


def wanted_angle(t: float) -> float:
    return A / OMEGA * (1.0 - math.cos(OMEGA * t) - 0.25 * (1.0 - math.cos(2.0 * OMEGA * t)))


def drives() -> dict[str, Drive]:
    f = OMEGA / (2.0 * math.pi)
    speed = Sine(amplitude=A, f=f) + Sine(amplitude=-0.5 * A, f=2.0 * f)
    turned = 0.5 * math.pi
    angle = Sine(amplitude=-A / OMEGA, f=f, phase=turned, offset=A / OMEGA) + Sine(
        amplitude=0.25 * A / OMEGA, f=2.0 * f, phase=turned, offset=-0.25 * A / OMEGA
    )
    a, b = BESSEL
    return {
        "Accelerate": Drive(
            Accelerate(), {"drive.a_ref": Ramp(height=900.0, duration=0.5)}, lambda t, w, phi: 1800.0 * t
        ),
        "Speed": Drive(Speed(exact=True), {"drive.w_ref": speed}, wanted_acceleration),
        "Position": Drive(Position(exact=True), {"drive.phi_ref": angle}, wanted_acceleration),
        "filtered Speed": Drive(
            Speed(exact=False, f_crit=50.0), {"drive.w_ref": speed}, lambda t, w, phi: CORNER * (wanted_speed(t) - w)
        ),
        "filtered Position": Drive(
            Position(exact=False, f_crit=50.0),
            {"drive.phi_ref": angle},
            lambda t, w, phi: ((wanted_angle(t) - phi) * CORNER - a * w) * CORNER / b,
        ),
    }


def broken_loose(
    motion: Motion,
    share: float,
    follows: float,
    free: Callable[[float, float], float],
    slip: Callable[[float, float], float],
    times: Array,
) -> Array:
    """Speed of a shaft that goes with the driven one, by the factor `follows`, until its friction is at the limit.

    The friction torque is `share` times the driven acceleration. Afterwards the shaft has the acceleration free(driven
    acceleration, friction torque), the torque being that against slip(driven speed, own speed).
    """

    def at_limit(t: float, y: Array) -> float:
        return share * motion(t, y[0], y[1]) - LIMIT

    at_limit.terminal = True  # type: ignore[attr-defined]
    exact: dict[str, Any] = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-13, "dense_output": True, "max_step": 1e-3}
    held = solve_ivp(lambda t, y: [motion(t, y[0], y[1]), y[0]], (0.0, times[-1]), [0.0, 0.0], events=at_limit, **exact)
    begin, (w, phi) = held.t[-1], held.y[:, -1]
    assert 0.1 * T < begin < 0.95 * T

    def loose(t: float, y: Array) -> list[float]:
        a, x = motion(t, y[0], y[1]), slip(y[0], y[2])
        # (at its very begin the slip is 0 but for rounding, and goes the way it is driven)
        return [a, y[0], free(a, sliding(x) if x > 1e-9 else PRESSED * COEFFICIENTS[0])]

    after = solve_ivp(loose, (begin, times[-1]), [w, phi, follows * w], **exact)
    return np.where(
        times <= begin, follows * held.sol(np.minimum(times, begin))[0], after.sol(np.maximum(times, begin))[2]
    )


def coupling(kind: str) -> Driveline:
    """A drive whose shaft takes another along by friction."""
    d = Driveline("driven")
    d.add("J1", Inertia(J=J1))
    d.add("J2", Inertia(J=J2))
    if kind == "clutch":
        d.add("friction", Clutch(fn_max=PRESSED, cgeo=1.0, mue_pos=MUE, peak=PEAK))
        d.connect("J1.flange_b", "friction.flange_a")
        d.connect("friction.flange_b", "J2.flange_a")
    else:
        brake = Brake(fn_max=PRESSED, cgeo=1.0, mue_pos=MUE, peak=PEAK)
        bearing = BearingFriction(tau_pos=tuple((w, PRESSED * mue) for w, mue in MUE), peak=PEAK)
        d.add("friction", brake if kind == "brake on a driven support" else bearing)
        d.connect("J1.flange_b", "friction.support")
        d.connect("J2.flange_a", "friction.flange_a")
    return d


def planetary() -> Driveline:
    """Driven sun, braked ring, load at the carrier."""
    d = Driveline("planetary")
    d.add("J1", Inertia(J=J1))
    d.add("set", IdealPlanetary(ratio=RATIO))
    d.add("ring", Inertia(J=J_RING))
    d.add("J2", Inertia(J=J_CARRIER))
    d.add("friction", Brake(fn_max=PRESSED, cgeo=1.0, mue_pos=MUE, peak=PEAK))
    d.add("housing", Fixed())
    d.connect("J1.flange_b", "set.sun")
    d.connect("set.ring", "ring.flange_a")
    d.connect("ring.flange_a", "friction.flange_a")
    d.connect("friction.support", "housing.flange")
    d.connect("set.carrier", "J2.flange_a")
    return d


RATIO, J_RING, J_CARRIER = 2.0, 0.2, 2.5


def errors(
    build: Callable[[], Driveline],
    order: int,
    drive: Drive,
    reference: Callable[[Array], Array],
    inputs: Mapping[str, Any],
) -> list[float]:
    """Of the speed of J2 over its range, at each step; no step falls back."""
    found = []
    for h in STEPS:
        d = build()
        d.order = order
        d.add("drive", drive.source)
        d.connect("drive.flange", "J1.flange_a")
        result = Simulation(d, h=h).run(T, {**drive.inputs, **inputs})
        assert result.counters["fallbacks"] == 0
        assert result.counters["splits_max"] <= 2
        exact = reference(result.time)
        found.append(float(np.abs(result["J2.w"] - exact).max() / np.ptp(exact)))
    return found


def keeps_order(found: list[float], order: int, at_1_ms: float) -> None:
    """Slope of the errors over a factor of 16 of the step, with room for the place of the event in it, or rounding."""
    assert found[2] < at_1_ms, found
    assert found[-1] < max(found[0] / 16.0 ** (1.6 if order == 2 else 3.3), 1e-13), found


@pytest.mark.parametrize("kind", ["clutch", "brake on a driven support", "bearing on a driven support"])
@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("name", list(drives()))
def test_break_away_from_a_driven_shaft_is_located(name: str, order: int, kind: str) -> None:
    drive = drives()[name]
    found = errors(
        lambda: coupling(kind), order, drive,
        lambda t: broken_loose(drive.motion, J2, 1.0, lambda a, tau: tau / J2, lambda w1, w2: w1 - w2, t),
        {"friction.f_normalized": 1.0} if kind != "bearing on a driven support" else {},
    )  # fmt: skip
    keeps_order(found, order, 5e-5 if order == 2 else 1e-7)


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("name", list(drives()))
def test_a_ring_breaks_away_behind_a_driven_sun(name: str, order: int) -> None:
    """w_sun + i w_ring = (1 + i) w_carrier; torques of sun, ring, carrier as 1 : i : -(1 + i)."""
    drive, i = drives()[name], RATIO

    def carrier(a_sun: float, tau: float) -> float:
        # J_ring a_ring = tau - i J_carrier a_carrier/(1 + i): the brake turns the ring back to 0 (it turns backward)
        return (a_sun + i * tau / J_RING) / (1.0 + i + i * i * J_CARRIER / ((1.0 + i) * J_RING))

    found = errors(
        planetary, order, drive,
        lambda t: broken_loose(
            drive.motion, i * J_CARRIER / (1.0 + i) ** 2, 1.0 / (1.0 + i), carrier,
            lambda w_sun, w_carrier: (w_sun - (1.0 + i) * w_carrier) / i, t,
        ),
        {"friction.f_normalized": 1.0},
    )  # fmt: skip
    keeps_order(found, order, 5e-5 if order == 2 else 2e-7)


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("name", ["Speed", "Position"])
@pytest.mark.parametrize("load", [0.0, -20.0])
def test_a_free_wheel_is_released_by_a_driven_speed(load: float, name: str, order: int) -> None:
    """The shaft behind it goes with the driven one until J2 w' = load, and on with the load alone from there."""
    # w' = A w (c - (2 c^2 - 1)) with c = cos(wt): where it is load/J2
    c = (1.0 - math.sqrt(9.0 - 8.0 * load / J2 / (A * OMEGA))) / 4.0
    released = math.acos(c) / OMEGA
    for h in STEPS[1:]:
        d = Driveline("free wheel", order=order)
        d.add("J1", Inertia(J=J1))
        d.add("J2", Inertia(J=J2))
        d.add("wheel", FreeWheel())
        d.add("load", Torque())
        d.add("drive", drives()[name].source)
        d.connect("drive.flange", "J1.flange_a")
        d.connect("J1.flange_b", "wheel.flange_a")
        d.connect("wheel.flange_b", "J2.flange_a")
        d.connect("load.flange", "J2.flange_b")
        result = Simulation(d, h=h).run(0.24, {**drives()[name].inputs, "load.tau": load})
        exact = [wanted_speed(min(t, released)) + load / J2 * max(0.0, t - released) for t in result.time]
        assert result.counters["fallbacks"] == 0
        assert result.counters["events"] == 1
        assert np.abs(result["J2.w"] - exact).max() < (2e-4 if order == 2 else 2e-7) * (h / 1e-3) ** order * A


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("name", ["filtered Speed", "filtered Position"])
def test_a_filtered_drive_moves_as_its_filter_says_whatever_breaks_loose(name: str, order: int) -> None:
    """The sun goes as the filter alone goes: neither the break-away of the ring nor its friction is seen in it."""
    drive = drives()[name]
    found = []
    for h in STEPS:
        d = planetary()
        d.order = order
        d.add("drive", drive.source)
        d.connect("drive.flange", "J1.flange_a")
        result = Simulation(d, h=h).run(T, {**drive.inputs, "friction.f_normalized": 1.0})
        assert result.counters["fallbacks"] == 0
        exact = solve_ivp(lambda t, y: [drive.motion(t, y[0], y[1]), y[0]], (0.0, T), [0.0, 0.0], method="DOP853",
                          rtol=1e-13, atol=1e-13, t_eval=result.time).y[0]  # fmt: skip
        found.append(float(np.abs(result["J1.w"] - exact).max() / np.ptp(exact)))
    keeps_order(found, order, 2e-4 if order == 2 else 1e-6)
