"""Models that cannot be: every number is held against the range of its quantity, wherever it is read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import torqueloop as tl
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import Damper, Engine, IdealGear, IdealRollingWheel, Inertia, RigidBody, Spring
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import CompileError, ConfigError
from torqueloop.core.describe.ranges import FASTEST, RANGES, page, range_of_key
from torqueloop.core.describe.units import DIMENSIONS
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.cli.file_check import check_file
from torqueloop.hil.common.config_file import ConfigTable, validate
from torqueloop.hil.control.messages import RequestError
from torqueloop.hil.rig.online.names import signals
from torqueloop.hil.rig.online.parameters import Parameters
from torqueloop.hil.rig.resolve.plan import load_plan

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_dimension_has_a_range_and_the_page_shows_it() -> None:
    assert set(DIMENSIONS) <= set(RANGES)
    for name, found in RANGES.items():
        assert found.low < found.high and found.why and math.isfinite(found.high), name
        assert not found.holds(2.0 * found.high) and found.holds(found.high)
        assert not found.holds(math.nan) and (not found.least or not found.holds(0.5 * found.least))
    if DOCS.exists():
        assert (DOCS / "ranges.md").read_text(encoding="utf-8") == page()


@pytest.mark.parametrize(
    ("key", "value", "inside"),
    [("p_bar", 1e5, False), ("p_bar", 20.0, True), ("ramp_s", 2e6, False), ("J_kgm2", 1e-20, False), ("x", 1e300, None),
     ("w_rpm", 6000.0, True), ("density_kgpm3", 850.0, True), ("density_kgpm3", 1e9, False),
     ("fill_cm3", 30.0, True), ("fill_cm3", 1e13, False), ("leak_cm3psbar", -1.0, False)],
)  # fmt: skip
def test_a_key_says_its_quantity_by_its_unit(key: str, value: float, inside: bool | None) -> None:
    found = range_of_key(key)
    assert (found is None) if inside is None else (found is not None and found[0].holds(value * found[1])) == inside


def text_of(error: ConfigError, *words: str) -> None:
    for word in words:
        assert word in str(error), (word, str(error))


def driveline(text: str, folder: Path) -> Any:
    file = folder / "line.toml"
    file.write_text(text, encoding="utf-8")
    return compile_driveline(tl.load(file))


TWO = """
connections = [["a.flange_b", "g.flange_a"], ["g.flange_b", "b.flange_a"]]
[components.a]
kind = "Inertia"
J_kgm2 = {J}
[components.g]
kind = "IdealGear"
ratio = {ratio}
[components.b]
kind = "Inertia"
J_kgm2 = 0.2
[initial]
"b.w_radps" = {w}
"""


def test_a_driveline_of_possible_numbers_compiles(tmp_path: Path) -> None:
    assert driveline(TWO.format(J=0.1, ratio=2.5, w=100.0), tmp_path).n == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"J": "1e-20"}, ("line.toml", "components.a", "J_kgm2", "1E-20", "1e-10", "kg.m2")),
        ({"J": "1e10"}, ("line.toml", "components.a", "J_kgm2", "1e+09")),
        ({"ratio": "1e-300"}, ("line.toml", "components.g", "ratio", "1E-300", "0.0001")),
        ({"w": "1e300"}, ("line.toml", "initial", "b.w", "1e+06 rad/s")),
    ],
)
def test_what_cannot_be_is_named_with_file_table_key_value_and_range(
    wrong: dict[str, str], words: tuple[str, ...], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        driveline(TWO.format(**({"J": "0.1", "ratio": "2.5", "w": "1.0"} | wrong)), tmp_path)
    text_of(caught.value, *words)


def test_points_of_a_curve_are_held_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        tl.load(_written(tmp_path, 'connections = []\n[components.e]\nkind = "Engine"\nJ_kgm2 = 0.2\n'
                         'wot = { columns = ["speed_rpm", "wot_Nm"], rows = [[0, 1e12], [6000, 100]] }\n'))  # fmt: skip
    text_of(caught.value, "1e+12", "1e+09 Nm")


def test_what_rounding_leaves_of_zero_is_zero_where_the_sign_is_free(tmp_path: Path) -> None:
    """A place on an axis by way of a rotation, a torque from a sine; no radius, ratio or inertia is that small."""
    body = RigidBody(m=1.0, I_11=0.1, I_22=0.1, I_33=0.1, x0=math.cos(math.pi / 2), z0=-2.2e-18)
    assert (body.x0, body.z0) == (math.cos(math.pi / 2), -2.2e-18)
    assert Engine(J=0.2, wot=[(0.0, 0.0), (300.0, 100.0), (600.0, 100.0 * math.sin(math.pi) * 1e-3)]).wot.y[2] > 0.0
    for refused in (lambda: IdealRollingWheel(radius=1e-18), lambda: IdealGear(ratio=1e-18)):
        with pytest.raises(ConfigError, match="out of range"):
            refused()


def _written(folder: Path, text: str, name: str = "x.toml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def line_of(J: float, c: float) -> Driveline:
    line = Driveline("pair")
    line.add("a", Inertia(J=J))
    line.add("s", Spring(c=c))
    line.add("d", Damper(d=1.0))
    line.add("b", Inertia(J=0.2))
    line.connect("a.flange_b", "s.flange_a", "d.flange_a")
    line.connect("s.flange_b", "d.flange_b", "b.flange_a")
    return line


def test_a_spring_too_stiff_for_its_inertia_is_named_with_both_numbers() -> None:
    compile_driveline(line_of(1e-3, 1e5))
    # 1e-7 kg m2 on 1e10 Nm/rad: sqrt(c/J) = 3.2e8 rad/s
    with pytest.raises(CompileError) as caught:
        compile_driveline(line_of(1e-7, 1e10))
    assert math.sqrt(1e10 / 1e-7) > FASTEST
    text_of(caught.value, "spring s", "1e+10", "1e-07", "3.16e+08", "1e+08")


def test_inertias_too_far_apart_are_named_with_both_numbers() -> None:
    line = Driveline("pair")
    line.add("a", Inertia(J=2e-8))
    line.add("g", IdealGear(ratio=2))
    line.add("b", Inertia(J=1e6))
    line.connect("a.flange_b", "g.flange_a")
    line.connect("g.flange_b", "b.flange_a")
    with pytest.raises(CompileError) as caught:
        compile_driveline(line)
    text_of(caught.value, "a.J", "b.J", "2e-08", "1e+06", "5e+13")


RIG = 'extends = "desk_4hp22"\n'


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("[safe_state]\nramp_s = 1e6\n", ("safe_state", "ramp_s", "1000000", "60")),
        ('[safe_state.inputs]\n"C4.p" = -1e9\n', ("safe_state.inputs", "C4.p", "-1000000000", "-100000 .. 1e+09")),
        ("[vehicle]\nage_limit_s = 1e6\n", ("vehicle", "age_limit_s", "1000000", "60")),
        ('[[steps]]\nname = "go"\nset = { pedal = 9.0 }\n', ("steps 1", "set", "9.0", "0 .. 1")),
        ("[driver]\npedal = 9.0\n", ("driver", "9.0", "0 .. 1")),
        ("[plant.set]\n\"components.engine.J_kgm2\" = 1e-9\n", ("J_kgm2", "1E-9", "1e-07")),
    ],
)  # fmt: skip
def test_a_rig_of_impossible_numbers_is_refused(table: str, words: tuple[str, ...], tmp_path: Path) -> None:
    file = _written(tmp_path, RIG + table, "rig.toml")
    with pytest.raises(ConfigError) as caught:
        load_plan(file)
    text_of(caught.value, "rig.toml", *words)
    assert not check_file(file).ok


def test_the_control_channel_holds_the_same_ranges() -> None:
    plan = load_plan(Path(tl.configs.installed("rigs")["desk_4hp22"]))
    parameters = Parameters(plan, "auto")
    with pytest.raises(RequestError) as caught:
        parameters.prepare({"engine.J": 1e-9})
    assert "engine.J" in str(caught.value) and "1e-07" in str(caught.value)
    pressure = signals(plan)["input.C4.p"]
    pressure.check(5e5)
    with pytest.raises(RequestError):
        pressure.check(-1e9)
    # an input that no database and no [limits] bound
    force = signals(plan)["input.road.F"]
    force.check(1e5)
    with pytest.raises(RequestError):
        force.check(1e13)


class Valve(ConfigTable):
    """A table with a unit in its keys, and one whose entries have the unit of its name."""

    p_bar: float = 1.0
    over_ms: dict[str, float] = {}


@pytest.mark.parametrize(
    ("table", "words"),
    [({"p_bar": 2e4}, ("p_bar", "20000", "-1 .. 10000 bar")), ({"p_bar": -2.0}, ("p_bar", "-2")),
     ({"over_ms": {"a": 1.0, "b": 2e9}}, ("over_ms", "b", "1e+09 ms"))],
)  # fmt: skip
def test_tables_are_held_in_the_unit_of_their_keys(table: dict[str, Any], words: tuple[str, ...]) -> None:
    assert validate({"p_bar": 17.0, "over_ms": {"a": 5e8}}, Valve, "f.toml").p_bar == 17.0
    with pytest.raises(ConfigError) as caught:
        validate(table, Valve, "f.toml")
    text_of(caught.value, "f.toml", *words)


@pytest.mark.parametrize(("factor", "word"), [("0", "factor 0"), ("1e12", "out of range")])
def test_a_database_whose_factor_cannot_be_is_refused(factor: str, word: str, tmp_path: Path) -> None:
    dbc = ('VERSION ""\nBU_: TCU HIL\nBO_ 528 P: 8 TCU\n SG_ p : 0|16@1+ ({},0) [0|0] "bar" HIL\n')  # fmt: skip
    CanDatabase.load(_written(tmp_path, dbc.format("0.01"), "ok.dbc"), "HIL", needed=["P.p"])
    with pytest.raises(ConfigError) as caught:
        CanDatabase.load(_written(tmp_path, dbc.format(factor), "x.dbc"), "HIL", needed=["P.p"])
    text_of(caught.value, "x.dbc", "P.p", word)
