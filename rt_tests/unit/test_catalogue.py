"""Pages and schemas of the configuration files are those of the models, tell the meaning of every key, and take exactly
the files that the models take."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from torqueloop.core.components.added import kinds
from torqueloop.core.components.files import component_from_config
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil import cli
from torqueloop.hil.catalogue import driveline_schema
from torqueloop.hil.catalogue.__main__ import generated
from torqueloop.hil.catalogue.models import KINDS, FileKind, comments, meaning, models_of
from torqueloop.hil.catalogue.schema import DRAFT, schema, taplo
from torqueloop.hil.common.config_file import ConfigTable

ROOT = Path(__file__).resolve().parents[2]
MODELS = {f"{k.name}: {name}": model for k in KINDS for name, model in models_of(k).items()}
FILES = [(k, path) for k in KINDS for pattern in k.files for path in sorted((ROOT / "configs").glob(pattern))]
DRIVELINES = [
    path for pattern in driveline_schema.FILES for path in sorted((ROOT / "configs").glob(pattern.removeprefix("**/")))
]


def kind(name: str) -> FileKind:
    return next(k for k in KINDS if k.name == name)


#: made once: every page and schema
GENERATED = generated()


@pytest.mark.parametrize("name", list(GENERATED))
def test_the_published_pages_and_schemas_are_the_actual_ones(name: str) -> None:
    told = "python -m torqueloop.hil.catalogue docs"
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == GENERATED[name], told


def test_the_set_up_for_editors_is_the_actual_one() -> None:
    assert (ROOT / ".taplo.toml").read_text(encoding="utf-8") == taplo("docs/schemas")


@pytest.mark.parametrize("name", list(MODELS))
def test_every_key_has_a_meaning_in_whole_sentences(name: str) -> None:
    """A table that occurs in a file once has its own text; every other key has the comment above it."""
    model = MODELS[name]
    for key, field in model.model_fields.items():
        table = isinstance(field.annotation, type) and issubclass(field.annotation, ConfigTable)
        tables = [a for a in getattr(field.annotation, "__args__", ()) if isinstance(a, type)]
        table = table or any(issubclass(a, ConfigTable) for a in tables) and type(None) in tables
        assert comments(model).get(key) or table, f"{name}.{key} needs a comment '#:' above it"
        assert not (text := meaning(model, key)[0]) or text.endswith("."), f"{name}.{key} lacks a full stop: {text}"
    text = (model.__doc__ or "").partition("\n\n")[0].strip()
    assert text.endswith((".", ":")), f"{name} lacks a docstring with a full stop: {text}"


def test_units_are_found_in_comment_and_key() -> None:
    rig = models_of(kind("rig"))
    assert meaning(rig["Clock"], "tick_s")[1] == "s" and meaning(rig["Bus"], "bitrate")[1] == "bit/s"
    assert meaning(rig["Ecu"], "actuators")[1] == "", "[inputs] in its text is no unit"
    tcu = models_of(kind("tcu"))
    assert meaning(tcu["Element"], "torque_per_bar_Nm")[1] == "Nm/bar"
    assert meaning(tcu["LockUp"], "slip_ki_bar_per_100rpm_s")[1] == "bar/s per 100 rpm"


def errors(kind: FileKind | None, data: dict[str, Any]) -> list[str]:
    """kind None: a driveline."""
    jsonschema = pytest.importorskip("jsonschema")
    made = driveline_schema.driveline_schema(DRAFT) if kind is None else schema(kind)
    jsonschema.Draft7Validator.check_schema(made)
    return [e.message for e in jsonschema.Draft7Validator(made).iter_errors(data)]


@pytest.mark.parametrize(("kind", "path"), FILES, ids=lambda x: getattr(x, "name", x))
def test_every_file_of_ours_follows_its_schema(kind: FileKind, path: Path) -> None:
    assert errors(kind, tomllib.loads(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("rig", "[vehicle]\nhodl_s = 1.0", "'hodl_s' was unexpected"),
        ("rig", "[vehicle]\nhold_s = -1", "-1 is less than the minimum of 0"),
        ("rig", '[clock]\npolicy = "stopp"', "'stopp' is not one of ['catch_up'"),
        ("rig", "[ecu.tcu]\nstart_timeout_s = true", "True is not of type 'number'"),
        ("rig", "[inputs]\n'C4.p' = true", "True is not valid under any"),
        ("rig", "[outputs]\n'a.b' = { signal = 'x', slew = 0 }", "not valid under any"),
        ("rig", "[driver]\nlever = 'E'", "'E' is not"),
        ("tcu", "[elements.C9]\nkiss_bar = -1.0", "-1.0 is less than the minimum of 0"),
        ("tcu", "[limp_home]\nforward_gear = 2", "2 is not of type 'string'"),
        ("vehicle", "[body]\nmass_kg = 0", "0 is less than or equal to the minimum of 0"),
        ("scenario", "[scenario]\nsubsteps = 65", "65 is greater than the maximum of 64"),
    ],
)
def test_what_the_models_refuse_the_schema_refuses_too(name: str, change: str, words: str) -> None:
    found = errors(kind(name), tomllib.loads('extends = "base.toml"\n' + change))
    assert len(found) == 1 and words in found[0], found


@pytest.mark.parametrize("path", DRIVELINES, ids=lambda path: path.stem)
def test_every_driveline_of_ours_follows_its_schema(path: Path) -> None:
    assert errors(None, tomllib.loads(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("component", "words"),
    [
        ("kind = 'Inertia'\nJ = 1.0", "('J' was unexpected)"),
        ("kind = 'Inertia'", "is not valid under any"),
        ("kind = 'Inertia'\nJ_kgm2 = -1.0", "-1.0 is less than the minimum of 0"),
        ("kind = 'Inertia'\nJ_gm2 = '1'", "'1' is not of type 'number'"),
        ("kind = 'Inertja'\nJ_kgm2 = 1.0", "'Inertja' is not one of"),
        ("J_kgm2 = 1.0", "'kind' is a required property"),
        ("kind = 'IdealGear'\nratio = true", "True is not of type 'number'"),
        ("kind = 'LossyGear'\nratio = 0.5\nlossTable = 3", "3 is not valid under any"),
        ("kind = 'Clutch'\ncgeo = 2\nfn_max_N = 1.0\nmue_pos = 0.1\npeak = 0.9", "0.9 is less than the minimum of 1"),
    ],
)
def test_what_is_no_component_is_none_to_the_schema(component: str, words: str) -> None:
    """Both readers refuse it: that of files, and an editor with the schema."""
    table = tomllib.loads(component)
    with pytest.raises(ConfigError):
        component_from_config(table, Path())
    found = errors(None, {"components": {"x": table}})
    assert any(words in message for message in found), found


def test_the_schema_knows_every_kind_and_the_limits_in_each_unit() -> None:
    made = driveline_schema.driveline_schema(DRAFT)["definitions"]
    assert set(made) == set(kinds())
    assert not errors(None, {"components": {"x": {"kind": "Inertia", "J_gm2": 1.0, "source": "data sheet"}}})
    assert "did" not in errors(None, {"initial": {"J.w_rpm": 100.0, "J.w": 1.0}})[0]


def test_what_must_be_there_is_asked_of_a_file_that_extends_nothing() -> None:
    assert errors(kind("rig"), {"rig": {}, "bus": {"a": {}}, "extends": "x"}) == []
    found = errors(kind("rig"), {"rig": {}, "bus": {"a": {}}})
    assert sorted(found) == ["'database' is a required property", "'name' is a required property",
                             "'plant' is a required property"]  # fmt: skip


@pytest.mark.proof
def test_the_command_prints_one_and_writes_all(tmp_path: Path) -> None:
    run = [sys.executable, "-m", "torqueloop.hil.cli", "schema"]
    told = CliRunner().invoke(cli.app, ["schema", "vehicle"])
    assert told.exit_code == 0 and json.loads(told.stdout) == schema(kind("vehicle"))
    assert CliRunner().invoke(cli.app, ["schema", "--out", str(tmp_path)]).exit_code == 0
    rules = tomllib.loads((tmp_path / ".taplo.toml").read_text())["rule"]
    assert all((tmp_path / rule["schema"]["path"]).is_file() for rule in rules) and len(rules) == len(KINDS) + 1, (
        "and drivelines"
    )
    wrong = subprocess.run([*run, "powertrain"], capture_output=True, text=True)
    kinds = "rig, tcu, vehicle, hydraulics, scenario"
    assert wrong.returncode == 2 and kinds in " ".join(wrong.stderr.split())


def test_the_page_of_monitors_has_the_instructions_that_were_counted() -> None:
    """Within the 5 % by which scripts/bench/step_baseline.py lets the stored counts differ from the present ones."""
    page = " ".join((ROOT / "docs/monitors.md").read_text().split())
    found = re.search(
        r"They take (\d+) of its ([\d ]+) instructions at the start of a drive and (\d+) of ([\d ]+) in a shift", page
    )
    assert found is not None
    told = [float(x.replace(" ", "")) for x in found.groups()]
    counted = json.loads((ROOT / "rt_tests/rt/instruction_baseline.json").read_text())["instructions"]
    names = ("tick.start.monitors", "tick.start", "tick.shift.monitors", "tick.shift")
    assert told == pytest.approx([counted[name] for name in names], rel=0.05)
