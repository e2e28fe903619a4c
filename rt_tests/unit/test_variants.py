"""Drivelines with other values than their files: the same as if the files said so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError

CAR = """
connections = [["a.flange_b", "clutch.flange_a"], ["clutch.flange_b", "b.flange_a"]]
[components.a]
kind = "Inertia"
J_kgm2 = 0.1
w0_rpm = 600
[components.b]
kind = "Inertia"
J_kgm2 = 0.2
[components.clutch]
kind = "Clutch"
fn_max_N = 100
mue_pos = "mu"
[tables.mu]
columns = ["v_radps", "mu"]
rows = [[0.0, 0.1], [10.0, 0.2]]
[initial]
"b.w_rpm" = 300
"""


def written(folder: Path, *changes: tuple[str, str]) -> Path:
    text = CAR
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    path = folder / "car.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("key", "value", "change"),
    [
        ("components.a.J_kgm2", 0.35, ("J_kgm2 = 0.1\n", "J_kgm2 = 0.35\n")),
        ("components.a.w0_rpm", 700, ("w0_rpm = 600", "w0_rpm = 700")),
        ("components.clutch.peak", 1.2, ('mue_pos = "mu"', 'mue_pos = "mu"\npeak = 1.2')),
        ("components.clutch.mue_pos", 0.3, ('mue_pos = "mu"', "mue_pos = 0.3")),
        ("tables.mu.rows.1.1", 0.25, ("[10.0, 0.2]", "[10.0, 0.25]")),
        ("initial.b.w_rpm", 250.5, ('"b.w_rpm" = 300', '"b.w_rpm" = 250.5')),
    ],
)
def test_a_changed_value_is_as_if_the_file_said_so(tmp_path: Path, key: str, value: Any, change: tuple) -> None:
    changed = tl.load(written(tmp_path), {key: value})
    assert changed == tl.load(written(tmp_path, change))
    assert changed != tl.load(written(tmp_path))


def test_the_driveline_it_comes_from_stays(tmp_path: Path) -> None:
    from torqueloop.core.components.files import variants

    base = tl.load(written(tmp_path))
    many = variants(base)
    assert many.of({"components.a.J_kgm2": 5.0, "tables.mu.rows.0.1": 0.3, "initial.b.w_rpm": 1.0}) != base
    assert base == tl.load(written(tmp_path)) == many.of({})


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("components.c.J_kgm2", 1.0, "has no component 'c'"),
        ("components.a.J_kgm3", 1.0, "J_kgm3"),
        ("components.a.J_kgm2", -1.0, "J_kgm2 = -1.0"),
        ("components.a", 1.0, "names a whole table"),
        ("tables.mu.rows.7.1", 1.0, "there is no 'rows.7'"),
        ("tables.mu.rows.1.2", 1.0, r"there is no 'rows.1.2'.*0 \.\. 1 at the end"),
        ("tables.nu.rows.1.1", 1.0, "has no table 'nu'"),
        ("initial.b.w", 1.0, "has no unit"),
        ("gears.1", 1.0, "is no value of a driveline"),
    ],
)
def test_a_value_that_cannot_be_is_named(tmp_path: Path, key: str, value: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as error:
        tl.load(written(tmp_path), {key: value})
    assert "values set from outside" in str(error.value)
