"""The soft TCU on gearboxes other than the 4HP22: profiles, shifts by several gears, manual gate, learning, lever."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.reading import read_toml
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.common.config_file import validate
from torqueloop.hil.ecu.adaptation import Learnt, Observed, learn
from torqueloop.hil.ecu.control_unit import EcuInputs
from torqueloop.hil.ecu.gears import required_shifts
from torqueloop.hil.ecu.shift import RPM, Measured, ShiftRunner
from torqueloop.hil.ecu.soft_tcu import load_tcu_database, sent_messages, soft_tcu
from torqueloop.hil.ecu.strategy import LockUpControl, Transmission
from torqueloop.hil.ecu.tcu_tables import TcuConfig, load_tcu_config

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
EIGHT = load_tcu_config(CONFIGS / "tcu/soft_zf_8hp45.toml")


def eight() -> dict[str, Any]:
    return {**read_toml(CONFIGS / "tcu/soft_zf_8hp45.toml"), "folder": str(CONFIGS / "tcu")}


def at(gear: str, kmh: float, pedal: float = 0.3, lever: str = "D", tip: int = 0) -> Measured:
    w_out = kmh * EIGHT.garage.output_rpm_per_kmh * RPM
    w_turbine = w_out * EIGHT.gears[gear].ratio
    return Measured(max(80.0, 1.05 * w_turbine), w_turbine, w_out, pedal, lever=lever, tip=tip)


def in_gear(config: TcuConfig, gear: str) -> Transmission:
    unit = Transmission(config)
    unit.gear = gear
    unit.selector.entered()
    return unit


def drive(unit: Transmission, now: Callable[[], Measured], seconds: float) -> None:
    for _ in range(round(seconds / EIGHT.timing.period_s)):
        unit.step(now())


def test_required_shifts_follow_from_the_gears() -> None:
    shifts = required_shifts(EIGHT.gears)
    assert {"1-2", "7-8", "8-7", "2-1", "N-1", "N-R", "1-N", "R-N"} == {
        s for s in shifts if s in ("1-2", "7-8", "8-7", "2-1") or "N" in s
    }
    assert len(shifts) == 2 * 7 + 4
    assert "1E-2" in required_shifts(load_tcu_config(CONFIGS / "tcu/soft_mb_7226.toml").gears)


def test_roles_of_a_profile_become_the_elements_that_change() -> None:
    phases = EIGHT.phases("3-4")  # C opens, D closes
    assert [set(p.elements) for p in phases] == [{"C", "D"}] * 4
    regulate = phases[2].elements["D"]
    assert regulate.law == "regulate"
    # gains of a profile are per Nm of turbine torque
    assert regulate.kp_Nm_per_radps == pytest.approx(1.0 * EIGHT.gears["4"].torque["D"])


def test_a_change_of_one_shift_leaves_the_others_alone() -> None:
    data = eight()
    data["shifts"]["3-4"] = {"profile": "up", "change": {"inertia": {"inertia_s": 0.7}}}
    config = validate(data, TcuConfig, "x.toml")
    assert [config.phases(n)[2].inertia_s for n in ("3-4", "4-5")] == [0.7, 0.4]


MISTAKES: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda d: d["shifts"].update({"3-4": {"profile": "upp"}}), "no profile 'upp'.*did you mean 'up'"),
    (lambda d: d["shifts"].update({"3-4": {"profile": "up", "via": "2"}}), "one of them"),
    (lambda d: d["shifts"].update({"6-2": {"via": "9"}}), "via = '9' needs the shift 6-9"),
    (lambda d: d["shifts"].update({"3-4": {"profile": "up", "change": {"inerta": {}}}}), "no phase 'inerta'"),
    (lambda d: d["shifts"].update({"3-4": {"profile": "up", "change": {"inertia": {"inertia_s": -1.0}}}}), "inertia_s"),
    (lambda d: d["gears"].update({"X": d["gears"]["1"]}), "'X' is no name of a gear"),
    (lambda d: d["gears"].pop("5"), r"missing table \[gears.5\]"),
    (lambda d: d["schedule"]["up"].pop("7-8"), "up: missing 7-8"),
    (lambda d: d["schedule"]["up"].update({"8-9": d["schedule"]["up"]["7-8"]}), "no pair of neighbouring gears"),
    (lambda d: d["lockup"].update(gears=["9"]), "'9' is no forward gear"),
    (lambda d: d["shifts"].pop("R-N"), "missing shift 'R-N'"),
]


@pytest.mark.parametrize(("spoil", "text"), MISTAKES)
def test_mistake_in_gears_or_profiles_is_named(spoil: Callable[[dict[str, Any]], Any], text: str) -> None:
    data = eight()
    spoil(data)
    with pytest.raises(ConfigError, match=text):
        validate(data, TcuConfig, "bad.toml")


def test_an_element_without_a_signal_on_the_bus_is_refused() -> None:
    database = load_tcu_database(CONFIGS / "can/tcu_6hp26.dbc")
    with pytest.raises(ConfigError, match="sends no pressure of K1.*p_K1"):
        sent_messages(database, ["A", "K1"])
    messages = sent_messages(database, ["A", "B", "C", "D", "E"])
    carried = [element for m in messages for _, element in m.pressures]
    assert sorted(carried) == ["A", "B", "C", "D", "E", "LU"] and messages[-1].name == "TCU_Status"


def test_frames_carry_the_pressures_of_the_gear() -> None:
    unit = soft_tcu(CONFIGS / "tcu/soft_zf_8hp45.toml", CONFIGS / "can/tcu_zf_8hp45.dbc")
    rig = CanDatabase.load(CONFIGS / "can/tcu_zf_8hp45.dbc", node="HIL").codec()
    unit.mode, unit.transmission.gear = "normal", "4"
    unit._last_good = {"HIL_Speeds": 0.0, "HIL_Driver": 0.0}
    unit.now = at("4", 30.0)

    values: dict[str, float] = {}
    for frame in unit.step(EcuInputs(0.0)).frames:
        status, found = rig.decode(frame.can_id, frame.data, 0.0, frame.flags)
        assert status == "ok"
        values |= found
    pressed = {name.removeprefix("p_") for name, p in values.items() if name.startswith("p_") and p > 2e5}
    assert pressed == set(EIGHT.gears["4"].elements) and values["gear_actual"] == 4.0


def test_kick_down_skips_gears_and_6_2_goes_through_4_without_locking_there() -> None:
    unit = in_gear(EIGHT, "6")
    now = at("6", 42.0, pedal=1.0)
    drive(unit, lambda: now, 1.0)
    assert unit.runner is not None and unit.runner.source == "6"
    assert int(unit.runner.target) <= 4
    phases = EIGHT.phases("6-2")
    assert [(p.from_gear, p.to_gear) for p in phases][0] == ("6", "4")
    assert [(p.from_gear, p.to_gear) for p in phases][-1] == ("4", "2")
    assert all(p.stage != "closing" for p in phases if p.to_gear == "4")


@pytest.mark.parametrize(("T_turbine", "name", "gears", "helps"), [
    (-90.0, "2-3.coast", ("2", "3"), 90.0),  # the engine's drag brings the turbine down
    (40.0, "2-3.coast", ("2", "3"), 0.0),
    (-90.0, "3-2.coast", ("3", "2"), 0.0),  # and holds it back on its way up
    (40.0, "3-2.coast", ("3", "2"), 40.0),
])  # fmt: skip
def test_the_oncoming_element_begins_with_what_the_turbine_does_not_do_itself(
    T_turbine: float, name: str, gears: tuple[str, str], helps: float
) -> None:
    old, new = (EIGHT.gears[g] for g in gears)
    on = next(e for e in new.elements if e not in old.elements)
    element, w_out, pressure = EIGHT.elements[on], 140.0, 0.0
    runner = ShiftRunner(EIGHT, name, *gears, {e: 4.0 if e in old.elements else 0.0 for e in EIGHT.elements})
    while runner.stage != "inertia":
        pressure = runner.step(Measured(400.0, old.ratio * w_out, w_out, lever="D"), T_turbine, 4.0)[on]
    phase = next(p for p in EIGHT.phases(name) if p.stage == "inertia")
    slows = EIGHT.torque_model.inertia_kgm2 * abs(new.ratio - old.ratio) * w_out / phase.inertia_s
    wanted = element.kiss_bar + new.torque[on] * (slows - helps) / element.torque_per_bar_Nm
    assert pressure == pytest.approx(wanted, abs=0.03), "the controller has added a few Nm"


def test_a_shift_through_a_gear_between_ends_in_its_target() -> None:
    runner = ShiftRunner(EIGHT, "6-2", "6", "2", {n: 8.0 if n in "CDE" else 0.0 for n in EIGHT.elements})
    w_out, ratio, pressures = 60.0, EIGHT.gears["6"].ratio, {}
    for _ in range(1000):
        now = Measured(400.0, ratio * w_out, w_out, 0.8, lever="D")
        pressures = runner.step(now, 200.0, 9.0)
        ratio = min(ratio + 0.01, EIGHT.gears["2"].ratio)  # the turbine rises as in a power-on shift down
        if runner.done:
            break
    assert runner.done and runner.timeouts == 0
    assert {n for n, p in pressures.items() if p > 0.0} == set(EIGHT.gears["2"].elements)


def test_the_lever_moved_in_a_shift_is_followed_by_the_next_shift_at_once() -> None:
    unit = in_gear(EIGHT, "5")
    state = {"lever": "D", "kmh": 200.0 / EIGHT.gears["5"].ratio / EIGHT.garage.output_rpm_per_kmh}
    up = EIGHT.schedule.up["5-6"][0][1] / EIGHT.garage.output_rpm_per_kmh

    def now() -> Measured:
        target = unit.runner.target if unit.runner else unit.gear
        return at(target, 1.05 * up, pedal=0.05, lever=state["lever"])

    drive(unit, now, 1.5)
    assert (unit.runner and unit.runner.target) == "6" or unit.gear == "6"
    state["lever"] = "3"
    drive(unit, now, 12.0)
    assert unit.gear == "3"
    names = [name.removesuffix(".coast") for _, name, _, _ in unit.shift_log]
    assert names[0] == "5-6" and names[1].startswith("6-") and names[-1].endswith("-3")


def test_a_wish_that_changes_while_filling_gives_the_shift_up() -> None:
    unit = in_gear(EIGHT, "5")
    up = EIGHT.schedule.up["5-6"][0][1] / EIGHT.garage.output_rpm_per_kmh
    drive(unit, lambda: at("5", 1.05 * up, pedal=0.05), 0.9)
    assert unit.runner is not None and unit.runner.stage == "filling"
    drive(unit, lambda: at("5", 1.05 * up, pedal=0.05, lever="5"), 0.02)
    assert unit.runner is None and unit.gear == "5"
    assert set(n for n, p in unit.commands.pressures.items() if p > 0.0) == set(EIGHT.gears["5"].elements)
    same = replace_config(cancel_in_filling=False)
    unit = in_gear(same, "5")
    drive(unit, lambda: at("5", 1.05 * up, pedal=0.05), 0.9)
    drive(unit, lambda: at("5", 1.05 * up, pedal=0.05, lever="5"), 0.02)
    assert unit.runner is not None


def test_a_pedal_pressed_while_a_coasting_shift_is_filled_makes_it_one_under_power() -> None:
    """Else the offgoing element lets go of an engine at full torque: with the 4L60E the turbine runs away by 190 rad/s
    (random drive 100 of seed 11)."""
    up = EIGHT.schedule.up["5-6"][0][1] / EIGHT.garage.output_rpm_per_kmh
    unit = in_gear(EIGHT, "5")
    driven = at("5", 1.05 * up, pedal=0.05)
    coasting = replace(driven, w_engine=0.97 * driven.w_turbine)
    drive(unit, lambda: coasting, 0.9)
    assert unit.runner is not None and unit.runner.name == "5-6.coast"
    pulling = replace(driven, w_engine=2.0 * driven.w_turbine)
    filled = dict(unit.commands.pressures)
    drive(unit, lambda: pulling, 0.03)
    assert unit.runner is not None and unit.runner.name == "5-6" and unit.runner.stage == "filling"
    on = next(e for e in EIGHT.gears["6"].elements if e not in EIGHT.gears["5"].elements)
    off = next(e for e in EIGHT.gears["5"].elements if e not in EIGHT.gears["6"].elements)
    # what is being filled goes on so, what lets go holds 1.35 times what it carries first
    assert unit.commands.pressures[on] in (EIGHT.elements[on].fill_bar, EIGHT.elements[on].kiss_bar) and filled[on]
    assert unit.commands.pressures[off] > EIGHT.elements[off].kiss_bar
    again = ShiftRunner.from_saved(EIGHT, unit.runner.save(), unit.learnt)
    assert again.save() == unit.runner.save() and again.phase == unit.runner.phase


def replace_config(**values: Any) -> TcuConfig:
    return validate({**eight(), **values}, TcuConfig, "x.toml")


def test_manual_gate_shifts_one_gear_for_each_closing_of_the_switch() -> None:
    unit = in_gear(EIGHT, "4")
    tip = 0

    def now() -> Measured:
        target = unit.runner.target if unit.runner else unit.gear
        return at(target, 45.0, pedal=0.2, lever="M", tip=tip)

    drive(unit, now, 2.0)
    assert unit.gear == "4"  # no shift without the switch, whatever the shift map says
    tip = 1
    drive(unit, now, 3.0)  # held closed: one gear
    assert unit.gear == "5"
    tip = 0
    drive(unit, now, 0.1)
    tip = -1
    drive(unit, now, 3.0)
    assert unit.gear == "4"


def test_manual_gate_refuses_a_gear_that_would_turn_the_turbine_too_fast() -> None:
    unit = in_gear(EIGHT, "4")
    fast = 0.9 * EIGHT.schedule.turbine_max_rpm / EIGHT.gears["4"].ratio / EIGHT.garage.output_rpm_per_kmh
    drive(unit, lambda: at("4", fast, lever="M"), 0.1)
    drive(unit, lambda: at("4", fast, lever="M", tip=-1), 2.0)
    assert unit.gear == "4" and unit.runner is None


def test_engaging_at_speed_takes_the_gear_that_fits() -> None:
    unit = Transmission(EIGHT)
    up = EIGHT.schedule.up["3-4"][0][1] / EIGHT.garage.output_rpm_per_kmh
    drive(unit, lambda: at("4", 1.1 * up, pedal=0.0), 0.1)
    assert unit.runner is not None and unit.runner.name == "N-4"


def test_limp_home_takes_the_gear_of_the_file() -> None:
    unit = Transmission(EIGHT)
    commands = unit.limp(EIGHT.limp_home.forward_gear)
    assert EIGHT.limp_home.forward_gear == "6"  # the one nearest to direct drive
    assert {n for n, p in commands.pressures.items() if p > 0.0} == {"C", "D", "E"}


@pytest.mark.parametrize(
    ("seen", "fill", "kiss"),
    [
        (Observed(flare=10.0, torque_s=0.2, inertia_s=0.4), 0.005, 0.0),
        (Observed(flare=0.0, torque_s=0.02, inertia_s=0.4), -0.005, 0.0),
        (Observed(flare=0.0, torque_s=0.2, inertia_s=0.8), 0.0, 0.02),
        (Observed(flare=0.0, torque_s=0.2, inertia_s=0.1), 0.0, -0.02),
        (Observed(flare=0.0, torque_s=0.2, inertia_s=0.4), 0.0, 0.0),
    ],
)
def test_learning_takes_one_step_in_the_right_direction(seen: Observed, fill: float, kiss: float) -> None:
    learnt = Learnt()
    learn(EIGHT, learnt, "3-4", "3", "4", seen)
    assert learnt.fill_s.get("D", 0.0) == pytest.approx(fill)
    assert learnt.kiss_bar.get("D", 0.0) == pytest.approx(kiss)


def test_learning_stops_at_its_limit_and_needs_its_table() -> None:
    learnt, flare = Learnt(), Observed(flare=10.0, torque_s=0.2, inertia_s=0.4)
    for _ in range(100):
        learn(EIGHT, learnt, "3-4", "3", "4", flare)
    assert EIGHT.adaptation is not None
    assert learnt.fill_s == {"D": pytest.approx(EIGHT.adaptation.fill_limit_s)}
    for name, source, target in (("4-3", "4", "3"), ("3-4.coast", "3", "4"), ("N-1", "N", "1")):
        other = Learnt()
        learn(EIGHT, other, name, source, target, flare)
        assert not other.fill_s
    off = replace_config(adaptation=None)
    learn(off, other, "3-4", "3", "4", flare)
    assert not other.fill_s


def test_what_was_learnt_changes_the_next_fill() -> None:
    late = Learnt(fill_s={"D": 0.05})
    lengths = []
    for learnt in (Learnt(), late):
        runner = ShiftRunner(EIGHT, "3-4", "3", "4", dict.fromkeys(EIGHT.elements, 0.0), learnt)
        steps = 0
        while runner.phase == "fill":
            runner.step(at("3", 30.0), 100.0, 8.0)
            steps += 1
        lengths.append(steps * EIGHT.timing.period_s)
    assert lengths[1] - lengths[0] == pytest.approx(0.05, abs=0.006)


def test_saved_and_loaded_in_mid_shift_it_goes_on_alike() -> None:
    unit, again = in_gear(EIGHT, "6"), in_gear(EIGHT, "6")
    unit.learnt.fill_s["B"] = 0.02
    drive(unit, lambda: at("6", 40.0, pedal=1.0), 0.7)
    assert unit.runner is not None
    again.load(unit.save())
    for k in range(200):
        now = replace(at("6", 40.0, pedal=1.0), w_turbine=150.0 + k)
        assert unit.step(now) == again.step(now)


def test_lock_up_holds_a_slip_where_the_file_asks_for_one() -> None:
    data = eight()
    data["lockup"]["slip_rpm"] = 50.0
    for config, state in ((EIGHT, "locked"), (validate(data, TcuConfig, "x.toml"), "slipping")):
        control, slip = LockUpControl(config), 200.0
        for _ in range(2000):
            now = replace(at("7", 90.0), w_engine=at("7", 90.0).w_turbine + slip * RPM)
            pressure = control.step("7", False, now)
            slip = max(0.0, slip + 0.005 * (400.0 - 250.0 * pressure))  # a clutch that slips less under pressure
        assert control.state == state
        assert slip == pytest.approx(0.0 if state == "locked" else 50.0, abs=15.0)
