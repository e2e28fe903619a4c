"""The desk rig of the 4HP22 with a second bus on which it sends 800 numbers of its model: a thousand signals that move.

Also run by scripts/bench/watch_cost.py.
"""

from __future__ import annotations

from pathlib import Path

#: messages of the bus, CAN FD with 64 bytes, and numbers (IEEE 754, 32 bit) in each
MESSAGES, NUMBERS = 50, 16
#: what they are: signals of the model that change in every tick of a drive
SOURCES = ("engine.w", "turbine.w", "car.v", "car.a", "engine.tau", "C4.w_rel", "C7.w_rel", "out.w")


def many_signals(folder: Path, desk: Path) -> Path:
    """The rig file, written to `folder` with its database."""
    lines = ['VERSION ""', "BU_: A B"]
    outputs = []
    for k in range(MESSAGES):
        lines.append(f"BO_ {256 + k} M{k}: 64 A")
        lines += [f' SG_ v{j} : {32 * j}|32@1- (1,0) [0|0] "" B' for j in range(NUMBERS)]
        for j in range(NUMBERS):
            outputs.append(f'"M{k}.v{j}" = {{ signal = "{SOURCES[(k + j) % len(SOURCES)]}", gain = {1 + j / 64} }}')
    lines.append('BA_DEF_ BO_ "VFrameFormat" ENUM "StandardCAN","ExtendedCAN","r","J1939PG"' + ',"r"' * 10)
    lines[-1] += ',"StandardCAN_FD","ExtendedCAN_FD";'
    lines.append('BA_DEF_DEF_ "VFrameFormat" "StandardCAN_FD";')
    lines += [f"SIG_VALTYPE_ {256 + k} v{j} : 1;" for k in range(MESSAGES) for j in range(NUMBERS)]
    (folder / "many.dbc").write_text("\n".join(lines) + "\n", encoding="ascii")
    text = f'extends = "{desk}"\n[rig]\nname = "many_signals"\n'
    cycles = ", ".join(f"M{k} = 0.01" for k in range(MESSAGES))
    text += f'[bus.many]\ndatabase = "many.dbc"\nnode = "A"\nport = 43190\ncycle_s = {{ {cycles} }}\n'
    text += '[ecu.tcu]\nbus = "powertrain"\n[outputs]\n'
    path = folder / "many.toml"
    path.write_text(text + "\n".join(outputs) + "\n", encoding="ascii")
    return path
