"""Further examples of the Modelica Standard Library, without a trajectory here: mapped whole, and convergent.

Their models are written down from the library's documentation; what a formula gives is compared with it, the others
with themselves at a step 32 times as fine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("yaml", reason="the reader of cases needs PyYAML (extra `dev`)")

from case_parts import a_case, part

from torqueloop.core.reference import Case, Column
from torqueloop.core.reference.case_run import run_case


def rot(name: str, kind: str, **parameters: Any) -> dict[str, Any]:
    return part(name, "rotational", kind, **parameters)


def slide(name: str, kind: str, **parameters: Any) -> dict[str, Any]:
    return part(name, "translational", kind, **parameters)


def block(name: str, kind: str, **parameters: Any) -> dict[str, Any]:
    return part(name, "signal", kind, **parameters)


def values(case: Case, names: list[str], substeps: int = 1) -> np.ndarray:
    """Results at 11 times."""
    columns = tuple(Column(n, *n.rsplit(".", 1), "1", 0.0) for n in names)
    time = np.linspace(0.0, case.t_stop, 11)
    zeros = np.zeros((len(time), len(columns)))
    result = run_case(replace(case, columns=columns, time=time, values=zeros), substeps=substeps, order=4)
    assert not result.unsupported and not result.failure, (result.unsupported, result.failure)
    assert result.samples is not None
    return result.samples


def joined(*pairs: str) -> list[list[str]]:
    return [pair.split(" - ") for pair in pairs]


def heat_losses() -> Case:
    """Rotational.Examples.HeatLosses: every dissipating element, heat ports on a node without capacity."""
    warm = (
        "damper",
        "springDamper",
        "elastoBacklash",
        "bearingFriction",
        "lossyGear",
        "clutch",
        "oneWayClutch",
        "brake",
    )
    table = [[0.0, 0.8, 0.8, 1.0, 1.0], [1.0, 0.7, 0.7, 2.0, 2.0]]
    return a_case(
        block("sine", "Sine", f=5.0, amplitude=20.0), rot("torque", "Torque"), rot("fixed", "Fixed"),
        *(rot(f"inertia{k}", "Inertia", J=2.0) for k in range(1, 7)), rot("damper", "Damper", d=10.0, useHeatPort=True),
        rot("springDamper", "SpringDamper", c=1e4, d=20.0, useHeatPort=True), rot("spring3", "Spring", c=1e4),
        rot("elastoBacklash", "ElastoBacklash", c=1e5, d=100.0, b=0.001, useHeatPort=True),
        rot("bearingFriction", "BearingFriction", useHeatPort=True),
        rot("lossyGear", "LossyGear", ratio=2.0, lossTable=table, useHeatPort=True),
        rot("clutch", "Clutch", fn_max=10.0, useHeatPort=True), block("sine2", "Sine", f=0.2, amplitude=1.0),
        rot("oneWayClutch", "OneWayClutch", fn_max=1.0, useHeatPort=True), rot("brake", "Brake", fn_max=2.0),
        part("convection", "thermal", "Convection"), block("const", "Constant", k=20.0),
        part("TAmbient", "thermal", "FixedTemperature", T={"value": 25.0, "unit": "degC"}),
        flange=joined(
            "torque.flange - inertia1.flange_a", "inertia1.flange_b - damper.flange_b",
            "damper.flange_a - fixed.flange",
            "inertia1.flange_b - springDamper.flange_a", "springDamper.flange_b - inertia2.flange_a",
            "elastoBacklash.flange_a - inertia2.flange_b", "elastoBacklash.flange_b - inertia3.flange_a",
            "inertia3.flange_b - bearingFriction.flange_a", "bearingFriction.flange_b - spring3.flange_a",
            "spring3.flange_b - inertia4.flange_a", "inertia4.flange_b - lossyGear.flange_a",
            "lossyGear.flange_b - clutch.flange_a", "clutch.flange_b - inertia5.flange_a",
            "inertia5.flange_b - oneWayClutch.flange_a", "oneWayClutch.flange_b - inertia6.flange_a",
            "inertia6.flange_b - brake.flange_a",
        ),
        heat=[*([f"{name}.heatPort", "convection.solid"] for name in warm), ["TAmbient.port", "convection.fluid"]],
        signal=joined("sine.y - torque.tau", "const.y - convection.Gc", "sine2.y - clutch.f_normalized",
                      "sine2.y - oneWayClutch.f_normalized", "sine2.y - brake.f_normalized"),
        start={**{f"inertia{k}.{q}": 0.0 for k in (1, 2, 3, 4) for q in ("phi", "w")}, "clutch.phi_rel": 0.0,
               "clutch.w_rel": 0.0, "oneWayClutch.phi_rel": 0.0, "oneWayClutch.w_rel": 0.0},
        stop=1.0,
    )  # fmt: skip


def pre_load() -> Case:
    """Translational.Examples.PreLoad: a spool between springs and stiff contacts (10 g on 1e6 N/m)."""
    gaps = {"innerContactA": 0.001, "innerContactB": 0.001, "outerContactA": 0.0015, "outerContactB": 0.0015}
    rods = {"rod1": 0.007, "rod2": 0.007, "rod3": 0.00575, "rod4": 0.00575, "housing": 0.0305}
    return a_case(
        *(slide(name, "ElastoGap", c=1e6, d=250.0, s_rel0=s) for name, s in gaps.items()),
        *(slide(name, "Rod", L=L) for name, L in rods.items()), slide("spool", "Mass", m=0.15, L=0.19),
        slide("springPlateA", "Mass", m=0.01, L=0.002), slide("springPlateB", "Mass", m=0.01, L=0.002),
        slide("spring", "Spring", c=2e4, s_rel0=0.025), slide("friction", "Damper", d=2500.0), slide("force", "Force"),
        slide("fixedLe", "Fixed", s0=-0.0955), block("sineForce", "Sine", amplitude=150.0, f=1.0),
        flange=joined(
            "outerContactA.flange_b - springPlateA.flange_a", "springPlateA.flange_b - spring.flange_a",
            "spring.flange_b - springPlateB.flange_a", "springPlateB.flange_b - outerContactB.flange_a",
            "outerContactB.flange_b - housing.flange_b", "springPlateA.flange_b - rod1.flange_a",
            "innerContactA.flange_a - rod3.flange_a", "innerContactA.flange_b - rod1.flange_b",
            "rod2.flange_a - innerContactB.flange_a", "rod4.flange_b - innerContactB.flange_b",
            "friction.flange_b - rod3.flange_a", "rod3.flange_b - rod4.flange_a",
            "rod2.flange_b - springPlateB.flange_a", "spool.flange_a - rod4.flange_a", "force.flange - spool.flange_a",
            "outerContactA.flange_a - fixedLe.flange", "housing.flange_a - fixedLe.flange",
            "friction.flange_a - fixedLe.flange",
        ),
        signal=[["sineForce.y", "force.f"]],
        start={"spool.s": 0.01475, "spool.v": 0.0, "springPlateA.s": -0.093, "springPlateA.v": 0.0,
               "springPlateB.s": -0.06925, "springPlateB.v": 0.0},
        stop=1.0,
    )  # fmt: skip


def test_heat_losses_of_all_elements_in_one_chain() -> None:
    names = [f"inertia{k}.{q}" for k in range(1, 7) for q in ("phi", "w")]
    coarse, fine = values(heat_losses(), names), values(heat_losses(), names, 32)
    assert np.abs(coarse - fine).max() < 1e-5
    assert np.ptp(fine[:, 0]) > 0.01


def test_preloaded_spool_with_stiff_contacts() -> None:
    names = ["spool.s", "springPlateA.s", "springPlateB.s"]
    coarse, fine = values(pre_load(), names), values(pre_load(), names, 32)
    assert np.abs(coarse - fine).max() < 1e-4 * np.ptp(fine[:, 0])
    assert 1e-3 < np.ptp(fine[:, 0]) < 2e-2


def test_brake_stops_a_mass_and_an_accelerated_one_follows_its_input() -> None:
    case = a_case(
        slide("brake", "Brake", fn_max=1.0), slide("mass", "Mass", m=1.0),
        block("step", "Step", startTime=0.1, height=2.0),
        slide("accelerate", "Accelerate"), slide("other", "Mass", m=1.0, L=1.0), block("one", "Constant", k=1.0),
        flange=joined("mass.flange_b - brake.flange_a", "accelerate.flange - other.flange_a"),
        signal=joined("step.y - brake.f_normalized", "one.y - accelerate.a_ref"),
        start={"mass.s": 0.0, "mass.v": 1.0}, stop=2.0,
    )  # fmt: skip
    found = values(case, ["mass.s", "brake.v", "accelerate.s", "other.v"])
    # 0.1 m free, then 1 N against 1 kg: 0.5 m
    assert found[-1] == pytest.approx([0.6, 0.0, 2.0, 2.0], abs=1e-9)


def test_sensors_read_what_is_there() -> None:
    case = a_case(
        slide("force", "Force"), slide("mass", "Mass", L=1.0, m=2.0), slide("forceSensor", "ForceSensor"),
        slide("powerSensor", "PowerSensor"), slide("end", "PositionSensor"), slide("speed", "SpeedSensor"),
        slide("acc", "AccSensor"), slide("length", "RelPositionSensor"), block("clock", "Clock"),
        flange=joined("force.flange - forceSensor.flange_a", "forceSensor.flange_b - powerSensor.flange_a",
                      "powerSensor.flange_b - mass.flange_a", "mass.flange_b - end.flange",
                      "mass.flange_b - speed.flange", "mass.flange_b - acc.flange", "length.flange_a - mass.flange_a",
                      "length.flange_b - mass.flange_b"),
        signal=[["clock.y", "force.f"]], start={"mass.s": 0.0, "mass.v": 0.0}, stop=1.2,
    )  # fmt: skip
    names = ["forceSensor.f", "powerSensor.power", "end.s", "speed.v", "acc.a", "length.s_rel"]
    t = 1.2
    wanted = [t, t * t**2 / 4.0, t**3 / 12.0 + 0.5, t**2 / 4.0, t / 2.0, 1.0]
    assert values(case, names)[-1] == pytest.approx(wanted, abs=1e-8)


def test_springs_in_series_of_connection_possibilities() -> None:
    """Rotational.Examples.ConnectionPossibilities: two springs without an inertia between them, two inertias joined
    rigidly. There everything rests; here inertia1 and inertia3 turn at the start, so that there is something to see."""
    case = a_case(
        *(rot(f"inertia{k}", "Inertia", J=1.0) for k in range(1, 5)), rot("spring1", "Spring", c=1e4),
        rot("spring2", "Spring", c=1e4),
        flange=joined("inertia1.flange_b - inertia2.flange_a", "inertia3.flange_b - spring1.flange_a",
                      "spring1.flange_b - spring2.flange_a", "spring2.flange_b - inertia4.flange_a"),
        signal=[], start={"inertia1.phi": 0.0, "inertia1.w": 2.0, "inertia3.phi": 0.0, "inertia3.w": 1.0,
                          "inertia4.phi": 0.0, "inertia4.w": 0.0}, stop=1.1,
    )  # fmt: skip
    names = ["inertia2.w", "inertia3.phi", "inertia4.phi", "spring1.phi_rel", "spring2.phi_rel", "spring1.tau"]
    found, t = values(case, names, 8), np.linspace(0.0, 1.1, 11)
    # c = 5e3 between two inertias of 1 kg.m2: omega^2 = 5e3*(1 + 1)
    relative = -np.sin(100.0 * t) / 100.0
    wanted = [2.0 + 0.0 * t, 0.5 * (t - relative), 0.5 * (t + relative), 0.5 * relative, 0.5 * relative,
              5e3 * relative]  # fmt: skip
    assert np.abs(found - np.transpose(wanted)).max(axis=0) == pytest.approx(0.0, abs=1e-4)
    assert np.abs(found - np.transpose(wanted))[:, :5].max() < 1e-8
