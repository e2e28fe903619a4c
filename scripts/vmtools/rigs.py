"""Rig files for the machine, made from the package's vcan rig: the whole car in the tick, the control unit outside."""

from __future__ import annotations

import re
from pathlib import Path

#: identifiers of the request and of its answer
PING_ID, PONG_ID = 0x500, 0x501
_PING = f"""BO_ {PING_ID} Ping: 8 TCU
 SG_ ping_value : 0|16@1+ (1,0) [0|65535] "" HIL

BO_ {PONG_ID} Pong: 8 HIL
 SG_ pong_value : 0|16@1+ (1,0) [0|65535] "" TCU

CM_ "CAN between"""
_CYCLE = f'BA_ "GenMsgCycleTime" BO_ {PONG_ID} 1;\nBA_ "GenMsgCycleTime" BO_ 528 5;'


def _replace(text: str, old: str, new: str) -> str:
    if old not in text:
        raise ValueError(f"{old!r} is not in the file")
    return text.replace(old, new)


def _absolute(text: str, folder: Path) -> str:
    return re.sub(r'"(\.\./[\w/.]+)"', lambda m: f'"{(folder / m[1]).resolve()}"', text)


def write_rig(
    folder: Path,
    configs: Path,
    *,
    tick_s: float = 1e-3,
    priority: int = 80,
    record: str = '"all"',
    vehicle: bool = False,
) -> Path:
    """A rig on vcan0 whose Pong message, sent every millisecond, carries the value of the last Ping.

    vehicle: the road in a process of its own as in the package's file; else in the tick, so that nothing of Python but
    the control unit runs beside the loop. Another process starts the control unit: run with peers "none".
    """
    folder.mkdir(parents=True, exist_ok=True)
    database = (configs / "can" / "tcu_4hp22.dbc").read_text(encoding="utf-8")
    database = _replace(database, 'CM_ "CAN between', _PING)
    database = _replace(database, 'BA_ "GenMsgCycleTime" BO_ 528 5;', _CYCLE)
    (folder / "ping.dbc").write_text(database, encoding="utf-8")
    text = (configs / "rigs" / "vcan_4hp22.toml").read_text(encoding="utf-8")
    text = _replace(text, '"../can/tcu_4hp22.dbc"', f'"{folder / "ping.dbc"}"')
    text = _replace(text, "[outputs]\n", '[outputs]\n"Pong.pong_value" = "Ping.ping_value"\n')
    text = _replace(text, "tick_s = 1e-3", f"tick_s = {tick_s!r}")
    text = _replace(text, "fifo_priority = 80", f"fifo_priority = {priority}")
    text = _replace(text, 'signals = "all"', f"signals = {record}")
    text = re.sub(r"^\[gates\].*?(?=^\[)", "", text, flags=re.M | re.S)
    text = re.sub(r"^\[tcu\].*?(?=^\[|^# Outside)", "", text, flags=re.M | re.S)
    if not vehicle:
        text = _replace(text, "car_4hp22_rig.toml", "car_4hp22.toml")
        text = re.sub(r'^"road\..*\n', "", text, flags=re.M)
        text = re.sub(r"^\[vehicle\].*?(?=^\[|^# Outside)", "", text, flags=re.M | re.S)
    else:
        text = _replace(text, "[vehicle]\n", "[vehicle]\nstart_timeout_s = 60.0\n")
    path = folder / "rig.toml"
    path.write_text(_absolute(text, configs / "rigs"), encoding="utf-8")
    return path
