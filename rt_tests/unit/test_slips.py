"""Slips of dampers far stiffer than a step as coordinates: momentum and energy do not depend on how stiff they are."""

from __future__ import annotations

import numpy as np
import pytest

from torqueloop.core.compile import slips
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import (
    Brake,
    Clutch,
    Damper,
    ElastoBacklash,
    Fixed,
    IdealGear,
    IdealPlanetary,
    Inertia,
    Spring,
    SpringDamper,
    Torque,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Pulse, Sine
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

orders = pytest.mark.parametrize("order", [2, 4])
H = 1e-3


def pair(J: float, d: float, order: int) -> Driveline:
    """A damper between 1 kg.m2 at 10 rad/s and J at rest."""
    train = Driveline("pair", order=order)
    train.add("A", Inertia(J=1.0, w0=10.0))
    train.add("B", Inertia(J=J))
    train.add("D", Damper(d=d))
    train.connect("A.flange_b", "D.flange_a")
    train.connect("D.flange_b", "B.flange_a")
    return train


@orders
@pytest.mark.parametrize("J", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("stiff", [1e2, 1e3, 1e4, 1e5, 1e6, 1e7])
def test_heat_of_a_damper_is_the_energy_lost_however_stiff_it_is(stiff: float, J: float, order: int) -> None:
    """d*h/J = stiff. What it could take at most: the energy of a plastic impact."""
    r = Simulation(pair(J, stiff * J / H, order), h=H).run(0.5)
    impact = 0.5 * J / (1.0 + J) * 100.0
    lost = r["energy.kinetic"][0] - r["energy.kinetic"]
    assert np.abs(r["D.loss"] - lost).max() <= 1e-6 * impact
    assert np.diff(r["D.loss"]).min() >= 0.0
    assert r["D.loss"][-1] <= impact * (1.0 + 1e-6)
    np.testing.assert_allclose(r["A.w"] + J * r["B.w"], 10.0, rtol=1e-8)
    assert (r["A.w"][0], r["B.w"][0]) == (10.0, 0.0)


def train(order: int) -> Driveline:
    """Gears, springs, clearance, clutch, brake; three dampers in a ring, and one to the housing."""
    d = Driveline("train", order=order)
    for k, (J, w0) in enumerate([(0.3, 20.0), (0.02, None), (0.1, 5.0), (0.5, None), (0.05, None)]):
        d.add(f"J{k}", Inertia(J=J, w0=w0, phi0=0.1 * k if k < 3 else None))
    d.add("F", Fixed())
    d.add("D01", Damper(d=3.0))
    d.add("D12", SpringDamper(c=200.0, d=2.0, phi_rel0=0.2))
    d.add("D20", Damper(d=1.0))
    d.add("G", IdealGear(ratio=-2))
    d.add("D", Damper(d=0.7))
    d.add("S", Spring(c=300.0))
    d.add("E", ElastoBacklash(c=2e3, d=1.0, b=0.02))
    d.add("K", Clutch(fn_max=8.0, mue_pos=1.0, peak=1.2))
    d.add("B", Brake(fn_max=20.0, mue_pos=1.0, peak=1.1))
    d.add("P", IdealPlanetary(ratio=2))
    d.add("T", Torque())
    d.connect("J0.flange_b", "D01.flange_a", "D20.flange_b", "K.flange_a", "T.flange")
    d.connect("J1.flange_a", "D01.flange_b", "D12.flange_a", "B.flange_a")
    d.connect("J2.flange_a", "D12.flange_b", "D20.flange_a", "G.flange_a", "P.sun")
    d.connect("G.flange_b", "D.flange_a", "S.flange_a", "K.flange_b")
    d.connect("D.flange_b", "S.flange_b", "J3.flange_a", "E.flange_a", "P.ring")
    d.connect("E.flange_b", "F.flange")
    d.connect("P.carrier", "J4.flange_a")
    return d


def run(order: int) -> Result:
    inputs = {
        "K.f_normalized": Pulse(amplitude=1.0, width=60.0, period=0.05), "T.tau": Sine(amplitude=30.0, f=7.0),
        "B.f_normalized": Pulse(amplitude=1.0, width=30.0, period=0.031),
    }  # fmt: skip
    return Simulation(train(order), h=H, kernel="generic").run(0.4, inputs=inputs)


@orders
def test_a_driveline_moves_the_same_with_slips_or_shafts_as_coordinates(
    order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shafts = run(order)
    assert not shafts.model.topology.slips
    monkeypatch.setattr(slips, "STIFF", 0.0)
    slipping = run(order)
    assert len(slipping.model.topology.slips) >= 3
    assert shafts.names == slipping.names and len(shafts.modes) > 20
    assert [(m.element, m.mode) for m in shafts.modes] == [(m.element, m.mode) for m in slipping.modes]
    for name in shafts.names:
        size = 1.0 + np.abs(shafts[name]).max()
        np.testing.assert_allclose(slipping[name], shafts[name], rtol=0.0, atol=1e-9 * size, err_msg=name)


def test_only_dampers_no_step_resolves_are_coordinates() -> None:
    """d/J: of the lighter side; a damper to the housing is in one equation as it is."""
    assert not compile_driveline(pair(1e-3, 1e3, 2)).topology.slips
    model = compile_driveline(pair(1e-3, 1.1e3, 2))
    (place,) = model.topology.slips
    assert place == "B"
    np.testing.assert_allclose(sorted(model.arrays.u0), [-10.0, 10.0])


@orders
def test_a_light_shaft_between_a_stiff_damper_and_a_clutch_gives_way_at_the_same_instant(
    order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """d/J = 1e7 of the light one, which is a slip then, 3e5 of the heavier one, which stays a shaft."""
    d = pair(1e-4, 1e3, order)
    d.add("K", Clutch(fn_max=30.0, mue_pos=1.0, peak=1.2))
    d.add("C", Inertia(J=3e-3))
    d.add("S", SpringDamper(c=200.0, d=1e3))
    d.add("E", Inertia(J=0.5))
    d.add("T", Torque())
    d.connect("B.flange_b", "K.flange_a")
    d.connect("K.flange_b", "C.flange_a")
    d.connect("C.flange_b", "S.flange_a")
    d.connect("S.flange_b", "E.flange_a")
    d.connect("T.flange", "A.flange_a")
    inputs = {"K.f_normalized": 1.0, "T.tau": Sine(amplitude=150.0, f=5.0)}
    slipping = Simulation(d, h=1e-5).run(0.5, inputs=inputs)
    assert set(slipping.model.topology.slips) == {"B"}
    monkeypatch.setattr(slips, "STIFF", 1e30)
    shafts = Simulation(d, h=1e-5).run(0.5, inputs=inputs)
    assert not shafts.model.topology.slips
    assert len(shafts.modes) > 4
    assert [(m.element, m.mode) for m in shafts.modes] == [(m.element, m.mode) for m in slipping.modes]
    for a, b in zip(shafts.modes, slipping.modes, strict=True):
        assert a.time_s == pytest.approx(b.time_s, abs=1e-9)
    for name in ("A.w", "C.w", "E.w", "K.heat", "D.loss"):
        np.testing.assert_allclose(slipping[name], shafts[name], rtol=0.0, atol=1e-7)
