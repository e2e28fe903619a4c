"""Files that `torqueloop new` writes for a database: limits and cycles of an adapter, what is bound to what, sizes."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torqueloop.core.components.files import load
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.new.car_facts import car_facts
from torqueloop.hil.new.dbc_rig import UnitKind, draft, rig_from_database
from torqueloop.hil.new.gearbox_file import gearbox_text, largest_torques
from torqueloop.hil.new.hydraulic_file import hydraulic_text, pistons, without_lag
from torqueloop.hil.new.rig_file import pedal_for
from torqueloop.hil.new.shift_plan import TcuGear
from torqueloop.hil.new.simulink_file import simulink_text
from torqueloop.hil.new.sketch import Sketch
from torqueloop.hil.new.tcu_file import _schedule, up_time_s

HEAD = 'VERSION ""\nBS_:\nBU_: TCU HIL\nBO_ 256 Car: 8 HIL\n SG_ speed : 0|16@1+ (0.25,0) [0|16000] "rpm" TCU\n'
CYCLE = 'BA_DEF_ BO_ "GenMsgCycleTime" INT 0 65535;\nBA_DEF_DEF_ "GenMsgCycleTime" 0;\n'


def database(folder: Path, more: str, attributes: str = "") -> Path:
    path = folder / "unit.dbc"
    path.write_text(HEAD + more + "\n" + CYCLE + attributes)
    return path


#: a signal of the control unit -> the values that it can have, by hand: n bits hold 0 .. 2^n - 1, signed ones
#: -2^(n-1) .. 2^(n-1) - 1; times the factor, and the offset; limits of the database narrow them, [0|0] are none
LIMITS = {
    '0|8@1- (0.5,-10) [0|0] "Nm"': (-74.0, 53.5),
    '0|8@1- (0.5,-10) [-20|90] "Nm"': (-20.0, 53.5),
    '0|12@1+ (0.25,0) [0|100] "Nm"': (0.0, 100.0),
    '0|12@1+ (0.25,2) [1|5000] "Nm"': (2.0, 1025.75),
    '0|4@1+ (-2,1) [0|0] "Nm"': (-29.0, 1.0),
    '0|1@1+ (1,0) [0|0] ""': (0.0, 1.0),
}


@pytest.mark.parametrize(("form", "limits"), LIMITS.items())
def test_an_adapter_sends_no_value_that_a_signal_cannot_have(
    form: str, limits: tuple[float, float], tmp_path: Path
) -> None:
    path = database(tmp_path, f"BO_ 512 Out: 8 TCU\n SG_ it : {form} HIL\n")
    text = simulink_text(CanDatabase.load(path, "TCU"), "box", "unit")
    (found,) = re.findall(r"limited\((\S+), box_Y\.it, ([^)]+)\)", text)
    assert tuple(map(float, found)) == pytest.approx(limits)


def test_a_float_signal_takes_every_number_of_its_kind(tmp_path: Path) -> None:
    more = 'BO_ 512 Out: 8 TCU\n SG_ it : 0|32@1- (1,0) [0|0] "Nm" HIL\n'
    path = database(tmp_path, more, "SIG_VALTYPE_ 512 it : 1;\n")
    (found,) = re.findall(
        r"limited\((\S+), box_Y\.it, ([^)]+)\)", simulink_text(CanDatabase.load(path, "TCU"), "box", "u")
    )
    assert tuple(map(float, found)) == (-3.4e38, 3.4e38)


@pytest.mark.parametrize("cycles_ms", [(10, 20, 50, 0), (20, 50), (15, 10), (7,), (0,)])
def test_every_message_of_an_adapter_keeps_its_cycle_time(cycles_ms: tuple[int, ...], tmp_path: Path) -> None:
    """A message without one goes with every step, which is 10 ms where no message has one."""
    more = "".join(
        f'BO_ {512 + k} Out{k}: 8 TCU\n SG_ it{k} : 0|8@1+ (1,0) [0|0] "" HIL\n\n' for k in range(len(cycles_ms))
    )
    attributes = "".join(f'BA_ "GenMsgCycleTime" BO_ {512 + k} {ms};\n' for k, ms in enumerate(cycles_ms))
    text = simulink_text(CanDatabase.load(database(tmp_path, more, attributes), "TCU"), "box", "unit")
    (period,) = re.findall(r"#define PERIOD_S (\S+)", text)
    sent = re.findall(r"unit\.steps % (\d+) == 0.*?box_Y\.it(\d)", text, re.S)
    assert len(sent) == len(cycles_ms)
    for every, k in sent:
        told = 1e3 * float(period) * int(every)
        assert told == pytest.approx(cycles_ms[int(k)] or 1e3 * float(period)), k
    assert float(period) == pytest.approx(0.01) or any(cycles_ms)


def test_a_name_that_is_no_c_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the name of the model, as in C"):
        simulink_text(CanDatabase.load(database(tmp_path, ""), "TCU"), "2box", "unit")


MODEL: Any = SimpleNamespace(
    input_names=["A.p", "B.p", "lockup.p", "engine.pedal", "road.F"],
    output_names=["engine.w", "turbine.w", "out.w", "car.v", "engine.tau"],
)
#: signal that the control unit receives -> signal of the rig that is sent as it
MEANT = {
    'EngineSpeed : 0|16@1+ (0.25,0) [0|0] "rpm"': "engine.w",
    'N_Turbine : 0|16@1+ (0.25,0) [0|0] "rpm"': "turbine.w",
    'OutputShaftSpd : 0|16@1+ (0.25,0) [0|0] "rpm"': "out.w",
    'VehSpd : 0|16@1+ (0.01,0) [0|0] "km/h"': "car.v",
    'AccelPedalPos : 0|8@1+ (0.5,0) [0|0] "%"': "driver.pedal",
    'BrakePedal : 0|8@1+ (0.5,0) [0|0] "%"': "driver.brake",
    'Engine_Trq : 0|16@1- (0.25,0) [0|0] "Nm"': "engine.tau",
}


@pytest.mark.parametrize(("signal", "meant"), MEANT.items())
def test_a_signal_is_bound_to_the_quantity_that_its_name_and_unit_mean(signal: str, meant: str, tmp_path: Path) -> None:
    for unit, wanted in ((None, meant), ("degC", None)):
        text = signal if unit is None else re.sub(r'"[^"]*"$', f'"{unit}"', signal)
        made = draft(database(tmp_path, f"BO_ 257 Told: 8 HIL\n SG_ {text} TCU\n"), "TCU", MODEL)
        assert made.outputs.get(f"Told.{signal.split()[0]}") == wanted and made.outputs["Car.speed"] == "engine.w"


def test_levers_and_gears_are_sent_by_the_numbers_of_their_words(tmp_path: Path) -> None:
    """In the unit of the database: raw number times factor and offset. No request is a number that no word has."""
    more = (
        'BO_ 257 Told: 8 HIL\n SG_ Lever : 0|4@1+ (2,1) [0|0] "" TCU\n SG_ GearTarget : 8|3@1+ (1,0) [0|0] "" TCU\n'
        ' SG_ GearWish_Cmd : 16|3@1+ (1,0) [0|0] "" TCU\n SG_ GearReq : 24|3@1+ (1,0) [0|0] "" TCU\n'
    )
    words = (
        'VAL_ 257 Lever 0 "P" 1 "R" 2 "N" 5 "D" ;\nVAL_ 257 GearTarget 1 "1" 2 "2" 3 "3" ;\n'
        'VAL_ 257 GearWish_Cmd 0 "1" 1 "2" 2 "3" ;\nVAL_ 257 GearReq 1 "1" 2 "2" 3 "3" 6 "none" ;\n'
    )
    made = draft(database(tmp_path, more, words), "TCU", MODEL)
    assert made.words == {
        "Told.Lever": ("driver.lever", {"P": 1.0, "R": 3.0, "N": 5.0, "D": 11.0}),
        "Told.GearTarget": ("driver.gear", {"N": 0.0, "1": 1.0, "2": 2.0, "3": 3.0}),
        "Told.GearWish_Cmd": ("driver.gear", {"N": 7.0, "1": 0.0, "2": 1.0, "3": 2.0}),
        "Told.GearReq": ("driver.gear", {"N": 6.0, "1": 1.0, "2": 2.0, "3": 3.0}),
    }
    assert made.no_none == ["Told.GearTarget", "Told.GearWish_Cmd"]


def test_a_torque_request_goes_with_the_switch_whose_name_is_most_like_its_own(tmp_path: Path) -> None:
    more = (
        'BO_ 512 Out: 8 TCU\n SG_ EngTrqLim : 0|16@1+ (0.5,0) [0|0] "Nm" HIL\n SG_ Mode : 16|1@1+ (1,0) [0|0] "" HIL\n'
        ' SG_ Eng_On : 17|1@1+ (1,0) [0|0] "" HIL\n SG_ EngTrqLimActv : 18|1@1+ (1,0) [0|0] "" HIL\n'
        ' SG_ Lim_On : 19|1@1+ (1,0) [0|0] "" HIL\n SG_ p_A : 32|8@1+ (0.1,0) [0|0] "bar" HIL\n'
        ' SG_ p_LU : 40|8@1+ (0.1,0) [0|0] "bar" HIL\n SG_ p_X : 48|8@1+ (0.1,0) [0|0] "bar" HIL\n'
    )
    path = database(tmp_path, more)
    made = draft(path, "TCU", MODEL)
    assert made.engine == {"limit": "Out.EngTrqLim", "active": "Out.EngTrqLimActv"}
    assert made.inputs == {"A.p": "Out.p_A", "lockup.p": "Out.p_LU"} and made.no_input == ["B.p"]
    assert made.no_element == ["Out.p_X"]
    assert made.unused == ["Out.Mode [-]", "Out.Eng_On [-]", "Out.Lim_On [-]", "Out.p_X [bar]"]
    text = rig_from_database("mine", "car", "road", "unit.dbc", made, MODEL, UnitKind("library", "unit.c"))
    assert "no cycle time of these: 10 ms assumed" in text
    rig = tomllib.loads(text)
    assert rig["bus"]["powertrain"]["cycle_s"] == {"Car": 0.01} and rig["ecu"]["unit"]["start"] == "unit.c"
    assert rig["inputs"] == {"A.p": "Out.p_A", "lockup.p": "Out.p_LU", "B.p": 0.0, "engine.pedal": "driver.pedal",
                             "road.F": "vehicle.F"}  # fmt: skip
    assert (
        "start" not in tomllib.loads(rig_from_database("mine", "car", "road", "unit.dbc", made, MODEL))["ecu"]["unit"]
    )


def test_a_hydraulic_unit_has_the_pistons_of_its_gearbox() -> None:
    """Pistons of 80 and 50 cm2 with 1.5 mm to go take 12 and 7.5 cm3; they move from three quarters of the pressure of
    the spring on; the line has the lower of both p_max, less its tolerance of 3 %."""
    parts = load("zf_8hp45").components
    made: Any = SimpleNamespace(components={
        "A": replace(parts["A"], area=80e-4, p_return=0.8e5, p_max=17.51e5),
        "B": replace(parts["B"], area=50e-4, p_return=1.2e5, p_max=20.6e5, actuator="first_order"),
    })  # fmt: skip
    found = pistons(made, ["A.p", "B.p", "engine.pedal", "C.p"])
    text = tomllib.loads(hydraulic_text("mine", "box", found))
    assert text["line"]["max_bar"] == 17.0
    assert {n: s["bar_over_command"][-1] for n, s in text["solenoid"].items()} == {"EDS_A": [1, 17], "EDS_B": [1, 17]}
    a, b = text["circuit"]["A"], text["circuit"]["B"]
    assert (a["fill_cm3"], a["return_bar"], a["full_bar"], a["supply"]) == (12.0, 0.6, 0.8, ["EDS_A"])
    assert (b["fill_cm3"], b["return_bar"], b["full_bar"], b["supply"]) == (7.5, 0.9, 1.2, ["EDS_B"])
    # a full piston takes 3 bar of its oil: openings and elasticity go with the filling
    assert (a["feed_mm2"], b["feed_mm2"]) == (9.6, 6.0) and (a["give_cm3pbar"], b["give_cm3pbar"]) == (0.3, 0.188)
    assert without_lag(found) == {
        "components.A.actuator": "first_order", "components.A.tau_rise_ms": 0, "components.A.tau_fall_ms": 0,
        "components.B.tau_rise_ms": 0, "components.B.tau_fall_ms": 0,
    }  # fmt: skip


@pytest.mark.parametrize(("mass", "torque", "pedal"), [(1780, 440, 0.5), (1780, 352, 0.625), (900, 900, 0.3),
                                                       (3000, 200, 0.8)])  # fmt: skip
def test_the_pedal_of_a_first_drive_goes_with_the_mass_that_a_newton_metre_moves(
    mass: float, torque: float, pedal: float
) -> None:
    assert pedal_for(mass, torque) == pytest.approx(pedal)


def test_a_shift_up_takes_as_long_as_its_torque_lets_it() -> None:
    """J dw = t dT: with 0.2 kg m2 from 92 % of 6000 rpm to half of that are 57.8 Nm s, which 80 Nm take in 0.75 s."""
    car: Any = SimpleNamespace(power_rpm=6000.0, engine_side_kgm2=0.2, torque_Nm=100.0)
    assert up_time_s(2.0, 1.0, car) == pytest.approx(0.75)
    car.torque_Nm = 50.0
    assert up_time_s(2.0, 1.0, car) == pytest.approx(1.45)
    assert up_time_s(1.1, 1.0, car) == 0.4


#: share of the speed of largest power at each pedal: all different, up to full pedal
SHARES = ((0.0, 0.3), (85.0, 0.5), (100.0, 0.9))


def test_a_schedule_has_its_lines_at_shares_of_the_speed_of_largest_power(monkeypatch: pytest.MonkeyPatch) -> None:
    """2000 rpm over the ratio 5: 400 rpm at the output. Down 0.66 of the line up, from 85 % on 0.72; kick-down 0.85 of
    its end; hysteresis a quarter of its begin, 60 rpm at most. The turbine stays within 3 % of 2000 rpm."""
    monkeypatch.setattr("torqueloop.hil.new.tcu_file.UP_SHARE", SHARES)
    car: Any = SimpleNamespace(power_rpm=2000.0, engine_side_kgm2=0.2, torque_Nm=100.0, rpm_per_kmh=12.34)
    gears = {"1": TcuGear("1", ("A",), 5.0, {}), "2": TcuGear("2", ("B",), 2.0, {})}
    text = _schedule(gears, car)
    assert tomllib.loads(text)["schedule"] == {
        "min_gear_time_s": 0.8, "kick_down_gear_time_s": 0.4, "kick_down_on_percent": 95.0,
        "kick_down_off_percent": 90.0, "hysteresis_min_rpm": 30.0, "turbine_max_rpm": 1940.0,
        "turbine_force_up_rpm": 2060.0,
        "up": {"1-2": [[0.0, 120.0], [85.0, 200.0], [100.0, 360.0]]},
        "down": {"2-1": [[0.0, 79.0], [85.0, 144.0], [100.0, 259.0]]}, "kick_down": {"2-1": 306.0},
    }  # fmt: skip
    assert "# 12.3 rpm are 1 km/h." in text and "(2000 rpm), 0 %: 0.3, 85 %: 0.5, 100 %: 0.9." in text
    faster = _schedule({**gears, "1": replace(gears["1"], ratio=2.0)}, car)
    assert tomllib.loads(faster)["schedule"]["hysteresis_min_rpm"] == 60.0
    # J dw = t dT: 0.2 kg m2 from 90 % of 2000 rpm to half of that are 18.85 Nm s, which 80 Nm take in 0.236 s
    assert up_time_s(2.0, 1.0, car) == 0.4
    car.torque_Nm = 25.0
    assert up_time_s(2.0, 1.0, car) == pytest.approx(0.95)


@pytest.mark.parametrize(("plus_set", "ratio", "brake", "clutch"), [(False, 2, "3", "3/2"), (True, -2, "1", "1/2")])
@pytest.mark.parametrize("teeth", [{"z_sun": 30, "z_ring": 60}, {"ratio": 2.0}])
def test_a_set_of_a_sketch_has_the_same_ratio_in_the_gearbox_file_however_it_is_given(
    plus_set: bool, ratio: int, brake: str, clutch: str, teeth: dict[str, float], tmp_path: Path
) -> None:
    """Torques of sun, ring and carrier are 1 : i : -(1 + i), i negative in a plus set. With the carrier held the brake
    has |1 + i| per Nm at the sun; with sun and carrier joined 1 Nm at both is -i at the sun, 1 + i at the clutch."""
    sketch = Sketch.model_validate({
        "name": "box", "torque_Nm": 100.0, "brakes": {"B": "c"}, "clutches": {"K": ["in", "c"]},
        "sets": {"P": {"sun": "in", "carrier": "c", "ring": "out", "plus_set": plus_set, **teeth}},
        "gears": {"1": {"engaged": ["B"]}, "2": {"engaged": ["K"]}},
    })  # fmt: skip
    path = tmp_path / "box.toml"
    path.write_text(gearbox_text(sketch))
    assert load(path).components["P"].i == ratio  # type: ignore[attr-defined]
    assert {name: str(torque) for name, torque in largest_torques(sketch).items()} == {"B": brake, "K": clutch}


def test_a_car_tells_its_engine_as_its_curve_has_it(tmp_path: Path) -> None:
    """Largest power at the largest product of speed and torque; speed of the output by radius and final drive."""
    car = car_facts("car_4hp22_rig")
    rows = [line.split(",") for line in car.curves["engine_csv"].read_text().splitlines() if line[:1] not in "#"]
    at, of = rows[0].index("speed_radps"), rows[0].index("wot_Nm")
    curve = [(float(r[at]), float(r[of])) for r in rows[1:]]
    power = max(w * tau for w, tau in curve)
    assert car.power_rpm in [pytest.approx(w * 9.549296585513721) for w, tau in curve if w * tau == power]
    assert car.torque_Nm == max(tau for _, tau in curve)
    parts = car.driveline.components.values()
    (final,), (wheel,) = ([p for p in parts if p.kind == kind] for kind in ("FinalDrive", "IdealRollingWheel"))
    assert car.rpm_per_kmh == pytest.approx(final.ratio / wheel.radius / 3.6 * 60 / 6.283185307179586)
    path = tmp_path / "car.toml"
    path.write_text('include = ["zf_8hp45"]\n')
    with pytest.raises(ConfigError, match="curves of converter_coast_csv, converter_csv, engine_csv"):
        car_facts(path)
