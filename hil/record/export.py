"""Recorded signals as files other tools open: Parquet, CSV, MCAP (Foxglove), MF4; read and written piece by piece.

    parquet   one row a sample, column `t` [s] and one for each signal; unit in the field's metadata, zstd, row groups
    csv       the same as text; first line names, second units; numbers as Python writes them, so that they come back
    mcap      a channel for each group of signals (/engine, /C4), JSON with its schema; time: simulated, from 0
    mf4       ASAM MDF 4.10, one group, simulated time as master

Memory is that of some thousand samples, whatever the length of the run.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.record.mf4 import SAMPLES, MissingExtraError, mf4_file
from torqueloop.hil.record.mf4_stream import Mf4Stream
from torqueloop.hil.record.pieces import SignalPieces
from torqueloop.hil.record.streamed import CsvFile, parquet_schema, pyarrow


@dataclass(frozen=True)
class Exported:
    """What was written."""

    path: Path
    samples: int
    signals: int
    #: what of the recording could not be read, in words
    damage: list[str]


@dataclass(frozen=True)
class _Chosen:
    """Signals that are wanted, and their samples."""

    source: SignalPieces
    columns: NDArray[np.intp]
    names: list[str]
    units: list[str]
    every: int

    def pieces(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """(t, values by row), SAMPLES at a time or a few more."""
        t: list[NDArray[np.float64]] = []
        x: list[NDArray[np.float64]] = []
        count = 0
        for records in self.source:
            keep = records[(records["tick"] // self.source.every) % self.every == 0]
            t.append((keep["tick"] + 1) * self.source.tick_s)
            x.append(keep["out"][:, self.columns])
            count += len(keep)
            if count >= SAMPLES:
                yield np.concatenate(t), np.concatenate(x)
                t, x, count = [], [], 0
        if count:
            yield np.concatenate(t), np.concatenate(x)

    def given_to(self, file: CsvFile | Mf4Stream) -> int:
        """Write all pieces; how many samples they were."""
        samples = 0
        for t, x in self.pieces():
            file.write(t, x)
            samples += len(t)
        return samples


def export(
    run_dir: Path | str, target: Path | str, form: str = "", signals: Sequence[str] = ("*",), every: int = 1
) -> Exported:
    """Write the signals of a run whose names fit one of the patterns, every n-th sample. form: one of FORMS; default:
    the ending of `target`. RecordingError, ConfigError, MissingExtraError."""
    target = Path(target)
    form = form or target.suffix.removeprefix(".").lower()
    if form not in FORMS:
        raise ConfigError("{key} = {value} cannot be written", key="form", value=form, allowed=", ".join(FORMS))
    if every < 1:
        raise ConfigError("{key} = {value} is not allowed", key="every", value=every, allowed=">= 1")
    source = SignalPieces.of(run_dir)
    for pattern in signals:
        if not fnmatch.filter(source.names, pattern):
            raise ConfigError("no recorded signal is called {value}", key="signal", value=pattern,
                              allowed='names as "engine.w", patterns as "C*.p"')  # fmt: skip
    columns = [k for k, name in enumerate(source.names) if any(fnmatch.fnmatchcase(name, p) for p in signals)]
    chosen = _Chosen(source, np.array(columns, np.intp), [source.names[k] for k in columns],
                     [source.units[k] for k in columns], every)  # fmt: skip
    samples = FORMS[form](chosen, target, Path(run_dir))
    damage = [str(d) for d in source.pieces.damage]
    if not source.pieces.closed:
        damage.append("the recording has no end mark: the run was killed, or it has not ended")
    return Exported(target, samples, len(columns), damage)


def _parquet(chosen: _Chosen, target: Path, _: Path) -> int:
    arrow, parquet = pyarrow()
    schema, samples = parquet_schema(arrow, chosen.names, chosen.units), 0
    with parquet.ParquetWriter(target, schema, compression="zstd") as writer:
        for t, x in chosen.pieces():
            writer.write_table(arrow.table([t, *x.T.copy()], schema=schema))
            samples += len(t)
    return samples


def _csv(chosen: _Chosen, target: Path, _: Path) -> int:
    target.unlink(missing_ok=True)
    with closing(CsvFile(target, chosen.names, chosen.units)) as file:
        return chosen.given_to(file)


def _mf4(chosen: _Chosen, target: Path, run_dir: Path) -> int:
    with mf4_file(run_dir, target, chosen.names, chosen.units) as file:
        return chosen.given_to(file)


def _mcap(chosen: _Chosen, target: Path, run_dir: Path) -> int:
    try:
        from mcap.writer import Writer
    except ImportError:
        raise MissingExtraError("writing MCAP needs mcap: pip install 'torqueloop[export]'") from None
    groups: dict[str, list[int]] = {}
    for k, name in enumerate(chosen.names):
        groups.setdefault(name.rpartition(".")[0].replace(".", "/"), []).append(k)
    samples = 0
    with target.open("wb") as stream:
        writer = Writer(stream)
        writer.start(profile="", library="torqueloop")
        channels = []
        for group, columns in groups.items():
            keys = [chosen.names[k].rpartition(".")[2] for k in columns]
            properties = {key: {"type": "number", "description": f"[{chosen.units[k]}]"}
                          for key, k in zip(keys, columns, strict=True)}  # fmt: skip
            schema = {"type": "object", "title": group, "properties": properties}
            number = writer.register_schema(group or "signals", "jsonschema", json.dumps(schema).encode())
            channel = writer.register_channel(f"/{group}", "json", number)
            channels.append((channel, keys, columns))
        writer.add_metadata("torqueloop", {"run": run_dir.resolve().name, "time": "simulated, from 0"})
        for t, x in chosen.pieces():
            good = np.isfinite(x)
            for k, time in enumerate(np.rint(t * 1e9).astype(np.int64).tolist()):
                row = x[k].tolist()
                for channel, keys, columns in channels:
                    # JSON has no number for what is not finite
                    message = {key: row[c] for key, c in zip(keys, columns, strict=True) if good[k, c]}
                    writer.add_message(channel, time, json.dumps(message).encode(), time)
                samples += 1
        writer.finish()  # type: ignore[no-untyped-call]
    return samples


FORMS: dict[str, Callable[[_Chosen, Path, Path], int]] = {
    "parquet": _parquet, "csv": _csv, "mcap": _mcap, "mf4": _mf4,
}  # fmt: skip
