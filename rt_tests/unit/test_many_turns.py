"""Shafts that have turned for days: twists keep their digits, and shown angles are those that were turned."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("torqueloop.cython_kernels.kernel.kernel", reason="the kernels are not built: scripts/run")

from torqueloop.core.components import (
    Damper,
    ElastoBacklash,
    Fixed,
    IdealGear,
    Inertia,
    SpringDamper,
    Torque,
    UniversalJoint,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Sine
from torqueloop.core.simulate.offline import Simulation

#: rad: 100 days of an idling engine
FAR = 1e9


def spring(phi: float = 0.0, w: float = 0.0, order: int = 4) -> Driveline:
    d = Driveline("spring", order=order)
    d.add("t", Torque())
    d.add("J1", Inertia(J=0.02, phi0=phi, w0=w))
    d.add("shaft", SpringDamper(c=1e4, d=0.5, phi_rel0=0.0))
    d.add("J2", Inertia(J=0.05, phi0=phi, w0=w))
    d.connect("t.flange", "J1.flange_a")
    d.connect("J1.flange_b", "shaft.flange_a")
    d.connect("shaft.flange_b", "J2.flange_a")
    return d


def gears(phi: float = 0.0, w: float = 0.0, order: int = 4) -> Driveline:
    """A play, a gear whose ratio is no whole number, a spring behind it."""
    d = Driveline("gears", order=order)
    ratio = 37.0 / 11.0
    d.add("t", Torque())
    d.add("J1", Inertia(J=0.02, phi0=phi, w0=w))
    d.add("play", ElastoBacklash(c=2e4, d=5.0, b=0.02))
    d.add("J2", Inertia(J=0.01, phi0=phi, w0=w))
    d.add("gear", IdealGear(ratio=ratio))
    d.add("J3", Inertia(J=0.03))
    d.add("shaft", SpringDamper(c=8e3, d=0.5))
    d.add("J4", Inertia(J=0.5, phi0=phi / ratio, w0=w / ratio))
    d.add("drag", Damper(d=0.01))
    d.add("housing", Fixed())
    d.connect("t.flange", "J1.flange_a")
    d.connect("J1.flange_b", "play.flange_a")
    d.connect("play.flange_b", "J2.flange_a")
    d.connect("J2.flange_b", "gear.flange_a")
    d.connect("gear.flange_b", "J3.flange_a")
    d.connect("J3.flange_b", "shaft.flange_a")
    d.connect("shaft.flange_b", "J4.flange_a")
    d.connect("J4.flange_b", "drag.flange_a")
    d.connect("drag.flange_b", "housing.flange")
    return d


@pytest.mark.parametrize("order", [2, 4])
def test_a_shaft_that_has_turned_for_days_vibrates_as_at_the_start(order: int) -> None:
    """The same torque on shafts that stand at 0 and at 1e9 rad."""
    drive = {"t.tau": Sine(amplitude=20.0, f=60.0)}
    near, far = (Simulation(spring(phi, order=order)).run(1.0, drive) for phi in (0.0, FAR))
    for name in ("shaft.tau", "shaft.phi_rel", "J1.w", "J2.w"):
        size = np.ptp(near[name])
        np.testing.assert_allclose(far[name], near[name], rtol=0.0, atol=1e-12 * size, err_msg=name)
    assert far["J1.phi"][-1] == pytest.approx(FAR + near["J1.phi"][-1], abs=1e-6)


@pytest.mark.parametrize("order", [2, 4])
def test_turning_for_long_leaves_no_noise_in_a_shaft(order: int) -> None:
    """1e7 rad in 100 s: 20 N.m on the first inertia leave 20 J2/(J1 + J2) in the shaft once it has come to rest."""
    result = Simulation(spring(w=1e5, order=order)).run(100.0, {"t.tau": 20.0})
    assert result["J1.phi"][-1] == pytest.approx(1e7 + 0.5 * 20.0 / 0.07 * 100.0**2, rel=1e-9)
    # 1e7 rad are rounded to 2e-9 rad, which the stiffness makes 2e-5 N.m, over and over; 1e4 rad to 2e-8 N.m
    np.testing.assert_allclose(np.abs(result["shaft.tau"][5000:]), 20.0 * 0.05 / 0.07, rtol=0.0, atol=5e-7)


@pytest.mark.parametrize("order", [2, 4])
def test_play_and_gears_behave_alike_after_many_turns(order: int) -> None:
    """Moved by hand, along the motion that twists nothing: 1 rad of the first shaft, 11/37 of those behind the gear."""
    drive = {"t.tau": Sine(amplitude=15.0, f=7.0)}
    near, far = Simulation(gears(order=order)), Simulation(gears(order=order))
    ahead = np.array([{"J1": 1.0, "J2": 1.0, "J3": 11.0 / 37.0, "J4": 11.0 / 37.0}[name.partition(".")[0]]
                      for name in far.model.coordinates])  # fmt: skip
    far.state.z = far.state.z + 37e7 * ahead
    one, other = near.run(1.0, drive), far.run(1.0, drive)
    assert np.ptp(one["play.tau"]) > 10.0
    for name in ("play.tau", "shaft.tau", "J1.w", "J4.w"):
        size = np.ptp(one[name])
        # 37e7 rad in one number: the twists it gives at the start are rounded to 6e-8 rad
        np.testing.assert_allclose(other[name], one[name], rtol=0.0, atol=1e-5 * size, err_msg=name)
    assert other["J4.phi"][-1] == pytest.approx(11e7 + one["J4.phi"][-1], abs=1e-6)


def test_a_universal_joint_knows_its_angle_after_many_turns() -> None:
    """1e8 turns on, the ripple of the joint is the same: what is taken off its angles are whole turns."""

    def made(turns: float) -> Driveline:
        d = Driveline("joint", order=4)
        d.add("J1", Inertia(J=0.2, w0=50.0, phi0=2.0 * math.pi * turns))
        d.add("joint", UniversalJoint(c=2e4, d=5.0, beta=0.5))
        d.add("J2", Inertia(J=0.3, w0=50.0, phi0=2.0 * math.pi * turns))
        d.connect("J1.flange_b", "joint.flange_a")
        d.connect("joint.flange_b", "J2.flange_a")
        return d

    near, far = (Simulation(made(turns)).run(0.5) for turns in (0.0, 1e8))
    np.testing.assert_allclose(far["joint.tau"], near["joint.tau"], rtol=0.0, atol=1e-6 * np.ptp(near["joint.tau"]))


def test_a_state_that_is_copied_knows_how_far_it_has_turned() -> None:
    sim = Simulation(spring(w=1e4))
    sim.run(5.0)
    other = sim.state.copy()
    again = Simulation(spring(w=1e4))
    again.restore(other)
    assert np.array_equal(again.outputs(), sim.outputs()) and again.output("J1.phi") == pytest.approx(5e4, rel=1e-12)
    again.state.from_bytes(sim.state.to_bytes())
    assert again.hash() == sim.hash() and np.allclose(again.state.z, sim.state.z, rtol=1e-15)
