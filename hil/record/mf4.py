"""Signals and frames of a run as ASAM MDF 4. Both files of a run begin at one instant: that of its first tick."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.common.lean_imports import with_asammdf
from torqueloop.hil.record.mf4_stream import Mf4Stream
from torqueloop.hil.record.pieces import Pieces, SignalPieces
from torqueloop.hil.record.recording import RecordingError
from torqueloop.hil.record.run_data import described_buses, read_signals
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.results.files import read_run_info

if TYPE_CHECKING:
    import can

#: samples that are gathered before they are written: of 200 signals 25 MB
SAMPLES = 16384
#: beside the signals: what the loop says of itself, with its unit
OWN = {"rig.wake_lateness": "us", "rig.compute": "us"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MissingExtraError(TorqueloopError):
    """Something needs an optional package that is not installed."""


def no_asammdf() -> MissingExtraError:
    """The error of all that writes MDF."""
    return MissingExtraError("writing MF4 needs asammdf, which is not installed: pip install 'torqueloop[mf4]'")


def start_of(run_dir: Path | str) -> tuple[datetime, int]:
    """When tick 0 of a run was, and the same on the clock of its frames [ns]. On the virtual clock simulated time 0 is
    when the run was started."""
    epoch_ns = first_ns = 0
    with suppress(RecordingError):
        _, epoch_ns = described_buses(Pieces.of(Path(run_dir) / "bus").header, f"{run_dir}/bus")
    with suppress(RecordingError):
        signals = SignalPieces.of(run_dir)
        first = next((records[0] for records in signals if len(records)), None)
        if first is not None:
            first_ns = int(first["t_wall_ns"]) - int(first["tick"]) * round(1e9 * signals.tick_s)
    if epoch_ns and first_ns > 0:
        return epoch_of(epoch_ns, first_ns), first_ns
    info = read_run_info(run_dir)
    begun = datetime.fromisoformat(info.started) if info is not None and info.started else _EPOCH
    return begun, 0


def epoch_of(epoch_ns: int, first_ns: int) -> datetime:
    """An instant on the clock of the loop. epoch_ns: that clock's 0."""
    # in two steps: a double holds no nanoseconds since 1970
    return _EPOCH + timedelta(microseconds=(epoch_ns + first_ns) / 1000)


def frame_writer(target: Path, start: datetime) -> can.MF4Writer:
    """python-can's writer of ASAM bus logs, which takes the time of the export for that of the measurement: here
    timestamps of messages count from `start` [s]."""
    import can

    writer = can.MF4Writer(str(target))
    writer._mdf.header.start_time = start
    writer._start_time = 0.0
    writer.last_timestamp = 0.0
    return writer


def write_frames(target: Path, start: datetime, messages: Iterable[can.Message]) -> None:
    """An ASAM bus log; timestamps of the messages count from `start`, channels from 1."""
    if not with_asammdf():
        raise no_asammdf()
    with frame_writer(target, start) as writer:
        for message in messages:
            writer.on_message_received(message)


def write_mf4(run_dir: Path | str, target: Path | str, signals: Signals | None = None) -> int:
    """Export the signals to ASAM MDF 4 (the frames: `write_bus_log`). Returns the number of channels."""
    signals = signals if signals is not None else read_signals(run_dir)
    names, units = [*signals.names, *OWN], [*signals.units.values(), *OWN.values()]
    with mf4_file(run_dir, target, names, units) as file:
        for first in range(0, signals.n, SAMPLES):
            part = signals.part(first, first + SAMPLES)
            columns = [*(part[name] for name in signals.names), part.wake_lateness_us, part.compute_us]
            file.write(part.t, np.column_stack(columns))
    return len(names)


def mf4_file(run_dir: Path | str, target: Path | str, names: Sequence[str], units: Sequence[str]) -> Mf4Stream:
    """A file of signals of a run, instead of one that is there; its time begins with the run."""
    Path(target).unlink(missing_ok=True)
    return Mf4Stream(target, names, units, start_of(run_dir)[0])
