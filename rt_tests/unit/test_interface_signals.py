"""Signals of a maker's bus, both ways, against the words of the interface file: an interface of its own uses every key,
and cantools packs and reads the frames. SI inside; the bus has rpm, per cent, degC, km/h."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cantools
import pytest

from torqueloop.hil.can.database import bus_id
from torqueloop.hil.can.frame import BRS_FLAG, FD_FLAG, Frame
from torqueloop.hil.ecu.interface import MakerBus, interface_database
from torqueloop.hil.ecu.interface_tables import NUMBERS, RECEIVED, WORDS, load_interface

DT = 5e-3
#: signals of 16 bits, four to a message
SENT = {
    "plain": '"w_turbine"',
    "scaled": '{ of = "torque_limit", gain = -2.0, offset = 30.0 }',
    "limited": '{ of = "torque_limit", gain = 0.5, offset = 3.0, inactive = 511 }',
    "ratio": '{ of = "ratio", gain = 100.0, neutral = 77 }',
    "fixed": "{ value = 12.5 }",
    "gear": '{ of = "gear_target", words = { 1 = 11, R = 5 }, otherwise = 9, gain = 4.0 }',
    "toggled": "{ value = 8.0, toggle_s = 0.1 }",
    "oil": '"T_oil"',
    "speed": '"v_vehicle"',
    "share": '"pedal"',
}
UNITS = {"plain": "rpm", "oil": "degC", "speed": "km/h", "share": "%"}
#: message -> cycle time [ms], its signals
CYCLES = {"First": (15, ["plain", "scaled", "limited", "ratio"]), "Second": (35, ["fixed", "gear", "toggled"]),
          "Third": (70, ["oil", "speed", "share"]), "Asked": (10, [])}  # fmt: skip
HEARD = [
    ("engine", "rpm"),
    ("output", "rpm"),
    ("oil", "degC"),
    ("pedal", "%"),
    ("lever", ""),
    ("brake", ""),
    ("gate", ""),
]
RECEIVE = """
w_engine = "Heard.engine"
w_out = { signal = "Heard.output", gain = -0.5, offset = 2.0 }
T_oil = { signal = "Slow.oil", offset = 1.5 }
pedal = "Heard.pedal"
brake = { signal = "Slow.brake", gain = 0.25, offset = -0.125 }
lever = { signal = "Slow.lever", words = { P = 8, R = 7, N = 6, D = 5 } }
"""


def signal(name: str, at: int, unit: str, to: str) -> str:
    return f' SG_ {name} : {16 * at}|16@1- (0.125,0) [0|0] "{unit}" {to}'


@pytest.fixture
def bus(tmp_path: Path) -> SimpleNamespace:
    lines = ['VERSION ""', "", "BU_: TCU CAR", ""]
    for k, (name, (_, signals)) in enumerate(CYCLES.items()):
        lines += [
            f"BO_ {256 + k} {name}: 8 TCU",
            *(signal(s, i, UNITS.get(s, ""), "CAR") for i, s in enumerate(signals)),
            "",
        ]
    lines += [
        "BO_ 512 Heard: 8 CAR",
        *(signal(s, i, u, "TCU") for i, (s, u) in enumerate([HEARD[0], HEARD[1], HEARD[3]])),
        "",
    ]
    lines += ["BO_ 513 Slow: 8 CAR", *(signal(s, i, u, "TCU") for i, (s, u) in enumerate([HEARD[2], *HEARD[4:]])), ""]
    lines += ['BA_DEF_ BO_ "GenMsgCycleTime" INT 0 65535;', 'BA_DEF_DEF_ "GenMsgCycleTime" 0;']
    lines += [f'BA_ "GenMsgCycleTime" BO_ {256 + k} {ms};' for k, (ms, _) in enumerate(CYCLES.values())]
    (tmp_path / "own.dbc").write_text("\n".join([*lines, 'BA_ "GenMsgCycleTime" BO_ 512 10;', ""]))
    send = [f'"{m}.{s}" = {SENT[s]}' for m, (_, names) in CYCLES.items() for s in names]
    (tmp_path / "own.toml").write_text("\n".join([
        'kind = "interface"', 'name = "own"', 'only_active = ["Asked"]', "rx_timeout_s = 0.3", "[receive]", RECEIVE,
        "[send]", *send,
    ]))  # fmt: skip
    config = load_interface(tmp_path / "own.toml")
    database = interface_database(config, tmp_path / "own.dbc", "TCU")
    return SimpleNamespace(
        unit=MakerBus(config, database, DT, 1), dbc=cantools.database.load_file(tmp_path / "own.dbc")
    )


NOTHING = dict.fromkeys(NUMBERS, 0.0) | {"T_oil": 300.0}
SAID = dict.fromkeys(WORDS, "P") | {"gear_actual": "3", "gear_target": "1"}
#: another number for each quantity
TOLD = NOTHING | {
    "w_turbine": 220.0,
    "torque_limit": 85.0,
    "ratio": 2.5,
    "T_oil": 363.15,
    "v_vehicle": 20.0,
    "pedal": 0.375,
}


def read(
    bus: Any, steps: range, numbers: dict[str, float], words: dict[str, str]
) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    """Message -> (step, values in the units of the bus)."""
    found: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for step in steps:
        for frame in bus.unit.frames(step, numbers, words):
            assert (frame.bus, frame.flags) == (1, 0)
            message = bus.dbc.get_message_by_frame_id(frame.can_id)
            found.setdefault(message.name, []).append((step, message.decode(frame.data)))
    return found


def test_each_message_comes_in_its_own_cycle_and_one_only_while_torque_is_asked_for(bus: Any) -> None:
    found = read(bus, range(420), TOLD, SAID)
    assert set(found) == {"First", "Second", "Third"}
    for name, rows in found.items():
        every = round(CYCLES[name][0] * 1e-3 / DT)
        assert {b[0] - a[0] for a, b in zip(rows, rows[1:], strict=False)} == {every} and len(rows) == 420 // every
    assert len(read(bus, range(420), TOLD | {"torque_limit_active": 1.0}, SAID)["Asked"]) == 210


@pytest.mark.parametrize(("more", "words", "wanted"), [
    ({}, {}, {"plain": 220.0 * 30.0 / math.pi, "scaled": -140.0, "limited": 511.0, "ratio": 250.0, "fixed": 12.5,
              "gear": 11.0,
              "oil": 90.0, "speed": 72.0, "share": 37.5}),
    ({"torque_limit_active": 1.0}, {}, {"limited": 45.5, "scaled": -140.0}),
    ({}, {"gear_target": "R"}, {"gear": 5.0, "ratio": 250.0}),
    ({}, {"gear_target": "2"}, {"gear": 9.0}),
    ({}, {"gear_actual": "N"}, {"ratio": 77.0, "gear": 11.0}),
    ({}, {"gear_actual": "P"}, {"ratio": 77.0}),
    ({}, {"gear_target": "N"}, {"ratio": 250.0}),
])  # fmt: skip
def test_every_signal_has_the_value_of_its_line(
    bus: Any, more: dict[str, float], words: dict[str, str], wanted: Any
) -> None:
    values: dict[str, Any] = {}
    for rows in read(bus, range(14), TOLD | more, SAID | words).values():
        values |= rows[-1][1]
    assert {name: values[name] for name in wanted} == pytest.approx(wanted, abs=0.07)


def test_a_signal_that_alternates_changes_each_time_its_time_has_passed(bus: Any) -> None:
    """0.1 s are twenty steps of 5 ms; a frame in between belongs to the half it begins in."""
    rows = read(bus, range(400), TOLD, SAID)["Second"]
    assert [v["toggled"] for _, v in rows] == [8.0 * (step // 20 % 2) for step, _ in rows]


def test_what_comes_in_is_scaled_and_converted_to_si(bus: Any) -> None:
    unit, dbc = bus.unit, bus.dbc
    assert unit.lost(0.0) == {"speeds", "driver"}, "what never came"
    heard = {"engine": 3000.0, "output": 1200.0, "pedal": 62.5}
    slow = {"oil": 80.0, "lever": 7.0, "brake": 2.5, "gate": 1.0}
    unit.receive(1.0, Frame(512, dbc.get_message_by_name("Heard").encode(heard, strict=False), 0, 1))
    unit.receive(1.2, Frame(513, dbc.get_message_by_name("Slow").encode(slow, strict=False), 0, 1))
    rad = math.pi / 30.0
    numbers = {"w_engine": 3000.0 * rad, "w_out": -0.5 * 1200.0 * rad + 2.0, "pedal": 0.625, "T_oil": 353.15 + 1.5,
               "brake": 0.25 * 2.5 - 0.125}  # fmt: skip
    assert {n: unit.values[n] for n in numbers} == pytest.approx(numbers, rel=1e-9) and unit.values["lever"] == "R"
    # a number without a word leaves the lever, and the next frame moves it
    for number, word in ((3.0, "R"), (5.0, "D"), (8.0, "P")):
        unit.receive(
            1.2, Frame(513, dbc.get_message_by_name("Slow").encode({**slow, "lever": number}, strict=False), 0, 1)
        )
        assert unit.values["lever"] == word
    # Heard carries engine, output and pedal, Slow brake and lever; either is lost 0.3 s after it came
    assert [unit.lost(t) for t in (1.29, 1.31, 1.49, 1.51)] == [
        set(),
        {"speeds", "driver"},
        {"speeds", "driver"},
        {"speeds", "driver"},
    ]
    unit.receive(1.6, Frame(512, dbc.get_message_by_name("Heard").encode(heard, strict=False), 0, 1))
    assert unit.lost(1.65) == {"driver"}
    assert set(RECEIVED.values()) == {"speeds", "driver", ""} and RECEIVED["T_oil"] == ""


def test_frames_of_another_length_are_counted_and_those_of_others_are_not(bus: Any) -> None:
    unit, before = bus.unit, dict(bus.unit.values)
    for _ in range(3):
        unit.receive(0.1, Frame(512, bytes(6), 0, 1))
    unit.receive(0.1, Frame(512, bytes(8), FD_FLAG | BRS_FLAG, 1))
    unit.receive(0.1, Frame(700, bytes(6), 0, 1))
    assert sum(unit.refused.values()) == 4 and unit.values == before
    assert {bus_id(m) for m in unit.database.rx_messages} == {512, 513}
