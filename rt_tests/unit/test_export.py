"""Signals exported piece by piece: read back by other libraries they are what was recorded; torn recordings; memory."""

from __future__ import annotations

import csv
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.record.export import FORMS, export
from torqueloop.hil.record.pieces import Pieces, SignalPieces
from torqueloop.hil.record.recording import ChunkWriter, RecordingError
from torqueloop.hil.record.run_data import read_signals, signal_header
from torqueloop.hil.record.signals import signal_dtype

NAMES, UNITS = ["engine.w", "engine.tau", "car.v", "plain"], ["rad/s", "Nm", "m/s", "1"]


def recorded(folder: Path, ticks: int = 1000, chunk: int = 130, close: bool = True, n: int = 4, **more) -> Path:
    """A run directory with `ticks` samples of random numbers in chunks of `chunk`, in several files."""
    names = [*NAMES, *(f"more.x{k}" for k in range(n - 4))]
    records = np.zeros(ticks, signal_dtype(n))
    records["tick"] = np.arange(ticks)
    records["out"] = np.random.default_rng(1).normal(size=(ticks, n))
    header = signal_header(names, [*UNITS, *["1"] * (n - 4)], 1e-3)
    writer = ChunkWriter(folder / "signals", header, **{"file_bytes": 20_000, **more})
    for k in range(0, ticks, chunk):
        writer.write(records[k : k + chunk].tobytes())
    if close:
        writer.close()
    else:
        writer.abandon()
    return folder


def read(path: Path) -> dict[str, np.ndarray]:
    """What another library reads, by name."""
    if path.suffix == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
        table = parquet.read_table(path)
        return {name: table[name].to_numpy() for name in table.column_names}
    if path.suffix == ".csv":
        with path.open() as stream:
            head, _, *rows = csv.reader(stream)
        return {name: np.array([float(row[k]) for row in rows]) for k, name in enumerate(head)}
    if path.suffix == ".mf4":
        asammdf = pytest.importorskip("asammdf", reason="asammdf is not installed")
        with asammdf.MDF(path) as mdf:
            found = {name: mdf.get(name) for name in NAMES}
            return {"t": found["car.v"].timestamps, **{name: s.samples for name, s in found.items()}}
    reader = pytest.importorskip("mcap.reader", reason="mcap is not installed")
    rows: dict[str, list[float]] = {"t": []}
    with path.open("rb") as stream:
        for _, channel, message in reader.make_reader(stream).iter_messages():
            group = channel.topic[1:]
            for key, x in json.loads(message.data).items():
                rows.setdefault(f"{group}.{key}" if group else key, []).append(x)
            if group == "car":
                rows["t"].append(message.log_time * 1e-9)
    return {name: np.array(values) for name, values in rows.items()}


@pytest.mark.parametrize("form", FORMS)
def test_other_libraries_read_what_was_recorded(form: str, tmp_path: Path) -> None:
    """To the bit, over the borders of chunks and files."""
    run = recorded(tmp_path / "run")
    assert len(list((run / "signals").iterdir())) > 2
    made = export(run, tmp_path / f"out.{form}")
    assert (made.samples, made.signals, made.damage) == (1000, 4, [])
    found, signals = read(made.path), read_signals(run)
    assert set(found) == {"t", *NAMES}
    assert np.allclose(found["t"], signals.t, rtol=0, atol=1e-12)
    for name in NAMES:
        assert np.array_equal(found[name], signals[name]), name


def test_units_are_in_the_file(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    export(recorded(tmp_path / "run"), tmp_path / "out.parquet")
    schema = parquet.read_schema(tmp_path / "out.parquet")
    assert [schema.field(n).metadata[b"unit"] for n in ("t", *NAMES)] == [b"s", *(u.encode() for u in UNITS)]
    export(tmp_path / "run", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == "s,rad/s,Nm,m/s,1"


def test_some_signals_every_tenth(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run")
    made = export(run, tmp_path / "out.csv", signals=["engine.*"], every=10)
    found = read(made.path)
    assert set(found) == {"t", "engine.w", "engine.tau"} and made.samples == 100
    assert np.array_equal(found["engine.w"], read_signals(run)["engine.w"][::10])


def test_what_is_not_finite_is_left_out_of_json(tmp_path: Path) -> None:
    pytest.importorskip("mcap.reader", reason="mcap is not installed")
    records = np.zeros(3, signal_dtype(4))
    records["tick"], records["out"] = np.arange(3), [[1, np.nan, 3, 4], [np.inf, 2, 3, 4], [1, 2, 3, 4]]
    writer = ChunkWriter(tmp_path / "signals", signal_header(NAMES, UNITS, 1e-3))
    writer.write(records.tobytes())
    writer.close()
    export(tmp_path, tmp_path / "out.mcap")
    found = read(tmp_path / "out.mcap")
    assert list(found["engine.w"]) == [1, 1] and list(found["engine.tau"]) == [2, 2] and len(found["t"]) == 3


def test_a_run_that_was_killed_or_damaged(tmp_path: Path) -> None:
    """As far as `read_signals` reads it, and what is missing is said."""
    run = recorded(tmp_path / "run", close=False)
    first, *_, last = sorted((run / "signals").iterdir())
    last.write_bytes(last.read_bytes()[:-7])
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1
    first.write_bytes(data)
    made = export(run, tmp_path / "out.csv")
    signals = read_signals(run)
    assert made.samples == len(signals.tick) < 1000
    assert np.array_equal(read(made.path)["car.v"], signals["car.v"])
    said = "; ".join(made.damage)
    assert "wrong checksum" in said and "torn chunk" in said and "no end mark" in said


def test_memory_is_that_of_some_samples_not_of_the_run(tmp_path: Path) -> None:
    """80 MB recorded; the most that is held at a time is bounded by the pieces, whatever there is."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    run = recorded(tmp_path / "run", ticks=100_000, chunk=500, n=100, file_bytes=16 << 20)
    export(run, tmp_path / "first.parquet", signals=["car.v"])  # imports
    tracemalloc.start()
    try:
        made = export(run, tmp_path / "out.parquet", every=2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert made.samples == 50_000 and peak < 50e6, f"{peak / 1e6:.0f} MB"
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.ParquetFile(made.path).num_row_groups >= 3, "in pieces"


def test_pieces_are_the_chunks(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run")
    pieces = Pieces.of(run / "signals")
    assert len(list(pieces)) == 8 and pieces.closed and pieces.damage == []
    assert sum(len(r) for r in SignalPieces.of(run)) == 1000


def test_mistakes_are_named(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run")
    for target, more, words in (
        ("out.xls", {}, "allowed: parquet, csv, mcap, mf4"),
        ("out.csv", {"signals": ["engin.*"]}, "no recorded signal is called 'engin.*'"),
        ("out.csv", {"every": 0}, "every = 0"),
    ):
        with pytest.raises(ConfigError) as caught:
            export(run, tmp_path / target, **more)
        assert words in str(caught.value)
    with pytest.raises(RecordingError, match="no recording here"):
        export(tmp_path / "nothing", tmp_path / "out.csv")
    (run / "signals" / "000001.tlc").write_bytes(b"")
    made = export(run, tmp_path / "out.csv")
    assert made.samples == len(read_signals(run).tick) < 1000 and "file head torn" in made.damage[0]
    for file in (run / "signals").iterdir():
        file.write_bytes(b"")
    with pytest.raises(RecordingError, match="file head torn; nothing in .* can be read"):
        export(run, tmp_path / "out.csv")
