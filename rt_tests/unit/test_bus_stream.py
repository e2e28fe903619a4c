"""Frames written while a run goes on: whole after every chunk, equal to what was logged, in every form."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import can
import pytest

from torqueloop.hil.record.bus_log import (
    FLAG_BRS,
    FLAG_ERROR,
    FLAG_ESI,
    FLAG_FD,
    FLAG_REMOTE,
    ID_EXTENDED,
    count_frames,
    messages,
    pack_frame,
    unpack_frames,
)
from torqueloop.hil.record.bus_stream import BUS_FORMS, HOLD_NS, BusForm, BusStreamed
from torqueloop.hil.record.recording import StreamData

STARTED = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
#: 1970 to the clock's 0; the run was started a second later
EPOCH_NS = (int(STARTED.timestamp()) - 1) * 10**9
#: of candump and of ASC, microseconds; of a double since 1970, a quarter of one
RESOLUTION_S = 1.1e-6


def chunks() -> list[bytes]:
    """Three chunks of frames of every kind on two buses; the first of a chunk is older than the last before it."""
    found = []
    for k in range(3):
        parts = []
        for j in range(200):
            t = 1_000_000_000 + (200 * k + j) * 1_000_000 - (1_500_000 if j == 0 and k else 0)
            number, data = 200 * k + j, bytes((j + n) % 256 for n in range(j % 9))
            if j % 20 == 3:
                parts.append(pack_frame(t, 0x123, b"", tx=False, flags=FLAG_REMOTE))
            elif j % 50 == 7:
                parts.append(pack_frame(t, 0, b"", tx=False, flags=FLAG_ERROR))
            elif j % 3 == 1:
                long = bytes((number + n) % 256 for n in range((12, 24, 64)[j % 9 // 3]))
                flags = FLAG_FD | (FLAG_BRS if j % 2 else 0) | (FLAG_ESI if j % 4 else 0)
                parts.append(pack_frame(t, 0x18DA00F1 | ID_EXTENDED, long, tx=j % 2 == 0, flags=flags, bus=1))
            else:
                parts.append(pack_frame(t, 0x100 + j, data, tx=j % 2 == 0, refused=j % 7 == 0))
        found.append(b"".join(parts))
    return found


def what(message: can.Message, form: str) -> tuple[object, ...]:
    """What of a message every form keeps; ASC and candump do not tell all of an error frame, candump no direction."""
    if message.is_error_frame:
        return ("error",)
    channel = message.channel if form != "log" else None
    received = message.is_rx or form == "log"
    return (message.arbitration_id, message.is_extended_id, message.is_remote_frame, message.is_fd, received,
            message.bitrate_switch, message.error_state_indicator, bytes(message.data), channel)  # fmt: skip


def compare(path: Path, form: str, frames: int, fewer: int = 0) -> None:
    """The file holds the first of what was logged, all but at most so many."""
    parts = chunks()[:frames]
    wanted = list(messages(unpack_frames(StreamData({}, parts)), EPOCH_NS))
    read = list(can.LogReader(str(path)))
    assert len(wanted) - fewer <= len(read) <= len(wanted)
    mf4 = form == "mf4"
    for a, b in zip(wanted, read, strict=False):
        if mf4:
            b.channel = int(b.channel) - 1
        # python-can takes a line of candump for an error frame only where it says which error it was
        assert what(a, form) == what(b, form) or (form == "log" and a.is_error_frame)
        if form != "asc":  # counts from its first frame, whose time of day has milliseconds
            assert abs(a.timestamp - b.timestamp) < RESOLUTION_S


@pytest.mark.parametrize("form", BUS_FORMS)
def test_every_frame_is_read_back(form: BusForm, tmp_path: Path) -> None:
    pytest.importorskip("asammdf") if form == "mf4" else None
    stream = BusStreamed(form, tmp_path, ["a", "b"], STARTED, EPOCH_NS)
    path = tmp_path / f"bus.{form}"
    for k, payload in enumerate(chunks(), 1):
        stream.take(payload, True)
        # as a kill would leave it: what is on the disk now, its last 50 ms still to come
        killed = tmp_path / f"killed{k}.{form}"
        killed.write_bytes(path.read_bytes())
        compare(killed, form, k, fewer=HOLD_NS // 1_000_000 + 2)
        times = unpack_frames(StreamData({}, chunks()[:k]))["t_ns"]
        due = int((times < times.max() - HOLD_NS).sum())
        assert (stream.status.records, stream.status.chunks) == (due, k)
    stream.close()
    compare(path, form, 3)
    assert (stream.status.records, stream.status.chunks) == (600, 4), "what was held back is written at the end"
    assert stream.status.ok and stream.status.bytes_written == path.stat().st_size


def test_asammdf_finds_the_bus_logging(tmp_path: Path) -> None:
    asammdf = pytest.importorskip("asammdf")
    stream = BusStreamed("mf4", tmp_path, ["a", "b"], STARTED, EPOCH_NS)
    for payload in chunks():
        stream.take(payload, False)
    stream.close()
    database = tmp_path / "one.dbc"
    database.write_text('VERSION ""\nBU_: A\nBO_ 264 M: 8 A\n SG_ first : 0|8@1+ (1,0) [0|255] "" A\n')
    with asammdf.MDF(tmp_path / "bus.mf4") as mdf:
        assert abs(mdf.header.start_time.timestamp() - STARTED.timestamp()) < 1e-3
        decoded = mdf.extract_bus_logging({"CAN": [(str(database), 1)]})
        # 0x108 is frame 8 of each chunk: 8 bytes from 8 on
        assert decoded.get("first").samples.tolist() == [8, 8, 8]
        t = mdf.get("CAN_DataFrame.ID", group=0).timestamps
        lengths = mdf.get("CAN_DataFrame.DataLength", group=0).samples.tolist()
        codes = mdf.get("CAN_DataFrame.DLC", group=0).samples.tolist()
    assert (t[1:] >= t[:-1]).all() and t[0] == pytest.approx(0.0, abs=1e-6)
    # ISO 11898-1, table of data length codes
    assert set(zip(lengths, codes, strict=True)) == {*((n, n) for n in (0, 2, 3, 5, 6, 8)), (12, 9), (24, 12), (64, 15)}


def test_frames_are_counted_by_their_own_length() -> None:
    assert [count_frames(payload) for payload in chunks()] == [200, 200, 200]
    classic = pack_frame(1, 2, b"12345678", tx=True)[:24]
    long = pack_frame(1, 2, bytes(64), tx=True, flags=FLAG_FD)
    assert count_frames(2 * long + long[:40]) == 2 and count_frames(long + classic) == 2
    assert count_frames(3 * classic) == 3 and count_frames(3 * classic + b"x") == 3


def test_a_form_that_the_disk_refuses_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "bus.log").write_text("somebody's\n")
    stream = BusStreamed("log", tmp_path, ["a"], STARTED, EPOCH_NS)
    for payload in chunks():
        stream.take(payload, True)
    stream.close()
    assert "FileExistsError" in stream.status.cause and stream.status.discarded_bytes > 0
    assert (tmp_path / "bus.log").read_text() == "somebody's\n"
