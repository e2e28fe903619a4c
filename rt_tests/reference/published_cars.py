"""Cars as simulated and as published: acceleration, top speed, stall, engine speed at 100 km/h.

    python rt_tests/reference/published_cars.py [CAR ...]              the table of docs/published_cars.md
    python rt_tests/reference/published_cars.py --weigh CAR            what 10 % more of what is assumed changes
    python rt_tests/reference/published_cars.py --write                the table into the page

Acceleration: a rig on the virtual clock, its control unit from `torqueloop new tcu`, brake to full throttle and
kick-down within 0.1 s; time begins when the car moves. Top speed: the largest speed in any gear with the converter
clutch closed at which the force at the road is that of air and rolling. Stall: full load meets the pump of the standing
converter.
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
from torqueloop.core.analyse.gearbox_report import gearbox_report
from torqueloop.core.analyse.sizing import stall
from torqueloop.hil.new.car_facts import RPM, CarFacts, car_facts
from torqueloop.hil.new.files import control_unit

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "rt_tests" / "reference" / "published_cars.toml"
PAGE = ROOT / "docs" / "published_cars.md"
BEGIN, END = "<!-- table: python rt_tests/reference/published_cars.py --write -->", "<!-- end of the table -->"
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
}  # fmt: skip
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
    #: values of driveline parameters in its file: "component.key" -> value in the file's unit
    changed: Mapping[str, float]


def cars() -> dict[str, Car]:
    """All of them."""
    data = tomllib.loads(FIGURES.read_text(encoding="utf-8"))["cars"]
    return {
        name: Car(name, c["title"], c["powertrain"], c["rig"], c.get("tcu", ""), c["vehicle"], c["figures"],
                  c["why"], {})
        for name, c in data.items()
    }  # fmt: skip


def simulated(car: Car) -> dict[str, float]:
    """Every figure of WORDS."""
    return {**accelerated(car), **static(car)}


def accelerated(car: Car) -> dict[str, float]:
    """Times from the first motion of a rig at full throttle [s]."""
    with tempfile.TemporaryDirectory() as folder:
        tcu = car.tcu
        if not tcu:
            tcu = str(Path(folder) / "tcu.toml")
            Path(tcu).write_text(control_unit(car.powertrain, "").tcu, encoding="utf-8")
        pedal = [[0.0, 0.0], [PEDAL_S, 0.0], [PEDAL_S + 0.1, 1.0]]
        run = tl.run(
            car.rig, clock="virtual", duration=DURATION_S, out=Path(folder) / "run", html=False,
            overrides={
                "plant.powertrain": car.powertrain, "plant.set": dict(car.changed), "ecu.tcu.start": tcu,
                "vehicle.options.set": {f"body.{key}": value for key, value in car.vehicle.items()},
                "driver.pedal": pedal, "driver.kickdown": pedal, "driver.brake_switch": 0,
                "driver.brake": [[0.0, 0.3], [PEDAL_S, 0.3], [PEDAL_S + 0.1, 0.0]],
                "driver.lever": [[0.0, "N"], [0.5, "D"]],
            },
        )  # fmt: skip
        t, v = run.t, run["car.v"]
    begun = float(t[np.argmax(v > MOVES)])
    return {name: float(np.interp(speed, v, t)) - begun
            for name, speed in (("t_0_60_mph_s", MPH_60), ("t_0_100_kmh_s", KMH_100))}  # fmt: skip


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
        for figure, words in WORDS.items():
            text = f"{found[figure]:.2f}" if figure.endswith("_s") else f"{found[figure]:.0f}"
            given = car.figures.get(figure)
            if given is None:
                lines.append(f"| {car.title} | {words} | {text} | not found | | |")
                continue
            off = 100.0 * (found[figure] / given["published"] - 1.0)
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


def main() -> None:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cars", nargs="*", metavar="CAR", help=f"of {', '.join(cars())}")
    parser.add_argument("--weigh", metavar="CAR", choices=list(cars()))
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    given = parser.parse_args()
    if given.weigh:
        print(weighed(cars()[given.weigh]))
        return
    text = table(given.cars or list(cars()))
    print(text)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        head, _, rest = page.partition(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
