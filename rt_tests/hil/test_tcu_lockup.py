"""Lock-up control of the soft TCU, by itself: the slip of either sign, its reference, its states."""

from __future__ import annotations

from pathlib import Path

import pytest

from torqueloop.hil.ecu.shift import RPM, Measured, TorqueEstimator
from torqueloop.hil.ecu.strategy import LockUpControl
from torqueloop.hil.ecu.tcu_tables import load_tcu_config

CONFIG = load_tcu_config(Path(__file__).resolve().parents[2] / "configs/tcu/soft_4hp22.toml")
C, DT = CONFIG.lockup, CONFIG.timing.period_s


def closing(control: LockUpControl, slip_rpm: float, steps: int) -> list[float]:
    """Pressures while the car drives fast enough with a little pedal and this slip."""
    w_engine, w_out = (2500.0 + slip_rpm) * RPM, (C.close_rpm + 100.0) * RPM
    now = Measured(w_engine=w_engine, w_turbine=2500.0 * RPM, w_out=w_out, pedal=0.2)
    return [control.step(C.gears[0], False, now) for _ in range(steps)]


def test_it_fills_at_the_filling_pressure_and_then_regulates_from_the_kiss_point() -> None:
    control = LockUpControl(CONFIG)
    pressures = closing(control, 200.0, round(C.fill_s / DT) + 2)
    assert pressures[0] == 0.0 or pressures[0] == C.fill_bar
    assert C.fill_bar in pressures and control.state == "slipping"


@pytest.mark.parametrize("slip", [150.0, -150.0])
def test_the_reference_falls_from_the_slip_there_is_whatever_its_sign(slip: float) -> None:
    """|slip| held at 150 rpm: the reference falls by slip_rate, the error grows with it, pressure is kiss + kp e + ki
    integral of e (e in 100 rpm), and no more than that of the locked clutch. A slip that stays is never a lock."""
    control = LockUpControl(CONFIG)
    while control.state != "slipping":
        closing(control, slip, 1)
    reference, integral = 150.0, 0.0
    for _ in range(1500):
        reference = max(C.slip_rpm, min(reference, 150.0) - C.slip_rate_rpm_per_s * DT)
        error = (150.0 - reference) / 100.0
        integral = min(integral + C.slip_ki_bar_per_100rpm_s * error * DT, C.locked_bar)
        (pressure,) = closing(control, slip, 1)
        wanted = min(C.kiss_bar + C.slip_kp_bar_per_100rpm * error + integral, C.locked_bar)
        assert pressure == pytest.approx(wanted, rel=1e-12) and control.state == "slipping"
    assert pressure == C.locked_bar and reference == C.slip_rpm


def test_a_slip_that_falls_by_itself_takes_the_reference_along_and_ends_in_the_lock() -> None:
    control = LockUpControl(CONFIG)
    closing(control, 300.0, round(C.fill_s / DT) + 2)
    closing(control, -(C.lock_slip_rpm - 1.0), 60)
    assert control.state == "locked", "a small slip in overrun locks as one under power"
    pressures = closing(control, 0.0, 5)
    assert [b - a for a, b in zip(pressures, pressures[1:], strict=False)] == pytest.approx([C.ramp_bar_per_s * DT] * 4)
    assert max(closing(control, 0.0, 1000)) == C.locked_bar


def test_it_opens_along_the_ramp_below_its_speed_and_above_its_pedal() -> None:
    for pedal, rpm in ((0.2, C.open_rpm - 10.0), (C.open_pedal_percent / 100.0 + 0.01, C.close_rpm + 100.0)):
        control = LockUpControl(CONFIG)
        closing(control, 300.0, 40)
        closing(control, 0.0, 400)
        before = control.pressure
        now = Measured(w_engine=2500.0 * RPM, w_turbine=2500.0 * RPM, w_out=rpm * RPM, pedal=pedal)
        assert control.step(C.gears[0], False, now) == pytest.approx(before - C.ramp_bar_per_s * DT)
        assert control.state == "releasing"


def test_while_the_clutch_slips_under_power_the_elements_get_pressure_for_the_engine_s_torque() -> None:
    """At a speed ratio near 1 the converter carries next to nothing: the clutch that closes carries the rest, and the
    elements hold both. In overrun the engine's map says nothing about a clutch that slips."""

    def settled(state: str, pedal: float, slip_rpm: float) -> float:
        estimator = TorqueEstimator(CONFIG)
        now = Measured(w_engine=(2500.0 + slip_rpm) * RPM, w_turbine=2500.0 * RPM, w_out=2500.0 * RPM, pedal=pedal)
        for _ in range(2000):
            estimator.update(now, state)
        return estimator.torque

    engine = settled("locked", 0.6, 20.0)
    assert settled("slipping", 0.6, 20.0) == pytest.approx(engine)
    assert engine > 3.0 * settled("open", 0.6, 20.0)
    # far from it the converter carries all, and multiplies it
    assert settled("slipping", 0.2, 1500.0) == settled("open", 0.2, 1500.0) > settled("locked", 0.2, 1500.0)
    assert settled("slipping", 0.0, -100.0) == settled("open", 0.0, -100.0) < 0.0
