"""What a rig file says reaches the tick at its place and in SI: every number here is worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from rig_help import CONFIGS, rig_file

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.ecu.tcu_tables import load_tcu_config
from torqueloop.hil.results.monitors import ReportedSpeed
from torqueloop.hil.rig.assemble.parts import RigParts, build
from torqueloop.hil.rig.assemble.safe_state import describe
from torqueloop.hil.rig.devices.device import RigPlan
from torqueloop.hil.rig.devices.faults import FaultInjection
from torqueloop.hil.rig.devices.sensors import Sensors
from torqueloop.hil.rig.online.layout import layout
from torqueloop.hil.rig.online.names import signals
from torqueloop.hil.rig.resolve.monitors import schedule_of, shift_lengths
from torqueloop.hil.rig.resolve.plan import load_plan

RPM, KMH = 2.0 * math.pi / 60.0, 1.0 / 3.6
BODY = """VERSION ""

NS_ :

BS_:

BU_: HIL BODY
VAL_TABLE_ Gang 3 "G1" 2 "R" 1 "N" 0 "none" ;

BO_ 768 HIL_Body: 8 HIL
 SG_ p_falling : 0|8@1+ (-0.5,100) [-20|90] "bar" BODY
 SG_ n_free : 8|16@1+ (0.1,0) [0|0] "rpm" BODY
 SG_ T_cooler : 24|8@1+ (1,-40) [-40|150] "degC" BODY
 SG_ accel_pedal : 32|8@1+ (0.5,0) [0|100] "%" BODY

BO_ 770 HIL_Event: 2 HIL
 SG_ lever : 0|4@1+ (1,0) [0|15] "" BODY

BO_ 769 BODY_State: 4 BODY
 SG_ i_valve : 0|8@1+ (0.01,0) [0|2] "A" HIL
 SG_ gear : 8|4@1+ (1,0) [0|15] "" HIL
 SG_ half_gear : 16|8@1+ (0.5,-1) [-1|100] "" HIL
 SG_ signed : 24|4@1- (1,0) [-5|7] "" HIL
 SG_ coded : 28|4@1+ (1,0) [0|8] "" HIL

VAL_ 769 gear 3 "G1" 2 "R" 1 "N" 0 "none" ;
VAL_ 769 signed 10 "error" ;
VAL_ 769 coded 9 "fault" 10 "init" ;
VAL_ 769 half_gear 8 "3" 6 "2" 4 "1" 2 "N" ;
BA_DEF_ BO_ "GenMsgCycleTime" INT 0 10000;
BA_DEF_ BO_ "GenMsgStartDelayTime" INT 0 10000;
BA_DEF_ BO_ "GenMsgDelayTime" INT 0 10000;
BA_DEF_ BO_ "GenMsgNrOfRepetition" INT 0 100;
BA_DEF_ BO_ "GenMsgSendType" STRING ;
BA_DEF_DEF_ "GenMsgCycleTime" 0;
BA_DEF_DEF_ "GenMsgStartDelayTime" 0;
BA_DEF_DEF_ "GenMsgDelayTime" 0;
BA_DEF_DEF_ "GenMsgNrOfRepetition" 0;
BA_DEF_DEF_ "GenMsgSendType" "cyclic";
BA_ "GenMsgCycleTime" BO_ 768 20;
BA_ "GenMsgStartDelayTime" BO_ 768 7;
BA_ "GenMsgCycleTime" BO_ 769 10;
BA_ "GenMsgSendType" BO_ 770 "spontaneous";
BA_ "GenMsgDelayTime" BO_ 770 12;
BA_ "GenMsgStartDelayTime" BO_ 770 3;
BA_ "GenMsgNrOfRepetition" BO_ 770 2;
"""
RIG = """
[bus.body]
database = "body.dbc"
port = 50123

[outputs."HIL_Body.p_falling"]
signal = "C4.p"
gain = 0.25
offset = 3e4

[outputs."HIL_Body.n_free"]
signal = "turbine.w"
slew = 500

[outputs."HIL_Body.T_cooler"]
signal = "driver.lever"
words = { P = 20, R = 30, N = 40, D = 55 }
otherwise = 10

[outputs."HIL_Event.lever"]
signal = "driver.lever"
"""
EDITS = (
    'ecu.tcu.bus = "powertrain"',
    'outputs."HIL_Speeds.n_engine" = { signal = "engine.w", min = 500, max = 8000, slew = 20000, on_limit = "safe" }',
    'outputs."HIL_Body.accel_pedal" = "driver.pedal"',
    'inputs."engine.pedal" = { signal = "driver.pedal", gain = 0.1, offset = 0.6 }',
    'monitors.reported = "body.BODY_State.half_gear"',
    'monitors.asked = "BODY_State.gear"',
    'monitors.answer = "body.HIL_Body.T_cooler"',
    'vehicle.brake = "driver.brake"',
    "safe_state.ramp_s = 0.3",
)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> RigPlan:
    folder = tmp_path_factory.mktemp("rig")
    (folder / "body.dbc").write_text(BODY)
    return load_plan(rig_file(folder, *EDITS, add=RIG))


def near(value: object) -> object:
    return pytest.approx(value, rel=1e-12)


def test_copies_have_the_gain_and_offset_of_their_entry(plan: RigPlan) -> None:
    slot = plan.table.slot
    copies = {dst: (src, gain, offset) for src, dst, gain, offset in (*plan.in_copies, *plan.out_copies)}
    assert copies[slot("input.engine.pedal")] == (slot("driver.pedal"), 0.1, 0.6)
    assert copies[slot("HIL_Body.p_falling")] == (slot("C4.p"), 0.25, 3e4)
    assert copies[slot("HIL_Speeds.n_turbine")] == (slot("turbine.w"), 1.0, 0.0)
    # 80 degC, a constant in the unit of the database
    assert plan.table.initial[slot("HIL_Driver.T_oil")] == near(353.15)


def test_a_signal_is_held_to_its_own_limits_or_those_of_the_database_and_rounding_is_half_a_step(plan: RigPlan) -> None:
    guards = {g.name: g for g in plan.guards}
    wanted = {
        "HIL_Speeds.n_engine": (500 * RPM, 8000 * RPM, 0.125 * RPM, 20000 * RPM, True),
        "HIL_Driver.v_vehicle": (0.0, 250 * KMH, 0.5 * KMH, 0.0, False),
        "HIL_Driver.pedal": (0.0, 1.0, 0.0005, 0.0, False),
        "HIL_Body.p_falling": (-20e5, 90e5, 0.25e5, 0.0, False),
        "HIL_Body.n_free": (-math.inf, math.inf, 0.05 * RPM, 500 * RPM, False),
        "HIL_Body.T_cooler": (233.15, 423.15, 0.5, 0.0, False),
    }
    for name, values in wanted.items():
        g = guards[name]
        assert (g.lo, g.hi, g.tol, g.slew, g.safe) == near(values), name
        assert g.slot == plan.table.slot(name)


def test_a_word_of_the_lever_sends_its_number_in_the_unit_of_the_database(plan: RigPlan) -> None:
    source = next(src for src, dst, *_ in plan.out_copies if dst == plan.table.slot("HIL_Body.T_cooler"))
    assert plan.table.names[source] == "sensor.HIL_Body.T_cooler"
    assert plan.table.units[source] == "K"
    points = dict(Sensors.tables_of(plan.config).sensors["HIL_Body.T_cooler"].points)
    assert [points[k] for k in (0.0, 1.0, 2.0, 3.0)] == near([293.15, 303.15, 313.15, 328.15])
    assert points[4.0] == near(283.15), "all other words"


def test_messages_go_out_in_the_ticks_that_the_database_or_the_file_says(plan: RigPlan) -> None:
    first, body = plan.buses
    ticks = {first.database.messages[index].name: (period, offset) for index, period, offset in first.send}
    assert ticks["HIL_Driver"][1] == 1 and ticks["HIL_Engine"][1] == 2 and ticks["HIL_Speeds"][0] == 10
    assert [(body.database.messages[i].name, period, at) for i, period, at in body.send] == [("HIL_Body", 20, 7)]
    (row,) = body.events
    assert (row.gap, row.repeats, row.period, row.offset) == (12, 2, 0, 3)


def test_limits_are_in_si_and_the_safe_state_ramps_what_a_bus_or_a_pedal_gives(plan: RigPlan) -> None:
    limits = {plan.table.names[slot]: (lo, hi) for slot, lo, hi in plan.limits}
    assert limits == {
        "engine.w": near((-50 * RPM, 7500 * RPM)),
        "out.w": near((-8000 * RPM, 8000 * RPM)),
        "car.v": near((-130 * KMH, 300 * KMH)),
    }
    assert plan.limit_names == list(limits)
    pressures = [f"input.{name}.p" for name in ("C4", "C5", "C6", "C7", "C8", "C11", "C12", "lockup")]
    wanted = {name: (0.0, 0.3) for name in (*pressures, "input.engine.pedal")}
    assert {plan.table.names[slot]: rest for slot, *rest in plan.reactions} == {k: list(v) for k, v in wanted.items()}


def test_a_drive_is_held_to_what_the_rig_file_and_its_databases_say(plan: RigPlan) -> None:
    m = plan.monitors
    wanted = {
        "w_in": "in.w", "w_out": "out.w", "v": "car.v", "a": "car.a", "engine": "engine.w", "tau_lockup": "lockup.tau",
        "pedal": "driver.pedal", "brake": "driver.brake", "lever": "driver.lever", "cause": "rig.cause",
        "reported": "body.BODY_State.half_gear", "asked": "body.BODY_State.gear", "answer": "body.HIL_Body.T_cooler",
    }  # fmt: skip
    assert {key: m.signals[key] for key in wanted} == wanted
    # raw 8 of a factor of 0.5 and an offset of -1 is 3; words of the value table are gears, N is 0 and R is -1
    assert sorted(m.reported) == [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]
    assert sorted(m.asked) == [(1.0, 0.0), (2.0, -1.0), (3.0, 1.0)]
    assert m.answer_s == near(0.020) and m.reaches == 4 and m.duration_s == 25.0
    assert m.pairs == [
        ReportedSpeed("HIL_Speeds.n_engine", "engine.w", 0.0, near(16000 * RPM)),
        ReportedSpeed("HIL_Speeds.n_turbine", "turbine.w", 0.0, near(16000 * RPM)),
        ReportedSpeed("HIL_Speeds.n_output", "out.w", near(-8000 * RPM), near(8000 * RPM)),
        # the database gives no range
        ReportedSpeed("HIL_Body.n_free", "turbine.w", -1e9, 1e9),
    ]
    assert set(m.pedals) == {("HIL_Driver.pedal", "driver.pedal"), ("HIL_Body.accel_pedal", "driver.pedal"),
                             ("input.engine.pedal", "driver.pedal")}  # fmt: skip
    assert m.actuators == ["body.BODY_State.i_valve"]


def test_a_client_may_write_what_the_databases_limits_and_laws_allow(plan: RigPlan) -> None:
    known, inf = signals(plan), math.inf
    ranges = {
        "HIL_Speeds.n_output": (-8000 * RPM, 8000 * RPM), "HIL_Body.p_falling": (-20e5, 90e5),
        "TCU_Pressure_1.p_C4": (0.0, 20e5), "HIL_Body.n_free": (-inf, inf), "engine.tau": (-inf, inf),
        # without a database: [limits]; a copy of a signal with a range; the law of the input
        "car.v": (-130 * KMH, 300 * KMH), "driver.pedal": (0.0, 1.0), "input.C4.p": (0.0, 20e5),
        "input.engine.pedal": (0.0, 1.0),
    }  # fmt: skip
    for name, ends in ranges.items():
        assert (known[name].low, known[name].high) == near(ends), name
    # (set, override): a constant that is sent, one that a link writes, received, of the driver, of the model
    flags = {
        "HIL_Driver.T_oil": (True, False),
        "HIL_Driver.brake": (False, False),
        "TCU_Status.tau_limit": (False, True),
        "driver.pedal": (False, True),
        "input.C4.p": (False, True),
        "engine.w": (False, False),
    }
    assert {name: (known[name].set, known[name].override) for name in flags} == flags
    assert known["input.C4.p"].allowed() == "0 .. 2e+06 Pa" and known["engine.tau"].allowed() == "a finite number"
    assert replace(known["driver.pedal"], high=inf, unit="K").allowed() == "0 .. inf K"
    assert replace(known["driver.pedal"], low=-inf, unit="K").allowed() == "-inf .. 1 K"


def test_a_drawing_is_given_the_signals_words_and_levers_of_the_rig(plan: RigPlan) -> None:
    drawn = layout(plan)
    assert drawn.signals == {
        "engine": "engine.w", "turbine": "turbine.w", "output": "out.w", "speed": "car.v", "acceleration": "car.a",
        "gear": "TCU_Status.gear_actual", "target": "TCU_Status.gear_target", "shifting": "TCU_Status.shift_active",
        "pedal": "driver.pedal", "brake": "driver.brake", "lever": "driver.lever", "tau": "engine.tau",
    }  # fmt: skip
    gears = {"0": "N", "1": "1", "2": "2", "3": "3", "4": "4", "7": "R", "8": "P", "15": "invalid"}
    assert drawn.words["gear"] == drawn.words["target"] == gears
    assert {k: drawn.words["lever"][k] for k in "0123"} == {"0": "P", "1": "R", "2": "N", "3": "D"}
    # z_ring/z_sun of the gearbox file: with the places w_sun, w_carrier and w_ring stand on a straight line
    teeth = {"P1": (35, 73), "P2": (35, 73), "P3": (31, 83)}
    for lever in drawn.levers:
        z_sun, z_ring = teeth[lever.name]
        assert [(m.name, m.x) for m in lever.members] == [
            ("sun", near(-z_ring / z_sun)),
            ("carrier", 0.0),
            ("ring", 1.0),
        ]


#: fault of a signal of the body's bus -> the raw bits that stand in its frames, worked out by hand
RAW = {
    # limits -5 .. 7 fill the upper end of 4 bits; -6 is "error", so it is -7
    'signal = "BODY_State.signed"\nkind = "out_of_range"': 9,
    'signal = "BODY_State.signed"\nkind = "raw"\nvalue = -8': 8,
    'signal = "BODY_State.signed"\nkind = "raw"\nvalue = 7': 7,
    # 9 and 10 have a meaning
    'signal = "BODY_State.coded"\nkind = "out_of_range"': 11,
    'signal = "BODY_State.i_valve"\nkind = "out_of_range"': 201,
    # 16 bits, 32000 raw on either side
    'signal = "HIL_Speeds.n_output"\nkind = "out_of_range"': 32001,
}


def with_faults(folder: Path, *tables: str) -> RigPlan:
    (folder / "body.dbc").write_text(BODY)
    faults = "\n".join(f"[[faults]]\n{table}" for table in tables)
    return load_plan(rig_file(folder, *EDITS, add=f"{RIG}\n{faults}\n"))


def test_raw_numbers_of_a_fault_are_bits_outside_the_range_that_have_no_meaning(tmp_path: Path) -> None:
    planned = with_faults(tmp_path, *RAW).device(FaultInjection).planned
    assert [fault.rows[0].raw for fault in planned] == list(RAW.values())


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('signal = "BODY_State.signed"\nkind = "raw"\nvalue = 8', "-8 .. 7"),
        ('signal = "BODY_State.coded"\nkind = "raw"\nvalue = -1', "0 .. 15"),
        ('signal = "HIL_Event.lever"\nkind = "out_of_range"', "no number outside its range"),
        ('message = "TCU_Pressure_1"\nkind = "crc"\nvalue = 256', "1 .. 255: its checksum has 8 bit"),
    ],
)
def test_a_raw_number_that_its_bits_do_not_have_is_refused(tmp_path: Path, table: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        with_faults(tmp_path, table)
    assert words in str(caught.value)


SCHEDULE = {
    "schedule.min_gear_time_s": 1.25,
    "schedule.kick_down_on_percent": 93.0,
    "schedule.kick_down_off_percent": 85.0,
    "schedule.upshift_brake_percent": 7.0,
    "schedule.turbine_max_rpm": 5500.0,
    "schedule.turbine_force_up_rpm": 6000.0,
    "elements.C5.fill_s": 0.04,
    "elements.C6.fill_s": 0.11,
    "elements.C8.fill_s": 0.07,
}


def test_the_speed_from_which_a_control_unit_waits_is_in_si(tmp_path: Path) -> None:
    rig = tmp_path / "mine.toml"
    rig.write_text(f'kind = "rig"\nextends = "{CONFIGS}/rigs/desk_4hp22.toml"\n'
                   "[ecu.tcu.options.set]\n\"garage.engine_above_rpm\" = 1700.0\n")  # fmt: skip
    assert load_plan(rig).monitors.engine_above_radps == near(1700 * RPM)


def test_shift_lines_of_a_control_unit_are_in_si() -> None:
    s = schedule_of(load_tcu_config(CONFIGS / "tcu" / "soft_4hp22.toml", SCHEDULE))
    assert list(s.up) == ["1-2", "2-3", "3-4"] and list(s.down) == ["2-1", "3-2", "4-3"]
    assert s.up["2-3"] == [near(p) for p in [(0.0, 900 * RPM), (0.2, 900 * RPM), (0.5, 1650 * RPM), (0.8, 2500 * RPM),
                                             (0.88, 2700 * RPM), (1.0, 2700 * RPM)]]  # fmt: skip
    assert s.down["4-3"][2] == near((0.6, 1900 * RPM))
    assert s.kick_down == {"2-1": near(1350 * RPM), "3-2": near(2350 * RPM), "4-3": near(3100 * RPM)}
    assert (s.kick_down_on, s.kick_down_off, s.upshift_brake) == near((0.93, 0.85, 0.07))
    assert (s.turbine_max_radps, s.turbine_force_up_radps, s.gear_time_s) == near((5500 * RPM, 6000 * RPM, 1.25))
    assert s.shifts == ["1-2", "2-3", "3-4", "4-3", "3-2", "2-1"]


def test_a_shift_lasts_as_long_as_its_phases_their_timeouts_and_the_longest_filling() -> None:
    """The longer of the shift under power, coasting, and with engine braking."""
    lengths = shift_lengths(load_tcu_config(CONFIGS / "tcu" / "soft_4hp22.toml", SCHEDULE))
    assert lengths == {
        "1-2": near(0.05 + 0.4 + 1.1 + 0.15 + 0.15 + 0.11),
        "2-3": near(0.1 + 0.45 + 1.1 + 0.2 + 0.11),
        "3-4": near(0.63 + 0.9 + 0.2 + 0.03),
        "4-3": near(0.45 + 0.9 + 0.1 + 0.15 + 0.03),
        # 0.2 + 1.1 + 0.2 coasting is shorter
        "3-2": near(0.45 + 0.95 + 0.1 + 0.2 + 0.11),
        # 2-1E, longer than 2-1 under power (0.45 + 1.0 + 0.15)
        "2-1": near(0.2 + 1.3 + 0.2 + 0.11),
    }


#: edits, words of the refusal
REFUSED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "a lower limit below the database": (
        'outputs."HIL_Speeds.n_output" = { signal = "out.w", min = -9000 }', ("min = -9000", "-8000 .. 8000 rpm")),
    "an upper limit beyond the database": (
        'outputs."HIL_Speeds.n_output" = { signal = "out.w", max = 9000 }', ("max = 9000", "-8000 .. 8000 rpm")),
    "a constant outside its own limits": (
        'outputs."HIL_Driver.T_oil" = { value = 95, min = 20, max = 90 }', ("= 95", "its own limits, 20 .. 90 degC")),
    "a constant above its own limit": (
        'outputs."HIL_Driver.T_oil" = { value = 95, max = 90 }', ("value = 95", "its own limits, -40 .. 90 degC")),
    "a constant outside the database": ('outputs."HIL_Driver.T_oil" = -60', ("-60", "-40 .. 210 degC")),
    "a cycle that is no whole number of ticks": ("clock.tick_s = 0.003", (
        "HIL_Speeds: cycle time 10 ms does not fit the tick", "a multiple of tick_s = 3 ms")),
    "several signals without a source": (
        'without outputs."HIL_Driver.T_oil"\nwithout outputs."HIL_Driver.brake"',
        ("a source: HIL_Driver.T_oil, HIL_Driver.brake in", "key: HIL_Driver.T_oil")),
    "a driver beyond the range of a model input": (
        'inputs."engine.pedal" = { signal = "driver.pedal", gain = 0.5, offset = 0.6 }', ("= 1.1", "0 .. 1")),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_told_with_the_numbers_of_the_file(tmp_path: Path, case: str) -> None:
    edit, words = REFUSED[case]
    with pytest.raises(ConfigError) as caught:
        load_plan(rig_file(tmp_path, edit))
    told = f"{caught.value} key: {caught.value.key}"
    for word in words:
        assert word in told, told


def undrained(plan: RigPlan, away_s: float) -> RigParts:
    """A rig whose recorder stays away so long."""
    parts = build(plan, 10.0, buffer_s=away_s)
    parts.rig.begin(0)
    for tick in range(round(away_s / plan.config.clock.tick_s)):
        parts.rig.ticks(1, tick * plan.period_ns)
    return parts


def test_a_recorder_may_be_away_for_the_time_that_its_buffer_is_made_for(plan: RigPlan) -> None:
    # just below a power of two, to which a ring is rounded up
    each = 48 + 8 * len(plan.recorded)
    away_s = round((2**20 - 1000) / each) * 1e-3
    parts = undrained(plan, away_s)
    assert parts.samples.capacity == 2**20
    assert (parts.samples.dropped, parts.inputs.dropped, parts.bus_log.dropped) == (0, 0, 0)


def test_causes_of_a_bus_that_was_away_name_its_state() -> None:
    cause = {"cause": "bus", "detail": -3, "bus": 0, "latched": True, "tick": 17}
    assert describe(cause) == "the CAN bus: bus off for too long (tick 17)"
    assert describe(cause | {"detail": 4, "latched": False}) == "the bus takes no frames (4 lost in a row)"
