"""Signals in forms that other tools open, written while the run goes on by the recorder's thread.

    mf4       signals.mf4             whole after every chunk (mf4_stream)
    csv       signals.csv             whole lines after every chunk
    parquet   signals.parquet/*       a folder of parts, as tools read data sets; whole up to the last part

All beside `signals/`, which is the recording itself: reports and replay need no other. A form that the disk refuses is
given up with its cause in the status; the recording and the others go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.naming import csv_row
from torqueloop.hil.record.file_form import FileForm
from torqueloop.hil.record.mf4 import OWN, MissingExtraError, epoch_of
from torqueloop.hil.record.mf4_stream import Mf4Stream
from torqueloop.hil.record.signals import signal_dtype

Form = Literal["mf4", "csv", "parquet"]
FORMS: tuple[Form, ...] = ("mf4", "csv", "parquet")
#: samples of a part of a Parquet folder; more: fewer files, more memory and more lost by a kill
PART_SAMPLES = 16384
#: columns of the records that are OWN, in its order [ns]
_OWN = ("wake_lateness_ns", "compute_ns")

Array = NDArray[np.float64]


class _Writer(Protocol):
    """One form."""

    bytes_written: int

    def write(self, t: Array, values: Array) -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...


class Streamed(FileForm):
    """One form of the signals of a run, fed with their records."""

    def __init__(
        self, form: Form, run_dir: Path, names: Sequence[str], units: Sequence[str], tick_s: float,
        started: datetime, epoch_ns: int,
    ) -> None:  # fmt: skip
        """started: of the run. epoch_ns: what is added to the clock of the loop to have time since 1970.
        ConfigError for another form, MissingExtraError where its library is missing."""
        if form not in FORMS:
            raise ConfigError("{key} = {value} cannot be written while running", key="formats", value=form,
                              allowed=", ".join(FORMS))  # fmt: skip
        if form == "parquet":
            pyarrow()
        super().__init__(run_dir, f"signals.{form}")
        self.form = form
        self._names, self._units = [*names, *OWN], [*units, *OWN.values()]
        self._dtype, self._n = signal_dtype(len(names)), len(names)
        self._tick_s, self._started, self._epoch_ns = tick_s, started, epoch_ns
        self._writer: _Writer | None = None

    def _take(self, payload: bytes, sync: bool) -> None:
        records = np.frombuffer(payload, self._dtype)
        if self._writer is None:
            self._writer = self._open(records[0])
        values = np.empty((len(records), self._n + len(_OWN)))
        values[:, : self._n] = records["out"]
        for k, column in enumerate(_OWN):
            values[:, self._n + k] = records[column] * 1e-3
        self._writer.write((records["tick"] + 1) * self._tick_s, values)
        if sync:
            self._writer.sync()
        self.status = replace(self.status, bytes_written=self._writer.bytes_written, chunks=self.status.chunks + 1)

    def _open(self, first: Any) -> _Writer:
        if self.form == "mf4":
            first_ns = int(first["t_wall_ns"]) - int(first["tick"]) * round(1e9 * self._tick_s)
            start = epoch_of(self._epoch_ns, first_ns) if self._epoch_ns and first_ns > 0 else self._started
            return Mf4Stream(self._path, self._names, self._units, start)
        kind = CsvFile if self.form == "csv" else _Parquet
        return kind(self._path, self._names, self._units)

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self.status = replace(self.status, bytes_written=self._writer.bytes_written)


class CsvFile:
    """First line names, second units; numbers as Python writes them, so that they come back."""

    def __init__(self, path: Path, names: Sequence[str], units: Sequence[str]) -> None:
        self.bytes_written = 0
        self._file: IO[bytes] = path.open("xb")
        self._put(f"{csv_row(['t', *names])}\n{csv_row(['s', *units])}\n")

    def _put(self, text: str) -> None:
        self.bytes_written += self._file.write(text.encode())

    def write(self, t: Array, values: Array) -> None:
        rows = zip(t.tolist(), values.tolist(), strict=True)
        self._put("".join(f"{time!r},{','.join(map(repr, row))}\n" for time, row in rows))
        self._file.flush()

    def sync(self) -> None:
        """Lines are given to the system; a text of this size is not waited for."""

    def close(self) -> None:
        self._file.close()


class _Parquet:
    """Parts of PART_SAMPLES, each a file of its own under its last name when it is whole."""

    def __init__(self, path: Path, names: Sequence[str], units: Sequence[str]) -> None:
        self._arrow, self._parquet = pyarrow()
        path.mkdir()
        self._schema, self._path = parquet_schema(self._arrow, names, units), path
        self._parts: list[tuple[Array, Array]] = []
        self._count = self._number = self.bytes_written = 0

    def write(self, t: Array, values: Array) -> None:
        self._parts.append((t, values))
        self._count += len(t)
        if self._count >= PART_SAMPLES:
            self._flush()

    def _flush(self) -> None:
        t = np.concatenate([part[0] for part in self._parts])
        values = np.concatenate([part[1] for part in self._parts])
        self._parts, self._count = [], 0
        self._number += 1
        name = f"{self._number:06d}.parquet"
        # readers of a folder pass over names that begin with a dot
        hidden = self._path / f".{name}"
        table = self._arrow.table([t, *values.T.copy()], schema=self._schema)
        self._parquet.write_table(table, hidden, compression="zstd")
        self.bytes_written += hidden.stat().st_size
        hidden.rename(self._path / name)

    def sync(self) -> None:
        """A part is whole or not there."""

    def close(self) -> None:
        if self._parts:
            self._flush()


def parquet_schema(arrow: Any, names: Sequence[str], units: Sequence[str]) -> Any:
    """Columns `t` and the signals, with their units."""
    columns = zip(["t", *names], ["s", *units], strict=True)
    return arrow.schema([arrow.field(name, arrow.float64(), False, {"unit": unit}) for name, unit in columns])


def pyarrow() -> tuple[Any, Any]:
    """pyarrow and its module for Parquet; MissingExtraError without it."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("writing Parquet needs pyarrow: pip install 'torqueloop[export]'") from None
    return arrow, parquet
