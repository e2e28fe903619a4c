"""PowerTrain components in simulations, against closed formulas and an independent integration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from torqueloop.core.analyse.fuel import bilinear, fuel_consumption, fuel_power
from torqueloop.core.components import (
    CarCoastDown,
    DragTorque,
    Engine3,
    Fixed,
    GearEfficiency2,
    GearMesh,
    Inertia,
    OneWayLaminarClutch,
    QuadraticSpeedDependentTorque,
    Torque,
    TorqueLoss,
    VariableGear,
    WarmUpModel,
    Wheel2,
)
from torqueloop.core.components.files import load
from torqueloop.core.controls import ControlledRun, run_controlled
from torqueloop.core.controls.automatic_car import automatic_car, read_cycle
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.tables import Table1D, Table2D
from torqueloop.core.signals import Ramp, Sine, Step
from torqueloop.core.signals import Table as Points
from torqueloop.core.simulate.offline import Simulation

CONFIGS = Path(__file__).parents[2] / "configs"


def chain(*parts: tuple[str, Any], drive: bool = True) -> Driveline:
    """Components in a row by flange_a and flange_b, with a torque on the first and on the last one."""
    d = Driveline("chain")
    for name, component in parts:
        d.add(name, component)
    for (left, _), (right, _) in zip(parts[:-1], parts[1:], strict=True):
        d.connect(f"{left}.flange_b", f"{right}.flange_a")
    if drive:
        for name, at in (("T_a", f"{parts[0][0]}.flange_a"), ("T_b", f"{parts[-1][0]}.flange_b")):
            d.add(name, Torque())
            d.connect(f"{name}.flange", at)
    return d


# --- meshes ---------------------------------------------------------------------------------------------------------
def three_bodies(dR: float, **start: float) -> Driveline:
    d = Driveline("mesh")
    d.add("mesh", GearMesh(R_in=0.1, R_out=0.1, deltaR=dR))
    for flange in ("in", "out", "carrier"):
        d.add(flange, Inertia(J=1.0, **({"w0": start[flange]} if flange in start else {})))
        d.add(f"T_{flange}", Torque())
        d.connect(f"mesh.{flange}", f"{flange}.flange_a", f"T_{flange}.flange")
    return d


@pytest.mark.parametrize(("extra", "holds"), [(0.605, True), (0.607, False), (-0.593, True), (-0.595, False)])
def test_a_mesh_at_rest_on_its_carrier_holds_up_to_its_offset(extra: float, holds: bool) -> None:
    """10 Nm on both wheels, -20 Nm on the carrier, and `extra` on one wheel: F*R = 10 + extra/6, to hold takes extra/2.

    |extra|/2 <= dR*F = 0.03*(10 + extra/6): held for -0.5941 < extra < 0.6061.
    """
    sim = Simulation(three_bodies(0.003), h=1e-3)
    r = sim.run(0.5, inputs={"T_in.tau": 10.0 + extra, "T_out.tau": 10.0, "T_carrier.tau": -20.0})
    slip = r["in.w"] - r["out.w"]
    if holds:
        assert np.abs(slip).max() < 1e-12 and r["mesh.mode"][-1] == 0
        assert r["mesh.F"][-1] == pytest.approx((10.0 + extra / 6.0) / 0.1)
        assert r["in.w"][-1] == pytest.approx(extra / 3.0 * 0.5)
    else:
        assert np.sign(slip[-1]) == np.sign(extra) == r["mesh.mode"][-1]
    assert r["mesh.loss"][-1] >= 0.0


@pytest.mark.parametrize("torque", [20.0, -20.0])
def test_sun_planet_ring_with_losses_and_no_inertia_in_the_planet(torque: float) -> None:
    """Carrier held, sun accelerates a ring: T_sun = (R_s+f1)*F1, (R_p+f2)*F2 = -(R_p-f1)*F1, T_ring = (R_r+f2)*F2."""
    R_s, R_p, R_r, dR, J_s, J_r = 0.03, 0.04, 0.11, 0.001, 0.1, 5.0
    d = Driveline("set")
    d.add("sp", GearMesh(R_in=R_s, R_out=R_p, deltaR=dR))
    d.add("pr", GearMesh(mesh="internal", R_in=R_p, R_out=R_r, deltaR=dR))
    d.add("sun", Inertia(J=J_s))
    d.add("ring", Inertia(J=J_r))
    d.add("drive", Torque())
    d.connect("drive.flange", "sun.flange_a", "sp.in")
    d.connect("sp.out", "pr.in")
    d.connect("pr.out", "ring.flange_a")
    sign = np.sign(torque)
    # the sun drives in both senses: F1*(w_s - w_p) > 0 and F2*(w_p - w_r) > 0, so f1 = f2 = +dR
    f1 = f2 = dR
    F2_per_F1 = -(R_p - f1) / (R_p + f2)
    # unknowns a_ring, F1:  torque - J_s*(-R_r/R_s)*a_r = (R_s+f1)*F1,   (R_r+f2)*F2 = J_r*a_r
    a_r = torque / ((R_s + f1) * J_r / ((R_r + f2) * F2_per_F1) - J_s * R_r / R_s)
    sim = Simulation(d, h=1e-3)
    r = sim.run(0.5, inputs={"drive.tau": torque})
    assert r["ring.w"][-1] == pytest.approx(a_r * 0.5, rel=1e-9)
    assert sign * r["sp.F"][-1] > 0.0
    assert r["pr.F"][-1] == pytest.approx(F2_per_F1 * r["sp.F"][-1], rel=1e-9)
    work, kinetic = r["drive.work"][-1], r["energy.kinetic"][-1]
    assert r["sp.loss"][-1] + r["pr.loss"][-1] == pytest.approx(work - kinetic, rel=1e-6)
    assert r["sp.loss"][-1] > 2.0 * r["pr.loss"][-1], "the internal mesh loses less"


def test_drag_between_two_members_slows_their_difference() -> None:
    d = chain(("a", Inertia(J=1.0, w0=10.0)), ("drag", DragTorque(deltaT=2.0)), ("b", Inertia(J=3.0)))
    r = Simulation(d, h=1e-3).run(6.0)
    # difference 10 rad/s shrinks with 2/1 + 2/3 rad/s2: together after 3.75 s at 2.5 rad/s
    assert r["a.w"][3000] == pytest.approx(10.0 - 6.0) and r["b.w"][3000] == pytest.approx(2.0)
    assert r["a.w"][-1] == r["b.w"][-1] == pytest.approx(2.5)
    assert r["drag.mode"][-1] == 0
    assert r["drag.heat"][-1] == pytest.approx(0.5 * 100.0 - 0.5 * 4.0 * 2.5**2)


def test_steering_gear_turns_with_the_ratio_of_its_teeth() -> None:
    """Right brake from 5 s on (1 s to full torque): it slips, then locks; then w_left/w_right = 81/49 exactly."""
    d = load(CONFIGS / "examples" / "steering_gear.toml")
    sim = Simulation(d, h=1e-3)
    r = sim.run(10.0, inputs={"engine.pedal": 0.5, "brake_R.f_normalized": Ramp(duration=1.0, startTime=5.0)})
    straight, turning = r.time < 5.0, r["brake_R.mode"] == 0
    turning[:5001] = False
    assert np.abs(r["A_L.w"] - r["A_R.w"])[straight].max() < 1e-9, "an even differential"
    assert turning[-1] and np.all(np.diff(turning.astype(int)) >= 0)
    slipping = (r.time > 5.0) & ~turning
    assert 0.02 < slipping.sum() * 1e-3 < 1.5
    np.testing.assert_allclose(r["A_L.w"][turning][5:] / r["A_R.w"][turning][5:], 81 / 49, rtol=1e-9)
    assert r["yaw.w"][-1] > 0.0, "to the right"
    losses = sum(r[f"mesh{k}.loss"] for k in range(1, 9))
    assert np.all(np.diff(losses) >= -1e-9)
    assert r.energy().relative_residual < 1e-6


# --- changing ratio -------------------------------------------------------------------------------------------------
def test_a_ratio_that_moves_does_no_work() -> None:
    """Two free bodies: w_a = i*w_b and the energy stays: w_b = sqrt(2*E/(J_a*i^2 + J_b))."""
    d = chain(("a", Inertia(J=1.0, w0=10.0)), ("gear", VariableGear()), ("b", Inertia(J=2.0, w0=5.0)), drive=False)
    r = Simulation(d, h=1e-3).run(
        2.0, inputs={"gear.ratio": Ramp(height=-1.5, duration=1.0, offset=2.0, startTime=0.5)}
    )
    i = r["gear.ratio"]
    np.testing.assert_allclose(i, 2.0 - 1.5 * np.clip(r.time - 0.5, 0.0, 1.0), rtol=1e-12)
    np.testing.assert_allclose(r["a.w"], i * r["b.w"], rtol=1e-9)
    np.testing.assert_allclose(r["b.w"], np.sqrt(150.0 / (i * i + 2.0)), rtol=2e-6)


def test_a_step_of_the_ratio_is_a_plastic_impact() -> None:
    """Impulse S: J_a*dw_a = -S, J_b*dw_b = i*S with the new i, so (i^2*J_a + J_b)*w_b+ = i*J_a*w_a + J_b*w_b."""
    d = chain(("a", Inertia(J=1.0, w0=10.0)), ("gear", VariableGear(ratios=[[1, 2.0], [2, 1.0]])),
              ("b", Inertia(J=2.0, w0=5.0)), drive=False)  # fmt: skip
    r = Simulation(d, h=1e-3).run(1.0, inputs={"gear.gear": Step(offset=1.0, height=1.0, startTime=0.5)})
    assert r["a.w"][499] == pytest.approx(10.0)
    after = (1.0 * 10.0 + 2.0 * 5.0) / (1.0 + 2.0)
    assert r["b.w"][-1] == pytest.approx(after, rel=1e-6) and r["a.w"][-1] == pytest.approx(after, rel=1e-6)
    assert r["gear.loss"][-1] == pytest.approx(75.0 - r["energy.kinetic"][-1])


def test_torque_passes_a_variable_gear_with_its_ratio() -> None:
    """J_a = 1 driven with 12 Nm, i = 3, J_b = 9: seen from b: (9*1 + 9)*a_b = 36."""
    d = chain(("a", Inertia(J=1.0)), ("gear", VariableGear()), ("b", Inertia(J=9.0)))
    r = Simulation(d, h=1e-3).run(1.0, inputs={"gear.ratio": 3.0, "T_a.tau": 12.0})
    assert r["b.w"][-1] == pytest.approx(2.0) and r["a.w"][-1] == pytest.approx(6.0)
    assert r["gear.tau"][-1] == pytest.approx(12.0 - 6.0)


def test_wheel2_rolls_with_the_radius_of_the_present_speed() -> None:
    d = Driveline("wheel")
    d.add("drive", Torque())
    d.add("wheel", Wheel2(radius=[[0, 0.28], [10, 0.30], [40, 0.33]], J=2.0))
    d.add("car", CarCoastDown(m=500.0, v0=1.0))
    d.connect("drive.flange", "wheel.flangeR")
    d.connect("wheel.flangeT", "car.flange")
    r = Simulation(d, h=1e-3).run(10.0, inputs={"drive.tau": 600.0})
    radius = np.interp(r["car.v"], [0, 10, 40], [0.28, 0.30, 0.33])
    assert 30.0 < r["car.v"][-1] < 40.0
    np.testing.assert_allclose(r["wheel.radius"][1:], radius[1:], rtol=1e-5)
    np.testing.assert_allclose(r["car.v"][1:], (radius * r["wheel.w"])[1:], rtol=1e-5)
    assert r.energy().relative_residual < 1e-6
    # energy: the work of the drive is kinetic energy of car and wheel
    assert r["drive.work"][-1] == pytest.approx(r["energy.kinetic"][-1] - r["energy.kinetic"][0], rel=1e-6)


# --- losses ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("gear", "eta", "eta_b"), [(1.0, 0.9, 0.8), (2.0, 0.96, 0.92), (1.5, 0.93, 0.86)])
def test_gear_efficiency2_takes_its_part_in_both_directions(gear: float, eta: float, eta_b: float) -> None:
    """J = 1 on both sides. a drives: 10 - a = tau_a, a = eta*tau_a; b drives: tau_a = -a, 10 - a = a/eta_b."""
    part = GearEfficiency2(eta=[[1, 0.9], [2, 0.96]], eta_b=[[1, 0.8], [2, 0.92]])
    for drives, expected in (("T_a", 10.0 * eta / (1.0 + eta)), ("T_b", 10.0 * eta_b / (1.0 + eta_b))):
        sim = Simulation(chain(("a", Inertia(J=1.0)), ("eff", part), ("b", Inertia(J=1.0))), h=1e-3)
        r = sim.run(1.0, inputs={f"{drives}.tau": 10.0, "eff.gear": gear})
        assert r["a.w"][-1] == pytest.approx(expected, rel=1e-9)
        assert r["eff.loss"][-1] == pytest.approx(r[f"{drives}.work"][-1] - r["energy.kinetic"][-1], rel=1e-6)
        assert r["eff.mode"][-1] == 1


def test_torque_loss_brakes_with_what_its_input_says_and_sticks() -> None:
    d = chain(("a", Inertia(J=2.0, w0=10.0)), ("loss", TorqueLoss()), ("b", Inertia(J=1.0)))
    sim = Simulation(d, h=1e-3)
    r = sim.run(
        10.0, inputs={"loss.tau_loss": Points([[0, 3], [2, 3], [2, 6], [10, 6]]), "T_a.tau": Sine(amplitude=1.0)}
    )
    # 10 - 1*2 - 2*(t - 2) plus the integral of the sine (periodic): at rest near 6 s
    assert r["a.w"][2000] == pytest.approx(8.0, abs=1e-6)
    assert r["a.w"][-1] == 0.0 and r["loss.mode"][-1] == 0
    assert r["loss.tau"][1000] == pytest.approx(3.0) and r["loss.tau"][3000] == pytest.approx(6.0)
    assert r["loss.heat"][-1] == pytest.approx(0.5 * 3.0 * 100.0 + r["T_a.work"][-1], rel=1e-6)


def test_one_way_laminar_clutch_drives_but_lets_overrun() -> None:
    pack: dict[str, Any] = {"faces": 8, "r_o": 0.09, "r_i": 0.07, "mue_pos": 0.12, "area": 0.001}
    d = chain(("a", Inertia(J=1.0)), ("clutch", OneWayLaminarClutch(**pack)), ("b", Inertia(J=1.0)))
    r = Simulation(d, h=1e-3).run(
        3.0, inputs={"clutch.p": 5e5, "T_a.tau": Points([[0, 60], [2, 60], [2, -20], [3, -20]])}
    )
    capacity = 8 * 0.08 * 0.12 * 500.0
    # drives: 60 Nm on a, capacity 38.4 Nm: 30 Nm are needed to take b along, it sticks
    assert capacity == pytest.approx(38.4)
    assert r["clutch.mode"][1000] == 0 and r["a.w"][2000] == r["b.w"][2000] == pytest.approx(60.0)
    # a is braked: b overruns without torque
    assert r["b.w"][-1] == pytest.approx(60.0) and r["a.w"][-1] == pytest.approx(40.0)
    assert np.abs(r["clutch.tau"][2100:]).max() == 0.0


def test_a_slipping_one_way_clutch_transmits_its_capacity_only_forward() -> None:
    pack: dict[str, Any] = {"faces": 8, "r_o": 0.09, "r_i": 0.07, "mue_pos": 0.12, "area": 0.001}
    for w_a, expected in ((50.0, 38.4), (-50.0, 0.0)):
        d = chain(("a", Inertia(J=1.0, w0=w_a)), ("clutch", OneWayLaminarClutch(**pack)), ("b", Inertia(J=1.0, w0=0.0)))
        r = Simulation(d, h=1e-3).run(0.1, inputs={"clutch.p": 5e5})
        # the pressure rises in the first tick
        assert r["b.w"][-1] - r["b.w"][10] == pytest.approx(expected * 0.09, rel=1e-9)


# --- engine and warm-up ---------------------------------------------------------------------------------------------
FRICTION = Table2D((0.0, 100.0, 600.0), (263.15, 363.15), ((0.0, 0.0), (40.0, 15.0), (100.0, 40.0)))


def warm_engine(**values: Any) -> Driveline:
    d = Driveline("warming")
    d.add("engine", Engine3(J=0.5, wot=150.0, friction=FRICTION, auxiliaries=[[0, 0], [50, 3], [600, 3]], w0=200.0,
                            heat_ratio=0.9, friction_to_oil=0.4))  # fmt: skip
    d.add("load", QuadraticSpeedDependentTorque(tau_nominal=-60.0, w_nominal=200.0, TorqueDirection=False))
    d.add(
        "warm", WarmUpModel(T0=270.0, T_ambient=275.0, C_block=5e3, C_coolant=2e3, C_radiator=1e3, C_oil=1e3,
                            **{"G_block_coolant": 500.0, "G_block_oil": 150.0, **values})
    )  # fmt: skip
    d.connect("engine.flange", "load.flange")
    d.connect("engine.heatPort", "warm.heatPort")
    d.connect("engine.oil", "warm.oil")
    return d


def test_engine_and_warm_up_follow_their_differential_equations() -> None:
    """Against an independent integration of crankshaft and four temperatures, through the opening of the thermostat."""
    r = Simulation(warm_engine(), h=5e-3).run(90.0, inputs={"engine.pedal": 0.5, "warm.air": 0.5})

    def friction(w: float, T: float) -> float:
        cold, hot = (np.interp(w, FRICTION.x, [row[k] for row in FRICTION.z]) for k in (0, 1))
        return float(cold + (hot - cold) * np.clip((T - 263.15) / 100.0, 0.0, 1.0))

    def slope(_: float, x: np.ndarray) -> list[float]:
        w, block, coolant, radiator, oil = x
        indicated = 0.5 * (150.0 + friction(w, 363.15) + 3.0)
        rubbing = friction(w, oil)
        opening = np.interp(coolant, [364.15, 374.15], [0.01, 1.0])
        to_coolant, to_oil = 500.0 * (block - coolant), 150.0 * (block - oil)
        flow, air = 1500.0 * opening * (coolant - radiator), 700.0 * 0.5 * (radiator - 275.0)
        return [
            (indicated - rubbing - 3.0 - 60.0 * (w / 200.0) ** 2) / 0.5,
            (0.9 * indicated * w + 0.6 * rubbing * w - to_coolant - to_oil - 10.0 * (block - 275.0)) / 5e3,
            (to_coolant - flow) / 2e3,
            (flow - air) / 1e3,
            (0.4 * rubbing * w + to_oil - 20.0 * (oil - 275.0)) / 1e3,
        ]

    x = solve_ivp(slope, (0.0, 90.0), [200.0, 270.0, 270.0, 270.0, 270.0], t_eval=r.time, rtol=1e-10, atol=1e-9,
                  max_step=0.05).y  # fmt: skip
    names = ("engine.w", "warm.T_block", "warm.T_coolant", "warm.T_radiator", "warm.T_oil")
    assert x[2, -1] > 366.0, "the thermostat has opened"
    for name, expected in zip(names, x, strict=True):
        error = np.abs(r[name] - expected).max() / np.ptp(expected)
        # the step does not split at the breakpoints of the thermostat, which the radiator feels most
        assert error < (1e-4 if name == "warm.T_radiator" else 2e-5), (name, error)
    np.testing.assert_allclose(r["engine.T_oil"], r["warm.T_oil"])


def test_a_cold_engine_turns_slower_at_the_same_pedal() -> None:
    r = Simulation(warm_engine(), h=1e-2).run(120.0, inputs={"engine.pedal": 0.5})
    early, late = r["engine.w"][500], r["engine.w"][-1]
    assert late > early + 5.0
    assert -r["engine.tau_friction"][500] > -r["engine.tau_friction"][-1] > 0.0


def test_all_heat_is_accounted_for() -> None:
    """Stored heat + heat given to the surroundings = heat of combustion to the block + work of friction."""
    sim = Simulation(warm_engine(), h=1e-2)
    r = sim.run(100.0, inputs={"engine.pedal": 0.5, "warm.air": 0.5})
    gained = 0.9 * r["engine.work_indicated"][-1] - r["engine.work_friction"][-1]
    capacities = {"block": 5e3, "coolant": 2e3, "radiator": 1e3, "oil": 1e3}
    stored = sum(C * (r[f"warm.T_{n}"][-1] - 270.0) for n, C in capacities.items())
    lost = (
        350.0 * (r["warm.T_radiator"] - 275.0) + 10.0 * (r["warm.T_block"] - 275.0) + 20.0 * (r["warm.T_oil"] - 275.0)
    )
    assert stored + np.trapezoid(lost, r.time) == pytest.approx(gained, rel=1e-5)
    assert gained > 1e5


def test_supports_of_losses_may_be_the_housing() -> None:
    d = chain(("a", Inertia(J=1.0)), ("eff", GearEfficiency2(eta=0.9)), ("b", Inertia(J=1.0)))
    d.add("ground", Fixed())
    d.connect("ground.flange", "eff.support")
    plain = chain(("a", Inertia(J=1.0)), ("eff", GearEfficiency2(eta=0.9)), ("b", Inertia(J=1.0)))
    speeds = [Simulation(x, h=1e-3).run(0.5, inputs={"T_a.tau": 5.0})["b.w"][-1] for x in (d, plain)]
    assert speeds[0] == speeds[1]


def test_ratios_of_a_table_are_those_of_the_curve() -> None:
    ratios = Table1D((1.0, 2.0, 3.0), (3.0, 1.5, 1.0))
    d = chain(("a", Inertia(J=1.0)), ("gear", VariableGear(ratios=ratios)), ("b", Inertia(J=9.0)))
    r = Simulation(d, h=1e-3).run(2.0, inputs={"gear.gear": Ramp(height=2.0, duration=2.0, offset=1.0)})
    np.testing.assert_allclose(r["gear.ratio"], [ratios(g) for g in 1.0 + r.time], rtol=1e-9)


# --- fuel -----------------------------------------------------------------------------------------------------------
FUEL = Table2D((100.0, 300.0), (20.0, 100.0), ((10e3, 30e3), (25e3, 90e3)))
LOSSES = Table1D((0.0, 100.0, 300.0), (0.0, 20.0, 30.0))


def test_fuel_follows_the_map_and_goes_to_zero_with_the_indicated_torque() -> None:
    """At 200 rad/s: losses 25 Nm, lowest torque of the map 20 Nm, there (10 + 25)/2 kW."""
    indicated = np.array([85.0, 45.0, 22.5, 0.0, -5.0, 500.0])
    power = fuel_power(FUEL, LOSSES, np.full(6, 200.0), indicated)
    middle = (10e3 + 25e3 + 30e3 + 90e3) / 4
    np.testing.assert_allclose(power, [middle, 17.5e3, 17.5e3 * 22.5 / 45.0, 0.0, 0.0, 60e3])


def test_a_map_is_read_as_the_kernel_reads_it() -> None:
    x, y = np.array([50.0, 100.0, 300.0, 400.0, 150.0]), np.array([20.0, 60.0, 100.0, 500.0, 10.0])
    np.testing.assert_allclose(bilinear(FUEL, x, y), [10e3, 20e3, 90e3, 90e3, 13.75e3])


# --- the car on a cycle -----------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def first_cycle() -> tuple[Driveline, ControlledRun, Points]:
    """The first 195 s of the NEDC from a cold start (Otter, Dempsey, Schlegel 2000, application 1)."""
    d = load(CONFIGS / "examples" / "drive_cycle_car.toml")
    cycle = read_cycle(CONFIGS / "cycles" / "nedc.csv")
    return d, run_controlled(Simulation(d, h=1e-2, substeps=5), automatic_car(cycle), T=195.0, period=1e-2), cycle


@pytest.mark.proof
def test_the_driver_follows_the_cycle(first_cycle: tuple[Driveline, ControlledRun, Points]) -> None:
    _, run, cycle = first_cycle
    r = run.result
    wanted = cycle.sample(r.time)
    assert np.abs(r["car.v"] - wanted).max() < 0.75
    assert r["car.s"][-1] == pytest.approx(1014.6, rel=0.01), "length of an ECE-15 cycle"
    resting = (r.time > 30.0) & (r.time < 48.0)
    assert np.abs(r["car.v"][resting]).max() < 1e-9, "held on the brake against the creeping converter"
    assert np.all(run.commands["driver.accelerator"] * run.commands["driver.brake"] == 0.0)


def test_the_gearbox_uses_its_gears_without_hunting(first_cycle: tuple[Driveline, ControlledRun, Points]) -> None:
    _, run, _ = first_cycle
    gear = run.commands["gearbox.gear"]
    assert set(gear) == {1.0, 2.0, 3.0}
    assert np.count_nonzero(np.diff(gear)) <= 8
    assert np.diff(np.flatnonzero(np.diff(gear)) * 1e-2).min() >= 1.5 - 1e-9
    assert set(np.round(run.result["gearbox.ratio"][1:], 9)) >= {2.733, 1.562, 1.0}


def test_engine_idles_warms_up_and_is_cut_off_in_overrun(
    first_cycle: tuple[Driveline, ControlledRun, Points],
) -> None:
    d, run, _ = first_cycle
    r = run.result
    assert r["engine.w"].min() > 55.0, "it never stalls"
    cold, later = r["engine.tau_friction"][900], r["engine.tau_friction"][-500]
    assert cold < later < 0.0
    for name in ("T_block", "T_coolant", "T_oil"):
        assert 20.0 < r[f"warm_up.{name}"][-1] - 293.15 < 60.0
    cut = run.commands["fuel.fuel"] == 0.0
    assert 0.02 < cut.mean() < 0.3
    fuel = fuel_consumption(r, d, "engine")
    during = np.searchsorted(r.time, run.time[cut][5:] + 5e-3)
    assert np.median(fuel.rate[during]) == 0.0


def test_fuel_consumption_of_a_cold_urban_cycle_is_plausible(
    first_cycle: tuple[Driveline, ControlledRun, Points],
) -> None:
    """A 1.9 l petrol car with four-speed automatic: 10 to 14 l/100 km cold in town, 1.0 to 2.6 l/h at idle."""
    d, run, _ = first_cycle
    r = run.result
    fuel = fuel_consumption(r, d, "engine")
    assert 10.0 < fuel.per_100km(r["car.s"][-1]) < 14.0
    idle = fuel.rate[900] / fuel.density * 3600.0
    assert 1.0 < idle < 2.6
    work, heat = r["engine.work_indicated"][-1], float(fuel.mass[-1]) * 42.6e6
    assert 0.25 < work / heat < 0.42, "indicated efficiency"


def test_energy_of_the_cycle_closes(first_cycle: tuple[Driveline, ControlledRun, Points]) -> None:
    _, run, _ = first_cycle
    assert run.result.energy().relative_residual < 1e-6
    assert run.result["efficiency.loss"][-1] > 1e4


@pytest.mark.proof
def test_temperatures_and_heat_of_a_fast_cycle_are_those_of_real_engines() -> None:
    """US06 from 90 degC: petrol engines on the road have 85..100 degC in the coolant, 90..110 in the block, 85..115 in
    the oil; a quarter to two fifths of the fuel goes to coolant and oil, a quarter to a half to the exhaust (Heywood
    1988, table 12.1: 20 to 36 % and 34 to 45 % at full power)."""
    d = load(CONFIGS / "examples" / "drive_cycle_car.toml", {"components.warm_up.T0_K": 363.15})
    cycle = read_cycle(CONFIGS / "cycles" / "us06.csv")
    r = run_controlled(Simulation(d, h=2e-2, substeps=20), automatic_car(cycle), T=600.0, period=2e-2).result
    for name, low, high in (("block", 90.0, 110.0), ("coolant", 88.0, 100.0), ("oil", 90.0, 115.0)):
        assert low < r[f"warm_up.T_{name}"].max() - 273.15 < high, name
    fuel = float(fuel_consumption(r, d, "engine").mass[-1]) * 42.6e6
    surfaces = 10.0 * (r["warm_up.T_block"] - 293.15) + 20.0 * (r["warm_up.T_oil"] - 293.15)
    through = np.trapezoid(surfaces, r.time) + sum(
        C * (r[f"warm_up.T_{name}"][-1] - 363.15) for name, C in (("block", 50e3), ("coolant", 10.5e3), ("oil", 8e3))
    )
    opening = np.interp(r["warm_up.T_coolant"], [364.15, 374.15], [0.01, 1.0])
    cooled = through + np.trapezoid(1500.0 * opening * (r["warm_up.T_coolant"] - r["warm_up.T_radiator"]), r.time)
    shaft = float(np.trapezoid(
        (r["engine.tau_indicated"] + r["engine.tau_friction"] + r["engine.tau_auxiliaries"]) * r["engine.w"], r.time
    ))  # fmt: skip
    assert 0.25 < cooled / fuel < 0.42, "coolant, oil, surfaces of the engine"
    assert 0.25 < (fuel - shaft - cooled) / fuel < 0.50, "exhaust"
