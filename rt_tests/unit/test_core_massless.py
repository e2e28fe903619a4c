"""Shafts without inertia between springs or dampers are eliminated exactly; what has no exact treatment is refused.

Reference: linear differential-algebraic equations of all nodes (dense_network.py), and closed forms. Springs and
dampers of different d/c: test_relaxing.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="the dense reference needs SciPy (extra `dev`)")

from random_network import random_network
from relaxing_lines import chain as line
from rot_drive import drive

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import (
    BearingFriction,
    Clutch,
    ConstantTorque,
    Damper,
    ElastoBacklash,
    Fixed,
    IdealGear,
    IdealPlanetary,
    Inertia,
    LinearSpeedDependentTorque,
    Mass,
    OneWayClutch,
    Spring,
    SpringDamper,
    Torque,
    TranslationalSpring,
    VariableGear,
)
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import InitialValueError, NoInertiaError, OverconstrainedError
from torqueloop.core.simulate.offline import Simulation

Array = np.ndarray


def chain(*middle: Component, J: tuple[float, float] = (1.0, 2.0)) -> Driveline:
    """relaxing_lines.chain of the parts."""
    return line(middle, J=J)


def test_springs_in_series_as_in_connection_possibilities() -> None:
    # Modelica.Mechanics.Rotational: inertia3 - spring1 - spring2 - inertia4 with c = 1e4, J = 1; here it moves
    model = compile_driveline(chain(Spring(c=1e4), Spring(c=1e4), J=(1.0, 1.0)))
    assert model.n == 2
    assert model.notes == ("m0, m1: shaft without inertia (m0.flange_b = m1.flange_a) eliminated, springs in series",)
    run = Simulation(model, h=1e-4).run(1.1)
    # closed form: the relative angle swings with omega^2 = c/2*(1/J3 + 1/J4), the mean turns on
    omega, t = math.sqrt(1e4), run.time
    relative = -0.1 * np.cos(omega * t) - 1.5 / omega * np.sin(omega * t)
    drift = 0.05 + 0.25 * t
    assert np.abs(run["x.phi"] - (drift - 0.5 * relative)).max() < 1e-8
    assert np.abs(run["m0.phi_rel"] - 0.5 * relative).max() < 1e-8
    assert np.abs(run["m0.tau"] - 5e3 * relative).max() < 1e-4
    assert np.array_equal(run["m0.tau"], run["m1.tau"])
    total = run["energy.kinetic"] + run["energy.potential"]
    assert np.ptp(total) < 1e-8 * total[0]


@pytest.mark.parametrize(
    ("parts", "one"),
    [
        ((Spring(c=300), Spring(c=600, phi_rel0=0.02)), Spring(c=200, phi_rel0=0.02)),
        ((Damper(d=3), Damper(d=6)), Damper(d=2)),
        ((SpringDamper(c=300, d=3), SpringDamper(c=600, d=6)), SpringDamper(c=200, d=2)),
        (tuple(Spring(c=20.0 * 100) for _ in range(20)), Spring(c=100)),
        ((Spring(c=300), IdealGear(ratio=1), Spring(c=600)), Spring(c=200)),
    ],
    ids=["springs", "dampers", "proportional", "twenty springs", "gear between"],
)
def test_elements_in_series_move_as_the_one_they_make(parts: tuple[Component, ...], one: Component) -> None:
    both = [Simulation(chain(*p), h=1e-3).run(1.0) for p in (parts, (one,))]
    for name in ("x.w", "x.phi", "y.w", "energy.kinetic", "energy.potential"):
        assert np.abs(both[0][name] - both[1][name]).max() < 1e-11, name
    torque = both[1]["m0.tau"]
    for k, part in enumerate(parts):
        if not isinstance(part, IdealGear):
            assert np.abs(both[0][f"m{k}.tau"] - torque).max() < 1e-10
    heat = sum(both[0][f"m{k}.loss"][-1] for k, p in enumerate(parts) if not isinstance(p, IdealGear))
    assert heat == pytest.approx(both[1]["m0.loss"][-1], rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("seed", range(12))
def test_random_networks_of_springs_agree_with_the_dense_equations(seed: int) -> None:
    def draw(rng: np.random.Generator) -> SpringDamper:
        return SpringDamper(c=rng.uniform(20, 400), d=0.0, phi_rel0=rng.uniform(-0.1, 0.1))

    drawn = random_network(seed, draw, damper=1.5)
    heavy = drawn.heavy
    model = compile_driveline(drawn.driveline)
    assert model.n == heavy.sum() and len(model.notes) == (~heavy).sum()
    run = Simulation(model, h=2.5e-4).run(0.5)
    angles, speeds = drawn.network.motion(run.time)
    for k in np.flatnonzero(heavy):
        assert np.abs(run[f"J{k}.phi"] - angles[:, k]).max() < 1e-8
        assert np.abs(run[f"J{k}.w"] - speeds[:, k]).max() < 1e-7
    for n, (i, j) in enumerate(drawn.pairs):
        assert np.abs(run[f"s{n}.phi_rel"] - (angles[:, j] - angles[:, i])).max() < 1e-8
        assert np.abs(run[f"s{n}.w_rel"] - (speeds[:, j] - speeds[:, i])).max() < 1e-7


def test_a_planetary_set_without_inertia_on_three_springs() -> None:
    # sun, carrier and ring have no inertia: two directions, the springs carry torques as 1 : -(1 + i) : i
    d = Driveline("set", order=4)
    for name, w in (("s", 2.0), ("c", 0.0), ("r", -1.0)):
        d.add(f"J{name}", Inertia(J=1.0, w0=w))
        d.add(f"k{name}", Spring(c=100.0))
        d.connect(f"J{name}.flange_b", f"k{name}.flange_a")
    d.add("set", IdealPlanetary(ratio=2))
    d.connect("ks.flange_b", "set.sun")
    d.connect("kc.flange_b", "set.carrier")
    d.connect("kr.flange_b", "set.ring")
    run = Simulation(d, h=1e-3).run(0.5)
    assert np.abs(run["kr.tau"] - 2.0 * run["ks.tau"]).max() < 1e-11
    assert np.abs(run["kc.tau"] + 3.0 * run["ks.tau"]).max() < 1e-11
    # closed form: mismatch e = phi_s + 2*phi_r - 3*phi_c has e'' = -(1 + 4 + 9)*F, F = c*e/14
    e = run["Js.phi"] + 2.0 * run["Jr.phi"] - 3.0 * run["Jc.phi"]
    assert np.abs(e - (2.0 - 2.0) * np.cos(10.0 * run.time)).max() < 1e-12
    d.components["Jc"] = Inertia(J=1.0, w0=1.0)
    run = Simulation(d, h=1e-3).run(0.5)
    e = run["Js.phi"] + 2.0 * run["Jr.phi"] - 3.0 * run["Jc.phi"]
    assert np.abs(e + 3.0 / 10.0 * np.sin(10.0 * run.time)).max() < 1e-10


def test_a_weight_hangs_on_two_springs_and_a_torque_turns_a_joint() -> None:
    # a constant force at the joint of two springs to the housing: nothing moves but the joint, which is where it hangs
    d = drive(("f.flange", "s1.flange_a"), ("s1.flange_b", "s2.flange_a", "t.flange"), ("s2.flange_b", "y.flange_a"),
              f=Fixed(), s1=Spring(c=30), s2=Spring(c=20), t=ConstantTorque(tau_constant=5.0),
              y=Inertia(J=2.0))  # fmt: skip
    run = Simulation(d, h=1e-3).run(1.0)
    # y: J*phi'' = -20*(phi - phi_m), phi_m = (5 + 20*phi)/50
    omega = math.sqrt(20.0 * 0.6 / 2.0)
    assert np.abs(run["y.phi"] - (1.0 / 6.0) * (1.0 - np.cos(omega * run.time))).max() < 1e-7
    assert np.abs(run["s1.phi_rel"] - (5.0 + 20.0 * run["y.phi"]) / 50.0).max() < 1e-12
    balance = run["energy.kinetic"] + run["energy.potential"] - run["t.work"]
    assert np.ptp(balance) < 1e-9


def test_sliding_springs_in_series() -> None:
    d = Driveline("sliding", order=4)
    d.add("m", Mass(m=2.0, s0=0.1, L=0))
    for k, c in enumerate((100.0, 300.0)):
        d.add(f"k{k}", TranslationalSpring(c=c))
    d.add("n", Mass(m=4.0, L=0))
    d.connect("m.flange_b", "k0.flange_a")
    d.connect("k0.flange_b", "k1.flange_a")
    d.connect("k1.flange_b", "n.flange_a")
    run = Simulation(d, h=1e-3).run(0.7)
    omega = math.sqrt(75.0 * (1.0 / 2.0 + 1.0 / 4.0))
    relative = -0.1 * np.cos(omega * run.time)
    assert np.abs(run["n.s"] - run["m.s"] - relative).max() < 1e-9


def test_start_values_of_an_eliminated_joint_must_fit() -> None:
    d = chain(Spring(c=100.0), Spring(c=100.0))
    d.set_start("m0.phi_rel", -0.05)
    compile_driveline(d)
    d.set_start("m0.phi_rel", 0.3)
    with pytest.raises(InitialValueError, match=r"m0\.phi_rel = 0\.3"):
        compile_driveline(d)


def test_a_spring_that_hangs_loose_has_no_effect() -> None:
    d = drive(("x.flange_b", "s.flange_a"), ("s.flange_b", "c.flange_a"), x=Inertia(J=1), s=Spring(c=1), c=Spring(c=2))
    d.add("z", Inertia(J=1.0))
    d.connect("c.flange_b", "c.flange_a")
    d.connect("z.flange_a", "x.flange_a")
    with pytest.raises(OverconstrainedError, match="has no effect"):
        compile_driveline(d)


REFUSED: dict[str, tuple[tuple[Component, ...], str, tuple[str, ...]]] = {
    "coefficient over the slip": (
        (Spring(c=1.0), Clutch(fn_max=1, mue_pos=[[0, 1], [1, 2]])), r"one friction coefficient for all", ("m0", "m1"),
    ),
    "free wheel": ((Spring(c=1.0), OneWayClutch(fn_max=1, mue_pos=1)), r"friction that acts both ways", ("m0", "m1")),
    "damper that is none": (
        (SpringDamper(c=1.0, d=1e-7), Clutch(fn_max=1, mue_pos=1)), r"leave out a damper that decays", ("m0", "m1"),
    ),
    "clearance": (
        (Spring(c=1.0), ElastoBacklash(c=1, d=0, b=0.1)), r"clearance in series .* make them one", ("m0", "m1"),
    ),
    "changing ratio": (
        (Spring(c=1.0), VariableGear()), r"both sides of a gear of changing ratio", ("m0", "m1"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_exact_treatment_is_refused_by_name(case: str) -> None:
    parts, text, names = REFUSED[case]
    with pytest.raises(NoInertiaError, match=text) as caught:
        compile_driveline(chain(*parts))
    assert caught.value.components == names
    assert r"(m0.flange_b = m1.flange_a)" in str(caught.value)


@pytest.mark.parametrize(
    ("source", "text"),
    [(Torque(), r"\(m0, m1, t\)"), (LinearSpeedDependentTorque(tau_nominal=-1, w_nominal=1), r"\(m0, m1, t\)")],
)
@pytest.mark.parametrize("second", [Spring(c=2.0), Damper(d=2.0)], ids=["springs", "spring and damper"])
def test_a_torque_at_an_elastic_joint_is_refused_by_name(second: Component, source: Any, text: str) -> None:
    d = chain(Spring(c=1.0), second)
    d.add("t", source)
    d.connect("m0.flange_b", f"t.{next(iter(source.flanges))}")
    with pytest.raises(NoInertiaError, match=text) as caught:
        compile_driveline(d)
    assert caught.value.components == ("m0", "m1", "t")


def test_two_friction_elements_at_an_elastic_joint_are_refused_by_name() -> None:
    d = chain(Spring(c=1.0), Clutch(fn_max=1, mue_pos=1))
    d.add("t", BearingFriction(tau_pos=1.0))
    d.connect("m0.flange_b", "t.flange_a")
    with pytest.raises(NoInertiaError, match=r"more than one friction element .*\(m1, t, m0\)"):
        compile_driveline(d)


def test_beside_an_inertia_everything_is_allowed_as_before() -> None:
    d = chain(Spring(c=1.0), Damper(d=1.0))
    d.add("mid", Inertia(J=1e-3))
    d.connect("m0.flange_b", "mid.flange_a")
    assert compile_driveline(d).n == 3
