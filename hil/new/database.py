"""A CAN database between a TCU and the rig for any elements and gears, with the protection of tcu_4hp22.dbc.

The messages and their layout are those of configs/can/tcu_4hp22.dbc; only the pressure messages (four elements each),
the value tables of lever and gears and the switch of the manual gate are made anew.
"""

from __future__ import annotations

import re

from torqueloop.hil.common.locate import locate
from torqueloop.hil.ecu.gears import gear_number, is_variant

#: identifiers of the pressure messages: those of the 4HP22, then after its status message
PRESSURE_IDS = (528, 529, 531, 532, 533)
#: E2E data identifiers of the same
PRESSURE_DATA_IDS = (17424, 17425, 17427, 17428, 17429)
PER_MESSAGE = 4
LEVER_WORDS = ("P", "R", "N", "D", "4", "3", "2", "1", "M")


def pressure_messages(elements: list[str]) -> list[list[str]]:
    """Elements of each pressure message, the lock-up clutch last."""
    carried = [*elements, "LU"]
    return [carried[k : k + PER_MESSAGE] for k in range(0, len(carried), PER_MESSAGE)]


def pressure_signal(elements: list[str], element: str) -> str:
    """ "Message.signal" of an element's pressure."""
    for k, names in enumerate(pressure_messages(elements)):
        if element in names:
            return f"TCU_Pressure_{k + 1}.p_{element}"
    raise KeyError(element)


def gear_words(gears: list[str]) -> dict[str, int]:
    """Value table of the gears: N is 0, then the forward gears, then R and P."""
    forward = [g for g in gears if gear_number(g) and not is_variant(g)]
    return {"N": 0, **{g: gear_number(g) for g in forward}, "R": len(forward) + 1, "P": len(forward) + 2}


def database_text(box: str, elements: list[str], gears: list[str]) -> str:
    """The DBC file."""
    text = locate("tcu_4hp22", "can").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not re.search(r"\b(528|529)\b", line)]
    lines = _without_blocks(lines)
    messages = pressure_messages(elements)
    out: list[str] = []
    levers, words = _words({w: i for i, w in enumerate(LEVER_WORDS)}), _words(gear_words(gears))
    highest = max(gear_words(gears).values())
    for line in lines:
        if line.startswith("BO_ 530 "):
            out += [row for k, names in enumerate(messages) for row in _message(k, names)]
        if line.startswith("VAL_TABLE_ Lever"):
            line = f"VAL_TABLE_ Lever {levers} ;"
        elif line.startswith("VAL_TABLE_ Gear"):
            line = f"VAL_TABLE_ Gear {words} ;"
        elif re.match(r"VAL_ \d+ (lever|lever_echo) ", line):
            line = f"{' '.join(line.split()[:3])} {levers} ;"
        elif re.match(r"VAL_ 530 gear_(actual|target) ", line):
            line = f"{' '.join(line.split()[:3])} {words} ;"
        elif re.match(r" SG_ gear_(actual|target) ", line):
            line = line.replace("[0|8]", f"[0|{highest}]")
        elif line.startswith("CM_ BO_ 530 "):
            out += _comments(messages)
        elif line.startswith('BA_ "GenMsgCycleTime" BO_ 530 '):
            out += [f'BA_ "GenMsgCycleTime" BO_ {PRESSURE_IDS[k]} 5;' for k in range(len(messages))]
        elif line.startswith('BA_ "E2EProfile" BO_ 530 '):
            out += [row for k in range(len(messages)) for row in _protection(k)]
        elif line.startswith("VAL_ 530 Mode_3 "):
            modes = line.split("Mode_3 ")[1]
            out += [f"VAL_ {PRESSURE_IDS[k]} Mode_P{k + 1} {modes}" for k in range(len(messages))]
        out.append(line.replace("for the ZF 4HP22", f"for the gearbox {box}"))
        if line.startswith(" SG_ program "):
            out.append(' SG_ tip : 45|2@1+ (1,0) [0|2] "" TCU')
        if line.startswith("VAL_ 273 program "):
            out.append('VAL_ 273 tip 2 "down" 1 "up" 0 "none" ;')
    return "\n".join(out) + "\n"


def _without_blocks(lines: list[str]) -> list[str]:
    """Without the signals left over from the messages taken out: those after a blank line or VAL_TABLE_."""
    kept: list[str] = []
    inside = False
    for line in lines:
        if line.startswith("BO_ "):
            inside = True
        elif not line.startswith(" SG_"):
            inside = False
        if line.startswith(" SG_") and not inside:
            continue
        kept.append(line)
    return kept


def _words(values: dict[str, int]) -> str:
    return " ".join(['15 "invalid"', *(f'{v} "{w}"' for w, v in sorted(values.items(), key=lambda i: -i[1]))])


def _message(k: int, names: list[str]) -> list[str]:
    lines = [f"BO_ {PRESSURE_IDS[k]} TCU_Pressure_{k + 1}: 8 TCU"]
    lines += [
        f' SG_ CRC_P{k + 1} : 0|8@1+ (1,0) [0|255] "" HIL',
        f' SG_ Alive_P{k + 1} : 8|4@1+ (1,0) [0|14] "" HIL',
        f' SG_ Mode_P{k + 1} : 12|4@1+ (1,0) [0|3] "" HIL',
    ]
    lines += [f' SG_ p_{n} : {16 + 12 * i}|12@1+ (0.005,0) [0|20] "bar" HIL' for i, n in enumerate(names)]
    return [*lines, ""]


def _comments(messages: list[list[str]]) -> list[str]:
    lines = []
    for k, names in enumerate(messages):
        lines.append(f'CM_ BO_ {PRESSURE_IDS[k]} "Commanded pressures of {", ".join(names)}.";')
        for name in names:
            meaning = "Pressure difference over the lock-up clutch, closing positive."
            lines.append(
                f"CM_ SG_ {PRESSURE_IDS[k]} p_{name} "
                f'"{meaning if name == "LU" else f"Gauge pressure at the piston of {name}."}";'
            )
    return lines


def _protection(k: int) -> list[str]:
    number = PRESSURE_IDS[k]
    return [
        f'BA_ "E2EProfile" BO_ {number} "AUTOSAR_P01_1A";',
        f'BA_ "E2EDataID" BO_ {number} {PRESSURE_DATA_IDS[k]};',
        f'BA_ "E2ECrcSignal" BO_ {number} "CRC_P{k + 1}";',
        f'BA_ "E2ECounterSignal" BO_ {number} "Alive_P{k + 1}";',
    ]
