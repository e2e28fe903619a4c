"""Every rule of protection between a rig and this process, both ways, and each single bit flipped.

The rig sends a message of each rule on one bus and receives the same messages on another. What it sends is judged here
by the independent code, and goes back with the checksum made anew by that code; from one frame of each message every
single bit is flipped, judged and sent as well, before the right one. The rig's counters say what it took and refused.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import can

from judgetools.lockstep import BATCH, PLACE, Lockstep, free_ports, message
from judgetools.rules import Field, Rule, Split, flipped

#: cycle of all messages, in ticks of 1 ms; cycles with right frames; the one with the flips
CYCLE, CYCLES, FLIPPED = 20, 20, 4
_HEAD = """VERSION ""
BU_: A B
"""
_ATTRIBUTES = """BA_DEF_ BO_ "GenMsgCycleTime" INT 0 65535;
BA_DEF_ SG_ "GenSigStartValue" FLOAT 0 1000;
BA_DEF_ BO_ "VFrameFormat" ENUM "StandardCAN","ExtendedCAN","r","J1939PG","r","r","r","r","r","r","r","r","r","r","StandardCAN_FD","ExtendedCAN_FD";
BA_DEF_DEF_ "GenMsgCycleTime" 0;
BA_DEF_DEF_ "GenSigStartValue" 0;
BA_DEF_DEF_ "VFrameFormat" "StandardCAN";
"""  # noqa: E501


@dataclass
class Row:
    """What came of a rule."""

    name: str
    rule: Rule
    #: frames of the rig, and those of them that are right for the independent code
    heard: int = 0
    right: int = 0
    #: right frames and flipped ones that went back; flipped ones that the independent code refuses
    returned: int = 0
    flips: int = 0
    refused: int = 0
    #: what the rig counted of what went back
    counted: dict[str, int] | None = None

    @property
    def passed(self) -> bool:
        """Taken and refused by both, to the frame."""
        good = self.heard == self.right == self.returned == CYCLES and self.refused == self.flips
        return good and self.counted == {"ok": self.returned, "crc": self.flips}


class Protected:
    """The rig with a message of each rule."""

    def __init__(self, folder: Path, powertrain: Path, rules: Mapping[str, Rule], every: int = 1) -> None:
        """every: of the bits of a frame, each so-manieth is flipped."""
        self.rows = {rule.can_id: Row(name, rule) for name, rule in rules.items()}
        assert len(self.rows) == len(rules), "two messages have one identifier"
        self.every = every
        ports = free_ports(2)
        self.ports = dict(zip(("sends", "takes"), ports, strict=True))
        (folder / "protected.dbc").write_text(self.database(random.Random(1)))
        # a message of checksum and counter alone has no signal, so the database names no receiver
        bare = [f"M{n}" for n, row in enumerate(self.rows.values()) if not row.rule.free and row.rule.crc is None]
        lines = ['[rig]\nname = "protected"', f'[plant]\npowertrain = "{powertrain}"',
                 '[inputs]\n"u1.f" = { value = 0.0 }\n"u2.f" = { value = 0.0 }', "[outputs]"]  # fmt: skip
        for n, row in enumerate(self.rows.values()):
            first = _signals(row.rule)
            if first:
                # what moves: a value of its own in each frame
                start, size = first[0]
                gain = (1 << size) / (1e-3 * CYCLE * CYCLES)
                lines.append(f'"sends.M{n}.v{start}" = {{ signal = "rig.time", gain = {gain} }}')
        for bus, node, port in (("sends", "A", ports[0]), ("takes", "B", ports[1])):
            lines += [f"[bus.{bus}]", 'database = "protected.dbc"', f'node = "{node}"', "restbus = true",
                      f"receive = {bare if node == 'B' else []}", PLACE.format(port=port)]  # fmt: skip
            for n, row in enumerate(self.rows.values()):
                lines += [f"[bus.{bus}.e2e.M{n}]", f'profile = "{row.rule.profile}"']
                if row.rule.crc is not None:
                    lines.append(f'crc_signal = "{" ".join(_parts("crc", row.rule.crc))}"')
                if row.rule.counter is not None:
                    lines.append(f'counter_signal = "{" ".join(_parts("alive", row.rule.counter))}"')
                lines += [f"{key} = {value}" for key, value in row.rule.settings.items()]
        self.rig = folder / "protected.toml"
        self.rig.write_text("\n".join(lines) + "\n")

    def database(self, rng: random.Random) -> str:
        """All messages, sent by A; signals begin with random values."""
        lines, more = [_HEAD], [_ATTRIBUTES]
        for n, row in enumerate(self.rows.values()):
            rule = row.rule
            number = rule.can_id | (1 << 31 if rule.can_id > 0x7FF else 0)
            lines.append(f"BO_ {number} M{n}: {rule.length} A")
            for name, split in (("crc", rule.crc), ("alive", rule.counter)):
                lines += [_line(part, place) for part, place in _parts(name, split).items()]
            more.append(f'BA_ "GenMsgCycleTime" BO_ {number} {CYCLE};')
            for start, size in _signals(rule):
                lines.append(_line(f"v{start}", (start, size, False)))
                more.append(f'BA_ "GenSigStartValue" SG_ {number} v{start} {rng.randrange(1 << size)};')
            if rule.length > 8:
                more.append(f'BA_ "VFrameFormat" BO_ {number} {15 if rule.can_id > 0x7FF else 14};')
        return "\n".join([*lines, *more]) + "\n"

    def run(self) -> list[Row]:
        """All cycles."""
        back: list[can.Message] = []
        with Lockstep(self.rig, self.ticks, self.ports) as rig:
            while rig.now < rig.ticks:
                due, back = back[:BATCH], back[BATCH:]
                for frame in rig.tick({"takes": due})["sends"]:
                    back += self.answer(frame)
            counts = rig.counts()
        assert not back, "frames are left over"
        names = {f"M{n}": row for n, row in enumerate(self.rows.values())}
        counted: dict[str, Counter[str]] = {name: Counter() for name in names}
        for _, bus, name, reason, n in counts:
            assert bus == "takes"
            counted[name][reason] += n
        for name, row in names.items():
            row.counted = dict(counted[name])
        return list(self.rows.values())

    @property
    def ticks(self) -> int:
        """Whole cycles, and time for what goes back."""
        flips = sum(len(row.rule.flips) for row in self.rows.values()) // self.every
        return CYCLE * CYCLES + 2 * CYCLE + flips // BATCH

    def answer(self, frame: can.Message) -> list[can.Message]:
        """What goes back for a frame of the rig."""
        row, data = self.rows[frame.arbitration_id], bytes(frame.data)
        if row.heard == CYCLES:
            return []
        row.heard += 1
        row.right += row.rule.right(data)
        out = []
        if row.heard == FLIPPED:
            for bit in row.rule.flips[:: self.every]:
                bad = flipped(data, bit)
                row.flips += 1
                row.refused += not row.rule.right(bad)
                out.append(bad)
        row.returned += 1
        out.append(row.rule.protect(data))
        return [message(frame.arbitration_id, one, fd=row.rule.length > 8) for one in out]


def _signals(rule: Rule) -> list[tuple[int, int]]:
    """(start, size) of the runs of free bits, none longer than a byte."""
    found: list[tuple[int, int]] = []
    for bit in rule.free:
        start, size = found[-1] if found else (-1, 0)
        if found and bit == start + size and bit % 8:
            found[-1] = (start, size + 1)
        else:
            found.append((bit, 1))
    return found


def _parts(name: str, split: Split | None) -> dict[str, Field]:
    """Signal -> place of the parts of a field that may be split; the least significant first."""
    if split is None:
        return {}
    if isinstance(split[0], int):
        return {name: split}  # type: ignore[dict-item]
    return {f"{name}_{k}": part for k, part in enumerate(split)}  # type: ignore[misc]


def _line(name: str, place: Field) -> str:
    start, size, big = place
    return f' SG_ {name} : {start}|{size}@{0 if big else 1}+ (1,0) [0|{(1 << size) - 1}] "" B'


def table(rows: list[Row]) -> list[list[Any]]:
    """Cells of the table."""
    return [
        [row.name, row.rule.profile, f"{row.right}/{row.heard}", f"{(row.counted or {}).get('ok', 0)}/{row.returned}",
         f"{row.refused}/{row.flips}", f"{(row.counted or {}).get('crc', 0)}/{row.flips}"]
        for row in rows
    ]  # fmt: skip
