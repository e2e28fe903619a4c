"""Installed files go by bare name wherever a file is named; `check` tells what a file is, also one of changes alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import torqueloop as tl
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.cli.file_check import check_file
from torqueloop.hil.ecu.shift import TorqueEstimator
from torqueloop.hil.ecu.tcu_tables import load_tcu_config
from torqueloop.hil.record.run_folder import input_files
from torqueloop.hil.scenario.offline import compiled
from torqueloop.hil.scenario.scenario_tables import load_scenario

CONFIGS = Path(tl.__file__).parent / "configs"


def test_include_and_csv_take_bare_names(tmp_path: Path) -> None:
    """The drive of the 4HP22 with its gearbox and tables by bare name is the same model."""
    drive = (CONFIGS / "drives" / "drive_528i.toml").read_text()
    for folder, name in (("engines", "bmw_m30b28"), ("converters", "tc_4hp22"), ("converters", "tc_4hp22_coast")):
        assert f'"../{folder}/{name}.csv"' in drive
        drive = drive.replace(f'"../{folder}/{name}.csv"', f'"{name}"')
    (tmp_path / "own_drive.toml").write_text(drive)
    text = (CONFIGS / "powertrains" / "drive_4hp22.toml").read_text()
    text = text.replace('"../gearboxes/zf_4hp22.toml"', '"zf_4hp22"')
    text = text.replace('"../drives/drive_528i.toml"', '"own_drive.toml"')
    assert "../" not in text + drive
    (tmp_path / "drive.toml").write_text(text)
    (tmp_path / "mine.toml").write_text('include = ["car_4hp22"]\n')
    ours = compile_driveline(tl.load(CONFIGS / "powertrains" / "drive_4hp22.toml"))
    mine = compile_driveline(tl.load(tmp_path / "drive.toml"))
    assert mine.digest() == ours.digest()
    whole = compile_driveline(tl.load(tmp_path / "mine.toml"))
    assert whole.digest() == compile_driveline(tl.load("car_4hp22")).digest()
    # the run directory keeps them where a replay looks for bare names
    kept = {path.name for path, bare in input_files(tmp_path / "drive.toml") if bare}
    assert {"zf_4hp22.toml", "bmw_m30b28.csv", "tc_4hp22.csv", "tc_4hp22_coast.csv"} <= kept


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('include = ["zf_4hp2"]', "include: there is no file 'zf_4hp2'; did you mean 'zf_4hp22'"),
        ('include = ["zf_4hp22.toml"]', "include: there is no file 'zf_4hp22.toml'"),
    ],
)
def test_a_name_of_nothing_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "x.toml").write_text(text + "\n")
    with pytest.raises(ConfigError, match=words):
        tl.load(tmp_path / "x.toml")


def test_a_file_beside_goes_before_an_installed_one(tmp_path: Path) -> None:
    (tmp_path / "zf_4hp22").write_text('name = "own"\n[components.J]\nkind = "Inertia"\nJ_kgm2 = 1\n')
    (tmp_path / "x.toml").write_text('include = ["zf_4hp22"]\n')
    assert list(tl.load(tmp_path / "x.toml").components) == ["J"]


def test_a_simulation_a_scenario_and_a_tcu_take_bare_names(tmp_path: Path) -> None:
    assert tl.Simulation("car_4hp22", h=1e-3).model.name == "car_4hp22"
    text = (CONFIGS / "scenarios" / "wot_4hp22.toml").read_text()
    bare = text.replace('"../powertrains/car_4hp22.toml"', '"car_4hp22"')
    assert bare != text
    (tmp_path / "scenario.toml").write_text(bare)
    assert compiled(load_scenario(tmp_path / "scenario.toml"))[0].name == "car_4hp22"
    text = (CONFIGS / "tcu" / "soft_4hp22.toml").read_text()
    for name, path in (("tc_4hp22", "../converters/tc_4hp22.csv"), ("bmw_m30b28", "../engines/bmw_m30b28.csv"),
                       ("tc_4hp22_coast", "../converters/tc_4hp22_coast.csv")):  # fmt: skip
        assert path in text
        text = text.replace(f'"{path}"', f'"{name}"')
    (tmp_path / "tcu.toml").write_text(text)
    ours = TorqueEstimator(load_tcu_config(CONFIGS / "tcu" / "soft_4hp22.toml"))
    assert vars(TorqueEstimator(load_tcu_config(tmp_path / "tcu.toml"))) == vars(ours)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("desk_4hp22", "rig"), ("soft_4hp22", "TCU"), ("bmw_528i_e28", "vehicle"), ("zf_4hp22", "gearbox"),
     ("wot_4hp22", "scenario"), ("car_4hp22", "powertrain"), ("tcu_4hp22", "CAN database"), ("kick_down", "scenario")],
)  # fmt: skip
def test_check_takes_bare_names(name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checked = check_file(name)
    assert checked.ok and checked.kind == kind, checked.error


def test_check_of_a_name_of_nothing_tells_the_nearest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "did you mean 'desk_4hp22'" in str(check_file("desk_4hp2").error)


@pytest.mark.parametrize(
    ("base", "change", "kind"),
    [
        ("desk_4hp22", "[vehicle]\nage_limit_s = 1.0", "rig"),
        ("desk_4hp22", "[inputs]\n'engine.pedal' = 'driver.brake'", "rig"),
        ("soft_4hp22", "[timing]\nstatus_every = 1", "TCU"),
        ("soft_4hp22", "power_on_torque_Nm = 20.0", "TCU"),
        ("bmw_528i_e28", "[link]\ngive_up_s = 3.0", "vehicle"),
        ("wot_4hp22", "[inputs]\n'engine.pedal' = 0.5", "scenario"),
    ],
)
def test_a_file_of_changes_is_of_the_kind_of_what_it_extends(tmp_path: Path, base: str, change: str, kind: str) -> None:
    for k, name in enumerate((base, str(tmp_path / "0.toml"))):
        path = tmp_path / f"{k}.toml"
        path.write_text(f'extends = "{name}"\n' + (change if k == 0 else "") + "\n")
        checked = check_file(path)
        assert checked.ok and checked.kind == kind, checked.error


def test_files_that_extend_each_other_are_refused_not_followed_for_ever(tmp_path: Path) -> None:
    for a, b in (("a", "b"), ("b", "a")):
        (tmp_path / f"{a}.toml").write_text(f'extends = "{b}.toml"\n[rig]\nname = "x"\n')
    assert "circle" in str(check_file(tmp_path / "a.toml").error)


def test_check_says_what_the_list_of_precompiled_drivelines_is(tmp_path: Path) -> None:
    checked = check_file(CONFIGS / "topologies.toml")
    assert checked.ok and checked.kind == "list of precompiled drivelines" and "zf_4hp22" in checked.text
    shutil.copy(CONFIGS / "topologies.toml", tmp_path)
    assert "car_4hp22.toml" in str(check_file(tmp_path / "topologies.toml").error), "its drivelines are not there"
    (tmp_path / "other.toml").write_text("[topologies.a]\nfile = 'x'\n")
    assert "names no driveline" in str(check_file(tmp_path / "other.toml").error)


@pytest.mark.parametrize(("folder", "name", "kernel", "most"), [
    # 13 events, 2 refused trials, 16 trials for each of them and 2 more, of 6 evaluations each; 5 instants
    ("rigs", "desk_4hp22", "zf_4hp22_rig", "1547 evaluations of forces in a tick, 0.65 us of the tick for each"),
    # five pistons that fill, with a trial and an instant each
    ("rigs", "desk_6hp26", "lepelletier_6hp26_rig",
     "1582 evaluations of forces in a tick, 0.63 us of the tick for each"),
    ("powertrains", "car_6hp26", "lepelletier_6hp26", "1582 evaluations of forces in a step"),
    ("powertrains", "car_zf_8hp70", "generic", "1582 evaluations of forces in a step"),
    # joint shafts: 100 refused trials and 100 parts more
    ("examples", "drive_shaft", "generic", "12347 evaluations of forces in a step"),
    # two points: one refused trial, 2 evaluations each
    ("examples", "two_blocks", "generic", "485 evaluations of forces in a step"),
    ("scenarios", "wot_4hp22", "zf_4hp22", "1547 evaluations of forces in a tick, 0.65 us of the tick for each"),
    ("scenarios", "creep", "zf_4hp22_rig", "1547 evaluations of forces in a tick, 0.65 us of the tick for each"),
])  # fmt: skip
def test_check_says_which_kernel_a_file_takes_and_the_most_work_of_a_step(
    folder: str, name: str, kernel: str, most: str
) -> None:
    checked = check_file(CONFIGS / folder / f"{name}.toml")
    assert checked.ok and checked.text.endswith(f"kernel {kernel}, at most {most}"), checked.text
