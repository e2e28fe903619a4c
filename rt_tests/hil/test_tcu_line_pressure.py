"""Line pressure of the soft TCU against its law, written out here: docs and head of [line_pressure]."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from torqueloop.hil.ecu.shift import Measured
from torqueloop.hil.ecu.strategy import Transmission
from torqueloop.hil.ecu.tcu_tables import load_tcu_config

CONFIG = load_tcu_config(Path(__file__).resolve().parents[2] / "configs/tcu/soft_zf_4hp22_small.toml")
LAW = CONFIG.line_pressure


def driven(lever: str, torque: list[float], pedal: list[float]) -> list[tuple[float, dict[str, float], str, bool]]:
    """(line, pressures, gear, shifting) of each step of a standing car with these torques and pedals."""
    unit, found = Transmission(CONFIG), []
    given = iter(torque)
    unit.torque = SimpleNamespace(update=lambda now, locked: next(given), driver=lambda now: 0.0)  # type: ignore[assignment]
    for x in pedal:
        commands = unit.step(Measured(w_engine=80.0, w_turbine=0.0, w_out=0.0, pedal=x, lever=lever))
        found.append((commands.line, commands.pressures, commands.gear_actual, commands.shifting))
    return found


@pytest.mark.parametrize("lever", ["D", "R", "N"])
def test_the_line_pressure_follows_torque_and_pedal_within_its_limits_and_its_rate(lever: str) -> None:
    """clip(base + factor |T| + gain pedal), the highest change in a step, the factor of the reverse gear in R."""
    rng = np.random.default_rng(8)
    # small and large torques of both signs, each held for some time
    torque = np.repeat(rng.uniform(-250.0, 350.0, 20), 60)
    torque[240:360], torque[600:720] = 0.0, 2000.0
    pedal = np.repeat(rng.uniform(0.0, 1.0, 12), 100)
    made = driven(lever, torque.tolist(), pedal.tolist())
    line, seen = LAW.min_bar, set()
    most = LAW.rate_bar_per_s * CONFIG.timing.period_s
    for k, (found, pressures, gear, shifting) in enumerate(made):
        reverse = lever == "R" and k > 0
        wanted = LAW.base_bar + (LAW.reverse_factor if reverse else 1.0) * LAW.per_torque_bar_per_Nm * abs(torque[k])
        wanted += LAW.pedal_gain_bar * pedal[k]
        line = float(np.clip(line + np.clip(wanted - line, -most, most), LAW.min_bar, LAW.max_bar))
        assert found == pytest.approx(line, rel=1e-12), k
        seen.add("low" if line == LAW.min_bar else "high" if line == LAW.max_bar else "between")
        if not shifting:
            pressed = CONFIG.gears[gear].elements
            assert pressures == {e: found if e in pressed else 0.0 for e in CONFIG.elements}
    assert seen >= {"high", "between"} and made[-1][2] == {"D": "1", "R": "R", "N": "N"}[lever]
