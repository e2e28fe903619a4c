"""Vehicle: wheels, air drag with wind, rolling resistance regularised at standstill, slope; against scipy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from torqueloop.core.components import (
    CarResistance,
    Mass,
    Torque,
    TranslationalConstantSpeed,
    TranslationalSpringDamper,
    Vehicle,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import RangeError
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

integrate = pytest.importorskip("scipy.integrate", reason="the reference needs SciPy (extra `dev`)")

G = 9.80665
CAR = {"m": 1000.0, "J": 3.0, "R": 0.3, "A": 2.0, "Cd": 0.4}


def solved(force: Callable[[float, float], float], v0: float, times: np.ndarray) -> np.ndarray:
    """v of (m + J/R^2)*v' = force(t, v)."""
    mass = 1000.0 + 3.0 / 0.09
    found = integrate.solve_ivp(lambda t, v: [force(t, v[0]) / mass], (0.0, times[-1]), [v0], method="DOP853",
                                rtol=1e-11, atol=1e-12, t_eval=times, max_step=5e-3)  # fmt: skip
    return np.asarray(found.y[0])


def run(d: Driveline, duration: float, **inputs: object) -> Result:
    return Simulation(d, h=1e-3).run(duration, inputs={k.replace("_", ".", 1): v for k, v in inputs.items()})  # type: ignore[misc]


def driven(car: Vehicle) -> Driveline:
    d = Driveline("car", order=4)
    d.add("car", car)
    d.add("t", Torque())
    d.connect("t.flange", "car.flangeR")
    return d


def test_a_car_in_the_wind_on_a_slope_follows_its_equation() -> None:
    d = driven(Vehicle(**CAR, inclinationConstant=0.05, CrConstant=0.012, v0=10.0))
    d.add("wind", TranslationalConstantSpeed(v_fixed=-8.0))
    d.connect("wind.flange", "car.air")
    result = run(d, 4.0, t_tau=400.0)
    angle = math.atan(0.05)

    def force(t: float, v: float) -> float:
        drag = 0.5 * 0.4 * 2.0 * 1.2 * (v + 8.0) * abs(v + 8.0)
        return 400.0 / 0.3 - drag - 1000.0 * G * (0.012 * math.cos(angle) + math.sin(angle))

    assert np.abs(result["car.v"][::50] - solved(force, 10.0, result.time[::50])).max() < 1e-8
    assert result["car.f_drag"][-1] == pytest.approx(-0.48 * (result["car.v"][-1] + 8.0) ** 2, rel=1e-12)
    assert abs(result.energy().relative_residual) < 1e-9


def test_the_rolling_resistance_may_be_an_input_and_ends_at_standstill() -> None:
    result = run(driven(Vehicle(**CAR, useCrInput=True, vReg=0.1, v0=0.5)), 4.0, car_cr=lambda t: 0.02 + 0.005 * t)
    drag = 0.5 * 0.4 * 2.0 * 1.2

    def force(t: float, v: float) -> float:
        return -(0.02 + 0.005 * t) * 1000.0 * G * min(max(v / 0.1, -1.0), 1.0) - drag * v * abs(v)

    assert np.abs(result["car.v"][::50] - solved(force, 0.5, result.time[::50])).max() < 2e-6
    assert 0.0 < result["car.v"][-1] < 1e-3


@pytest.mark.parametrize("slope", [0.08, -0.3, 0.9999])
def test_the_slope_as_an_input_weighs_as_the_constant(slope: float) -> None:
    both = [
        run(driven(Vehicle(**CAR, v0=5.0, inclinationConstant=slope)), 1.0),
        run(driven(Vehicle(**CAR, v0=5.0, useInclinationInput=True)), 1.0, car_inclination=slope),
    ]
    for name in ("car.v", "car.f_grade", "car.f_roll"):
        first, second = (r[name] for r in both)
        assert np.abs(first - second).max() < 1e-6 * np.abs(first).max(), name


def test_a_trailer_hangs_on_flangeT_and_turns_no_engine() -> None:
    d = driven(Vehicle(**CAR))
    d.add("trailer", Vehicle(m=400.0, R=0.25, A=0.0, s0=0.0))
    d.add("hitch", TranslationalSpringDamper(c=1e6, d=1e4))
    d.connect("car.flangeT", "hitch.flange_a")
    d.connect("hitch.flange_b", "trailer.flangeT")
    result = run(d, 3.0, t_tau=500.0)
    # after the hitch has settled both accelerate alike
    a = (500.0 / 0.3 - 0.015 * 1400.0 * G - 0.48 * result["car.v"][-1] ** 2) / (1400.0 + 3.0 / 0.09)
    assert result["trailer.a"][-1] == pytest.approx(a, rel=1e-6) and result["car.a"][-1] == pytest.approx(a, rel=1e-6)


def test_two_inputs_for_the_same_force_are_refused() -> None:
    with pytest.raises(RangeError, match=r"useCrInput .* in \[Vehicle\]; allowed: false"):
        Vehicle(**CAR, useCrInput=True, useInclinationInput=True)


@pytest.mark.parametrize("v0", [20.0, -20.0], ids=["forward", "backward"])
def test_wind_from_a_table_is_against_the_motion_in_either_direction(v0: float) -> None:
    """300 N at 30 m/s, straight from 0, on 100 kg: v = v0 e^(-t/10 s)."""
    d = Driveline("car", order=4)
    d.add("body", Mass(m=100.0, v0=v0))
    d.add("wind", CarResistance(wind=[[0, 0], [30, 300]]))
    d.connect("body.flange_a", "wind.flange")
    result = run(d, 4.0)
    assert np.abs(result["body.v"] - v0 * np.exp(-0.1 * result.time)).max() < 1e-9
