"""TCU and vehicle files: every mistake is named with file, table, key, value and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.reading import read_toml
from torqueloop.hil.common.config_file import validate
from torqueloop.hil.ecu.gears import required_shifts
from torqueloop.hil.ecu.tcu_tables import TcuConfig, load_tcu_config
from torqueloop.hil.vehicle.vehicle_tables import VehicleConfig, load_vehicle_config

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def toml(name: str) -> dict[str, Any]:
    return read_toml(CONFIGS / name)


def test_shipped_files_are_valid_and_complete() -> None:
    config = load_tcu_config(CONFIGS / "tcu/soft_4hp22.toml")
    assert set(config.elements) == {"C4", "C5", "C6", "C7", "C8", "C11", "C12"}
    assert set(required_shifts(config.gears)) == {
        "1-2", "2-3", "3-4", "4-3", "3-2", "2-1", "1-1E", "1E-1", "1E-2", "2-1E", "N-1", "N-R", "1-N", "R-N",
    }  # fmt: skip
    assert set(required_shifts(config.gears)) <= set(config.shifts)
    for vehicle in (CONFIGS / "vehicles").glob("*.toml"):
        load_vehicle_config(vehicle)


def test_gear_table_is_that_of_the_manual() -> None:
    gears = load_tcu_config(CONFIGS / "tcu/soft_4hp22.toml").gears
    pressed = {name: set(gear.elements) for name, gear in gears.items()}
    assert pressed == {
        "P": set(), "N": {"C11"}, "R": {"C5", "C8", "C11"}, "1": {"C4", "C11"}, "1E": {"C4", "C8", "C11"},
        "2": {"C4", "C6", "C7", "C11"}, "3": {"C4", "C5", "C7", "C11"}, "4": {"C4", "C5", "C7", "C12"},
    }  # fmt: skip


TCU_MISTAKES: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (
        lambda d: d["timing"].update(perod_s=5e-3),
        r"unknown key 'perod_s' in \[timing\]; did you mean 'period_s'",
    ),
    (
        lambda d: d["timing"].update(period_s=0.5),
        r"period_s = 0.5 is not allowed in \[timing\]; allowed: <= 0.05",
    ),
    (lambda d: d["timing"].update(period_s="5 ms"), r"period_s = '5 ms' .*\[timing\].*number"),
    (lambda d: d["elements"]["C4"].pop("kiss_bar"), r"missing key 'kiss_bar' in \[elements.C4\]"),
    (lambda d: d["elements"].pop("C12"), r"missing table \[elements.C12\]"),
    (lambda d: d["gears"].pop("2"), r"missing table \[gears.2\]"),
    (lambda d: d["gears"]["2"].update(elements=["C4", "C6", "C7", "C11", "C9"]), r"C9.*\[gears.2.elements\]"),
    (lambda d: d["shifts"].pop("3-4"), r"missing shift '3-4'"),
    (lambda d: d["shifts"].update({"3-5": d["shifts"]["3-4"]}), r"shift '3-5' is not FROM-TO"),
    (
        lambda d: d["shifts"]["3-4"]["phases"][1].update(until="sync"),
        r"until = 'sync' .*\[shifts.3-4.phases.1\].*'synchronised'",
    ),
    (
        lambda d: d["shifts"]["3-4"]["phases"][0]["elements"].update(C8={"law": "torque", "end": 1.0}),
        r"C8: law 'torque' needs a torque of C8",
    ),
    (lambda d: d["schedule"]["up"].update({"1-2": [[0.0, 500.0], [50.0, 900.0]]}), r"1-2|pedal values"),
    (lambda d: d["lockup"].update(open_rpm=2300.0), r"open_rpm = 2300.0 is not below close_rpm in \[lockup\]"),
    (lambda d: d["line_pressure"].update(min_bar=18.0), r"min_bar = 18.0 is not below max_bar"),
    (lambda d: d["torque_model"].update(filter_s=float("nan")), r"filter_s = nan .*finite"),
]


@pytest.mark.parametrize(("spoil", "text"), TCU_MISTAKES)
def test_mistake_in_a_tcu_file_is_named(spoil: Callable[[dict[str, Any]], Any], text: str) -> None:
    data = toml("tcu/soft_4hp22.toml")
    spoil(data)
    with pytest.raises(ConfigError, match=rf"^bad\.toml: .*(?:{text})"):
        validate(data, TcuConfig, "bad.toml")


VEHICLE_MISTAKES: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda d: d["body"].update(mass_kg=-1.0), r"mass_kg = -1.0 is not allowed in \[body\]; allowed: > 0"),
    (lambda d: d["body"].pop("mass_kg"), r"missing key 'mass_kg' in \[body\]"),
    (
        lambda d: d["road"].update(grade_percent=[[0.0, 0.0], [0.0, 3.0]]),
        r"grade_percent.*\[road\].*strictly increasing",
    ),
    (lambda d: d["road"].update(grade_percent=[[0.0, 300.0]]), r"grade 300.0 %.*-100 .. 100"),
    (lambda d: d["link"].update(endpoint="tcp://192.168.1.4:5000"), r"not on loopback.*\[link\]"),
]


@pytest.mark.parametrize(("spoil", "text"), VEHICLE_MISTAKES)
def test_mistake_in_a_vehicle_file_is_named(spoil: Callable[[dict[str, Any]], Any], text: str) -> None:
    data = toml("vehicles/bmw_528i_e28.toml")
    spoil(data)
    with pytest.raises(ConfigError, match=rf"^bad\.toml: .*(?:{text})"):
        validate(data, VehicleConfig, "bad.toml")


def test_missing_file_and_broken_toml_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=".*none.toml: file not found"):
        load_tcu_config(tmp_path / "none.toml")
    (tmp_path / "broken.toml").write_text("[timing\n")
    with pytest.raises(ConfigError, match="broken.toml: not TOML"):
        load_tcu_config(tmp_path / "broken.toml")
