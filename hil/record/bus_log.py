"""Frames on the bus with their times: record format, candump text log, and what python-can writes (BLF, ASC, MF4 ...).

One record is a packed `can_frame_t` of the kernels: 16 bytes of head, then the data rounded up to 8 bytes, at least 8.
So a classic frame takes 24 bytes, a CAN FD frame up to 80. The two upper bits of `flags` are the log's own: direction
and whether the rig's receive checks refused the frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.record.mf4 import start_of, write_frames
from torqueloop.hil.record.recording import Damage, RecordingError, StreamData, read_stream
from torqueloop.hil.record.run_data import _records, described_buses

if TYPE_CHECKING:
    import can


def _frame_dtype(n_data: int) -> np.dtype[Any]:
    return np.dtype(
        {
            "names": ["t_ns", "id", "dlc", "flags", "bus", "data"],
            "formats": ["<i8", "<u4", "u1", "u1", "u1", ("u1", (n_data,))],
            "offsets": [0, 8, 12, 13, 14, 16],
            "itemsize": 16 + n_data,
        }
    )


#: a record of at most 8 data bytes, and the longest one; `dlc` is the number of data bytes, `bus` the number of the bus
#: in the order of the rig file (described_buses)
FRAME_DTYPE = _frame_dtype(8)
FD_FRAME_DTYPE = _frame_dtype(64)
#: records of version 1: classic frames only, data at once behind the flags
_OLD_DTYPE = np.dtype(
    {
        "names": ["t_ns", "id", "dlc", "flags", "data"],
        "formats": ["<i8", "<u4", "u1", "u1", ("u1", (8,))],
        "offsets": [0, 8, 12, 13, 14],
        "itemsize": 24,
    }
)
_HEAD = 16
ID_EXTENDED = 0x80000000
FLAG_REMOTE = 0x01
FLAG_ERROR = 0x02
FLAG_FD = 0x04
#: FD: data at the second bit rate; the sender is error passive
FLAG_BRS = 0x08
FLAG_ESI = 0x10
#: sent by the rig (else received)
FLAG_TX = 0x80
#: received, but refused by the checks (counter, checksum, length, value)
FLAG_REFUSED = 0x40


def bus_header(channel: str, epoch_ns: int = 0, **more: Any) -> dict[str, Any]:
    """Header of the bus stream. `epoch_ns` + t_ns of a frame = time since 1970 (0: not known, in recordings of
    older versions)."""
    return {"kind": "bus", "version": 2, "channel": channel, "epoch_ns": epoch_ns, **more}


def pack_frame(
    t_ns: int, can_id: int, data: bytes, *, tx: bool, refused: bool = False, flags: int = 0, bus: int = 0
) -> bytes:
    """One record of the bus stream."""
    record = np.zeros((), FD_FRAME_DTYPE)
    record["t_ns"], record["id"], record["dlc"] = t_ns, can_id, len(data)
    record["bus"] = bus
    record["flags"] = flags | (FLAG_TX if tx else 0) | (FLAG_REFUSED if refused else 0)
    record["data"][: len(data)] = np.frombuffer(data, np.uint8)
    return record.tobytes()[: _packed(len(data))]


def _packed(n_data: int) -> int:
    """Bytes of the record of a frame with so many data bytes."""
    return _HEAD + max(8, (n_data + 7) & ~7)


def read_bus(run_dir: Path | str) -> tuple[NDArray[Any], dict[str, Any], list[Damage]]:
    """(frames, header, damage) of a run's bus log; frames as FRAME_DTYPE, or FD_FRAME_DTYPE when one has more data."""
    stream = read_stream(Path(run_dir) / "bus")
    if stream.header.get("kind") != "bus":
        raise RecordingError(f"{run_dir}/bus: holds a recording of kind {stream.header.get('kind')!r}, not 'bus'")
    if stream.header.get("version") == 1:
        old, _ = _records(stream, _OLD_DTYPE)
        frames = np.zeros(len(old), FRAME_DTYPE)
        for name in old.dtype.names or ():
            frames[name] = old[name]
    else:
        frames = unpack_frames(stream)
    names, _ = described_buses(stream.header, f"{run_dir}/bus")
    if len(frames) and (most := int(frames["bus"].max())) >= max(1, len(names)):
        raise RecordingError(f"{run_dir}/bus: a frame is of bus {most}, and the head names {max(1, len(names))}")
    return frames, stream.header, stream.damage


def count_frames(payload: bytes) -> int:
    """Whole records of a chunk."""
    frames = np.frombuffer(payload, FRAME_DTYPE, len(payload) // FRAME_DTYPE.itemsize)
    if not (frames["dlc"] > 8).any():
        return len(frames)
    count = at = 0
    while at + _HEAD <= len(payload):
        at += _packed(payload[at + 12])
        count += at <= len(payload)
    return count


def unpack_frames(stream: StreamData) -> NDArray[Any]:
    """The records of a bus stream; bytes at the end of a chunk that are no whole record are passed over."""
    frames, _ = _records(stream, FRAME_DTYPE)
    if not (frames["dlc"] > 8).any():
        # a longer record shows here with its own length, so there is none
        return frames
    parts = []
    for chunk in stream.chunks:
        at = 0
        while at + _HEAD <= len(chunk):
            size = _packed(chunk[at + 12])
            if size > FD_FRAME_DTYPE.itemsize or at + size > len(chunk):
                break
            parts.append(chunk[at : at + size].ljust(FD_FRAME_DTYPE.itemsize, b"\0"))
            at += size
    return np.frombuffer(b"".join(parts), FD_FRAME_DTYPE)


def plain_frames(frames: NDArray[Any]) -> Iterator[tuple[int, int, int, int, bytes]]:
    """Time [ns], identifier, flags, bus and data of each frame, in the order of their times. Columns are made plain as
    a whole: a line or a message of python-can takes less than half of the time that it takes from a record of NumPy."""
    frames = frames[np.argsort(frames["t_ns"], kind="stable")]
    columns = (frames[name].tolist() for name in ("t_ns", "id", "flags", "bus", "dlc"))
    data, width = frames["data"].tobytes(), frames["data"].shape[1]
    for k, (t_ns, can_id, flags, bus, dlc) in enumerate(zip(*columns, strict=True)):
        yield t_ns, can_id, flags, bus, data[k * width : k * width + min(dlc, width)]


def candump_lines(frames: NDArray[Any], channels: Sequence[str], epoch_ns: int = 0) -> Iterable[str]:
    """Lines as `candump -l` writes them: `(t) channel id#data`, without the direction that newer versions can add and
    Wireshark does not read. channels: name of each bus."""
    names = [channel.replace(" ", "_") or "can" for channel in channels]
    for t_ns, can_id, flags, bus, held in plain_frames(frames):
        t_us, rest = divmod(t_ns + epoch_ns, 1000)
        t_us += rest >= 500
        text = f"{can_id & 0x1FFFFFFF:08X}" if can_id & ID_EXTENDED else f"{can_id & 0x7FF:03X}"
        data = f"R{len(held)}" if flags & FLAG_REMOTE else held.hex().upper()
        if flags & FLAG_FD:
            # as canutils: the flags BRS (1) and ESI (2) between ## and the data
            data = f"#{(flags >> 3) & 3:X}{data}"
        if flags & FLAG_ERROR:
            text = f"{0x20000000 | (can_id & 0x1FFFFFFF):08X}"
        yield f"({t_us // 1_000_000}.{t_us % 1_000_000:06d}) {names[bus]} {text}#{data}"


def write_candump(run_dir: Path | str, target: Path | str | IO[str]) -> int:
    """Export the bus log of a run as text that can-utils and python-can read (.log). Returns the number of frames.
    A single bus is called as its channel, several by their names in the rig file."""
    frames, header, _ = read_bus(run_dir)
    names, epoch_ns = described_buses(header, f"{run_dir}/bus")
    channels = names if len(names) > 1 else [str(header.get("channel", "can"))]
    lines = candump_lines(frames, channels, epoch_ns)
    if isinstance(target, (str, Path)):
        with open(target, "w", encoding="ascii", errors="replace") as file:
            file.writelines(line + "\n" for line in lines)
    else:
        target.writelines(line + "\n" for line in lines)
    return len(frames)


#: endings of bus logs that python-can writes
BUS_FORMATS = ("blf", "asc", "mf4", "trc", "log", "csv")


def messages(frames: NDArray[Any], epoch_ns: int = 0, first_channel: int = 0) -> Iterator[can.Message]:
    """Frames as python-can knows them, in the order of their times; timestamp [s] with the epoch added."""
    import can

    for t_ns, can_id, flags, bus, held in plain_frames(frames):
        remote = bool(flags & FLAG_REMOTE)
        yield can.Message(
            timestamp=(t_ns + epoch_ns) * 1e-9,
            arbitration_id=can_id & (0x1FFFFFFF if can_id & ID_EXTENDED else 0x7FF),
            is_extended_id=bool(can_id & ID_EXTENDED),
            is_remote_frame=remote,
            is_error_frame=bool(flags & FLAG_ERROR),
            is_fd=bool(flags & FLAG_FD),
            bitrate_switch=bool(flags & FLAG_BRS),
            error_state_indicator=bool(flags & FLAG_ESI),
            is_rx=not flags & FLAG_TX,
            dlc=len(held),
            data=None if remote else held,
            channel=first_channel + bus,
        )


def write_bus_log(run_dir: Path | str, target: Path | str) -> int:
    """Export the bus log of a run through python-can's writer for the ending: BLF, ASC, MF4 (ASAM bus logging), TRC ...
    Each bus is a channel of its own, in the order of the rig file; CSV, which has no channels, is written once a bus:
    bus.NAME.csv. Returns the number of frames; ConfigError for another ending, MissingExtraError where MF4 needs
    asammdf."""
    target = Path(target)
    if target.suffix.removeprefix(".") not in BUS_FORMATS:
        allowed = ", ".join(BUS_FORMATS)
        raise ConfigError("no bus log ends like this: {value}", key="bus_log", value=target.name, allowed=allowed)
    frames, header, _ = read_bus(run_dir)
    if target.suffix == ".mf4":
        start, start_ns = start_of(run_dir)
        # ASAM counts channels from 1; python-can's other writers add the 1 themselves
        write_frames(target, start, messages(frames, -start_ns, first_channel=1))
        return len(frames)
    names, epoch_ns = described_buses(header, f"{run_dir}/bus")
    if target.suffix == ".csv" and len(names) > 1:
        for k, name in enumerate(names):
            _log(target.with_name(f"{target.stem}.{name}.csv"), messages(frames[frames["bus"] == k], epoch_ns))
    else:
        _log(target, messages(frames, epoch_ns))
    return len(frames)


def _log(target: Path, found: Iterable[can.Message]) -> None:
    import can

    with can.Logger(str(target)) as writer:
        for message in found:
            writer.on_message_received(message)
