"""TOML front end: equal objects from TOML and Python, includes, tables, units; every mistake named with its place."""

from __future__ import annotations

import ast
import copy
import math
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_examples import two_shafts

import torqueloop as tl
from torqueloop.core import components
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import (
    BearingFriction,
    CarResistance,
    Clutch,
    IdealGear,
    IdealPlanetary,
    IdealRollingWheel,
    Inertia,
    LaminarBrake,
)
from torqueloop.core.describe import toml_front
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import (
    CompileError,
    ConfigError,
    DuplicateError,
    MissingValueError,
    RangeError,
    TableError,
    TorqueloopError,
    UnknownKeyError,
    UnknownKindError,
    UnknownNameError,
)
from torqueloop.core.describe.tables import Table1D, Table2D

TWO_SHAFTS = """
name = "two shafts"
connections = [["clutch.flange_b", "J2.flange_a"], ["J1.flange_b", "clutch.flange_a"]]
[[connect]]
flanges = ["torque.flange", "J1.flange_a"]
source = "a sketch"
[components.torque]
kind = "Torque"
[components.J2]
kind = "Inertia"
J_gm2 = 2000
[components.J1]
kind = "Inertia"
J_kgm2 = 1.0
w0_radps = 10
source = "assumed"
[components.clutch]
kind = "Clutch"
fn_max_kN = 0.02
mue_pos = 0.5
peak = 1.1
"""


def write(folder: Path, text: str, name: str = "drive.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_toml_and_python_give_equal_drivelines_and_equal_arrays(tmp_path: Path) -> None:
    from_toml = tl.load(write(tmp_path, TWO_SHAFTS))
    assert from_toml == two_shafts()
    assert compile_driveline(from_toml).digest() == compile_driveline(two_shafts()).digest()
    assert from_toml != two_shafts(fn_max=21.0)


def test_units_of_keys_convert_exactly(tmp_path: Path) -> None:
    text = """
        [components.b]
        kind = "LaminarBrake"
        faces = 6
        r_o_mm = 97.5
        r_i_cm = 8.19
        area_cm2 = 80
        p_return_bar = 0.8
        tau_rise_ms = 20
        mue_pos = "mu"
        [components.bearing]
        kind = "BearingFriction"
        tau_pos_Nm = 2.5
        [components.car]
        kind = "CarResistance"
        f0_kN = 0.18
        [components.wheel]
        kind = "IdealRollingWheel"
        radius_mm = 306
        [tables.mu]
        columns = ["v_mps", "mu"]
        rows = [[0, 0.11], [1.0, 0.13]]
    """
    d = tl.load(write(tmp_path, text))
    assert d.components["b"] == LaminarBrake(
        faces=6, r_o=0.0975, r_i=0.0819, area=0.008, p_return=0.8e5, tau_rise=0.02, mue_pos="mu"
    )
    assert d.components["bearing"] == BearingFriction(tau_pos=2.5)
    assert d.components["car"] == CarResistance(f0=180.0)
    assert d.components["wheel"] == IdealRollingWheel(radius=0.306)
    assert d.tables["mu"] == Table1D.of(["v_mps", "mu"], [[0, 0.11], [1.0, 0.13]])


def test_rpm_and_degrees_convert_to_radians(tmp_path: Path) -> None:
    text = '[components.J]\nkind = "Inertia"\nJ_kgm2 = 1\nw0_rpm = 3000\nphi0_deg = 180\n'
    J = tl.load(write(tmp_path, text)).components["J"]
    assert isinstance(J, Inertia)
    assert J.w0 == pytest.approx(314.1592653589793, rel=1e-15)
    assert J.phi0 == pytest.approx(3.141592653589793, rel=1e-15)


def test_sliding_speed_of_a_friction_curve_is_converted_with_the_mean_radius(tmp_path: Path) -> None:
    text = """
        connections = [["J.flange_a", "b.flange_a"]]
        [components.J]
        kind = "Inertia"
        J_kgm2 = 1
        [components.b]
        kind = "LaminarBrake"
        faces = 2
        r_o_m = 0.11
        r_i_m = 0.09
        area_m2 = 0.01
        mue_pos = { columns = ["v_mps", "mu"], rows = [[0, 0.1], [1, 0.2]] }
    """
    arrays = compile_driveline(tl.load(write(tmp_path, text))).arrays
    assert arrays.tab1_x.tolist() == pytest.approx([0.0, 10.0])
    assert arrays.fr["cgeo"].tolist() == pytest.approx([0.2])


def test_disconnect_makes_room_between_the_parts_of_an_included_file(tmp_path: Path) -> None:
    (tmp_path / "inner.toml").write_text(TWO_SHAFTS)
    outer = tmp_path / "outer.toml"
    text = """
include = ["inner.toml"]
disconnect = ["J2.flange_a"]
connections = [["clutch.flange_b", "shaft.flange_a"], ["shaft.flange_b", "J2.flange_a"]]
[components.shaft]
kind = "SpringDamper"
c_Nm_per_rad = 1000
d_Nms_per_rad = 1
"""
    outer.write_text(text)
    joined = {frozenset(group) for group in tl.load(outer).connections}
    assert joined >= {frozenset({"clutch.flange_b", "shaft.flange_a"}), frozenset({"shaft.flange_b", "J2.flange_a"})}
    assert frozenset({"clutch.flange_b", "J2.flange_a"}) not in joined
    for old, new, words in (
        ('["J2.flange_a"]\nconn', '["J3.flange_a"]\nconn', ["disconnect", "J3"]),
        ('["J2.flange_a"]\nconn', '["J2.flange_b"]\nconn', ["disconnect", "J2.flange_b is joined to nothing"]),
        ('["J2.flange_a"]\nconn', '"J2.flange_a"\nconn', ["disconnect", "list of names"]),
    ):
        outer.write_text(text.replace(old, new))
        with pytest.raises(ConfigError) as error:
            tl.load(outer)
        assert all(word in str(error.value) for word in ["outer.toml", *words]), str(error.value)


def test_include_merges_files_and_keeps_the_outer_name(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    inner = TWO_SHAFTS.replace('"two shafts"', '"inner"').replace('[components.torque]\nkind = "Torque"\n', "")
    write(tmp_path / "parts", inner, "inner.toml")
    outer = 'name = "two shafts"\ninclude = ["parts/inner.toml"]\n[components.torque]\nkind = "Torque"\n'
    assert tl.load(write(tmp_path, outer)) == two_shafts()


def test_csv_tables_pick_columns_by_name_and_scale_them(tmp_path: Path) -> None:
    write(tmp_path, "# comment\nspeed_rpm,x,torque_Nm\n1000,9,100\n3000,9,200\n", "engine.csv")
    text = '[tables.wot]\ncsv = "engine.csv"\ncolumns = ["speed_rpm", "torque_Nm"]\nscales = [1, 0.5]\n'
    table = tl.load(write(tmp_path, text)).tables["wot"]
    assert isinstance(table, Table1D)
    assert table.dimensions == ("angular_velocity", "torque")
    assert table.y == (50.0, 100.0)
    assert table.x[0] == pytest.approx(104.71975511965978, rel=1e-15)


def test_maps_are_grids_in_any_order_of_rows() -> None:
    columns = ["speed_radps", "pedal", "torque_Nm"]
    rows = [[0, 0, 1], [0, 1, 2], [10, 0, 3], [10, 1, 4]]
    table = Table2D.of(columns, rows)
    assert table == Table2D.of(columns, rows[::-1])
    assert table.z == ((1.0, 2.0), (3.0, 4.0))
    with pytest.raises(TableError, match=r"the point speed_radps = 10, pedal = 1 .* is missing"):
        Table2D.of(columns, rows[:3])


def test_start_values_by_output_name_carry_units(tmp_path: Path) -> None:
    text = TWO_SHAFTS + '[initial]\n"J2.w_rpm" = 60\n"clutch.phi_rel_deg" = 90\n'
    d = tl.load(write(tmp_path, text))
    arrays = compile_driveline(d).arrays
    assert arrays.u0.tolist() == pytest.approx([10.0, 6.283185307179586])
    assert arrays.z0[1] - arrays.z0[0] == pytest.approx(1.5707963267948966)


INERTIA = '[components.S12]\nkind = "Inertia"\n'
BROKEN = [
    (INERTIA + "J_kgm = 0.012", UnknownKeyError,
     "unknown key 'J_kgm' in [components.S12]; did you mean 'J_kgm2'?"),
    (INERTIA + 'J_kgm2 = 1\nsorce = "data sheet"', UnknownKeyError,
     "unknown key 'sorce' in [components.S12]; did you mean 'source'?"),
    (INERTIA + 'J_kgm2 = 1\nsource = "data sheet"\nzzz = 1', UnknownKeyError, "phi0_rad, source, w0_radps, w0_rpm"),
    ('[initial]\nsorce = "data sheet"', UnknownNameError,
     "unknown start value 'sorce' in [initial]; did you mean 'source'?"),
    (INERTIA + "J = 1", UnknownKeyError, "J = 1 has no unit in [components.S12]; write J_kgm2 (or J_gm2)"),
    (INERTIA, MissingValueError, "J_kgm2 is missing in [components.S12]"),
    (INERTIA + "J_kgm2 = -0.5", RangeError,
     "J_kgm2 = -0.5 is out of range in [components.S12]; allowed: >= 0 kgm2"),
    (INERTIA + 'J_kgm2 = "big"', RangeError, "J_kgm2 = 'big' is not a number in [components.S12]"),
    (INERTIA + "J_kgm2 = nan", RangeError, "J_kgm2 = NaN is not finite in [components.S12]"),
    (INERTIA + "J_kgm2 = 1\nJ_gm2 = 3", DuplicateError,
     "J is given twice, as 'J_kgm2' and 'J_gm2' in [components.S12]"),
    ('[components.S12]\nkind = "Inertial"\nJ_kgm2 = 1', UnknownKindError,
     "unknown component kind 'Inertial' in [components.S12]; did you mean 'Inertia'?"),
    ("[components.S12]\nJ_kgm2 = 1", MissingValueError, "kind is missing in [components.S12]"),
    ('[components.P]\nkind = "IdealPlanetary"\nz_sun = 0\nz_ring = 73', RangeError,
     "z_sun = 0 is out of range in [components.P]; allowed: >= 1"),
    ('[components.P]\nkind = "IdealPlanetary"\nz_sun = 35\nz_ring = -73', RangeError, "z_ring = -73 is out of range"),
    ('[components.P]\nkind = "IdealPlanetary"\nz_sun = 35.5\nz_ring = 73', RangeError,
     "z_sun = 35.5 is not a whole number"),
    ('[components.P]\nkind = "IdealPlanetary"\nz_sun = 35', MissingValueError,
     "z_sun and z_ring belong together: z_ring is missing in [components.P]"),
    ('[components.P]\nkind = "IdealPlanetary"\nratio = -1', RangeError, "ratio = -1 is out of range"),
    ('[components.g]\nkind = "IdealGear"\nratio = 0', RangeError, "ratio = 0 is out of range"),
    ('[components.c]\nkind = "LaminarClutch"\nmue_pos = 0.1\narea_m2 = 1\nfaces = 2\nr_o_m = 0.1', MissingValueError,
     "r_i_m is missing"),
    ('[tables.mu]\ncolumns = ["v_mps", "mu"]\nrows = [[0, 1], [2, 1], [1, 1]]', TableError,
     "first column is not strictly increasing at row 3: 1 after 2 (in SI) in [tables.mu]"),
    ('[tables.mu]\ncolumns = ["v_mps", "mu"]\nrows = [[0, 1], [2]]', TableError, "row 2 does not have 2 values"),
    ('[tables.mu]\ncolumns = ["v_mps", "mu"]\nrows = [[0, inf]]', TableError, "row 1 = Infinity is not finite"),
    (INERTIA + "J_kgm2 = 1e999999999", RangeError,
     "J_kgm2 = 1E+999999999 is out of range in [components.S12]"),
    ("connect = 3", RangeError, "connect is not a list of tables"),
    ('[tables.mu]\ncolumns = ["v_rpm", "mu"]\nrows = [[0, 1], [1e-400, 1]]', TableError,
     "row 2 = 1E-400 is out of range"),
    ('[tables.mu]\ncolumns = ["v_mps", "mu"]\ncsv = "none.csv"', TableError, "none.csv"),
    ('[tables.mu]\ncolumns = ["v_mps", "mu"]\nrow = []', UnknownKeyError,
     "unknown key 'row' in [tables.mu]; did you mean 'rows'?"),
    ('component = 1', UnknownKeyError, "unknown key 'component'; did you mean 'components'?"),
    ('connections = [["a.flange", "b.flange"]]', UnknownNameError,
     "connection to 'a.flange': there is no component 'a' in [connections]"),
    (INERTIA + 'J_kgm2 = 1\n[[connect]]\nflanges = ["S12.flange_a", "S12.flange_c"]', UnknownNameError,
     "Inertia has no flange 'flange_c' in [connections]; did you mean"),
    (INERTIA + 'J_kgm2 = 1\n[[connect]]\nflanges = ["S12.flange_a"]', RangeError,
     "a connection needs at least 2 flanges"),
    ("[solver]\norder = 3", RangeError, 'order = 3 is unknown in [solver]; allowed: 2 | 4 | "auto"'),
    ('include = ["drive.toml"]', ConfigError, "include goes in a circle"),
    ('include = ["nowhere.toml"]', ConfigError, "include: there is no file 'nowhere.toml'"),
    ("name = ", ConfigError, "not TOML"),
    ('[gears.1]\nengaged = ["C4"]', UnknownNameError, "there is no component 'C4' in [gears.1]"),
    (INERTIA + 'J_kgm2 = 1\n[gearbox]\ninput = "in"\noutput = "S12"', UnknownNameError, "there is no component 'in'"),
    ('[initial]\n"J1.w" = 3', UnknownKeyError, "J1.w = 3 has no unit in [initial]; write J1.w_radps"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "message"), BROKEN, ids=[b[2][:40] for b in BROKEN])
def test_mistakes_are_named_with_file_table_key_and_value(tmp_path: Path, text: str, kind, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(kind) as caught:
        tl.load(path)
    assert str(caught.value).startswith(f"{path}: ") and message in str(caught.value)


def test_a_component_named_twice_names_both_files(tmp_path: Path) -> None:
    inner = write(tmp_path, INERTIA + "J_kgm2 = 1", "inner.toml")
    outer = write(tmp_path, 'include = ["inner.toml"]\n' + INERTIA + "J_kgm2 = 2")
    with pytest.raises(DuplicateError) as caught:
        tl.load(outer)
    assert str(inner) in str(caught.value) and str(outer) in str(caught.value)


def test_a_table_of_the_wrong_dimension_is_refused_where_it_is_used(tmp_path: Path) -> None:
    text = TWO_SHAFTS.replace("mue_pos = 0.5", 'mue_pos = "mu"') + (
        '[tables.mu]\ncolumns = ["torque_Nm", "mu"]\nrows = [[0, 0.5]]\n'
    )
    path = write(tmp_path, text)
    with pytest.raises(TableError) as caught:
        compile_driveline(tl.load(path))
    assert "table 'mu' has columns of (Nm, 1), but (rad/s, 1) are needed here" in str(caught.value)
    assert "[components.clutch]" in str(caught.value) and str(path) in str(caught.value)
    assert isinstance(caught.value, CompileError)


def test_a_table_with_several_columns_carries_units(tmp_path: Path) -> None:
    text = """
[components.in]
kind = "Inertia"
J_kgm2 = 1
[components.g]
kind = "LossyGear"
ratio = 2
lossTable = "losses"
[components.out]
kind = "Inertia"
J_kgm2 = 1
[tables.losses]
columns = ["speed_rpm", "eta1", "eta2", "tbf1_Nm", "tbf2_Nm"]
rows = [[0, 0.9, 0.8, 1, 2], [3000, 0.95, 0.9, 3, 4]]
"""
    text = 'connections = [["in.flange_b", "g.flange_a"], ["g.flange_b", "out.flange_a"]]' + text
    arrays = compile_driveline(tl.load(write(tmp_path, text))).arrays
    curve = arrays.ls["tab"][0, 3]
    first, end = arrays.tab1_ptr[curve : curve + 2]
    assert arrays.tab1_x[first:end] == pytest.approx([0.0, 3000 * math.pi / 30])
    assert arrays.tab1_y[first:end].tolist() == [2.0, 4.0]
    with pytest.raises(TableError, match=r"table 'losses' has columns of \(rad/s, 1, 1, Nm, 1\)"):
        compile_driveline(tl.load(write(tmp_path, text.replace("tbf2_Nm", "tbf2"))))
    with pytest.raises(TableError, match="rows without units"):
        tl.load(write(tmp_path, text.replace('lossTable = "losses"', "lossTable = [[0, 1, 1, 0, 0]]")))


def test_a_table_that_does_not_exist_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, TWO_SHAFTS.replace("mue_pos = 0.5", 'mue_pos = "mu_papper"'))
    d = tl.load(path)
    d.add_table("mu_paper", Table1D.constant(0.5))
    with pytest.raises(UnknownNameError, match=r"no table 'mu_papper' for mue_pos .* did you mean 'mu_paper'\?"):
        compile_driveline(d)
    assert d.unused_tables() == ["mu_paper"]


def test_python_components_check_their_parameters_too() -> None:
    with pytest.raises(RangeError, match=r"J = -1 is out of range in \[Inertia\]; allowed: >= 0 kgm2"):
        Inertia(J=-1)
    with pytest.raises(MissingValueError, match=r"fn_max is missing in \[Clutch\]"):
        Clutch(mue_pos=0.5)
    with pytest.raises(TableError, match=r"row 2 of mue_pos: -0.1 is out of range"):
        Clutch(fn_max=1.0, mue_pos=[[0, 0.5], [1, -0.1]])
    with pytest.raises(DuplicateError, match="component 'J1' exists already"):
        two_shafts().add("J1", Inertia(J=1.0))


def test_numbers_of_numpy_are_numbers() -> None:
    """As parameters, in curves, as start values; a double of numpy is the decimal number it prints."""
    clutch = Clutch(fn_max=np.float64(10.1), mue_pos=[[np.int64(0), np.float32(0.5)], [10, np.float64(0.25)]])
    assert clutch == Clutch(fn_max=10.1, mue_pos=[[0, 0.5], [10, 0.25]])
    assert IdealGear(ratio=np.float64(2.1)).ratio == Fraction(21, 10) and IdealGear(ratio=np.int32(3)).ratio == 3
    planetary = IdealPlanetary(z_sun=np.int64(30), z_ring=np.uint8(70))
    assert planetary == IdealPlanetary(z_sun=30, z_ring=70) and type(planetary.z_sun) is int
    assert BearingFriction(tau_pos=np.float64(1.5)) == BearingFriction(tau_pos=1.5)
    assert Table1D.of(["w_rpm", "tau_Nm"], np.array([[0.0, 1.0], [30.0, 2.0]]).tolist()).y == (1.0, 2.0)
    d = two_shafts()
    d.set_start("J2.w", np.float32(2.5))
    assert d.start == {"J2.w": 2.5}
    for wrong in (np.float64("nan"), np.float64("inf"), np.complex128(1.0), np.bool_(True), 10**400):
        with pytest.raises(RangeError):
            Inertia(J=wrong)


def test_type_checkers_see_every_kind_in_the_package_of_components() -> None:
    names = ["FAMILIES", "KINDS", "Component", "Flange", "Param", "params_of", *components.KINDS]
    assert sorted(components.__all__) == sorted(names)
    tree = ast.parse(Path(components.__file__ or "").read_text(encoding="utf-8"))
    listing = next(n for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__")
    assert ast.literal_eval(listing.value) == components.__all__, "plain words"


def test_all_powertrains_that_are_shipped_compile() -> None:
    configs = Path(__file__).parents[2] / "configs"
    files = sorted([*configs.glob("gearboxes/*.toml"), *configs.glob("powertrains/*.toml")])
    assert files
    for file in files:
        d = tl.load(file)
        assert isinstance(d, Driveline)
        assert compile_driveline(d).n >= 1
        assert d.unused_tables() == []


JUNK: list[Any] = [
    0, -1, 3, True, "", "C4", "../x", [], [1], ["a"], [["a", "b"]], [[1, 2], [2, 3]], [{}], {}, {"a": 1},
    Decimal("nan"), Decimal("inf"), Decimal("1e400"), Decimal("-0.5"), 10**400, ["speed_radps", "torque_Nm"],
]  # fmt: skip


def _places(config: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a parsed file."""
    if isinstance(config, dict):
        items = list(config.items())
    elif isinstance(config, list):
        items = list(enumerate(config))
    else:
        return []
    return [(config, key) for key, _ in items] + [place for _, value in items for place in _places(value)]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_put_into_a_file_the_error_is_one_of_ours(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, keys and tables of the shipped files replaced by junk at random: compiled, or refused with a reason."""
    rng = random.Random(seed)
    files = sorted((Path(__file__).parents[2] / "configs" / "powertrains").glob("*.toml"))
    read = toml_front.parse
    refused = 0
    for _ in range(60):
        spared = rng.randrange(3)  # how many of the files (outer one, then its includes) stay whole

        def damaged(path: Path) -> dict[str, Any]:
            nonlocal spared
            config = read(path)
            spared -= 1
            if spared < 0:
                spared = 99
                container, key = rng.choice(_places(config))
                if isinstance(container, dict) and rng.random() < 0.3:
                    container[key + "x"] = container.pop(key)
                else:
                    container[key] = copy.deepcopy(rng.choice(JUNK))
            return config

        monkeypatch.setattr(toml_front, "parse", damaged)
        try:
            compile_driveline(tl.load(rng.choice(files)))
        except TorqueloopError as error:
            assert str(error)
            refused += 1
    assert refused > 20
