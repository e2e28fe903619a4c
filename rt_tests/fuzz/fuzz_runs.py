"""Run directories and checkpoints, damaged and forged: with right checksums as well, so that what is behind them is
read."""

from __future__ import annotations

import hashlib
import io
import json
import random
import struct
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgpack
import mutate
import numpy as np

import torqueloop
from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.control.messages import RequestError
from torqueloop.hil.record.bus_log import (
    FLAG_ERROR,
    FLAG_FD,
    FLAG_REMOTE,
    bus_header,
    count_frames,
    pack_frame,
    read_bus,
    write_bus_log,
    write_candump,
)
from torqueloop.hil.record.driven import save_driven
from torqueloop.hil.record.pieces import Pieces, SignalPieces
from torqueloop.hil.record.recording import chunk_bytes, file_head_bytes
from torqueloop.hil.record.run_data import modes_from_signals, read_modes, read_signals, signal_header
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.report.write import write_report
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.online import replayed_journal
from torqueloop.hil.rig.online.checkpoint import MAGIC
from torqueloop.hil.rig.online.rig_control import RigControl
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig

DESK = Path(torqueloop.__file__).parent / "configs" / "rigs" / "desk_4hp22.toml"
#: files of a run directory that a stranger may have changed
CHANGED = (
    "run.json",
    "signals/000001.tlc",
    "inputs/000001.tlc",
    "bus/000001.tlc",
    "modes.csv",
    "control/journal.jsonl",
)
SECONDS = 0.03


@cache
def desk_run() -> Path:
    """A short run."""
    out = Path(tempfile.mkdtemp(prefix="torqueloop-fuzz-")) / "run"
    run_rig(DESK, RunSpec("virtual", SECONDS, out))
    return out


# --- recordings -----------------------------------------------------------------------------------------------------


def recordings() -> list[bytes]:
    """Name of the file and its new content; the rest of the run is as it was."""
    return [_entry(name, (desk_run() / name).read_bytes()) for name in CHANGED if (desk_run() / name).is_file()]


def _entry(name: str, content: bytes) -> bytes:
    return name.encode() + b"\0" + content


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A file of the run with other bytes; a recording often with checksums that are right for them."""
    name, _, content = data.partition(b"\0")
    if not name.endswith(b".tlc"):
        return name + b"\0" + mutate.text(content, rng)
    if rng.random() < 0.5 and len(content) > 12:
        return name + b"\0" + _resealed(content, rng)
    return name + b"\0" + mutate.binary(content, rng)


def _resealed(content: bytes, rng: random.Random) -> bytes:
    """Header and chunks changed inside, their lengths and checksums made right."""
    magic, length, _ = struct.unpack_from("<4sII", content)
    header, at, out = content[12 : 12 + length], 12 + length, io.BytesIO()
    if rng.random() < 0.4:
        header = mutate.text(header.replace(b",", b",\n"), rng)
    out.write(struct.pack("<4sII", magic, len(header), zlib.crc32(header)) + header)
    while at + 16 <= len(content):
        mark, n, _, seq = struct.unpack_from("<4sIII", content, at)
        payload = content[at + 16 : at + 16 + n]
        at += 16 + n
        if payload and rng.random() < 0.7:
            payload = mutate.binary(payload, rng)
        out.write(struct.pack("<4sIII", mark, len(payload), zlib.crc32(payload, zlib.crc32(struct.pack(
            "<II", seq, len(payload)))), seq) + payload)  # fmt: skip
    return out.getvalue()


def read_recording(data: bytes) -> None:
    """`report` and `replay` of the run with this file."""
    name, _, content = data.partition(b"\0")
    path = name.decode("utf-8", "replace")
    if path not in CHANGED:
        return
    with tempfile.TemporaryDirectory(prefix="torqueloop-fuzz-") as folder:
        run = Path(folder) / "run"
        _copy(desk_run(), run)
        (run / path).parent.mkdir(exist_ok=True)
        (run / path).write_bytes(content)
        for read in (lambda: write_report(run, html=len(content) % 32 == 0), lambda: replay(run)):
            try:
                read()
            except TorqueloopError as error:
                assert str(error)


@cache
def _streams() -> Path:
    """The files of a run that hold streams, and nothing else."""
    folder = Path(tempfile.mkdtemp(prefix="torqueloop-fuzz-"))
    for name in (*CHANGED, "run.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        if (desk_run() / name).is_file():
            (folder / name).write_bytes((desk_run() / name).read_bytes())
    return folder


def _stream(header: dict[str, Any], *payloads: bytes) -> bytes:
    return file_head_bytes(header) + b"".join(chunk_bytes(n, payload) for n, payload in enumerate(payloads))


def streams() -> list[bytes]:
    """The files of the run, and streams of other forms: signals by rows, FD frames, frames of version 1, a journal."""
    rows = np.zeros(5, signal_dtype(2))
    rows["tick"] = (0, 1, 2, 5, 6)
    kinds = ((0x210, 8, 0), (0x1ABCDEF | 1 << 31, 64, FLAG_FD), (1, 0, FLAG_REMOTE), (2, 0, FLAG_ERROR))
    frames = [
        pack_frame(k, can_id, bytes(n), tx=k % 2 == 0, flags=flags, bus=k % 2)
        for k, (can_id, n, flags) in enumerate(kinds)
    ]
    head = signal_header(["a", "b"], ["m", "1"], 1e-3)
    two = bus_header("can0", 10**18, buses=[{"name": "a"}, {"name": "b"}])
    old = struct.pack("<qIBB8s", 5, 0x210, 8, 0, bytes(8)).ljust(24, b"\0")
    entries = ({"reference": 1, "parameters": {"car.m": 1600.0}}, {"reference": 2, "parameters": None, "links": True})
    return [
        *recordings(),
        _entry("signals/000001.tlc", _stream(head, rows.tobytes(), b"", rows.tobytes())),
        _entry("signals/000001.tlc", _stream({**head, "every": 5}, rows.tobytes()[:-3])),
        _entry("bus/000001.tlc", _stream(two, b"".join(frames), frames[0] + frames[1][:20], b"")),
        _entry("bus/000001.tlc", _stream({**two, "version": 1}, old * 3)),
        _entry("control/journal.jsonl", "\n".join(map(json.dumps, entries)).encode()),
    ]


def read_streams(data: bytes) -> None:
    """Everything that reads the file: as a whole, in pieces, at its end, as another log. Whole and pieces agree."""
    name, _, content = data.partition(b"\0")
    path = name.decode("utf-8", "replace")
    if path not in CHANGED:
        return
    folder = _streams()
    kept = (folder / path).read_bytes() if (folder / path).exists() else b""
    (folder / path).write_bytes(content)
    try:
        for read in READ_OF[path.split("/")[0]]:
            try:
                read(folder)
            except TorqueloopError as error:
                assert str(error)
    finally:
        (folder / path).write_bytes(kept)


def _signals(folder: Path) -> None:
    signals = read_signals(folder)
    whole = [(name, signals[name]) for name in signals.names]
    pieces = list(SignalPieces.of(folder))
    assert sum(map(len, pieces)) == signals.n
    if pieces:
        found = np.concatenate(pieces)
        assert all(np.array_equal(found["out"][:, k], x, equal_nan=True) for k, (_, x) in enumerate(whole))
    modes_from_signals(signals)
    signals.between(0.0, 0.01)


def _bus(folder: Path) -> None:
    frames, _, _ = read_bus(folder)
    assert write_candump(folder, io.StringIO()) == len(frames)
    for ending in ("blf", "csv"):
        write_bus_log(folder, folder / f"log.{ending}")


def _counted(folder: Path) -> None:
    assert sum(map(count_frames, Pieces.of(folder / "bus"))) >= 0


#: first part of the path of a file -> what reads it
READ_OF: dict[str, tuple[Callable[[Path], object], ...]] = {
    "signals": (_signals,),
    "bus": (_bus, _counted),
    "inputs": (lambda folder: list(Pieces.of(folder / "inputs")),),
    "modes.csv": (lambda folder: read_modes(folder / "modes.csv"),),
    "control": (lambda folder: replayed_journal._read(folder / "control" / "journal.jsonl"),),
    "run.json": (lambda folder: save_driven(folder, folder / "driven.toml"),),
}


def _copy(source: Path, target: Path) -> None:
    with io.BytesIO() as stream:
        with tarfile.open(fileobj=stream, mode="w") as tar:
            tar.add(source, ".")
        stream.seek(0)
        with tarfile.open(fileobj=stream) as tar:
            tar.extractall(target, filter="data")


# --- checkpoints ----------------------------------------------------------------------------------------------------


class _Rig:
    """A rig before its first tick, made anew for each checkpoint that is read."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="torqueloop-fuzz-"))
        self.plan = load_plan(DESK)
        self.control()

    def control(self) -> RigControl:
        """The rig by name."""
        self.parts = build(self.plan, 1.0)
        return RigControl(self.plan, self.parts, self.folder, real=False)


@cache
def _rig() -> _Rig:
    return _Rig()


@cache
def _checkpoint() -> bytes:
    """A checkpoint of the rig as it is after some ticks."""
    from torqueloop.cython_kernels.tick.control import Image
    from torqueloop.hil.rig.online.checkpoint import capture, write

    rig = _rig()
    control = rig.control()
    rig.parts.rig.begin(0)
    rig.parts.rig.ticks(20, 0)
    image = Image(rig.parts.rig.image_sizes())
    control.control.post([], -1, target=image)
    rig.parts.rig.ticks(1, 0)
    path = rig.folder / "seed.tlc"
    write(path, capture(rig.plan, image, {"car.m": 1600.0}, {"vehicle": None, "units": {}}))
    return path.read_bytes()


def checkpoints() -> list[bytes]:
    """One that is right."""
    return [_checkpoint()]


def forged(data: bytes, rng: random.Random) -> bytes:
    """Another content under a right checksum, most of the time."""
    head = len(MAGIC) + 32
    if rng.random() < 0.15:
        return mutate.binary(data, rng)
    body: bytes = data[head:]
    try:
        content: dict[str, Any] = msgpack.unpackb(body, strict_map_key=False)
        key = rng.choice([*content, "image", "image", "image", "parameters"])
        if key == "image":
            content["image"] = mutate.binary(bytes(content["image"]), rng)
        else:
            odd: list[Any] = [
                None,
                -1,
                2**63,
                "",
                b"",
                [],
                {},
                {"car.m": float("nan")},
                {"car.m": "x"},
                {"x": 1.0},
                {"car.m": -5.0},
            ]
            content[key] = rng.choice(odd)
        body = bytes(msgpack.packb(content))
    except Exception:  # not a map any more
        body = mutate.binary(body, rng)
    return MAGIC + hashlib.sha256(body).digest() + body


def read_checkpoint(data: bytes) -> None:
    """`run --from` of it: refused by name, or some ticks from there."""
    rig = _rig()
    control = rig.control()
    path = rig.folder / "given.tlc"
    path.write_bytes(data)
    try:
        control.checkpoints.start_from(path)
        rig.parts.rig.begin(0)
        control.checkpoints.between()
        rig.parts.rig.ticks(5, 0)
    except TorqueloopError as error:
        assert str(error) and not isinstance(error, RequestError)
    finally:
        for kept in (rig.folder / "control").glob("restored-*"):
            kept.unlink()
        (rig.folder / "control" / "journal.jsonl").unlink(missing_ok=True)
