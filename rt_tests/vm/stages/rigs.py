"""Rig files for the machine, made from the package's vcan rig: the whole car in the tick, the control unit outside."""

from __future__ import annotations

from pathlib import Path

#: identifiers of the request and of its answer
PING_ID, PONG_ID = 0x500, 0x501
_PING = f"""BO_ {PING_ID} Ping: 8 TCU
 SG_ ping_value : 0|16@1+ (1,0) [0|65535] "" HIL

BO_ {PONG_ID} Pong: 8 HIL
 SG_ pong_value : 0|16@1+ (1,0) [0|65535] "" TCU

CM_ "CAN between"""
_CYCLE = f'BA_ "GenMsgCycleTime" BO_ {PONG_ID} %d;\nBA_ "GenMsgCycleTime" BO_ 528 5;'


def _replace(text: str, old: str, new: str) -> str:
    if old not in text:
        raise ValueError(f"{old!r} is not in the file")
    return text.replace(old, new)


def write_rig(
    folder: Path,
    configs: Path,
    *,
    tick_s: float = 1e-3,
    priority: int = 80,
    record: str = '"all"',
    vehicle: bool = False,
    pong_ms: int = 1,
    ecu: bool = False,
    powertrain: str = "car_4hp22",
) -> Path:
    """A rig on vcan0 whose Pong message, sent every pong_ms, carries the value of the last Ping.

    vehicle: the road in a process of its own as in the package's file; else in the tick, so that nothing of Python but
    the control unit runs beside the loop. Another process starts the control unit: run with participants "none". ecu:
    it is the rig's, as in the package's file. powertrain: with its road, where there is no vehicle.
    """
    folder.mkdir(parents=True, exist_ok=True)
    database = (configs / "can" / "tcu_4hp22.dbc").read_text(encoding="utf-8")
    database = _replace(database, 'CM_ "CAN between', _PING)
    database = _replace(database, 'BA_ "GenMsgCycleTime" BO_ 528 5;', _CYCLE % pong_ms)
    (folder / "ping.dbc").write_text(database, encoding="utf-8")
    # another process starts the control unit, and what passes is asked by the measurement
    gone = ["gates"] if ecu else ["ecu", "gates"]
    lines = [
        f'extends = "{(configs / "rigs" / "vcan_4hp22.toml").resolve()}"',
        f'bus.powertrain.database = "{folder / "ping.dbc"}"',
        'outputs."Pong.pong_value" = "Ping.ping_value"',
        f"clock = {{ tick_s = {tick_s!r}, fifo_priority = {priority} }}",
        f"record.signals = {record}",
    ]
    if vehicle:
        lines.append("vehicle.start_timeout_s = 60.0")
    else:
        gone += ["vehicle", 'inputs."road.F"', 'inputs."road.F_hold"']
        lines.append(f'plant.powertrain = "{(configs / "powertrains" / f"{powertrain}.toml").resolve()}"')
    path = folder / "rig.toml"
    path.write_text("\n".join([*lines, f"without = {gone}", ""]), encoding="utf-8")
    return path
