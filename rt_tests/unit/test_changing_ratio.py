"""Gears of changing ratio at order 4: the order across breakpoints of their curves, the energy balance, neighbours.

Solutions are those of the equations in minimal coordinates (DOP853 at 1e-13), piece by piece between the breakpoints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from torqueloop.core.components import (
    Brake,
    Clutch,
    Damper,
    IdealGear,
    Inertia,
    Mass,
    SpringDamper,
    Torque,
    VariableGear,
    Wheel2,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.tables import Table1D
from torqueloop.core.signals import Pulse, Ramp, Sine
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

Array = np.ndarray
#: exact integration, relative and absolute
EXACT = 1e-13
JA, JB, JC, C, D = 1.0, 2.0, 1.5, 300.0, 1.0
SHAFT = (
    "T.flange a.flange_a|a.flange_b gear.flange_a|gear.flange_b b.flange_a|b.flange_b s.flange_a|s.flange_b c.flange_a"
)


def joined(d: Driveline, groups: str, /, **parts: Any) -> Driveline:
    for name, part in parts.items():
        d.add(name, part)
    for group in groups.split("|"):
        d.connect(*group.split())
    return d


def shafts(order: int, gear: Any) -> Driveline:
    """Motor, gear, load on a spring."""
    return joined(
        Driveline("shafts", order=order), SHAFT, T=Torque(), a=Inertia(J=JA, w0=10.0), gear=gear, b=Inertia(J=JB),
        s=SpringDamper(c=C, d=D), c=Inertia(J=JC),
    )  # fmt: skip


def tau(t: float) -> float:
    return 10.0 * float(np.sin(3.0 * t))


def solved(ratio: Callable[[float], float], rate: Callable[[float], float]) -> Callable[[float, Array], list[float]]:
    """w_a = i w_b:  (i^2 J_a + J_b) w_b' = i tau - i i' J_a w_b - spring."""

    def rates(t: float, y: Array) -> list[float]:
        i, spring = ratio(t), C * y[2] + D * (y[0] - y[1])
        return [(i * tau(t) - JA * i * rate(t) * y[0] - spring) / (i * i * JA + JB), spring / JC, y[0] - y[1]]

    return rates


@dataclass(frozen=True)
class Case:
    """A gear with its input, and the exact speeds of b and c after 1 s."""

    gear: VariableGear
    inputs: dict[str, Any]
    end: Array


def case(gear: VariableGear, name: str, given: Any, pieces: list[Any], ends: list[float], start: float) -> Case:
    y = np.array([10.0 / start, 0.0, 0.0])
    for rates, t0, t1 in zip(pieces, ends[:-1], ends[1:], strict=True):
        y = solve_ivp(rates, (t0, t1), y, method="DOP853", rtol=EXACT, atol=EXACT).y[:, -1]
    return Case(gear, {name: given, "T.tau": tau}, y[:2])


def on_curve(xs: Array, ys: Array, gear: Callable[[float], float], rate: Callable[[float], float]) -> Case:
    """A curve over the gear number that is passed as a function of time."""
    times = np.linspace(0.0, 1.0, 2001)
    values = np.array([gear(t) for t in times])
    breakpoints = [
        float(brentq(lambda t, x=x: gear(t) - x, times[k], times[k + 1], xtol=1e-15))
        for x in xs
        for k in np.flatnonzero((values[:-1] - x) * (values[1:] - x) < 0.0)
    ]
    ends = [0.0, *sorted(breakpoints), 1.0]
    pieces = []
    for t0, t1 in zip(ends[:-1], ends[1:], strict=True):
        k = int(np.searchsorted(xs, gear(0.5 * (t0 + t1)))) - 1
        # beyond the curve its ends are held
        x0, y0 = (xs[max(k, 0)], ys[max(k, 0)])
        slope = (ys[k + 1] - ys[k]) / (xs[k + 1] - xs[k]) if 0 <= k < len(xs) - 1 else 0.0
        pieces.append(solved(lambda t, x0=x0, y0=y0, s=slope: y0 + s * (gear(t) - x0), lambda t, s=slope: s * rate(t)))
    curve = [[float(x), float(y)] for x, y in zip(xs, ys, strict=True)]
    return case(VariableGear(ratios=curve), "gear.gear", gear, pieces, ends, float(np.interp(gear(0.0), xs, ys)))


def smooth() -> Case:
    ratio = solved(lambda t: 2.0 + 0.5 * np.sin(5.0 * t), lambda t: 2.5 * np.cos(5.0 * t))
    given = Sine(amplitude=0.5, f=5.0 / (2.0 * np.pi), offset=2.0)
    return case(VariableGear(), "gear.ratio", given, [ratio], [0.0, 1.0], 2.0)


def ramped() -> Case:
    """A shift between two ratios, its ends between two steps."""
    given = Ramp(height=-1.2, duration=0.4173, offset=2.5, startTime=0.2711)
    ends = [0.0, 0.2711, 0.2711 + 0.4173, 1.0]
    slope = -1.2 / 0.4173
    pieces = [
        solved(lambda t: 2.5, lambda t: 0.0), solved(lambda t: 2.5 + slope * (t - 0.2711), lambda t: slope),
        solved(lambda t: 1.3, lambda t: 0.0),
    ]  # fmt: skip
    return case(VariableGear(), "gear.ratio", given, pieces, ends, 2.5)


def jerked() -> Case:
    """The same, its ends on steps, in numbers that are exact: only the rate of the ratio says that it begins."""
    given = Ramp(height=-1.0, duration=0.5, offset=2.5, startTime=0.25)
    pieces = [
        solved(lambda t: 2.5, lambda t: 0.0), solved(lambda t: 2.5 - 2.0 * (t - 0.25), lambda t: -2.0),
        solved(lambda t: 1.5, lambda t: 0.0),
    ]  # fmt: skip
    return case(VariableGear(), "gear.ratio", given, pieces, [0.0, 0.25, 0.75, 1.0], 2.5)


def bent_curve() -> Case:
    xs, ys = np.array([1.0, 1.3, 1.9, 2.37, 3.2]), np.array([3.0, 2.6, 1.7, 1.4, 1.0])
    return on_curve(xs, ys, lambda t: 1.05 + 1.8 * t + 0.3 * np.sin(2.0 * t), lambda t: 1.8 + 0.6 * np.cos(2.0 * t))


def returning() -> Case:
    """There and back over the same breakpoints, and beyond the ends of the curve."""
    xs, ys = np.array([1.0, 1.5, 2.1]), np.array([2.4, 1.6, 1.1])
    return on_curve(xs, ys, lambda t: 1.5 + 0.75 * np.sin(6.0 * t), lambda t: 4.5 * np.cos(6.0 * t))


CASES = {"smooth": smooth, "ramped": ramped, "jerked": jerked, "bent_curve": bent_curve, "returning": returning}


def run(found: Case, order: int, h: float) -> Result:
    return Simulation(shafts(order, found.gear), h=h).run(1.0, inputs=found.inputs)


def error(found: Case, r: Result) -> float:
    return float(max(abs(r["b.w"][-1] - found.end[0]), abs(r["c.w"][-1] - found.end[1])))


@pytest.mark.parametrize("name", CASES)
def test_order_4_is_kept_where_the_ratio_changes(name: str) -> None:
    found = CASES[name]()
    coarse, fine = (run(found, 4, h) for h in (1.0 / 256.0, 1.0 / 512.0))
    assert 13.0 < error(found, coarse) / error(found, fine) < 20.0
    assert error(found, fine) < 5e-7
    for r in (coarse, fine):
        np.testing.assert_allclose(r["a.w"], r["gear.ratio"] * r["b.w"], rtol=1e-12)
        # that of a fixed gear in this driveline: what the parabola of the speeds says of the spring's energy
        assert r.energy().relative_residual < 3e-8 * (16.0 if r is coarse else 1.0)
        assert r.counters["fallbacks"] == 0 and r.counters["refused"] == 0


@pytest.mark.parametrize("name", CASES)
def test_orders_2_and_4_come_together(name: str) -> None:
    found = CASES[name]()
    apart = [abs(run(found, 2, h)["b.w"][-1] - run(found, 4, h)["b.w"][-1]) for h in (5e-3, 2.5e-3, 1.25e-3)]
    assert apart[0] / apart[1] > 3.0 and apart[1] / apart[2] > 3.5


def test_a_ratio_that_rests_is_an_ideal_gear() -> None:
    ends = []
    for gear, inputs in ((VariableGear(), {"gear.ratio": 2.0}), (IdealGear(ratio=2.0), {})):
        r = Simulation(shafts(4, gear), h=2e-3).run(0.5, inputs={"T.tau": tau, **inputs})
        ends.append([r["b.w"][-1], r["c.w"][-1], r["a.w"][-1]])
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-12)


def test_books_of_a_changing_ratio_close_to_rounding() -> None:
    """Without springs nothing but the gear's own work could be missing: closed form as in test_components_pt_runs."""
    d = joined(Driveline("pair", order=4), "a.flange_b gear.flange_a|gear.flange_b b.flange_a|b.flange_b d.flange_a"
               "|d.flange_b c.flange_a", a=Inertia(J=1.0, w0=10.0), gear=VariableGear(), b=Inertia(J=2.0, w0=5.0),
               d=Damper(d=0.7), c=Inertia(J=0.5))  # fmt: skip
    r = Simulation(d, h=2e-3).run(1.0, inputs={"gear.ratio": Sine(amplitude=0.7, f=1.3, offset=2.0)})
    energy = r.energy()
    assert abs(energy.residual) < 1e-12 * 75.0
    assert abs(r["gear.loss"][-1]) < 1e-7
    free = joined(Driveline("free", order=4), "a.flange_b gear.flange_a|gear.flange_b b.flange_a",
                  a=Inertia(J=1.0, w0=10.0), gear=VariableGear(), b=Inertia(J=2.0, w0=5.0))  # fmt: skip
    r = Simulation(free, h=5e-3).run(2.0, inputs={"gear.ratio": Ramp(height=-1.5, duration=1.0, offset=2.0)})
    np.testing.assert_allclose(r["b.w"], np.sqrt(150.0 / (r["gear.ratio"] ** 2 + 2.0)), rtol=1e-9)


# --- the radius over the speed ---------------------------------------------------------------------------------------
X, Y = np.array([0.0, 4.0, 9.0, 13.0, 40.0]), np.array([0.28, 0.285, 0.33, 0.335, 0.36])
J, M, JM, CW, DW = 2.0, 50.0, 0.5, 800.0, 2.0


def rolling(order: int, v0: float, radius: Any) -> Driveline:
    """Motor on a spring, wheel, car."""
    parts = {"motor": Inertia(J=JM, w0=v0 / 0.2825), "wheel": Wheel2(radius=radius, J=J), "car": Mass(m=M, v0=v0)}
    return joined(
        Driveline("wheel", order=order), "drive.flange motor.flange_a|motor.flange_b s.flange_a|"
        "s.flange_b wheel.flangeR|wheel.flangeT car.flange_a", drive=Torque(), s=SpringDamper(c=CW, d=DW), **parts,
    )  # fmt: skip


def rolled(v0: float, torque: Callable[[float], float], end: float) -> tuple[Array, int]:
    """v, speed of the motor, twist at the end; breakpoints passed."""
    y, t, sign, breakpoints = np.array([v0, v0 / 0.2825, 0.0]), 0.0, 1.0, 0
    k = int(np.searchsorted(X, v0)) - 1
    while t < end:
        slope, sgn = (Y[k + 1] - Y[k]) / (X[k + 1] - X[k]), sign

        def rates(t: float, y: Array, k: int = k, slope: float = slope, sgn: float = sgn) -> list[float]:
            r = Y[k] + slope * (sgn * y[0] - X[k])
            w, dw = y[0] / r, 1.0 / r - y[0] * slope * sgn / r**2
            spring = CW * y[2] + DW * (y[1] - w)
            return [spring / (r * M + J * dw), (torque(t) - spring) / JM, y[1] - w]

        def above(t: float, y: Array, x: float = X[k + 1], sgn: float = sgn) -> float:
            return float(sgn * y[0] - x)

        def below(t: float, y: Array, x: float = X[k], sgn: float = sgn) -> float:
            return float(sgn * y[0] - x)

        for event, way in ((above, 1.0), (below, -1.0)):
            event.terminal, event.direction = True, way  # type: ignore[attr-defined]
        r = solve_ivp(rates, (t, end), y, method="DOP853", rtol=EXACT, atol=EXACT, events=[above, below], max_step=0.02)
        t, y = float(r.t[-1]), r.y[:, -1]
        if r.status == 1:
            breakpoints += 1
            if len(r.t_events[0]):
                k += 1
            elif k == 0:
                sign = -sign
            else:
                k -= 1
    return y, breakpoints


@pytest.mark.parametrize(
    ("torque", "breakpoints"), [(lambda t: 200.0 * np.cos(2.0 * t), 2), (lambda t: -150.0 + 0.0 * t, 2)]
)
def test_order_4_is_kept_where_the_radius_has_a_knee_and_at_standstill(
    torque: Callable[[float], float], breakpoints: int
) -> None:
    y, passed = rolled(2.0, torque, 1.5)
    assert passed == breakpoints
    radius = [[float(x), float(r)] for x, r in zip(X, Y, strict=True)]
    errors = []
    for h in (5e-3, 2.5e-3):
        r = Simulation(rolling(4, 2.0, radius), h=h).run(1.5, inputs={"drive.tau": torque})
        errors.append(max(abs(r["car.v"][-1] - y[0]), abs(r["motor.w"][-1] - y[1])))
        np.testing.assert_allclose(r["car.v"], r["wheel.radius"] * r["wheel.w"], rtol=1e-9, atol=1e-9)
        assert r.counters["events"] == breakpoints
        assert r.energy().relative_residual < 1e-6
    assert 13.0 < errors[0] / errors[1] < 20.0 and errors[1] < 5e-6


@pytest.mark.parametrize("order", [2, 4])
def test_a_radius_is_continued_as_its_curve_says(order: int) -> None:
    """Beyond the last point: on the line through the last two, or held."""
    for kind, expected in (("linear", 0.28 + 0.002 * 12.0), ("hold", 0.3)):
        curve = Table1D((0.0, 10.0), (0.28, 0.3), extrapolation=kind)
        r = Simulation(rolling(order, 12.0, curve), h=1e-3).run(0.1, inputs={"drive.tau": 0.0})
        assert r["wheel.radius"][-1] == pytest.approx(expected, rel=1e-3)
        np.testing.assert_allclose(r["car.v"], r["wheel.radius"] * r["wheel.w"], rtol=1e-5)


# --- random curves ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(12))
def test_order_4_over_random_curves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 7))
    xs = 1.0 + np.concatenate([[0.0], np.cumsum(rng.uniform(0.2, 1.0, count))])
    ys = rng.uniform(0.6, 3.0, count + 1)
    middle, span = 0.5 * (xs[0] + xs[-1]), xs[-1] - xs[0]
    amplitude, f, phase = span * rng.uniform(0.2, 0.6), rng.uniform(2.0, 7.0), rng.uniform(0.0, 6.0)
    found = on_curve(
        xs, ys, lambda t: middle + amplitude * np.sin(f * t + phase), lambda t: amplitude * f * np.cos(f * t + phase)
    )
    errors = []
    for h in (2.5e-3, 1.25e-3):
        r = run(found, 4, h)
        errors.append(error(found, r))
        assert r.energy().relative_residual < 1e-6
        assert r.counters["fallbacks"] == 0
    assert errors[1] < 2e-6
    assert errors[1] < 1e-10 or errors[0] / errors[1] > 10.0


# --- beside friction -------------------------------------------------------------------------------------------------
def braked(rng: np.random.Generator, order: int, c: float) -> tuple[Driveline, dict[str, Any]]:
    """A clutch that slips and locks, a brake in pulses, the gear, a spring."""
    count = int(rng.integers(2, 6))
    xs = 1.0 + np.concatenate([[0.0], np.cumsum(rng.uniform(0.3, 1.0, count))])
    ys = rng.uniform(0.8, 2.5, count + 1)
    Ja, Jb, Jc, Jd = rng.uniform(0.1, 2.0, 4)
    d = joined(
        Driveline("braked", order=order), "T.flange a.flange_a|a.flange_b k.flange_a|k.flange_b b.flange_a|"
        "b.flange_b br.flange_a gear.flange_a|gear.flange_b c.flange_a|c.flange_b s.flange_a|s.flange_b l.flange_a",
        T=Torque(), a=Inertia(J=Ja, w0=20.0), k=Clutch(fn_max=40.0, mue_pos=0.5), b=Inertia(J=Jb), c=Inertia(J=Jc),
        br=Brake(fn_max=30.0, mue_pos=0.4), l=Inertia(J=Jd, w0=2.0), s=SpringDamper(c=c, d=0.5),
        gear=VariableGear(ratios=[[float(x), float(y)] for x, y in zip(xs, ys, strict=True)]),
    )  # fmt: skip
    span = float(xs[-1] - xs[0])
    gear = Sine(amplitude=span * float(rng.uniform(0.15, 0.5)), f=float(rng.uniform(0.5, 3.0)),
                phase=float(rng.uniform(0.0, 6.0)), offset=float(xs[0]) + 0.5 * span)  # fmt: skip
    return d, {"T.tau": Sine(amplitude=20.0, f=float(rng.uniform(0.5, 2.0))), "gear.gear": gear,
               "k.f_normalized": Ramp(height=1.0, duration=0.3),
               "br.f_normalized": Pulse(amplitude=1.0, period=0.37, width=40.0, startTime=0.25)}  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_beside_friction_the_order_is_kept_and_heat_is_never_negative(seed: int) -> None:
    ends = {}
    for n in (2, 4, 64):
        d, inputs = braked(np.random.default_rng(seed), 4, 300.0)
        r = Simulation(d, h=8e-3, substeps=n).run(0.96, inputs=inputs)
        assert r.counters["fallbacks"] == 0 and r.counters["negative_heat"] == 0
        for heat in (r["k.heat"], r["br.heat"]):
            assert np.all(np.diff(heat) >= 0.0)
        ends[n] = np.array([r["a.w"], r["b.w"], r["l.w"]])
        assert r.energy().relative_residual < 1e-5
    errors = [float(np.abs(ends[n] - ends[64]).max()) for n in (2, 4)]
    # the cut of a step at an event adds an error of the fourth order that is not smooth in h
    assert errors[1] < 2e-5 and (errors[1] < 1e-6 or errors[0] / errors[1] > 6.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_stiff_spring_beside_a_changing_ratio_gives_no_energy(seed: int) -> None:
    d, inputs = braked(np.random.default_rng(seed), 4, 1e7)
    r = Simulation(d, h=1e-3).run(0.96, inputs=inputs)
    assert r.counters["negative_heat"] == 0
    assert r.energy().relative_residual < 1e-5
    assert np.all(np.isfinite(r["b.w"])) and np.abs(r["b.w"]).max() < 100.0


def test_a_state_that_is_restored_goes_on_to_the_bit() -> None:
    """The piece of the curve is found from the state."""
    found = bent_curve()
    sim = Simulation(shafts(4, found.gear), h=1e-3)
    for name, signal in found.inputs.items():
        sim.set_input(name, signal)
    for _ in range(151):
        sim.step()
    kept, ends = sim.state.copy(), []
    for _ in range(2):
        for _ in range(200):
            sim.step()
        ends.append(sim.hash())
        sim.restore(kept)
    assert ends[0] == ends[1]
