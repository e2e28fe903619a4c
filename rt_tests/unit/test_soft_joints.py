"""Universal joints between light inertias: energy closes for every bend, inertia, stiffness and speed, however far the
ratio changes within a step. The reference is the law of conservation itself: kinetic energy from the speeds, elastic
energy from the twist that is shown."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from torqueloop.core.components import Clutch, Inertia, JointShaft, Torque, UniversalJoint
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import RangeError
from torqueloop.core.signals import Sine
from torqueloop.core.simulate import joint_steps
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

Array = NDArray[np.float64]


def train(shaft: Component, order: int, J: tuple[float, float], w: tuple[float, float], load: float = 0.0) -> Driveline:
    """A torque on an inertia, the shaft, an inertia; with `load` a clutch and a third one."""
    d = Driveline("soft", order=order)
    d.add("t", Torque())
    d.add("a", Inertia(J=J[0], phi0=0.0, w0=w[0]))
    d.add("u", shaft)
    d.add("b", Inertia(J=J[1], phi0=0.0, w0=w[1]))
    d.connect("t.flange", "a.flange_a")
    d.connect("a.flange_b", "u.flange_a")
    d.connect("u.flange_b", "b.flange_a")
    if load > 0.0:
        d.add("k", Clutch(fn_max=5e2 * load, mue_pos=0.5, peak=1.1))
        d.add("load", Inertia(J=load, phi0=0.0, w0=0.0))
        d.connect("b.flange_b", "k.flange_a")
        d.connect("k.flange_b", "load.flange_a")
    return d


def left_open(run: Result, J: tuple[float, float], c: float) -> float:
    """Energy that is neither in the inertias, in the twist, nor turned into heat, of all there was: at its largest."""
    stored = 0.5 * J[0] * run["a.w"] ** 2 + 0.5 * J[1] * run["b.w"] ** 2 + 0.5 * c * run["u.twist"] ** 2
    work = np.asarray(run["t.work"])
    open_ = stored - stored[0] + np.asarray(run["u.loss"]) - work
    return float(np.abs(open_).max() / (stored[0] + np.abs(np.diff(work)).sum()))


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("beta_deg", [40.0, 60.0, 75.0, 80.0])
def test_a_bent_joint_between_light_inertias_makes_no_energy(beta_deg: float, order: int) -> None:
    """0.01 and 0.05 kg.m2, c = 2e4, d = 1, 100 rad/s, no torque."""
    J, w = (0.01, 0.05), (100.0, 100.0)
    sim = Simulation(train(UniversalJoint(c=2e4, d=1.0, beta=math.radians(beta_deg)), order, J, w), h=1e-3)
    run = sim.run(1.0)
    assert left_open(run, J, 2e4) < (1e-10 if order == 2 else 1e-4)
    assert np.diff(run["u.loss"]).min() >= 0.0
    assert run.counters["steep_unsolved"] == run.counters["fallbacks"] == 0


@pytest.mark.parametrize("order", [2, 4])
def test_energy_closes_at_any_bend_inertia_stiffness_and_speed(order: int) -> None:
    """Bends up to 80 deg, inertias 1e-5 .. 10 kg.m2, c = 1e3 .. 1e7, 0 .. 1000 rad/s, with and without damping, torque.

    A light inertia that a strongly bent joint shakes may reach ten times the speed of the heavy one: what a step cannot
    divide then is counted, and loses nothing."""
    rng = np.random.default_rng(26)
    counted = 0
    for k in range(120):
        beta, c, w = math.radians(rng.uniform(0.0, 80.0)), 10.0 ** rng.uniform(3.0, 7.0), rng.uniform(0.0, 1000.0)
        J = (10.0 ** rng.uniform(-5.0, 1.0), 10.0 ** rng.uniform(-5.0, 1.0))
        d = c * 10.0 ** rng.uniform(-6.0, -3.0) * rng.integers(0, 2)
        shaft = UniversalJoint(c=c, d=d, beta=beta, theta=rng.uniform(0.0, math.pi))
        sim = Simulation(train(shaft, order, J, (w, w)), h=1e-3)
        run = sim.run(0.2, {"t.tau": Sine(amplitude=1e3 * (J[0] + J[1]) * rng.integers(0, 2), f=5.0)})
        where = (k, math.degrees(beta), J, c, d, w)
        assert left_open(run, J, c) < (1e-6 if order == 2 else 1e-3), where
        assert np.diff(run["u.loss"]).min() >= 0.0, where
        counted += run.counters["steep_unsolved"] > 0
        assert (run.counters["steep_unsolved"] > 0) == (run.counters["fallbacks"] > 0), where
    assert counted <= 2


@pytest.mark.parametrize("order", [2, 4])
def test_energy_closes_with_two_joints_and_a_clutch_that_slips_and_sticks(order: int) -> None:
    rng = np.random.default_rng(12)
    for k in range(40):
        J, load = (10.0 ** rng.uniform(-3.0, 0.0), 10.0 ** rng.uniform(-3.0, 0.0)), 10.0 ** rng.uniform(-2.0, 0.0)
        c, w = 10.0 ** rng.uniform(3.0, 7.0), rng.uniform(0.0, 200.0)
        beta = rng.uniform(0.0, math.radians(70.0), 2)
        shaft = JointShaft(c=c, d=1e-5 * c, beta_a=beta[0], beta_b=beta[1], phase=rng.uniform(0.0, 3.0),
                           theta=rng.uniform(0.0, 3.0))  # fmt: skip
        sim = Simulation(train(shaft, order, J, (w, w), load), h=1e-3)
        run = sim.run(0.2, {"t.tau": 50.0 * (J[0] + J[1]), "k.f_normalized": Sine(amplitude=0.5, offset=0.5, f=10.0)})
        stored = sum(0.5 * i * run[f"{n}.w"] ** 2 for n, i in (("a", J[0]), ("b", J[1]), ("load", load)))
        stored = stored + 0.5 * c * run["u.twist"] ** 2
        heat = np.asarray(run["u.loss"]) + np.asarray(run["k.heat"])
        open_ = np.abs(stored - stored[0] + heat - run["t.work"]).max() / stored.max()
        assert open_ < 1e-3, (k, J, load, c, w, beta)
        assert min(np.diff(run["u.loss"]).min(), np.diff(run["k.heat"]).min()) >= 0.0
        assert run.counters["steep_unsolved"] == 0


def test_a_step_that_cannot_carry_a_joint_is_refused_with_the_step_it_needs() -> None:
    shaft = UniversalJoint(c=1e5, d=1.0, beta=math.radians(80.0))
    with pytest.raises(RangeError, match=r"joint 'u', bent by 80 deg, at its start speed of 6000 rad/s.*0\.00088\d s"):
        Simulation(train(shaft, 4, (1.0, 1.0), (6000.0, 100.0)), h=1e-3)
    run = Simulation(train(shaft, 4, (1.0, 1.0), (6000.0, 100.0)), h=5e-4).run(0.05)
    assert left_open(run, (1.0, 1.0), 1e5) < 1e-3


def test_the_limits_of_the_refusal_are_those_of_the_step() -> None:
    kernel = (Path(joint_steps.__file__).parents[2] / "cython_kernels/step/joints.pxi").read_text(encoding="utf-8")
    found = {name: float(re.search(rf"\b{name} = ([\d.e-]+)", kernel)[1]) for name in ("TURN_LIMIT", "JOINT_PARTS")}  # type: ignore[index]
    assert found == {"TURN_LIMIT": joint_steps.TURN_LIMIT, "JOINT_PARTS": joint_steps.JOINT_PARTS}
