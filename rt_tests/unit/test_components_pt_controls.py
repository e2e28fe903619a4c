"""Controllers: one pedal at a time, rates, no windup, hysteresis, cut-off; and the loop beside a model."""

from __future__ import annotations

import numpy as np
import pytest

from torqueloop.core.components import Inertia, LinearSpeedDependentTorque, Torque
from torqueloop.core.controls import (
    CoolingFan,
    Driver2,
    FuelFlowController,
    GearboxController,
    IdleController,
    Wired,
    run_controlled,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import RangeError, UnknownNameError
from torqueloop.core.describe.tables import Table1D
from torqueloop.core.signals import Step, Table
from torqueloop.core.simulate.offline import Simulation

DT = 0.01


def drive(driver: Driver2, v_set: np.ndarray, power: float = 4.0, brakes: float = 8.0) -> dict[str, np.ndarray]:
    """A point mass: a = power*accelerator - brakes*brake - 0.02*v, no reverse."""
    v, log = 0.0, []
    for k, wanted in enumerate(v_set):
        pedals = driver.step(k * DT, {"v_set": float(wanted), "v": v})
        log.append((v, pedals["accelerator"], pedals["brake"], driver.integral))
        v = max(0.0, v + DT * (power * pedals["accelerator"] - brakes * pedals["brake"] - 0.02 * v))
    columns = np.array(log).T
    return dict(zip(("v", "accelerator", "brake", "integral"), columns, strict=True))


def profile(seconds: float) -> np.ndarray:
    """Up, constant, sharply down, constant, to a stop, at rest."""
    t = np.arange(0.0, seconds, DT)
    return np.interp(t, [0, 2, 10, 20, 22, 30, 36, 60], [0, 0, 15, 15, 8, 8, 0, 0])


# --- driver -----------------------------------------------------------------------------------------------------------
def test_the_driver_follows_and_comes_to_rest() -> None:
    log = drive(Driver2(), profile(50.0))
    assert np.abs(log["v"] - profile(50.0)).max() < 1.5
    assert abs(log["v"][1999] - 15.0) < 0.06, "no lasting error"
    assert log["v"][-1] == 0.0 and log["brake"][-1] == 0.5


def test_the_driver_never_touches_both_pedals_and_changes_slowly() -> None:
    rng = np.random.default_rng(1)
    wanted = np.repeat(rng.uniform(0.0, 30.0, 60), 100)
    driver = Driver2(kp=2.0, ki=1.0)
    log = drive(driver, wanted)
    accelerator, brake = log["accelerator"], log["brake"]
    assert accelerator.max() == 1.0 and brake.max() == 1.0
    assert np.all(accelerator * brake == 0.0)
    for pedal in (accelerator, brake):
        step = np.diff(pedal)
        assert step.max() <= driver.press * DT + 1e-12 and step.min() >= -driver.release * DT - 1e-12
    # between the two pedals the foot is off for t_change
    pressed = np.where(accelerator > 0.0, 1, np.where(brake > 0.0, -1, 0))
    changes, last, since = 0, 0, 0
    for side in pressed:
        if side == 0:
            since += 1
            continue
        if last == -side:
            changes += 1
            assert since * DT >= driver.t_change - 1e-9
        last, since = side, 0
    assert changes > 10


def test_the_integral_does_not_wind_up_while_the_car_cannot_follow() -> None:
    """60 s of a speed out of reach, then a slow one: the driver leaves the accelerator as soon as his foot can."""
    wanted = np.concatenate([np.full(6000, 60.0), np.full(1000, 10.0)])
    driver = Driver2()
    log = drive(driver, wanted, power=0.4)
    assert log["accelerator"][5999] == 1.0
    assert log["v"][5999] < 20.0
    # back-calculation holds x where the pedal just stays at its limit: ki*e = (kp*e + x - 1)/T_track
    error = 60.0 - log["v"][5999]
    assert log["integral"][5999] == pytest.approx(
        1.0 + driver.ki * driver.T_track * error - driver.kp * error, rel=0.05
    )
    released = 6000 + np.argmax(log["accelerator"][6000:] == 0.0)
    assert (released - 6000) * DT <= 1.0 / driver.release + 0.05
    braking = released + np.argmax(log["brake"][released:] > 0.0)
    assert (braking - released) * DT <= driver.t_change + 0.05


def test_time_must_not_go_back() -> None:
    driver = Driver2()
    driver.step(1.0, {"v_set": 0.0, "v": 0.0})
    with pytest.raises(RangeError, match="time goes back"):
        driver.step(0.5, {"v_set": 0.0, "v": 0.0})


@pytest.mark.parametrize(
    ("values", "key"), [({"kp": 0.0}, "kp"), ({"press": -1.0}, "press"), ({"brake_rest": 2.0}, "brake_rest")]
)
def test_impossible_drivers_are_refused(values: dict[str, float], key: str) -> None:
    with pytest.raises(RangeError) as caught:
        Driver2(**values)
    assert caught.value.key == key


# --- gearbox ----------------------------------------------------------------------------------------------------------
UP = (Table1D((0.0, 1.0), (5.0, 15.0)), Table1D((0.0, 1.0), (10.0, 30.0)))
DOWN = (Table1D((0.0, 1.0), (3.0, 9.0)), Table1D((0.0, 1.0), (7.0, 20.0)))


def gears(controller: GearboxController, v: np.ndarray, throttle: float) -> dict[str, np.ndarray]:
    log = [controller.step(k * DT, {"throttle": throttle, "v": float(x)}) for k, x in enumerate(v)]
    return {name: np.array([row[name] for row in log]) for name in controller.writes}


@pytest.mark.parametrize("throttle", [0.0, 0.5, 1.0])
def test_gears_change_on_the_lines_of_the_map_for_the_throttle(throttle: float) -> None:
    v = np.concatenate([np.linspace(0.0, 40.0, 6000), np.linspace(40.0, 0.0, 6000)])
    gear = gears(GearboxController(UP, DOWN, t_dwell=0.5), v, throttle)["gear"]
    changes = {(int(gear[k]), int(gear[k + 1])): v[k + 1] for k in np.flatnonzero(np.diff(gear))}
    expected = {(1, 2): UP[0], (2, 3): UP[1], (3, 2): DOWN[1], (2, 1): DOWN[0]}
    assert set(changes) == set(expected)
    for change, line in expected.items():
        assert changes[change] == pytest.approx(line(throttle), abs=0.02)


def test_a_speed_that_swings_between_the_lines_changes_no_gear() -> None:
    """At throttle 0.5 gear 2 is entered above 10 m/s and left below 6 m/s."""
    t = np.arange(0.0, 30.0, DT)
    start = np.linspace(0.0, 11.0, 500)
    v = np.concatenate([start, 8.5 + 2.4 * np.sin(2 * np.pi * t)])
    gear = gears(GearboxController(UP, DOWN), v, 0.5)["gear"]
    assert np.count_nonzero(np.diff(gear)) == 1 and gear[-1] == 2


def test_no_two_changes_within_the_dwell_time() -> None:
    rng = np.random.default_rng(2)
    v = np.repeat(rng.uniform(0.0, 40.0, 400), 20)
    controller = GearboxController(UP, DOWN, t_dwell=1.5)
    gear = gears(controller, v, 0.3)["gear"]
    at = np.flatnonzero(np.diff(gear)) * DT
    assert len(at) > 20
    assert np.diff(at).min() >= 1.5 - 1e-9
    assert np.abs(np.diff(gear)).max() == 1


def test_the_ratio_is_blended_and_the_lockup_waits_for_it() -> None:
    v = np.concatenate([np.linspace(0.0, 20.0, 3000), np.full(500, 20.0), np.linspace(20.0, 13.2, 1000)])
    controller = GearboxController(UP, DOWN, t_shift=0.4, lockup_gear=3, v_lockup=14.0, lockup_band=1.0)
    log = gears(controller, v, 0.0)
    assert np.abs(np.diff(log["gear_actual"])).max() == pytest.approx(DT / 0.4)
    assert np.all(log["gear_actual"][log["lockup"] == 1.0] == 3.0)
    on = np.flatnonzero(np.diff(log["lockup"]) > 0)
    off = np.flatnonzero(np.diff(log["lockup"]) < 0)
    assert len(on) == 1 and len(off) == 0, "13.2 m/s is above v_lockup - lockup_band"
    assert np.array_equal(log["p_lockup"], log["lockup"] * 8.0e5)


def test_a_map_without_hysteresis_is_refused() -> None:
    crossing = (Table1D((0.0, 1.0), (3.0, 16.0)), DOWN[1])
    with pytest.raises(RangeError, match="no hysteresis between gears 1 and 2 at throttle 1"):
        GearboxController(UP, crossing)


# --- fuel, idle, fan --------------------------------------------------------------------------------------------------
def test_overrun_cuts_the_fuel_with_hysteresis_and_after_a_while() -> None:
    controller = FuelFlowController(w_cut=160.0, w_resume=120.0, t_cut=0.3)
    w = np.concatenate([np.full(100, 250.0), np.linspace(250.0, 100.0, 1500), np.linspace(100.0, 150.0, 500)])
    accelerator = np.where(np.arange(len(w)) < 100, 0.5, 0.0)
    log = [
        controller.step(k * DT, {"accelerator": a, "idle": 0.1, "w": x})
        for k, (a, x) in enumerate(zip(accelerator, w, strict=True))
    ]
    fuel = np.array([row["fuel"] for row in log])
    demand = np.array([row["demand"] for row in log])
    cut, resumed = np.flatnonzero(np.diff(fuel) < 0) + 1, np.flatnonzero(np.diff(fuel) > 0) + 1
    assert len(cut) == len(resumed) == 1, "no second cut at 150 rad/s: below w_cut"
    assert (cut[0] - 100) * DT == pytest.approx(0.3, abs=0.02)
    assert w[resumed[0]] <= 120.0 < w[resumed[0] - 1]
    assert np.all(demand[fuel == 0.0] == 0.0)
    steps = np.diff(demand)
    assert steps.max() <= controller.rise * DT + 1e-12, "fuel comes back with the rate limit"
    assert demand[-1] == pytest.approx(0.1)


def test_fuel_comes_back_when_the_accelerator_is_pressed() -> None:
    controller = FuelFlowController()
    rows = [
        controller.step(k * DT, {"accelerator": 0.0 if k < 100 else 1.0, "idle": 0.0, "w": 300.0}) for k in range(200)
    ]
    assert rows[99]["fuel"] == 0.0 and rows[100]["fuel"] == 1.0
    assert rows[100]["demand"] == pytest.approx(controller.rise * DT)
    assert rows[199]["demand"] == 1.0


def idle_run(controller: IdleController, load: np.ndarray, temperature: float = 363.15, w: float = 90.0) -> np.ndarray:
    """Crankshaft: 0.15*dw/dt = 150*demand - load."""
    speeds = []
    for k, torque in enumerate(load):
        demand = controller.step(k * DT, {"w": w, "accelerator": 0.0, "T_coolant": temperature})["demand"]
        w += DT * (150.0 * demand - torque) / 0.15
        speeds.append(w)
    return np.array(speeds)


def test_idle_speed_is_held_under_load_and_higher_when_cold() -> None:
    load = np.where(np.arange(4000) < 2000, 15.0, 30.0)
    warm = idle_run(IdleController(), load)
    assert warm[-1] == pytest.approx(83.8, rel=1e-3)
    assert warm[2000:].min() > 60.0, "no stall when the load doubles"
    assert idle_run(IdleController(), load, temperature=263.15)[-1] == pytest.approx(125.7, rel=1e-3)


def test_the_idle_integral_does_not_wind_up_in_overrun_or_at_its_limit() -> None:
    controller = IdleController()
    for k in range(3000):
        controller.step(k * DT, {"w": 300.0, "accelerator": 0.0, "T_coolant": 363.15})
    assert controller.integral == 0.0
    for k in range(3000, 6000):
        command = controller.step(k * DT, {"w": 0.0, "accelerator": 0.0, "T_coolant": 363.15})
    assert command["demand"] == controller.limit
    assert controller.integral <= controller.limit
    before = controller.integral
    for k in range(6000, 7000):
        controller.step(k * DT, {"w": 70.0, "accelerator": 0.4, "T_coolant": 363.15})
    assert controller.integral == before, "the driver has the engine"


def test_the_fan_has_hysteresis_and_air_grows_with_speed() -> None:
    fan = CoolingFan()
    states = [
        fan.step(0.0, {"v": 0.0, "T_coolant": T})["fan"] for T in (360.0, 370.0, 373.0, 370.0, 368.0, 366.0, 370.0)
    ]
    assert states == [0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    air = [fan.step(0.0, {"v": v, "T_coolant": 350.0})["air"] for v in (0.0, 10.0, 20.0, 100.0)]
    assert air[0] == pytest.approx(0.05) and air[2] == pytest.approx(1.05) and air[3] == 2.0
    assert air == sorted(air)


# --- loop -------------------------------------------------------------------------------------------------------------
class Proportional:
    """torque = gain*(wanted - w), for the tests of the loop."""

    reads = ("wanted", "w")
    writes = ("torque", "error")

    def __init__(self, gain: float) -> None:
        self.gain = gain
        self.seen: list[tuple[float, float]] = []

    def step(self, t: float, measured: dict[str, float]) -> dict[str, float]:
        self.seen.append((t, measured["w"]))
        error = measured["wanted"] - measured["w"]
        return {"torque": self.gain * error, "error": error}


def shaft() -> Driveline:
    d = Driveline("shaft")
    d.add("body", Inertia(J=2.0))
    d.add("drive", Torque())
    d.add("drag", LinearSpeedDependentTorque(tau_nominal=-0.0001, w_nominal=1.0))
    d.connect("drive.flange", "drag.flange", "body.flange_a")
    return d


READS: dict[str, object] = {"wanted": 10.0, "w": "body.w"}


def test_a_sampled_loop_gives_the_sequence_of_its_difference_equation() -> None:
    """J*dw/dt = K*(10 - w_k) during each period: w_{k+1} = w_k + K*period/J*(10 - w_k), up to the tiny drag."""
    controller = Proportional(4.0)
    sim = Simulation(shaft(), h=1e-3)
    run = run_controlled(sim, [Wired("c", controller, READS, {"torque": "drive.tau"})], T=1.0, period=0.05)
    w = 0.0
    for k, (t, seen) in enumerate(controller.seen):
        assert t == pytest.approx(0.05 * k, abs=1e-12)
        assert seen == pytest.approx(w, abs=1e-2)
        w += 4.0 * 0.05 / 2.0 * (10.0 - w)
    assert len(controller.seen) == 20
    assert len(run.result) == 1001 and run.result.time[-1] == pytest.approx(1.0)
    np.testing.assert_allclose(np.diff(run.result.time), 1e-3, rtol=1e-9)
    torque = run.result["drive.tau"][1:].reshape(20, 50)
    np.testing.assert_allclose(torque, np.repeat(run.commands["c.torque"][:, None], 50, axis=1), rtol=1e-12)


def test_commands_can_be_joined_by_lines_one_period_late() -> None:
    wanted = Table([[0, 0], [1, 10]])
    wired = Wired("c", Proportional(1.0), {"wanted": wanted, "w": 0.0}, {"torque": "drive.tau"}, frozenset({"torque"}))
    run = run_controlled(Simulation(shaft(), h=1e-3), [wired], T=1.0, period=0.1)
    np.testing.assert_allclose(np.diff(run.result["drive.tau"][101:]), 1e-2, rtol=1e-6)
    assert run.result["drive.tau"][-1] == pytest.approx(run.commands["c.torque"][-1])


def test_controllers_see_signals_and_the_commands_of_those_before_them() -> None:
    first, second = Proportional(1.0), Proportional(1.0)
    chain = [
        Wired("first", first, {"wanted": Step(height=5.0, startTime=0.5), "w": 0.0}),
        Wired("second", second, {"wanted": 0.0, "w": "first.error"}, {"torque": "drive.tau"}),
    ]
    run = run_controlled(Simulation(shaft(), h=1e-3), chain, T=1.0, period=0.1)
    assert [value for _, value in second.seen] == [0.0] * 5 + [5.0] * 5
    assert run.commands["second.torque"].tolist() == [0.0] * 5 + [-5.0] * 5
    assert run.time.tolist() == pytest.approx([0.1 * k for k in range(10)])


@pytest.mark.parametrize(
    ("wired", "text"),
    [
        (Wired("c", Proportional(1.0), {"wanted": 1.0, "w": "body.v"}), "body.v"),
        (Wired("c", Proportional(1.0), {"wanted": 1.0}), "nothing is wired to 'w'"),
        (Wired("c", Proportional(1.0), {**READS, "x": 1.0}), "'x'"),  # type: ignore[dict-item]
        (Wired("c", Proportional(1.0), READS, {"torque": "drive.tow"}), "drive.tow"),  # type: ignore[arg-type]
        (Wired("c", Proportional(1.0), READS, {"tork": "drive.tau"}), "tork"),  # type: ignore[arg-type]
    ],
)
def test_wrong_wiring_is_refused_before_the_run(wired: Wired, text: str) -> None:
    with pytest.raises(UnknownNameError, match=text):
        run_controlled(Simulation(shaft(), h=1e-3), [wired], T=1.0, period=0.1)


@pytest.mark.parametrize(("T", "period", "key"), [(1.0, 0.0015, "period"), (1.05, 0.1, "T"), (0.0, 0.1, "T")])
def test_periods_are_whole_numbers_of_ticks(T: float, period: float, key: str) -> None:
    with pytest.raises(RangeError) as caught:
        run_controlled(Simulation(shaft(), h=1e-3), [], T=T, period=period)
    assert caught.value.key == key
