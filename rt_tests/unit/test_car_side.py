"""Engine control and sensors of the tick against their equations, written out here with NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from torqueloop.cython_kernels.can.codec import CodecTables, RxState
from torqueloop.cython_kernels.can.codec_spec import MessageSpec
from torqueloop.cython_kernels.tick.engine_control import ENGINE_SIGNALS, EngineControl
from torqueloop.cython_kernels.tick.sensors import TEETH_SIGNALS, Sensors

T = 1e-3
ROWS = [(0.0, 100.0, 0.0), (200.0, 300.0, -20.0), (600.0, 250.0, -60.0)]
PEDAL, SPEED, LIMIT, ACTIVE, SLOW, OWN = 2, 3, 4, 5, 6, 10
OWN_NAMES = [name for name, _ in ENGINE_SIGNALS]


def engine(**request: object) -> EngineControl:
    made = EngineControl(30, OWN, T)
    made.set_torque(ROWS)
    made.set_paths(pedal=PEDAL, speed=SPEED, air_s=0.05, spark_least=0.3, least=10.0)
    given = {"limit": (LIMIT, 1.0, 0.0), "active": ACTIVE, "always": False, "active_value": -1.0, "slow": None}
    made.set_request(**(given | request))  # type: ignore[arg-type]
    return made


def run(made: EngineControl, sig: np.ndarray, ticks: int, now_ns: int = 0) -> dict[str, float]:
    for _ in range(ticks):
        made.tick(sig, now_ns)
    return dict(zip(OWN_NAMES, sig[OWN : OWN + len(OWN_NAMES)].tolist(), strict=True))


def full(w: float) -> float:
    return float(np.interp(w, [r[0] for r in ROWS], [r[1] for r in ROWS]))


def closed(w: float) -> float:
    return float(np.interp(w, [r[0] for r in ROWS], [r[2] for r in ROWS]))


def table(pedal: float, w: float, limit: float = 0.0, active: float = 0.0) -> np.ndarray:
    sig = np.zeros(30)
    sig[PEDAL], sig[SPEED], sig[LIMIT], sig[ACTIVE] = pedal, w, limit, active
    return sig


def test_charge_follows_the_pedal_with_its_time_constant() -> None:
    sig = table(0.8, 300.0)
    got = run(engine(), sig, 50)
    assert got["air"] == pytest.approx(0.8 * (1.0 - math.exp(-1.0)), rel=1e-12)
    assert got["spark"] == 1.0 and got["pedal"] == got["air"] and got["intervention"] == 0.0
    assert got["tau_driver"] == pytest.approx(closed(300.0) + 0.8 * (full(300.0) - closed(300.0)), rel=1e-12)


def test_without_a_request_the_driver_is_all_there_is() -> None:
    made = EngineControl(30, OWN, T)
    made.set_torque(ROWS)
    made.set_paths(pedal=PEDAL, speed=SPEED, air_s=0.05, spark_least=0.3, least=10.0)
    got = run(made, table(0.8, 300.0), 5000)
    assert got["pedal"] == pytest.approx(0.8) and got["spark"] == 1.0 and got["intervention"] == 0.0


def test_charge_beyond_what_the_engine_breathes_follows_its_turbocharger() -> None:
    made = engine()
    made.set_paths(pedal=PEDAL, speed=SPEED, air_s=0.05, spark_least=0.3, least=10.0, boost_from=0.6, boost_s=0.5)
    sig = table(0.9, 300.0)
    got = run(made, sig, 200)
    boost = 0.3 * (1.0 - math.exp(-0.2 / 0.5))
    assert got["boost"] == pytest.approx(boost, rel=1e-12)
    assert got["air"] == pytest.approx(0.6 * (1.0 - math.exp(-0.2 / 0.05)) + boost, rel=1e-12)
    # less than the engine breathes by itself: the pressure of the charger goes with its own time constant
    sig[PEDAL] = 0.4
    got = run(made, sig, 5000)
    assert got["air"] == pytest.approx(0.4, rel=1e-4) and got["boost"] < 1e-4


def test_spark_brings_the_asked_torque_within_a_tick_and_the_charge_stays() -> None:
    sig = table(1.0, 300.0)
    made = engine()
    run(made, sig, 2000)
    sig[LIMIT], sig[ACTIVE] = 180.0, 1.0
    got = run(made, sig, 1)
    torque = closed(300.0) + got["pedal"] * (full(300.0) - closed(300.0))
    assert torque == pytest.approx(180.0, rel=1e-9) and got["air"] == pytest.approx(1.0) and got["intervention"] == 1.0
    # below what the spark angle can
    sig[LIMIT] = 20.0
    assert run(made, sig, 1)["spark"] == 0.3
    # above the driver: nothing
    sig[LIMIT] = 400.0
    assert run(made, sig, 1)["spark"] == 1.0
    sig[LIMIT], sig[ACTIVE] = 180.0, 0.0
    assert run(made, sig, 1)["pedal"] == pytest.approx(1.0)


def test_a_slow_request_takes_the_charge_back_and_no_less_than_the_least_torque() -> None:
    made = engine(slow=(SLOW, 1.0, 0.0))
    sig = table(1.0, 300.0, 150.0, 1.0)
    sig[SLOW] = -500.0
    got = run(made, sig, 5000)
    assert got["air"] == pytest.approx((10.0 - closed(300.0)) / (full(300.0) - closed(300.0)), rel=1e-9)


def test_requests_are_scaled_before_they_are_used() -> None:
    """150 Nm as 2 x 60 + 30; the torque at once as 0.5 x 500 - 100."""
    sig = table(1.0, 300.0, 500.0, 1.0)
    sig[SLOW] = 60.0
    got = run(engine(limit=(LIMIT, 0.5, -100.0), slow=(SLOW, 2.0, 30.0)), sig, 5000)
    assert got["air"] == pytest.approx((150.0 - closed(300.0)) / (full(300.0) - closed(300.0)), rel=1e-9)
    got = run(engine(limit=(LIMIT, 0.5, -100.0)), table(1.0, 300.0, 500.0, 1.0), 5000)
    assert got["pedal"] == pytest.approx((150.0 - closed(300.0)) / (full(300.0) - closed(300.0)), rel=1e-9)


def test_a_request_of_one_value_only() -> None:
    made = engine(active_value=3.0)
    sig = table(1.0, 300.0, 100.0, 1.0)
    assert run(made, sig, 3000)["intervention"] == 0.0
    sig[ACTIVE] = 3.0
    assert run(made, sig, 1)["intervention"] == 1.0


def test_a_silent_message_leaves_the_driver() -> None:
    message = MessageSpec(name="Req", can_id=0x100, extended=False, length=8, signals=(), receive=True)
    rx = RxState(CodecTables([message], 30))
    made = engine(always=True)
    made.watch(rx, 0, 100_000_000)
    sig = table(1.0, 300.0, 100.0)
    assert run(made, sig, 3000)["silent"] == 1.0 and sig[OWN + OWN_NAMES.index("intervention")] == 0.0
    rx.decode(sig, 0x100, bytes(8), 1_000_000_000, 0)
    assert run(made, sig, 1, 1_100_000_000)["intervention"] == 1.0
    got = run(made, sig, 1, 1_100_000_001)
    assert (got["silent"], got["intervention"], got["spark"]) == (1.0, 0.0, 1.0)


# --- sensors
NAMES = [name or "w" for name, _ in TEETH_SIGNALS]
PLAIN: dict[str, object] = {
    "source": 2, "out": 3, "of_angle": False, "teeth": 60, "missing": 0, "standstill_s": 0.1, "jitter": 0.0,
    "run_out": 0.0, "dropout": 0.0, "signed_speed": False, "parts": 10_000, "amplitude_Vs": 0.0,
    "amplitude_run_out": 0.0, "threshold_V": 0.0, "widths_s": (0.0, 0.0, 0.0), "every_s": 0.0, "seed": 1,
}  # fmt: skip


def teeth(sensor: dict[str, object], w: np.ndarray) -> dict[str, np.ndarray]:
    made = Sensors(20, 1, T)
    made.set_teeth(0, **(PLAIN | sensor))  # type: ignore[arg-type]
    sig, rows = np.zeros(20), []
    for value in w:
        sig[2] = value
        made.tick(sig)
        rows.append(sig[3 : 3 + len(NAMES)].copy())
    return dict(zip(NAMES, np.array(rows).T, strict=True))


def test_edges_are_those_of_the_angle() -> None:
    t = T * np.arange(1, 4001)
    w = 150.0 + 120.0 * np.sin(3.0 * t)
    got = teeth({}, w)
    # the angle, integrated exactly
    angle = 150.0 * t - 40.0 * (np.cos(3.0 * t) - 1.0)
    true = np.floor(60.0 * angle / (2.0 * np.pi))
    assert np.abs(got["count"] - true).max() <= 2.0 and got["count"][-1] > 5000
    assert got["edges"].sum() == got["count"][-1]
    # what a period tells is the mean since the edge before the last: 360 rad/s2 over two periods
    late = 360.0 * 2.0 * (2.0 * np.pi / (60.0 * w))
    assert (np.abs(got["w"] - w)[100:] <= late[100:] + 360.0 * T).all()


def test_slow_turning_is_seen_by_its_age_and_standstill_after_its_time() -> None:
    w = np.concatenate([np.full(500, 20.0), np.zeros(300)])
    got = teeth({}, w)
    period = 2.0 * np.pi / (60.0 * 20.0)
    assert got["period"][499] == pytest.approx(period, rel=1e-9)
    assert got["w"][499] == pytest.approx(20.0) and 0.0 < got["w"][530] < 5.0 and got["w"][-1] == 0.0


def test_direction_only_where_the_sensor_has_one() -> None:
    back = np.full(500, -50.0)
    assert teeth({"signed_speed": True}, back)["w"][-1] == pytest.approx(-50.0)
    got = teeth({}, back)
    assert got["w"][-1] == pytest.approx(50.0) and got["direction"][-1] == -1.0


def test_jitter_and_dropout_are_random_within_their_bounds_and_repeat() -> None:
    w = np.full(20000, 40.0)
    period = 2.0 * np.pi / (60.0 * 40.0)
    got = teeth({"jitter": 0.1}, w)
    seen = got["period"][100:][got["edges"][100:] > 0]
    assert np.abs(seen / period - 1.0).max() <= 0.2 + 1e-9 and seen.std() > 0.05 * period
    lost = teeth({"dropout": 0.05}, w)
    share = 1.0 - lost["edges"].sum() / lost["count"][-1]
    # binomial: five standard deviations
    assert abs(share - 0.05) < 5.0 * math.sqrt(0.05 * 0.95 / lost["count"][-1])
    assert np.array_equal(lost["w"], teeth({"dropout": 0.05}, w)["w"])
    assert not np.array_equal(lost["w"], teeth({"dropout": 0.05, "seed": 2}, w)["w"])


def test_a_curve_is_linear_between_and_constant_outside() -> None:
    made = Sensors(10, 1, T)
    points = [(0.0, 8.0), (1.0, 7.0), (3.0, 5.0)]
    made.set_curve(0, source=2, out=3, points=points)
    sig = np.zeros(10)
    for x in (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 9.0):
        sig[2] = x
        made.tick(sig)
        assert sig[3] == pytest.approx(float(np.interp(x, [p[0] for p in points], [p[1] for p in points])))


def test_a_lever_with_a_rest_position_sends_each_movement_for_a_while_and_then_rests() -> None:
    made = Sensors(10, 1, T)
    # 9 x 9: from P (0), R (1), N (2), D (3)
    codes = [float(10 * (1 + start) + to) for start in range(9) for to in range(9)]
    made.set_moves(0, source=2, out=3, rest=0.0, hold_s=0.01, codes=codes)
    sig, told = np.zeros(10), []
    # the driver: D at once, R 3 ms later, while the movement to D is still sent
    for tick in range(60):
        sig[2] = 3.0 if tick < 3 else 1.0
        made.tick(sig)
        told.append(float(sig[3]))
    to_d, to_r = 13.0, 41.0
    assert told == [to_d] * 10 + [0.0] * 10 + [to_r] * 10 + [0.0] * 30
    sig[2] = 9.0
    made.tick(sig)
    assert sig[3] == 0.0, "no position of the lever"


def test_what_would_leave_the_memory_is_refused() -> None:
    made = Sensors(10, 1, T)
    with pytest.raises(IndexError, match="slot 10"):
        made.set_curve(0, source=10, out=3, points=[(0.0, 0.0), (1.0, 1.0)])
    with pytest.raises(IndexError):
        made.set_teeth(0, **(PLAIN | {"out": 5}))  # type: ignore[arg-type]
    with pytest.raises(IndexError, match="30"):
        EngineControl(30, 25, T)
