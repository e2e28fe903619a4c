"""The drive shaft between two moving bodies of Andreasson, Gaefvert 2008, 4.4 (drive_shaft.py of the examples): ours
against the rigid shaft by vectors, and that against MuJoCo's bodies on hinges."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "figures" / "drive_shaft.py"


@pytest.fixture(scope="module")
def case() -> Any:
    spec = importlib.util.spec_from_file_location("drive_shaft", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["drive_shaft"] = module
    spec.loader.exec_module(module)
    return module


def test_speed_and_drive_torque_are_those_of_the_rigid_shaft(case: Any) -> None:
    run = case.ours(1e6, 1e-3, 0.2)
    t = np.asarray(run.time)[120:]
    w, torque = case.rigid(t)
    assert np.ptp(w) > 4.0 and np.ptp(torque) > 20.0
    assert np.abs(np.asarray(run["second.w"])[120:] - w).max() < 4e-3
    assert np.abs(np.asarray(run["drive.tau"])[120:] - torque).max() < 0.05
    assert run.energy().relative_residual < 1e-5


def test_the_rigid_shaft_is_that_of_bodies_on_hinges(case: Any) -> None:
    pytest.importorskip("mujoco")
    w, torque = case.run_mujoco(1e-4, 0.25, 100)
    expected = case.rigid(np.linspace(0.0, 0.25, 26))
    assert np.abs(w - expected[0])[2:].max() < 5e-4 and np.abs(torque - expected[1])[2:].max() < 0.05
