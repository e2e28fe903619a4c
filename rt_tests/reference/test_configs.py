"""The data files: derived tables follow from their stated sources, every value has an origin, the cars compile."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torqueloop.configs
from torqueloop.core.analyse.gearbox_report import gearbox_report
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import KINDS
from torqueloop.core.components.files import load

CONFIGS = Path(next(iter(torqueloop.configs.__path__)))
DRIVELINES = sorted([*(CONFIGS / "gearboxes").glob("*.toml"), *(CONFIGS / "powertrains").glob("*.toml")])
RIG_INPUTS = {
    "C4.p", "C5.p", "C6.p", "C7.p", "C8.p", "C11.p", "C12.p", "lockup.p", "engine.pedal", "road.F", "road.F_hold",
}  # fmt: skip
RIG_OUTPUTS = {"engine.w", "turbine.w", "in.w", "out.w", "car.v", "car.s", "road.F_work", "C11.tau", "F14.tau"}


def columns(name: str) -> dict[str, np.ndarray]:
    lines = [line for line in (CONFIGS / name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


@pytest.mark.parametrize(("name", "scale"), [("tc_4hp22", 1.0), ("tc_6hp26", (260 / 280) ** 2.5)])
def test_converter_tables_are_the_scaled_source(name: str, scale: float) -> None:
    source, drive = columns("converters/tc_auto4_1998.csv"), columns(f"converters/{name}.csv")
    wanted = 1.0 / (scale * source["K_radps_per_sqrtNm"]) ** 2
    np.testing.assert_allclose(drive["pump_capacity_Nms2_per_rad2"][:-1], wanted[:-1], rtol=1e-7)
    assert drive["pump_capacity_Nms2_per_rad2"][-1] == 0.0  # corrected: no slip, no torque
    np.testing.assert_array_equal(drive["torque_ratio"], source["torque_ratio"])
    origin, coast = columns("converters/tc_auto4_1998_coast.csv"), columns(f"converters/{name}_coast.csv")
    w = origin["turbine_speed_rpm"] * np.pi / 30.0
    x, y = coast["speed_ratio_p_over_t"], coast["turbine_capacity_Nms2_per_rad2"]
    at_source = np.interp(1.0 / origin["speed_ratio_t_over_p"], x, y)
    np.testing.assert_allclose(at_source, 80.0 / (scale * w) ** 2, rtol=1e-6)
    assert (x[0], x[-1], y[-1]) == (0.0, 1.0, 0.0) and np.all(np.diff(y) < 0.0)


@pytest.mark.parametrize("path", DRIVELINES, ids=lambda p: p.stem)
def test_every_component_and_table_says_where_its_values_come_from(path: Path) -> None:
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    for name, table in document.get("components", {}).items():
        assert table["kind"] in KINDS
        if set(table) > {"kind"}:
            source = table.get("source", "")
            numbers = [k for k, v in table.items() if isinstance(v, (int, float)) and not isinstance(v, bool)]
            texts = [source.get(k, "") for k in numbers] if isinstance(source, dict) else [source]
            assert texts and all(len(text) > 3 for text in texts), f"{path.name}: [components.{name}]"
    for name, table in document.get("tables", {}).items():
        if "csv" in table:
            header = (path.parent / table["csv"]).read_text(encoding="utf-8").partition("\n")[0]
            assert header.startswith("#"), table["csv"]
        else:
            assert table.get("source"), f"{path.name}: [tables.{name}]"


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*/*.csv")), ids=lambda p: p.name)
def test_every_table_file_carries_the_advisor_notice(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if "ADVISOR" in text:
        assert "Alliance for Sustainable Energy, LLC" in text
        assert (CONFIGS / "LICENSE-ADVISOR.txt").is_file()
    listing = CONFIGS / "README.md"
    if listing.is_file() and path.parent.name in ("engines", "converters"):  # an installed wheel has no README
        assert path.name in listing.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", DRIVELINES, ids=lambda p: p.stem)
def test_driveline_loads_and_uses_all_its_tables(path: Path) -> None:
    driveline = load(path)
    assert driveline.unused_tables() == []
    assert driveline.gearbox is not None and driveline.gears


def test_rig_car_has_the_inputs_and_outputs_of_the_rig() -> None:
    model = compile_driveline(load(CONFIGS / "powertrains" / "car_4hp22_rig.toml"))
    assert set(model.input_names) == RIG_INPUTS
    assert set(model.output_names) >= RIG_OUTPUTS
    assert model.n == 6 and model.arrays.order == 4


def test_half_shaft_damping_is_about_eight_percent_in_first_gear() -> None:
    driveline = load(CONFIGS / "powertrains" / "car_4hp22.toml")
    ratio = float(gearbox_report(driveline).gears["1"].ratio or 0) * 3.25
    shafts = driveline.components["half_shafts"]
    J = sum(driveline.components[n].J for n in ("turbine", "in", "R1")) * ratio**2  # the parts at input speed dominate
    J += sum(driveline.components[n].J for n in ("S12", "X", "S3", "out")) * 3.25**2
    zeta = shafts.d / (2.0 * np.sqrt(shafts.c * J))
    assert 0.06 < zeta < 0.10


def test_report_is_text_and_plain_data() -> None:
    report = gearbox_report("zf_4hp22")
    text = report.text()
    assert "181/73" in text and "C11" in text and "published" in text
    data = json.loads(json.dumps(report.as_dict()))
    assert data["gears"]["4"]["ratio"] == pytest.approx(83 / 114)


def test_gearbox_plot_is_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib (extra `report`)")
    from torqueloop.core.analyse.gearbox_plot import plot_gearbox

    for name in ("zf_4hp22", "lepelletier_6hp26"):
        file = plot_gearbox(gearbox_report(name), tmp_path / f"{name}.svg")
        drawn = file.read_text(encoding="utf-8")
        assert drawn.count("<path") > 100


def test_what_is_drawn_of_a_gearbox_lies_inside_its_axes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = pytest.importorskip("matplotlib.figure", reason="plots need matplotlib (extra `report`)")
    from torqueloop.core.analyse.gearbox_plot import plot_gearbox

    kept: list[Any] = []
    monkeypatch.setattr(figure.Figure, "savefig", lambda self, *_, **__: kept.append(self))
    plot_gearbox(gearbox_report("zf_4hp22"), tmp_path / "gearbox.svg")
    for axis in kept[0].axes:
        (left, right), (bottom, top) = axis.get_xlim(), axis.get_ylim()
        assert left < right
        for line in axis.lines:
            assert left <= min(line.get_xdata()) and max(line.get_xdata()) <= right, axis.get_title()
            assert bottom <= min(line.get_ydata()) and max(line.get_ydata()) <= top, axis.get_title()
