"""Gear selection of the soft TCU: shift lines, hysteresis, kick-down, lever, reverse inhibit, over-speed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.common.config_file import validate
from torqueloop.hil.ecu.gears import gear_number
from torqueloop.hil.ecu.shift import RPM, Measured
from torqueloop.hil.ecu.strategy import GearSelector, Transmission
from torqueloop.hil.ecu.tcu_tables import TcuConfig, interpolate, load_tcu_config

CONFIG = load_tcu_config(Path(__file__).resolve().parents[2] / "configs/tcu/soft_4hp22.toml")
KMH = CONFIG.garage.output_rpm_per_kmh


def measured(pedal: float = 0.3, rpm: float = 0.0, lever: str = "D") -> Measured:
    return Measured(w_engine=150.0, w_turbine=140.0, w_out=rpm * RPM, pedal=pedal, lever=lever)


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


@pytest.mark.parametrize("lever", ["D", "R"])
def test_no_gear_is_engaged_while_the_engine_is_much_too_fast_for_it(lever: str) -> None:
    """2000 rpm above the turbine in that gear, 1st of the 4HP22 at 2.47857, R at -2.08571: at 5 km/h those are 349 rpm
    more and 294 rpm less."""
    gear, ratio = ("1", 2.47857) if lever == "D" else ("R", -2.08571)
    for kmh in (0.0, 5.0):
        limit = 2000.0 + ratio * kmh * KMH
        for rpm, wanted in ((limit - 5.0, gear), (limit + 5.0, "N")):
            now = replace(measured(1.0, kmh * KMH, lever), w_engine=rpm * RPM)
            assert GearSelector(CONFIG).select("N", now) == wanted, (kmh, rpm)
    assert GearSelector(CONFIG).select("2", replace(measured(1.0, 500.0), w_engine=700.0)) != "N", "it is in gear"


def test_no_upshift_begins_while_the_driver_brakes() -> None:
    """More than 5 %, at 1800 rpm in 3rd, beyond the line to 4th; the turbine's own limit counts all the same."""
    braked = replace(measured(0.0, 1800.0), brake=0.051)
    assert GearSelector(CONFIG).select("3", replace(braked, brake=0.049)) == "4"
    assert GearSelector(CONFIG).select("3", braked) == "3"
    assert (
        GearSelector(CONFIG).select(
            "1", replace(braked, w_out=1.02 * CONFIG.schedule.turbine_force_up_rpm / 2.47857 * RPM)
        )
        == "2"
    )


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


SEVEN = load_tcu_config(Path(__file__).resolve().parents[2] / "configs/tcu/soft_mb_7226.toml")


def tipped(gear: str, turbine_rpm: float, tips: list[int], config: TcuConfig = SEVEN) -> list[str]:
    """Gears in the manual gate, a period for each position of its switch; shifts take no time. The output speed is that
    of the gear at the beginning."""
    selector, found = GearSelector(config), []
    rpm = turbine_rpm / config.gears[gear].ratio
    for tip in tips:
        gear = selector.select(gear, replace(measured(0.0, rpm, "M"), tip=tip))
        found.append(gear)
    return found


@pytest.mark.parametrize(("gear", "turbine_rpm", "tips", "gears"), [
    # each closing of the switch is one gear, and no more while it is held; with engine braking where there is one
    ("3", 3000.0, [0, 1, 1, 1, 0, 1, 0], ["3", "4", "4", "4", "4", "5", "5"]),
    ("5", 3500.0, [0, -1, 0, -1, 0], ["5", "4", "4", "3", "3"]),
    ("3", 2500.0, [0, -1, 0, 0], ["3", "2", "2E", "2E"]),
    # there is no gear above the highest one and none below 1st: a closing there is not kept for later
    ("5", 3000.0, [0, 1, 0, 1, 0, -1], ["5", "5", "5", "5", "5", "4"]),
    ("1E", 2000.0, [0, -1, 0, -1, 0, 1], ["1E", "1E", "1E", "1E", "1E", "2"]),
    # a gear that would turn the turbine too fast is not taken: 2nd has 2.18619 / 1.40541 of the speed of 3rd
    ("3", 5917.0 / 1.5556 - 5.0, [0, -1], ["3", "2"]),
    ("3", 5917.0 / 1.5556 + 5.0, [0, -1], ["3", "3"]),
])  # fmt: skip
def test_the_manual_gate_takes_a_gear_for_each_closing(
    gear: str, turbine_rpm: float, tips: list[int], gears: list[str]
) -> None:
    assert tipped(gear, turbine_rpm, tips) == gears


@pytest.mark.parametrize("gear", ["5", "4", "3", "2E"])
def test_the_manual_gate_goes_down_by_one_below_seven_tenths_of_the_down_line(gear: str) -> None:
    """5-4: the line without pedal is at 1208 rpm, so the gear is left below 845.6 rpm and not above; the gear below is
    what the gate wants from then on."""
    number = gear_number(gear)
    edge = 0.7 * {5: 1208.0, 4: 859.0, 3: 552.0, 2: 337.0}[number] * SEVEN.gears[gear].ratio
    assert tipped(gear, edge + 5.0, [0] * 4) == [gear] * 4
    below, *rest = tipped(gear, edge - 5.0, [0] * 3)
    assert below == str(number - 1) and set(rest) <= {below, f"{below}E"}


@pytest.mark.parametrize(("pedal", "kmh", "gear"), [
    (0.0, 12.0, "1"), (0.0, 20.0, "2"), (0.0, 31.0, "3"), (0.0, 60.0, "4"), (0.3, 20.0, "1"), (0.3, 31.0, "2"),
    (0.7, 31.0, "1"),
])  # fmt: skip
def test_a_gear_is_engaged_that_fits_speed_and_pedal(pedal: float, kmh: float, gear: str) -> None:
    """Up lines of the 722.6 at 0 %: 510, 837, 1302, 1830 rpm, at 30 %: 582, 956, 1487 rpm, at 70 %: 1074 rpm; 29.04 rpm
    are 1 km/h."""
    assert GearSelector(SEVEN).select("N", measured(pedal, 29.04 * kmh)) == gear


@pytest.mark.parametrize("name", ["soft_4hp22", "soft_6hp26", "soft_mb_7226", "soft_zf_8hp45"])
def test_below_several_down_lines_several_gears_are_left_at_once_where_there_is_such_a_shift(name: str) -> None:
    """The 6HP26 has a shift from each gear to each lower one, the 4HP22 those of neighbours only."""
    config = load_tcu_config(Path(__file__).resolve().parents[2] / f"configs/tcu/{name}.toml")
    top = max(gear_number(g) for g in config.gears)
    for gear in range(2, top + 1):
        for line in range(2, gear + 1):
            # below the lines of this gear and of all above it
            rpm = config.schedule.down[f"{line}-{line - 1}"][0][1] - 2.0
            wanted = gear - 1
            while wanted >= line and f"{gear}-{wanted - 1}" in config.shifts:
                wanted -= 1
            assert GearSelector(config).select(str(gear), measured(0.0, rpm)) == str(wanted), (gear, line)


def test_a_lever_several_gears_down_goes_by_one_where_there_is_no_shift_of_several() -> None:
    assert Walk("4").steps(3, measured(0.0, 700.0, "2")) == [("4", "3"), ("3", "2")]
    assert Walk("4").steps(3, measured(0.0, 400.0, "1")) == [("4", "3"), ("3", "2"), ("2", "1E")]


def test_at_a_speed_that_is_too_high_for_every_gear_the_highest_one_is_engaged() -> None:
    for config in (CONFIG, SEVEN):
        top = str(max(gear_number(g) for g in config.gears))
        rpm = 1.1 * config.schedule.turbine_max_rpm / config.gears[top].ratio
        for lever in ("D", "2"):
            wanted = top if f"N-{top}" in config.shifts else "1"
            assert GearSelector(config).select("N", measured(0.0, rpm, lever)) == wanted


@pytest.mark.parametrize("lever", ["N", "R", "P"])
def test_a_lever_that_leaves_the_direction_of_a_shift_opens_the_torque_path_at_once(lever: str) -> None:
    """While 1st of the 722.6 is engaged: B2 gets no pressure from the next period on."""
    unit, now = Transmission(SEVEN), measured(0.0, 0.0, "D")
    for _ in range(40):
        commands = unit.step(now)
    assert commands.shifting and commands.pressures["B2"] > 0.0
    commands = unit.step(replace(now, lever=lever))
    assert (commands.gear_actual, commands.shifting, set(commands.pressures.values())) == ("N", False, {0.0})
