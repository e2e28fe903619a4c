"""The vehicle model against closed forms: coast-down, standstill, stopping point, lost messages."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torqueloop.hil.link.messages import StateMessage, StepMessage
from torqueloop.hil.vehicle.model import GRAVITY, VehicleModel
from torqueloop.hil.vehicle.process import serve
from torqueloop.hil.vehicle.vehicle_tables import Road, VehicleConfig, load_vehicle_config

CONFIG = load_vehicle_config(Path(__file__).resolve().parents[2] / "configs/vehicles/bmw_528i_e28.toml")
M = CONFIG.body.mass_kg
F0 = CONFIG.body.rolling * M * GRAVITY
F2 = 0.5 * CONFIG.body.air_density_kgpm3 * CONFIG.body.cdA_m2


def on_grade(percent: float, **road: float) -> VehicleConfig:
    return CONFIG.model_copy(update={"road": Road(grade_percent=[(0.0, percent)], **road)})


class Drive:
    """Feeds a model with a tractive force; the impulse is exact."""

    def __init__(self, config: VehicleConfig = CONFIG, speed: float = 0.0) -> None:
        self.model = VehicleModel(config)
        self.t, self.step_no, self.impulse = 0.0, 0, 0.0
        self.state = self.model.step(StepMessage(0, 0.0, 0.0, 0.0, speed, 0.0, 0.0))

    def go(
        self, seconds: float, force: float = 0.0, brake: float = 0.0, dt: float = 1e-3, lost: set[int] | None = None
    ) -> StateMessage:
        for _ in range(round(seconds / dt)):
            self.step_no += 1
            self.t = self.step_no * dt
            self.impulse += force * dt
            if not lost or self.step_no not in lost:
                self.state = self.model.step(StepMessage(self.step_no, self.t, force, self.impulse, 0.0, 0.0, brake))
        return self.state


def test_road_load_is_the_published_f0_and_f2() -> None:
    assert pytest.approx(176.6, abs=0.05) == F0
    assert pytest.approx(0.453, abs=5e-4) == F2
    state = Drive(speed=30.0).state
    assert state.F == pytest.approx(-F2 * 900.0)
    assert state.F_hold == pytest.approx(F0)


@pytest.mark.parametrize("dt", [1e-3, 5e-3, 0.05])
def test_coast_down_follows_the_closed_form(dt: float) -> None:
    # m v' = -f0 - f2 v^2  ->  v = sqrt(f0/f2) tan(atan(v0 sqrt(f2/f0)) - sqrt(f0 f2) t/m)
    v0, t = 40.0, 30.0
    v = math.sqrt(F0 / F2) * math.tan(math.atan(v0 * math.sqrt(F2 / F0)) - math.sqrt(F0 * F2) * t / M)
    # s = m/(2 f2) ln((f0 + f2 v0^2)/(f0 + f2 v^2))
    s = M / (2.0 * F2) * math.log((F0 + F2 * v0**2) / (F0 + F2 * v**2))
    drive = Drive(speed=v0)
    state = drive.go(t, dt=dt)
    assert state.speed == pytest.approx(v, abs=1e-8)
    assert drive.model.distance == pytest.approx(s, abs=1e-6)


@pytest.mark.parametrize("dt", [8e-4, 2e-2])
def test_a_car_that_rolls_back_on_a_slope_turns_in_mid_step(dt: float) -> None:
    v0, t = 0.1, 0.1
    slope = math.atan(0.2)
    drive_down, friction = GRAVITY * math.sin(slope), F0 / M * math.cos(slope)
    up, back = drive_down + friction, drive_down - friction
    t_stop = v0 / up
    assert 0.1 < t_stop / dt % 1.0 < 0.9, "the stop lies inside a step"
    drive = Drive(on_grade(20.0), speed=v0)
    state = drive.go(t, dt=dt)
    # the resistance of the air at 0.1 m/s is 3 parts in 10^6 of the slope's force
    assert state.speed == pytest.approx(-back * (t - t_stop), rel=1e-5)
    assert drive.model.distance == pytest.approx(0.5 * v0 * t_stop - 0.5 * back * (t - t_stop) ** 2, abs=1e-6)


def test_coast_down_ends_at_exactly_zero_at_the_closed_form_distance() -> None:
    v0 = 5.0
    drive = Drive(speed=v0)
    state = drive.go(60.0, dt=1e-2)
    assert state.speed == 0.0
    assert state.a == 0.0
    assert drive.model.distance == pytest.approx(M / (2.0 * F2) * math.log(1.0 + F2 * v0**2 / F0), abs=1e-6)


@pytest.mark.parametrize("percent", [-15.0, -1.3, 5.0, 30.0])
def test_brakes_hold_the_car_on_a_slope_exactly(percent: float) -> None:
    drive = Drive(on_grade(percent))
    state = drive.go(60.0, brake=0.4, dt=0.01)
    assert (state.speed, drive.model.distance, state.a) == (0.0, 0.0, 0.0)


def test_slope_below_the_rolling_resistance_does_not_move_the_car_and_above_it_does() -> None:
    limit = 100.0 * CONFIG.body.rolling  # tan(alpha) = c_r
    assert Drive(on_grade(0.99 * limit)).go(10.0, dt=0.01).speed == 0.0
    assert Drive(on_grade(1.01 * limit)).go(10.0, dt=0.01).speed < 0.0


def test_car_braked_uphill_stops_once_and_does_not_roll_back() -> None:
    drive = Drive(on_grade(8.0), speed=10.0)
    speeds = [drive.go(0.01, brake=0.2, dt=0.01).speed for _ in range(600)]
    assert speeds[-1] == 0.0
    assert all(a >= b >= 0.0 for a, b in zip(speeds, speeds[1:], strict=False))


def test_car_rolling_back_uphill_passes_zero_without_sticking() -> None:
    alpha = math.atan(0.08)
    drive = Drive(on_grade(8.0), speed=2.0)
    drive.go(6.0)
    # decelerates with g(sin + c_r cos), then rolls back with g(sin - c_r cos) (air left out: a tolerance of its size)
    up, back = (GRAVITY * (math.sin(alpha) + sign * CONFIG.body.rolling * math.cos(alpha)) for sign in (1, -1))
    assert drive.state.speed == pytest.approx(-back * (6.0 - 2.0 / up), abs=0.01)


def test_lost_messages_cost_no_impulse() -> None:
    """Of every ten messages nine are lost: the speed differs in the second order only."""
    lost = {k for k in range(1, 10_000) if k % 10}
    whole, gappy = Drive(), Drive()
    for force in (4000.0, 1500.0, -800.0):
        whole.go(2.0, force)
        gappy.go(2.0, force, lost=lost)
    assert gappy.state.speed == pytest.approx(whole.state.speed, abs=2e-5)
    assert gappy.model.distance == pytest.approx(whole.model.distance, abs=1e-3)


def test_head_wind_brakes_and_tail_wind_pushes() -> None:
    still, head, tail = (Drive(on_grade(0.0, head_wind_mps=w), speed=20.0).state.F for w in (0.0, 10.0, -30.0))
    assert head == pytest.approx(-F2 * 900.0)
    assert tail == pytest.approx(F2 * 100.0)
    assert head < still < tail


def test_grade_profile_is_linear_between_its_points_and_constant_outside() -> None:
    road = VehicleModel(CONFIG.model_copy(update={"road": Road(grade_percent=[(100.0, 0.0), (200.0, 10.0)])}))
    assert [round(100.0 * math.tan(road.angle(s)), 9) for s in (-5.0, 100.0, 150.0, 200.0, 1e6)] == [
        0.0,
        0.0,
        5.0,
        10.0,
        10.0,
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.floats(-20.0, 20.0),
    st.lists(st.tuples(st.floats(-6000.0, 6000.0), st.floats(0.0, 1.0), st.integers(1, 40)), max_size=6),
)
def test_energy_is_never_created(speed: float, parts: list[tuple[float, float, int]]) -> None:
    """Kinetic energy grows at most by the tractive work (level road, no wind)."""
    drive = Drive(speed=speed)
    for force, brake, n in parts:
        for _ in range(n):
            v0, s0 = drive.model.speed, drive.model.distance
            drive.go(0.01, force, brake, dt=0.01)
            work = force * (drive.model.distance - s0)
            assert 0.5 * M * (drive.model.speed**2 - v0**2) <= work + 1e-6 * (1.0 + abs(work))


def test_equal_messages_give_equal_states() -> None:
    a, b = Drive(speed=12.0), Drive(speed=12.0)
    assert a.go(5.0, 900.0) == b.go(5.0, 900.0)


def test_rig_that_begins_again_sets_the_state_anew() -> None:
    drive = Drive(speed=30.0)
    drive.go(2.0)
    state = drive.model.step(StepMessage(0, 0.0, 0.0, 0.0, 7.0, 5.0, 0.0))
    assert (state.speed, drive.model.distance, drive.model.restarts) == (7.0, 5.0, 1)


def test_a_model_of_a_package_that_leaves_no_stats_is_named_and_loses_nothing_else(tmp_path: Path) -> None:
    class Forgetful(VehicleModel):
        def stop(self) -> Any:
            return {"restarts": 1}

    over, said = Event(), list[str]()
    over.set()
    with ThreadPoolExecutor(1) as aside:  # in the main thread it would take the signals
        endpoint = f"ipc://{tmp_path}/vehicle"
        counts = aside.submit(serve, Forgetful(CONFIG), "vehicle (own)", endpoint, True, over, said.append).result()
    assert "vehicle (own) left a dict at its end; allowed: ParticipantStats" in said
    assert counts["exchanges"] == 0 and "restarts" not in counts
