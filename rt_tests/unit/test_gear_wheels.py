"""Drawn wheels: teeth meet at any angle, numbers of teeth pass alike on both sides, packs have their places."""

from __future__ import annotations

import cmath
import random
from dataclasses import replace
from pathlib import Path

import pytest

from torqueloop.core.analyse.gear_section import DX, Coupling, _Column, section
from torqueloop.core.analyse.gear_wheels import WheelSet, mesh_error, wheel_sets
from torqueloop.core.analyse.section_grid import Grid, Net, lines
from torqueloop.core.components import IdealPlanetary, Inertia, Planetary, Ravigneaux
from torqueloop.core.components.files import load
from torqueloop.core.describe.driveline import Driveline
from torqueloop.hil.animate.stage import stage

GEARBOXES = Path(__file__).parents[2] / "configs" / "gearboxes"


def explicit() -> Driveline:
    """Stepped planets and a Ravigneaux set, with and without a stepped long planet."""
    line = Driveline("explicit")
    line.add("in", Inertia(J=1.0))
    line.add("stepped", Planetary(z_sun=30, z_planet_sun=20, z_planet_ring=14, z_ring=70))
    line.add("pair", Ravigneaux(z_sun1=30, z_sun2=36, z_planet1=18, z_planet2=24, z_ring=84))
    line.add("both", Ravigneaux(z_sun1=30, z_sun2=36, z_planet1=18, z_planet2=24, z_planet2_sun=20, z_ring=84))
    # long planets of (84 - 60)/2 teeth: those inside must have (84 - 30)/2 - 12 at least to reach from the sun to them
    line.add("plus", IdealPlanetary(z_sun=30, z_ring=84, plus_set=True))
    line.add("plain", IdealPlanetary(z_sun=60, z_ring=84))
    line.connect("plus.carrier", "plain.carrier")
    line.connect("plus.ring", "plain.ring")
    return line


def worst(made: WheelSet, chance: random.Random) -> float:
    """Largest error of any pair of wheels, in pitches, at an attitude that the laws of the shafts allow."""
    carrier = chance.uniform(-40.0, 40.0)
    first = made.wheels[0]
    angle = {first.name: chance.uniform(-40.0, 40.0)}
    for wheel in made.wheels:
        if wheel.role == "planet":
            angle[wheel.name] = wheel.spin["carrier"] * carrier + wheel.spin[first.member] * angle[first.name]
    for mesh in made.meshes:  # suns and rings follow from the planets that are known by now
        a, b = made.wheel(mesh.first), made.wheel(mesh.second)
        if b.role != "planet":
            sign = 1.0 if mesh.inner else -1.0
            angle[b.name] = carrier + sign * (angle[a.name] - carrier) * a.teeth / b.teeth
    return max(abs(mesh_error(made, mesh, pair, angle, carrier)) for mesh in made.meshes for pair in mesh.pairs)


def every_set() -> list[WheelSet]:
    found = [s for file in sorted(GEARBOXES.glob("*.toml")) for s in wheel_sets(load(file)).values()]
    return found + list(wheel_sets(explicit()).values())


def test_teeth_meet_gaps_at_every_planet_and_angle() -> None:
    chance = random.Random(2)
    sets = every_set()
    assert len(sets) > 20
    for made in sets:
        assert max(worst(made, chance) for _ in range(10)) < 1e-9, made.name


def test_a_planet_that_turns_with_a_wrong_ratio_is_seen() -> None:
    """One tooth too many in the ratio of the planet, right on the carrier: the meshes do not fit any more."""
    made = wheel_sets(load(GEARBOXES / "zf_4hp22.toml"))["P1"]
    planet = made.wheel("planet")
    z = planet.teeth + 1
    wrong = replace(planet, spin={"sun": -35 / z, "carrier": 1 + 35 / z})
    planted = replace(made, wheels=tuple(wrong if w.name == "planet" else w for w in made.wheels))
    assert max(worst(planted, random.Random(k)) for k in range(5)) > 0.05


def test_wheels_that_mesh_touch_and_planets_beside_each_other_do_not() -> None:
    """The distance of the axes is the sum of the radii, in a ring their difference, to what rounded teeth leave."""
    for made in every_set():
        for mesh in made.meshes:
            a, b = made.wheel(mesh.first), made.wheel(mesh.second)
            p, q = (
                w.places[k][0] * cmath.exp(1j * w.places[k][1]) if w.role == "planet" else 0.0
                for w, k in zip((a, b), mesh.pairs[0], strict=True)
            )
            reach = b.radius - a.radius if mesh.inner else a.radius + b.radius
            assert abs(p - q) == pytest.approx(reach, rel=0.06), (made.name, mesh.first, mesh.second)
        for wheel in (w for w in made.wheels if w.role == "planet" and len(w.places) > 1):
            at = [d * cmath.exp(1j * angle) for d, angle in wheel.places]
            nearest = min(abs(p - q) for k, p in enumerate(at) for q in at[:k])
            assert nearest > 2 * wheel.radius, (made.name, wheel.name)


def test_as_many_planets_are_drawn_as_fit() -> None:
    """Wheels of 40 teeth on a circle of 60 teeth: three of them, at 120 degrees. Of pairs there are four at most, of
    which none can be joined evenly between 30 and 65 teeth."""
    line = Driveline("x")
    line.add("in", Inertia(J=1.0))
    line.add("large", Planetary(z_sun=20, z_planet_sun=40, z_planet_ring=14, z_ring=74))
    line.add("pairs", IdealPlanetary(z_sun=30, z_ring=65, plus_set=True))
    sets = wheel_sets(line)
    assert len(sets["large"].wheel("planet_sun").places) == 3 == len(sets["pairs"].wheel("planet_outer").places)


def test_both_meshes_of_a_planet_pass_as_many_teeth() -> None:
    """Willis with the tooth numbers of the file, whatever the planet has: sun and ring from the planet's spin."""
    made = wheel_sets(load(GEARBOXES / "zf_4hp22.toml"))["P3"]
    sun, planet, ring = (made.wheel(n) for n in ("sun", "planet", "ring"))
    w_c, w_s = 120.0, -35.0
    w_r = ((sun.teeth + ring.teeth) * w_c - sun.teeth * w_s) / ring.teeth
    w_p = planet.spin["carrier"] * w_c + planet.spin["sun"] * w_s
    assert (sun.teeth, ring.teeth) == (31, 83)
    assert sun.teeth * (w_s - w_c) == pytest.approx(-planet.teeth * (w_p - w_c), rel=1e-12)
    assert planet.teeth * (w_p - w_c) == pytest.approx(ring.teeth * (w_r - w_c), rel=1e-12)


def test_the_plus_set_of_a_lepelletier_gearbox_shares_its_outer_planets() -> None:
    sets = wheel_sets(load(GEARBOXES / "lepelletier_6hp26.toml"))
    small, large = sets["small"], sets["large"]
    outer, long = small.wheel("planet_outer"), large.wheel("planet")
    assert small.partner == "large" and outer.teeth == long.teeth
    for a, b in zip(outer.places, long.places, strict=True):
        assert a == pytest.approx(b)
    pitch = 2 * 3.141592653589793 / long.teeth
    for a, b in zip(outer.phases, long.phases, strict=True):
        assert abs((a - b) / pitch - round((a - b) / pitch)) < 1e-9, "one wheel through both"


def test_a_wheel_is_reached_over_its_whole_width_and_beside_both_of_its_sides() -> None:
    """A row of three columns from 4 on: the ring over 4, 5 and 6 and beside 3 and 7, the sun below all five."""
    column = _Column(wheel_sets(load(GEARBOXES / "zf_4hp22.toml"))["P1"], {}, 4, (True, True))
    for member in ("sun", "ring"):
        assert sorted(c for c, _ in column.terminal(member)) == [3, 4, 5, 6, 7], member
    left, right = (column.stub("carrier", (c, 5))[3] for c in (2, 8))
    assert (left, right) == pytest.approx((3.5 * DX, 7.5 * DX)), "in the middle of the plates of the carrier"


def test_a_way_is_drawn_as_tubes_and_discs_of_its_length() -> None:
    """From the axis at the left to two rows and three columns away: pieces between the middles of its cells."""
    net = Net("x", [frozenset({(0, 0)}), frozenset({(3, 2)})])
    Grid(5, 4, []).route(net)
    tubes, discs = lines(net)
    assert sum(b - a for _, a, b in tubes) == 3 and sum(b - a for _, a, b in discs) == 2
    assert min(a for _, a, _ in tubes) == 0 and max(b for _, _, b in discs) == 2


@pytest.mark.parametrize("name", ["zf_4hp22", "zf_4hp22_small"])
def test_coaxial_shafts_of_a_gearbox_that_exists_do_not_cross(name: str) -> None:
    assert stage(load(GEARBOXES / f"{name}.toml")).section.crossings == 0


def test_every_coupling_gets_a_place_of_its_own_and_its_shafts_reach_it() -> None:
    made = wheel_sets(load(GEARBOXES / "gm_4l60e.toml"))["P1"]
    shafts = {"sun": "in", "carrier": "C", "ring": "R"}
    couplings = [Coupling("K", "clutch", "in", "R"), Coupling("B", "brake", "R", None)]
    couplings.append(Coupling("D", "clutch", "C", "R"))
    found = section([(made, shafts)], couplings, ("in", "C"))
    assert found.crossings == 0
    boxes = [(c.x, c.r_in) for c in found.couplings]
    assert len(set(boxes)) == 3
    brake = next(c for c in found.couplings if c.kind == "brake")
    assert brake.outer is None and brake.inner == "R"
    assert {s.name for s in found.shafts if s.tubes or s.discs} == {"in", "R", "C"}
    for shaft in ("in", "C"):  # they come in at the left, leave at the right, on the axis
        form = next(s for s in found.shafts if s.name == shaft)
        assert any(r < 0.07 for r, _, _ in form.tubes)
    again = section([(made, shafts)], couplings, ("in", "C"))
    assert again == found
