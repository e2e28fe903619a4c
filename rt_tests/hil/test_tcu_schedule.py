"""Gear selection of the soft TCU: shift lines, hysteresis, kick-down, lever, reverse inhibit, over-speed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.common.config_file import validate
from torqueloop.hil.ecu.gears import gear_number
from torqueloop.hil.ecu.shift import RPM, Measured
from torqueloop.hil.ecu.strategy import GearSelector
from torqueloop.hil.ecu.tcu_tables import TcuConfig, interpolate, load_tcu_config

CONFIG = load_tcu_config(Path(__file__).resolve().parents[2] / "configs/tcu/soft_4hp22.toml")
KMH = CONFIG.garage.output_rpm_per_kmh


def measured(pedal: float = 0.3, rpm: float = 0.0, lever: str = "D") -> Measured:
    return Measured(w_engine=300.0, w_turbine=280.0, w_out=rpm * RPM, pedal=pedal, lever=lever)


class Walk:
    """A selector with shifts that take no time."""

    def __init__(self, gear: str = "1") -> None:
        self.selector, self.gear = GearSelector(CONFIG), gear
        self.changes: list[tuple[str, str]] = []

    def steps(self, n: int, now: Measured) -> list[tuple[str, str]]:
        begun = len(self.changes)
        for _ in range(n):
            wanted = self.selector.select(self.gear, now)
            if wanted != self.gear:
                self.changes.append((self.gear, wanted))
                self.gear = wanted
                self.selector.entered()
        return self.changes[begun:]


@pytest.mark.parametrize("pedal", [0.0, 0.2, 0.35, 0.5, 0.8, 0.89])
@pytest.mark.parametrize(("low", "high"), [("1", "2"), ("2", "3"), ("3", "4")])
def test_shifts_up_above_the_up_line_and_down_below_the_down_line_only(pedal: float, low: str, high: str) -> None:
    up = interpolate(CONFIG.schedule.up[f"{low}-{high}"], 100 * pedal)
    down = interpolate(CONFIG.schedule.down[f"{high}-{low}"], 100 * pedal)
    walk = Walk(low)
    assert walk.steps(5, measured(pedal, up - 1.0)) == []
    assert walk.steps(1, measured(pedal, up + 1.0)) == [(low, high)]
    # anywhere between the lines the gear stays
    assert walk.steps(500, measured(pedal, down + 1.0)) == []
    assert walk.steps(1, measured(pedal, down - 1.0)) == [(high, low)]


segments = st.lists(
    st.tuples(
        st.floats(0.0, 1.0),
        st.floats(0.0, 6500.0),
        st.sampled_from(["D", "D", "D", "3", "2", "1"]),
        st.integers(1, 300),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(segments)
def test_no_oscillation_while_pedal_speed_and_lever_stand_still(path: list[tuple[float, float, str, int]]) -> None:
    walk = Walk()
    for pedal, rpm, lever, _ in path:
        changes = walk.steps(650, measured(pedal, rpm, lever))
        directions = {gear_number(b) > gear_number(a) for a, b in changes if gear_number(a) != gear_number(b)}
        assert len(directions) <= 1, changes


@settings(max_examples=60, deadline=None)
@given(segments)
def test_gears_change_by_one_and_never_overspeed_the_turbine(path: list[tuple[float, float, str, int]]) -> None:
    walk = Walk()
    for pedal, rpm, lever, n in path:
        for a, b in walk.steps(n, measured(pedal, rpm, lever)):
            assert abs(gear_number(a) - gear_number(b)) <= 1
            if gear_number(b) < gear_number(a):
                assert rpm * CONFIG.gears[b].ratio <= CONFIG.schedule.turbine_max_rpm


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-1.0, 1.0), st.floats(-60.0, 60.0)), min_size=20, max_size=60), st.floats(0.0, 0.89)
)
def test_noise_smaller_than_the_hysteresis_never_shifts_up_and_down(
    noise: list[tuple[float, float]], pedal: float
) -> None:
    """At a fixed pedal, speed noise of +-49 rpm (hysteresis at least 100 rpm) gives changes in one direction only."""
    walk = Walk("2")
    rpm = interpolate(CONFIG.schedule.up["2-3"], 100 * pedal)
    changes = []
    for _, dn in noise:
        changes += walk.steps(250, measured(pedal, rpm + dn * 49.0 / 60.0))
    assert all(gear_number(b) > gear_number(a) for a, b in changes)


def test_minimum_gear_time_is_kept() -> None:
    walk = Walk("1")
    fast = measured(0.2, 3000.0)
    per_gear = round(CONFIG.schedule.min_gear_time_s / CONFIG.timing.period_s)
    assert walk.steps(1, fast) == [("1", "2")]
    assert walk.steps(per_gear - 1, fast) == []
    assert walk.steps(1, fast) == [("2", "3")]


def test_kick_down_shifts_down_where_full_pedal_without_it_would_not() -> None:
    kick = CONFIG.schedule.kick_down["4-3"]
    rpm = kick - 20.0
    assert rpm > interpolate(CONFIG.schedule.down["4-3"], 94.0)
    walk = Walk("4")
    assert walk.steps(400, measured(0.94, rpm)) == []
    assert walk.steps(1, measured(0.96, rpm)) == [("4", "3")]
    # released to between off and on it is still kick-down: no shift back
    assert walk.steps(400, measured(0.92, rpm)) == []


def test_reverse_is_inhibited_above_8_kmh_in_either_direction() -> None:
    for kmh, wanted in ((8.5, "N"), (-8.5, "N"), (7.5, "R"), (0.0, "R"), (-7.5, "R")):
        selector = GearSelector(CONFIG)
        assert selector.select("N", measured(0.0, kmh * KMH, "R")) == wanted
        assert selector.reverse_inhibited == (wanted == "N")


def test_drive_to_reverse_goes_through_neutral() -> None:
    walk = Walk("1")
    assert walk.steps(3, measured(0.0, 0.0, "R")) == [("1", "N"), ("N", "R")]
    assert walk.steps(3, measured(0.0, 0.0, "D")) == [("R", "N"), ("N", "1")]


def test_forward_is_not_engaged_while_rolling_backwards_fast() -> None:
    assert GearSelector(CONFIG).select("N", measured(0.0, -9.0 * KMH, "D")) == "N"


def test_lever_limits_the_gear_and_1_brakes_with_the_engine() -> None:
    walk = Walk("4")
    assert walk.steps(1, measured(0.0, 1000.0, "3")) == [("4", "3")]
    assert walk.steps(1, measured(0.0, 1000.0, "2")) == [("3", "2")]
    assert walk.steps(1, measured(0.0, 1000.0, "1")) == [("2", "1E")]
    assert walk.steps(400, measured(0.3, 2000.0, "1")) == []
    assert walk.steps(1, measured(0.3, 100.0, "D")) == [("1E", "1")]


def test_lever_does_not_shift_into_an_overspeed_and_overspeed_forces_up() -> None:
    limit = CONFIG.schedule.turbine_max_rpm / CONFIG.gears["2"].ratio
    walk = Walk("3")
    assert walk.steps(300, measured(0.0, limit + 5.0, "2")) == []
    assert walk.steps(1, measured(0.0, limit - 5.0, "2")) == [("3", "2")]
    force = CONFIG.schedule.turbine_force_up_rpm / CONFIG.gears["2"].ratio
    assert walk.steps(1, measured(1.0, force + 5.0, "2")) == [("2", "3")]


def test_a_gear_engaged_at_speed_does_not_overspeed_the_turbine_whatever_the_lever_forbids() -> None:
    """N at speed and then 2: 2nd as far as it can be, above it the lowest gear that the turbine stands."""
    config = load_tcu_config(Path(__file__).resolve().parents[2] / "configs/tcu/soft_zf_8hp70.toml")
    selector, most = GearSelector(config), config.schedule.turbine_max_rpm

    def engaged(turbine_rpm_in_2nd: float) -> str:
        rpm = turbine_rpm_in_2nd / config.gears["2"].ratio
        return selector.select("N", measured(0.0, rpm, lever="2"))

    assert engaged(0.99 * most) == "2"
    # 3rd has 0.672 of the ratio of 2nd, 4th 0.532
    assert engaged(1.01 * most) == "3" and engaged(1.6 * most) == "4"


def test_a_lever_two_gears_down_goes_by_one_where_two_would_overspeed() -> None:
    """4-2 is a shift of its own there; where 2nd is too fast for the turbine, 3rd is not."""
    config = load_tcu_config(Path(__file__).resolve().parents[2] / "configs/tcu/soft_6hp26.toml")
    assert "4-2" in config.shifts and GearSelector(config).levers["2"] == 2
    limit = config.schedule.turbine_max_rpm / config.gears["2"].ratio
    assert GearSelector(config).select("4", measured(0.0, limit - 5.0, "2")) == "2"
    assert GearSelector(config).select("4", measured(0.0, limit + 5.0, "2")) == "3"


def test_a_shift_schedule_without_hysteresis_is_refused() -> None:
    data = CONFIG.model_dump()
    data["schedule"]["down"]["3-2"] = [(0.0, 550.0), (49.0, 550.0), (50.0, 1600.0), (51.0, 1200.0), (100.0, 1900.0)]
    with pytest.raises(ConfigError, match=r"down line 3-2 at 50 % pedal is at 1600.* rpm .*schedule.*<= 1550"):
        validate(data, TcuConfig, "x.toml")


@pytest.mark.parametrize("lever", ["D", "3", "2", "1"])
@pytest.mark.parametrize("pedal", [0.0, 0.5, 1.0])
def test_a_turbine_that_is_too_fast_shifts_up_as_far_as_there_are_gears(lever: str, pedal: float) -> None:
    """Whatever the lever says; the highest gear stays."""
    top = max(gear_number(g) for g in CONFIG.gears)
    for gear in (g for g in CONFIG.gears if gear_number(g)):
        rpm = 1.05 * CONFIG.schedule.turbine_force_up_rpm / CONFIG.gears[gear].ratio
        number = gear_number(gear)
        found = Walk(gear).selector.select(gear, measured(pedal, rpm, lever))
        assert found == (str(number + 1) if number < top else gear), gear


def test_a_shift_line_is_linear_between_its_points_and_constant_outside() -> None:
    curve = [(0.0, 700.0), (20.0, 900.0), (60.0, 850.0), (100.0, 2400.0)]
    x = np.linspace(-30.0, 130.0, 161)
    found = [interpolate(curve, pedal) for pedal in x.tolist()]
    np.testing.assert_allclose(found, np.interp(x, *np.transpose(curve)), rtol=1e-14)
