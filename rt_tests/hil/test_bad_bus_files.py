"""Databases and protection that cannot be right: each mistake is named with its file, its key or message, and what
could stand there instead."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from rig_help import CONFIGS

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.rig.resolve.plan import load_plan

DBC = """VERSION ""
BU_: HIL TCU
BO_ 272 Speeds: 8 HIL
 SG_ crc : 0|8@1+ (1,0) [0|255] "" TCU
 SG_ alive : 8|4@1+ (1,0) [0|15] "" TCU
 SG_ n : 16|16@1+ (1,0) [0|65535] "rpm" TCU
 SG_ page : 32|4@1+ (1,0) [0|15] "" TCU
BO_ 273 Other: 8 HIL
 SG_ a : 0|8@1+ (1,0) [0|255] "" TCU
 SG_ b : 8|8@1+ (1,0) [0|255] "" TCU
BA_DEF_ BO_ "GenMsgCycleTime" INT 0 65535;
BA_DEF_DEF_ "GenMsgCycleTime" 0;
BA_ "GenMsgCycleTime" BO_ 272 10;
BA_ "GenMsgCycleTime" BO_ 273 10;
"""
RIG = f"""[rig]
name = "bad"
[plant]
powertrain = "{CONFIGS / "examples" / "two_blocks.toml"}"
[inputs]
"u1.f" = 0.0
"u2.f" = 0.0
[bus.car]
database = "bad.dbc"
restbus = true
[bus.car.e2e.Speeds]
profile = "SAE_J1850"
crc_signal = "crc"
counter_signal = "alive"
[outputs]
"Speeds.n" = {{ signal = "rig.tick", gain = 1 }}
"""
#: what -> (old, new, words of the message)
CASES = {
    "signals of a bound message overlap": (
        "n : 16|16", "n : 10|16", ["bad.dbc", "message Speeds", "signal n overlaps alive counter at bit 10"]),
    "signals of a message of the rest of the bus overlap": (
        "b : 8|8", "b : 4|8", ["bad.dbc", "message Other", "signal b overlaps signal a at bit 4", "'send'"]),
    "two messages with one identifier": (
        "BO_ 273 Other", "BO_ 272 Other", ["bad.dbc", "0x110 has two owners: Speeds (HIL) and Other (HIL)"]),
    "two messages with one name": (
        "BO_ 273 Other", "BO_ 273 Speeds", ["bad.dbc", "two messages are called Speeds", "0x110 and 0x111"]),
    "no cycle time": (
        'BA_ "GenMsgCycleTime" BO_ 273 10;\n', "",
        ["bad.dbc", "message Other: there is no cycle time", "bus.car.cycle_s", "bus.car.send leaves it out"]),
    "unknown signal to send": (
        '"Speeds.n"', '"Speeds.m"', ["rig.toml", "[outputs]", "no signal 'm'", "allowed: crc, alive, n, page"]),
    "unknown message to send": (
        '"Speeds.n"', '"Speds.n"', ["rig.toml", "[outputs]", "no message 'Speds'", "did you mean 'Speeds'?"]),
    "unknown signal to send from": (
        '"rig.tick"', '"rig.tock"', ["rig.toml", "[outputs]", "Speeds.n", "did you mean 'rig.tick'?"]),
    "unknown rule": (
        "SAE_J1850", "SAE_J1851",
        ["rig.toml", "e2e.Speeds.profile", "'SAE_J1851'", "allowed: NONE", "did you mean 'SAE_J1850'?"]),
    "protection of an unknown message": (
        "e2e.Speeds", "e2e.Speds", ["rig.toml", "e2e: there is no message 'Speds'", "did you mean 'Speeds'?"]),
    "checksum that does not fit": (
        'crc_signal = "crc"', 'crc_signal = "n"',
        ["rig.toml", "e2e.Speeds.crc_signal", "start bit 16, 16 bit", "must fill one byte", "allowed: crc"]),
    "checksum that is no signal": (
        'crc_signal = "crc"', 'crc_signal = "crs"', ["rig.toml", "e2e.Speeds.crc_signal", "did you mean 'crc'?"]),
    "no checksum": (
        'crc_signal = "crc"\n', "", ["rig.toml", "e2e.Speeds.crc_signal", "SAE_J1850 needs", "allowed: crc"]),
    "no data id": (
        "SAE_J1850", "AUTOSAR_P01_1A", ["rig.toml", "e2e.Speeds.data_id", "needs a data id of 16 bit"]),
    "header longer than the message": (
        'profile = "SAE_J1850"\ncrc_signal = "crc"', 'profile = "AUTOSAR_P04"\ndata_id = 1',
        ["rig.toml", "e2e.Speeds", "header of 12 bytes", "the message 8 bytes"]),
    "multiplexed, no multiplexer, in a bound message": (
        "n : 16", "n m0 : 16",
        ["bad.dbc", "message Speeds", "signal n is multiplexed", "one of crc, alive, page must be marked M"]),
    "multiplexer of a multiplexed signal that has none itself": (
        "n : 16", "n m0M : 16", ["bad.dbc", "message Speeds", "n is multiplexed", "no signal is its multiplexer"]),
    "multiplexed, no multiplexer, in the rest of the bus": (
        "b : 8", "b m0 : 8", ["bad.dbc", "message Other", "signal b is multiplexed", "one of a must be marked M"]),
    "not a DBC": ("n : 16|16@1+", "n : 16|16@+", ["bad.dbc", "line 6, column 16"]),
}  # fmt: skip


def load(folder: Path, old: str, new: str) -> None:
    for name, text in (("bad.dbc", DBC), ("rig.toml", RIG)):
        (folder / name).write_text(text.replace(old, new))
    load_plan(folder / "rig.toml")


def test_without_a_mistake_it_is_taken(tmp_path: Path) -> None:
    load(tmp_path, "nothing of it", "")


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_named_with_its_place_and_the_choices(tmp_path: Path, case: str) -> None:
    old, new, words = CASES[case]
    assert (old in DBC) != (old in RIG)
    logging.getLogger("cantools").setLevel(logging.ERROR)
    with pytest.raises(ConfigError) as error:
        load(tmp_path, old, new)
    missing = [word for word in words if word not in str(error.value)]
    assert not missing, f"{missing} in: {error.value}"
