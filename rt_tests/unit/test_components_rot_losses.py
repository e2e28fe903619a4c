"""Gears with losses, and clearance: simulated against closed formulas and hand-computed laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rot_drive import drive, run

from torqueloop.core.components import (
    Component,
    ConstantTorque,
    ElastoBacklash,
    ElastoBacklash2,
    ElastoGap,
    Fixed,
    Gearbox,
    Inertia,
    LossyGear,
    Mass,
    Move,
    Torque,
    TranslationalFixed,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Ramp, Sine, Step

TABLE = [[0, 0.8, 0.7, 0.5, 0.9]]


def train(
    gear: Component, T: float = 0.0, L: float = 0.0, w0: float = 0.0, Ja: float = 1.0, Jb: float = 3.0
) -> Driveline:
    """Torque T on inertia "a", a gear "x", inertia "b" with torque L."""
    return drive(("t.flange", "a.flange_a"), ("a.flange_b", "x.flange_a"), ("x.flange_b", "b.flange_a"),
                 ("b.flange_b", "l.flange"), a=Inertia(J=Ja, w0=w0), b=Inertia(J=Jb), x=gear,
                 t=ConstantTorque(tau_constant=T), l=ConstantTorque(tau_constant=L))  # fmt: skip


def acceleration(T: float, L: float, i: float, k: float, c: float, Ja: float = 1.0, Jb: float = 3.0) -> float:
    """Of shaft a with tauLoss = k*ta + c: ta = T - Ja*a, Jb*a/i = i*(ta - tauLoss) + L."""
    return (i * ((1 - k) * T - c) + L) / (Jb / i + i * (1 - k) * Ja)


@pytest.mark.parametrize(
    ("T", "L", "w0", "k", "c", "branch"),
    [
        (10.0, 0.0, 0.0, 0.2, 0.5, 0),  # a drives forward
        (-10.0, 0.0, 0.0, 0.2, -0.5, 0),  # a drives backward
        (0.0, 20.0, 0.0, 1 - 1 / 0.7, 0.9, 1),  # b drives forward
        (0.0, -20.0, 0.0, 1 - 1 / 0.7, -0.9, 1),  # b drives backward
        (-10.0, 0.0, 80.0, 1 - 1 / 0.7, 0.9, 1),  # forward motion braked at a: b drives
        (0.0, -20.0, 80.0, 0.2, 0.5, 0),  # forward motion braked at b: a drives
    ],
)
def test_the_driving_side_decides_the_loss(T: float, L: float, w0: float, k: float, c: float, branch: int) -> None:
    r = run(train(LossyGear(ratio=2, lossTable=TABLE), T, L, w0), 1.0)
    a = acceleration(T, L, 2.0, k, c)
    assert r["a.w"] == pytest.approx(w0 + a * r.time, abs=1e-9)
    ta = T - a
    assert r["x.tau_a"][1:] == pytest.approx(np.full(len(r.time) - 1, ta))
    assert r["x.tauLoss"][1:] == pytest.approx(np.full(len(r.time) - 1, k * ta + c))
    assert r["x.tau_b"][1:] == pytest.approx(np.full(len(r.time) - 1, L - 3.0 * a / 2.0))
    assert r["x.branch"][-1] == branch
    work = r["t.work"] + r["l.work"]
    assert r["x.heat"] == pytest.approx(0.5 * w0**2 * 1.75 + work - r["energy.kinetic"], abs=1e-6)
    assert r["x.lossPower"][1:] == pytest.approx((k * ta + c) * r["a.w"][1:])
    assert np.all(np.diff(r["x.heat"]) >= 0.0)


def test_a_gear_at_rest_holds_until_its_losses_are_overcome() -> None:
    # a torque that grows on a starts the motion when 0.8*T > 0.9, at T = 1.125
    d = train(LossyGear(ratio=2, lossTable=[[0, 0.8, 0.7, 0.9, 0.5]]))
    d.replace("t", tau_constant=0.0)
    d.add("ramp", Torque())
    d.connect("ramp.flange", "a.flange_a")
    r = run(d, 2.0, ramp__tau=Ramp(height=2.0, duration=2.0))
    stuck = r.time <= 1.125
    assert np.all(r["a.w"][stuck] == 0.0) and np.all(r["x.mode"][1:][stuck[1:]] == 0.0)
    assert r["x.tauLoss"][stuck][5:] == pytest.approx(r.time[stuck][5:], abs=1e-9)
    rate = 2 * 0.8 / (1.5 + 2 * 0.8)  # a = rate*(T - 1.125)
    s = r.time[~stuck] - 1.125
    assert r["a.w"][~stuck] == pytest.approx(rate * s**2 / 2, abs=1e-7)


def test_a_gear_whose_sides_differ_starts_on_the_branch_that_takes_more() -> None:
    # tbf2 > tbf1: up to ta = (tbf1 - tbf2)/(eta1 - 1/eta2) = 0.636 flange_b counts as driving; 0 = T/0.7 - 0.9 at 0.63
    d = train(LossyGear(ratio=2, lossTable=TABLE))
    d.replace("t", tau_constant=0.0)
    d.add("ramp", Torque())
    d.connect("ramp.flange", "a.flange_a")
    r = run(d, 0.65, ramp__tau=Ramp(height=1.0, duration=1.0))
    assert r["a.w"][630] == 0.0 < r["a.w"][632]
    # a = 2*(T/0.7 - 0.9)/(1.5 + 2/0.7) on branch B, then as in every state with flange_a driving
    assert r["a.w"][634] == pytest.approx(2 / 0.7 / (1.5 + 2 / 0.7) * 0.004**2 / 2, rel=1e-4)
    assert (r["x.branch"][634], r["x.branch"][650]) == (1.0, 0.0)


def test_losses_over_speed_are_interpolated() -> None:
    table = [[0, 1, 1, 0.0, 0.0], [10, 1, 1, 4.0, 4.0]]
    r = run(train(LossyGear(ratio=1, lossTable=table), w0=20.0, Jb=1.0), 1.0)
    # bearing torque 0.4*w, also beyond the last row: exponential
    assert r["a.w"] == pytest.approx(20.0 * np.exp(-0.2 * r.time), rel=1e-5)


def test_power_reversal_comes_to_rest_and_turns_back() -> None:
    d = train(LossyGear(ratio=2, lossTable=TABLE))
    d.add("sine", Torque())
    d.connect("sine.flange", "a.flange_a")
    coarse, fine = (run(d, 2.0, substeps=n, sine__tau=Sine(amplitude=6.0, f=1.0)) for n in (1, 8))
    assert np.max(np.abs(coarse["a.w"] - fine["a.w"])) < 1e-5 * np.ptp(fine["a.w"])
    assert {-1.0, 0.0, 1.0} <= set(np.unique(fine["x.mode"]))
    balance = coarse["sine.work"] - coarse["energy.kinetic"] - coarse["x.heat"]
    assert np.max(np.abs(balance)) < 1e-5


def test_lossy_gears_in_series_need_no_inertia_between_them() -> None:
    d = drive(("t.flange", "a.flange_a"), ("a.flange_b", "x.flange_a"), ("x.flange_b", "y.flange_a"),
              ("y.flange_b", "z.flange_a"), ("z.flange_b", "b.flange_a"), a=Inertia(J=1.0), b=Inertia(J=100.0),
              t=ConstantTorque(tau_constant=10.0), x=LossyGear(ratio=2, lossTable=[[0, 0.9, 0.9, 0, 0]]),
              y=LossyGear(ratio=3, lossTable=[[0, 0.8, 0.8, 0, 0]]),
              z=LossyGear(ratio=-1, lossTable=[[0, 0.7, 0.7, 0, 0]]))  # fmt: skip
    r = run(d, 1.0)
    a = acceleration(10.0, 0.0, -6.0, 1 - 0.9 * 0.8 * 0.7, 0.0, 1.0, 100.0)
    assert r["a.w"][-1] == pytest.approx(a) and r["b.w"][-1] == pytest.approx(-a / 6.0)
    assert r["y.tau_a"][-1] == pytest.approx(2 * 0.9 * (10.0 - a))


def test_a_self_locking_gear_rests_under_any_load() -> None:
    gear = LossyGear(ratio=20, lossTable=[[0, 0.4, -0.3, 0, 0]])
    for L in (1.0, -1.0, 1e4, -1e4):
        r = run(train(gear, L=L), 0.5)
        assert np.all(r["a.w"] == 0.0)
        assert r["x.tau_b"][-1] == pytest.approx(L) and r["x.tau_a"][-1] == pytest.approx(0.0)


@pytest.mark.parametrize(("T", "L"), [(3.0, 100.0), (20.0, -100.0), (-3.0, -100.0)])
def test_a_self_locking_gear_is_driven_with_and_against_the_load(T: float, L: float) -> None:
    r = run(train(LossyGear(ratio=20, lossTable=[[0, 0.4, -0.3, 0, 0]]), T, L), 1.0)
    # load torque t at a: t = 3*a/400 - L/20; ta = T - a = t/eta1 against the load, eta2*t with it
    with_load = T * L > 0.0
    factor = -0.3 if with_load else 1 / 0.4
    a = (T + factor * L / 20.0) / (1.0 + factor * 3.0 / 400.0)
    assert r["a.w"] == pytest.approx(a * r.time, abs=1e-9)
    assert r["x.tau_a"][-1] == pytest.approx(T - a)
    assert r["x.heat"][-1] == pytest.approx(r["t.work"][-1] + r["l.work"][-1] - r["energy.kinetic"][-1])


def test_without_drive_a_self_locking_gear_stops_its_load() -> None:
    r = run(train(LossyGear(ratio=20, lossTable=[[0, 0.4, -0.3, 0, 0]]), L=100.0, w0=4.0), 1.0)
    a = -0.3 * 5.0 / (1.0 - 0.3 * 3.0 / 400.0)  # t = 3*a/400 - 5 < 0: with the load, ta = -a = -0.3*t
    assert a < 0.0
    stop = -4.0 / a
    before = r.time <= min(stop, 1.0)
    assert r["a.w"][before] == pytest.approx(4.0 + a * r.time[before], abs=1e-6)


def test_a_load_too_heavy_for_a_self_locking_gear_jams_it_at_once() -> None:
    """Jb/i^2 over the whole above 1/(1 - eta2): the law has no solution with the shaft turning."""
    d = train(LossyGear(ratio=20, lossTable=[[0, 0.4, -0.3, 0, 0]]), L=5.0, w0=10.0, Jb=4000.0)
    assert 10.0 / 11.0 > 1 / 1.3
    r = run(d, 0.1)
    assert r["a.w"][0] == 10.0 and np.all(r["a.w"][1:] == 0.0)
    assert r["x.heat"][-1] == pytest.approx(0.5 * 100.0 * 11.0, rel=1e-3)
    assert abs(r.energy().residual) < 1e-9


def test_a_supported_lossy_gear_keeps_the_angular_momentum() -> None:
    d = drive(("t.flange", "a.flange_a"), ("a.flange_b", "x.flange_a"), ("x.flange_b", "b.flange_a"),
              ("x.support", "t.support", "h.flange_a"), a=Inertia(J=1), b=Inertia(J=2), h=Inertia(J=5),
              x=LossyGear(ratio=3, lossTable=TABLE), t=ConstantTorque(tau_constant=4.0))  # fmt: skip
    r = run(d, 1.0)
    assert r["a.w"] + 2 * r["b.w"] + 5 * r["h.w"] == pytest.approx(np.zeros(len(r.time)), abs=1e-9)
    assert r["x.heat"][-1] == pytest.approx(r["t.work"][-1] - r["energy.kinetic"][-1]) and r["x.heat"][-1] > 0.0


def law(x: float, w: float, c: float, d: float, half: float, kind: type) -> float:
    """Torque of a clearance, by the text of its definition."""
    if abs(x) <= half:
        return 0.0
    if x < 0.0:
        return -law(-x, -w, c, d, half, kind)
    tc, td = c * (x - half), d * w
    if tc + td <= 0.0:
        return 0.0
    return tc + (min(tc, td) if kind is ElastoBacklash else td)


@pytest.mark.parametrize("kind", [ElastoBacklash, ElastoBacklash2])
@pytest.mark.parametrize("phi_rel0", [0.0, 0.01])
def test_a_forced_motion_through_the_gap_meets_the_law_on_every_side(kind: type, phi_rel0: float) -> None:
    c, d, b, A, w = 1e3, 20.0, 0.02, 0.05, 2 * math.pi * 2.0
    model = drive(("wall.flange", "x.flange_a"), ("x.flange_b", "J.flange_a", "m.flange"), wall=Fixed(),
                  x=kind(c=c, d=d, b=b, phi_rel0=phi_rel0), J=Inertia(J=1.0), m=Move())  # fmt: skip
    r = run(model, 1.0, m__phi=lambda t: A * math.sin(w * t), m__w=lambda t: A * w * math.cos(w * t),
            m__a=lambda t: -A * w * w * math.sin(w * t))  # fmt: skip
    expected = [
        law(A * math.sin(w * t) - phi_rel0, A * w * math.cos(w * t), c, d, b / 2, kind) for t in r.time.tolist()
    ]
    distance = np.abs(np.abs(r["x.phi_rel"] - phi_rel0) - b / 2)
    clear = distance > 1e-9  # a jump at the very edge may fall on either side
    assert r["x.tau"][clear] == pytest.approx(np.array(expected)[clear], abs=1e-6)
    assert max(expected) > 0.0 > min(expected) and expected.count(0.0) > 100
    # the rest of the work of the motion is in inertia and spring
    spent = r["m.work"] - r["energy.kinetic"]  # the work of a motion begins with what sets the shaft in motion
    assert r["x.loss"][-1] == pytest.approx(spent[-1] - spent[0], rel=2e-3)
    assert np.all(np.diff(r["x.loss"]) >= -1e-12)


def test_a_shaft_bounces_between_elastic_stops_for_ever() -> None:
    J, c, b, w0 = 2.0, 5e3, 0.1, 3.0
    d = drive(("wall.flange", "x.flange_a"), ("x.flange_b", "J.flange_a"), wall=Fixed(),
              x=ElastoBacklash(c=c, d=0.0, b=b), J=Inertia(J=J, w0=w0))  # fmt: skip
    period = 2 * (b / w0 + math.pi * math.sqrt(J / c))
    h = period / 64
    r = run(d, 10 * period, h=h, substeps=4)
    assert r["J.w"][::64] == pytest.approx(np.full(11, w0), abs=1e-3)
    assert r["J.phi"][::64] == pytest.approx(np.zeros(11), abs=1e-5)
    assert r["energy.kinetic"][-1] == pytest.approx(0.5 * J * w0**2, rel=1e-4)
    peak = math.sqrt(J / c) * w0 + b / 2
    assert np.max(r["J.phi"]) == pytest.approx(peak, abs=1e-3)


def test_a_buffer_throws_a_mass_back_and_lets_it_go() -> None:
    m, c, v0 = 2.0, 800.0, -3.0
    d = drive(("wall.flange", "x.flange_a"), ("x.flange_b", "m.flange_a"), wall=TranslationalFixed(s0=0.0),
              x=ElastoGap(c=c, d=0.0, s_rel0=0.5), m=Mass(m=m, s0=0.8, v0=v0))  # fmt: skip
    r = run(d, 0.4)
    contact = 0.1, 0.1 + math.pi * math.sqrt(m / c)
    after = r.time > contact[1]
    assert r["m.v"][after] == pytest.approx(np.full(after.sum(), -v0), abs=1e-5)
    assert r["m.s"][after] == pytest.approx(0.5 - v0 * (r.time[after] - contact[1]), abs=1e-5)
    inside = (r.time > contact[0]) & ~after
    assert r["x.f"][inside] == pytest.approx(c * (r["m.s"][inside] - 0.5), abs=1e-6)


def test_damped_contacts_never_pull_and_take_energy_out() -> None:
    for kind in (ElastoBacklash, ElastoBacklash2):
        d = drive(("wall.flange", "x.flange_a"), ("x.flange_b", "J.flange_a"), wall=Fixed(),
                  x=kind(c=2e4, d=50.0, b=0.785), J=Inertia(J=5.0, phi0=1.57))  # fmt: skip
        r = run(d, 0.5, substeps=4)
        outside = np.abs(r["x.phi_rel"]) > 0.785 / 2
        assert np.all(r["x.tau"][outside] * r["x.phi_rel"][outside] >= 0.0) and np.all(r["x.tau"][~outside] == 0.0)
        total = r["energy.kinetic"] + r["energy.potential"] + r["x.loss"]
        assert total == pytest.approx(np.full(len(total), total[0]), rel=1e-4)
        assert r["x.lossPower"][1:] @ np.full(len(total) - 1, 1e-3) == pytest.approx(r["x.loss"][-1], rel=0.05)


def test_a_gearbox_without_gap_and_losses_is_a_gear_with_a_soft_shaft() -> None:
    box = Gearbox(ratio=4, c=1e4, d=5.0)
    d = drive(("t.flange", "a.flange_a"), ("a.flange_b", "x.flange_a"), ("x.flange_b", "b.flange_a"),
              t=Torque(), a=Inertia(J=0.1), b=Inertia(J=2.0), x=box)  # fmt: skip
    r = run(d, 0.5, substeps=2, t__tau=Step(height=8.0, startTime=0.0))
    # twist y = phi_b - phi_a/4: Jred*y'' + d*y' + c*y = -Jred*T/(4*Ja), Jred of 2 and 16*0.1
    Ja, Jb = 0.1 * 16, 2.0
    Jred, drive_torque = Ja * Jb / (Ja + Jb), 32.0 * Jb / (Ja + Jb)
    damping, natural = 5.0 / (2 * Jred), math.sqrt(1e4 / Jred)
    wd = math.sqrt(natural**2 - damping**2)
    decay = np.exp(-damping * r.time) * (np.cos(wd * r.time) + damping / wd * np.sin(wd * r.time))
    assert r["x.phi_rel"] == pytest.approx(-drive_torque / 1e4 * (1 - decay), abs=2e-8)
    momentum = 4 * 0.1 * r["a.w"] + 2.0 * r["b.w"]
    assert momentum == pytest.approx(32.0 * r.time, abs=1e-9)


def test_a_gearbox_with_everything_keeps_its_books_and_reaches_the_rigid_acceleration() -> None:
    box = Gearbox(ratio=4, c=1e4, d=60.0, b=0.02, lossTable=[[0, 0.9, 0.85, 0.2, 0.3]])
    d = train(box, T=8.0, Ja=0.1, Jb=2.0)
    r = run(d, 2.0, substeps=2)
    a = acceleration(8.0, 0.0, 4.0, 0.1, 0.2, 0.1, 2.0)
    late = r.time > 1.5
    assert r["a.a"][late] == pytest.approx(np.full(late.sum(), a), rel=1e-4)
    assert r["x.tau"][late] == pytest.approx(np.full(late.sum(), -2.0 * a / 4.0), rel=1e-4)
    balance = r["t.work"] - r["energy.kinetic"] - r["energy.potential"] - r["x.heat"] - r["x.loss_elastic"]
    assert np.max(np.abs(balance)) < 1e-4 * r["t.work"][-1]
