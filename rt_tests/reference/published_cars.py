"""Cars as simulated and as published: acceleration, top speed, stall, engine speed at 100 km/h, consumption.

    python rt_tests/reference/published_cars.py [CAR ...]              the table of docs/published_cars.md
    python rt_tests/reference/published_cars.py --weigh CAR            what 10 % more of what is assumed changes
    python rt_tests/reference/published_cars.py --write                the table into the page
    python rt_tests/reference/published_cars.py --assumed              what stays assumed, by weight, into the page

Acceleration: a rig on the virtual clock, its control unit from `torqueloop new tcu`, brake to full throttle and
kick-down within 0.1 s; time begins when the car moves. Top speed: the largest speed in any gear with the converter
clutch closed at which the force at the road is that of air and rolling. Stall: full load meets the pump of the standing
converter. Consumption: a driver follows the cycle in the same rig, and the fuel map of a measured engine, scaled to the
displacement of this one, gives what it burns.
Published figures with their sources: rt_tests/reference/published_cars.toml.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import torqueloop as tl
from torqueloop.configs import installed
from torqueloop.core.analyse.fuel import PETROL_DENSITY, PETROL_LHV, fuel_power
from torqueloop.core.analyse.gearbox_report import gearbox_report
from torqueloop.core.analyse.sizing import stall
from torqueloop.core.describe.tables import Table1D, Table2D, table_from_config
from torqueloop.hil.cli.facts import METRICS, assumed, facts, weigh
from torqueloop.hil.new.car_facts import RPM, CarFacts, car_facts
from torqueloop.hil.new.files import control_unit

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "rt_tests" / "reference" / "published_cars.toml"
PAGE = ROOT / "docs" / "published_cars.md"
BEGIN, END = "<!-- table: python rt_tests/reference/published_cars.py --write -->", "<!-- end of the table -->"
BEGIN_ASSUMED = "<!-- table: python rt_tests/reference/published_cars.py --assumed -->"
#: rigs whose assumed numbers are weighed
ASSUMED_RIGS = ("desk_4hp22", "desk_6hp26")
#: 60 mph and 100 km/h [m/s]; a car that goes faster moves
MPH_60, KMH_100, MOVES = 26.8224, 100.0 / 3.6, 0.14
#: full throttle from this time on, and to its end [s]
PEDAL_S, DURATION_S = 2.0, 22.0
GRAVITY, AIR_KGPM3 = 9.80665, 1.2
#: explained where it is off by more [per cent]
EXPLAINED = 5.0
WORDS = {
    "t_0_60_mph_s": "0-60 mph [s]", "t_0_100_kmh_s": "0-100 km/h [s]", "top_speed_kmh": "top speed [km/h]",
    "stall_rpm": "stall [rpm]", "rpm_at_100_kmh": "engine at 100 km/h, top gear [rpm]",
    "ftp75_l_per_100km": "FTP-75 [l/100 km]", "hwfet_l_per_100km": "HWFET [l/100 km]",
    "ece_l_per_100km": "ECE, a third each of town, 90 and 120 km/h [l/100 km]",
}  # fmt: skip
#: cycle -> parts of equal weight: (points (s, m/s), counted from this time on [s])
STEADY = tuple(([(0.0, 0.0), (5.0, 0.0), (45.0, v), (90.0, v)], 60.0) for v in (25.0, 100.0 / 3.0))
#: urban part of the NEDC: four times the cycle of ECE R15 [s]
TOWN_S = 780.0
#: the map of the engine that consumption is scaled from, and its displacement [l]
FUEL_MAP, FUEL_MAP_L = "si_1p9_95kw_fuel", 1.9
#: what --weigh changes by 10 %: key of a component, its parameter, SI per unit of the key
WEIGHED = (
    ("grip.mue", "mue", 1.0), ("grip.load_kN", "load", 1e3), ("grip.transfer", "transfer", 1.0),
    ("final_drive.ratio", "ratio", 1.0), ("engine.J_kgm2", "J", 1.0), ("wheels.J_kgm2", "J", 1.0),
    ("auxiliaries.tau_constant_Nm", "tau_constant", 1.0),
)  # fmt: skip


@dataclass(frozen=True)
class Car:
    """A car of the file of published figures."""

    name: str
    title: str
    powertrain: str
    rig: str
    tcu: str
    vehicle: Mapping[str, float]
    figures: Mapping[str, Mapping[str, Any]]
    why: Mapping[str, str]
    #: cycles that consumption is published on: keys of WORDS
    cycles: tuple[str, ...]
    #: of [engine_control]: time constants of intake and turbocharger
    charge: Mapping[str, float]
    #: values of driveline parameters in its file: "component.key" -> value in the file's unit
    changed: Mapping[str, float]


def cars() -> dict[str, Car]:
    """All of them."""
    data = tomllib.loads(FIGURES.read_text(encoding="utf-8"))["cars"]
    return {
        name: Car(name, c["title"], c["powertrain"], c["rig"], c.get("tcu", ""), c["vehicle"], c["figures"],
                  c["why"], tuple(c["cycles"]), c["charge"], {})
        for name, c in data.items()
    }  # fmt: skip


def simulated(car: Car) -> dict[str, float]:
    """Every figure of WORDS that the car has."""
    return {**accelerated(car), **static(car), **consumed(car)}


def _run(car: Car, rig: str, duration_s: float, driver: Mapping[str, Any], folder: Path) -> Any:
    """The car's rig on the virtual clock; rig: what it has more than the desk rig it extends."""
    tcu = car.tcu
    if not tcu:
        tcu = str(folder / "tcu.toml")
        Path(tcu).write_text(control_unit(car.powertrain, "").tcu, encoding="utf-8")
    file = folder / "rig.toml"
    charge = "\n".join(f"{key} = {value}" for key, value in car.charge.items())
    engine = car_facts(car.powertrain).curves["engine_csv"]
    file.write_text(
        f"extends = '{car.rig}'\n{rig}\n[engine_control]\nengine_csv = '{engine}'\n{charge}\n"
        f"pedal = '{'controller.driver.accelerator' if 'controllers' in rig else 'driver.pedal'}'\n"
        "[inputs]\n'engine.pedal' = 'engine_control.pedal'\n", encoding="utf-8",
    )  # fmt: skip
    overrides = {
        "plant.powertrain": car.powertrain, "plant.set": dict(car.changed), "ecu.tcu.start": tcu,
        "vehicle.options.set": {f"body.{key}": value for key, value in car.vehicle.items()},
        "driver.brake_switch": 0, "driver.lever": [[0.0, "N"], [0.5, "D"]],
        **{f"driver.{key}": value for key, value in driver.items()},
    }  # fmt: skip
    return tl.run(file, clock="virtual", duration=duration_s, out=folder / "run", html=False, overrides=overrides)


def accelerated(car: Car) -> dict[str, float]:
    """Times from the first motion of a rig at full throttle [s]."""
    pedal = [[0.0, 0.0], [PEDAL_S, 0.0], [PEDAL_S + 0.1, 1.0]]
    driver = {"pedal": pedal, "kickdown": pedal, "brake": [[0.0, 0.3], [PEDAL_S, 0.3], [PEDAL_S + 0.1, 0.0]]}
    with tempfile.TemporaryDirectory() as folder:
        run = _run(car, "", DURATION_S, driver, Path(folder))
        t, v = run.t, run["car.v"]
    begun = float(t[np.argmax(v > MOVES)])
    return {name: float(np.interp(speed, v, t)) - begun
            for name, speed in (("t_0_60_mph_s", MPH_60), ("t_0_100_kmh_s", KMH_100))}  # fmt: skip


CYCLE_RIG = """
[controllers.driver]
kind = "driver"
period_s = 0.01
reads = { v_set = "driver.v_set", v = "car.v" }
parameters = { kp = 0.3, ki = 0.05 }
[vehicle]
brake = "controller.driver.brake"
[outputs]
"HIL_Driver.pedal" = "controller.driver.accelerator"
"HIL_Driver.brake" = "controller.driver.brake"
[record]
signals = ["car.v", "engine.w", "engine.tau"]
every = 10
bus = false
inputs = false
"""


def consumed(car: Car) -> dict[str, float]:
    """Consumption of the warm car on the cycles it has figures of [l/100 km]."""
    return {name: float(np.mean([_per_100km(car, *part) for part in _parts(name)])) for name in car.cycles}


def _parts(cycle: str) -> tuple[tuple[list[tuple[float, float]], float], ...]:
    if cycle == "ece_l_per_100km":
        return ([p for p in _points("nedc") if p[0] <= TOWN_S], 0.0), *STEADY
    return ((_points(cycle.partition("_")[0]), 0.0),)


def _points(cycle: str) -> list[tuple[float, float]]:
    lines = installed("cycles")[cycle].read_text(encoding="utf-8").splitlines()
    return [(float(t), float(v)) for t, v, *_ in csv.reader(x for x in lines if x[0] in "0123456789")]


def _per_100km(car: Car, points: list[tuple[float, float]], counted_from_s: float) -> float:
    """Litres per 100 km of one part of a cycle: fuel power of the scaled map over speed and torque of the engine."""
    driver = {"v_set": [list(p) for p in points], "kickdown": 0}
    with tempfile.TemporaryDirectory() as folder:
        run = _run(car, CYCLE_RIG, points[-1][0], driver, Path(folder))
        t, v, w, torque = (np.asarray(x) for x in (run.t, run["car.v"], run["engine.w"], run["engine.tau"]))
    facts = car_facts(car.powertrain)
    closed = Table1D(*map(tuple, _columns(facts, "engine_csv", ("speed_radps", "closed_throttle_Nm")).T.tolist()))
    displacement = facts.driveline.published.displacement_l
    assert displacement is not None
    scale, measured = displacement / FUEL_MAP_L, fuel_map()
    fuel = replace(measured, y=tuple(scale * y for y in measured.y),
                   z=tuple(tuple(scale * p for p in row) for row in measured.z))  # fmt: skip
    losses = Table1D(closed.x, tuple(-y for y in closed.y))
    rate = fuel_power(fuel, losses, w, torque + np.interp(w, losses.x, losses.y)) / PETROL_LHV
    counted = t >= counted_from_s
    litres = float(np.trapezoid(rate[counted], t[counted])) / PETROL_DENSITY
    return litres / (float(np.trapezoid(v[counted], t[counted])) / 1e5)


def fuel_map() -> Table2D:
    """Fuel power of the measured engine over speed and torque, SI."""
    engines = Path(tl.__file__).parent / "configs" / "engines"
    found = table_from_config({"csv": f"{FUEL_MAP}.csv", "columns": ["speed_rpm", "torque_Nm", "fuel_kW"]}, engines)
    assert isinstance(found, Table2D)
    return found


def static(car: Car) -> dict[str, float]:
    """Figures without a run: stall [rpm], engine speed at 100 km/h in top gear [rpm], top speed [km/h]."""
    facts = car_facts(car.powertrain)
    engine = _columns(facts, "engine_csv", ("speed_radps", "wot_Nm"))
    pump = _columns(facts, "converter_csv", ("speed_ratio", "pump_capacity_Nms2_per_rad2"))[0, 1]
    ratios = [float(g.ratio) for g in gearbox_report(facts.driveline).gears.values() if g.ratio and g.ratio > 0]
    return {
        "stall_rpm": stall([(w, torque) for w, torque in engine], float(pump))[0] / RPM,
        "rpm_at_100_kmh": 100.0 * facts.rpm_per_kmh * min(ratios),
        "top_speed_kmh": max(_top_speed(car, facts, engine, ratio) for ratio in ratios),
    }


def _top_speed(car: Car, facts: CarFacts, engine: Any, ratio: float) -> float:
    """Largest speed in a gear at which engine and road are in balance [km/h]; 0: none."""
    parts = facts.driveline.components
    eta = float(parts["losses"].lossTable.data[1][0]) if "losses" in parts else 1.0
    extra = float(parts["auxiliaries"].tau_constant) if "auxiliaries" in parts else 0.0
    kmh = np.arange(30.0, 400.0, 0.1)
    w = facts.rpm_per_kmh * RPM * ratio * kmh
    torque = np.interp(w, engine[:, 0], engine[:, 1], right=0.0) + extra
    v = kmh / 3.6
    force = eta * torque * w / v
    road = car.vehicle["rolling"] * car.vehicle["mass_kg"] * GRAVITY + 0.5 * AIR_KGPM3 * car.vehicle["cdA_m2"] * v * v
    holds = np.flatnonzero(force >= road)
    return float(kmh[holds[-1]]) if len(holds) else 0.0


def _columns(facts: CarFacts, key: str, names: tuple[str, ...]) -> Any:
    lines = [x for x in facts.curves[key].read_text(encoding="utf-8").splitlines() if not x.startswith("#")]
    return np.array([[float(row[n]) for n in names] for row in csv.DictReader(lines)])


def table(names: list[str]) -> str:
    """The cars side by side with what is published."""
    lines = ["| car | figure | simulated | published | off | why, where it is off by more than 5 % |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for name in names:
        car, found = cars()[name], simulated(cars()[name])
        for figure, value in found.items():
            words = WORDS[figure]
            text = f"{value:.2f}" if figure.endswith(("_s", "km")) else f"{value:.0f}"
            given = car.figures.get(figure)
            if given is None:
                lines.append(f"| {car.title} | {words} | {text} | not found | | |")
                continue
            off = 100.0 * (value / given["published"] - 1.0)
            why = car.why.get(figure, "**not explained**") if abs(off) > EXPLAINED else ""
            said = f"{given['published']} ({given['source']})"
            lines.append(f"| {car.title} | {words} | {text} | {said} | {off:+.0f} % | {why} |")
    return "\n".join(lines)


def weighed(car: Car) -> str:
    """Change of the times by each assumed value alone."""
    base = accelerated(car)
    parts = car_facts(car.powertrain).driveline.components
    others: dict[str, Car] = {}
    for key, parameter, unit in WEIGHED:
        value = 1.1 * float(getattr(parts[key.partition(".")[0]], parameter)) / unit
        others[key] = replace(car, changed={f"components.{key}": value})
    for key, value in car.vehicle.items():
        others[key] = replace(car, vehicle={**car.vehicle, key: 1.1 * value})
    mass = {"components.car.m_kg": 1.1 * float(parts["car"].m), **others["grip.load_kN"].changed}
    others["mass_kg"] = replace(others["mass_kg"], changed=mass)
    lines = ["| 10 % more of | 0-60 mph [s] | 0-100 km/h [s] |", "|---|---|---|"]
    for key, other in others.items():
        found = accelerated(other)
        changes = " | ".join(f"{found[name] - base[name]:+.2f}" for name in base)
        lines.append(f"| `{key}` | {changes} |")
    return "\n".join(lines)


def assumed_table() -> str:
    """What `torqueloop list --assumed RIG --weigh` tells of each rig, the weightiest number first."""
    lines = []
    for rig in ASSUMED_RIGS:
        path = installed("rigs")[rig]
        lines += ["", f"`{rig}`: {len(assumed(path))} of {len(facts(path))} numbers are assumed.", ""]
        lines += [f"| number | assumed | range | {' | '.join(METRICS.values())} |", "|---|---|---|---|---|"]
        for weight in weigh(path):
            said = weight.statement
            allowed = "" if said.low is None else f"{said.low:g} .. {said.high:g}"
            changes = [f"{100.0 * weight.changes[m]:+.2f} %" if m in weight.changes else "" for m in METRICS]
            lines.append(f"| `{said.table.removeprefix('components.')}.{said.key}` | {said.value:g} | {allowed} | "
                         f"{' | '.join(changes)} |")  # fmt: skip
    return "\n".join(lines).strip()


def written(begin: str, text: str) -> None:
    """Put a table into its place on the page."""
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(begin)
    PAGE.write_text(f"{head}{begin}\n\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def main() -> None:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cars", nargs="*", metavar="CAR", help=f"of {', '.join(cars())}")
    parser.add_argument("--weigh", metavar="CAR", choices=list(cars()))
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    parser.add_argument("--assumed", action="store_true", help=f"weigh what stays assumed, into {PAGE.name}")
    given = parser.parse_args()
    if given.assumed:
        written(BEGIN_ASSUMED, assumed_table())
        return
    if given.weigh:
        print(weighed(cars()[given.weigh]))
        return
    text = table(given.cars or list(cars()))
    print(text)
    if given.write:
        written(BEGIN, text)


if __name__ == "__main__":
    main()
