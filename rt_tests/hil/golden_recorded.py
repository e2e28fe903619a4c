"""A run directory as it lies on disk, read without torqueloop: the facts that the golden runs compute with.

Streams (docs/export.md and hil/record describe the same format): a file begins with the head "TLC1", u32 length,
u32 checksum, then a header in JSON; then come chunks "TLCK", u32 length, u32 checksum, u32 number, payload. Signals
stand by columns in a chunk; frames of the buses one after the other.
"""

from __future__ import annotations

import csv
import json
import struct
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import cantools
import numpy as np
from cantools.database.can import Message

Array = np.ndarray[Any, Any]
#: columns in front of the signals, in their order
FIXED = ("tick", "t_wall_ns", "wake_lateness_ns", "compute_ns", "status", "flags")
#: of a frame: sent by the rig; refused by its checks; identifier of 29 bits
SENT, REFUSED, EXTENDED = 0x80, 0x40, 0x80000000


def chunks(folder: Path) -> tuple[dict[str, Any], list[bytes]]:
    """(header, payloads) of a stream; its end mark has no bytes and is left out."""
    header: dict[str, Any] = {}
    found = []
    for file in sorted(folder.glob("*.tlc")):
        data = file.read_bytes()
        magic, size, _ = struct.unpack_from("<4sII", data)
        assert magic == b"TLC1"
        header = header or json.loads(data[12 : 12 + size])
        at = 12 + size
        while at < len(data):
            magic, size, _, _ = struct.unpack_from("<4sIII", data, at)
            assert magic == b"TLCK"
            if size:
                found.append(data[at + 16 : at + 16 + size])
            at += 16 + size
    return header, found


def signals_of(folder: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """(header, column by name)."""
    header, payloads = chunks(folder)
    names = [*FIXED, *header["names"]]
    parts: dict[str, list[Array]] = {name: [] for name in names}
    for payload in payloads:
        n, n_out = struct.unpack_from("<II", payload)
        assert n_out == len(header["names"])
        form = payload[8 : 8 + len(names)]
        at = (8 + len(names) + 7) // 8 * 8
        for kind, number in (("constant", 0), ("<i1", 1), ("<f4", 2), ("<f8", 3)):
            for k, name in enumerate(names):
                if form[k] != number:
                    continue
                whole = "<f8" if k >= len(FIXED) else "<i8"
                dtype = np.dtype(whole if number in (0, 3) else kind)
                count = 1 if number == 0 else n
                column = np.frombuffer(payload, dtype, count, at).astype(whole)
                parts[name].append(np.broadcast_to(column, n) if number == 0 else column)
                at += count * dtype.itemsize
    return header, {name: np.concatenate(values) for name, values in parts.items()}


@dataclass(frozen=True)
class Frame:
    """A frame on a bus."""

    t_ns: int
    can_id: int
    data: bytes
    flags: int
    bus: str

    @property
    def sent(self) -> bool:
        """By the rig."""
        return bool(self.flags & SENT)


def frames_of(folder: Path) -> list[Frame]:
    """The recorded frames, in the order of the recording."""
    header, payloads = chunks(folder)
    names = [bus["name"] for bus in header["buses"]]
    found = []
    for payload in payloads:
        at = 0
        while at < len(payload):
            t_ns, can_id, length, flags, bus = struct.unpack_from("<qIBBB", payload, at)
            found.append(Frame(t_ns, can_id, payload[at + 16 : at + 16 + length], flags, names[bus]))
            at += 16 + max(8, (length + 7) // 8 * 8)
    return found


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Tables of `above` over those of `below`, key by key."""
    found = dict(below)
    for key, value in above.items():
        old = found.get(key)
        found[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return found


@dataclass
class Recorded:
    """A run: signals, frames, files."""

    path: Path
    info: dict[str, Any]
    signals: dict[str, Array]
    units: dict[str, str]
    tick_s: float
    frames: list[Frame]
    #: the rig file, over those it extends
    rig: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path) -> Recorded:
        header, signals = signals_of(path / "signals")
        info = json.loads((path / "run.json").read_text())
        run = cls(path, info, signals, dict(zip(header["names"], header["units"], strict=True)), header["tick_s"],
                  frames_of(path / "bus"))  # fmt: skip
        run.rig = run.layers(path / info["rig_file"])
        return run

    def layers(self, file: Path) -> dict[str, Any]:
        """A file over those it extends."""
        own = tomllib.loads(file.read_text())
        below = own.pop("extends", None)
        return own if below is None else merged(self.layers(self.file(below)), own)

    def file(self, name: str) -> Path:
        """A file among the copies of the inputs, by its path or bare name."""
        stem = Path(name).name
        found = [f for f in sorted((self.path / "config").rglob("*")) if stem in (f.name, f.stem) and f.is_file()]
        assert found, name
        return next((f for f in found if f.name == stem), found[0])

    def __getitem__(self, name: str) -> Array:
        return self.signals[name]

    def __contains__(self, name: str) -> bool:
        return name in self.signals

    @cached_property
    def t(self) -> Array:
        """End of each tick [s]."""
        return (self["tick"] + 1) * self.tick_s

    @property
    def stats(self) -> dict[str, Any]:
        """The counters the run left."""
        return dict(self.info["stats"])

    @cached_property
    def modes(self) -> list[dict[str, str]]:
        """Rows of modes.csv."""
        with open(self.path / "modes.csv", newline="") as file:
            return list(csv.DictReader(file))

    @cached_property
    def ratios(self) -> dict[str, float]:
        """Ratio by gear, from the file that has components as well."""
        for file in sorted((self.path / "config").rglob("*.toml")):
            data = tomllib.loads(file.read_text())
            if "gears" in data and ("components" in data or "gearbox" in data):
                return {g: float(v["ratio"]) for g, v in data["gears"].items() if "ratio" in v}
        raise AssertionError("no gears")

    @cached_property
    def databases(self) -> dict[str, dict[int, Message]]:
        """Messages of each bus by identifier as recorded, read by cantools."""
        found = {}
        for bus, table in self.rig["bus"].items():
            database: Any = cantools.database.load_file(self.file(table["database"]), strict=False)
            found[bus] = {m.frame_id | (EXTENDED if m.is_extended_frame else 0): m for m in database.messages}
        return found

    def on(self, bus: str) -> Iterator[tuple[Frame, Message]]:
        """Frames of a bus with their messages; others are none of the database's."""
        messages = self.databases[bus]
        for frame in self.frames:
            if frame.bus == bus:
                yield frame, messages[frame.can_id]
