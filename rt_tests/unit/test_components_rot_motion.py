"""Simulated motion of the components against closed formulas: sources, driven motions, ports, sensors, start values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rot_drive import drive, on_inertia, run

from torqueloop.core.components import (
    Accelerate,
    AngleToTorqueAdaptor,
    ConstantForce,
    ConstantSpeed,
    ConstantTorque,
    Disc,
    EddyCurrentTorque,
    Fixed,
    Force2,
    GeneralAngleToTorqueAdaptor,
    GeneralTorqueToAngleAdaptor,
    IdealGear,
    IdealGearR2T,
    Inertia,
    InitializeFlange,
    InverseSpeedDependentTorque,
    LinearSpeedDependentTorque,
    Mass,
    Move,
    MultiSensor,
    Position,
    RelativeStates,
    Rod,
    SignTorque,
    Speed,
    Spring,
    SupportFriction,
    Torque,
    Torque2,
    TorqueToAngleAdaptor,
    TranslationalConstantSpeed,
    TranslationalPosition,
    TranslationalPowerSensor,
    TranslationalSpeed,
    TranslationalSpring,
)
from torqueloop.core.signals import Sine, Step

PI = math.pi


def test_two_shafts_share_a_torque_between_them() -> None:
    d = drive(("a.flange_b", "x.flange_a"), ("x.flange_b", "b.flange_a"), a=Inertia(J=1), b=Inertia(J=2), x=Torque2())
    r = run(d, 1.0, x__tau=3.0)
    assert (r["a.w"][-1], r["b.w"][-1]) == pytest.approx((-3.0, 1.5))
    assert r["x.work"][-1] == pytest.approx(r["energy.kinetic"][-1])


def test_a_force_moves_two_masses_apart() -> None:
    d = drive(("a.flange_b", "x.flange_a"), ("x.flange_b", "b.flange_a"), a=Mass(m=1), b=Mass(m=2), x=Force2())
    r = run(d, 1.0, x__f=3.0)
    assert (r["a.v"][-1], r["b.v"][-1]) == pytest.approx((-3.0, 1.5))


@pytest.mark.parametrize(("sense", "w0"), [(False, 5.0), (False, -5.0), (True, 5.0)])
def test_a_linear_load_brakes_exponentially(sense: bool, w0: float) -> None:
    load = LinearSpeedDependentTorque(tau_nominal=-4.0, w_nominal=2.0, TorqueDirection=sense)
    r = run(on_inertia(0.5, load, w0=w0), 1.0)
    assert r["J.w"] == pytest.approx(w0 * np.exp(-4.0 * r.time), rel=1e-5)
    assert r["x.work"][-1] == pytest.approx(0.25 * (r["J.w"][-1] ** 2 - w0**2), rel=1e-6)


def test_a_linear_load_of_one_sense_drives_backward_motion_on() -> None:
    load = LinearSpeedDependentTorque(tau_nominal=-4.0, w_nominal=2.0, TorqueDirection=True)
    r = run(on_inertia(0.5, load, w0=-5.0), 0.5)
    assert r["J.w"] == pytest.approx(-5.0 * np.exp(4.0 * r.time), rel=3e-6)


def test_an_inverse_load_takes_constant_power() -> None:
    load = InverseSpeedDependentTorque(tau_nominal=-3.0, w_nominal=4.0, w0=0.1)
    r = run(on_inertia(0.5, load, w0=8.0), 1.0)
    assert r["J.w"] == pytest.approx(np.sqrt(64.0 - 2.0 * 12.0 / 0.5 * r.time), rel=1e-5)


def test_a_sign_load_is_constant_and_then_linear() -> None:
    load = SignTorque(tau_nominal=-2.0, reg="Linear", w0=0.4)
    r = run(on_inertia(0.5, load, w0=4.4), 1.5)
    first = r.time <= 1.0
    assert r["J.w"][first] == pytest.approx(4.4 - 4.0 * r.time[first], abs=1e-6)
    assert r["J.w"][~first] == pytest.approx(0.4 * np.exp(-10.0 * (r.time[~first] - 1.0)), abs=1e-5)


def test_an_eddy_current_brake_follows_its_closed_formula() -> None:
    tau, wn, J, w0 = 100.0, 10.0, 1.0, 20.0
    d = on_inertia(J, EddyCurrentTorque(tau_nominal=tau, w_nominal=wn), w0=w0)
    r = run(d, 1.0)
    x = r["J.w"] / wn
    # J*wn*(1 + x^2)/x dx = -2*tau dt
    left = np.log(x / 2.0) + (x**2 - 4.0) / 2.0
    error_of_x = (left + 2.0 * tau * r.time / (J * wn)) * x / (1.0 + x**2)
    assert np.max(np.abs(error_of_x)) < 1e-5
    assert r["x.heat"][-1] == pytest.approx(0.5 * J * (w0**2 - r["J.w"][-1] ** 2), rel=1e-6)
    assert r["x.lossPower"] == pytest.approx(r["x.tau"] * r["J.w"], rel=1e-5)
    assert r["x.tau"] == pytest.approx(2 * tau * x / (1 + x**2), rel=1e-5)


@pytest.mark.parametrize("order", [2, 4])
def test_a_forced_acceleration_is_followed_whatever_the_load(order: int) -> None:
    d = drive(("J.flange_b", "x.flange", "load.flange"), J=Inertia(J=2.0), x=Accelerate(w0=1.0, phi0=0.5),
              load=ConstantTorque(tau_constant=-7.0), order=order)  # fmt: skip
    r = run(d, 1.0, x__a_ref=3.0)
    assert r["J.w"] == pytest.approx(1.0 + 3.0 * r.time)
    assert r["J.phi"] == pytest.approx(0.5 + r.time + 1.5 * r.time**2)
    assert r["x.tau"][1:] == pytest.approx(np.full(len(r.time) - 1, 13.0))
    assert r["x.work"][-1] == pytest.approx(13.0 * 2.5)


def test_an_exact_speed_takes_the_torque_of_its_derivative() -> None:
    r = run(on_inertia(0.5, Speed(exact=True)), 0.5, x__w_ref=Sine(amplitude=4.0, f=3.0, offset=1.0))
    w = 2 * PI * 3.0
    assert r["J.w"] == pytest.approx(1.0 + 4.0 * np.sin(w * r.time), abs=1e-9)
    assert r["x.tau"][1:] == pytest.approx(0.5 * 4.0 * w * np.cos(w * r.time[1:]), abs=1e-6)
    assert r["J.phi"][-1] == pytest.approx(0.5 + 4.0 / w * (1.0 - math.cos(w * 0.5)), abs=1e-6)


def test_an_exact_position_is_where_its_input_is() -> None:
    r = run(on_inertia(0.5, Position(exact=True)), 0.5, x__phi_ref=Sine(amplitude=0.2, f=3.0, offset=0.3))
    w = 2 * PI * 3.0
    assert r["J.phi"] == pytest.approx(0.3 + 0.2 * np.sin(w * r.time), abs=1e-9)
    assert r["J.w"] == pytest.approx(0.2 * w * np.cos(w * r.time), abs=1e-6)
    assert r["x.tau"][1:] == pytest.approx(-0.5 * 0.2 * w**2 * np.sin(w * r.time[1:]), abs=1e-4)


def test_a_move_takes_position_speed_and_acceleration() -> None:
    r = run(on_inertia(2.0, Move()), 0.5, x__phi=lambda t: 1.0 + t**2, x__w=lambda t: 2.0 * t, x__a=2.0)
    assert r["J.phi"] == pytest.approx(1.0 + r.time**2, abs=1e-9)
    assert r["x.tau"][1:] == pytest.approx(np.full(len(r.time) - 1, 4.0))


def test_a_filtered_speed_is_a_first_order_lag() -> None:
    w_ref, wc = Step(height=2.0, startTime=0.05), 2 * PI * 5.0
    r, fine = (run(on_inertia(0.5, Speed(f_crit=5.0)), 0.3, substeps=n, x__w_ref=w_ref) for n in (1, 4))
    expected = 2.0 * (1.0 - np.exp(-wc * np.maximum(r.time - 0.05, 0.0)))
    assert r["J.w"] == pytest.approx(expected, abs=2e-4)
    assert fine["J.w"] == pytest.approx(expected, abs=2e-5)


def test_a_filtered_position_is_a_bessel_filter() -> None:
    r = run(on_inertia(0.5, Position(f_crit=5.0)), 0.3, substeps=4, x__phi_ref=Step(height=2.0, startTime=0.05))
    wc, af, bf = 2 * PI * 5.0, 1.3617, 0.6180
    # phi'' + af*wc/bf*phi' + wc^2/bf*phi = wc^2/bf*phi_ref
    damping, natural = af * wc / (2 * bf), wc / math.sqrt(bf)
    wd = math.sqrt(natural**2 - damping**2)
    t = np.maximum(r.time - 0.05, 0.0)
    decay = np.exp(-damping * t) * (np.cos(wd * t) + damping / wd * np.sin(wd * t))
    assert r["J.phi"] == pytest.approx(2.0 * (1.0 - decay), abs=1e-4)


@pytest.mark.parametrize("order", [2, 4])
def test_filters_start_at_their_input(order: int) -> None:
    """As the initial equations of Modelica: w = w_ref, phi = phi_ref; a constant input is then held without torque."""
    speed = drive(("J.flange_b", "x.flange"), J=Inertia(J=0.5), x=Speed(f_crit=5.0), order=order)
    r = run(speed, 0.2, x__w_ref=3.0)
    assert r["J.w"] == pytest.approx(np.full(201, 3.0), abs=1e-12)
    assert r["x.tau"][1:] == pytest.approx(np.zeros(200), abs=1e-9)
    assert r["J.phi"] == pytest.approx(3.0 * r.time, abs=1e-12)
    position = drive(("J.flange_b", "x.flange"), J=Inertia(J=0.5), x=Position(f_crit=5.0), order=order)
    r = run(position, 0.2, x__phi_ref=-2.0)
    assert r["J.phi"] == pytest.approx(np.full(201, -2.0), abs=1e-12)
    assert r["x.tau"][1:] == pytest.approx(np.zeros(200), abs=1e-9)


def test_a_filtered_rod_starts_at_its_input() -> None:
    rods = ((TranslationalSpeed(f_crit=5.0), "v_ref", "m.v"), (TranslationalPosition(f_crit=5.0), "s_ref", "m.s"))
    for kind, reference, motion in rods:
        r = run(drive(("m.flange_b", "x.flange"), m=Mass(m=2.0), x=kind), 0.1, **{f"x__{reference}": 0.75})
        assert r[motion] == pytest.approx(np.full(101, 0.75), abs=1e-12)


def test_a_filtered_position_keeps_the_start_speed_of_its_flange() -> None:
    """phi_ref = 1 + 2*t with w0 = 2: the speed is right at once, the angle falls behind by af/wc*w = 0.0867 rad."""
    r = run(on_inertia(0.5, Position(f_crit=5.0), w0=2.0), 1.0, x__phi_ref=lambda t: 1.0 + 2.0 * t)
    assert (r["J.w"][0], r["J.phi"][0]) == pytest.approx((2.0, 1.0), abs=1e-12)
    lag = 1.0 + 2.0 * r.time[-1] - r["J.phi"][-1]
    assert lag == pytest.approx(2.0 * 1.3617 / (2 * PI * 5.0), rel=1e-4)


def test_a_constant_speed_holds_against_any_load() -> None:
    d = drive(("J.flange_b", "x.flange", "t.flange"), J=Inertia(J=1.0), x=ConstantSpeed(w_fixed=6.0), t=Torque())
    r = run(d, 0.5, t__tau=Step(height=-50.0, startTime=0.25))
    assert r["J.w"] == pytest.approx(np.full(len(r.time), 6.0), abs=1e-12)
    assert r["x.tau"][-1] == pytest.approx(50.0)
    assert r["x.work"][-1] + r["t.work"][-1] == pytest.approx(0.0, abs=1e-9)


def test_a_driven_support_carries_the_flange_along() -> None:
    d = drive(("rail.flange_a", "v.flange", "x.support"), ("x.flange", "m.flange_a"), rail=Mass(m=1.0), m=Mass(m=3.0),
              v=TranslationalConstantSpeed(v_fixed=2.0), x=TranslationalConstantSpeed(v_fixed=0.5))  # fmt: skip
    r = run(d, 0.1)
    assert (r["m.v"][-1], r["rail.v"][-1]) == pytest.approx((2.5, 2.0))


@pytest.mark.parametrize(
    ("far", "near", "signals"),
    [
        (AngleToTorqueAdaptor(), TorqueToAngleAdaptor(), ("phi", "w", "a", "tau")),
        (GeneralAngleToTorqueAdaptor(), GeneralTorqueToAngleAdaptor(), ("p", "pder", "pder2", "f")),
    ],
)
def test_the_two_sides_of_a_cut_fit_each_other(far: object, near: object, signals: tuple[str, ...]) -> None:
    """A driven inertia cut in two: what one side says makes the other behave as the whole does."""
    t = Sine(amplitude=10.0, f=2.0)
    whole = run(on_inertia(3.3, Torque()), 0.5, x__tau=t)
    w, k = 2 * PI * 2.0, 10.0 / 3.3
    motion = (lambda s: k / w * (s - math.sin(w * s) / w), lambda s: k / w * (1 - math.cos(w * s)),
              lambda s: k * math.sin(w * s))  # fmt: skip
    inputs = {f"x__{name}": f for name, f in zip(signals, motion, strict=False)}
    behind = run(on_inertia(2.2, far), 0.5, **inputs)
    torque = behind[f"x.{signals[3]}"]
    assert torque[1:] == pytest.approx(2.2 * k * np.sin(w * behind.time[1:]), abs=1e-6), "needed to move it"
    d = drive(("J.flange_b", "x.flange", "t.flange"), J=Inertia(J=1.1), x=near, t=Torque())
    before = run(d, 0.5, t__tau=t, **{f"x__{signals[3]}": lambda s: 2.2 * k * math.sin(w * s)})
    assert before[f"x.{signals[1]}"] == pytest.approx(whole["J.w"], abs=1e-9)
    assert before[f"x.{signals[0]}"] == pytest.approx(whole["J.phi"], abs=1e-9)
    assert before[f"x.{signals[2]}"][1:] == pytest.approx(whole["J.a"][1:], abs=1e-9)


def test_an_adaptor_may_differentiate_its_angle() -> None:
    d = on_inertia(2.0, AngleToTorqueAdaptor(use_w=False, use_a=False))
    r = run(d, 0.25, x__phi=Sine(amplitude=0.1, f=2.0))
    w = 4 * PI
    assert r["x.tau"][1:] == pytest.approx(-2.0 * 0.1 * w**2 * np.sin(w * r.time[1:]), abs=1e-4)


def test_a_sensor_in_a_shaft_reads_torque_and_speed_and_changes_nothing() -> None:
    d = drive(("t.flange", "a.flange_a"), ("a.flange_b", "x.flange_a"), ("x.flange_b", "b.flange_a"),
              a=Inertia(J=1), b=Inertia(J=2), x=MultiSensor(), t=Torque())  # fmt: skip
    r = run(d, 0.5, t__tau=Sine(amplitude=6.0, f=1.0))
    assert r["x.tau"] == pytest.approx(4.0 * np.sin(2 * PI * r.time), abs=1e-9)
    assert r["x.w"] == pytest.approx(r["b.w"])
    power = r["x.power"]
    assert power == pytest.approx(r["x.tau"] * r["x.w"], abs=1e-12) and power.max() > 1.0
    assert r.units["x.power"] == "W"
    assert np.sum((power[1:] + power[:-1]) / 2) * 1e-3 == pytest.approx(r["b.w"][-1] ** 2, rel=1e-4)


def test_power_through_a_rod_is_force_times_speed() -> None:
    """10 N on 4 kg, of which 3 kg are behind the sensor: f = 7.5 N, v = 2.5*t."""
    d = drive(("t.flange", "a.flange_a"), ("a.flange_b", "x.flange_a"), ("x.flange_b", "b.flange_a"),
              a=Mass(m=1), b=Mass(m=3), x=TranslationalPowerSensor(), t=ConstantForce(f_constant=10.0))  # fmt: skip
    r = run(d, 0.5)
    assert r["x.power"] == pytest.approx(7.5 * 2.5 * r.time)


def test_start_values_at_flanges_and_between_them() -> None:
    d = drive(("a.flange_b", "s.flange_a", "i.flange", "rel.flange_a"), ("s.flange_b", "b.flange_a", "rel.flange_b"),
              a=Inertia(J=1), b=Inertia(J=1), s=Spring(c=1e-6), i=InitializeFlange(phi_start=0.5, w_start=3.0),
              rel=RelativeStates(phi_rel0=0.25, w_rel0=-1.0))  # fmt: skip
    r = run(d, 0.002)
    assert (r["a.phi"][0], r["a.w"][0], r["b.phi"][0], r["b.w"][0]) == pytest.approx((0.5, 3.0, 0.75, 2.0))
    assert r["rel.a_rel"][0] == pytest.approx(-2e-6 * 0.25)


def test_rigid_joints_keep_their_offsets() -> None:
    d = drive(("a.flange_b", "x.flange_a"), ("x.flange_b", "b.flange_a"), a=Inertia(J=1, phi0=0.1), b=Inertia(J=1),
              x=Disc(deltaPhi=0.5), m=Mass(m=1, s0=1.0), rod=Rod(L=0.75), n=Mass(m=1))  # fmt: skip
    d.connect("m.centre", "rod.flange_a")
    d.connect("rod.flange_b", "n.centre")
    r = run(d, 0.002)
    assert (r["b.phi"][0], r["n.s"][0]) == pytest.approx((0.6, 1.75))


def test_a_rack_turns_torque_into_force() -> None:
    d = drive(("t.flange", "J.flange_a"), ("J.flange_b", "x.flangeR"), ("x.flangeT", "m.flange_a"),
              t=ConstantTorque(tau_constant=6.0), J=Inertia(J=0.5), x=IdealGearR2T(ratio=4), m=Mass(m=2.0))  # fmt: skip
    r = run(d, 1.0)
    # w = 4*v: (0.5*16 + 2)*v' = 4*6
    assert (r["m.v"][-1], r["J.w"][-1]) == pytest.approx((2.4, 9.6))


def test_a_supported_gear_turns_its_housing() -> None:
    """Torques on shafts and housing sum to zero: the angular momentum of all that turns stays constant."""
    d = drive(("t.flange", "a.flange_a"), ("a.flange_b", "x.flange_a"), ("x.flange_b", "b.flange_a"),
              ("x.support", "t.support", "h.flange_a"), a=Inertia(J=1), b=Inertia(J=2), h=Inertia(J=5),
              x=IdealGear(ratio=3), t=ConstantTorque(tau_constant=4.0))  # fmt: skip
    r = run(d, 1.0)
    assert r["a.w"] + 2 * r["b.w"] + 5 * r["h.w"] == pytest.approx(np.zeros(len(r.time)), abs=1e-9)
    assert r["a.w"] - r["h.w"] == pytest.approx(3 * (r["b.w"] - r["h.w"]))
    assert abs(r["h.w"][-1]) > 0.1


def test_a_mass_on_a_spring_rubs_to_rest_where_friction_holds_it() -> None:
    m, c, f = 2.0, 50.0, 3.0
    d = drive(("wall.flange", "s.flange_a"), ("s.flange_b", "m.flange_a"), ("m.flange_b", "x.flange_a"),
              wall=Fixed(), s=TranslationalSpring(c=c), m=Mass(m=m, s0=0.4), x=SupportFriction(f_pos=f))  # fmt: skip
    r = run(d, 3.0)
    # every half swing loses 2*f/c of amplitude
    half = PI * math.sqrt(m / c)
    k = round(half / 1e-3)
    assert r["m.s"][k] == pytest.approx(-(0.4 - 2 * f / c), abs=1e-5)
    assert r["m.v"][-1] == 0.0 and abs(r["m.s"][-1]) <= f / c + 1e-9
    assert r["x.heat"][-1] == pytest.approx(0.5 * c * (0.4**2 - r["m.s"][-1] ** 2), rel=1e-6)
    assert r["x.lossPower"] == pytest.approx(np.abs(r["x.f"] * r["m.v"]))


def test_a_constant_force_accelerates() -> None:
    d = drive(("x.flange", "m.flange_a"), x=ConstantForce(f_constant=3.0), m=Mass(m=2.0))
    assert run(d, 1.0)["m.s"][-1] == pytest.approx(0.75)
