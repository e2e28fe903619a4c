"""Every configuration file says of which kind it is; a reader refuses another kind; older files are migrated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import torqueloop as tl
from torqueloop.core.components.files import load
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.reading import KIND_OF_FOLDER, KINDS, read_whole
from torqueloop.hil.catalogue.schema import schemas
from torqueloop.hil.cli import app
from torqueloop.hil.cli.file_check import DECLARED, READERS, check_file, kind_of
from torqueloop.hil.rig.devices.registry import load_rig_config

CONFIGS = Path(tl.__file__).parent / "configs"
FILES = sorted(CONFIGS.rglob("*.toml"))
#: what no folder tells: drivelines and rigs that are examples, a gearbox on a carrier
OTHERS = {"examples": {"driveline", "gearbox", "part"}, "external": {"rig"}, "configs": {"topologies"}}


def test_every_installed_file_says_its_kind() -> None:
    said = {path: read_whole(path).get("kind") for path in FILES}
    wrong = {
        str(path): kind
        for path, kind in said.items()
        if kind not in OTHERS.get(path.parent.name, {KIND_OF_FOLDER.get(path.parent.name)})
    }
    assert len(said) > 120 and wrong == {}


def test_every_kind_has_a_reader() -> None:
    assert set(DECLARED) == set(KINDS) and set(DECLARED.values()) | {"CAN database"} == set(READERS)


def test_a_file_of_another_kind_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('kind = "vehicle"\n[rig]\nname = "a"\n')
    with pytest.raises(ConfigError, match="this file is a vehicle.*allowed: rig"):
        load_rig_config(path)
    path.write_text('kind = "rig"\nname = "a"\n')
    with pytest.raises(ConfigError, match="this file is a rig.*allowed: driveline, gearbox, drive, part"):
        load(path)
    path.write_text('kind = "rigg"\n[rig]\nname = "a"\n')
    with pytest.raises(ConfigError, match="'rigg' is no kind of file"):
        load_rig_config(path)


def test_what_a_file_says_goes_before_what_it_looks_like(tmp_path: Path) -> None:
    """A tree of bodies has tables [body.NAME], as a vehicle has [body]."""
    path = tmp_path / "a.toml"
    path.write_text('kind = "tree"\n[body.arm]\nmass_kg = 1.0\n')
    assert kind_of(path) == "tree of bodies"
    path.write_text("[body.arm]\nmass_kg = 1.0\n")
    assert kind_of(path) == "vehicle", "without its kind it can only be guessed"


def test_a_part_is_compiled_in_a_driveline_that_includes_it_from_a_folder_beside_its_own(tmp_path: Path) -> None:
    """The mounts of an engine are nothing without the car that they carry."""
    checked = check_file(CONFIGS / "examples" / "engine_mounts_528i.toml")
    assert checked.ok and "compiled in car_4hp22_mounts.toml" in checked.text
    alone = tmp_path / "parts" / "mounts.toml"
    alone.parent.mkdir()
    alone.write_text((CONFIGS / "examples" / "engine_mounts_528i.toml").read_text())
    assert "no file beside this part includes it" in str(check_file(alone).error)


def test_check_fix_writes_the_kind_into_older_files_once(tmp_path: Path) -> None:
    for folder, name in (("vehicles", "bmw_528i_e28"), ("hydraulics", "zf_4hp22_direct"), ("gearboxes", "zf_4hp22")):
        whole = (CONFIGS / folder / f"{name}.toml").read_text(encoding="utf-8")
        said = f'kind = "{KIND_OF_FOLDER[folder]}"\n'
        path = tmp_path / f"{name}.toml"
        path.write_text(whole.replace(said, ""), encoding="utf-8")
        assert "kind" not in read_whole(path) and check_file(path).ok
        remark = "does not say of which kind it is; `torqueloop check --fix FILE` writes it"
        assert remark in CliRunner().invoke(app, ["check", str(path)]).output
        for _ in range(2):
            done = CliRunner().invoke(app, ["check", "--fix", str(path)])
            assert done.exit_code == 0, done.output
            assert path.read_text(encoding="utf-8") == whole and remark not in done.output
        assert "kind it is" not in CliRunner().invoke(app, ["check", str(path)]).output


def test_a_wrong_file_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('[rig]\nnam = "a"\n')
    assert CliRunner().invoke(app, ["check", "--fix", str(path)]).exit_code == 2
    assert path.read_text() == '[rig]\nnam = "a"\n'


def test_schemas_take_the_kind_and_no_other() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: pip install jsonschema")
    schema = json.loads(schemas()["vehicle.schema.json"])
    data = read_whole(CONFIGS / "vehicles" / "bmw_528i_e28.toml")
    jsonschema.validate(data, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**data, "kind": "rig"}, schema)


def test_a_drive_is_told_with_the_number_of_its_own_components() -> None:
    path = CONFIGS / "drives/drive_545i.toml"
    own = len(read_whole(path)["components"])
    assert check_file(path).text == f"{own} components; a part of a car, around any gearbox"


@pytest.mark.parametrize(("duration_s", "allowed"), [(0.0005, False), (0.001, True)])
def test_a_scenario_lasts_one_tick_at_least(duration_s: float, allowed: bool, tmp_path: Path) -> None:
    path = tmp_path / "short.toml"
    path.write_text(
        f'kind = "scenario"\nextends = "wot_4hp22"\n[scenario]\nname = "short"\nduration_s = {duration_s}\n'
    )
    made = check_file(path)
    if allowed:
        assert made.ok and (made.text or "").startswith("0.001 s of car_4hp22, 9 inputs, "), made
    else:
        assert "duration = 0.0005 s is not allowed; allowed: 0.001 (one tick) .. " in str(made.error)
