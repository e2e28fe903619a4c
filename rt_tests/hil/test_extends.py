"""Files that build on each other and values set from outside: what holds, what is refused, and what a replay reads."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from rig_help import CONFIGS, DESK, Car, Unit, run
from typer.testing import CliRunner

from torqueloop.core.describe.errors import ConfigError, UnknownKeyError
from torqueloop.hil import cli
from torqueloop.hil.common.config_layers import blamed_on, parse_overrides
from torqueloop.hil.results.files import read_run_info, write_run_info
from torqueloop.hil.results.links import ParticipantStats
from torqueloop.hil.rig.devices.registry import load_rig_config
from torqueloop.hil.rig.resolve.check_participants import check_participants
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.replay import ReplayError, replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig
from torqueloop.hil.rig.schema.fault_tables import faults_of


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_tables_are_merged_lists_and_values_replaced(tmp_path: Path) -> None:
    path = write(
        tmp_path / "mine.toml",
        'extends = "desk_4hp22"\nwithout = ["gates.in_time"]\n'
        '[clock]\nsubsteps = 2\n[driver]\nlever = [[0, "N"]]\n[limits]\n"engine.w".max = 7000.0\n',
    )
    mine, desk = load_rig_config(path), load_rig_config(DESK)
    assert (mine.clock.substeps, mine.clock.tick_s) == (2, desk.clock.tick_s)
    assert mine.driver == {**desk.driver, "lever": [(0.0, 2.0)]}
    assert (mine.limits["engine.w"].max, mine.limits["engine.w"].min) == (7000.0, desk.limits["engine.w"].min)
    assert set(desk.gates) - set(mine.gates) == {"in_time"}


def test_paths_stand_relative_to_the_file_they_are_written_in(tmp_path: Path) -> None:
    shutil.copytree(CONFIGS, tmp_path / "a", ignore=shutil.ignore_patterns("__pycache__"))
    middle = write(tmp_path / "b" / "middle.toml", 'extends = "../a/rigs/desk_4hp22.toml"\nrig.name = "middle"\n')
    top = write(tmp_path / "c" / "d" / "top.toml", 'extends = "../../b/middle.toml"\n')
    plan = load_plan(top)
    assert plan.config.rig.name == "middle"
    assert plan.buses[0].database.path == (tmp_path / "a" / "can" / "tcu_4hp22.dbc").resolve()
    middle.write_text(middle.read_text() + 'bus.powertrain.database = "own.dbc"\n')
    shutil.copy(CONFIGS / "can" / "tcu_4hp22.dbc", tmp_path / "b" / "own.dbc")
    plan = load_plan(top)
    assert plan.buses[0].database.path == (tmp_path / "b" / "own.dbc").resolve()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('extends = "top.toml"', ["circle", "top.toml -> top.toml"]),
        ('extends = "desk_4hp2"', ["desk_4hp2", "did you mean 'desk_4hp22'", "extends"]),
        ('extends = "nowhere.toml"', ["nowhere.toml", "no such file", "extends"]),
        ("extends = 3", ["extends = 3", "the name of a file"]),
        ('without = ["gates"]', ["without needs extends"]),
        ('extends = "desk_4hp22"\nwithout = ["gates.in_tme"]', ["gates.in_tme", "did you mean 'in_time'"]),
        ('extends = "desk_4hp22"\nwithout = "gates"', ["a list of dotted keys"]),
    ],
)
def test_what_is_no_file_to_extend_is_named(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_rig_config(write(tmp_path / "top.toml", text))
    for word in (*words, "top.toml"):
        assert word in str(caught.value), str(caught.value)


def test_a_circle_over_three_files_is_refused(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        write(tmp_path / f"{name}.toml", f'extends = "{other}.toml"')
    with pytest.raises(ConfigError, match=r"a\.toml -> b\.toml -> c\.toml -> a\.toml"):
        load_rig_config(tmp_path / "a.toml")


def test_a_mistake_is_shown_in_the_file_it_stands_in(tmp_path: Path) -> None:
    write(tmp_path / "base.toml", 'extends = "desk_4hp22"\n[clock]\nmax_catchup = 5\n')
    top = write(tmp_path / "top.toml", 'extends = "base.toml"\n[clock]\ntick_s = 1e-3\n')
    with pytest.raises(UnknownKeyError, match=r"base\.toml: .*max_catchup"):
        load_rig_config(top)
    with pytest.raises(ConfigError, match=r"^--set .*: tick_s = 3\.0.*\[clock\]"):
        load_rig_config(DESK, {"clock.tick_s": 3.0})


def test_values_from_outside_are_typed_and_checked(tmp_path: Path) -> None:
    given = ["clock.tick_s=0.002", "rig.name=mine", 'limits."engine.w".max = 7000.0', "driver.lever=[[0,'N']]"]
    config = load_rig_config(DESK, parse_overrides(given))
    assert (config.clock.tick_s, config.rig.name, config.limits["engine.w"].max) == (0.002, "mine", 7000.0)
    assert config.driver["lever"] == [(0.0, 2.0)] and config.limits["engine.w"].unit == "rpm"
    assert load_rig_config(DESK, {"gates.in_time": None}).gates.keys() == load_rig_config(DESK).gates.keys() - {
        "in_time"
    }
    fault = {"signal": "driver.pedal", "kind": "offset", "value": 0.1}
    assert faults_of(load_rig_config(DESK, {"faults": [fault], "faults.0.value": 0.2}))[0].value == 0.2
    for text, words in (
        ("clock.tick_s", "KEY=VALUE"),
        ("clock..x=1", "no dotted key"),
        ("clock.tick_s=fast", "tick_s = 'fast'"),
        ("clock.tics=1", "unknown key 'tics'"),
        ("rig.name.x=1", "no table"),
        ("gates.nothing=", "did you mean"),
    ):
        with pytest.raises(ConfigError, match=words):
            if text == "gates.nothing=":
                load_rig_config(DESK, {"gates.nothing_lst": None})
            load_rig_config(DESK, parse_overrides([text]))


def test_a_run_keeps_all_files_and_what_was_set_and_replays_without_the_originals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(CONFIGS, tmp_path / "a", ignore=shutil.ignore_patterns("__pycache__"))
    absolute = tmp_path / "a" / "vehicles" / "bmw_528i_e28.toml"
    write(tmp_path / "base.toml", f'extends = "a/rigs/desk_4hp22.toml"\nvehicle.start = "{absolute}"\n')
    top = write(tmp_path / "rigs" / "top.toml", 'extends = "../base.toml"\n')
    monkeypatch.chdir(tmp_path)
    values = {"clock.substeps": 2, "plant.powertrain": "a/powertrains/car_4hp22_rig.toml"}
    result = run_rig(top, RunSpec("virtual", 0.3, "run", vehicle=Car(), ecus={"tcu": Unit()}, overrides=values))
    info = json.loads((result.out / "run.json").read_text())
    assert info["overrides"] == {**values, "plant.powertrain": "../a/powertrains/car_4hp22_rig.toml"}
    for name in ("a", "rigs", "base.toml"):
        (tmp_path / name).rename(tmp_path / f"{name}.gone")
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    again = replay(tmp_path / "elsewhere")
    assert again.passed and again.hash_equal and again.compared == 300


def test_a_run_keeps_the_installed_files_it_used_by_bare_name(tmp_path: Path) -> None:
    top = write(tmp_path / "top.toml", 'extends = "desk_4hp22"\nbus.powertrain.database = "tcu_4hp22"\n')
    result = run(top, tmp_path / "run", 0.2)
    kept = result.out / "config" / "installed"
    assert (kept / "rigs" / "desk_4hp22.toml").is_file() and (kept / "can" / "tcu_4hp22.dbc").is_file()
    # the kept ones are read: another car in them is another hash, where the sums of run.json do not tell at once
    car = kept / "gearboxes" / "zf_4hp22.toml"
    text = car.read_text()
    assert replay(result.out).passed
    car.write_text(text.replace("J_kgm2 = ", "J_kgm2 = 2", 1))
    with pytest.raises(ReplayError, match="was changed"):
        replay(result.out)
    info = read_run_info(result.out)
    assert info is not None
    write_run_info(result.out, dataclasses.replace(info, inputs={}))
    assert not replay(result.out).passed


def test_set_on_the_command_line_is_in_effect_and_recorded(tmp_path: Path) -> None:
    arguments = ["run", "desk_4hp22", "--clock", "virtual", "--duration", "0.1", "--no-html", "-q"]
    done = CliRunner().invoke(
        cli.app,
        [
            *arguments,
            "--out",
            str(tmp_path / "r"),
            "--set",
            "gates.nothing_lost=recording_lost >= 0",
            "--set",
            "rig.name=x",
        ],
    )
    assert done.exit_code == 0, done.output
    info = json.loads((tmp_path / "r" / "run.json").read_text())
    assert info["overrides"] == {"gates.nothing_lost": "recording_lost >= 0", "rig.name": "x"} and info["rig"] == "x"
    done = CliRunner().invoke(cli.app, [*arguments, "--out", str(tmp_path / "s"), "--set", "clock.tick=1"])
    assert done.exit_code == 2 and "unknown key 'tick'" in done.output and not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("clock.tick", 1), ("plant.powertrain", "nosuch"), ("inputs.nosuch", "engine.w"),
        ('inputs."engine.pedal"', "driver.pedl"), ('plant.set."components.car.m_kgg"', 3), ("ecu.tcu.start", "nosuch"),
        ("ecu.tcu.options.set.gears", 3), ("vehicle.options.set.body.x", 1), ("bus.powertrain.database", "x.dbc"),
        ('limits."enginee.w".max', 3.0), ("steps", [{"name": "a", "when": "nosuch > 3"}]),
    ],
)  # fmt: skip
def test_a_wrong_value_of_the_command_line_is_blamed_on_it_and_not_on_the_file(key: str, value: object) -> None:
    with pytest.raises(ConfigError) as error:
        plan = load_plan(DESK, {key: value})
        with blamed_on({key: value}, plan.path):
            check_participants(plan)
    assert error.value.file == f"--set {key}" and "desk_4hp22.toml" not in str(error.value)


def test_a_wrong_value_of_the_file_stays_its_own_beside_one_of_the_command_line(tmp_path: Path) -> None:
    write(tmp_path / "top.toml", 'extends = "desk_4hp22"\n[ecu.tcu.options.set]\ngears = 3\n')
    with pytest.raises(ConfigError, match=r"top\.toml: gears = 3 is not allowed in \[set\]"):
        plan = load_plan(tmp_path / "top.toml", {"clock.tick_s": 0.002})
        with blamed_on({"clock.tick_s": 0.002}, plan.path):
            check_participants(plan)


def test_a_table_of_another_kind_inherits_nothing_that_belonged_to_the_old_one(tmp_path: Path) -> None:
    """What a soft TCU starts with and its options are nothing to a control unit on the bus, or to a compiled one."""
    write(tmp_path / "base.toml", 'extends = "desk_vw_mlb"\n')
    hardware = write(tmp_path / "bench.toml", 'extends = "base.toml"\n[ecu.tcu]\nkind = "hardware"\n')
    tcu = load_rig_config(hardware).ecu["tcu"]
    assert (tcu.kind, tcu.start, tcu.options) == ("hardware", None, {}) and tcu.bus == ["powertrain", "car"]
    same = write(tmp_path / "same.toml", 'extends = "base.toml"\n[ecu.tcu]\nkind = "soft_tcu"\n')
    assert load_rig_config(same).ecu["tcu"] == load_rig_config(tmp_path / "base.toml").ecu["tcu"]
    wrong = write(tmp_path / "wrong.toml", 'extends = "base.toml"\n[ecu.tcu]\nkind = "hardware"\nstart = "x.toml"\n')
    with pytest.raises(ConfigError, match="the rig does not start a control unit of kind hardware"):
        load_rig_config(wrong)


class Careless(Unit):
    """Its counts are where the name of its place belongs."""

    def stop(self) -> ParticipantStats:
        return ParticipantStats({"shifts": 3})  # type: ignore[arg-type]


def test_counts_in_the_wrong_place_are_told_and_leave_a_run_that_can_be_read(tmp_path: Path) -> None:
    result = run_rig(DESK, RunSpec("virtual", 0.2, tmp_path / "run", ecus={"tcu": Careless()}))
    info = read_run_info(result.out)
    assert info is not None and info.state == "ended" and info.stats is not None
    assert info.stats.participants["tcu"] == ParticipantStats("in process")
    assert any("ParticipantStats(reported={...})" in reason for reason in info.stats.degraded)
