"""What was driven, written as a scenario: every tick has the value that was recorded, by linear interpolation alone."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.record.driven import save_driven
from torqueloop.hil.record.recording import ChunkWriter
from torqueloop.hil.record.run_data import signal_header
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.results.files import write_run_info
from torqueloop.hil.results.run import RunInfo

TICK_S = 2e-3
N = 500


def recorded(folder: Path, columns: dict[str, np.ndarray], first: int = 0) -> Path:
    """A run of a rig of one's own with changed values."""
    changed = {"clock.substeps": 2, "driver.pedal": 0.5, "rig.duration_s": 9.0, "plant.set": {"car.m_kg": 1500.0}}
    (folder / "mine.toml").write_text("x = 1\n")
    write_run_info(folder, RunInfo("mine", rig_file="mine.toml", started="2026-03-04T05:06:07", overrides=changed))
    records = np.zeros(N, signal_dtype(len(columns)))
    records["tick"] = np.arange(first, first + N)
    records["out"] = np.array(list(columns.values())).T
    writer = ChunkWriter(folder / "signals", signal_header(list(columns), ["1"] * len(columns), TICK_S))
    writer.write(records.tobytes())
    writer.close()
    return folder


def test_a_scenario_of_what_was_driven_gives_each_tick_its_value(tmp_path: Path) -> None:
    """Held pedals that change in any tick, in neighbouring ones and in the last; a lever; a brake that rests."""
    rng = np.random.default_rng(3)
    pedal = np.repeat(rng.random(100), rng.multinomial(N - 100, [0.01] * 100) + 1)
    pedal[-1] = 0.125
    lever = np.where(np.arange(N) < 60, 3.0, 5.0)
    driven = {"driver.pedal": pedal, "driver.lever": lever, "driver.brake": np.full(N, 0.25)}
    run = recorded(tmp_path, {"engine.w": rng.random(N), **driven})
    saved = save_driven(run, tmp_path / "again.toml")
    assert saved.changes == int((np.diff(pedal) != 0).sum()) + 1 and saved.seconds == pytest.approx(1.0)
    made = tomllib.loads((tmp_path / "again.toml").read_text())
    assert made["scenario"]["rig"] == "mine.toml" and made["scenario"]["duration_s"] == pytest.approx(1.0)
    # what a scenario has itself is not set once more
    assert made["set"] == {"clock.substeps": 2, "plant.set": {"car.m_kg": 1500.0}}
    assert set(made["driver"]) == {"pedal", "lever", "brake"}
    for name, points in made["driver"].items():
        t, y = np.array(points).T
        assert (np.diff(t) >= 0.0).all()
        np.testing.assert_array_equal(np.interp(np.arange(N) * TICK_S, t, y), driven[f"driver.{name}"])


def test_what_cannot_be_repeated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not recorded tick by tick from its start"):
        save_driven(recorded(tmp_path, {"driver.pedal": np.zeros(N)}, first=7), tmp_path / "again.toml")
