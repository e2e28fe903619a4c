"""Coils of solenoids against closed forms: Ohm's law, exp(-t R/L), supply, copper, faults of wires and valve."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from test_hydraulics import BAR, Bench, changed

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.common.config_file import validate
from torqueloop.hil.rig.devices.supply import SupplyTable
from torqueloop.hil.rig.schema.hydraulic_unit import HydraulicsConfig

R, L, U, FLY = 4.0, 0.02, 13.5, 0.7
CURRENT = "hydraulics.EDS.i"


def coil(by: str = "voltage", **table: Any) -> Bench:
    """A clutch behind a solenoid with a coil; 8 bar at 4 A."""
    data = {"resistance_ohm": R, "inductance_H": L, "drive": by, "flyback_V": FLY}
    unit = changed("solenoid", EDS={"bar_over_command": [[0.0, 0.0], [4.0, 8.0]], "coil": data})
    return Bench(unit, supply="battery", **table)


def test_the_current_rises_to_ohms_law_and_falls_against_the_diode_as_the_closed_forms_say() -> None:
    bench = coil()
    t = 1e-3 * np.arange(1, 41)
    bench["cmd.EDS"] = 1.0
    rising = bench.go(0.04, CURRENT)
    assert rising == pytest.approx(U / R * (1.0 - np.exp(-t * R / L)), rel=1e-12)
    bench.go(0.5)
    assert bench[CURRENT] == pytest.approx(U / R, rel=1e-12)
    bench["cmd.EDS"] = 0.0
    falling = bench.go(0.04, CURRENT)
    # L i' = -R i - U_fly until the diode blocks
    assert falling == pytest.approx(
        np.maximum(0.0, (U / R + FLY / R) * np.exp(-t * R / L) - FLY / R), rel=1e-12, abs=1e-15
    )
    assert falling[-1] == 0.0


def test_a_duty_gives_the_mean_current_of_the_pulses() -> None:
    bench, duty, period, h = coil(), 0.4, 250, 1e-6  # 4 kHz, in steps of 1 us
    bench["cmd.EDS"] = duty
    bench.go(0.3)
    i, total, n = 0.0, 0.0, round(0.1 / h)
    for k in range(n):
        # the pulses themselves, by the midpoint method
        u = U if k % period < duty * period else -FLY
        i += h / L * (u - R * (i + 0.5 * h / L * (u - R * i)))
        total += i if k >= n - 1000 else 0.0
    assert bench[CURRENT] == pytest.approx(total / 1000, rel=2e-3)
    assert bench[CURRENT] == pytest.approx((duty * U - (1 - duty) * FLY) / R, rel=1e-12)


def test_a_regulated_current_is_limited_by_the_supply_and_by_the_inductance() -> None:
    bench = coil("current")
    bench["cmd.EDS"] = 2.0
    t = 1e-3 * np.arange(1, 21)
    rising = bench.go(0.02, CURRENT)
    assert rising == pytest.approx(np.minimum(2.0, U / R * (1.0 - np.exp(-t * R / L))), rel=1e-12)
    # the battery while the starter turns
    bench["battery"] = 6.0
    bench.go(0.5)
    assert bench[CURRENT] == pytest.approx(6.0 / R, rel=1e-12)
    assert bench["hydraulics.EDS.p"] == pytest.approx(6.0 / R * 2.0 * BAR, rel=1e-9)


def test_copper_is_warm_with_the_oil() -> None:
    bench = coil(temperature="oil.T")
    bench["cmd.EDS"] = 1.0
    for degC in (-30.0, 20.0, 120.0):
        bench["oil.T"] = degC + 273.15
        bench.go(0.5)
        assert bench[CURRENT] == pytest.approx(U / (R * (1.0 + 0.00393 * (degC - 20.0))), rel=1e-12)


def test_the_current_does_not_depend_on_the_number_of_sub_steps() -> None:
    found = []
    for substeps in (1, 7):
        bench = coil(substeps=substeps)
        bench["cmd.EDS"] = 0.7
        found.append(bench.go(0.05, CURRENT))
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_a_stuck_valve_keeps_its_pressure_while_the_current_changes() -> None:
    bench = coil()
    bench["cmd.EDS"] = 0.5
    bench.go(0.3)
    held = bench["hydraulics.EDS.p"]
    bench["hydraulics.EDS.free"] = 0.0
    bench["cmd.EDS"] = 1.0
    bench.go(0.3)
    assert bench["hydraulics.EDS.p"] == held and bench[CURRENT] == pytest.approx(U / R, rel=1e-12)
    bench["hydraulics.EDS.free"] = 1.0
    bench.go(0.3)
    assert bench["hydraulics.EDS.p"] == pytest.approx(2.0 * BAR * U / R, rel=1e-9)


def test_the_output_stage_measures_its_share_and_a_broken_wire_ends_the_current_at_once() -> None:
    bench = coil()
    bench["cmd.EDS"] = 1.0
    bench.go(0.5)
    assert bench["hydraulics.EDS.sense"] == bench[CURRENT] > 3.0
    bench["hydraulics.EDS.through"] = 0.0
    bench.go(1e-3)
    assert bench["hydraulics.EDS.sense"] == 0.0 and bench[CURRENT] > 3.0
    bench["hydraulics.EDS.through"], bench["hydraulics.EDS.resistance"] = 1.0, 1e9
    bench.go(1e-3)
    assert 0.0 < bench["hydraulics.EDS.sense"] == pytest.approx(U / 1e9)


def test_a_coil_without_a_supply_and_one_with_two_time_constants_are_refused() -> None:
    data = {"resistance_ohm": R, "inductance_H": L}
    with pytest.raises(ConfigError, match=r"supply.*EDS.*terminal_30"):
        Bench(changed("solenoid", "EDS", coil_s=0.0, coil=data))
    with pytest.raises(ConfigError, match="coil_s"):
        validate(changed("solenoid", "EDS", coil_s=0.01, coil=data), HydraulicsConfig, "unit.toml")


def test_terminal_15_is_the_battery_while_the_ignition_is_on() -> None:
    battery = [(0.0, 12.6), (1.0, 12.6), (1.005, 8.0), (1.02, 8.0), (1.07, 9.5), (3.0, 9.5), (3.0, 13.8)]
    table = SupplyTable(battery_V=battery, ignition=[(0.0, 0.0), (0.5, 1.0), (1.03, 0.0), (2.0, 1.0), (3.0, 0.0)])
    points = table.terminal_15()
    times = [t for t, _ in points]
    assert times == sorted(times)

    def at(t: float) -> float:
        """As the tick reads a table: of two points at one time the second one holds."""
        k = max(k for k, (t0, _) in enumerate(points) if t0 <= t)
        (t0, u0), (t1, u1) = points[k], points[min(k + 1, len(points) - 1)]
        return u0 if t1 == t0 else u0 + (u1 - u0) * (t - t0) / (t1 - t0)

    for t in np.arange(0.0, 4.0, 0.0007):
        on = 0.5 <= t < 1.03 or 2.0 <= t < 3.0
        assert at(t) == pytest.approx(on * float(np.interp(t, *zip(*battery, strict=True))), abs=1e-9), t
    assert math.isclose(at(1.0299), 8.0 + 1.5 * 0.0099 / 0.05)


@pytest.mark.parametrize(("key", "value"), [("ignition", [(0, 0.5)]), ("battery_V", [(1, 12), (0, 12)])])
def test_mistakes_in_the_supply_are_named(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=key):
        validate({key: value}, SupplyTable, "rig.toml")
