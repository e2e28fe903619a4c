"""Shafts without inertia between springs and dampers of different d/c: states of first order.

Reference: the dense differential-algebraic equations of all nodes (dense_network.py); closed forms; finer steps and a
small inertia in place of none where friction or clearances are elsewhere in the driveline.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("scipy", reason="the dense reference needs SciPy (extra `dev`)")

from dense_network import Network
from random_network import random_network
from relaxing_lines import CHAINS, PRESSED, chain, energy
from rot_drive import drive

from torqueloop.core.analyse.analysis import flange_torques
from torqueloop.core.compile.compiler import CompiledModel, compile_driveline
from torqueloop.core.components import (
    AccSensor,
    Brake,
    ConstantTorque,
    Damper,
    Disc,
    Fixed,
    IdealPlanetary,
    Inertia,
    LossyGear,
    Mass,
    Speed,
    Spring,
    SpringDamper,
    TranslationalDamper,
    TranslationalSpring,
    VariableGear,
)
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import InitialValueError, NoInertiaError
from torqueloop.core.signals import Sine
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

Array = np.ndarray
orders = pytest.mark.parametrize("order", [2, 4])


def constants(part: Component) -> tuple[float, float, float]:
    """c, d and the angle without force of a part."""
    c, d, rest = (getattr(part, name, 0.0) for name in ("c", "d", "phi_rel0"))
    return float(c), float(d), float(rest)


def network_of(middle: tuple[Component, ...], run: Result) -> Network:
    """The same chain, from the angles at which the run starts."""
    n = len(middle) + 1
    K, D, f, z, u = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n), np.zeros(n), np.zeros(n)
    for k, part in enumerate(middle):
        c, d, rest = constants(part)
        row = np.zeros(n)
        row[k], row[k + 1] = -1.0, 1.0
        K += c * np.outer(row, row)
        D += d * np.outer(row, row)
        f += c * rest * row
    z[0], u[0], u[-1] = 0.1, 1.0, -0.5
    for k in range(n - 1):
        z[k + 1] = z[k] + run[f"m{k}.phi_rel"][0]
    M = np.zeros((n, n))
    M[0, 0], M[-1, -1] = 1.0, 2.0
    return Network(M, K, D, f, z, u)


def errors(middle: tuple[Component, ...], order: int, h: float) -> tuple[float, float]:
    """Largest error of an angle and a speed of the parts, of 1 s."""
    run = Simulation(chain(middle, order), h=h).run(1.0)
    angles, speeds = network_of(middle, run).motion(run.time[:: round(0.04 / h)])
    every = slice(None, None, round(0.04 / h))
    phi = [np.abs(run[f"m{k}.phi_rel"][every] - np.diff(angles, axis=1)[:, k]).max() for k in range(len(middle))]
    w = [np.abs(run[f"m{k}.w_rel"][every] - np.diff(speeds, axis=1)[:, k]).max() for k in range(len(middle))]
    return max(phi), max(w)


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize(("order", "bound"), [(2, 3e-4), (4, 1e-6)])
def test_chains_move_as_the_dense_equations_say(name: str, order: int, bound: float) -> None:
    assert errors(CHAINS[name], order, 1e-3)[0] < bound


@orders
def test_errors_fall_with_the_order(order: int) -> None:
    middle = CHAINS["two spring-dampers"]
    found = [errors(middle, order, h) for h in (2e-3, 1e-3)]
    for coarse, fine in zip(*found, strict=True):
        assert np.log2(coarse / fine) > order - 0.15


def test_what_was_decided_is_noted() -> None:
    model = compile_driveline(chain(CHAINS["springs inside"]))
    assert model.notes == (
        "m1, m2: shaft without inertia (m1.flange_b = m2.flange_a) eliminated, springs in series",
        "m0, m1, m2: shaft without inertia (m0.flange_b = m1.flange_a) is a state of first order",
        "m1, m2, m3: shaft without inertia (m2.flange_b = m3.flange_a) is a state of first order",
    )
    assert model.n == 4 and len(model.arrays.rx) == 2


@orders
def test_a_fixed_angle_between_turns_the_whole_shaft(order: int) -> None:
    first, second = CHAINS["two spring-dampers"]
    turned = chain((first, Disc(deltaPhi=0.3), second), order)
    turned.components["y"] = Inertia(J=2.0, phi0=0.3, w0=-0.5)
    plain, other = (Simulation(d, h=1e-3).run(0.5) for d in (chain((first, second), order), turned))
    for name, there in (("x.w", "x.w"), ("m0.tau", "m0.tau"), ("m1.phi_rel", "m2.phi_rel"), ("y.w", "y.w")):
        assert np.abs(plain[name] - other[there]).max() < 1e-11


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize(("order", "bound"), [(2, 1e-13), (4, 1e-7)])
def test_energy_closes(name: str, order: int, bound: float) -> None:
    stored, heat = energy(Simulation(chain(CHAINS[name], order), h=1e-3).run(1.0))
    assert np.ptp(stored + heat) < bound * stored[0]
    assert heat[-1] > 0.01 * stored[0]


def test_forces_on_both_sides_of_the_junction_are_one() -> None:
    run = Simulation(chain(CHAINS["two spring-dampers"]), h=1e-3).run(1.0)
    assert np.abs(run["m0.tau"] - run["m1.tau"]).max() < 1e-12 * np.abs(run["m0.tau"]).max() + 1e-13


@orders
def test_its_acceleration_is_that_of_its_speed(order: int) -> None:
    # a trial knows only its mean over the step: it must not ring about it
    d = chain(CHAINS["two spring-dampers"], order)
    d.add("sensor", AccSensor())
    d.connect("sensor.flange", "m0.flange_b")
    run = Simulation(d, h=1e-3).run(1.0)
    w = run["x.w"] + run["m0.w_rel"]
    slope = (w[2:] - w[:-2]) / 2e-3
    # (what relaxes fast at the start has a slope of its own)
    assert np.abs(run["sensor.a"][1:-1] - slope)[100:].max() < 1e-3 * np.abs(slope).max()


@pytest.mark.parametrize("seed", range(12))
def test_random_networks_agree_with_the_dense_equations(seed: int) -> None:
    def draw(rng: np.random.Generator) -> SpringDamper:
        return SpringDamper(c=rng.uniform(20, 400), d=rng.uniform(0.3, 4.0) if rng.random() < 0.6 else 0.0)

    drawn = random_network(seed, draw)
    pairs, heavy, z = drawn.pairs, drawn.heavy, drawn.network.z
    model = compile_driveline(drawn.driveline)
    assert len(model.notes) == (~heavy).sum() == len(model.arrays.rx) + len(heavy) - model.n
    run = Simulation(model, h=2.5e-4).run(0.5)
    for k in np.flatnonzero(~heavy):
        n, (i, _) = next((n, p) for n, p in enumerate(pairs) if p[1] == k and heavy[p[0]])
        z[k] = z[i] + run[f"s{n}.phi_rel"][0]
    angles, speeds = drawn.network.motion(run.time[::20])
    # the fastest relaxation lasts a few steps: relative to what it starts with
    bound = 2e-7 * (1 + np.abs(speeds).max())
    for n, (i, j) in enumerate(pairs):
        assert np.abs(run[f"s{n}.phi_rel"][::20] - (angles[:, j] - angles[:, i])).max() < 1e-7
        assert np.abs(run[f"s{n}.w_rel"][::20] - (speeds[:, j] - speeds[:, i])).max() < bound


@orders
def test_a_dashpot_behind_a_spring_creeps_as_the_closed_form_says(order: int) -> None:
    # Maxwell: a body of J on a spring c and a dashpot d in series to the housing, torque T:
    # J*w' = T - F, F' = c*(w - F/d): F tends to T, w to T/d
    J, c, d, T = 0.5, 200.0, 4.0, 3.0
    run = Simulation(
        drive(("f.flange", "s.flange_a"), ("s.flange_b", "p.flange_a"), ("p.flange_b", "y.flange_a", "t.flange"),
              f=Fixed(), s=Spring(c=c), p=Damper(d=d), t=ConstantTorque(tau_constant=T), y=Inertia(J=J), order=order),
        h=1e-3,
    ).run(2.0)  # fmt: skip
    t, half = run.time, c / (2.0 * d)
    omega = np.sqrt(complex(c / J - half * half))
    # F'' + c/d*F' + c/J*F = c/J*T, F(0) = F'(0) = 0
    F = T * (1.0 - np.exp(-half * t) * (np.cos(omega * t) + half / omega * np.sin(omega * t)).real)
    assert np.abs(run["s.tau"] - F).max() < (1e-2 if order == 2 else 1e-5)
    assert run["y.w"][-1] == pytest.approx(T / d, rel=1e-4)
    balance = run["energy.kinetic"] + run["energy.potential"] + run["p.loss"] - run["t.work"]
    assert np.abs(balance).max() < (1e-13 if order == 2 else 1e-7) * run["t.work"][-1]


@orders
@pytest.mark.parametrize("c", [1e6, 1e8, 1e10])
@pytest.mark.parametrize("d", [1e-6, 1e-3])
def test_a_deflection_that_relaxes_far_faster_than_a_step_makes_no_energy(order: int, c: float, d: float) -> None:
    """c/d up to 1e10 1/s, loaded by 0.1 rad: the shaft turns with 1e9 rad/s at the start."""
    run = Simulation(chain((SpringDamper(c=c, d=d), SpringDamper(c=100.0, d=1.0)), order), h=1e-3).run(0.3)
    stored, heat = energy(run)
    assert np.ptp(stored + heat) < 1e-7 * stored[0]
    assert stored[-1] < stored[0] and np.diff(heat).min() >= 0.0


@orders
def test_a_planetary_set_without_inertia(order: int) -> None:
    # its mismatch e = phi_s + 2*phi_r - 3*phi_c is one element of the three in series, each by the square of its share
    d = Driveline("set", order=order)
    parts = {"s": (100.0, 1.0, 1.0), "c": (300.0, 0.5, 3.0), "r": (80.0, 2.0, 2.0)}
    for name, (c, damping, _) in parts.items():
        d.add(f"J{name}", Inertia(J=1.0, w0=2.0 if name == "s" else 0.0))
        d.add(f"k{name}", SpringDamper(c=c, d=damping))
        d.connect(f"J{name}.flange_b", f"k{name}.flange_a")
    d.add("set", IdealPlanetary(ratio=2))
    for name, flange in (("s", "sun"), ("c", "carrier"), ("r", "ring")):
        d.connect(f"k{name}.flange_b", f"set.{flange}")
    model = compile_driveline(d)
    assert len(model.arrays.rx) == 2
    run = Simulation(model, h=5e-4).run(0.5)
    assert np.abs(run["kr.tau"] - 2.0 * run["ks.tau"]).max() < 1e-10
    assert np.abs(run["kc.tau"] + 3.0 * run["ks.tau"]).max() < 1e-10
    # torques at the flanges of the set, from the motion of all bodies
    for flange, spring in (("sun", "ks"), ("carrier", "kc"), ("ring", "kr")):
        assert np.abs(flange_torques(run, "set")[flange] - run[f"{spring}.tau"]).max() < 1e-8
    # the same with a chain of three, masses 1/share^2: e of each end is what it adds to the mismatch
    chained = Driveline("chain", order=order)
    chained.add("x", Inertia(J=1.0 / (1.0 + 9.0 + 4.0), w0=2.0))
    before = "x.flange_b"
    for name, (c, damping, share) in parts.items():
        chained.add(f"k{name}", SpringDamper(c=c / share**2, d=damping / share**2))
        chained.connect(before, f"k{name}.flange_a")
        before = f"k{name}.flange_b"
    chained.add("f", Fixed())
    chained.connect(before, "f.flange")
    one = Simulation(chained, h=5e-4).run(0.5)
    e = run["Js.phi"] + 2.0 * run["Jr.phi"] - 3.0 * run["Jc.phi"]
    assert np.abs(e - one["x.phi"]).max() < 1e-11
    assert np.abs(run["ks.tau"] - one["ks.tau"]).max() < 1e-9


@orders
def test_beside_driven_flanges_losses_and_gears_of_changing_ratio(order: int) -> None:
    """Against the same with a small inertia in place of none, and small steps."""

    def line(Jm: float) -> Driveline:
        d = drive(
            ("v.flange", "s1.flange_a"), ("s2.flange_b", "x.flange_a"), ("x.flange_b", "g.flange_a"),
            ("g.flange_b", "y.flange_a"), ("y.flange_b", "s3.flange_a"), ("s4.flange_b", "z.flange_a"),
            v=Speed(exact=True), s1=SpringDamper(c=50.0, d=0.5), s2=SpringDamper(c=100.0, d=0.2), x=Inertia(J=0.3),
            g=LossyGear(ratio=2.0, lossTable=[[0.0, 0.9, 0.8, 0.1, 0.2]]), y=Inertia(J=0.5),
            s3=Spring(c=80.0), s4=Damper(d=1.5), z=Inertia(J=1.0), order=order,
        )  # fmt: skip
        for k in (1, 3):
            joined = [f"s{k}.flange_b", f"s{k + 1}.flange_a"]
            if Jm:
                d.add(f"m{k}", Inertia(J=Jm))
                joined.append(f"m{k}.flange_a")
            d.connect(*joined)
        return d

    inputs = {"v.w_ref": Sine(amplitude=3.0, f=0.8)}
    run = Simulation(line(0.0), h=1e-3).run(2.0, inputs=inputs)
    small = Simulation(line(1e-7), h=2e-5).run(2.0, inputs=inputs)
    assert len(run.model.arrays.rx) == 2
    for name in ("x.w", "y.w", "z.w", "s1.tau", "s3.tau"):
        assert np.abs(run[name] - small[name][::50]).max() < (5e-3 if order == 2 else 2e-5) * np.abs(run[name]).max()


@orders
def test_beside_a_gear_of_changing_ratio(order: int) -> None:
    def line(Jm: float) -> Driveline:
        d = drive(
            ("x.flange_b", "g.flange_a"), ("g.flange_b", "y.flange_a"), ("y.flange_b", "s.flange_a"),
            ("p.flange_b", "z.flange_a"),
            x=Inertia(J=0.3, w0=5.0), g=VariableGear(), y=Inertia(J=0.5), s=SpringDamper(c=60.0, d=0.1),
            p=SpringDamper(c=30.0, d=1.5), z=Inertia(J=1.0), order=order,
        )  # fmt: skip
        joined = ["s.flange_b", "p.flange_a"]
        if Jm:
            # from the speed at which the dampers balance: (0.1*5/2 + 1.5*0)/1.6
            d.add("m", Inertia(J=Jm, w0=0.15625))
            joined.append("m.flange_a")
        d.connect(*joined)
        return d

    inputs = {"g.ratio": Sine(amplitude=0.5, f=1.0, offset=2.0)}
    run = Simulation(line(0.0), h=1e-3).run(1.0, inputs=inputs)
    small = Simulation(line(1e-7), h=2e-5).run(1.0, inputs=inputs)
    for name in ("x.w", "y.w", "z.w", "s.tau"):
        assert np.abs(run[name] - small[name][::50]).max() < (5e-3 if order == 2 else 2e-5) * np.abs(run[name]).max()


@orders
def test_long_chains_with_more_speeds_than_patterns_are_formed_for(order: int) -> None:
    rng = np.random.default_rng(7)
    middle = tuple(SpringDamper(c=rng.uniform(2e3, 4e3), d=rng.uniform(1.0, 9.0)) for _ in range(20))
    assert errors(middle, order, 1e-3)[0] < (2e-4 if order == 2 else 2e-7)
    d = chain(middle, order)
    d.add("brake", Brake(fn_max=20.0, mue_pos=1.0))
    d.connect("brake.flange_a", "y.flange_b")
    run = Simulation(d, h=1e-3).run(1.0, inputs={"brake.f_normalized": PRESSED["brake.f_normalized"]})
    stored, heat = energy(run)
    assert len(run.model.arrays.rx) == 19
    assert np.ptp(stored + heat) < 1e-6 * stored[0]
    assert 0 in run["brake.mode"] and 1 in np.abs(run["brake.mode"])


def test_in_a_straight_line() -> None:
    d = Driveline("straight", order=4)
    d.add("m", Mass(m=2.0, s0=0.1, L=0))
    d.add("k", TranslationalSpring(c=100.0))
    d.add("p", TranslationalDamper(d=5.0))
    d.add("n", Mass(m=4.0, L=0))
    for first, second in pairwise(["m.flange_b", "k.flange_a", "k.flange_b", "p.flange_a", "p.flange_b", "n.flange_a"]):
        if first[0] != second[0]:
            d.connect(first, second)
    model = compile_driveline(d)
    assert "shaft without inertia" in model.notes[0] and len(model.arrays.rx) == 1
    stored, heat = energy(Simulation(model, h=1e-3).run(1.0))
    assert np.ptp(stored + heat) < 1e-7 * stored[0]


def test_it_starts_where_dampers_put_it_or_where_it_is_told() -> None:
    middle = CHAINS["two spring-dampers"]
    run = Simulation(chain(middle), h=1e-3).run(0.01)
    # from 0.1 to 0: d0*phi_rel0 = d1*(phi_rel1 - 0.05), d0 = 1, d1 = 0.2
    assert run["m0.phi_rel"][0] == pytest.approx(-0.2 * 0.15 / 1.2)
    d = chain(middle)
    d.set_start("m0.phi_rel", 0.07)
    run = Simulation(d, h=1e-3).run(0.01)
    assert run["m0.phi_rel"][0] == pytest.approx(0.07)
    assert run["m0.tau"][0] == pytest.approx(run["m1.tau"][0], rel=1e-12)


def test_a_start_speed_that_follows_is_refused() -> None:
    d = chain(CHAINS["two spring-dampers"])
    d.set_start("m0.w_rel", 0.3)
    with pytest.raises(InitialValueError, match=r"m0\.w_rel = 0\.3: springs and dampers alone move") as caught:
        compile_driveline(d)
    assert caught.value.components == ("m0",)


def test_something_must_have_inertia() -> None:
    d = drive(("f.flange", "s.flange_a"), ("s.flange_b", "p.flange_a"), ("p.flange_b", "g.flange"),
              f=Fixed(), s=SpringDamper(c=1.0, d=1.0), p=SpringDamper(c=1.0, d=2.0), g=Fixed())  # fmt: skip
    with pytest.raises(NoInertiaError, match="nothing that springs or dampers act on"):
        compile_driveline(d)


def test_the_kernel_refuses_a_coordinate_that_is_none() -> None:
    model: CompiledModel = compile_driveline(chain(CHAINS["two spring-dampers"]))
    model.arrays.elements["rx"]["coord"] = 7
    with pytest.raises(ValueError, match=r"rx\.coord: values 7 \.\. 7, allowed 0 \.\. 2"):
        Simulation(model, h=1e-3)
