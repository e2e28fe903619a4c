"""Steps, controllers, the engine's control and the vehicle of a rig file as the tick gets them, worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from rig_help import rig_file
from test_io_safe import CHANNELS, two_cards

from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.tick.io import IO_REASONS, REASON_BITS
from torqueloop.hil.rig.devices.controllers import Controllers
from torqueloop.hil.rig.devices.device import RigPlan
from torqueloop.hil.rig.devices.engine_control import EngineControl
from torqueloop.hil.rig.devices.io import IoCards
from torqueloop.hil.rig.devices.steps import Steps
from torqueloop.hil.rig.resolve.plan import load_plan

TABLES = """
[engine_control]
engine_csv = "bmw_m30b28"
limit = { signal = "TCU_Status.tau_limit", gain = 0.5, offset = -20.0 }
active = "TCU_Status.tau_limit_active"
air_s = 0.2
spark_least = 0.4

[controllers.fan]
kind = "cooling_fan"
period_s = 0.004
reads = { v = { signal = "car.v", gain = 0.25, offset = 1.5 }, T_coolant = 350.0 }

[controllers.idle]
kind = "idle"
reads = { w = "engine.w", accelerator = "driver.pedal", T_coolant = 350.0 }

[[steps]]
name = "start"
at_s = 1.0
for_s = 0.03
within_s = 7.0
hold_s = 0.4
over_s = 0.2
set = { pedal = 0.3, brake = { to = 0.0, over_s = 0.1 }, lever = "R" }

[[steps]]
name = "again"
when = "car.v > 36 km/h"
set = { pedal = 0.7 }
back_to = "start"
times = 3

[[steps]]
name = "end"
at_s = 1.4
set = { pedal = 0.0 }
"""
EDITS = ("vehicle.period_s = 0.005", "vehicle.age_limit_s = 0.06", "vehicle.hold_s = 0.3", "vehicle.ramp_s = 0.7")


def planned(folder: Path, *edits: str, tables: str = TABLES) -> RigPlan:
    """The desk rig with the tables; what steps move has no table of the driver."""
    keys = {edit.split(" ")[0] for edit in edits}
    moved = [f"without driver.{name}" for name in ("pedal", "brake", "lever")]
    usual = [edit for edit in EDITS if edit.split(" ")[0] not in keys]
    return load_plan(rig_file(folder, *usual, *moved, *edits, add=tables))


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> RigPlan:
    return planned(tmp_path_factory.mktemp("rig"))


def test_steps_have_their_times_in_ticks_and_move_their_own_signals(plan: RigPlan) -> None:
    steps = plan.device(Steps)
    assert [plan.table.names[slot] for slot in steps.moved] == ["driver.pedal", "driver.brake", "driver.lever"]
    first, again, end = steps.rows
    # condition, moves (signal, value, ticks), back to, times, for, at, within and for, hold
    assert first == ((), [(0, 0.3, 200), (1, 0.0, 100), (2, 1.0, 0)], -1, 1, 30, 1000, 7030, 400)
    assert again[0] == plan.table.condition("car.v > 10 m/s")
    assert again[1:] == ([(0, 0.7, 0)], 0, 3, 0, 0, 60_000, 0)
    assert end[1:] == ([(0, 0.0, 0)], -1, 1, 0, 1400, 60_000, 0)


#: edit of the steps, words of the refusal
REFUSED: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "a step that begins while the one before holds": ("at_s = 1.4", "at_s = 1.3", ("[steps 3]", "allowed: >= 1.4")),
    "two steps of one name": ('"again"', '"start"', ("[steps 2]", "two steps are called 'start'")),
    "a way back to a later step": ('back_to = "start"', 'back_to = "end"', ("[steps 2]", "allowed: start")),
    "a pedal beyond its range": ("pedal = 0.7", "pedal = 1.7", ("[steps 2]", "1.7", "0 .. 1")),
    "a period that is no multiple of the tick": (
        "period_s = 0.004", "period_s = 0.0045", ("[controllers.fan]", "a multiple of tick_s = 0.001 s")),
    "a period below the tick": ("period_s = 0.004", "period_s = 0.0004", ("0.0004", "tick_s = 0.001 s")),
    "a requested speed": ('"TCU_Status.tau_limit", gain = 0.5, offset = -20.0', '"engine.w"', ("limit", "rad/s", "Nm")),
    "a pedal that is none": ('engine_csv = "bmw_m30b28"', 'engine_csv = "bmw_m30b28"\npedal = "driver.padel"', (
        "[engine_control]", "driver.padel")),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_refused_at_its_table(tmp_path: Path, case: str) -> None:
    old, new, words = REFUSED[case]
    assert old in TABLES
    with pytest.raises(ConfigError) as caught:
        planned(tmp_path, tables=TABLES.replace(old, new))
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_controller_reads_scaled_signals_every_few_ticks(plan: RigPlan) -> None:
    slot, controllers = plan.table.slot, {one.name: one for one in plan.device(Controllers).planned}
    fan, idle = controllers["fan"], controllers["idle"]
    assert (fan.every, idle.every) == (4, 1)
    assert set(fan.reads) == {(slot("car.v"), 0.25, 1.5), (0, 0.0, 350.0)}
    assert set(idle.reads) == {(slot("engine.w"), 1.0, 0.0), (slot("driver.pedal"), 1.0, 0.0), (0, 0.0, 350.0)}


def test_the_engine_gets_requests_scaled_and_every_value_but_0_makes_them_valid(plan: RigPlan, tmp_path: Path) -> None:
    slot, engine = plan.table.slot, plan.device(EngineControl)
    assert engine.request == {
        "limit": (slot("TCU_Status.tau_limit"), 0.5, -20.0), "active": slot("TCU_Status.tau_limit_active"),
        "always": False, "active_value": -1.0, "slow": None,
    }  # fmt: skip
    paths = engine.paths
    assert (paths["pedal"], paths["speed"], paths["air_s"]) == (slot("driver.pedal"), slot("engine.w"), 0.2)
    assert (paths["spark_least"], paths["boost_from"], paths["boost_s"], paths["least"]) == (0.4, 1.0, 0.0, 0.0)
    own = TABLES.replace("air_s = 0.2", 'active_value = 3\nslow = "TCU_Status.tau_limit"')
    request = planned(tmp_path, tables=own).device(EngineControl).request
    assert (request["active_value"], request["slow"]) == (3.0, (slot("TCU_Status.tau_limit"), 1.0, 0.0))


def test_the_vehicle_is_asked_by_its_period_and_told_force_speed_and_brake(plan: RigPlan, tmp_path: Path) -> None:
    slot, vehicle = plan.table.slot, plan.vehicle
    assert vehicle is not None
    mass = plan.driveline.components["car"].m
    assert (vehicle.every, vehicle.age_limit_s, vehicle.hold_s, vehicle.ramp_s) == (5, 0.06, 0.3, 0.7)
    # m dv/dt = F_wheel + F + F_friction: the force at the wheels is what is left
    assert vehicle.momentum == ((slot("car.v"), 0, mass, 0.0),) and vehicle.mass_kg == mass
    assert vehicle.force == ((slot("road.F"), 0, -1.0, 0.0), (slot("road.F_friction"), 0, -1.0, 0.0))
    ends = (vehicle.force_slot, vehicle.impulse_slot, vehicle.speed_slot, vehicle.distance_slot, vehicle.brake_slot)
    names = ("link.F_wheel", "link.I_wheel", "car.v", "car.s", "driver.brake")
    assert ends == tuple(slot(name) for name in names)
    assert plan.table.names[vehicle.first_slot] == "vehicle.step"
    every_tick = planned(tmp_path, "vehicle.period_s = 0.0").vehicle
    assert every_tick is not None and every_tick.every == 1
    for edit, words in {
        "vehicle.period_s = 0.0055": "0.0055 is no whole number of ticks",
        "vehicle.age_limit_s = 0.004": "> period_s = 0.005",
        'vehicle.brake = "driver.break"': "driver.break",
    }.items():
        with pytest.raises(ConfigError) as caught:
            planned(tmp_path, edit)
        assert words in str(caught.value) and caught.value.key == edit.split(" ")[0].removeprefix("vehicle.")


def test_channels_of_io_devices_start_inside_their_ranges_and_are_held_to_them(tmp_path: Path) -> None:
    """An input is 0 before it is read, or the end of its range that is next to 0; an output has its safe value. A value
    that leaves the range by a billionth of it has only been rounded."""
    add = """
[io.three]
library = "card.c"
[io.three.inputs]
above = { unit = "V", low = 2.0, high = 5.0 }
below = { low = -5.0, high = -2.0 }
around = { low = -1.0, high = 1.0 }
[io.three.outputs]
slow = { signal = "engine.w", low = -100.0, high = 900.0, safe = 50.0, slew = 3.0, gain = 2.0 }
"""
    plan = load_plan(two_cards(tmp_path, add=add))
    table = plan.table
    guards = {guard.name: guard for guard in plan.guards}
    copies = {dst: (src, gain, offset) for src, dst, gain, offset in plan.out_copies}
    for key, (name, source, gain, offset, low, high, safe) in CHANNELS.items():
        slot = table.slot(f"io.{name}.{key}")
        assert copies[slot] == (table.slot(source), gain, offset)
        guard = guards[f"io.{name}.{key}"]
        assert (guard.slot, guard.lo, guard.hi, guard.slew, guard.safe) == (slot, low, high, 0.0, False)
        assert guard.tol == pytest.approx(1e-9 * (high - low), rel=1e-12)
        assert table.initial.get(slot, 0.0) == safe and table.units[slot] == "1"
    assert guards["io.three.slow"].slew == 3.0
    start = {key: table.initial.get(table.slot(f"io.three.{key}"), 0.0) for key in ("above", "below", "around", "slow")}
    assert start == {"above": 2.0, "below": -2.0, "around": 0.0, "slow": 50.0}
    assert [table.unit(f"io.three.{key}") for key in ("above", "around", "slow")] == ["V", "1", "rad/s"]
    cards = plan.device(IoCards)
    for number, card in enumerate(("one", "two", "three")):
        for reason in range(1, len(IO_REASONS)):
            assert cards.cause("io", number << REASON_BITS | reason) == f"{card}: {IO_REASONS[reason]}"
    assert cards.cause("limit", 1) == ""
