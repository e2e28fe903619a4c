"""A rig that is the rest of three buses: 200 messages, each with SAE J1850 checksum and counter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

#: messages on each bus, and their cycle times in turn [ms]
SIZES = (70, 70, 60)
CYCLES_MS = (10, 20, 50, 100, 200)


def frames_per_s() -> list[float]:
    """Frames a second that each bus is due."""
    return [sum(1e3 / CYCLES_MS[i % len(CYCLES_MS)] for i in range(n)) for n in SIZES]


def write_restbus(folder: Path, powertrain: Path, places: Sequence[str] = ("", "", "")) -> Path:
    """The rig file with its databases. places: more lines of [bus.NAME], where each bus is."""
    text = f'[rig]\nname = "restbus"\n[plant]\npowertrain = "{powertrain}"\n'
    text += '[inputs]\n"u1.f" = { value = 0.0 }\n"u2.f" = { value = 0.0 }\n'
    for k, n in enumerate(SIZES):
        lines = ['VERSION ""', "BU_: A TCU"]
        for i in range(n):
            lines.append(f'BO_ {256 + i} M{i}: 8 A\n SG_ crc : 0|8@1+ (1,0) [0|0] "" TCU')
            lines.append(' SG_ alive : 8|4@1+ (1,0) [0|0] "" TCU')
            lines += [f' SG_ v{j} : {16 + 8 * j}|8@1+ (1,0) [0|0] "" TCU' for j in range(6)]
        (folder / f"b{k}.dbc").write_text("\n".join(lines) + "\n")
        cycles = ", ".join(f"M{i} = {CYCLES_MS[i % len(CYCLES_MS)] / 1e3}" for i in range(n))
        text += (
            f'[bus.b{k}]\ndatabase = "b{k}.dbc"\nnode = "A"\nrestbus = true\ncycle_s = {{ {cycles} }}\n{places[k]}\n'
        )
        for i in range(n):
            text += f'[bus.b{k}.e2e.M{i}]\nprofile = "SAE_J1850"\ncrc_signal = "crc"\ncounter_signal = "alive"\n'
    (folder / "rig.toml").write_text(text)
    return folder / "rig.toml"
