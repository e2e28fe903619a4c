"""Shafts with universal and constant-velocity joints: kinematics and couples against the geometry of the cross, motion
against independent integrations of rigid and elastic shafts, orders, energy, checkpoints, what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from torqueloop.core.components import (
    Clutch,
    ConstantSpeed,
    ConstantVelocityJoint,
    Fixed,
    Inertia,
    JointShaft,
    LaminarClutch,
    SpringDamper,
    Torque,
    UniversalJoint,
)
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import RangeError, SimulationError
from torqueloop.core.signals import Constant, Sine, Step, Table
from torqueloop.core.simulate.offline import Simulation

integrate = pytest.importorskip("scipy.integrate", reason="the reference needs SciPy (extra `dev`)")

Array = NDArray[np.float64]
JA, JB, W0 = 0.02, 0.05, 40.0
MOTOR = Sine(amplitude=3.0, f=1.3)


def motor(t: float) -> float:
    return 3.0 * math.sin(2.0 * math.pi * 1.3 * t)


def between(shaft: Component, order: int | str = "auto", Ja: float = JA, Jb: float = JB, wa: float = W0,
            wb: float = W0) -> Driveline:  # fmt: skip
    """A torque on an inertia, the shaft, an inertia."""
    d = Driveline("shaft", order=order)
    for name, part in (("a", Inertia(J=Ja, phi0=0.0, w0=wa)), ("b", Inertia(J=Jb, phi0=0.0, w0=wb)), ("t", Torque())):
        d.add(name, part)
    d.add("u", shaft)
    d.connect("t.flange", "a.flange_a")
    d.connect("a.flange_b", "u.flange_a")
    d.connect("u.flange_b", "b.flange_a")
    return d


def cross(x: float, beta: float) -> tuple[float, Array, Array, Array]:
    """A universal joint from its geometry alone: shafts n_a, n_b in the plane z = 0, pins square to their shafts and to
    each other. y of the pin of b, the normal of the cross, and both directions."""
    n_a, n_b = np.array([1.0, 0.0, 0.0]), np.array([math.cos(beta), math.sin(beta), 0.0])
    normal = np.array([0.0, 0.0, 1.0]) * (1.0 if beta >= 0.0 else -1.0)
    pin_a = -math.sin(x) * normal + math.cos(x) * np.cross(n_a, normal)
    pin_b = np.cross(n_b, pin_a)
    pin_b /= np.linalg.norm(pin_b)
    # the pin of b is a quarter turn ahead of y, from the plane
    y = math.atan2(pin_b @ np.cross(n_b, normal), pin_b @ normal)
    plane = np.cross(pin_a, pin_b)
    return y, plane / np.linalg.norm(plane), n_a, n_b


@pytest.mark.parametrize("w", [30.0, -30.0])
@pytest.mark.parametrize("beta_deg", [5.0, 15.0, 30.0, 60.0])
def test_angle_and_ratio_are_those_of_the_cross(beta_deg: float, w: float) -> None:
    """Over 14 turns either way: the branch stays right. The ratio to 1e-9 of its closed form."""
    beta = math.radians(beta_deg)
    d = Driveline("kinematics")
    d.add("drive", ConstantSpeed(w_fixed=w))
    d.add("u", UniversalJoint(c=1e6, d=10.0, beta=beta, theta=0.3))
    d.add("b", Inertia(J=1e-4, phi0=0.0, w0=w))
    d.connect("drive.flange", "u.flange_a")
    d.connect("u.flange_b", "b.flange_a")
    run = Simulation(d, h=1e-3).run(3.0)
    x = w * np.asarray(run.time) + 0.3
    cos2 = np.cos(x) ** 2
    np.testing.assert_allclose(run["u.ratio"], math.cos(beta) / (1.0 - math.sin(beta) ** 2 * cos2), rtol=1e-9)
    y = np.unwrap([cross(float(v), beta)[0] for v in x], period=math.pi)
    passed = np.asarray(run["b.phi"]) + np.asarray(run["u.twist"])
    np.testing.assert_allclose(passed - passed[0], y - y[0], atol=1e-9)


def test_the_couples_are_those_along_the_normal_of_the_cross() -> None:
    """The joint gives tau_a along shaft a and nothing about its pins: its couple is along the normal of the cross."""
    beta = 0.4
    d = between(JointShaft(c=1e4, d=5.0, beta_a=beta, beta_b=beta, theta=0.2, length=0.5), wb=W0)
    sim = Simulation(d, h=1e-3)
    sim.set_input("t.tau", 20.0)
    run = sim.run(0.3)
    for k in range(5, 300, 17):
        x, torque = float(run["a.phi"][k]) + 0.2, float(run["u.tau"][k]) * float(run["u.ratio_a"][k])
        _, plane, n_a, n_s = cross(x, beta)
        couple = plane * torque / (plane @ n_a)  # on the shaft in the middle
        assert couple @ n_s == pytest.approx(float(run["u.tau"][k]), rel=1e-9)
        normal = np.array([0.0, 0.0, 1.0])
        on_a = -(couple - torque * n_a)
        assert run["u.ma_n"][k] == pytest.approx(on_a @ normal, abs=1e-9)
        assert run["u.ma_p"][k] == pytest.approx(on_a @ np.cross(n_a, normal), abs=1e-9)
        # joint b: its plane is that of a, bent the same way; the shaft between has no other force than at its joints
        xs = cross(x, beta)[0] + math.pi / 2 - float(run["u.twist"][k])
        _, plane_b, s, n_b = cross(xs, beta)
        couple_b = plane_b * float(run["u.tau"][k]) / (plane_b @ s)
        on_b = couple_b - (couple_b @ n_b) * n_b
        assert run["u.mb_n"][k] == pytest.approx(on_b @ normal, abs=1e-6)
        assert run["u.mb_p"][k] == pytest.approx(on_b @ np.cross(n_b, normal), abs=1e-6)
        # along the shaft as x in both pictures
        turned = np.array([[n_s[0], n_s[1], 0.0], [-n_s[1], n_s[0], 0.0], [0.0, 0.0, 1.0]])
        force = np.cross(s, turned @ couple - couple_b) / 0.5
        assert run["u.f_n"][k] == pytest.approx(force @ normal, abs=1e-6)
        assert run["u.f_p"][k] == pytest.approx(force @ np.cross(s, normal), abs=1e-6)


def rigid(beta: float, t: Array, wa: float = W0) -> Array:
    """(J_a + J_b g^2) phi'' + J_b g g' phi'^2 = torque: a rigid universal joint; phi, w of a."""
    cos, sin2 = math.cos(beta), math.sin(beta) ** 2

    def rates(now: float, y: Array) -> list[float]:
        s, c = math.sin(y[0]), math.cos(y[0])
        size = 1.0 - sin2 * c * c
        g, dg = cos / size, -2.0 * cos * sin2 * s * c / size**2
        return [y[1], (motor(now) - JB * g * dg * y[1] ** 2) / (JA + JB * g * g)]

    found = integrate.solve_ivp(rates, (0.0, t[-1]), [0.0, wa], method="DOP853", rtol=1e-11, atol=1e-11, t_eval=t)
    return np.asarray(found.y)


def elastic(beta: float, c: float, d: float, t: Array) -> Array:
    """The same with a spring and a damper behind the joint; phi_a, phi_b, w_a, w_b."""
    cos, sin2 = math.cos(beta), math.sin(beta) ** 2

    def rates(now: float, y: Array) -> list[float]:
        s, co = math.sin(y[0]), math.cos(y[0])
        g = cos / (1.0 - sin2 * co * co)
        passed = math.atan2(s, co * cos)
        passed += 2.0 * math.pi * round((y[0] - passed) / (2.0 * math.pi))
        tau = c * (passed - y[1]) + d * (g * y[2] - y[3])
        return [y[2], y[3], (motor(now) - tau * g) / JA, tau / JB]

    start = [0.0, 0.0, W0, W0 / cos]
    return np.asarray(
        integrate.solve_ivp(rates, (0.0, t[-1]), start, method="DOP853", rtol=1e-11, atol=1e-11, t_eval=t).y
    )


def run_of(beta: float, c: float, d: float, h: float, order: int) -> Any:
    sim = Simulation(between(UniversalJoint(c=c, d=d, beta=beta), order, wb=W0 / math.cos(beta)), h=h)
    return sim.run(0.4, {"t.tau": MOTOR})


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("beta_deg", [5.0, 30.0])
def test_the_order_is_the_one_asked_for(beta_deg: float, order: int) -> None:
    beta, errors = math.radians(beta_deg), []
    for h in (2e-3, 1e-3, 5e-4):
        run = run_of(beta, 2000.0, 0.5, h, order)
        errors.append(np.abs(run["b.w"] - elastic(beta, 2000.0, 0.5, np.asarray(run.time))[3]).max())
    assert math.log2(errors[0] / errors[1]) > order - 0.25 and math.log2(errors[1] / errors[2]) > order - 0.1, errors


@pytest.mark.parametrize(("beta_deg", "allowed"), [(5.0, 4e-6), (15.0, 3e-5), (30.0, 2e-4)])
def test_the_ripple_is_that_of_a_rigid_joint(beta_deg: float, allowed: float) -> None:
    """At 40 rad/s with c = 1e7 Nm/rad, which steps of 1 ms do not resolve (50 times)."""
    beta = math.radians(beta_deg)
    run = run_of(beta, 1e7, 400.0, 1e-3, 4)
    assert np.abs(run["a.w"] - rigid(beta, np.asarray(run.time))[1]).max() < allowed
    assert run.counters["refused"] == run.counters["steep_unsolved"] == 0


def test_two_joints_cancel_out_or_add_up() -> None:
    """Equal bends in one plane: constant speed with the forks in line, ratio cos^2 .. 1/cos^2 with forks across."""
    beta = math.radians(20.0)
    for phase, least in ((0.0, 1.0), (math.pi / 2, math.cos(beta) ** 2)):
        shaft = JointShaft(c=1e6, d=20.0, beta_a=beta, beta_b=beta, phase=phase, theta=0.1)
        run = Simulation(between(shaft, 4, Ja=10.0, Jb=1e-4), h=1e-3).run(0.5)
        ratio = np.asarray(run["u.ratio_a"]) * np.asarray(run["u.ratio_b"])
        assert ratio.min() == pytest.approx(least, abs=2e-4) and ratio.max() == pytest.approx(1.0 / least, abs=3e-4)
    # planes at an angle, forks turned by it, too: the same as one plane with forks in line
    shaft = JointShaft(c=1e6, d=20.0, beta_a=beta, beta_b=beta, phase=0.6, planes=0.6)
    run = Simulation(between(shaft, 4, Ja=10.0, Jb=1e-4), h=1e-3).run(0.5)
    np.testing.assert_allclose(np.asarray(run["u.ratio_a"]) * np.asarray(run["u.ratio_b"]), 1.0, atol=1e-6)


def test_joints_of_constant_velocity_pass_the_speed_as_it_is() -> None:
    kind = "constant_velocity"
    shaft = JointShaft(c=1e4, d=5.0, beta_a=0.5, beta_b=0.2, joint_a=kind, joint_b=kind)
    plain, joints = (Simulation(between(s), h=1e-3) for s in (SpringDamper(c=1e4, d=5.0), shaft))
    one, other = plain.run(0.2, {"t.tau": MOTOR}), joints.run(0.2, {"t.tau": MOTOR})
    # equal but for modes that decay within a step: those of springs and dampers are corrected, those of joints are not
    np.testing.assert_allclose(one["b.w"], other["b.w"], rtol=5e-8)
    np.testing.assert_allclose(other["u.ma_p"], np.asarray(other["u.tau"]) * math.tan(0.25), rtol=1e-12)
    run = Simulation(between(ConstantVelocityJoint(beta=0.5)), h=1e-3).run(0.2, {"t.tau": 7.0})
    assert run["b.a"][50] == pytest.approx(7.0 / (JA + JB)) and run["u.tau"][50] == pytest.approx(7.0 * JB / (JA + JB))
    assert run["u.m_p"][50] == pytest.approx(run["u.tau"][50] * math.tan(0.25))


def closure(sim: Simulation, before: dict[str, Any]) -> float:
    """What the books do not close by, of the energy turned over."""
    now = sim.state.energies
    total = {k: float(np.sum(now[k])) - float(np.sum(before[k])) for k in now}
    taken = sum(total[k] for k in ("torque", "joint", "driven"))
    kept = sum(total[k] for k in ("kinetic", "potential", "friction", "damper"))
    return abs(taken - kept) / max(sum(abs(v) for v in total.values()), abs(before["kinetic"]))


#: name: shaft, inertias, speeds, torque, largest part of the energy that is lost or made
ENERGY: dict[str, tuple[Component, dict[str, float], Any, float]] = {
    "resolved": (UniversalJoint(c=2e3, d=0.5, beta=0.5), {}, MOTOR, 2e-6),
    "stiff": (UniversalJoint(c=1e8, d=40.0, beta=0.5), {}, MOTOR, 1e-4),
    "reversals": (JointShaft(c=5e4, d=2.0, beta_a=0.4, beta_b=0.3), {"wa": 2.0, "wb": 2.0},
                  Sine(amplitude=4.0, f=3.0), 2e-5),
    "a million to one": (JointShaft(c=1e4, d=0.2, beta_a=0.3, beta_b=0.3), {"Ja": 50.0, "Jb": 5e-5}, 30.0, 1e-6),
}  # fmt: skip


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("name", ENERGY)
def test_energy_is_neither_lost_nor_made(name: str, order: int) -> None:
    shaft, values, torque, allowed = ENERGY[name]
    beta = getattr(shaft, "beta", 0.0)
    values = values or {"wb": W0 / math.cos(beta)}
    sim = Simulation(between(shaft, order, **values), h=1e-3)
    sim.set_input("t.tau", torque)
    sim.run(1e-3)
    before = sim.state.energies
    sim.run(1.0)
    assert closure(sim, before) < (allowed if order == 4 else 500 * allowed)
    assert sim.state.counters["steep_unsolved"] == 0


@pytest.mark.parametrize(("c", "allowed"), [(2e3, 1e-6), (1e6, 5e-6)])
def test_a_clutch_beside_sticks_and_slides_as_it_should(c: float, allowed: float) -> None:
    d = between(JointShaft(c=c, d=1e-4 * c, beta_a=0.35, beta_b=0.2, theta=0.4), 4, wa=0.0, wb=0.0)
    d.add("k", Clutch(fn_max=40.0, mue_pos=0.5, peak=1.1))
    d.add("load", Inertia(J=0.3, w0=30.0))
    d.connect("b.flange_b", "k.flange_a")
    d.connect("k.flange_b", "load.flange_a")
    sim = Simulation(d, h=1e-3)
    sim.set_input("t.tau", Sine(amplitude=30.0, f=2.5))
    sim.set_input("k.f_normalized", Step(height=-0.9, startTime=0.6, offset=1.0))
    before = sim.state.energies
    run = sim.run(1.5)
    assert sim.state.counters["events"] > 5 and set(np.unique(run["k.mode"])) >= {0.0, 1.0}
    assert closure(sim, before) < allowed and sim.state.energies["friction"].min() > 0.0


@pytest.mark.parametrize("order", [2, 4])
def test_the_order_is_kept_behind_a_clutch_whose_pressure_is_ramped(order: int) -> None:
    """A turning mass, plates pressed up over a lag and against a return spring, a bent joint, a shaft."""
    beta, c, d, J, T = math.radians(20.0), 2000.0, 0.5, 0.3, 0.08
    area, cgeo, mue, back, lag = 0.01, 0.1, 0.1, 0.5e5, 8e-3
    breaks, levels = (0.01, 0.06), (0.0, 4e5)
    cos, sin2 = math.cos(beta), math.sin(beta) ** 2

    def rates(now: float, y: Array) -> list[float]:
        load, qa, qb, wa, wb, p = y
        s, co = math.sin(qa), math.cos(qa)
        g = cos / (1.0 - sin2 * co * co)
        passed = math.atan2(s, co * cos)
        passed += 2.0 * math.pi * round((qa - passed) / (2.0 * math.pi))
        tau = c * (passed - qb) + d * (g * wa - wb)
        pressed = cgeo * mue * area * max(0.0, p - back)
        return [
            -pressed / J,
            wa,
            wb,
            (pressed - tau * g) / JA,
            tau / JB,
            (float(np.interp(now, breaks, levels)) - p) / lag,
        ]

    def pressed_up(now: float, y: Array) -> float:
        return float(y[5]) - back

    pressed_up.terminal, pressed_up.direction = True, 1.0  # type: ignore[attr-defined]
    errors = []
    for h in (2e-3, 1e-3, 5e-4):
        line = between(UniversalJoint(c=c, d=d, beta=beta), order, wa=0.0, wb=0.0)
        line.add("load", Inertia(J=J, w0=150.0))
        line.add(
            "k", LaminarClutch(area=area, cgeo=cgeo, mue_pos=mue, p_return=back, p_max=1e6, tau_rise=lag, tau_fall=lag)
        )
        line.connect("load.flange_b", "k.flange_a")
        line.connect("k.flange_b", "a.flange_a")
        run = Simulation(line, h=h).run(T, {"k.p": Table([[b, v] for b, v in zip(breaks, levels, strict=True)])})
        assert run.counters["fallbacks"] == 0
        y, begin, worst = np.array([150.0, 0.0, 0.0, 0.0, 0.0, 0.0]), 0.0, 0.0
        for end in (breaks[0], None, breaks[1], T):
            found = integrate.solve_ivp(rates, (begin, end or breaks[1]), y, method="DOP853", rtol=1e-12, atol=1e-12,
                                        dense_output=True, events=None if end else pressed_up)  # fmt: skip
            times = np.asarray(run.time)
            of = (times >= begin) & (times <= found.t[-1])
            exact = found.sol(times[of])
            worst = max(worst, np.abs(run["b.w"][of] - exact[4]).max(), np.abs(run["load.w"][of] - exact[0]).max())
            y, begin = found.y[:, -1], float(found.t[-1])
        errors.append(worst / 150.0)
    assert math.log2(errors[0] / errors[2]) > 2.0 * (order - 0.5), errors
    assert errors[1] <= (1e-3 if order == 2 else 1e-6), errors


def test_what_bends_a_loaded_joint_does_work() -> None:
    """A twisted shaft that stands is bent: the work is the change of its elastic energy (and no heat: it stands)."""
    d = Driveline("bent")
    d.add("wall", Fixed())
    d.add("u", UniversalJoint(c=500.0, beta=0.0, bend_input=True, theta=0.7))
    d.add("b", Inertia(J=1e9, phi0=0.1, w0=0.0))
    d.connect("wall.flange", "u.flange_a")
    d.connect("u.flange_b", "b.flange_a")
    swing = Simulation(d, h=1e-3)
    run = swing.run(0.3, {"u.beta": Sine(amplitude=0.8, f=0.7)})
    stored = 250.0 * np.asarray(run["u.twist"]) ** 2
    bends = 0.8 * np.sin(2.0 * np.pi * 0.7 * np.asarray(run.time))
    expected = [math.remainder(cross(0.7, float(b))[0] - 0.7, math.pi) - 0.1 for b in bends]
    np.testing.assert_allclose(run["u.twist"], expected, atol=1e-7)
    np.testing.assert_allclose(run["u.work_bend"], stored - stored[0], atol=1e-7)
    # a bend that jumps: the twist follows at once, and its work is booked at once
    jump = Simulation(d, h=1e-3)
    run = jump.run(0.1, {"u.beta": Step(height=0.6, startTime=0.05)})
    twist = math.remainder(cross(0.7, 0.6)[0] - 0.7, math.pi) - 0.1
    assert run["u.twist"][-1] == pytest.approx(twist) and run["u.twist"][40] == pytest.approx(-0.1)
    assert run["u.work_bend"][-1] == pytest.approx(250.0 * (twist**2 - 0.01), rel=1e-6)


def test_a_bend_beyond_80_deg_is_held_there_and_one_that_is_no_number_ends_the_run() -> None:
    shaft = UniversalJoint(c=1e4, d=1.0, bend_input=True)
    runs = [Simulation(between(shaft), h=1e-3).run(0.05, {"u.beta": Constant(v)}) for v in (1.6, math.radians(80.0))]
    np.testing.assert_array_equal(runs[0]["b.w"], runs[1]["b.w"])
    sim = Simulation(between(shaft), h=1e-3)
    with pytest.raises((SimulationError, RangeError)):
        sim.run(0.01, {"u.beta": float("nan")})


def test_a_state_goes_on_from_its_bytes() -> None:
    sims = [Simulation(between(JointShaft(c=1e4, d=1.0, beta_a=0.4, beta_b=0.2, bend_inputs=True)), h=1e-3)
            for _ in range(2)]  # fmt: skip
    for sim in sims:
        sim.set_input("u.beta_a", Sine(amplitude=0.4, f=2.0))
        sim.set_input("u.beta_b", 0.3)
        sim.set_input("t.tau", MOTOR)
    for sim, ticks in ((sims[0], 200), (sims[1], 100)):
        for _ in range(ticks):
            sim.step()
    kept = sims[1].state.to_bytes()
    for _ in range(50):
        sims[1].step()
    sims[1].state.from_bytes(kept)
    for _ in range(100):
        sims[1].step()
    assert sims[0].hash() == sims[1].hash()


def make(kind: Callable[..., Component], **values: float) -> Component:
    return kind(c=1.0, **values)


@pytest.mark.parametrize(("kind", "key"), [(UniversalJoint, "beta"), (JointShaft, "beta_a"), (JointShaft, "beta_b")])
def test_a_joint_at_90_deg_is_refused(kind: Callable[..., Component], key: str) -> None:
    other = {} if kind is UniversalJoint else {"beta_a": 0.1, "beta_b": 0.1}
    with pytest.raises(RangeError, match=f"{key} = 1.57.*passes no torque.*-80 .. 80 deg"):
        make(kind, **{**other, key: math.pi / 2})
    make(kind, **{**other, key: math.radians(-79.0)})
    with pytest.raises(RangeError, match="passes no torque"):
        ConstantVelocityJoint(beta=math.pi / 2)
