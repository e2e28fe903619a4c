"""Which file a name on the command line means."""

from __future__ import annotations

from pathlib import Path

import pytest

from torqueloop.core.describe.errors import ConfigError, did_you_mean
from torqueloop.hil.cli.file_check import by_name
from torqueloop.hil.common.locate import find, installed, locate


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_bare_name_is_the_file_beside_before_the_installed_one() -> None:
    assert locate("desk_4hp22", "rigs") == installed("rigs")["desk_4hp22"] == by_name("desk_4hp22")
    for name in ("mine", "desk_4hp22", "v1.2"):
        Path(f"{name}.toml").write_text('extends = "desk_4hp22"\n')
        assert locate(name, "rigs") == Path(f"{name}.toml") == by_name(name)


def test_a_folder_of_the_same_name_hides_no_installed_file() -> None:
    for name in ("desk_4hp22", "nothing"):
        Path(name).mkdir()
    assert locate("desk_4hp22", "rigs") == installed("rigs")["desk_4hp22"] == by_name("desk_4hp22")
    with pytest.raises(ConfigError, match="nothing is a folder, not a rig file"):
        locate("nothing", "rigs")


def test_a_path_must_exist() -> None:
    with pytest.raises(ConfigError, match=r"no such rig file: mine.toml"):
        locate("mine.toml", "rigs")
    with pytest.raises(ConfigError, match="no rig named 'desk_4hp2' is installed.*desk_4hp22"):
        locate("desk_4hp2", "rigs")


def test_a_bare_name_in_a_file_that_means_the_file_beside_it_says_how_to_write_it() -> None:
    Path("mine.toml").write_text('extends = "desk_4hp22"\n')
    with pytest.raises(ConfigError, match=r"no rig of this name is installed; write 'mine.toml' for the file"):
        find("top.toml", "mine", "rigs")
    with pytest.raises(ConfigError, match=r"no rig of this name is installed; did you mean 'desk_4hp22'"):
        find("top.toml", "desk_4hp2", "rigs")


def test_of_many_known_names_those_are_shown_that_are_like_the_unknown_one() -> None:
    names = ["TCU_Status.gear", "monitor.gear", *(f"monitor.state.n{k}" for k in range(60)), "car.v", "step"]
    assert did_you_mean("gear", names) == "similar: TCU_Status.gear, monitor.gear"
    assert did_you_mean("car.torque", names) == "similar: car.v"
    assert did_you_mean("xyz", names) == "64 are known: TCU_Status.*, car.*, monitor.*, step"
    assert did_you_mean("xyz", names[:2]) == "known: TCU_Status.gear, monitor.gear"
