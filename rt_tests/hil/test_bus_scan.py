"""`torqueloop bus scan` and `torqueloop new rig --dbc`: what is told of a bus, and a rig file that is checked."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import can
import cantools
import pytest
from rig_help import CONFIGS
from test_new_files import call

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components.files import load
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.scan import Heard, log_frames, scan
from torqueloop.hil.common.signal_words import gear_words, lever_words
from torqueloop.hil.new.dbc_rig import MARK, draft
from torqueloop.hil.rig.resolve.plan import load_plan

DBC = CONFIGS / "can" / "tcu_4hp22.dbc"
CAR = CONFIGS / "powertrains" / "car_4hp22_rig.toml"


def log(path: Path) -> Path:
    """1 s of a bus as python-can writes it: HIL_Speeds every 10 ms, wrong from 0.5 s on; 0x400 every 100 ms."""
    from torqueloop.hil.can.database import CanDatabase

    codec = CanDatabase.load(DBC, "HIL").codec()
    with can.Logger(path) as writer:
        for k in range(100):
            data = codec.encode("HIL_Speeds", {"n_engine": 80.0})
            data = data if k < 50 else bytes([data[0] ^ 1]) + data[1:]
            writer(can.Message(timestamp=100.0 + k / 100, arbitration_id=0x110, data=data, is_extended_id=False))
            if k % 10 == 0:
                writer(can.Message(timestamp=100.001 + k / 100, arbitration_id=0x400, data=b"1", is_extended_id=True))
    return path


@pytest.mark.parametrize("ending", ["asc", "log", "blf"])
def test_a_log_is_told_message_by_message(tmp_path, ending):
    found = scan(log_frames(log(tmp_path / f"bus.{ending}")), DBC, "TCU")
    speeds, other = found.heard
    assert (speeds.name, speeds.senders, speeds.frames, speeds.lengths) == ("HIL_Speeds", ["HIL"], 100, [8])
    assert speeds.mean_s == pytest.approx(0.01, abs=1e-5) and speeds.cycle_s == 0.01
    assert speeds.refused == {"crc": 50} and speeds.remarks == ["50 refused: crc"]
    assert (other.can_id, other.name, other.frames) == (0x8000_0400, "", 10)
    assert other.mean_s == pytest.approx(0.1, abs=1e-5)
    assert found.missing == {"HIL_Driver": ["HIL"], "HIL_Engine": ["HIL"]}
    assert found.silent == ["TCU_Pressure_1", "TCU_Pressure_2", "TCU_Status"]


def test_the_command_tells_it_in_words_and_for_machines(tmp_path):
    path = log(tmp_path / "bus.asc")
    status, text = call("bus", "scan", "--log", path, "--dbc", DBC, "--node", "TCU")
    assert status == 0 and "50 refused: crc" in text and "TCU waits for HIL_Driver of HIL, but no node sends it" in text
    assert "00000400" in text and "2 identifiers, 1 not in a database" in text
    head, rows = text.partition("remarks ")[::2]
    assert head.split() == "id message from frames cycle ms min .. max".split()
    assert rows.startswith(
        "110 HIL_Speeds HIL 100 10.0 10.0 .. 10.0 50 refused: crc 00000400 - 10 100.0 100.0 .. 100.0 "
    )
    status, text = call("bus", "scan", "--log", path, "--dbc", "tcu_4hp22", "--json")
    assert status == 0 and json.loads(text)["frames"] == 110


def test_one_bus_of_a_log_with_two_is_told_alone(tmp_path):
    """Both have the same identifier: together its period is half the true one."""
    path = tmp_path / "two.asc"
    with can.Logger(path) as writer:
        for k in range(100):
            for channel in (0, 1):
                t = 100.0 + k / 100 + channel / 200
                frame = can.Message(timestamp=t, arbitration_id=0x110, data=b"\0", is_extended_id=False)
                frame.channel = channel
                writer(frame)
    periods = {c: scan(log_frames(path, c), None, None).heard[0].mean_s for c in (None, "0", "1")}
    assert periods[None] == pytest.approx(0.005, rel=0.02)
    assert periods["0"] == pytest.approx(0.01, abs=1e-5) and periods["1"] == pytest.approx(0.01, abs=1e-5)
    status, text = call("bus", "scan", "--log", path, "--log-channel", "2")
    assert status == 2 and "no frame on channel '2'" in text and "allowed: 0, 1" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--log", "LOG", "--dbc", DBC, "--node", "TCV"), "did you mean 'TCU'"),
        (("--log", "LOG", "--node", "TCU"), "belongs to a database"),
        (("--log", "LOG", "--seconds", "0"), "out of range"),
        (("--log", "none.asc"), "none.asc"),
        (("--log", "LOG", "--dbc", "none.dbc"), "none.dbc"),
        (("--interface", "no_such_interface"), "no_such_interface"),
    ],
)
def test_mistakes_of_a_scan_are_named(tmp_path, arguments, words):
    path = log(tmp_path / "bus.asc")
    status, text = call("bus", "scan", *(path if a == "LOG" else a for a in arguments))
    assert status == 2 and words in text, text


def test_a_broken_log_is_no_crash(tmp_path):
    path = tmp_path / "bus.blf"
    path.write_bytes(b"LOGG" + bytes(300))
    with pytest.raises(ConfigError, match="cannot be read"):
        list(log_frames(path))


def test_our_own_database_gives_all_bindings_of_our_own_rig():
    made = draft(DBC, "TCU", compile_driveline(load(CAR)))
    hand = tomllib.loads((CONFIGS / "rigs" / "desk_4hp22.toml").read_text())
    pressures = {k: v for k, v in hand["inputs"].items() if k.endswith(".p")}
    assert made.inputs == pressures and made.no_input == [] and made.nodes == ["HIL"] and made.skipped == {}
    for name in ("n_engine", "n_turbine", "n_output"):
        assert made.outputs[f"HIL_Speeds.{name}"] == hand["outputs"][f"HIL_Speeds.{name}"]
    assert made.outputs["HIL_Driver.v_vehicle"] == "car.v" and made.outputs["HIL_Driver.pedal"] == "driver.pedal"
    # the desk has no engine control: its engine gives what the driver wants
    requested = {"HIL_Engine.tau_driver": "engine_control.tau_driver"}
    assert made.outputs.items() >= requested.items()
    lever = {word: raw for raw, word in enumerate(("P", "R", "N", "D", "4", "3", "2", "1"))}
    assert made.words["HIL_Driver.lever"] == ("driver.lever", lever)
    assert all(hand["outputs"].get(k) == v for k, v in made.outputs.items() if k not in requested), made.outputs
    assert made.engine == {"limit": "TCU_Status.tau_limit", "active": "TCU_Status.tau_limit_active"}
    assert made.monitors == {"reported": "TCU_Status.gear_actual", "asked": "TCU_Status.gear_target"}
    assert any(line.startswith("HIL_Driver.T_oil") for line in made.constant)


def test_the_file_it_writes_is_checked_and_says_what_it_could_not_find(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, text = call("new", "rig", "car_4hp22_rig", "--dbc", DBC, "--node", "TCU", "--out", "mine.toml")
    assert status == 0 and "torqueloop check" in text
    plan = load_plan(tmp_path / "mine.toml")
    assert len(plan.in_copies) >= 8 and {m.name for m in plan.buses[0].database.tx_messages} >= {"HIL_Speeds"}
    written = (tmp_path / "mine.toml").read_text()
    assert MARK in written and "HIL_Driver.T_oil" in written
    status, text = call("new", "rig", "car_4hp22_rig", "--dbc", DBC, "--out", "other.toml")
    assert status == 2 and "--node" in text
    status, text = call("new", "rig", "car_4hp22_rig", "--dbc", DBC, "--node", "TCV", "--out", "other.toml")
    assert status == 2 and "did you mean 'TCU'" in text
    status, text = call("new", "rig", "--gearbox", "zf_4hp22_small", "--dbc", DBC, "--node", "TCU", "--out", "g.toml")
    assert status == 0 and (tmp_path / "car_zf_4hp22_small_rig.toml").is_file()
    load_plan(tmp_path / "g.toml")


FIRST = CONFIGS / "examples" / "external"


def made_for(tmp_path: Path, *options: str) -> tuple[dict[str, Any], str]:
    """The rig of first_unit.dbc with these options, and what was said."""
    asked = ("new", "rig", "--gearbox", "zf_8hp70", "--dbc", str(FIRST / "first_unit.dbc"), "--node", "TCU", "--force")
    status, text = call(*asked, "--out", str(tmp_path / "bench.toml"), *options)
    assert status == 0, text
    return tomllib.loads((tmp_path / "bench.toml").read_text()), text


def test_currents_get_a_hydraulic_unit_and_words_their_lever_and_gears(tmp_path: Path) -> None:
    rig, text = made_for(tmp_path, "--unit", "library", "--start", str(FIRST / "first_unit.c"))
    assert "not found: 0 inputs, 0 signals" in text
    assert rig["ecu"]["unit"]["kind"] == "library" and "interface" not in rig["bus"]["powertrain"]
    solenoids = {f"EDS_{e}": f"Currents_1.i_{e}" for e in "ABCD"}
    solenoids |= {f"EDS_{e}": f"Currents_2.i_{e}" for e in ("E", "LU")}
    assert rig["hydraulics"]["solenoids"] == solenoids
    # positions and gears as cantools reads them from the value tables
    database = cantools.database.load_file(FIRST / "first_unit.dbc")
    driver = database.get_message_by_name("Driver")
    choices = {str(word): raw for raw, word in driver.get_signal_by_name("selector").choices.items()}
    selector = {word[0]: choices[word] for word in ("Park", "Reverse", "Neutral", "Drive")}
    assert rig["outputs"]["Driver.selector"] == {"signal": "driver.lever", "words": selector}
    assert rig["outputs"]["Driver.gear_request"]["words"] == {"N": 0, **{str(k): k for k in range(1, 9)}}
    assert rig["monitors"] == {"asked": "Status.gear_target", "reported": "Status.gear_engaged"}
    assert rig["engine_control"] == {"engine_csv": "bmw_n62b44", "limit": "Status.torque_limit",
                                     "active": "Status.torque_limit_active"}  # fmt: skip
    assert rig["outputs"]["Answer.intervention_ack"] == "engine_control.intervention"
    plan = load_plan(tmp_path / "bench.toml")
    # the solenoid of one element is judged by the gears; the only other one is that of the park lock
    assert plan.monitors.actuators == ["Currents_2.i_park"]
    oil = tomllib.loads((tmp_path / "bench_hydraulics.toml").read_text())
    box = tomllib.loads((CONFIGS / "gearboxes" / "zf_8hp70.toml").read_text())["components"]
    assert oil["line"]["max_bar"] == 17.0
    for element in "ABCDE":
        circuit, piston = oil["circuit"][element], box[element]
        assert circuit["fill_cm3"] == pytest.approx(0.15 * piston["area_cm2"], abs=0.06)
        assert circuit["full_bar"] == piston["p_return_bar"] > circuit["return_bar"] > 0.0
    assert "# assumed: clearance" in (tmp_path / "bench_hydraulics.toml").read_text()


def test_a_unit_may_be_hardware_or_a_program_and_drives_pins_where_it_sends_nothing(tmp_path: Path) -> None:
    rig, _ = made_for(tmp_path)
    assert rig["ecu"]["unit"] == {"kind": "hardware", "node": "TCU"}
    assert rig["bus"]["powertrain"]["interface"] == "socketcan"
    rig, _ = made_for(tmp_path, "--unit", "zmq")
    assert rig["ecu"]["unit"]["options"]["endpoint"].startswith("tcp://127.0.0.1:")
    load_plan(tmp_path / "bench.toml")
    # the same database without the currents: pins, which hardware has none of
    text = (FIRST / "first_unit.dbc").read_text()
    (tmp_path / "mute.dbc").write_text("\n".join(line for line in text.splitlines() if "SG_ i_" not in line))
    asked = ("new", "rig", "--gearbox", "zf_8hp70", "--dbc", str(tmp_path / "mute.dbc"), "--node", "TCU", "--force")
    for options, pins in ((("--unit", "zmq"), True), ((), False)):
        status, said = call(*asked, "--out", str(tmp_path / "mute.toml"), *options)
        assert status == 0, said
        rig = tomllib.loads((tmp_path / "mute.toml").read_text())
        assert ("actuators" in rig["ecu"]["unit"]) == ("hydraulics" in rig) == pins
        assert rig["inputs"]["A.p"] == ("hydraulics.A.p" if pins else 0.0)
        load_plan(tmp_path / "mute.toml")
    for wrong in (("--unit", "library"), ("--start", "x.c"), ("--unit", "zmq", "--start", "x.c")):
        status, said = call(*asked, "--out", str(tmp_path / "wrong.toml"), *wrong)
        assert status == 2 and "--unit library" in said.replace("\n", " ")
    # pressures and currents that no element is named in are listed; pins are for units that send none
    (tmp_path / "mute.dbc").write_text(re.sub(r"SG_ i_([A-E]|LU) ", lambda m: f"SG_ valve_{ord(m[1][0])} ", text))
    status, said = call(*asked, "--out", str(tmp_path / "mute.toml"), "--unit", "zmq")
    assert status == 0, said
    made = (tmp_path / "mute.toml").read_text()
    assert "bound to no element: Currents_1.valve_65, Currents_1.valve_66" in made and "actuators" not in made
    load_plan(tmp_path / "mute.toml")


#: names of first_unit.dbc -> names that another maker gives
OTHER_NAMES = {
    "n_engine": "EngSpd", "n_turbine": "TrnsInptShftSpd", "n_output": "TrnsOutptShftSpd", "accel_pedal": "AccelPdlPosn",
    "selector": "ShftLvrPosn", "gear_request": "DrvrReqGear", "engine_torque": "EngTrqActl",
    "driver_torque": "DrvrDmdEngTrq", "intervention_ack": "TrqRdctnAck", "gear_engaged": "TrnsActlGear",
    "gear_target": "TrnsCmddGear", "torque_limit": "TrqRdctnReq", "torque_limit_active": "TrqRdctnReqActv",
    **{f"i_{e}": f"SolCurrCltch{e}" for e in ("A", "B", "C", "D", "E", "LU")}, "i_park": "SolCurrPrk",
}  # fmt: skip
OTHER_WORDS = {
    "Drive": "Drive_Position", "none": "No_Request", "N": "Neutral_Gear", "R": "Reverse_Gear", "P": "Park_Gear",
    **{str(k): f"{word}_Gear" for k, word in enumerate(
        ("First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth"), 1)},
}  # fmt: skip


def test_names_and_words_of_another_maker_mean_the_same(tmp_path: Path) -> None:
    """The same database with abbreviated names and long words gives the same rig and the same monitors."""

    def renamed(text: str, names: dict[str, str], pattern: str) -> str:
        return re.sub(pattern, lambda m: m[0].replace(m[1], names.get(m[1], m[1])), text)

    original = (FIRST / "first_unit.dbc").read_text()
    other = renamed(renamed(original, OTHER_NAMES, r"\b(\w+)\b"), OTHER_WORDS, r'"(\w+)"')
    assert "SG_ DrvrReqGear : 12|4@1+ (1,0) [0|15]" in other and '1 "First_Gear" 0 "No_Request"' in other
    made = []
    for name, text in (("one", original), ("other", other)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "unit.dbc").write_text(text)
        asked = ("new", "rig", "--gearbox", "zf_8hp70", "--dbc", str(tmp_path / name / "unit.dbc"), "--node", "TCU")
        status, said = call(*asked, "--unit", "zmq", "--out", str(tmp_path / name / "bench.toml"))
        assert status == 0, said
        rig = (tmp_path / name / "bench.toml").read_text()
        rig = rig if name == "other" else renamed(rig, OTHER_NAMES, r"\.(\w+)\b")
        made.append((rig, load_plan(tmp_path / name / "bench.toml").monitors))
    assert made[0][0] == made[1][0] and '"3" = 3' in made[1][0]
    assert made[0][1].reported == made[1][1].reported and (3.0, 3.0) in made[0][1].reported
    assert made[0][1].asked == made[1][1].asked and (9.0, -1.0) in made[0][1].asked
    engine = ("input.engine.pedal", "engine_control.pedal")
    assert made[1][1].pedals == [("Driver.AccelPdlPosn", "driver.pedal"), engine]


def test_a_gear_without_a_word_for_no_request_is_marked(tmp_path: Path) -> None:
    text = (FIRST / "first_unit.dbc").read_text()
    assert text.count(' 0 "none"') == 1
    (tmp_path / "unit.dbc").write_text(text.replace(' 0 "none"', ""))
    asked = ("new", "rig", "--gearbox", "zf_8hp70", "--dbc", str(tmp_path / "unit.dbc"), "--node", "TCU")
    status, said = call(*asked, "--out", str(tmp_path / "bench.toml"))
    assert status == 0, said
    made = (tmp_path / "bench.toml").read_text()
    assert tomllib.loads(made)["outputs"]["Driver.gear_request"]["words"] == {
        "N": 0,
        **{str(k): k for k in range(1, 9)},
    }
    assert f"{MARK} the value table has no word for no request: N sends 0" in made


#: words of a value table -> what they mean
TABLES = (
    ({1: "Park", 2: "Reverse", 3: "Neutral", 4: "Drive"}, {"P": 1, "R": 2, "N": 3, "D": 4}, {}),
    ({0: "LEVER_N", 1: "LEVER_D", 2: "LEVER_R"}, {"N": 0, "D": 1, "R": 2}, {}),
    ({0: "N", 1: "1", 2: "2", 3: "3", 7: "R"}, {}, {"N": 0, "1": 1, "2": 2, "3": 3, "R": 7}),
    ({1: "Gear 1", 2: "Gear 2", 3: "Gear 3", 15: "invalid"}, {}, {"1": 1, "2": 2, "3": 3}),
    ({0: "off", 1: "on"}, {}, {}),
    ({1: "D1", 2: "D2", 3: "D3"}, {}, {"1": 1, "2": 2, "3": 3}),
    ({0: "-", 1: "G1", 2: "G2", 3: "G3"}, {}, {"N": 0, "1": 1, "2": 2, "3": 3}),
    ({0: "No_Request", 1: "First_Gear", 2: "2nd Gear", 3: "Third"}, {}, {"N": 0, "1": 1, "2": 2, "3": 3}),
    ({0: "kein Wunsch", 1: "1. Gang", 2: "Gang2", 3: "3.Gang"}, {}, {"N": 0, "1": 1, "2": 2, "3": 3}),
    (
        {0: "Neutral", 1: "1", 2: "2", 3: "3", 13: "Rueckwaertsgang", 14: "Parksperre", 15: "none"},
        {},
        {"N": 0, "1": 1, "2": 2, "3": 3, "R": 13, "P": 14},
    ),
    ({0: "Park_Position", 1: "Reverse", 2: "Neutral_Posn", 3: "Drive", 7: "SNA"}, {"P": 0, "R": 1, "N": 2, "D": 3}, {}),
)


@pytest.mark.parametrize("choices, lever, gear", TABLES)
def test_words_of_value_tables_mean_positions_or_gears(
    choices: dict[int, str], lever: dict[str, int], gear: dict[str, int]
) -> None:
    assert lever_words(choices) == lever and gear_words(choices) == gear


@pytest.mark.parametrize(("heard", "remarks"), [
    ({"cycle_s": 0.02, "mean_s": 0.0245, "min_s": 0.001, "max_s": 0.9}, []),
    ({"cycle_s": 0.02, "mean_s": 0.0162, "min_s": 0.001, "max_s": 0.9}, []),
    ({"cycle_s": 0.02, "mean_s": 0.026, "min_s": 0.021, "max_s": 0.03}, ["every 26 ms, not 20"]),
    ({"cycle_s": 0.02, "mean_s": 0.0151, "min_s": 0.014, "max_s": 0.016}, ["every 15 ms, not 20"]),
    ({"cycle_s": 0.0025, "mean_s": 0.01, "min_s": 0.0025}, ["every 10 ms, not 2.5"]),
    ({"mean_s": 0.01, "min_s": 0.005}, []), ({"cycle_s": 0.02}, []),
    ({"length": 8, "lengths": [8]}, []), ({"length": 8, "lengths": [6, 8]}, ["6, 8 data bytes, not 8"]),
    ({"refused": {"crc": 3, "length": 1}}, ["3 refused: crc", "1 refused: length"]),
])  # fmt: skip
def test_what_is_not_as_the_database_says_is_remarked(heard: dict[str, Any], remarks: list[str]) -> None:
    """The mean distance of frames counts, from 0.8 to 1.25 of the cycle time of the database."""
    assert Heard(0x123, **heard).remarks == remarks
