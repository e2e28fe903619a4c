"""The CAN trace of the live page: of each message on a bus the newest frame, its bytes that change, its signals.

Read from the log that the rig's recorder writes into the run directory, half a second at a time: neither the tick nor
the control channel do anything for it. It needs the run directory, so a rig on another computer has no trace here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.hil.can.load import read_database
from torqueloop.hil.record.bus_log import FLAG_ERROR, FLAG_REFUSED, FLAG_REMOTE, FLAG_TX, ID_EXTENDED, unpack_frames
from torqueloop.hil.record.recording import StreamData
from torqueloop.hil.record.stream_tail import StreamTail

#: rows of the trace; a bus that floods with other identifiers has no more of them
ROWS_MAX = 500


class Trace:
    """Frames of a run that goes on. databases: (name, file) of each bus, in the order of the bus log."""

    def __init__(self, run_dir: Path, databases: Mapping[str, str]) -> None:
        self._tail = StreamTail(run_dir / "bus")
        self._names = list(databases)
        self._databases = [read_database(Path(file)) for file in databases.values()]
        #: (bus, identifier with bit 31, sent by the rig) -> what was seen of it
        self._known: dict[tuple[int, int, bool], _Seen] = {}
        #: frames of identifiers beyond ROWS_MAX
        self.left_out: int = 0

    def rows(self) -> list[dict[str, Any]]:
        """Those of which frames have come since the last call."""
        frames = unpack_frames(StreamData({}, self._tail.new()))
        data = np.zeros((len(frames), 64), np.uint8)
        data[:, : frames["data"].shape[1]] = frames["data"]
        sent = (frames["flags"] & FLAG_TX) != 0
        keys = np.stack([frames["bus"].astype(np.int64), frames["id"].astype(np.int64), sent.astype(np.int64)], 1)
        found = []
        for key in np.unique(keys, axis=0).tolist():
            here = (keys == key).all(1)
            mine = frames[here]
            row = (key[0], key[1], bool(key[2]))
            if row not in self._known and len(self._known) >= ROWS_MAX:
                self.left_out += len(mine)
                continue
            found.append(self._row(row, mine, data[here]))
        return found

    def _row(self, key: tuple[int, int, bool], frames: Any, bytes_: NDArray[np.uint8]) -> dict[str, Any]:
        bus, raw_id, sent = key
        seen = self._known.setdefault(key, _Seen())
        last = frames[-1]
        changed = seen.take(frames, bytes_)
        can_id, flags, data = raw_id & 0x1FFFFFFF, int(last["flags"]), bytes(bytes_[-1, : int(last["dlc"])])
        row = {
            "bus": self._names[bus] if bus < len(self._names) else str(bus),
            "id": f"{can_id:08X}" if raw_id & ID_EXTENDED else f"{can_id:03X}",
            "sent": sent,
            "t": int(last["t_ns"]) * 1e-9,
            "count": seen.count,
            "period_s": seen.period_s,
            "data": data.hex(),
            "changed": changed,
            "refused": seen.refused,
            "name": "",
            "signals": [],
        }
        if flags & (FLAG_ERROR | FLAG_REMOTE):
            return row | {"name": "error frame" if flags & FLAG_ERROR else "remote frame"}
        return row | (self._decoded(bus, raw_id, data) if bus < len(self._databases) else {})

    def _decoded(self, bus: int, raw_id: int, data: bytes) -> dict[str, Any]:
        """Name and signals of the message, in the unit of the database, words where it has them."""
        try:
            message = self._databases[bus].get_message_by_frame_id(raw_id & 0x1FFFFFFF)
        except KeyError:
            return {}
        try:
            values = message.decode(data, allow_truncated=True)
        except Exception as error:  # cantools raises many kinds for frames that do not fit their message
            return {"name": message.name, "signals": [["does not fit the database", str(error)[:200], ""]]}
        units = {s.name: s.unit or "" for s in message.signals}
        shown = values.items() if isinstance(values, dict) else ()
        return {"name": message.name, "signals": [[n, _text(x), units.get(n, "")] for n, x in shown]}


class _Seen:
    """What is known of one message."""

    def __init__(self) -> None:
        self.count = self.refused = 0
        self.period_s: float | None = None
        self._last: tuple[NDArray[np.int64], NDArray[np.uint8]] | None = None

    def take(self, frames: Any, data: NDArray[np.uint8]) -> list[int]:
        """Count frames; numbers of the bytes that have changed in them or since the one before."""
        t_ns = frames["t_ns"].astype(np.int64)
        if self._last is not None:
            t_ns, data = np.concatenate([self._last[0], t_ns]), np.concatenate([self._last[1], data])
        if len(t_ns) > 1:
            self.period_s = float(np.diff(t_ns).mean() * 1e-9)
        self.count += len(frames)
        self.refused += int(((frames["flags"] & FLAG_REFUSED) != 0).sum())
        self._last = t_ns[-1:].copy(), data[-1:].copy()
        return [int(k) for k in np.flatnonzero((data != data[0]).any(0)) if k < int(frames[-1]["dlc"])]


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
