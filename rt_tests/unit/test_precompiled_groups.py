"""Precompiled steps of drivelines with every group of elements: equal to the generic step, to the bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from built_steps import built

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import (
    BodyMount,
    Brake,
    CardanMount,
    Clutch,
    Damper,
    EddyCurrentBrake,
    ElastoBacklash,
    Fixed,
    FixedTemperature,
    HardStop,
    HeatCapacitor,
    IdealGear,
    Inertia,
    JointShaft,
    LossyGear,
    Mass,
    MovingCarrier,
    RigidBody,
    Rotor1D,
    ShaftBearing,
    SignTorque,
    Speed,
    SpringDamper,
    ThermalConductor,
    Torque,
    VariableGear,
    WetClutchDrag,
    Wheel2,
    World,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Pulse, Ramp, Sine
from torqueloop.core.simulate.offline import Simulation
from torqueloop.cython_kernels.model import records
from torqueloop.cython_kernels.model.structure import structure_signature

PAD = {f"{key}_{axis}": c for key, c in (("c", 5e4), ("d", 60.0), ("crot", 3e3), ("drot", 5.0)) for axis in "xyz"}
LOSSES = [[0.0, 0.95, 0.9, 0.1, 0.2], [50.0, 0.9, 0.85, 0.2, 0.3]]
#: kinds of elements that the cars of configs/ have: those are compared in test_kernel_random.py
IN_CARS = {"fr", "lin", "tq", "poly", "eng", "tc", "act"} | records.READ_ONLY


def everything(order: int, geared: bool = False) -> Driveline:
    """One of every group that no car has; at order 4 gears of changing ratio (geared) take the place of losses and
    shafts with joints, with which they do not go."""
    d = Driveline("everything", order=order)
    parts: dict[str, Any] = {
        "J1": Inertia(J=0.2, w0=20.0), "J2": Inertia(J=0.5), "J3": Inertia(J=0.1), "J4": Inertia(J=0.3),
        "J5": Inertia(J=0.4), "T": Torque(), "gear": LossyGear(ratio=2, lossTable=LOSSES),
        "k": Clutch(fn_max=30.0, mue_pos=[[0.0, 0.6], [20.0, 0.4]], peak=1.2),
        "e": ElastoBacklash(c=800.0, d=1.0, b=0.02), "sign": SignTorque(tau_nominal=-1.0),
        "stop": HardStop(phi_min=-0.4, phi_max=0.5), "wall": Fixed(), "s": SpringDamper(c=300.0, d=0.5),
        "b": Brake(fn_max=20.0, mue_pos=0.5), "drive": Speed(exact=True), "d": Damper(d=0.8),
        "eddy": EddyCurrentBrake(tau_nominal=5.0, w_nominal=10.0, alpha20=0.004),
        "wet": WetClutchDrag(gaps=10, r_o=0.09, r_i=0.07, h=2e-4, Q=4e-5, mu=0.02),
        "block": RigidBody(m=3.0, I_11=0.8, I_22=1.3, I_33=1.7, I_21=0.1, g_z=-9.81, w0_x=1.0, w0_y=-0.5),
        "ball": CardanMount(r_z=0.2), "spin": Rotor1D(J=0.1, n_x=0.6, n_z=0.8, w0=30.0),
        "shaft": JointShaft(c=2e3, d=0.5, beta_a=0.4, beta_b=-0.3, bend_inputs=True, phase=0.3, length=1.0),
        "J7": Inertia(J=0.1), "J8": Inertia(J=0.2), "swung": JointShaft(c=1e3, d=0.5), "world": World(),
        "axle": MovingCarrier(use_z=True, attitude=True, x0=0.8, y0=0.1), "p": ShaftBearing(), "s2": ShaftBearing(),
        "J9": Inertia(J=0.1), "borne": JointShaft(c=1e3, d=0.5), "p3": ShaftBearing(),
        "base": RigidBody(m=40.0, I_11=2.0, I_22=2.5, I_33=2.2, x0=1.6), "pad": BodyMount(**PAD),
        "m1": SpringDamper(c=40.0, d=0.5), "m2": SpringDamper(c=90.0, d=0.2),
        "disc": HeatCapacitor(C=30.0), "oil": FixedTemperature(T=330.0), "G": ThermalConductor(G=2.0),
    }  # fmt: skip
    groups = [
        ("T.flange", "J1.flange_a"), ("J1.flange_b", "gear.flange_a"), ("gear.flange_b", "J2.flange_a", "sign.flange"),
        ("J2.flange_b", "k.flange_a", "wet.flange_a"), ("k.flange_b", "J3.flange_a", "wet.flange_b", "e.flange_a"),
        ("e.flange_b", "J4.flange_a", "stop.flange_b", "b.flange_a"), ("wall.flange", "stop.flange_a", "s.flange_a"),
        ("s.flange_b", "J4.flange_b"), ("drive.flange", "d.flange_a"), ("d.flange_b", "J5.flange_a", "eddy.flange"),
        ("J5.flange_b", "shaft.flange_a"), ("shaft.flange_b", "J7.flange_a"),
        ("J5.flange_b", "p.flange", "swung.flange_a"), ("swung.flange_b", "s2.flange", "J8.flange_a"),
        ("J8.flange_b", "borne.flange_a"), ("borne.flange_b", "p3.flange", "J9.flange_a"),
        ("base.frame_b", "pad.frame_a", "p3.frame_a"), ("world.frame_b", "p.frame_a"), ("axle.frame_b", "s2.frame_a"),
        ("J2.flange_b", "m1.flange_a"), ("m1.flange_b", "m2.flange_a"), ("m2.flange_b", "J5.flange_a"),
        ("block.frame_b", "ball.frame_a", "spin.frame_a"),
        ("k.heatPort", "disc.port", "G.port_a", "eddy.heatPort"), ("G.port_b", "oil.port", "wet.heatPort"),
    ]  # fmt: skip
    if order == 2:
        parts |= {"J6": Inertia(J=0.2), "v": VariableGear()}
        groups += [("J7.flange_b", "v.flange_a"), ("v.flange_b", "J6.flange_a")]
    if geared:
        parts |= {
            "gear": IdealGear(ratio=2), "shaft": SpringDamper(c=2e3, d=0.5), "swung": SpringDamper(c=1e3, d=0.5),
            "borne": SpringDamper(c=1e3, d=0.5), "J6": Inertia(J=0.2),
            "v": VariableGear(ratios=[[1.0, 2.0], [1.4, 1.3], [2.0, 1.0]]), "car": Mass(m=20.0),
            "wheel": Wheel2(radius=[[0.0, 0.3], [0.5, 0.31], [1.5, 0.33]], J=0.1),
        }  # fmt: skip
        groups += [("J7.flange_b", "v.flange_a"), ("v.flange_b", "J6.flange_a"), ("J8.flange_b", "wheel.flangeR"),
                   ("wheel.flangeT", "car.flange_a")]  # fmt: skip
    for name, part in parts.items():
        d.add(name, part)
    for group in groups:
        d.connect(*group)
    return d


def inputs(order: int, geared: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = {
        "T.tau": Sine(amplitude=15.0, f=4.0), "k.f_normalized": Pulse(amplitude=1.0, period=0.06, width=50.0),
        "b.f_normalized": Pulse(amplitude=1.0, period=0.11, width=30.0), "drive.w_ref": Sine(amplitude=20.0, f=2.0),
        "ball.tau_2": Sine(amplitude=3.0, f=3.0), "shaft.beta_a": Sine(amplitude=0.5, f=5.0), "shaft.beta_b": 0.3,
        "axle.q3": Sine(amplitude=0.1, f=3.0), "axle.z": Sine(amplitude=0.05, f=2.0),
    }  # fmt: skip
    if geared:
        shafts = {key for key in found if key.startswith("shaft.")}
        found = {key: signal for key, signal in found.items() if key not in shafts}
        return found | {"v.gear": Sine(amplitude=0.6, f=4.0, offset=1.5)}
    return found | ({"v.ratio": Ramp(height=1.0, duration=0.2, offset=1.0)} if order == 2 else {})


@pytest.mark.proof
@pytest.mark.parametrize(("order", "geared"), [(2, False), (4, False), (4, True)])
def test_a_precompiled_step_of_every_group_has_the_bits_of_the_generic_one(order: int, geared: bool) -> None:
    arrays = compile_driveline(everything(order, geared)).arrays
    missing = {r.kind for r in records.RECORDS if not len(arrays.elements[r.kind])}
    left = {"ls", "jo", "ps", "wr"} if geared else {"vg"} if order == 4 else set()
    assert missing <= IN_CARS | left, missing
    name = built(everything(order, geared))
    runs = [Simulation(everything(order, geared), h=1e-3, kernel=kernel) for kernel in ("generic", name)]
    for simulation in runs:
        for key, signal in inputs(order, geared).items():
            simulation.set_input(key, signal)

    for k in range(400):
        for simulation in runs:
            simulation.step()
        assert runs[0].hash() == runs[1].hash(), f"step {k}"
    events = runs[0].state.counters["events"]
    assert events > 20 and runs[0].state.counters == runs[1].state.counters


@pytest.mark.parametrize(("order", "geared"), [(2, False), (4, False), (4, True)])
def test_scratch_memory_is_given_back_and_suffices(order: int, geared: bool) -> None:
    sim = Simulation(everything(order, geared), h=1e-3, kernel="generic")
    sim.run(2.0, inputs=inputs(order, geared))
    most, reserved, taken = sim.state.scratch
    assert taken == 0
    assert 0 < most <= reserved


@pytest.mark.parametrize("kind", [r.kind for r in records.RECORDS if r.kind not in IN_CARS])
def test_a_step_serves_only_drivelines_with_as_many_of_every_kind(kind: str) -> None:
    arrays = compile_driveline(everything(2)).arrays
    fewer = replace(arrays, elements={**arrays.elements, kind: arrays.elements[kind][:-1]})
    assert structure_signature(fewer) != structure_signature(arrays)
