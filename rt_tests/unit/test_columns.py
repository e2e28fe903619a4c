"""Signals by columns in a recording: every bit comes back, a column is read without the others, damage is told."""

from __future__ import annotations

import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torqueloop.hil.record import run_data
from torqueloop.hil.record.columns import _HEAD, FORMS, Layout, LayoutError, decode, encode
from torqueloop.hil.record.part import SignalPart
from torqueloop.hil.record.pieces import SignalPieces
from torqueloop.hil.record.recording import ChunkWriter, RecordingError
from torqueloop.hil.record.run_data import COLUMNS, ROWS, read_signals, signal_header
from torqueloop.hil.record.signals import Records, Signals, signal_dtype

NAMES = ["const", "whole", "float", "double", "nan", "zero"]
#: signalling and quiet NaN, infinities, zeros of both signs, denormals, the ends of int8 and of float
BITS = [0x7FF0000000000001, 0x7FF8000000000000, 0xFFF8000000001234, 0x7FF0000000000000, 0x8000000000000000, 0, 1,
        0x405FC00000000000, 0x4060000000000000, 0xC060000000000000, 0x47EFFFFFE0000000, 0x7FEFFFFFFFFFFFFF]  # fmt: skip


def made(first: int, n: int, seed: int = 1) -> np.ndarray:
    """Records whose columns take each form."""
    rng = np.random.default_rng(seed)
    records = np.zeros(n, signal_dtype(len(NAMES)))
    records["tick"] = np.arange(first, first + n)
    records["status"], records["compute_ns"] = 2**32 - 1, -rng.integers(0, 2**31, n)
    out = records["out"]
    out[:, 0], out[:, 1], out[:, 2] = 0.1, rng.integers(-128, 128, n), rng.random(n).astype(np.float32)
    out[:, 3], out[:, 4], out[:, 5] = rng.random(n), np.nan, np.where(rng.random(n) < 0.5, -0.0, 0.0)
    return records


Edit = Callable[[int, bytes], bytes]


def written(path: Path, version: int, chunks: int = 10, n: int = 100, edit: Edit | None = None) -> Path:
    """A recording of chunks of n ticks."""
    writer = ChunkWriter(path / "signals", signal_header(NAMES, ["1"] * len(NAMES), 1e-3, version), file_bytes=20_000)
    for k in range(chunks):
        records = made(k * n, n, k)
        payload = encode(records) if version == COLUMNS else records.tobytes()
        writer.write(payload if edit is None else edit(k, payload))
    writer.close()
    return path


@given(st.lists(st.lists(st.sampled_from(BITS) | st.integers(0, 2**64 - 1), min_size=3, max_size=3), min_size=1))
def test_every_bit_comes_back(rows: list[list[int]]) -> None:
    records = np.zeros(len(rows), signal_dtype(3))
    records["out"] = np.array(rows, np.uint64).view(np.float64)
    records["wake_lateness_ns"] = [-(k**3) for k in range(len(rows))]
    assert decode(encode(records), records.dtype).tobytes() == records.tobytes()


def test_each_form_is_as_small_as_it_says() -> None:
    """6 fixed columns (tick and compute_ns move: 8 bytes each), then one constant, int8, float, double, NaN, -0.0."""
    n = 1000
    records = made(0, n)
    head = (8 + 12 + 7) // 8 * 8
    # -0.0 is a float, but no whole number of int8
    assert len(encode(records)) == head + 4 * 8 + 2 * 8 + 8 * 2 * n + n + 2 * 4 * n + 8 * n


@given(st.integers(0, 400), st.integers(0, 255), st.integers(0, 500))
def test_what_is_no_chunk_is_refused_or_read_but_never_more(at: int, byte: int, cut: int) -> None:
    """Checksums find damage before; this is a file that somebody made."""
    payload = bytearray(encode(made(0, 30)))
    payload[at % len(payload)] = byte
    try:
        decode(bytes(payload[: len(payload) - cut]), signal_dtype(len(NAMES)))
    except LayoutError:
        return
    assert cut == 0


def test_both_versions_read_alike_kept_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, columns = written(tmp_path / "rows", ROWS), written(tmp_path / "columns", COLUMNS)
    kept = read_signals(columns)
    monkeypatch.setattr(run_data, "KEPT_BYTES", 1000)
    for signals in (kept, read_signals(rows), read_signals(columns)):
        assert signals.n == 1000 and signals.closed and not signals.gaps and not signals.damage
        assert not signals.finite
        whole = np.concatenate([made(k * 100, 100, k) for k in range(10)])
        assert signals.records.tobytes() == whole.tobytes()
        for k, name in enumerate(NAMES):
            np.testing.assert_array_equal(signals[name], whole["out"][:, k])
            np.testing.assert_array_equal(signals.part(150, 420)[name], whole["out"][150:420, k])
        part = signals.part(150, 420).part(10, 20)
        assert part.n == 10 and part.tick.tolist() == list(range(160, 170)) and part.fixed("status")[0] == 2**32 - 1
        assert signals.between(0.101, 0.2).tick.tolist() == list(range(100, 200))
        assert signals.part(-5, 2000).n == 1000 and signals.part(7, 3).n == 0
    assert b"".join(r.tobytes() for r in SignalPieces.of(columns)) == whole.tobytes()
    assert kept.part(0, 5).names == Signals.of(NAMES, {}, 1e-3, whole).names
    assert Records(whole).read(0, 3, 5).tolist() == [3, 4]


def test_a_column_is_read_in_the_memory_of_a_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """40 chunks of 0.2 MB; one column of it has 0.16 MB."""
    monkeypatch.setattr(run_data, "KEPT_BYTES", 0)
    written(tmp_path, COLUMNS, 10, 20_000)
    tracemalloc.start()
    signals = read_signals(tmp_path)
    assert signals.n == 200_000
    one = signals["double"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    whole = signals.n * signal_dtype(len(NAMES)).itemsize
    assert one.nbytes == 8 * signals.n
    assert peak < 0.5 * whole, f"{peak} of {whole} bytes"


def test_a_long_recording_that_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = read_signals(written(tmp_path, COLUMNS))
    monkeypatch.setattr(run_data, "KEPT_BYTES", 0)
    signals = read_signals(tmp_path)
    file = sorted((tmp_path / "signals").iterdir())[-1]
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(RecordingError, match="was truncated after it was opened"):
        signals["double"]
    shutil.rmtree(tmp_path / "signals")
    with pytest.raises(RecordingError, match="cannot be read any more"):
        signals["double"]
    assert len(kept["double"]) == 1000, "a short one is in memory"


@pytest.mark.parametrize("column", [0, 4, 8])
def test_one_column_of_an_unknown_form_makes_a_chunk_unreadable(column: int) -> None:
    payload = bytearray(encode(made(0, 5)))
    payload[_HEAD.size + column] = len(FORMS)
    with pytest.raises(LayoutError, match=f"^{len(NAMES)} columns of 5 records$"):
        Layout.of(bytes(payload), len(NAMES))


def test_a_chunk_that_is_laid_out_otherwise_is_damage(tmp_path: Path) -> None:
    written(tmp_path, COLUMNS, edit=lambda k, payload: payload[:-8] if k == 4 else payload)
    signals = read_signals(tmp_path)
    assert signals.n == 900 and signals.gaps == [(400, 100)]
    assert len(signals.damage) == 1 and "not by columns" in str(signals.damage[0])
    pieces = SignalPieces.of(tmp_path)
    assert sum(len(r) for r in pieces) == 900 and len(pieces.pieces.damage) == 1


def test_another_version_is_refused_by_name(tmp_path: Path) -> None:
    written(tmp_path, 3)
    for read in (read_signals, SignalPieces.of):
        with pytest.raises(RecordingError, match="format version 3; this program reads versions 1 and 2"):
            read(tmp_path)


@pytest.mark.parametrize("chosen", [[2, 0], [1], [0, 1, 2]])
def test_a_part_of_the_signals_has_its_columns_ticks_and_counts(tmp_path: Path, chosen: list[int]) -> None:
    names, units = ["a", "b", "c"], ["rad/s", "Pa", "1"]
    header = signal_header(names, units, 1e-3, COLUMNS)
    part = SignalPart("part", tmp_path / "signals", header, chosen)
    assert (part.first, part.last, part.samples) == (-1, -1, 0)
    rng = np.random.default_rng(1)
    whole = np.zeros(90, signal_dtype(3))
    whole["tick"], whole["out"] = np.arange(700, 790), rng.random((90, 3))
    for k, last in ((0, 729), (30, 759), (60, 789)):
        part.take(whole[k : k + 30].tobytes(), True)
        assert (part.first, part.last, part.samples) == (700, last, k + 30)
    part.close()
    assert (part.status.cause, part.status.chunks, part.status.discarded_bytes) == ("", 3, 0)
    read = read_signals(tmp_path, "signals")
    assert read.names == [names[k] for k in chosen] and read.tick.tolist() == list(range(700, 790))
    for k in chosen:
        np.testing.assert_array_equal(read[names[k]], whole["out"][:, k])
