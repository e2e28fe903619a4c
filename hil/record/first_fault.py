"""The ticks around the first fault on disk: `first_fault/`, a stream like `signals/`, but of every tick.

Written once, in one chunk after the other, when the run has latched its safe state; to a folder of the system's
temporary directory where the run directory refuses.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from torqueloop.hil.record.recording import ChunkWriter, RecordingError
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.record.signals import Signals, signal_dtype

#: name of the folder in a run directory
FOLDER = "first_fault"
#: size of a chunk; a disk that fills up while it is written keeps the chunks before [bytes]
_CHUNK_BYTES = 1 << 20


def write_first_fault(run_dir: Path, header: dict[str, Any], records: bytes) -> tuple[Path, str]:
    """Write the records (whole, see `signal_dtype`); the folder they are in, and why it is not that of the run ("": it
    is). OSError: neither the run directory nor the temporary one takes them."""
    try:
        return _write(run_dir / FOLDER, header, records), ""
    except (OSError, RecordingError) as error:
        reason = f"{type(error).__name__}: {error}"
    elsewhere = Path(tempfile.mkdtemp(prefix="torqueloop-first-fault-"))
    return _write(elsewhere / FOLDER, header, records), reason


def _write(folder: Path, header: dict[str, Any], records: bytes) -> Path:
    size = signal_dtype(len(header["names"])).itemsize
    step = max(1, _CHUNK_BYTES // size) * size
    writer = ChunkWriter(folder, header)
    try:
        for at in range(0, len(records), step):
            writer.write(records[at : at + step])
        writer.close()
    finally:
        writer.abandon()
    return folder


def read_first_fault(run_dir: Path | str, path: str | None = None) -> Signals | None:
    """The ticks around the first fault of a run; None when it left none. `path`: where the run says it put them."""
    run_dir = Path(run_dir)
    for folder in (run_dir / FOLDER, Path(path) if path else None):
        if folder is not None and os.path.isdir(folder):
            try:
                return read_signals(folder.parent, folder.name)
            except RecordingError:
                continue
    return None
