"""Engines, converters, packs and shafts against published points, closed forms and what they must bear."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

import numpy as np
import pytest

import torqueloop.configs
from torqueloop.core.analyse.engine_curves import stated_engine
from torqueloop.core.analyse.gearbox_report import gearbox_report
from torqueloop.core.analyse.sizing import (
    annulus_cm2,
    converter_scale,
    fill_cm3,
    pack_torque_Nm,
    shaft_stiffness,
    turbine_torque,
)
from torqueloop.core.components.files import load
from torqueloop.core.components.laminar import Laminar, LaminarClutch
from torqueloop.hil.new.car_facts import car_facts

CONFIGS = Path(next(iter(torqueloop.configs.__path__)))
RPM = np.pi / 30.0
#: displacement [l], torque [Nm] at [rpm], power [kW] at [rpm], as published
PUBLISHED = {
    "bmw_m30b28": (2.788, 240.0, 4200.0, 135.0, 5800.0),
    "bmw_n62b44": (4.398, 450.0, 3600.0, 245.0, 6100.0),
    "bmw_m20b20": (1.991, 170.0, 4000.0, 92.0, 5800.0),
}
#: full load at 1000 and 2000 rpm, friction and pumping at 1500 rpm [Nm], computed by hand from the published points
BY_HAND = {"bmw_m30b28": (169.1, 206.5, 29.0 + 14.4), "bmw_n62b44": (378.2, 422.8, 45.7 + 22.7)}
#: car -> its control unit
CARS = {
    "car_4hp22_rig": "soft_4hp22",
    "car_6hp26_rig": "soft_6hp26",
    "car_gm_4l60e_rig": "soft_gm_4l60e",
    "car_mb_7226_rig": "soft_mb_7226",
    "car_zf_4hp22_small_rig": "soft_zf_4hp22_small",
    "car_zf_8hp45_rig": "soft_zf_8hp45",
    "car_zf_8hp70_rig": "soft_zf_8hp70",
}


def columns(name: str) -> dict[str, np.ndarray]:
    return table(CONFIGS / name)


def table(path: Path) -> dict[str, np.ndarray]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


@pytest.mark.parametrize("name", PUBLISHED)
def test_an_engine_passes_through_its_published_points(name: str) -> None:
    volume, torque, at, power, at_power = PUBLISHED[name]
    engine = columns(f"engines/{name}.csv")
    speed, wot = engine["speed_radps"], engine["wot_Nm"]
    assert wot.max() == pytest.approx(torque, rel=1e-6)
    assert speed[wot.argmax()] == pytest.approx(at * RPM, rel=1e-6)
    assert (speed * wot).max() == pytest.approx(1e3 * power, rel=1e-6)
    assert speed[(speed * wot).argmax()] == pytest.approx(at_power * RPM, rel=1e-6)
    assert stated_engine(CONFIGS / "engines" / f"{name}.csv").displacement_l == volume
    # mean effective pressure without a charger: 6.5 bar at 1000 rpm is a weak engine, 13.5 bar at most a very good one
    pressure = 4e-5 * np.pi * np.interp(1000.0 * RPM, speed, wot) / (1e-3 * volume)
    assert 6.5 < pressure < 12.0 and 4e-5 * np.pi * torque / (1e-3 * volume) < 13.5


@pytest.mark.parametrize("name", BY_HAND)
def test_engine_curves_are_those_of_their_equations(name: str) -> None:
    low, high, dragged = BY_HAND[name]
    engine = columns(f"engines/{name}.csv")
    speed = engine["speed_radps"]
    assert np.interp(1000.0 * RPM, speed, engine["wot_Nm"]) == pytest.approx(low, abs=0.2)
    assert np.interp(2000.0 * RPM, speed, engine["wot_Nm"]) == pytest.approx(high, abs=0.2)
    assert np.interp(1500.0 * RPM, speed, engine["closed_throttle_Nm"]) == pytest.approx(-dragged, abs=0.3)
    # friction of the other petrol engine here, from the same equation over its displacement, plus pumping of 0.65 bar
    saturn = columns("engines/si_1p9_friction.csv")
    warm = saturn["temperature_K"] == 363.15
    per_litre = np.interp(3000.0, saturn["speed_rpm"][warm], saturn["friction_Nm"][warm]) / 1.9 + 6.5e1 / (4.0 * np.pi)
    mine = -np.interp(3000.0 * RPM, speed, engine["closed_throttle_Nm"]) / PUBLISHED[name][0]
    assert mine == pytest.approx(per_litre, rel=1e-3)


@pytest.mark.parametrize("car", CARS)
def test_every_pack_holds_the_largest_turbine_torque_of_each_gear_with_a_margin(car: str) -> None:
    """1.2 x the static torque at the highest line pressure of the control unit: with the converter stalled in the gears
    that start the car, in the others at the lowest turbine speed at which full pedal leaves the gear in."""
    facts = car_facts(car)
    tcu = tomllib.loads((CONFIGS / "tcu" / f"{CARS[car]}.toml").read_text(encoding="utf-8"))
    line_bar = tcu["line_pressure"]["max_bar"]
    engine, drive = table(facts.curves["engine_csv"]), table(facts.curves["converter_csv"])
    full = list(zip(engine["speed_radps"], engine["wot_Nm"], strict=True))
    converter = list(zip(*drive.values(), strict=True))
    checked = 0
    for name, gear in gearbox_report(facts.driveline).gears.items():
        lowest = 0.0
        if name.isdigit() and int(name) > 2:
            lowest = tcu["schedule"]["down"][f"{name}-{int(name) - 1}"][-1][1] * RPM * float(gear.ratio or 0)
        largest = turbine_torque(full, converter, lowest)
        if lowest == 0.0:
            assert largest == pytest.approx(facts.stall_torque_Nm, rel=1e-3)
        for element, per_Nm in gear.torques.items():
            if isinstance(facts.driveline.components[element], Laminar):
                holds = capacity(facts.driveline, element, line_bar)

                assert holds >= 1.2 * abs(float(per_Nm)) * largest, (name, element)
                checked += 1
    assert checked > 8
    assert facts.lockup is not None
    assert capacity(facts.driveline, "lockup", line_bar) >= 1.2 * facts.torque_Nm


def capacity(driveline: object, name: str, line_bar: float) -> float:
    """Torque of a pack at standstill."""
    pack = driveline.components[name]  # type: ignore[attr-defined]
    mue = driveline.tables["mu_paper"]  # type: ignore[attr-defined]
    return float(pack.geometry() * mue(0.0) * pack.area * (1e5 * line_bar - pack.p_return))


@pytest.mark.parametrize("path", sorted((CONFIGS / "gearboxes").glob("*.toml")), ids=lambda p: p.stem)
def test_no_piston_is_larger_than_its_place(path: Path) -> None:
    """A brake's piston has the annulus of its plates; a clutch's may reach inwards, to shafts of 35 mm radius."""
    for name, pack in load(path).components.items():
        if isinstance(pack, Laminar) and pack.area is not None:
            inner = 35.0 if isinstance(pack, LaminarClutch) else 1e3 * pack.r_i
            assert 1e4 * pack.area <= annulus_cm2(1e3 * pack.r_o, inner) + 0.1, name


def test_the_closed_forms_of_sizes() -> None:
    # steel tube 70 x 2 mm, 1.5 m long: G J/L with J = pi/32 (0.070^4 - 0.066^4) = 4.943e-7 m4
    assert shaft_stiffness(70.0, 66.0, 1.5) == pytest.approx(79.3e9 * 4.943e-7 / 1.5, rel=1e-3)
    assert annulus_cm2(100.0, 0.0) == pytest.approx(314.159, rel=1e-5)
    assert fill_cm3(1.5, 80.0) == pytest.approx(12.0)
    assert converter_scale(130.0, 260.0) == pytest.approx(2.0**2.5)
    # ten faces of 100 mm mean radius, mu 0.1, 100 cm2 at 1 bar: 1000 N x 0.1 x 0.1 m x 10
    assert pack_torque_Nm(10, 110.0, 90.0, 100.0, 0.1, 1.0) == pytest.approx(100.0)
