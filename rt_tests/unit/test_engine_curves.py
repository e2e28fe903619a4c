"""Full load and closed throttle of the package's engines, against what their makers state."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from torqueloop.core.analyse.engine_curves import STATED, stated_engine

ENGINES = Path(__file__).resolve().parents[2] / "configs" / "engines"
FILES = [path for path in sorted(ENGINES.glob("*.csv")) if STATED.search(path.read_text(encoding="utf-8"))]
RPM = math.pi / 30.0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_has_the_stated_torque_and_power_and_drags_beyond_the_limiter(path: Path) -> None:
    stated = stated_engine(path)
    rows = [line for line in path.read_text(encoding="utf-8").splitlines() if line and line[0].isdigit()]
    table = np.array([[float(x) for x in row.split(",")] for row in rows])
    np.testing.assert_allclose(table, stated.rows(), rtol=0, atol=6e-5)
    w, full, closed = table.T
    assert np.interp(stated.torque_rpm * RPM, w, full) == pytest.approx(stated.torque_Nm, abs=1e-3)
    at = stated.power_rpm * RPM
    assert at * np.interp(at, w, full) == pytest.approx(1e3 * stated.power_kW, rel=1e-5)
    assert (w * full).max() == pytest.approx(1e3 * stated.power_kW, rel=1e-3), "the stated power is the largest"
    limit = stated.limiter_rpm * RPM
    assert np.interp(limit, w, full) == pytest.approx(0.0, abs=1e-3) and np.all(full[w < limit - 1.0] >= 0.0)
    # the limiter takes the fuel away: with the pedal down the engine drags as it does without a foot on it
    beyond = w > limit + 30.0
    assert beyond.sum() > 1 and np.array_equal(full[beyond], closed[beyond]) and np.all(closed < 0.0) | (w[0] == 0.0)
    assert np.all(np.diff(full[w >= at]) < 0.0) and np.all(full >= closed)
