"""Files from anybody: whatever stands in them, `check` ends with a named error or a valid object, and says what a run
would say. No traceback, no waiting for a pipe, no reading of a device."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from rig_help import CONFIGS
from test_bad_input import DBC, DRIVE, ENGINE, RIG, SCENARIO, TCU, call, spoil

from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.reading import read_bytes

CAR = "powertrains/car_4hp22.toml"
PART = """
tables.mu = { columns = ["w_radps", "mu"], rows = [[0.0, 0.5], [10.0, 0.5]] }
connections = [["J.flange_b", "G.flange_a", "B.flange_a"]]
components.J = { kind = "Inertia", J_kgm2 = 1.0 }
components.G = { kind = "IdealGear", ratio = 2.0 }
components.B = { kind = "Brake", fn_max_N = 10.0, mue_pos = "mu" }
"""
USER = """
include = ["part.toml"]
connections = [["K.flange_a", "G.flange_b"]]
components.K = { kind = "Inertia", J_kgm2 = 1.0 }
"""
LONG = "1" + "0" * 5000
#: a name that no file system takes
WIDE = "a" * 5000


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    shutil.copytree(CONFIGS, tmp_path / "configs", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "configs"


def refused(path: Path, *words: str) -> str:
    """`check` of the file: status 2, and an error that holds the words."""
    status, text = call("check", path)
    assert status == 2, text
    for word in words:
        assert word in text, text
    return text


#: what an input of a scenario must not be -> words of the refusal
INPUTS = {
    "nan": ["engine.pedal", "nan", "finite"],
    "inf": ["engine.pedal", "inf", "finite"],
    "[[0.0, 0.0], [1.0, nan]]": ["nan", "finite"],
    "{ kind = 'Sine', amplitude = nan, f = 1.0 }": ["amplitude", "nan", "[inputs.engine.pedal]"],
    "2e9": ["engine.pedal", "0 .. 1"],
    "[[0.0, 0.0], [1.0, 1.5]]": ["1.5", "0 .. 1"],
    "-0.1": ["0 .. 1"],
    "9999999999999999999999": ["engine.pedal", "64 bits"],
    LONG: ["not TOML", "4300"],
    '"\\u0000"': ["zero byte"],
    "true": ["is no input"],
    "[" * 5000 + "]" * 5000: ["nested too deeply"],
    "[" * 40 + "]" * 40: ["nested too deeply"],
}


@pytest.mark.parametrize("value", INPUTS, ids=lambda v: v[:20])
def test_inputs_of_a_scenario_are_numbers_their_law_is_made_for(configs: Path, value: str) -> None:
    path = configs / SCENARIO
    path.write_text(re.sub(r'"engine.pedal" = .*', lambda _: f'"engine.pedal" = {value}', path.read_text()))
    refused(path, "wot_4hp22.toml", *INPUTS[value])


#: (file, old, new), the file that is checked, words
MISTAKES = {
    "empty gate of a scenario": (SCENARIO, '"shifts == 3"', '""', SCENARIO, ["upshifts", "holds no condition"]),
    "empty gate of a rig": (RIG, '"recording_lost == 0"', '" "', RIG, ["nothing_lost", "holds no condition"]),
    "massless car": (DRIVE, "m_kg = 1500", "m_kg = 0", RIG, ["car", "0 kg"]),
    "idle speed": (DRIVE, "w_idle_radps = 80", "w_idle_radps = 1e30", DRIVE, ["w_idle_radps", "1e+06"]),
    "pedal of the driver": (RIG, "[1.7, 1.0]]\nkick", "[1.7, 2e9]]\nkick", RIG, ["driver.pedal", "0 .. 1"]),
    "table that is not there": (TCU, "tc_4hp22_coast.csv", "nope.csv", TCU, ["nope.csv", "no such file"]),
    "zero byte in an include": (CAR, '"drive_4hp22.toml"', '"\\u0000"', CAR, ["zero byte"]),
    "zero byte in a database": (RIG, "tcu_4hp22.dbc", "tcu\\u0000.dbc", RIG, ["zero byte", "database"]),
    "stop after": (RIG, "[limits]", f"[safe_state]\nstop_after_s = {LONG}\n[limits]", RIG, ["not TOML"]),
    "stop later": (RIG, "[limits]", "[safe_state]\nstop_after_s = 1e300\n[limits]", RIG, ["stop_after_s", "1e+300"]),
    "watchdog": (RIG, "[limits]", "[safe_state]\nwatchdog_s = 1e300\n[limits]", RIG, ["watchdog_s"]),
    "whole number": (RIG, "[outputs]", "[outputs]\nx = 99999999999999999999", RIG, ["64 bits"]),
    "mistake in an included part": (DRIVE, "J_kgm2 = 0", "J_kgm2 = -0", CAR, ["J_kgm2", "drive_528i.toml"]),
    "rig name": (RIG, 'name = "desk_4hp22"', 'name = "../../x"', RIG, ["name", "'../../x'"]),
    "rig name of a folder": (RIG, 'name = "desk_4hp22"', 'name = "x/../../y"', RIG, ["name", "'x/../../y'"]),
    **{f"a name too long, {what}": (file, f'"{old}"', f'"{WIDE}{end}"', file, [f"{key} = 'aaaaa"]) for
       what, file, old, end, key in (
        ("plant", RIG, "../powertrains/car_4hp22_rig.toml", "", "powertrain"),
        ("database", RIG, "../can/tcu_4hp22.dbc", ".dbc", "database"),
        ("bare database", RIG, "../can/tcu_4hp22.dbc", "", "database"),
        ("unit", RIG, "../tcu/soft_4hp22.toml", ".toml", "start"),
        ("vehicle", RIG, "../vehicles/bmw_528i_e28.toml", "", "start"),
        ("scenario", SCENARIO, "../powertrains/car_4hp22.toml", "", "powertrain"),
        ("table", TCU, "../converters/tc_4hp22_coast.csv", ".csv", "converter_coast_csv"),
    )},
    "a name too long, include": (CAR, "drive_4hp22", WIDE, CAR, ["include: there is no file 'aaaaa"]),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_check_refuses_what_no_run_can_do(configs: Path, case: str) -> None:
    name, old, new, checked, words = MISTAKES[case]
    spoil(configs, name, old, new)
    refused(configs / checked, *words)


def test_mistakes_of_a_part_are_those_of_what_includes_it(configs: Path) -> None:
    part, user = configs / "powertrains" / "part.toml", configs / "powertrains" / "user.toml"
    part.write_text(PART)
    user.write_text(USER)
    status, text = call("check", part)
    assert status == 0 and "compiled in user.toml" in text, text
    # the part reads as before, and nothing can be made of it
    user.write_text(USER.replace("G.flange_b", "H.flange_b"))
    refused(part, "'H'")
    # a value that only the compiler looks at
    user.write_text(USER)
    part.write_text(PART.replace("0.5", "-0.5"))
    refused(part, "'mu'", "-0.5", "[components.B]")


@pytest.mark.proof
@pytest.mark.parametrize("limit", ["inf", "nan", "1e400", "9" * 400, "1e300", "-1"])
@pytest.mark.parametrize("place", [r"\[0\|[^\]]*\]", r"\([^,]*,0\)"], ids=["limit", "scale"])
def test_numbers_of_a_can_database_are_doubles(configs: Path, limit: str, place: str) -> None:
    path, rig = configs / DBC, configs / RIG
    new = f"[0|{limit}]" if place.startswith(r"\[") else f"({limit},0)"
    spoil(configs, DBC, found := re.search(place, path.read_text()).group(0), new)  # type: ignore[union-attr]
    assert found != new
    for checked in (path, rig):
        status, text = call("check", checked)
        assert status in (0, 2) and (status == 0 or "tcu_4hp22.dbc" in text), text


def test_a_table_that_is_no_utf8_text_is_named_with_its_line(configs: Path) -> None:
    path = configs / ENGINE
    data = path.read_bytes()
    line = data[: data.index(b"40.0000")].count(b"\n") + 1
    path.write_bytes(data.replace(b"40.0000", b"40.\xff000", 1))
    for checked in (DRIVE, CAR, TCU):
        refused(configs / checked, "bmw_m30b28.csv", f"0xff in line {line}")


def _chain(folder: Path) -> None:
    for k in range(1200):
        (folder / f"i{k}.toml").write_text(f'include = ["i{k + 1}.toml"]\n')
    (folder / "i1200.toml").write_text('name = "x"\n')


def _tree(folder: Path) -> None:
    for k in range(15):
        (folder / f"i{k}.toml").write_text(f'include = ["i{k + 1}.toml", "i{k + 1}.toml"]\n')
    (folder / "i15.toml").write_text('name = "x"\n')


def _extends(folder: Path) -> None:
    for k in range(1200):
        (folder / f"i{k}.toml").write_text(f'extends = "i{k + 1}.toml"\n[rig]\nname = "x"\n')
    (folder / "i1200.toml").write_text('[rig]\nname = "x"\n')


@pytest.mark.parametrize(
    ("make", "word"), [(_chain, "16 levels"), (_tree, "128 in all"), (_extends, "16 levels")],
    ids=["chain", "doubling", "extends"],
)  # fmt: skip
def test_files_that_name_each_other_without_end(tmp_path: Path, make: Callable[[Path], None], word: str) -> None:
    make(tmp_path)
    refused(tmp_path / "i0.toml", word)


def test_only_regular_files_are_read(configs: Path, tmp_path: Path) -> None:
    pipe = configs / "powertrains" / "f.toml"
    os.mkfifo(pipe)
    # it would wait for a writer for ever
    refused(pipe, "a regular file")
    assert call("check", configs / DRIVE)[0] == 0
    (tmp_path / "z.toml").symlink_to("/dev/zero")
    refused(tmp_path / "z.toml", "a regular file")
    (tmp_path / "z.dbc").symlink_to("/dev/zero")
    refused(tmp_path / "z.dbc", "a regular file")
    user = tmp_path / "user.toml"
    user.write_text('include = ["z.toml"]\n')
    refused(user, "z.toml")


def test_no_name_of_a_file_ends_in_its_middle() -> None:
    with pytest.raises(ConfigError, match="zero byte"):
        read_bytes("a.toml\0.csv", 100)


def test_files_that_are_too_long_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "long.toml"
    with path.open("wb") as stream:
        stream.truncate(8 << 30)  # a hole
    refused(path, "too long", "bytes")


@pytest.mark.parametrize("name", ["a[red]b", "a [" + "x]"], ids=["colour", "end"])
def test_brackets_in_names_are_letters(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name.replace("[x]", "[") / "[" / "x]"
    folder.mkdir(parents=True)
    shutil.copy(CONFIGS / "gearboxes" / "zf_4hp22.toml", folder)
    status, text = call("check", folder / "zf_4hp22.toml")
    assert status == 0 and str(folder) in text.replace(" /", "/")
    refused(folder / "none[/x].toml", "none[/x].toml")


@pytest.mark.proof
def test_a_run_whose_folder_has_brackets_keeps_its_status(tmp_path: Path) -> None:
    out = tmp_path / "[" / "x]" / "[red]"
    status, text = call("run", "desk_4hp22", "--clock", "virtual", "--duration", "0.2", "--out", out)
    assert status in (0, 1) and str(out) in text  # the gates of the file want more than 0.2 s
    assert "Traceback" not in text
