"""The desk rig over solenoid currents: it shifts, its energy closes, and it replays and goes on from a checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import torqueloop as tl
from torqueloop.hil.cli.file_check import check_file
from torqueloop.hil.rig.run.replay import replay

RIG = "desk_4hp22_solenoids"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tl.RecordedRun:
    out = tmp_path_factory.mktemp("hydraulics") / "run"
    return tl.run(RIG, clock="virtual", duration=8.0, out=out, html=False)


def test_it_shifts_over_currents_and_the_energy_closes(run: tl.RecordedRun) -> None:
    metrics = run.metrics
    assert metrics["shifts"] >= 1 and metrics["safe_state_latched"] == 0
    assert metrics["energy_residual_rel"] < 1e-9


def test_pressure_follows_the_current_through_the_filling_of_the_element(run: tl.RecordedRun) -> None:
    wanted, current = run["TCU_Pressure_1.p_C4"], run["hydraulics.EDS_C4.i"]
    pressure, piston = run["hydraulics.C4.p"], run["C4.p"]
    assert wanted.max() > 5e5 and np.abs(current[100:] - 1e-6 * wanted[100:]).max() < 0.6
    # nothing lags behind the unit: the actuator of the gearbox file is out of the way
    assert np.abs(pressure - piston).max() < 1e-6 * pressure.max()
    # between its fill pulse and the torque of launch the lever's clutch is wanted at more than it has oil for
    first = int(np.flatnonzero(wanted > 1.5e5)[0])
    full = int(np.flatnonzero(run["hydraulics.C4.volume"] > 11e-6)[0])
    assert 5 <= full - first <= 300, "filling takes its time"
    assert pressure[first:full].max() < 1.2e5, "and as long it does not press"


def test_the_books_of_the_unit_close(run: tl.RecordedRun) -> None:
    work, loss, stored = (run[f"hydraulics.{name}"][-1] for name in ("work", "loss", "stored"))
    assert work > 0 and loss > 0 and abs(work - loss - stored) < 1e-4 * work
    assert run["hydraulics.pump_torque"].max() > 1.0


def test_it_replays_to_the_bit(run: tl.RecordedRun) -> None:
    again = replay(run.path)
    assert again.difference is None and again.hash_replayed == again.hash_recorded


def test_check_reads_the_file_and_names_mistakes(tmp_path: Path) -> None:
    unit = Path(tl.__path__[0]) / "configs" / "hydraulics" / "zf_4hp22_direct.toml"
    good = check_file(unit)
    assert good.ok and good.kind == "hydraulic unit" and "8 circuits" in good.text
    text = unit.read_text()
    bad = tmp_path / "bad.toml"
    bad.write_text(text.replace('supply = ["EDS_C4"]', 'supply = ["EDS_C9"]'))
    found = check_file(bad)
    assert not found.ok and "EDS_C9" in str(found.error)
