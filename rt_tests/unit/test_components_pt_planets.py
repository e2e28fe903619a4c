"""Planetary trains from planet-planet and planet-ring sets: exact kinematics and statics from tooth numbers."""

from __future__ import annotations

from fractions import Fraction as F
from pathlib import Path

import pytest

from torqueloop.core.analyse.analysis import ratio
from torqueloop.core.compile.compiler import analyse, compile_driveline
from torqueloop.core.components import (
    Component,
    Fixed,
    IdealPlanetary,
    Inertia,
    LaminarClutch,
    Planetary,
    PlanetPlanet,
    PlanetRing,
    Ravigneaux,
)
from torqueloop.core.components.files import load
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import MissingValueError, RangeError
from torqueloop.core.describe.vocabulary import Form

PACK = {"faces": 8, "r_o": 0.09, "r_i": 0.07, "mue_pos": 0.12, "area": 0.008}


def train(component: Component, name: str = "set") -> Driveline:
    """The component with an inertia on every flange."""
    d = Driveline("train")
    d.add(name, component)
    for flange in component.flanges:
        d.add(flange, Inertia(J=0.01))
        d.connect(f"{name}.{flange}", f"{flange}.flange_a")
    return d


def speeds(d: Driveline, given: dict[str, F]) -> dict[str, F]:
    """Speeds of all shafts (exact) from as many given ones as there are degrees of freedom."""
    from torqueloop.core.compile.exact import reduce

    _, topology = analyse(d)
    rows = [dict(row) for _, row, _ in topology.gear_rows] + [{name: F(1)} for name in given]
    rhs = [F(0)] * len(topology.gear_rows) + list(given.values())
    reduced = reduce(rows, rhs, sorted(topology.nodes))
    assert not reduced.dependent and set(reduced.pivots) == set(topology.nodes)
    return {name: value for name, (_, value) in reduced.pivots.items()}


def test_two_outer_wheels_turn_against_each_other_when_the_carrier_stands() -> None:
    w = speeds(train(PlanetPlanet(z1=17, z2=43)), {"carrier": F(0), "planet1": F(1)})
    assert w["planet2"] == F(-17, 43)


def test_a_locked_set_turns_as_a_block() -> None:
    for component, member in ((PlanetPlanet(z1=17, z2=43), "planet1"), (PlanetRing(z1=17, z2=43), "planet")):
        w = speeds(train(component), {"carrier": F(3), member: F(3)})
        assert set(w.values()) == {F(3)}


def test_a_planet_rolls_in_a_standing_ring_as_counted_by_its_teeth() -> None:
    """w_planet = -(z_ring - z_planet)/z_planet*w_carrier."""
    w = speeds(train(PlanetRing(z1=20, z2=60)), {"carrier": F(1), "ring": F(0)})
    assert w["planet"] == F(-2)


def test_equations_of_table_1() -> None:
    """phi_0 = i1*phi_1 + i2*phi_2 with i = z/(z1 + z2);  phi_0 = i2*phi_2 - i1*phi_1 with i = z/(z2 - z1)."""
    w = speeds(train(PlanetPlanet(z1=30, z2=50)), {"planet1": F(7), "planet2": F(-2)})
    assert w["carrier"] == F(30, 80) * 7 - F(50, 80) * 2
    w = speeds(train(PlanetRing(z1=30, z2=50)), {"planet": F(7), "ring": F(-2)})
    assert w["carrier"] == F(50, 20) * -2 - F(30, 20) * 7


@pytest.mark.parametrize("steps", [(20, 20), (31, 17), (12, 25)])
def test_a_stepped_planet_is_the_simple_set_of_its_ratio(steps: tuple[int, int]) -> None:
    """Willis: (w_sun - w_c)/(w_ring - w_c) = -(z_planet_sun*z_ring)/(z_sun*z_planet_ring)."""
    first, second = steps
    stepped = Planetary(z_sun=24, z_planet_sun=first, z_planet_ring=second, z_ring=66)
    assert stepped.i == F(first * 66, 24 * second)
    w = speeds(train(stepped), {"carrier": F(5), "ring": F(11)})
    assert (w["sun"] - 5) / (w["ring"] - 5) == -F(first * 66, 24 * second)
    assert (w["planet"] - 5) * first == -(w["sun"] - 5) * 24
    simple = speeds(train(IdealPlanetary(ratio=stepped.i)), {"carrier": F(5), "ring": F(11)})
    assert all(w[name] == value for name, value in simple.items())


def test_an_unstepped_planet_does_not_matter_to_the_shafts() -> None:
    assert Planetary(z_sun=35, z_planet_sun=19, z_ring=73).i == F(73, 35)


def test_planets_with_inertia_are_felt_at_the_sun() -> None:
    """Carrier held: J_eff = J_sun + J_planet*(z_sun/z_planet)^2 + J_ring*(z_sun/z_ring)^2."""
    d = Driveline("felt")
    d.add("set", Planetary(z_sun=20, z_planet_sun=40, z_ring=100, J_planet=0.3))
    d.add("sun", Inertia(J=0.1))
    d.add("ring", Inertia(J=2.0))
    d.add("housing", Fixed())
    d.connect("set.sun", "sun.flange_a")
    d.connect("set.ring", "ring.flange_a")
    d.connect("set.carrier", "housing.flange")
    model = compile_driveline(d)
    (name,) = model.coordinates
    per_sun = {"sun": F(1), "ring": F(-5)}[name]  # w_sun = -5*w_ring
    at_sun = model.arrays.M[0, 0] / float(per_sun * per_sun)
    assert at_sun == pytest.approx(0.1 + 0.3 * 0.25 + 2.0 / 25.0, rel=1e-15)
    assert "set.w_planet" in model.output_names


Z1, Z2, ZR = 31, 38, 85


def ravigneaux_box(composed: bool) -> Driveline:
    """Input on sun1, sun2 or the carrier by clutches; sun2 and the carrier can be held. Output: ring."""
    d = Driveline("ravigneaux")
    for shaft in ("in", "S1", "S2", "C", "out"):
        d.add(shaft, Inertia(J=0.01))
    d.add("housing", Fixed())
    if composed:
        d.add("set", Ravigneaux(z_sun1=Z1, z_sun2=Z2, z_planet1=21, z_planet2=23, z_ring=ZR))
        pairs = {"set.sun1": "S1", "set.sun2": "S2", "set.carrier": "C", "set.ring": "out"}
    else:
        d.add("plus", IdealPlanetary(z_sun=Z1, z_ring=ZR, plus_set=True))
        d.add("minus", IdealPlanetary(z_sun=Z2, z_ring=ZR))
        pairs = {"plus.sun": "S1", "plus.carrier": "C", "plus.ring": "out",
                 "minus.sun": "S2", "minus.carrier": "C", "minus.ring": "out"}  # fmt: skip
    for flange, shaft in pairs.items():
        d.connect(flange, f"{shaft}.flange_a")
    for name, a, b in (("K1", "in", "S1"), ("K2", "in", "S2"), ("K3", "in", "C")):
        d.add(name, LaminarClutch(**PACK))
        d.connect(f"{name}.flange_a", f"{a}.flange_b")
        d.connect(f"{name}.flange_b", f"{b}.flange_b")
    for name, shaft in (("B2", "S2"), ("BC", "C")):
        d.add(name, LaminarClutch(**PACK))
        d.connect(f"{name}.flange_a", f"{shaft}.flange_b")
        d.connect(f"{name}.flange_b", "housing.flange")
    d.set_gearbox("in", "out")
    return d


#: engaged -> closed formula of the ratio of a Ravigneaux set with output at the ring
CLOSED = {
    ("K1", "BC"): F(ZR, Z1),
    ("K1", "B2"): F(ZR * (Z1 + Z2), Z1 * (ZR + Z2)),
    ("K1", "K2"): F(1),
    ("K3", "B2"): F(ZR, ZR + Z2),
    ("K2", "BC"): F(-ZR, Z2),
}


@pytest.mark.parametrize("engaged", CLOSED)
def test_ravigneaux_has_the_ratios_of_the_closed_formulas(engaged: tuple[str, str]) -> None:
    assert ratio(ravigneaux_box(composed=True), engaged) == CLOSED[engaged]


@pytest.mark.parametrize("engaged", CLOSED)
def test_ravigneaux_has_the_torques_of_a_plus_and_a_minus_set(engaged: tuple[str, str]) -> None:
    from torqueloop.core.analyse.analysis import gear_state

    composed, pair = (gear_state(ravigneaux_box(c), engaged) for c in (True, False))
    assert composed.torques == pair.torques
    assert composed.output_torque == pair.output_torque == -CLOSED[engaged]
    assert {k: composed.speeds[k] for k in pair.speeds} == pair.speeds


def test_long_planet_with_a_step_changes_the_ratio_of_its_sun_only() -> None:
    w = speeds(
        train(Ravigneaux(z_sun1=30, z_sun2=40, z_planet1=20, z_planet2=25, z_planet2_sun=30, z_ring=90)),
        {"carrier": F(0), "ring": F(1)},
    )
    assert w["sun1"] == F(90, 30)
    assert w["sun2"] == -F(90, 25) * F(30, 40)


def test_reduced_inertia_of_a_composed_set_is_that_of_its_shafts() -> None:
    """Massless planets add nothing: M is the same quadratic form as that of the pair of simple sets."""
    composed, pair = (compile_driveline(ravigneaux_box(c)) for c in (True, False))
    assert composed.coordinates == pair.coordinates
    assert (composed.arrays.M == pair.arrays.M).all()


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: PlanetRing(z1=40, z2=40), "z2"),
        (lambda: Planetary(z_sun=20, z_planet_sun=30, z_ring=25), "z_ring"),
        (lambda: Ravigneaux(z_sun1=20, z_sun2=30, z_planet1=20, z_planet2=60, z_ring=50), "z_ring"),
        (lambda: PlanetPlanet(z1=0, z2=3), "z1"),
    ],
)
def test_impossible_teeth_are_refused_with_their_key(make: object, key: str) -> None:
    with pytest.raises(RangeError) as caught:
        make()  # type: ignore[operator]
    assert caught.value.key == key


def test_missing_teeth_are_named() -> None:
    with pytest.raises(MissingValueError) as caught:
        PlanetPlanet(z1=3)
    assert caught.value.key == "z2"


TOML = """
name = "train"
connections = [
  ["set.sun", "sun.flange_a"], ["set.carrier", "carrier.flange_a"], ["set.ring", "ring.flange_a"],
  ["set.planet", "planet.flange_a"],
]
[components.set]
kind = "Planetary"
z_sun = 24
z_planet_sun = 31
z_planet_ring = 17
z_ring = 66
""" + "".join(f'[components.{n}]\nkind = "Inertia"\nJ_kgm2 = 0.01\n' for n in ("sun", "carrier", "ring", "planet"))


def test_toml_and_python_are_the_same_train(tmp_path: Path) -> None:
    path = tmp_path / "train.toml"
    path.write_text(TOML, encoding="utf-8")
    python = train(Planetary(z_sun=24, z_planet_sun=31, z_planet_ring=17, z_ring=66))
    assert load(path) == python
    assert compile_driveline(load(path)).digest() == compile_driveline(python).digest()


def test_every_row_of_a_planetary_is_fulfilled_exactly() -> None:
    parts, topology = analyse(ravigneaux_box(composed=True))
    assert len(parts.constraints) == 4
    for constraint in parts.constraints:
        assert topology.over_independent(constraint.form) == ({}, 0)
        assert sum(constraint.form.terms.values()) == 0, "a block turns freely"
        assert isinstance(constraint.form, Form)
