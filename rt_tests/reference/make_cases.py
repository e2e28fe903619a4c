"""Write the cases of rt_tests/reference/own: case.yaml from the descriptions here, reference.csv from own_models.py.

    python rt_tests/reference/make_cases.py [CASE ...]

Each system is integrated twice, by DOP853 (rtol 1e-11) and by Radau (rtol 1e-9), with every switching located; the
difference is the `deviation` of a column. Needs scipy and PyYAML (extra `dev`).
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from independent import Solution, simulate
from own_models import GEARS, LOSSES, OWN, PRESSURE, RADIUS, RATIOS, ROAD, WHEELS, WORM

FOLDER = Path(__file__).parent / "own"

#: unit of a parameter by its name
UNITS = {
    "J": "kg.m2", "c": "N.m/rad", "d": "N.m.s/rad", "b": "rad", "phi0": "rad", "m": "kg", "L": "m", "s0": "m",
    "f": "Hz", "startTime": "s", "duration": "s", "period": "s", "rising": "s", "falling": "s", "T": "K", "C": "J/K",
    "fn_max": "N", "riseTime": "s", "riseTimeConst": "s", "fallTimeConst": "s", "damping": "1/s", "f_crit": "Hz",
    "tau_constant": "N.m", "s_rel0": "m", "cgeo": "m", "phase": "rad",
}  # fmt: skip

Entry = dict[str, Any]


def part(name: str, domain: str, kind: str, **parameters: Any) -> Entry:
    """One component."""
    values = {}
    for key, value in parameters.items():
        flag = isinstance(value, (bool, str))
        unit = "%" if key == "width" and kind == "Pulse" else UNITS.get(key, "1")
        values[key] = value if isinstance(value, dict) else {"value": value} | ({} if flag else {"unit": unit})
    return {"name": name, "domain": domain, "kind": kind, "parameters": values}


def rot(name: str, kind: str, **parameters: Any) -> Entry:
    return part(name, "rotational", kind, **parameters)


def slide(name: str, kind: str, **parameters: Any) -> Entry:
    return part(name, "translational", kind, **parameters)


def block(name: str, kind: str, **parameters: Any) -> Entry:
    return part(name, "signal", kind, **parameters)


def own_backlash() -> Entry:
    return {
        "summary": "Oscillator on ElastoBacklash2, and a driven pair of inertias joined by ElastoBacklash.",
        "stop": 1.0,
        "components": [
            rot("fixed", "Fixed"), rot("elastoBacklash2", "ElastoBacklash2", c=2e4, d=50.0, b=0.5),
            rot("inertia1", "Inertia", J=5.0), block("sine", "Sine", amplitude=20.0, f=3.0), rot("torque", "Torque"),
            rot("inertia2", "Inertia", J=0.5), rot("elastoBacklash", "ElastoBacklash", c=5e3, d=5.0, b=0.02),
            rot("inertia3", "Inertia", J=1.0), rot("damper", "Damper", d=0.5),
        ],
        "flange": [
            ["fixed.flange", "elastoBacklash2.flange_a"], ["elastoBacklash2.flange_b", "inertia1.flange_a"],
            ["torque.flange", "inertia2.flange_a"], ["inertia2.flange_b", "elastoBacklash.flange_a"],
            ["elastoBacklash.flange_b", "inertia3.flange_a"], ["inertia3.flange_b", "damper.flange_a"],
            ["damper.flange_b", "fixed.flange"],
        ],
        "signal": [["sine.y", "torque.tau"]],
        "start": {"inertia1.phi": 1.0, "inertia1.w": 0.0, "inertia2.phi": 0.0, "inertia2.w": 0.0,
                  "elastoBacklash.phi_rel": 0.0, "elastoBacklash.w_rel": 0.0},
    }  # fmt: skip


def own_lossy_gear() -> Entry:
    return {
        "summary": "Gear with losses that grow with speed between two driven inertias: stuck phases, reversals.",
        "stop": 2.0,
        "components": [
            block("drive", "Sine", amplitude=12.0, f=1.5),
            block("load", "Ramp", height=30.0, duration=2.0, offset=-15.0),
            rot("torque1", "Torque"), rot("torque2", "Torque"), rot("inertia1", "Inertia", J=0.4),
            rot("inertia2", "Inertia", J=2.0),
            rot("gear", "LossyGear", ratio=3.0,
                lossTable={"value": LOSSES, "unit": ["rad/s", "1", "1", "N.m", "N.m"]}),
        ],
        "flange": [
            ["torque1.flange", "inertia1.flange_a"], ["inertia1.flange_b", "gear.flange_a"],
            ["gear.flange_b", "inertia2.flange_a"], ["inertia2.flange_b", "torque2.flange"],
        ],
        "signal": [["drive.y", "torque1.tau"], ["load.y", "torque2.tau"]],
        "start": {"inertia1.phi": 0.0, "inertia1.w": 0.0},
    }  # fmt: skip


def own_self_locking() -> Entry:
    return {
        "summary": "Worm gear that lifts a load, holds it without drive and lowers it.",
        "stop": 2.5,
        "components": [
            block("drive", "TimeTable", table={"value": WORM, "unit": ["s", "1"]}), rot("torque", "Torque"),
            rot("worm", "Inertia", J=0.01), rot("load", "Inertia", J=5.0),
            rot("weight", "ConstantTorque", tau_constant=-60.0),
            rot("gear", "LossyGear", ratio=30.0,
                lossTable={"value": [[0.0, 0.45, 0.4, 2.5, 2.5]], "unit": ["rad/s", "1", "1", "N.m", "N.m"]}),
        ],
        "flange": [
            ["torque.flange", "worm.flange_a"], ["worm.flange_b", "gear.flange_a"], ["gear.flange_b", "load.flange_a"],
            ["load.flange_b", "weight.flange"],
        ],
        "signal": [["drive.y", "torque.tau"]],
        "start": {"worm.phi": 0.0, "worm.w": 0.0},
    }  # fmt: skip


def own_stops_and_brake() -> Entry:
    stop = {"c": {"value": 5e3, "unit": "N/m"}, "d": {"value": 60.0, "unit": "N.s/m"}}
    spring = {"c": {"value": 200.0, "unit": "N/m"}, "d": {"value": 4.0, "unit": "N.s/m"}}
    return {
        "summary": "Two sliding masses with a spring, elastic stops, a brake in pulses and support friction.",
        "stop": 3.0,
        "components": [
            block("sine", "Sine", amplitude=60.0, f=0.8),
            block("pulse", "Pulse", amplitude=1.0, width=30.0, period=0.9, startTime=0.5),
            slide("force", "Force"), slide("mass1", "Mass", m=2.0, L=0.2), slide("mass2", "Mass", m=1.0, L=0.1),
            slide("brake", "Brake", fn_max=30.0, peak=1.2,
                  mu_pos={"value": [[0.0, 0.5], [2.0, 0.3]], "unit": ["m/s", "1"]}),
            slide("supportFriction", "SupportFriction",
                  f_pos={"value": [[0.0, 1.0], [1.0, 2.0]], "unit": ["m/s", "N"]}),
            slide("springDamper", "SpringDamper", s_rel0=0.3, **spring), slide("wallLeft", "Fixed", s0=-0.5),
            slide("wallRight", "Fixed", s0=1.0), slide("rod", "Rod", L=0.05),
            slide("stopLeft", "ElastoGap", s_rel0=0.1, **stop), slide("stopRight", "ElastoGap", s_rel0=0.02, **stop),
        ],
        "flange": [
            ["force.flange", "mass1.flange_a"], ["brake.flange_a", "mass1.flange_a"],
            ["mass1.flange_b", "springDamper.flange_a"], ["springDamper.flange_b", "mass2.flange_a"],
            ["mass2.flange_b", "supportFriction.flange_a"], ["wallLeft.flange", "stopLeft.flange_a"],
            ["stopLeft.flange_b", "mass1.flange_a"], ["mass2.flange_b", "stopRight.flange_a"],
            ["stopRight.flange_b", "rod.flange_a"], ["rod.flange_b", "wallRight.flange"],
        ],
        "signal": [["sine.y", "force.f"], ["pulse.y", "brake.f_normalized"]],
        "start": {"mass1.s": 0.0, "mass1.v": 0.0, "springDamper.s_rel": 0.3, "mass2.v": 0.0},
    }  # fmt: skip


def own_driven() -> Entry:
    return {
        "summary": "Shafts driven by exact and filtered speeds and positions and by a point-to-point movement.",
        "stop": 1.5,
        "components": [
            block("wave", "Sine", amplitude=2.0, f=1.5), block("rise", "Ramp", height=5.0, duration=0.6, startTime=0.2),
            block("add", "Add"), rot("speed", "Speed", exact=True),
            rot("springDamper1", "SpringDamper", c=500.0, d=3.0),
            rot("inertia1", "Inertia", J=0.2),
            rot("bearingFriction", "BearingFriction", peak=1.1,
                tau_pos={"value": [[0.0, 0.3], [10.0, 0.8]], "unit": ["rad/s", "N.m"]}),
            block("turn", "Sine", amplitude=0.2, f=3.0), rot("position", "Position", exact=True),
            rot("spring2", "Spring", c=800.0), rot("inertia2", "Inertia", J=0.3), rot("damper2", "Damper", d=1.0),
            rot("fixed", "Fixed"), block("stairs", "Ramp", height=0.5, duration=0.1, startTime=0.3),
            rot("position2", "Position", f_crit=20.0), rot("springDamper3", "SpringDamper", c=300.0, d=2.0),
            rot("inertia3", "Inertia", J=0.1), block("jump", "Step", height=4.0, startTime=0.25),
            rot("speed2", "Speed", f_crit=10.0), rot("inertia5", "Inertia", J=3.0),
            block("kinematicPTP", "KinematicPTP", deltaq=[3.0], qd_max=[4.0], qdd_max=[20.0], startTime=0.1),
            rot("accelerate", "Accelerate"), rot("damper4", "Damper", d=0.7), rot("inertia4", "Inertia", J=0.5),
        ],
        "flange": [
            ["speed.flange", "springDamper1.flange_a"], ["springDamper1.flange_b", "inertia1.flange_a"],
            ["inertia1.flange_b", "bearingFriction.flange_a"], ["position.flange", "spring2.flange_a"],
            ["spring2.flange_b", "inertia2.flange_a"], ["inertia2.flange_b", "damper2.flange_a"],
            ["damper2.flange_b", "fixed.flange"], ["position2.flange", "springDamper3.flange_a"],
            ["springDamper3.flange_b", "inertia3.flange_a"], ["speed2.flange", "inertia5.flange_a"],
            ["accelerate.flange", "damper4.flange_a"], ["damper4.flange_b", "inertia4.flange_a"],
        ],
        "signal": [
            ["wave.y", "add.u1"], ["rise.y", "add.u2"], ["add.y", "speed.w_ref"], ["turn.y", "position.phi_ref"],
            ["stairs.y", "position2.phi_ref"], ["jump.y", "speed2.w_ref"], ["kinematicPTP.y[1]", "accelerate.a_ref"],
        ],
        "start": {"speed.phi": 0.0, **{f"inertia{k}.{q}": 0.0 for k in (1, 2, 3, 4) for q in ("phi", "w")},
                  "inertia5.phi": 0.0, "accelerate.phi": 0.0, "accelerate.w": 0.0},
    }  # fmt: skip


def own_heat_losses() -> Entry:
    warm = {"T": {"value": 25.0, "unit": "degC"}}
    return {
        "summary": "Driven chain whose damper, shaft, backlash and bearing warm a thermal mass cooled by convection.",
        "stop": 1.0,
        "components": [
            block("sine", "Sine", amplitude=20.0, f=5.0), rot("torque", "Torque"), rot("inertia1", "Inertia", J=2.0),
            rot("fixed", "Fixed"), rot("damper", "Damper", d=10.0, useHeatPort=True),
            rot("springDamper", "SpringDamper", c=1e4, d=20.0, useHeatPort=True), rot("inertia2", "Inertia", J=2.0),
            rot("elastoBacklash", "ElastoBacklash", c=1e5, d=100.0, b=0.001, useHeatPort=True),
            rot("inertia3", "Inertia", J=2.0), rot("bearingFriction", "BearingFriction", useHeatPort=True),
            part("heatCapacitor", "thermal", "HeatCapacitor", C=5.0), part("convection", "thermal", "Convection"),
            part("ambient", "thermal", "FixedTemperature", **warm), block("const", "Constant", k=2.0),
        ],
        "flange": [
            ["torque.flange", "inertia1.flange_a"], ["inertia1.flange_b", "damper.flange_b"],
            ["damper.flange_a", "fixed.flange"], ["inertia1.flange_b", "springDamper.flange_a"],
            ["springDamper.flange_b", "inertia2.flange_a"], ["inertia2.flange_b", "elastoBacklash.flange_a"],
            ["elastoBacklash.flange_b", "inertia3.flange_a"], ["inertia3.flange_b", "bearingFriction.flange_a"],
        ],
        "heat": [[f"{name}.heatPort", "heatCapacitor.port"]
                 for name in ("damper", "springDamper", "elastoBacklash", "bearingFriction")]
        + [["heatCapacitor.port", "convection.solid"], ["convection.fluid", "ambient.port"]],
        "signal": [["sine.y", "torque.tau"], ["const.y", "convection.Gc"]],
        "start": {**{f"inertia{k}.{q}": 0.0 for k in (1, 2, 3) for q in ("phi", "w")}, "heatCapacitor.T": 300.0},
    }  # fmt: skip


def own_free_wheel() -> Entry:
    return {
        "summary": "Free wheel that is never pressed, between a driven inertia and one with a constant load.",
        "stop": 2.0,
        "components": [
            block("signalTorque", "Sine", amplitude=10.0, f=2.0, offset=0.3), block("engagement", "Constant", k=0.0),
            rot("torque", "Torque"), rot("inertiaIn", "Inertia", J=1.0), rot("inertiaOut", "Inertia", J=1.0),
            rot("oneWayClutch", "OneWayClutch", peak=25.0, fn_max=3.0),
            rot("torqueLoad", "ConstantTorque", tau_constant=-0.3),
        ],
        "flange": [
            ["torque.flange", "inertiaIn.flange_a"], ["inertiaIn.flange_b", "oneWayClutch.flange_a"],
            ["oneWayClutch.flange_b", "inertiaOut.flange_a"], ["inertiaOut.flange_b", "torqueLoad.flange"],
        ],
        "signal": [["signalTorque.y", "torque.tau"], ["engagement.y", "oneWayClutch.f_normalized"]],
        "start": {"inertiaIn.phi": 0.0, "inertiaIn.w": -0.5, "inertiaOut.phi": 0.0, "inertiaOut.w": 0.0},
    }  # fmt: skip


def own_blocks() -> Entry:
    return {
        "summary": "Two shafts with a clutch, driven through many kinds of signal blocks.",
        "stop": 1.4,
        "components": [
            block("trapezoid", "Trapezoid", amplitude=8.0, rising=0.1, width=0.15, falling=0.05, period=0.5,
                  startTime=0.1),
            block("expSine", "ExpSine", amplitude=6.0, f=2.0, damping=1.5),
            block("gain", "Gain", k=2.0), block("sawTooth", "SawTooth", amplitude=3.0, period=0.4),
            block("exponentials", "Exponentials", outMax=2.0, riseTime=0.5, riseTimeConst=0.15, fallTimeConst=0.2),
            block("product", "Product"), block("add3", "Add3", k2=-1.0), rot("torque1", "Torque"),
            block("cosine", "Cosine", amplitude=5.0, f=1.3), block("abs", "Abs"), block("limiter", "Limiter", uMax=3.5),
            block("sine", "Sine", amplitude=5.0, f=1.1), block("integrator", "Integrator", k=-0.4),
            block("sum", "Sum", nin=2), rot("torque2", "Torque"),
            block("combiTimeTable", "CombiTimeTable", table={"value": PRESSURE, "unit": ["s", "1"]}),
            rot("inertia1", "Inertia", J=0.5), rot("inertia2", "Inertia", J=0.8),
            rot("clutch", "Clutch", fn_max=20.0, mu_pos={"value": [[0.0, 0.3]], "unit": ["rad/s", "1"]}),
            rot("damper1", "Damper", d=0.3), rot("damper2", "Damper", d=0.8), rot("fixed", "Fixed"),
        ],
        "flange": [
            ["torque1.flange", "inertia1.flange_a"], ["inertia1.flange_b", "clutch.flange_a"],
            ["clutch.flange_b", "inertia2.flange_a"], ["inertia2.flange_b", "torque2.flange"],
            ["damper1.flange_a", "inertia1.flange_a"], ["damper2.flange_a", "inertia2.flange_a"],
            ["damper1.flange_b", "fixed.flange"], ["damper2.flange_b", "fixed.flange"],
        ],
        "signal": [
            ["expSine.y", "gain.u"], ["sawTooth.y", "product.u1"], ["exponentials.y", "product.u2"],
            ["trapezoid.y", "add3.u1"], ["gain.y", "add3.u2"], ["product.y", "add3.u3"], ["add3.y", "torque1.tau"],
            ["cosine.y", "abs.u"], ["abs.y", "limiter.u"], ["sine.y", "integrator.u"], ["limiter.y", "sum.u[1]"],
            ["integrator.y", "sum.u[2]"], ["sum.y", "torque2.tau"], ["combiTimeTable.y[1]", "clutch.f_normalized"],
        ],
        "start": {"inertia1.phi": 0.0, "inertia1.w": 5.0, "inertia2.phi": 0.0, "inertia2.w": 0.0},
    }  # fmt: skip


def own_vehicle() -> Entry:
    return {
        "summary": "Car with wheels on a hilly road: drives up, rolls out, stops and rolls back.",
        "stop": 20.0,
        "components": [
            block("slope", "TimeTable", table={"value": ROAD, "unit": ["s", "1"]}),
            block("drive", "TimeTable", table={"value": WHEELS, "unit": ["s", "1"]}), rot("torque", "Torque"),
            slide("vehicle", "Vehicle", m=1200.0, J=4.0, R={"value": 0.3, "unit": "m"},
                  A={"value": 2.2, "unit": "m2"}, Cd=0.35, CrConstant=0.015, vReg={"value": 0.05, "unit": "m/s"},
                  useInclinationInput=True),
        ],
        "flange": [["torque.flange", "vehicle.flangeR"]],
        "signal": [["slope.y", "vehicle.inclination"], ["drive.y", "torque.tau"]],
        "start": {"vehicle.s": 0.0, "vehicle.v": 0.0},
    }  # fmt: skip


def own_changing_ratio() -> Entry:
    return {
        "summary": "Gear whose ratio follows a curve there and back, and a wheel that grows with the speed.",
        "stop": 3.0,
        "components": [
            block("sine", "Sine", amplitude=40.0, f=0.7, offset=60.0), rot("torque", "Torque"),
            block("gears", "TimeTable", table={"value": GEARS, "unit": ["s", "1"]}),
            rot("gear", "VariableGear", ratios={"value": RATIOS, "unit": ["1", "1"]}),
            rot("inertia1", "Inertia", J=0.2), rot("inertia2", "Inertia", J=0.5),
            rot("shaft", "SpringDamper", c=900.0, d=6.0),
            rot("wheel", "Wheel2", radius={"value": RADIUS, "unit": ["m/s", "m"]}, J=1.5),
            slide("mass", "Mass", m=80.0),
        ],
        "flange": [
            ["torque.flange", "inertia1.flange_a"], ["inertia1.flange_b", "gear.flange_a"],
            ["gear.flange_b", "inertia2.flange_a"], ["inertia2.flange_b", "shaft.flange_a"],
            ["shaft.flange_b", "wheel.flangeR"], ["wheel.flangeT", "mass.flange_a"],
        ],
        "signal": [["sine.y", "torque.tau"], ["gears.y", "gear.gear"]],
        "start": {"inertia1.w": 0.0, "inertia2.phi": 0.0, "inertia2.w": 0.0, "mass.s": 0.0, "mass.v": 0.0},
    }  # fmt: skip


DESCRIPTIONS = {
    "OwnBacklash": own_backlash, "OwnLossyGear": own_lossy_gear, "OwnSelfLocking": own_self_locking,
    "OwnStopsAndBrake": own_stops_and_brake, "OwnDriven": own_driven, "OwnHeatLosses": own_heat_losses,
    "OwnFreeWheel": own_free_wheel, "OwnBlocks": own_blocks, "OwnVehicle": own_vehicle,
    "OwnChangingRatio": own_changing_ratio,
}  # fmt: skip


def rows_of(solution: Solution, stop: float) -> tuple[list[tuple[float, bool]], list[float]]:
    """Row times with their side (True: after an event) and the event times: 1000 regular rows, two at an event."""
    events = [
        t for t in sorted({*solution.switchings, *(b for b in solution.system.breaks if b < stop)}) if 1e-9 < t < stop
    ]
    regular = [t for t in np.linspace(0.0, stop, 1001) if not any(abs(t - e) < 1e-7 for e in events)]
    rows = [(float(t), True) for t in regular] + [(e, side) for e in events for side in (False, True)]
    return sorted(rows), events


def write(name: str) -> None:
    """One case."""
    description, system = DESCRIPTIONS[name](), OWN[name]()
    stop = description["stop"]
    solution, other = simulate(system, stop), simulate(system, stop, 1e-9, 1e-11, "Radau")
    rows, events = rows_of(solution, stop)
    values = np.array([solution.values(t, side) for t, side in rows])
    away = [k for k, (t, _) in enumerate(rows) if all(abs(t - e) > 1e-5 for e in (*events, *other.switchings))]
    check = np.array([other.values(rows[k][0], rows[k][1]) for k in away])
    span = np.ptp(values, axis=0)
    deviation = np.abs(check - values[away]).max(axis=0) / np.where(span > 0.0, span, 1.0)
    names = [*system.results, *system.mode_results]
    columns: list[Entry] = [{"name": "time", "quantity": "time", "unit": "s"}]
    for k, column in enumerate(names):
        component, _, quantity = column.rpartition(".")
        entry: Entry = {"name": column, "component": component, "quantity": quantity, "unit": unit_of(quantity)}
        columns.append(entry | ({} if column in system.mode_results else {"deviation": float(f"{deviation[k]:.1e}")}))
    document = {
        "schema": "case/1", "case": name, "summary": description["summary"],
        "source": {"model": "torqueloop", "library": "own independent solution (rt_tests/reference/own_models.py: "
                   "scipy DOP853, rtol 1e-11, located events; checked with Radau)", "licence": "as torqueloop"},
        "experiment": {"start_time": {"value": 0.0, "unit": "s"}, "stop_time": {"value": stop, "unit": "s"},
                       "reference_tolerance": 1e-11, "reference_solver": "scipy.integrate.solve_ivp, DOP853"},
        "components": description["components"],
        "connections": {"flange": description["flange"], "frame": [], "heat": description.get("heat", []),
                        "signal": description["signal"]},
        "initial_conditions": {"prescribed": [{"quantity": q, "value": v} for q, v in description["start"].items()]},
        "reference": {"file": "reference.csv", "rows": len(rows), "decimation": 1, "event_times": events,
                      "columns": columns},
    }  # fmt: skip
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(document, sort_keys=False, width=120, default_flow_style=None)
    (folder / "case.yaml").write_text(text, encoding="utf-8")
    with (folder / "reference.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["time", *names])
        writer.writerows([[repr(t), *(f"{v:.12g}" for v in row)] for (t, _), row in zip(rows, values, strict=True)])
    print(f"{name}: {len(rows)} rows, {len(events)} events, deviation {deviation.max():.1e}")


def unit_of(quantity: str) -> str:
    """Unit of a column by its quantity."""
    return {"phi": "rad", "phi_rel": "rad", "w": "rad/s", "w_rel": "rad/s", "s": "m", "v": "m/s", "tau": "N.m",
            "f": "N", "T": "K", "lossPower": "W"}.get(quantity, "1")  # fmt: skip


if __name__ == "__main__":
    for case in sys.argv[1:] or DESCRIPTIONS:
        write(case)
