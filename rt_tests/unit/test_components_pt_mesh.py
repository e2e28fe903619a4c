"""Gear meshes with force-pole offset: rows, constraint matrix, loss-modified transpose, arrays, the paper's example."""

from __future__ import annotations

from fractions import Fraction as F
from pathlib import Path

import numpy as np
import pytest
from pt_arrays import curve_of, row_of

from torqueloop.core.analyse.constraint_matrix import constraint_matrix
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import Brake, DragTorque, Fixed, GearMesh, IdealPlanetary, Inertia, Torque
from torqueloop.core.components.files import load
from torqueloop.core.components.mesh import MESHES, offset_of_efficiency
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import (
    ConfigError,
    MissingValueError,
    OverconstrainedError,
    RangeError,
    UnknownNameError,
)
from torqueloop.core.describe.vocabulary import Form

CONFIGS = Path(__file__).parents[2] / "configs" / "examples"
SHAFTS = ("carrier", "H", "A_L", "A_R", "C_L", "C_R", "F_L", "F_R", "D_L", "D_R")
ROWS = tuple(f"mesh{k}" for k in range(1, 9))


def pair(mesh: GearMesh, carrier: bool = True) -> Driveline:
    d = Driveline("pair")
    d.add("mesh", mesh)
    for flange in ("in", "out", "carrier")[: 3 if carrier else 2]:
        d.add(f"J_{flange}", Inertia(J=0.1))
        d.connect(f"mesh.{flange}", f"J_{flange}.flange_a")
    return d


# --- laws ------------------------------------------------------------------------------------------------------------
def torques(mesh: GearMesh, f: float) -> tuple[float, float, float]:
    """(T_in that enters, T_out and T_c that leave) for F = 1 N, as the driveline has them: row and loss form."""
    w = [Form({name: 1}) for name in ("in", "out", "carrier")]
    row, loss = mesh.row(*w).terms, mesh.loss_form(*w).terms
    # the mesh puts -F*row - f*F*loss on its members (lambda = -F)
    on = {k: -float(row.get(k, 0)) - f * float(loss.get(k, 0)) for k in ("in", "out", "carrier")}
    return -on["in"], on["out"], on["carrier"]


@pytest.mark.parametrize("f", [0.0, 0.002, -0.002])
def test_torques_of_an_external_mesh_are_those_of_the_paper(f: float) -> None:
    """T_in/(R_in + f) = -T_out/(R_out - f) = F, T_in = T_out + T_c (part B, sections 8 and 9)."""
    T_in, T_out, T_c = torques(GearMesh(R_in=0.05, R_out=0.08), f)
    assert T_in == pytest.approx(0.05 + f, abs=1e-15)
    assert T_out == pytest.approx(-(0.08 - f), abs=1e-15)
    assert T_in == pytest.approx(T_out + T_c, abs=1e-15)
    assert T_c == pytest.approx(0.13, abs=1e-15), "the offset does not change the carrier's torque"


@pytest.mark.parametrize("f", [0.0, 0.002, -0.002])
def test_torques_of_an_internal_mesh_change_both_arms_alike(f: float) -> None:
    T_in, T_out, T_c = torques(GearMesh(mesh="internal", R_in=0.03, R_out=0.09), f)
    assert T_in == pytest.approx(0.03 + f, abs=1e-15)
    assert T_out == pytest.approx(0.09 + f, abs=1e-15)
    assert T_in == pytest.approx(T_out + T_c, abs=1e-15)


def test_a_mirrored_mesh_is_the_external_one_with_the_sense_of_out_reversed() -> None:
    external = torques(GearMesh(R_in=0.05, R_out=0.08), 0.001)
    mirrored = torques(GearMesh(mesh="mirrored", R_in=0.05, R_out=0.08), 0.001)
    assert mirrored[0] == pytest.approx(external[0])
    assert mirrored[1] == pytest.approx(-external[1])


@pytest.mark.parametrize("kind", MESHES)
def test_the_offset_loses_power_for_every_sense_of_speed_and_force(kind: str) -> None:
    """T_in*W_in - T_out*W_out = dR*|F|*|W_in -+ W_out| > 0 with f = dR*sign(F*(W_in -+ W_out))."""
    mesh = GearMesh(mesh=kind, R_in=0.03, R_out=0.09, deltaR=0.001)
    sign_row, sign_loss = MESHES[kind]
    for force in (1.0, -1.0):
        for speed in (1.0, -1.0):
            out = -sign_row * speed * 0.03 / 0.09
            slip = speed + sign_loss * out
            f = 0.001 * np.sign(force * slip)
            T_in, T_out, _ = (force * T for T in torques(mesh, f))
            assert T_in * speed - T_out * out == pytest.approx(0.001 * abs(slip))


@pytest.mark.parametrize(("kind", "expected"), [("external", 1 / 0.03 + 1 / 0.09), ("internal", 1 / 0.03 - 1 / 0.09)])
def test_an_internal_mesh_loses_less_than_an_external_one(kind: str, expected: float) -> None:
    """Relative loss for small offsets: dR*(1/R_in +- 1/R_out)."""
    f = 1e-7
    T_in, T_out, _ = torques(GearMesh(mesh=kind, R_in=0.03, R_out=0.09), f)
    out = {"external": -1.0, "internal": 1.0}[kind] * 0.03 / 0.09
    assert (T_in - T_out * out) / T_in == pytest.approx(f * expected, rel=1e-4)


@pytest.mark.parametrize("kind", ["external", "internal", "mirrored"])
def test_offset_of_an_efficiency_gives_that_efficiency(kind: str) -> None:
    f = offset_of_efficiency(0.97, 0.03, 0.09, kind)
    T_in, T_out, _ = torques(GearMesh(mesh=kind, R_in=0.03, R_out=0.09), f)
    out = -MESHES[kind][0] * 0.03 / 0.09
    assert T_out * out / T_in == pytest.approx(0.97, rel=1e-12)


# --- arrays ----------------------------------------------------------------------------------------------------------
def test_kinematics_of_a_planetary_set_of_two_meshes_are_exact() -> None:
    """Sun-planet external, planet-ring internal: the row of IdealPlanetary(ratio = z_ring/z_sun)."""
    meshes = Driveline("meshes")
    meshes.add("sp", GearMesh(z_in=24, z_out=21, module=0.002))
    meshes.add("pr", GearMesh(mesh="internal", z_in=21, z_out=66, module=0.002))
    ideal = Driveline("meshes")
    ideal.add("set", IdealPlanetary(z_sun=24, z_ring=66))
    for d, joined in (
        (meshes, {"sun": ["sp.in"], "carrier": ["sp.carrier", "pr.carrier"], "ring": ["pr.out"]}),
        (ideal, {"sun": ["set.sun"], "carrier": ["set.carrier"], "ring": ["set.ring"]}),
    ):
        for name, flanges in joined.items():
            d.add(name, Inertia(J=0.1))
            d.connect(f"{name}.flange_a", *flanges)
    meshes.connect("sp.out", "pr.in")
    first, second = compile_driveline(meshes), compile_driveline(ideal)
    assert first.coordinates == second.coordinates
    assert (first.arrays.M == second.arrays.M).all()


def parallel(z_out: int) -> Driveline:
    """Two meshes between the same two shafts; their carriers are the housing."""
    d = Driveline("parallel")
    d.add("first", GearMesh(z_in=20, z_out=40, module=0.002))
    d.add("second", GearMesh(z_in=30, z_out=z_out, module=0.002))
    for name, flange in (("x", "in"), ("y", "out")):
        d.add(name, Inertia(J=1.0))
        d.connect(f"{name}.flange_a", f"first.{flange}", f"second.{flange}")
    return d


@pytest.mark.parametrize(("z_out", "reason"), [(50, "it can never turn"), (60, "the torques in it are undetermined")])
def test_meshes_in_parallel_are_refused(z_out: int, reason: str) -> None:
    with pytest.raises(OverconstrainedError, match=reason) as caught:
        compile_driveline(parallel(z_out))
    assert caught.value.components == ("first", "second")


def test_a_wheel_may_be_held_in_the_housing_on_purpose() -> None:
    d = Driveline("held")
    d.add("mesh", GearMesh(z_in=20, z_out=40, module=0.002))
    d.add("housing", Fixed())
    d.add("held", Inertia(J=1.0))
    d.add("free", Inertia(J=1.0))
    d.add("drive", Torque())
    d.connect("mesh.in", "housing.flange")
    d.connect("mesh.out", "held.flange_a")
    d.connect("drive.flange", "free.flange_a")
    assert compile_driveline(d).coordinates == ("free",)


def test_arrays_of_a_lossy_mesh() -> None:
    """kA = +dR, kB = -dR, no bearing part; the load is F = -lambda; the loss acts along w_in - w_out."""
    model = compile_driveline(pair(GearMesh(R_in=F(1, 20), R_out=F(2, 25), deltaR=F(1, 1000))))
    a = model.arrays
    assert a.ls["form"].tolist() == [1] and a.ls["input"].tolist() == [-1]
    assert a.fr["src"].tolist() == [4]
    assert [curve_of(a, k)[0][1] for k in a.ls["tab"][0]] == [0.001, -0.001, 0.0, 0.0]
    assert model.output_index("mesh.F") >= 0


@pytest.mark.parametrize("sign", [1, -1])
def test_load_of_a_mesh_follows_from_the_motion(sign: int) -> None:
    """With the external torques that Newton's law J*a + C_mod^T*F = T asks for, the kernel's formula gives F back."""
    d = pair(GearMesh(R_in=0.05, R_out=0.08, deltaR=0.001))
    shafts = ["J_in", "J_out", "J_carrier"]
    for shaft in shafts:
        d.add(f"T_{shaft}", Torque())
        d.connect(f"T_{shaft}.flange", f"{shaft}.flange_b")
    model = compile_driveline(d)
    a, matrix = model.arrays, constraint_matrix(d, {"mesh": sign}, ["mesh"], shafts)
    motion = dict(zip(model.coordinates, (7.0, -3.0), strict=True))
    rows = [model.topology.over_independent(Form({f"{shaft}.flange_a": 1}))[0] for shaft in shafts]
    acceleration = np.array([sum(float(c) * motion[name] for name, c in row.items()) for row in rows])
    assert matrix.C @ acceleration == pytest.approx([0.0], abs=1e-12)
    force = 40.0
    needed = dict(zip(shafts, 0.1 * acceleration + matrix.C_mod[0] * force, strict=True))
    port = np.array([needed[name.removeprefix("T_")] for name in model.torque_names])
    friction = np.array([-sign * 0.001 * force])
    u = np.array([motion[name] for name in model.coordinates])
    value = a.re_A @ u + a.re_port @ port + a.re_fr @ friction
    assert value == pytest.approx([force], rel=1e-12)
    # and the reduced equation of motion is the same: M*u' = sum of row^T*force
    np.testing.assert_allclose(
        a.M @ u, sum(row_of(a, a.tq["row"][k]) * port[k] for k in range(3)) + row_of(a, a.fr["row"][0]) * friction,
        rtol=1e-12,
    )  # fmt: skip


def test_a_mesh_without_offset_has_its_force_but_no_friction() -> None:
    model = compile_driveline(pair(GearMesh(R_in=0.05, R_out=0.08)))
    assert "mesh.F" in model.output_names and "mesh.loss" not in model.output_names
    assert model.friction_names == ()


def test_drag_between_members_is_coulomb_friction_along_their_difference() -> None:
    d = pair(GearMesh(R_in=0.05, R_out=0.08))
    d.add("drag", DragTorque(deltaT=1.5))
    d.connect("drag.flange_a", "mesh.in")
    d.connect("drag.flange_b", "mesh.carrier")
    d.add("seal", DragTorque(deltaT=0.5))
    d.connect("seal.flange_a", "mesh.out")
    a = compile_driveline(d).arrays
    assert a.fr["gain"].tolist() == [1.5, 0.5]
    assert a.fr["src"].tolist() == [0, 0] and a.fr["fwd"].tolist() == a.fr["bwd"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"R_in": 0.05, "R_out": 0.08, "deltaR": 0.05}, "deltaR"),
        ({"R_in": 0.05, "R_out": 0.08, "z_in": 20}, "z_in"),
        ({"mesh": "internal", "R_in": 0.05, "R_out": 0.05}, "R_out"),
        ({"mesh": "inner", "R_in": 0.05, "R_out": 0.06}, "mesh"),
    ],
)
def test_impossible_meshes_are_refused_with_their_key(values: dict[str, object], key: str) -> None:
    with pytest.raises(RangeError) as caught:
        GearMesh(**values)  # type: ignore[arg-type]
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("values", "key"), [({"z_in": 2, "z_out": 3}, "module"), ({"R_in": 0.1}, "R_out"), ({}, "z_in")]
)
def test_what_a_mesh_lacks_is_named(values: dict[str, object], key: str) -> None:
    with pytest.raises(MissingValueError) as caught:
        GearMesh(**values)  # type: ignore[arg-type]
    assert caught.value.key == key


# --- constraint matrix -----------------------------------------------------------------------------------------------
#: in mm
RADII = {"G": 120, "H": 30, "A": 50, "B": 50, "C": 24, "D": 60, "E": 32, "F": 52}


def printed_matrix() -> np.ndarray:
    """The matrix of section 7, entry by entry as printed (left and right radii are equal in the example)."""
    r = {name: F(radius, 1000) for name, radius in RADII.items()}
    return np.array([
        [-r["G"], r["H"], 0, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, r["A"], 0, 0, 0, -r["B"], 0, 0, 0],
        [0, 0, 0, r["A"], 0, 0, 0, -r["B"], 0, 0],
        [r["F"] - r["E"], 0, 0, 0, 0, 0, -r["F"], 0, r["E"], 0],
        [r["F"] - r["E"], 0, 0, 0, 0, 0, 0, -r["F"], 0, r["E"]],
        [r["D"] - r["C"], 0, 0, 0, r["C"], 0, 0, 0, -r["D"], 0],
        [r["D"] - r["C"], 0, 0, 0, 0, r["C"], 0, 0, 0, -r["D"]],
        [r["E"] - r["E"], 0, 0, 0, 0, 0, 0, 0, r["E"], -r["E"]],
    ], dtype=float)  # fmt: skip


def train_alone(printed: bool) -> Driveline:
    """The eight meshes of the example file and their shafts; `printed`: with the signs of section 7."""
    example = load(CONFIGS / "steering_gear.toml")
    kept = {*SHAFTS, *ROWS}
    d = Driveline("train")
    for name in kept:
        component = example.components[name]
        if printed and isinstance(component, GearMesh):
            component = GearMesh(mesh="mirrored", R_in=component.R_in, R_out=component.R_out, deltaR=component.deltaR)
        d.add(name, component)
    for group in example.connections:
        ends = [flange for flange in group if flange.rpartition(".")[0] in kept]
        if len(ends) > 1:
            d.connect(*ends)
    return d


def test_matrix_with_the_printed_signs_equals_the_one_of_the_paper() -> None:
    C, _, names = constraint_matrix(train_alone(printed=True), meshes=ROWS, shafts=SHAFTS)
    np.testing.assert_array_equal(C, printed_matrix())
    assert names.meshes == ROWS and names.shafts == SHAFTS


def test_printed_signs_are_no_differential_and_the_example_is_one() -> None:
    """Rows 4, 5, 8 as printed force w_FL = w_FR; with external meshes w_FL + w_FR = 2*w_carrier, ratio 81/49."""
    left, right, c = SHAFTS.index("F_L"), SHAFTS.index("F_R"), SHAFTS.index("carrier")
    for printed in (True, False):
        C = constraint_matrix(train_alone(printed), meshes=ROWS, shafts=SHAFTS).C
        free = np.linalg.svd(C)[2][np.linalg.matrix_rank(C) :]
        assert len(free) == 2
        if printed:
            np.testing.assert_allclose(free[:, left], free[:, right], atol=1e-12)
        else:
            np.testing.assert_allclose(free[:, left] + free[:, right], 2 * free[:, c], atol=1e-12)
            brake = np.zeros(len(SHAFTS))
            brake[SHAFTS.index("C_R")] = 1.0
            motion = np.linalg.svd(np.vstack([C, brake]))[2][-1]
            assert motion[left] / motion[right] == pytest.approx(81 / 49, rel=1e-12)


def test_matrix_of_the_example_is_the_printed_one_with_planet_speeds_mirrored_about_the_carrier() -> None:
    """Rows 1..3 entry by entry; rows 4..7 with w_planet = 2*w_carrier - w_printed; row 8 needs the plus sign."""
    C = constraint_matrix(load(CONFIGS / "steering_gear.toml"), meshes=ROWS, shafts=SHAFTS).C
    mirror = np.eye(10)
    for planet in ("D_L", "D_R"):
        k = SHAFTS.index(planet)
        mirror[k, k], mirror[k, 0] = -1.0, 2.0
    paper = printed_matrix()
    np.testing.assert_array_equal(C[:3], paper[:3])
    turned = C @ mirror
    np.testing.assert_allclose(turned[3:5], -paper[3:5], atol=1e-15)
    np.testing.assert_allclose(turned[5:7], paper[5:7], atol=1e-15)
    row8 = paper[7].copy()
    row8[[0, 9]] = [-2e-3 * RADII["E"], 1e-3 * RADII["E"]]
    np.testing.assert_allclose(turned[7], -row8, atol=1e-15)


def test_modified_transpose_has_the_radii_of_equation_11() -> None:
    signs = {"mesh4": 1, "mesh6": -1}
    C, C_mod, _ = constraint_matrix(load(CONFIGS / "steering_gear.toml"), signs, ROWS, SHAFTS)
    change = C_mod - C
    dR = {name: float(load(CONFIGS / "steering_gear.toml").components[name].deltaR) for name in signs}
    expected = np.zeros_like(C)
    # in + f, out - f: mesh4 D_L (E) and F_L, mesh6 C_L and D_L
    expected[3, SHAFTS.index("D_L")], expected[3, SHAFTS.index("F_L")] = dR["mesh4"], -dR["mesh4"]
    expected[5, SHAFTS.index("C_L")], expected[5, SHAFTS.index("D_L")] = -dR["mesh6"], dR["mesh6"]
    np.testing.assert_allclose(change, expected, atol=1e-17)


def test_members_of_the_housing_have_no_column() -> None:
    d = pair(GearMesh(R_in=0.05, R_out=0.08), carrier=False)
    d.add("brake", Brake(fn_max=1.0, mue_pos=1.0))
    d.connect("brake.flange_a", "mesh.in")
    C, C_mod, names = constraint_matrix(d)
    assert C.tolist() == C_mod.tolist() == [[0.05, 0.08]]
    assert names.shafts == ("J_in", "J_out")


def test_wrong_names_and_signs_are_refused() -> None:
    d = pair(GearMesh(R_in=0.05, R_out=0.08))
    with pytest.raises(UnknownNameError, match="meshh"):
        constraint_matrix(d, {"meshh": 1})
    with pytest.raises(RangeError):
        constraint_matrix(d, {"mesh": 2})
    with pytest.raises(UnknownNameError, match="not among"):
        constraint_matrix(d, shafts=["J_in", "J_out"])
    empty = Driveline("empty")
    empty.add("housing", Fixed())
    with pytest.raises(ConfigError, match="no GearMesh"):
        constraint_matrix(empty)


TOML = """
name = "pair"
connections = [["mesh.in", "J_in.flange_a"], ["mesh.out", "J_out.flange_a"], ["mesh.carrier", "J_carrier.flange_a"]]
[components.mesh]
kind = "GearMesh"
mesh = "internal"
z_in = 20
z_out = 60
module_mm = 2.5
deltaR_mm = 0.3
""" + "".join(f'[components.J_{n}]\nkind = "Inertia"\nJ_kgm2 = 0.1\n' for n in ("in", "out", "carrier"))


def test_toml_and_python_are_the_same_mesh(tmp_path: Path) -> None:
    path = tmp_path / "pair.toml"
    path.write_text(TOML, encoding="utf-8")
    mesh = GearMesh(mesh="internal", z_in=20, z_out=60, module=0.0025, deltaR=0.0003)
    assert mesh.radii == (F(1, 40), F(3, 40))
    assert load(path) == pair(mesh)
    assert compile_driveline(load(path)).digest() == compile_driveline(pair(mesh)).digest()
