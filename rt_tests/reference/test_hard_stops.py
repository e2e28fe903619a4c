"""Hard stops against closed forms and an integration of the library's equations by SciPy with located events."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from torqueloop.core.components import (
    Clutch,
    Fixed,
    Force,
    HardStop,
    Inertia,
    Mass,
    MassWithStopAndFriction,
    Torque,
    TranslationalFixed,
    TranslationalHardStop,
    TranslationalSpring,
)
from torqueloop.core.components.stops import stribeck
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import InitialValueError, MissingValueError, RangeError
from torqueloop.core.signals import Sine, Step
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

Array = NDArray[np.float64]
integrate: Any = pytest.importorskip("scipy.integrate", reason="the reference needs SciPy (extra `dev`)")


def drive(*connections: tuple[str, ...], order: int, **components: Component) -> Driveline:
    """A driveline of components by name and connection sets."""
    d = Driveline("stops", order=order)
    for name, component in components.items():
        d.add(name, component)
    for group in connections:
        d.connect(*group)
    return d


def closes(result: Result, tolerance: float = 1e-12) -> None:
    """Energy balance, and heat that only grows."""
    balance = result.energy()
    assert abs(balance.residual) <= tolerance * balance.turned_over
    for name in result.names:
        if name.rpartition(".")[2] in ("heat", "loss", "loss_stop"):
            assert np.diff(result[name]).min() >= -tolerance * balance.turned_over, name


@pytest.mark.parametrize("order", [2, 4])
def test_a_pushed_mass_stops_is_held_and_leaves_when_it_is_pulled(order: int) -> None:
    """Constant force F on m over the way 0.9 m: there at sqrt(2*0.9*m/F) = 0.9487 s with F*0.9 J, all of it lost."""
    mass = MassWithStopAndFriction(m=2.0, L=0.2, smin=-1.0, smax=1.0, s0=0.0, v0=0.0)
    d = drive(("F.flange", "m.flange_a"), order=order, m=mass, F=Force())
    r = Simulation(d, h=1e-3).run(3.0, inputs={"F.f": Step(height=-7.0, offset=4.0, startTime=2.0)})
    t_hit, t = math.sqrt(2.0 * 0.9 * 2.0 / 4.0), r.time
    s = np.where(t < t_hit, 0.5 * 2.0 * t**2, np.where(t < 2.0, 0.9, 0.9 - 0.5 * 1.5 * (t - 2.0) ** 2))
    assert np.abs(r["m.s"] - s).max() < 1e-11
    held = (t > t_hit) & (t < 2.0)
    assert np.all(r["m.v"][held] == 0.0) and np.all(r["m.f_stop"][held] == -4.0) and np.all(r["m.stopped"][held] == 1.0)
    assert np.all(r["m.f_stop"][~held & (t != 2.0)] == 0.0)
    assert r["m.loss_stop"][-1] == pytest.approx(4.0 * 0.9, rel=1e-11)
    closes(r)


@pytest.mark.parametrize("order", [2, 4])
def test_an_impact_of_two_free_masses_is_plastic_and_they_part_again(order: int) -> None:
    """1 kg at 3 m/s hits 2 kg at rest after 0.3 m: both go on with 1 m/s, 3 J are lost; a pull of 1 N parts them."""
    d = drive(
        ("a.flange_b", "x.flange_a"), ("x.flange_b", "b.flange_a"), ("F.flange", "b.flange_b"), order=order,
        a=Mass(m=1.0, s0=0.0, v0=3.0), b=Mass(m=2.0, s0=0.3, v0=0.0), x=TranslationalHardStop(s_min=0.0), F=Force(),
    )  # fmt: skip
    r = Simulation(d, h=1e-3).run(1.0, inputs={"F.f": Step(height=1.0, startTime=0.5)})
    after = r.time > 0.5
    assert r["a.v"][400] == pytest.approx(1.0, abs=1e-13) and r["b.v"][400] == pytest.approx(1.0, abs=1e-13)
    assert r["x.loss"][-1] == pytest.approx(3.0, rel=1e-12)
    assert np.abs(r["b.v"][after] - (1.0 + 0.5 * (r.time[after] - 0.5))).max() < 1e-12
    assert np.abs(r["a.v"][after] - 1.0).max() < 1e-12
    closes(r)


@pytest.mark.parametrize("order", [2, 4])
def test_a_row_of_masses_takes_the_impact_one_by_one_and_at_once(order: int) -> None:
    """Three equal masses, the last two touching: momentum of one goes to all three in one plastic impact."""
    d = drive(
        ("a.flange_b", "x.flange_a"), ("x.flange_b", "b.flange_a"), ("b.flange_b", "y.flange_a"),
        ("y.flange_b", "c.flange_a"), order=order, a=Mass(m=1.0, s0=0.0, v0=3.0), b=Mass(m=1.0, s0=0.5, v0=0.0),
        c=Mass(m=1.0, s0=0.5, v0=0.0), x=TranslationalHardStop(s_min=0.0), y=TranslationalHardStop(s_min=0.0),
    )  # fmt: skip
    r = Simulation(d, h=1e-3).run(0.4)
    for name in "abc":
        assert r[f"{name}.v"][-1] == pytest.approx(1.0, abs=1e-12)
    closes(r)


@pytest.mark.parametrize("order", [2, 4])
def test_a_stop_does_not_pull_in_an_impact(order: int) -> None:
    """b rests at its stop to the wall and is pulled off it in an impact: it leaves with what momentum gives it."""
    d = drive(
        ("wall.flange", "w.flange_a"), ("w.flange_b", "b.flange_b"), ("b.flange_a", "x.flange_a"),
        ("x.flange_b", "a.flange_a"), order=order, wall=TranslationalFixed(s0=0.0), w=TranslationalHardStop(s_max=0.0),
        b=Mass(m=1.0, s0=0.0, v0=0.0), x=TranslationalHardStop(s_min=-0.5), a=Mass(m=1.0, s0=0.0, v0=-2.0),
    )  # fmt: skip
    r = Simulation(d, h=1e-3).run(0.5)
    assert r["a.v"][-1] == pytest.approx(-1.0, abs=1e-12) and r["b.v"][-1] == pytest.approx(-1.0, abs=1e-12)
    assert r["w.f"].max() == 0.0
    closes(r)


@pytest.mark.parametrize("order", [2, 4])
def test_a_clutch_slips_in_an_impact_and_pulls_its_other_side_along(order: int) -> None:
    """Both shafts turn at 10 rad/s when the first meets its stop: the other slips to rest at capacity/J."""
    d = drive(
        ("a.flange_b", "k.flange_a"), ("k.flange_b", "b.flange_a"), ("s.flange_b", "a.flange_a"), order=order,
        a=Inertia(J=1.0, phi0=0.0, w0=10.0), b=Inertia(J=0.5, phi0=0.0, w0=10.0), k=Clutch(fn_max=20.0, mue_pos=1.0),
        s=HardStop(phi_max=1.0), g=Fixed(),
    )  # fmt: skip
    d.connect("g.flange", "s.flange_a")
    r = Simulation(d, h=1e-3).run(0.5, inputs={"k.f_normalized": 1.0})
    t = r.time
    w = np.clip(10.0 - 40.0 * np.maximum(t - 0.1, 0.0), 0.0, None)
    assert np.abs(r["b.w"] - w).max() < 1e-11
    assert np.all(r["a.w"][t > 0.1005] == 0.0)
    assert r["s.loss"][-1] == pytest.approx(50.0, rel=1e-12) and r["k.heat"][-1] == pytest.approx(25.0, rel=1e-12)
    assert np.allclose(r["s.tau"][(t > 0.1005) & (t < 0.35)], -20.0, atol=1e-11)
    closes(r)


# --- the library's model, integrated by SciPy -----------------------------------------------------------------------

#: m, smin + L/2, smax - L/2, F_prop, F_Coulomb, F_Stribeck, fexp
SLIDER = {"m": 1.5, "F_prop": 1.0, "F_Coulomb": 5.0, "F_Stribeck": 10.0, "fexp": 2.0}
ENDS = (-0.35, 0.4)
#: spring to the wall, N/m
SPRING = 60.0


def push(t: float) -> float:
    """Force on the mass."""
    return 45.0 * math.sin(2.0 * math.pi * 0.9 * t)


@dataclass
class Slider:
    """MassWithStopAndFriction as the library writes it; segments of one mode, each ended by a root."""

    rtol: float = 1e-11

    def load(self, t: float, s: float) -> float:
        return push(t) - SPRING * s

    def friction(self, v: float) -> float:
        p = SLIDER
        return p["F_Coulomb"] + p["F_prop"] * abs(v) + p["F_Stribeck"] * math.exp(-p["fexp"] * abs(v))

    def mode_at_rest(self, t: float, s: float, stopped: int) -> tuple[int, int]:
        """(mode, stopped) with v = 0."""
        most = 1.001 * (SLIDER["F_Coulomb"] + SLIDER["F_Stribeck"])
        load = self.load(t, s)
        if abs(load) <= most * (1.0 + 1e-12) or load * stopped > 0.0:
            return 0, stopped
        return (1 if load > 0.0 else -1), 0

    def sliding(self, mode: int) -> Callable[[float, Array], list[float]]:
        """Equations of motion of a sliding mode."""
        return lambda t, y: [y[1], (self.load(t, y[0]) - mode * self.friction(y[1])) / SLIDER["m"]]

    def ends_of(self, mode: int, stopped: int, start: float) -> list[Callable[[float, Array], float]]:
        """What falls to 0 when a mode ends. Held: what is left to break away; sliding: speed, way to the stop."""
        if mode == 0:
            most = 1.001 * (SLIDER["F_Coulomb"] + SLIDER["F_Stribeck"])
            return [partial(lambda q, t, y: most - q * self.load(t, y[0]), q) for q in (1.0, -1.0) if q != stopped]
        end = ENDS[1] if mode > 0 else ENDS[0]
        return [
            lambda t, y: mode * y[1] + (1e-9 if t <= start + 1e-7 else 0.0),
            lambda t, y: mode * (end - y[0]),
        ]

    def run(self, t_end: float) -> Callable[[float], Array]:
        """The state over time."""
        t, y, pieces = 0.0, np.array([0.0, 0.0]), []
        mode, stopped = self.mode_at_rest(t, y[0], 0)
        while t < t_end - 1e-12:
            ends = self.ends_of(mode, stopped, t)
            for end in ends:
                end.terminal, end.direction = True, -1.0  # type: ignore[attr-defined]
            rhs = self.sliding(mode) if mode else (lambda t, y: [0.0, 0.0])
            found = integrate.solve_ivp(rhs, (t, t_end), y, events=ends, rtol=self.rtol, atol=1e-13, method="DOP853",
                                        dense_output=True, max_step=2e-2)  # fmt: skip
            pieces.append((t, float(found.t[-1]), found.sol))
            t, y = float(found.t[-1]), found.y[:, -1].copy()
            if mode != 0 and len(found.t_events[1]):
                y[0], stopped = (ENDS[1], 1) if mode > 0 else (ENDS[0], -1)
            y[1] = 0.0
            mode, stopped = self.mode_at_rest(t + 1e-9, y[0], stopped)
        return lambda t: np.asarray(next(sol(t) for first, last, sol in pieces if first <= t <= last))


@cache
def slider_reference() -> Callable[[float], Array]:
    """Found once."""
    return Slider().run(6.0)


def slider_errors(order: int, h: float, at: Callable[[float], Array]) -> tuple[float, float, Result]:
    """Largest errors of position and speed, relative to their ranges."""
    mass = MassWithStopAndFriction(L=0.3, smin=-0.5, smax=0.55, s0=0.0, v0=0.0, **SLIDER)
    d = drive(
        ("F.flange", "m.flange_a"), ("c.flange_b", "m.centre"), ("wall.flange", "c.flange_a"), order=order,
        m=mass, F=Force(), c=TranslationalSpring(c=SPRING), wall=TranslationalFixed(),
    )  # fmt: skip
    r = Simulation(d, h=h).run(6.0, inputs={"F.f": Sine(amplitude=45.0, f=0.9)})
    expected = np.array([at(t) for t in r.time])
    # an impact between two samples; at a sample itself rounding would decide which side of it is shown
    error = np.abs(np.column_stack([r["m.s"], r["m.v"]]) - expected).max(axis=0) / np.ptp(expected, axis=0)
    return float(error[0]), float(error[1]), r


@pytest.mark.parametrize("order", [2, 4])
def test_mass_with_stop_and_friction_is_that_of_the_library(order: int) -> None:
    at = slider_reference()
    found = {h: slider_errors(order, h, at) for h in (2e-3, 1e-3)}
    for h, (s, v, r) in found.items():
        print(f"order {order}, h {h}: s {s:.1e}, v {v:.1e}; {r.counters}")
        assert np.count_nonzero(np.diff(r["m.stopped"])) >= 12
        assert set(np.unique(r["m.stopped"])) == {-1.0, 0.0, 1.0}
        assert r["m.s"].max() <= 0.4 + 1e-12 and r["m.s"].min() >= -0.35 - 1e-12
        closes(r, 1e-7)
    limits = {2: (1e-5, 3e-5), 4: (1e-7, 2e-7)}[order]
    assert found[1e-3][0] < limits[0] and found[1e-3][1] < limits[1]
    # second order or better across breakaway, slip, impact, hold and release
    assert max(found[1e-3][:2]) < 0.35 * max(found[2e-3][:2]) or max(found[1e-3][:2]) < 2e-7


def test_the_curve_of_friction_is_within_what_it_says() -> None:
    curve = stribeck(5.0, 1.0, 10.0, 2.0)
    for v in np.geomspace(1e-4, 30.0, 4000):
        assert curve(float(v)) == pytest.approx(5.0 + v + 10.0 * math.exp(-2.0 * v), abs=1.01e-6)


def test_ranges_and_starts_are_checked() -> None:
    with pytest.raises(RangeError, match="smax"):
        MassWithStopAndFriction(m=1.0, L=0.2, smin=0.0, smax=0.2)
    with pytest.raises(RangeError, match="phi_max"):
        HardStop(phi_min=1.0, phi_max=1.0)
    with pytest.raises(MissingValueError, match="phi_min is missing"):
        HardStop()
    d = drive(("T.flange", "J.flange_a"), ("J.flange_b", "x.flange_b"), ("g.flange", "x.flange_a"), order=2,
              J=Inertia(J=1.0, phi0=3.0), T=Torque(), x=HardStop(phi_min=-1.0, phi_max=2.0), g=Fixed())  # fmt: skip
    with pytest.raises(InitialValueError, match="x starts at 3, outside of its stops: -1 .. 2"):
        Simulation(d)
