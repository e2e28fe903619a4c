"""Forms of the signals that are written while a run goes on: MF4 as asammdf reads it, CSV, Parquet; what goes wrong."""

from __future__ import annotations

import errno
import os
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.record import mf4_stream, streamed
from torqueloop.hil.record.mf4_stream import Mf4Stream
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.record.streamed import FORMS, Streamed

NAMES, UNITS = ["engine.w", "C4.mode", "Öl.T"], ["rad/s", "1", "K"]
START = datetime(2026, 3, 4, 5, 6, 7, 250_000, tzinfo=UTC)


def records(first: int, n: int) -> np.ndarray:
    made = np.zeros(n, signal_dtype(3))
    made["tick"] = np.arange(first, first + n)
    made["wake_lateness_ns"], made["compute_ns"] = 1500, np.arange(n)
    made["out"] = np.random.default_rng(first).random((n, 3)) * [1e3, np.nan, 1e-300]
    return made


def write(folder: Path, form: str, chunks: int = 3, n: int = 100) -> tuple[Streamed, np.ndarray]:
    made = Streamed(form, folder, NAMES, UNITS, 1e-3, START, 0)  # type: ignore[arg-type]
    parts = [records(n * k, n) for k in range(chunks)]
    for part in parts:
        made.take(part.tobytes(), True)
    return made, np.concatenate(parts)


def test_asammdf_reads_every_bit_at_any_time(tmp_path: Path) -> None:
    """Also while it is written: the file is whole after every chunk."""
    asammdf = pytest.importorskip("asammdf")
    for closed in (False, True):
        folder = tmp_path / str(closed)
        folder.mkdir()
        made, whole = write(folder, "mf4")
        if closed:
            made.close()
            made.close()
        with asammdf.MDF(folder / "signals.mf4") as mdf:
            assert mdf.version == "4.10" and mdf.header.start_time == START
            assert len(mdf.groups) == 1 and mdf.groups[0].channel_group.cycles_nr == 300
            for k, (name, unit) in enumerate(zip(NAMES, ["rad/s", "", "K"], strict=True)):
                read = mdf.get(name)
                assert read.samples.tobytes() == whole["out"][:, k].tobytes() and read.unit == unit
                assert read.timestamps.tobytes() == ((whole["tick"] + 1) * 1e-3).tobytes()
            np.testing.assert_array_equal(mdf.get("rig.wake_lateness").samples, whole["wake_lateness_ns"] * 1e-3)
            assert mdf.get("rig.compute").unit == "us"
        made.close()
        assert (made.status.cause, made.status.chunks, made.status.discarded_bytes) == ("", 3, 0)
        assert made.status.bytes_written == (folder / "signals.mf4").stat().st_size


def test_every_cut_of_an_mf4_is_told_or_a_beginning(tmp_path: Path) -> None:
    """What a killed process leaves: between the three writes of a chunk, in the order in which they are made."""
    asammdf = pytest.importorskip("asammdf")
    done: list[tuple[bytes, int]] = []
    plain = os.pwrite

    def seen(fd: int, data: bytes, at: int) -> int:
        count = (
            plain(fd, bytes(data)[: max(1, len(data) // 2)], at) if len(data) > 8 and not done else plain(fd, data, at)
        )
        done.append(((tmp_path / "signals.mf4").read_bytes(), made.records))
        return count

    made = Mf4Stream(tmp_path / "signals.mf4", ["a"], ["1"], START)
    made.write(np.arange(5.0), np.arange(5.0)[:, None])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mf4_stream.os, "pwrite", seen)
        made.write(np.arange(5.0, 10.0), np.arange(5.0, 10.0)[:, None])
    made.close()
    assert len(done) == 4, "half the chunk, its rest, the link, the number of records"
    for k, (data, _) in enumerate(done):
        (tmp_path / "cut.mf4").write_bytes(data)
        with asammdf.MDF(tmp_path / "cut.mf4") as mdf:
            read = mdf.get("a").samples.tolist()
        assert read == list(range(10 if k == 3 else len(read))) and len(read) in (5, 10), k


def test_each_list_of_an_mf4_tells_at_which_byte_of_the_group_its_data_begin(tmp_path: Path) -> None:
    """ASAM MDF 4.1: links of the DG block (following, CG, data), of a DL block (following, data), then its offsets."""
    made, _ = write(tmp_path, "mf4", chunks=3, n=100)
    made.close()
    data = (tmp_path / "signals.mf4").read_bytes()
    data_group = struct.unpack_from("<Q", data, 64 + 24)[0]
    assert data[data_group : data_group + 4] == b"##DG"
    place, found = struct.unpack_from("<4Q", data, data_group + 24)[2], []
    while place:
        assert data[place : place + 4] == b"##DL"
        following, records = struct.unpack_from("<2Q", data, place + 24)
        length = struct.unpack_from("<Q", data, records + 8)[0] - 24
        found.append((struct.unpack_from("<Q", data, place + 24 + 16 + 8)[0], length))
        place = following
    # time, three signals and two times of the loop, 8 bytes each
    assert found == [(k * 100 * 6 * 8, 100 * 6 * 8) for k in range(3)]


def test_the_blocks_of_an_mf4_follow_each_other_with_the_links_of_the_standard(tmp_path: Path) -> None:
    """ASAM MDF 4.1, chapter 5: number of links of each kind of block; a block begins at each multiple of 8 bytes at
    which the one before has ended."""
    links = {"HD": 6, "FH": 2, "DG": 4, "CG": 6, "CN": 8, "DL": 2, "DT": 0, "TX": 0, "MD": 0}
    made, _ = write(tmp_path, "mf4", chunks=2)
    made.close()
    data, at, found = (tmp_path / "signals.mf4").read_bytes(), 64, []
    while at < len(data):
        mark, length, count = struct.unpack_from("<4s4xQQ", data, at)
        kind = mark[2:].decode()
        assert mark[:2] == b"##" and count == links[kind], (at, mark)
        found.append(kind)
        at += (length + 7) & ~7
    # five channels beside the time, each with its name and four of them with a unit of their own
    assert at == len(data) and {k: found.count(k) for k in ("HD", "DG", "CG", "CN", "DT", "DL")} == {
        "HD": 1, "DG": 1, "CG": 1, "CN": 6, "DT": 2, "DL": 2,
    }  # fmt: skip


def test_a_disk_that_is_full_is_told_with_number_text_and_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Mf4Stream(tmp_path / "signals.mf4", ["a"], ["1"], START)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(mf4_stream.os, "pwrite", full)
    with pytest.raises(OSError) as caught:
        made.write(np.arange(5.0), np.arange(5.0)[:, None])
    made.close()
    told = (caught.value.errno, caught.value.strerror, caught.value.filename)
    assert told == (errno.ENOSPC, "No space left on device", str(tmp_path / "signals.mf4"))


def test_csv_and_parquet_have_what_an_export_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "PART_SAMPLES", 200)
    made, whole = write(tmp_path, "csv")
    made.close()
    lines = (tmp_path / "signals.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "t,engine.w,C4.mode,Öl.T,rig.wake_lateness,rig.compute" and lines[1] == "s,rad/s,1,K,us,us"
    values = np.array([[float(x) for x in line.split(",")] for line in lines[2:]])
    assert values[:, 1:4].tobytes() == whole["out"].tobytes()
    parquet = pytest.importorskip("pyarrow.parquet")
    made, whole = write(tmp_path, "parquet")
    folder = tmp_path / "signals.parquet"
    assert parquet.read_table(folder).num_rows == 200, "the part that is whole"
    made.close()
    table = parquet.read_table(folder)
    assert table.num_rows == 300 and table.schema.field("Öl.T").metadata == {b"unit": b"K"}
    assert table["engine.w"].to_numpy().tobytes() == whole["out"][:, 0].tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_a_disk_that_refuses_is_told_and_holds_up_nothing(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No exception comes out, the first cause stays, what was not written is counted."""
    if form == "parquet":
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(streamed, "PART_SAMPLES", 100)
    made, _ = write(tmp_path, form, 1)
    assert made.status.cause == ""

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    assert made._writer is not None
    monkeypatch.setattr(made._writer, "write", full)
    for k in (1, 2):
        made.take(records(100 * k, 100).tobytes(), True)
    made.close()
    assert "No space left" in made.status.cause and made.status.chunks == 1
    assert made.status.discarded_bytes == 2 * 100 * signal_dtype(3).itemsize


def test_a_form_that_is_there_already_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "signals.mf4").write_bytes(b"somebody's")
    made, _ = write(tmp_path, "mf4", 1)
    assert "FileExistsError" in made.status.cause and (tmp_path / "signals.mf4").read_bytes() == b"somebody's"
    with pytest.raises(ConfigError, match="allowed: mf4, csv, parquet"):
        Streamed("xls", tmp_path, NAMES, UNITS, 1e-3, START, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("first", [0, 5000])
def test_mf4_begins_at_the_time_of_day_of_the_first_tick(tmp_path: Path, first: int) -> None:
    """The wall clock of the rig counts from its epoch; a recording that begins late still tells when tick 0 was."""
    asammdf = pytest.importorskip("asammdf")
    epoch = datetime(2026, 3, 4, 12, 0, 0, tzinfo=UTC)
    made = Streamed("mf4", tmp_path, NAMES, UNITS, 2e-3, START, int(epoch.timestamp()) * 10**9)
    part = records(first, 20)
    part["t_wall_ns"] = 90_500_000_000 + part["tick"] * 2_000_000
    made.take(part.tobytes(), True)
    made.close()
    with asammdf.MDF(tmp_path / "signals.mf4") as mdf:
        assert mdf.header.start_time == epoch + timedelta(seconds=90.5)
        assert mdf.get("engine.w").timestamps[0] == pytest.approx((first + 1) * 2e-3)
