"""Recordings: what is written is read, whatever cuts the file short, and damage is seen."""

from __future__ import annotations

import errno
import os
import struct
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from queue_source import QueueSource
from waiting import wait_for

from torqueloop.hil.record import recorder as recorder_module
from torqueloop.hil.record.bus_log import FLAG_BRS, FLAG_FD, FLAG_TX, bus_header, pack_frame, read_bus, write_candump
from torqueloop.hil.record.first_fault import read_first_fault, write_first_fault
from torqueloop.hil.record.recorder import Recorder
from torqueloop.hil.record.recording import ChunkWriter, Damage, RecordingError, chunk_bytes, read_stream
from torqueloop.hil.record.run_data import (
    ModeChange,
    modes_from_signals,
    read_modes,
    read_signals,
    signal_header,
    write_modes,
)
from torqueloop.hil.record.signals import signal_dtype

PAYLOADS = [bytes([k]) * (7 + 13 * k) for k in range(1, 9)]


def recording(folder: Path, *, close: bool = True, file_bytes: int = 1 << 20) -> bytes:
    """Write PAYLOADS; the bytes of the first file."""
    writer = ChunkWriter(folder, {"kind": "test", "names": ["ä"]}, file_bytes=file_bytes)
    for payload in PAYLOADS:
        writer.write(payload)
    if close:
        writer.close()
    else:
        writer.abandon()
    return (folder / "000001.tlc").read_bytes()


def reread(folder: Path, data: bytes):
    folder.mkdir(exist_ok=True)
    (folder / "000001.tlc").write_bytes(data)
    return read_stream(folder)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    recording(tmp_path / "a")
    stream = read_stream(tmp_path / "a")
    assert stream.chunks == PAYLOADS and stream.seqs == list(range(8))
    assert stream.intact and stream.closed and stream.header["names"] == ["ä"]


def test_recording_without_end_mark_is_complete_but_not_closed(tmp_path: Path) -> None:
    recording(tmp_path / "a", close=False)
    stream = read_stream(tmp_path / "a")
    assert stream.chunks == PAYLOADS and not stream.closed and not stream.intact and not stream.damage


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_truncation_at_any_byte_loses_at_most_the_chunk_it_hits(tmp_path: Path, data: st.DataObject) -> None:
    folder = tmp_path / "whole"
    whole = (folder / "000001.tlc").read_bytes() if folder.exists() else recording(folder)
    cut = data.draw(st.integers(0, len(whole) - 1))
    # chunk boundaries, from the sizes alone: head of the file, then 16 bytes in front of each payload
    ends = np.cumsum([len(whole) - 16 - sum(16 + len(p) for p in PAYLOADS)] + [16 + len(p) for p in PAYLOADS])
    if cut < ends[0]:
        with pytest.raises(RecordingError, match="torn|not a torqueloop"):
            reread(tmp_path / "cut", whole[:cut])
        return
    stream = reread(tmp_path / "cut", whole[:cut])
    n_whole = int(np.searchsorted(ends, cut, side="right")) - 1
    assert stream.chunks == PAYLOADS[:n_whole]
    assert not stream.closed and not stream.holes
    assert bool(stream.damage) == (cut not in ends)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_flipped_byte_is_seen_and_costs_at_most_one_chunk(tmp_path: Path, data: st.DataObject) -> None:
    folder = tmp_path / "whole"
    whole = bytearray((folder / "000001.tlc").read_bytes() if folder.exists() else recording(folder))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    try:
        stream = reread(tmp_path / "flipped", bytes(whole))
    except RecordingError:
        return  # in the head of the only file
    assert not stream.intact
    missing = [p for p in PAYLOADS if p not in stream.chunks]
    assert len(missing) <= 1 and all(c in PAYLOADS for c in stream.chunks)


def test_damage_is_told_with_its_place_its_length_and_what_is_missing(tmp_path: Path) -> None:
    """A wrong byte in the third chunk, and the last one cut off in its middle."""
    data = bytearray(recording(tmp_path / "a", close=False))
    lengths = [len(chunk_bytes(k, payload)) for k, payload in enumerate(PAYLOADS)]
    begins = [len(data) - sum(lengths[k:]) for k in range(len(lengths))]
    data[begins[2] + lengths[2] - 1] ^= 1
    found = reread(tmp_path / "b", bytes(data[:-30]))
    assert found.damage == [
        Damage("000001.tlc", begins[2], lengths[2], "wrong checksum", False, 1),
        Damage("000001.tlc", begins[7], lengths[7] - 30, "torn chunk", True, 0),
    ]
    assert [str(damage) for damage in found.damage] == [
        f"000001.tlc at byte {begins[2]}: wrong checksum, {lengths[2]} bytes not readable, 1 chunks missing",
        f"000001.tlc at byte {begins[7]}: torn chunk, {lengths[7] - 30} bytes not readable (end of the recording)",
    ]
    assert found.chunks == [payload for k, payload in enumerate(PAYLOADS) if k not in (2, 7)]
    # two in a row at the end are one stretch
    data[begins[6] + lengths[6] - 1] ^= 1
    assert reread(tmp_path / "c", bytes(data[:-30])).damage[1:] == [
        Damage("000001.tlc", begins[6], lengths[6] + lengths[7] - 30, "wrong checksum", True, 0)
    ]


def test_a_disk_that_refuses_is_told_with_number_text_and_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = ChunkWriter(tmp_path / "a", {"kind": "test"})

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(OSError) as caught:
        patched.setattr(os, "write", full)
        writer.write(b"1234")
    told = (caught.value.errno, caught.value.strerror, caught.value.filename)
    assert told == (errno.ENOSPC, "No space left on device", str(tmp_path / "a" / "000001.tlc"))
    writer.abandon()


def test_a_chunk_lost_in_the_middle_is_counted(tmp_path: Path) -> None:
    whole = recording(tmp_path / "a")
    at = whole.index(PAYLOADS[3]) - 16
    stream = reread(tmp_path / "b", whole[:at] + whole[at + 16 + len(PAYLOADS[3]) :])
    assert stream.chunks == PAYLOADS[:3] + PAYLOADS[4:]
    assert [d.chunks_missing for d in stream.holes] == [1]


def test_files_are_rotated_and_read_as_one(tmp_path: Path) -> None:
    recording(tmp_path / "a", file_bytes=200)
    files = sorted((tmp_path / "a").iterdir())
    assert len(files) > 2
    assert read_stream(tmp_path / "a").chunks == PAYLOADS and read_stream(tmp_path / "a").intact
    # A whole file gone is a hole, not a silent jump.
    files[1].unlink()
    stream = read_stream(tmp_path / "a")
    assert stream.holes and stream.holes[0].chunks_missing >= 1 and not stream.intact


def test_a_recording_is_never_overwritten(tmp_path: Path) -> None:
    recording(tmp_path / "a")
    with pytest.raises(RecordingError, match="already a recording"):
        ChunkWriter(tmp_path / "a", {})


def test_nothing_to_read_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="no recording here"):
        read_stream(tmp_path / "missing")
    with pytest.raises(RecordingError, match="not a torqueloop recording"):
        reread(tmp_path / "text", b"this is a text file and no recording at all")


# --- recorder -------------------------------------------------------------------------------------------------------


def test_recorder_writes_everything_that_was_queued_before_close(tmp_path: Path) -> None:
    source = QueueSource()
    recorder = Recorder(tmp_path)
    recorder.add_stream("signals", {"kind": "test"}, source)
    with recorder:
        for k in range(2000):
            source.push(k.to_bytes(8, "little"))
    data = read_stream(tmp_path / "signals")
    assert np.frombuffer(data.payload(), "<i8").tolist() == list(range(2000)) and data.intact
    assert recorder.status()["signals"].ok


def test_recorder_drains_the_ring_of_the_kernels(tmp_path: Path) -> None:
    ring = pytest.importorskip("torqueloop.cython_kernels.rings.ring").DataRing(1 << 16)
    recorder = Recorder(tmp_path)
    recorder.add_stream("signals", {"kind": "test"}, ring)
    with recorder:
        for k in range(5000):
            while not ring.push(k.to_bytes(8, "little")):
                time.sleep(0.001)
    assert np.frombuffer(read_stream(tmp_path / "signals").payload(), "<i8").tolist() == list(range(5000))
    status = recorder.status()["signals"]
    assert 0.0 < status.high_water <= 1.0


def test_lost_records_are_counted(tmp_path: Path) -> None:
    source = QueueSource(capacity=80)
    recorder = Recorder(tmp_path)
    recorder.add_stream("signals", {}, source)
    accepted = sum(source.push(bytes(8)) for _ in range(25))
    status = recorder.close()["signals"]
    assert accepted == 10 and status.lost_records == 15 and status.high_water == 1.0 and not status.ok


def test_chunks_appear_while_the_run_goes_on(tmp_path: Path) -> None:
    source = QueueSource()
    recorder = Recorder(tmp_path)
    recorder.add_stream("signals", {}, source)
    with recorder:
        source.push(b"12345678")
        wait_for(lambda: read_stream(tmp_path / "signals").chunks)
        assert read_stream(tmp_path / "signals").chunks == [b"12345678"]


def test_a_full_disk_stops_the_recording_and_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = QueueSource(capacity=1 << 12)
    recorder = Recorder(tmp_path)
    recorder.add_stream("signals", {"kind": "test"}, source)
    source.push(b"first000")
    recorder.poll()
    recorder._streams[0].flush()
    real_write = os.write

    def full(fd: int, data) -> int:
        real_write(fd, bytes(data)[:5])  # a part still fits
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    source.push(b"second00")
    recorder.poll()
    recorder._streams[0].flush()
    monkeypatch.setattr(os, "write", real_write)
    # The ring is still emptied, so the tick never sees it full.
    for _ in range(10_000):
        assert source.push(bytes(8))
        recorder.poll()
    status = recorder.close()["signals"]
    assert "No space left" in status.cause and not status.ok
    assert status.discarded_bytes == 8 * 10_001 and status.lost_records == 0
    stream = read_stream(tmp_path / "signals")
    # The torn chunk was cut off again: what was written before is intact.
    assert stream.chunks == [b"first000"] and not stream.damage and not stream.closed


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_disk_that_is_full_for_real_is_reported(tmp_path: Path) -> None:
    source = QueueSource()
    recorder = Recorder(tmp_path)
    recorder.add_stream("signals", {}, source)
    writer = recorder._streams[0].writer
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, writer._fd)
    os.close(full)
    source.push(b"12345678")
    assert "No space left" in recorder.close()["signals"].cause


def test_a_broken_source_does_not_end_the_other_streams(tmp_path: Path) -> None:
    class Broken(QueueSource):
        def drain(self) -> bytes:
            raise ValueError("ring is gone")

    good = QueueSource()
    recorder = Recorder(tmp_path)
    recorder.add_stream("broken", {}, Broken())
    recorder.add_stream("good", {}, good)
    good.push(b"12345678")
    recorder.poll()
    status = recorder.close()
    assert "ring is gone" in status["broken"].cause and status["good"].ok
    assert read_stream(tmp_path / "good").chunks == [b"12345678"]


def test_long_recordings_go_to_disk_in_bounded_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_module, "CHUNK_BYTES", 1000)
    source = QueueSource()
    recorder = Recorder(tmp_path)
    recorder.add_stream("signals", {}, source)
    for _ in range(20):
        source.push(bytes(300))
        recorder.poll()
    recorder.close()
    assert max(len(c) for c in read_stream(tmp_path / "signals").chunks) <= 1000


def test_the_longest_write_is_kept_whatever_comes_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes of 0.25 s, 2 s and 0.5 s by a clock of the test's own."""
    now = [100.0]
    monkeypatch.setattr(recorder_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    source = QueueSource(capacity=80)
    recorder = Recorder(tmp_path)
    recorder.add_stream("signals", {}, source, count=lambda data: len(data) // 8)
    (stream,) = recorder._streams
    write = stream.writer.write
    for k, (took, longest) in enumerate(((0.25, 0.25), (2.0, 2.0), (0.5, 2.0))):

        def slow(payload: bytes, took: float = took) -> None:
            now[0] += took
            write(payload)

        monkeypatch.setattr(stream.writer, "write", slow)
        source.push(bytes(16))
        stream.poll()
        assert stream.status.chunks == k, "not due yet"
        now[0] += recorder_module.CHUNK_S
        stream.poll()
        assert (stream.status.chunks, stream.status.write_s_max) == (k + 1, longest)
    status = recorder.close()["signals"]
    assert (status.records, status.chunks, status.high_water) == (6, 3, 0.2)
    assert status.bytes_written == (tmp_path / "signals" / "000001.tlc").stat().st_size


# --- signals --------------------------------------------------------------------------------------------------------


def write_signals(run_dir: Path, ticks: np.ndarray, columns: dict[str, np.ndarray], tick_s: float = 1e-3) -> None:
    writer = ChunkWriter(run_dir / "signals", signal_header(list(columns), ["1"] * len(columns), tick_s))
    records = np.zeros(len(ticks), signal_dtype(len(columns)))
    records["tick"] = ticks
    for k, column in enumerate(columns.values()):
        records["out"][:, k] = column
    for part in np.array_split(records, 7):
        writer.write(part.tobytes())
    writer.close()


def test_signals_come_back_by_name_and_gaps_are_listed(tmp_path: Path) -> None:
    ticks = np.concatenate([np.arange(100), np.arange(110, 200)])
    write_signals(tmp_path, ticks, {"engine.w": ticks * 2.0, "C4.mode": (ticks > 50) * 2.0 - 0.0})
    signals = read_signals(tmp_path)
    assert signals.gaps == [(100, 10)]
    np.testing.assert_array_equal(signals["engine.w"], ticks * 2.0)
    np.testing.assert_allclose(signals.t, (ticks + 1) * 1e-3)
    with pytest.raises(KeyError, match="recorded are engine.w, C4.mode"):
        signals["gear"]


def test_mode_changes_are_rebuilt_from_recorded_modes(tmp_path: Path) -> None:
    ticks = np.arange(100)
    write_signals(tmp_path, ticks, {"C4.mode": np.where(ticks < 30, 2.0, np.where(ticks < 60, 1.0, 0.0))})
    changes = modes_from_signals(read_signals(tmp_path))
    assert [(c.step, c.element, c.mode) for c in changes] == [(1, "C4", 2), (31, "C4", 1), (61, "C4", 0)]


def test_modes_are_listed_by_time_and_come_back_from_their_file(tmp_path: Path) -> None:
    """At the end of tick k, step k + 1, it is (k + 1) times the tick; of two elements."""
    ticks = np.arange(40)
    modes = {"C4.mode": np.where(ticks < 30, 2.0, -1.0), "B1.mode": np.where(ticks < 10, 0.0, 1.0), "B1.w": ticks * 1.0}
    write_signals(tmp_path, ticks, modes, tick_s=2e-3)
    changes = modes_from_signals(read_signals(tmp_path))
    wanted = [(1, 0.002, "B1", 0), (1, 0.002, "C4", 2), (11, 0.022, "B1", 1), (31, 0.062, "C4", -1)]
    assert [(c.step, round(c.t_s, 9), c.element, c.mode) for c in changes] == wanted
    assert modes_from_signals(read_signals(tmp_path), changes_only=True) == changes[2:]
    write_modes(tmp_path / "modes.csv", changes)
    assert (tmp_path / "modes.csv").read_text().splitlines()[3:] == ["11,0.022000000,B1,1,forward",
                                                                    "31,0.062000000,C4,-1,backward"]  # fmt: skip
    assert read_modes(tmp_path / "modes.csv") == [ModeChange(*row) for row in wanted]


def test_signals_of_every_tenth_tick_have_their_gaps_and_times(tmp_path: Path) -> None:
    """40 and 50 are missing; lateness and computing time are told in microseconds."""
    writer = ChunkWriter(tmp_path / "signals", signal_header(["a", "b"], ["rad/s", "Nm"], 1e-3, every=10))
    records = np.zeros(8, signal_dtype(2))
    records["tick"] = [0, 10, 20, 30, 60, 70, 80, 90]
    records["wake_lateness_ns"], records["compute_ns"] = 1500 * np.arange(8), 2500 * np.arange(8)
    writer.write(records.tobytes() + b"stray")
    writer.close()
    signals = read_signals(tmp_path)
    assert signals.gaps == [(40, 2)] and signals.units == {"a": "rad/s", "b": "Nm"}
    assert (signals.stray_bytes, signals.finite, signals.chunks, signals.known_finite) == (5, True, 1, True)
    assert signals.t[1] == 0.011
    assert signals.wake_lateness_us.tolist() == [1.5 * k for k in range(8)]
    assert signals.compute_us.tolist() == [2.5 * k for k in range(8)]
    part = signals.part(2, 4)
    assert (part.names, part.units, part.tick_s) == (["a", "b"], {"a": "rad/s", "b": "Nm"}, 1e-3)


def test_a_first_fault_is_written_in_chunks_of_a_megabyte(tmp_path: Path) -> None:
    """And read from the run's folder, or from where the run says it is, whichever is there."""
    names = [f"s{k}" for k in range(100)]
    records = np.zeros(3000, signal_dtype(100))
    records["tick"], records["out"] = np.arange(3000), np.random.default_rng(1).random((3000, 100))
    header = signal_header(names, ["1"] * 100, 1e-3)
    folder, why = write_first_fault(tmp_path, header, records.tobytes())
    found = read_first_fault(tmp_path)
    assert (folder, why) == (tmp_path / "first_fault", "") and found is not None
    assert found.records.tobytes() == records.tobytes() and found.chunks == 3, "2.5 MB"
    folder.rename(tmp_path / "elsewhere")
    assert read_first_fault(tmp_path) is None
    other = read_first_fault(tmp_path, str(tmp_path / "elsewhere"))
    assert other is not None and other.n == 3000
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "first_fault").touch()
    beside, why = write_first_fault(tmp_path / "taken", header, records[:5].tobytes())
    assert "FileExistsError" in why and beside.parent != tmp_path / "taken" and read_stream(beside).intact


def test_signal_record_has_the_documented_size() -> None:
    assert signal_dtype(3).itemsize == 8 + 8 + 4 + 4 + 4 + 4 + 3 * 8


# --- bus ------------------------------------------------------------------------------------------------------------


def test_fd_frames_in_the_bus_log_take_what_they_need_and_come_back(tmp_path: Path) -> None:
    can = pytest.importorskip("can")
    frames = [
        (1_000_000, 0x210, b"\x01\xff", 0),
        (2_000_000, 0x211, bytes(range(64)), FLAG_FD | FLAG_BRS),
        (4_000_000, 0x80000213, bytes(range(12)), FLAG_FD),
        (5_000_000, 0x214, b"", 0),
    ]
    packed = [pack_frame(t, i, d, tx=False, flags=f) for t, i, d, f in frames]
    assert [len(p) for p in packed] == [24, 80, 32, 24]
    writer = ChunkWriter(tmp_path / "bus", bus_header("can0"))
    writer.write(b"".join(packed[:2]))
    writer.write(b"".join(packed[2:]))
    writer.close()
    records, header, damage = read_bus(tmp_path)
    assert damage == [] and header["kind"] == "bus" and len(records) == 4
    back = [(int(r["t_ns"]), int(r["id"]), bytes(r["data"][: r["dlc"]]), int(r["flags"])) for r in records]
    assert back == frames
    write_candump(tmp_path, tmp_path / "bus.log")
    assert (tmp_path / "bus.log").read_text().splitlines()[1].endswith("211##1" + bytes(range(64)).hex().upper())
    messages = list(can.LogReader(tmp_path / "bus.log"))
    assert [(m.arbitration_id, bytes(m.data), m.is_fd, m.bitrate_switch) for m in messages] == [
        (0x210, b"\x01\xff", False, False), (0x211, bytes(range(64)), True, True),
        (0x213, bytes(range(12)), True, False), (0x214, b"", False, False),
    ]  # fmt: skip


def test_bus_logs_of_the_first_format_are_read(tmp_path: Path) -> None:
    old = struct.pack("<qIBB8sxx", 7, 0x210, 2, 0x80, b"\x01\x02")
    writer = ChunkWriter(tmp_path / "bus", {**bus_header("can0"), "version": 1})
    writer.write(old * 2)
    writer.close()
    records, header, damage = read_bus(tmp_path)
    assert damage == [] and (header["kind"], header["version"]) == ("bus", 1)
    assert [(int(r["t_ns"]), bytes(r["data"]), int(r["flags"])) for r in records] == [
        (7, b"\x01\x02" + bytes(6), 0x80)
    ] * 2


def test_bus_log_is_a_candump_log_python_can_reads(tmp_path: Path) -> None:
    can = pytest.importorskip("can")
    writer = ChunkWriter(tmp_path / "bus", bus_header("tcu bus", epoch_ns=1_700_000_000_000_000_000))
    frames = [(1_000_000, 0x210, b"\x01\xff", False), (2_500_400, 0x80000000 | 0x18FEF100, b"", True)]
    writer.write(b"".join(pack_frame(t, i, d, tx=tx) for t, i, d, tx in frames))
    writer.close()
    records, header, damage = read_bus(tmp_path)
    assert not damage and (records["flags"] & FLAG_TX != 0).tolist() == [False, True]
    assert write_candump(tmp_path, tmp_path / "bus.log") == 2
    first, second = (tmp_path / "bus.log").read_text().splitlines()
    assert first == "(1700000000.001000) tcu_bus 210#01FF"
    assert second == "(1700000000.002500) tcu_bus 18FEF100#"
    messages = list(can.LogReader(tmp_path / "bus.log"))
    assert [(m.arbitration_id, bytes(m.data)) for m in messages] == [(0x210, b"\x01\xff"), (0x18FEF100, b"")]
