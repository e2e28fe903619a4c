"""`torqueloop new`: the shipped files are what it writes; from tooth numbers to a rig that runs, in commands."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components.files import load
from torqueloop.core.components.shafts import Inertia
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import CompileError, ConfigError
from torqueloop.hil import cli
from torqueloop.hil.common.locate import locate
from torqueloop.hil.new.car_facts import car_facts
from torqueloop.hil.new.files import control_unit
from torqueloop.hil.new.gearbox_file import Pack, gearbox_text, largest_torques, pack_for
from torqueloop.hil.new.rig_file import rig_text
from torqueloop.hil.new.sketch import load_sketch
from torqueloop.hil.new.tcu_file import element_facts
from torqueloop.hil.vehicle.vehicle_tables import load_vehicle_config

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
SKETCHES = sorted(p.stem for p in (CONFIGS / "sketches").glob("*.toml"))
#: rig -> car, vehicle
GENERATED = {
    "6hp26": "bmw_545i_e60", "zf_4hp22_small": "bmw_520i_e28", "zf_8hp45": "bmw_545i_e60", "zf_8hp70": "bmw_545i_e60",
    "gm_4l60e": "bmw_545i_e60", "mb_7226": "bmw_545i_e60",
}  # fmt: skip


def call(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, re.sub(r"\s+", " ", result.output)


@pytest.mark.parametrize("name", SKETCHES)
def test_shipped_gearbox_is_what_its_sketch_gives(name: str) -> None:
    sketch = load_sketch(CONFIGS / f"sketches/{name}.toml")
    shipped = (CONFIGS / f"gearboxes/{name}.toml").read_text()
    # the head of the shipped file says where the facts come from
    assert shipped.partition("\nname = ")[2] == gearbox_text(sketch).partition("\nname = ")[2]


@pytest.mark.parametrize("name", GENERATED)
def test_shipped_control_unit_database_and_rig_are_what_is_generated(name: str) -> None:
    made = control_unit(f"car_{name}_rig", "")
    assert made.tcu == (CONFIGS / f"tcu/soft_{name}.toml").read_text()
    assert made.database == (CONFIGS / f"can/tcu_{name}.dbc").read_text()
    names = (f"car_{name}_rig", f"soft_{name}", f"tcu_{name}", GENERATED[name])
    assert (
        rig_text(f"desk_{name}", *names, made.elements, made.pedal) == (CONFIGS / f"rigs/desk_{name}.toml").read_text()
    )


def test_packs_hold_the_torque_of_the_statics_with_reserve() -> None:
    sketch = load_sketch(CONFIGS / "sketches/zf_8hp45.toml")
    for torque in largest_torques(sketch).values():
        needed = 1.25 * float(torque) * sketch.torque_Nm
        pack = pack_for(needed, sketch.line_max_bar)
        assert pack.holds_Nm(17.0) >= needed
        assert pack.faces == 4 or Pack(pack.faces - 2, pack.r_o_mm, pack.r_i_mm).holds_Nm(17.0) < needed
    # smallest plates first, and more than 12 faces on the largest ones only
    for needed in range(100, 7000, 100):
        packs = [Pack(faces, r_o, r_i) for r_o, r_i, most in ((97.5, 81.9, 12), (107.0, 77.47, 12), (125.0, 100.0, 20))
                 for faces in range(4, most + 1, 2)]  # fmt: skip
        assert pack_for(needed, 17.0) == next(pack for pack in packs if pack.holds_Nm(17.0) >= needed), needed
    # 20 faces at a radius of 112.5 mm, mu 0.11, a piston of 176.7 cm2 and 17 bar less 0.8 bar of the spring
    with pytest.raises(ConfigError, match="no pack of 20 faces holds 9000 Nm at 17 bar.*at most 7085 Nm in each"):
        pack_for(9000.0, 17.0)


@pytest.mark.parametrize("actuator", ["fill_time", "first_order"])
def test_a_control_unit_fills_an_element_for_as_long_as_its_piston_takes(actuator: str) -> None:
    """The time of the clearance, or three quarters of the lag of the pressure; then the kiss point above the spring."""
    pack = load("zf_8hp45").components["A"]
    made = replace(pack, actuator=actuator, t_fill=0.12, tau_rise=0.04, p_return=0.9e5)
    found = element_facts(made)
    assert found.fill_s == pytest.approx(0.12 if actuator == "fill_time" else 0.03)
    assert found.kiss_bar == pytest.approx(0.95)
    assert found.fill_bar == pytest.approx(1.65 if actuator == "fill_time" else 1.75)
    mean_radius = 2.0 / 3.0 * (pack.r_o**3 - pack.r_i**3) / (pack.r_o**2 - pack.r_i**2)
    assert found.torque_per_bar_Nm == pytest.approx(pack.faces * mean_radius * 0.13 * pack.area * 1e5, rel=0.02)


MISTAKES: list[tuple[Callable[[str], str], str]] = [
    (lambda t: t.replace('ring = "in"', 'ring = "inn"').replace('"in", "R3S4"', '"inn", "R3S4"').replace(
        'carrier = "in"', 'carrier = "inn"'), "nothing is on the shaft 'in'"),
    (lambda t: t.replace('C = ["in", "R3S4"]', 'C = ["in", "R3S5"]'), "no set has the shaft 'R3S5'.*mean 'R3S4'"),
    (lambda t: t.replace("z_sun = 48, ", "", 1), "give z_sun and z_ring, or ratio"),
    (lambda t: t.replace('engaged = ["A", "B", "C"]', 'engaged = ["A", "B", "F"]'), "'F' is no element"),
    (lambda t: t.replace("torque_Nm = 875.0", "torque_Nm = -1.0"), "torque_Nm = -1.0 is not allowed"),
    (lambda t: t.replace('A = "S12"', 'P1 = "S12"').replace('"A"', '"P1"'), "name of a shaft or set"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "text"), MISTAKES)
def test_mistake_in_a_sketch_is_named(spoil: Callable[[str], str], text: str, tmp_path: Path) -> None:
    path = tmp_path / "sketch.toml"
    path.write_text(spoil((CONFIGS / "sketches/zf_8hp45.toml").read_text()))
    with pytest.raises(ConfigError, match=text):
        load_sketch(path)


def test_from_tooth_numbers_to_a_rig_that_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ("new", "gearbox", "mine"),
        ("new", "gearbox", "mine.sketch.toml"),
        ("new", "car", "mine.toml"),
        ("new", "rig", "car_mine_rig.toml"),
        ("check", "mine.sketch.toml", "mine.toml", "car_mine_rig.toml"),
        ("check", "soft_mine.toml", "tcu_mine.dbc", "desk_mine.toml"),
    ):
        status, text = call(*arguments)
        assert status == 0, text
    status, text = call("new", "car", "mine.toml")
    assert status == 2 and "is there already" in text
    assert call("new", "tcu", "zf_8hp45", "--out", "eight.toml", "--database", "eight.dbc")[0] == 0
    assert call("check", "eight.toml", "eight.dbc")[0] == 0


@pytest.mark.parametrize("like", ["bmw_545i_e60", "bmw_528i_hill"])
def test_a_car_from_its_numbers_is_one_car_in_both_files(
    like: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vehicle and drive have one mass; what is given is in the file it belongs to, the rest is that of a published
    car."""
    monkeypatch.chdir(tmp_path)
    numbers = ("--tyre-radius", "0.35", "--axle-ratio", "4.1", "--cda", "1.1")
    assert call("new", "vehicle", "van", "--mass", "2600", *numbers, "--like", like)[0] == 0
    assert call("new", "vehicle", "plain", "--like", like)[0] == 0
    published = load_vehicle_config(locate(like, "vehicles"))
    for name, mass_kg in (("van", 2600.0), ("plain", published.body.mass_kg)):
        assert call("new", "car", "zf_8hp45", "--drive", f"drive_{name}.toml", "--out", f"car_{name}.toml")[0] == 0
        status, text = call("check", f"{name}.toml", f"drive_{name}.toml", f"car_{name}.toml")
        assert status == 0, text
        facts, vehicle = car_facts(f"car_{name}.toml"), load_vehicle_config(f"{name}.toml")
        assert facts.mass_kg == vehicle.body.mass_kg == mass_kg and vehicle.name == name
        assert vehicle.road == published.road and vehicle.body.rolling == published.body.rolling
    van, vehicle = car_facts("car_van.toml"), load_vehicle_config("van.toml")
    assert vehicle.body.cdA_m2 == 1.1 and vehicle.brakes.force_max_N == pytest.approx(2600 * 9.81, abs=10)
    assert van.rpm_per_kmh == pytest.approx(4.1 / 0.35 / 3.6 * 30 / math.pi)
    assert car_facts("car_plain.toml").rpm_per_kmh == pytest.approx(3.46 / 0.316 / 3.6 * 30 / math.pi)
    status, text = call("new", "vehicle", "bad", "--tyre-radius", "0")
    assert status == 2 and "drive_bad.toml: radius_m = 0.0 is out of range" in text
    assert call("new", "vehicle", "van")[0] == 2, "a file that is there is left alone"


def test_check_refuses_tooth_numbers_that_miss_the_published_ratio(tmp_path: Path) -> None:
    path = tmp_path / "box.toml"
    path.write_text((CONFIGS / "gearboxes/zf_8hp45.toml").read_text().replace("z_sun = 60", "z_sun = 61"))
    status, text = call("check", path)
    assert status == 1 or status == 2
    assert "not the published one" in text and "gears." in text


def test_a_car_takes_its_gearbox_as_a_part() -> None:
    car, whole = load("car_zf_8hp45"), load("zf_8hp45")
    assert set(whole.components) <= set(car.components) and car.gears == whole.gears
    assert any({"turbine.flange_b", "in.flange_a"} <= set(group) for group in car.connections)


def test_an_unknown_gearbox_of_a_car_is_named(tmp_path: Path) -> None:
    path = tmp_path / "car.toml"
    path.write_text('gearbox = "zf_8hp46"\ninclude = ["drive_545i"]\n')
    with pytest.raises(ConfigError, match="there is no file 'zf_8hp46'.*did you mean 'zf_8hp45'"):
        load(path)


def test_two_outputs_of_one_name_are_refused() -> None:
    class Twice(Inertia):
        def contribute(self, b):  # type: ignore[no-untyped-def]
            super().contribute(b)
            b.motion_outputs(b.w("flange_a"))

    line = Driveline("twice")
    line.add("J", Twice(J=1.0))
    with pytest.raises(CompileError, match="two outputs are called .J\\."):
        compile_driveline(line)


def test_list_names_every_installed_file_with_a_line() -> None:
    status, text = call("list", "gearboxes", "--json")
    assert status == 0
    for name in SKETCHES:
        assert f'"{name}": "' in text
