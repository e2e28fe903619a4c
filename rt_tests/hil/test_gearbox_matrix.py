"""All gearboxes on one matrix: ratios, statics, lock patterns, precompiled = generic, all gears up and down at a desk.

Numbers to compare with: published ratios; reference/gearboxes/static_check.csv (an independent computation of torques
and slips, see its header). `pytest -s -k matrix` prints the table.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import torqueloop as tl
from torqueloop.core.analyse.gearbox_report import PUBLISHED_ROUNDING, gearbox_report
from torqueloop.core.compile import user_steps
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState
from torqueloop.hil.ecu.gears import gear_number
from torqueloop.hil.runs.recorded_run import RecordedRun

STATICS = Path(__file__).resolve().parents[1] / "reference" / "gearboxes" / "static_check.csv"
#: largest peak of the acceleration beyond what lies before and after a shift [m/s2]
PEAK_MAX = 3.0


@dataclass
class Box:
    """One gearbox: its rig, its car, its name in static_check.csv (None: no independent computation)."""

    rig: str
    car: str
    statics: str | None
    top: int
    #: torques and slips of elements it has, but the independent computation has not
    without: tuple[str, ...] = ()
    cells: dict[str, str] = field(default_factory=dict)


BOXES = {
    "zf_4hp22": Box("desk_4hp22", "car_4hp22_rig", "4HP22 large engines", 4),
    "zf_4hp22_small": Box("desk_zf_4hp22_small", "car_zf_4hp22_small_rig", "4HP22 small engines", 4),
    "lepelletier_6hp26": Box("desk_6hp26", "car_6hp26_rig", "6HP26", 6),
    "zf_8hp45": Box("desk_zf_8hp45", "car_zf_8hp45_rig", "ZF 8HP45 / 8HP30-I", 8),
    "zf_8hp70": Box("desk_zf_8hp70", "car_zf_8hp70_rig", "ZF 8HP70 (2008 pilot series)", 8),
    "gm_4l60e": Box("desk_gm_4l60e", "car_gm_4l60e_rig", "GM 4L60-E", 4),
    "mb_7226": Box("desk_mb_7226", "car_mb_7226_rig", None, 5),
}


def check_ratios(name: str) -> str:
    report = gearbox_report(name)
    off = []
    for state in report.gears.values():
        assert state.ratio is not None and state.published is not None and not state.remarks
        off.append(abs(float(state.ratio) - state.published))
    assert max(off) <= PUBLISHED_ROUNDING
    return f"{len(off)} exact"


def check_statics(name: str, box: Box) -> str:
    if box.statics is None:
        return "no reference"
    report = gearbox_report(name)
    elements = {e.name: e for e in report.train.elements}
    lines = [line for line in STATICS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    seen = 0
    for row in csv.DictReader(lines):
        # gear 1 of the 4L60-E is by the low brake there, by the roller clutch beside it here
        gear = "1_engine_braking" if (box.statics, row["gear"]) == ("GM 4L60-E", "1") else row["gear"]
        if row["gearbox"] != box.statics or row["element"] not in elements:
            continue
        state, element = report.gears[gear], elements[row["element"]]
        sign = 1.0 if (element.first or "housing") == row["shaft_first"] else -1.0
        assert {element.first or "housing", element.second or "housing"} == {row["shaft_first"], row["shaft_second"]}
        if row["engaged"] == "1":
            assert sign * float(state.torques[element.name]) == pytest.approx(
                float(row["torque_on_first_per_Nm"]), abs=1e-5
            )
        elif element.name in state.slips:
            assert sign * float(state.slips[element.name]) == pytest.approx(float(row["slip_per_rad_s"]), abs=1e-5)
        seen += 1
    assert seen >= 5 * box.top
    return f"{seen} torques, slips"


def check_patterns(box: Box) -> str:
    """Every set of pressed elements from random speeds: finite, friction only takes, precompiled = generic in bits."""
    compiled = compile_driveline(tl.load(box.car))
    pressed = [n for n in compiled.input_names if n.endswith(".p") and not n.startswith("lockup")]
    rng = np.random.default_rng(7)
    models = {kernel: KernelModel(compiled.arrays, 1e-3, kernel) for kernel in ("generic", "auto")}
    assert models["auto"].kernel_name != "generic"
    count = 0
    for pattern in product((False, True), repeat=len(pressed)):
        inputs = np.zeros((150, int(compiled.arrays.nin)))
        inputs[:75, compiled.input_index("engine.pedal")] = 0.5
        for name, on in zip(pressed, pattern, strict=True):
            inputs[:, compiled.input_index(name)] = 12e5 if on else 0.0
        start = rng.uniform(-200.0, 200.0, len(compiled.arrays.u0))
        hashes = set()
        for model in models.values():
            state = KernelState(model)
            state.u = start
            assert model.run(state, inputs) == len(inputs) and np.isfinite(state.u).all(), pattern
            assert state.counters["negative_heat"] == 0, pattern
            hashes.add(state.hash())
        assert len(hashes) == 1, pattern
        count += 1
    return f"{count} patterns, equal bits"


def excess(t: np.ndarray, a: np.ndarray, begin: float, end: float) -> float:
    """Peak of the acceleration in a shift beyond what lies before and after it [m/s2]."""
    before = a[(t > begin - 0.25) & (t < begin - 0.05)].mean()
    after = a[(t > end + 0.3) & (t < end + 0.6)].mean()
    window = a[(t >= begin) & (t <= end + 0.3)]
    return float(max(window.max() - max(before, after), min(before, after) - window.min()))


def check_run(box: Box, out: Path) -> tuple[RecordedRun, str]:
    drive = {}
    if box.rig == "desk_4hp22":  # that rig drives up at full throttle only
        drive = {
            "driver.pedal": [[0.0, 0.0], [1.5, 0.0], [1.7, 1.0], [22.0, 1.0], [22.3, 0.0]],
            "driver.kickdown": [[0.0, 0.0]],
            "driver.brake": [[0.0, 0.3], [1.3, 0.3], [1.5, 0.0], [25.0, 0.0], [26.0, 0.16]],
        }
    run = tl.run(box.rig, clock="virtual", out=out, duration=60.0 if drive else None, overrides=drive, html=False)
    assert not [g.text for g in run.report.gates if not g.passed]
    shifts = run.stats.participants["tcu"].reported["shifts"]
    gears = [s["shift"].removesuffix(".coast").split("-") for s in shifts]
    ups = [(a, b) for a, b in gears if gear_number(b) > gear_number(a) > 0]
    downs = [(a, b) for a, b in gears if gear_number(a) > gear_number(b) > 0]
    assert [gear_number(b) for _, b in ups] == list(range(2, box.top + 1)), ups
    assert gear_number(downs[0][0]) == box.top and downs[-1][1] in ("1", "1E"), downs
    worst, longest = 0.0, 0.0
    for entry in shifts:
        a, b = entry["shift"].removesuffix(".coast").split("-")
        if not gear_number(a) or not gear_number(b):
            continue
        peak = excess(run.t, run["car.a"], entry["end_s"] - entry["duration_s"], entry["end_s"])
        assert peak <= PEAK_MAX, (entry, peak)
        worst, longest = max(worst, peak), max(longest, entry["duration_s"])
    return run, f"peak {worst:.2f} m/s2, {longest:.2f} s"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Steps of the cars that have none in the package, built for this test run with little optimisation."""
    folder = tmp_path_factory.mktemp("steps")
    patch = pytest.MonkeyPatch()
    patch.setattr(user_steps, "folder", lambda: folder)
    for box in BOXES.values():
        compiled = compile_driveline(tl.load(box.car))
        if KernelModel(compiled.arrays, 1e-3).kernel_name == "generic":
            user_steps.use(user_steps.build(compiled, box.car, optimise="-O0"))
    patch.undo()


@pytest.mark.long
@pytest.mark.xdist_group("matrix")
def test_matrix_of_all_gearboxes(built: None, tmp_path: Path) -> None:
    columns = ("ratios", "statics", "patterns", "all gears", "energy")
    for name, box in BOXES.items():
        run, gears = check_run(box, tmp_path / name)
        energy = run.metrics["energy_residual_rel"]
        assert energy < 1e-9
        cells = (check_ratios(name), check_statics(name, box), check_patterns(box), gears, f"{energy:.1e}")
        box.cells = dict(zip(columns, cells, strict=True))
    print(f"\n{'gearbox':18}" + "".join(f"{c:26}" for c in columns))
    for name, box in BOXES.items():
        print(f"{name:18}" + "".join(f"{box.cells[c]:26}" for c in columns))
